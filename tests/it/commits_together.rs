//! Several `commits` jobs over one database: each uses its own settings, reports its own runs, and stops no other.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tsuzuki::app::App;
use tsuzuki::channel::outbox::{self, DeliveryFilter};
use tsuzuki::commits::GitSource;
use tsuzuki::commits::run::decide::Sharing;
use tsuzuki::commits::run::{self, RunStatus};
use tsuzuki::commits::run::{Bulk, Ended};
use tsuzuki::commits::store::projects;
use tsuzuki::db::Db;
use tsuzuki::demo::gitlab::{Change, Fault, GitLab, History};
use tsuzuki::engine::{Failure, Finished, Progress, Report, Runner, Selection};
use tsuzuki::id::RunId;
use tsuzuki::{params, sql};

use crate::commits::world::rows;
use crate::commits_jobs::app;
use crate::commits_runs::tick;

const HOOK: &str = "[channel.hook]\nkind = \"webhook\"\nurl = \"https://hook.example/x\"\n";
const DELIVER: &str = "deliver = [\"hook\"]";

fn job(name: &str, gitlab: &GitLab, token: &str, more: &str) -> String {
    format!(
        "[[job]]\nname = \"{name}\"\nkind = \"commits\"\nallow_private = [\"127.0.0.1\"]\ngitlab = \"{}\"\n\
         token = \"{token}\"\n{more}\n",
        gitlab.url()
    )
}

/// A project with one commit of 2020 and one of 2025.
fn add_project(gitlab: &GitLab, id: i64, path: &str) -> History {
    let history = History::new(id);
    gitlab.add_history(id, path, history.clone());
    commit(&history, "2020-05-05T00:00:00Z");
    commit(&history, "2025-05-05T00:00:00Z");
    history
}

fn commit(history: &History, at: &str) {
    let change =
        Change { author: "Ann Author", title: "Change".into(), at: at.parse().unwrap(), lines: (1, 0) };
    history.commit("main", change);
}

/// Hides project 1 from every token but `one`, and project 2 from every token but `two`.
fn hide_from_others(gitlab: &GitLab) {
    gitlab.set_fault(|asked| {
        let about = |names: &[&str]| asked.segments.get(1).is_some_and(|name| names.contains(&name.as_str()));
        let may = match (about(&["1", "team/p1"]), about(&["2", "team/p2"])) {
            (true, _) => asked.token.as_deref() == Some("one"),
            (_, true) => asked.token.as_deref() == Some("two"),
            _ => true,
        };
        (!may).then(|| Fault::Status(404, vec![], "{\"message\":\"404 Project Not Found\"}"))
    });
}

/// Runs the named jobs, one after the other.
async fn turn(app: &App, names: &[&str], stop: &CancellationToken) -> Vec<Finished> {
    let runner = Runner::new(app.env.db.clone(), Progress::default());
    let mut all = Vec::new();
    for name in names {
        let jobs = app.jobs.iter().filter(|job| job.name.as_str() == *name).cloned().collect();
        all.extend(runner.run(jobs, Selection::Forced, stop).await.into_iter().map(|(_, finished)| finished));
    }
    all
}

async fn report(app: &App, name: &str) -> Report {
    match turn(app, &[name], &CancellationToken::new()).await.pop() {
        Some(Finished::Ran(report)) => report,
        other => panic!("{other:?}"),
    }
}

async fn runs(db: &Db) -> Vec<run::RunRow> {
    db.read(|tx| run::list_runs(tx, 100)).await.unwrap()
}

/// The announced runs by job, sorted.
async fn announcements(db: &Db) -> Vec<(String, String)> {
    let queued = db.read(|tx| outbox::list(tx, &DeliveryFilter::default(), 50)).await.unwrap();
    let mut announcements: Vec<_> =
        queued.into_iter().map(|row| (row.job_name.to_string(), row.subject)).collect();
    announcements.sort();
    announcements
}

/// A run of `job` that has failed without an announcement, because its process died in between.
async fn add_unannounced(db: &Db, job: &'static str) -> RunId {
    let id = RunId::random();
    db.write(move |tx| {
        let now = tx.now();
        tx.execute(
            sql!(
                "INSERT INTO bulk_collection_runs (run_id, started_at_utc, completed_at_utc, status, total_targets,
                   failed_count, job_name) VALUES (?1, ?2, ?2, 'completed', 1, 1, ?3)"
            ),
            params![id, now, job],
        )?;
        tx.execute(
            sql!(
                "INSERT INTO bulk_collection_results (run_id, project_id, branch_name, status, error_message)
                 VALUES (?1, 1, 'main', 'failed', 'as it must')"
            ),
            params![id],
        )
    })
    .await
    .unwrap();
    id
}

/// Starts `name` and interrupts it at its first page of commits: its run stays.
async fn interrupt(app: &App, gitlab: &GitLab, name: &str) -> RunId {
    let stop = CancellationToken::new();
    let cut = stop.clone();
    gitlab.set_fault(move |asked| {
        let page = asked.is_for_commits();
        if page {
            cut.cancel();
        }
        page.then_some(Fault::Hang)
    });
    let finished = turn(app, &[name], &stop).await;
    assert!(matches!(finished[..], [Finished::Failed(Failure::Interrupted)]), "{finished:?}");
    gitlab.reset_fault();
    let left = runs(&app.env.db).await.remove(0);
    assert_eq!(left.status, RunStatus::Running);
    left.run_id
}

on_both_databases! {
    async fn a_finished_run_is_told_once_whoever_looks_first(fixture) {
        let (one, two) = (GitLab::start().await.unwrap(), GitLab::start().await.unwrap());
        let jobs = job("one", &one, "t", DELIVER) + &job("two", &two, "t", "");
        let app = app(&fixture.db, &(HOOK.to_owned() + &jobs));
        let mut expected = Vec::new();
        for order in [["two", "one"], ["one", "two"]] {
            for _ in 0..2 {
                let id = add_unannounced(&fixture.db, "one").await;
                fixture.clock.advance(Duration::from_secs(1));
                expected.push(("one".to_owned(), format!("run:{id}")));
            }
            // A run of a job that this config does not have is left to a process that has it.
            add_unannounced(&fixture.db, "elsewhere").await;
            for name in order {
                turn(&app, &[name], &CancellationToken::new()).await;
            }
            expected.sort();
            assert_eq!(announcements(&fixture.db).await, expected, "{order:?}");
        }
        let left = fixture.db.read(|tx| tx.count(sql!("SELECT COUNT(*) FROM bulk_collection_runs WHERE told_at IS NULL"), params![])).await.unwrap();
        assert_eq!(left, 2);
    }

    async fn a_run_that_another_job_finishes_is_told_by_the_channels_of_its_own(fixture) {
        let gitlab = GitLab::start().await.unwrap();
        add_project(&gitlab, 1, "team/p1");
        add_project(&gitlab, 2, "team/p2");
        let jobs = job("one", &gitlab, "one", &format!("projects = [\"team/p1\"]\n{DELIVER}"))
            + &job("two", &gitlab, "two", "projects = [\"team/p2\"]");
        let app = app(&fixture.db, &(HOOK.to_owned() + &jobs));
        let cut_off = interrupt(&app, &gitlab, "one").await;
        hide_from_others(&gitlab);
        let report = report(&app, "two").await;
        assert!(report.problems.is_empty(), "{report:?}");
        assert_eq!(announcements(&fixture.db).await, [("one".to_owned(), format!("run:{cut_off}"))]);
        turn(&app, &["one", "two"], &CancellationToken::new()).await;
        assert_eq!(announcements(&fixture.db).await.len(), 1);
        assert_eq!(rows(&fixture.db).await.len(), 4);
    }

    async fn two_jobs_of_one_gitlab_keep_to_their_own_settings(fixture) {
        let gitlab = GitLab::start().await.unwrap();
        let (p1, p2) = (add_project(&gitlab, 1, "team/p1"), add_project(&gitlab, 2, "team/p2"));
        hide_from_others(&gitlab);
        let text = job("one", &gitlab, "one", "projects = [\"team/p1\"]\nhide_emails = true\nsince = \"2024-01-01\"")
            + &job("two", &gitlab, "two", "projects = [\"team/p2\"]");
        let app = app(&fixture.db, &text);
        for (round, order) in [["one", "two"], ["two", "one"], ["two", "two"], ["one", "two"]].into_iter().enumerate() {
            for name in order {
                let report = report(&app, name).await;
                assert!(report.problems.is_empty(), "{round} {name}: {report:?}");
            }
            commit(&p1, "2020-06-06T00:00:00Z");
            commit(&p1, "2025-06-06T00:00:00Z");
            commit(&p2, "2025-06-06T00:00:00Z");
        }
        for row in rows(&fixture.db).await {
            match row.project_id {
                1 => assert!(!row.author_email.contains('@') && row.committed.as_str() > "2024", "{row:?}"),
                _ => assert!(row.author_email.contains('@'), "{row:?}"),
            }
        }
        assert!(runs(&fixture.db).await.iter().all(|run| run.failed_count == 0 && run.total_targets == 1));
        let known = fixture.db.read(|tx| projects::list(tx, None)).await.unwrap();
        assert!(known.iter().all(|project| project.removed_at.is_none()), "{known:?}");
        for asked in gitlab.requests().iter().filter(|asked| asked.segments.get(1).is_some_and(|id| id == "1")) {
            assert_eq!(asked.token.as_deref(), Some("one"), "{asked:?}");
        }
    }

    async fn a_run_that_nobody_can_finish_ends_and_the_others_go_on(fixture) {
        for change in ["removed", "disabled", "moved"] {
            let (one, two, new) = (GitLab::start().await.unwrap(), GitLab::start().await.unwrap(), GitLab::start().await.unwrap());
            let id = match change { "removed" => 1, "disabled" => 11, _ => 21 };
            add_project(&one, id, "team/p1");
            add_project(&two, id + 1, "team/p2");
            let of_two = job("two", &two, "t", "projects = [\"team/p2\"]");
            let keys = format!("projects = [\"team/p1\"]\n{DELIVER}");
            let before = app(&fixture.db, &(HOOK.to_owned() + &job("one", &one, "t", &keys) + &of_two));
            let cut_off = interrupt(&before, &one, "one").await;
            let asked = one.requests().len();
            let of_one = match change {
                "removed" => String::new(),
                "disabled" => job("one", &one, "t", &format!("{keys}\nenabled = false")),
                _ => job("one", &new, "t", &keys),
            };
            let after = app(&fixture.db, &(HOOK.to_owned() + &of_one + &of_two));
            let report = report(&after, "two").await;
            assert_eq!(one.requests().len(), asked, "{change}: nobody asks it");
            let all = runs(&fixture.db).await;
            let ended = all.iter().find(|run| run.run_id == cut_off).unwrap();
            assert_eq!((ended.status, ended.failed_count), (RunStatus::Completed, 1), "{change}");
            let problem = report.problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
            assert!(problem.contains(&cut_off.to_string()) && problem.contains("retry-failed"), "{change}: {problem}");
            assert!(rows(&fixture.db).await.iter().any(|row| row.project_id != 1 && row.branch == "main"), "{change}");
            let own = all.iter().find(|run| run.job_name.as_deref() == Some("two") && run.status == RunStatus::Completed).unwrap();
            assert!(own.success_count == 1, "{change}: {own:?}");
            let expected = ("one".to_owned(), format!("run:{cut_off}"));
            assert_eq!(announcements(&fixture.db).await.contains(&expected), change != "removed", "{change}");
            fixture.clock.advance(Duration::from_secs(1));
        }
    }

    async fn a_job_that_was_renamed_goes_on_with_its_run(fixture) {
        let gitlab = GitLab::start().await.unwrap();
        add_project(&gitlab, 1, "team/p1");
        let named = |name: &str| app(&fixture.db, &job(name, &gitlab, "t", "projects = [\"team/p1\"]"));
        let cut_off = interrupt(&named("old"), &gitlab, "old").await;
        let report = report(&named("new"), "new").await;
        assert!(report.problems.is_empty() && report.summary.to_string().contains(&cut_off.to_string()), "{report:?}");
        let all = runs(&fixture.db).await;
        assert_eq!((all.len(), all[0].success_count), (1, 1));
        assert_eq!(rows(&fixture.db).await.len(), 2);
    }

    async fn a_token_that_stays_bad_stops_only_its_own_job(fixture) {
        let (one, two) = (GitLab::start().await.unwrap(), GitLab::start().await.unwrap());
        add_project(&one, 1, "team/p1");
        let p2 = add_project(&two, 2, "team/p2");
        let text = job("one", &one, "t", "projects = [\"team/p1\"]") + &job("two", &two, "t", "projects = [\"team/p2\"]");
        let app = app(&fixture.db, &text);
        one.set_fault(|asked| (asked.segments.len() > 2).then(Fault::expired));
        for round in 1..=2 {
            let finished = turn(&app, &["one"], &CancellationToken::new()).await;
            assert!(matches!(finished[..], [Finished::Failed(Failure::Credentials(_))]), "{finished:?}");
            let report = report(&app, "two").await;
            assert!(report.problems.iter().any(|problem| problem.to_string().contains("expired")), "{report:?}");
            assert_eq!(rows(&fixture.db).await.len(), 1 + round, "what is new on the other");
            commit(&p2, "2025-07-07T00:00:00Z");
        }
        // With a new token everything is collected that was left.
        one.reset_fault();
        assert!(report(&app, "one").await.problems.is_empty());
        assert_eq!(rows(&fixture.db).await.len(), 3 + 2);
    }

    async fn a_gitlab_that_is_gone_fails_its_job_soon_and_once(fixture) {
        let gone = GitLab::start().await.unwrap();
        let text = job("one", &gone, "t", "projects = [\"team/p1\", \"team/p2\", \"team/p3\"]\nconcurrency = 1");
        let app = app(&fixture.db, &text);
        drop(gone);
        let (began, ticking) = (fixture.clock.now(), tick(&fixture.clock));
        let ended = bulk(&app).start(None, Sharing::Alone).await;
        let took = fixture.clock.now().since(began);
        ticking.abort();
        let Err(Failure::Failed(why)) = ended else { panic!("{ended:?}") };
        assert_eq!(why.to_string().matches("no connection").count(), 1, "{why}");
        assert!(took < Duration::from_secs(45), "{took:?}");
        assert!(runs(&fixture.db).await.is_empty());
    }

    async fn a_gitlab_that_goes_away_in_the_middle_is_waited_for_once(fixture) {
        let gitlab = GitLab::start().await.unwrap();
        for id in 1..=4 {
            add_project(&gitlab, id, &format!("team/p{id}"));
        }
        let app = app(&fixture.db, &job("one", &gitlab, "t", "group = \"team\"\nconcurrency = 1"));
        interrupt(&app, &gitlab, "one").await;
        drop(gitlab);
        let (began, ticking) = (fixture.clock.now(), tick(&fixture.clock));
        let ended = bulk(&app).start(None, Sharing::Alone).await;
        let took = fixture.clock.now().since(began);
        ticking.abort();
        let Ok(Ended::Worked(outcome)) = ended else { panic!("{ended:?}") };
        assert_eq!((outcome.run.run.failed_count, outcome.problems.len()), (4, 1), "{outcome:?}");
        assert!(outcome.problems[0].to_string().contains("and 3 more: no connection"), "{outcome:?}");
        assert!(took < Duration::from_secs(45), "{took:?}");
    }

    async fn a_branch_that_two_jobs_name_is_collected_by_one_of_them(fixture) {
        let gitlab = GitLab::start().await.unwrap();
        let p1 = add_project(&gitlab, 1, "team/p1");
        let both = "projects = [\"team/p1\"]";
        let hidden = |more: &str| job("hidden", &gitlab, "token-hidden", &format!("hide_emails = true\n{more}"));
        let plain = job("plain", &gitlab, "token-plain", both);
        let shown = |rows: &[crate::commits::world::Stored]| rows.iter().filter(|row| row.author_email.contains('@')).count();
        // The first job keeps it as long as its config names it, …
        let first = app(&fixture.db, &(hidden(both) + &plain));
        for name in ["hidden", "plain", "plain"] {
            turn(&first, &[name], &CancellationToken::new()).await;
            commit(&p1, "2025-07-07T00:00:00Z");
        }
        assert_eq!(shown(&rows(&fixture.db).await), 0);
        // … another job that names it takes it over, once the first has run without naming it …
        let second = app(&fixture.db, &(hidden("") + &plain));
        for name in ["hidden", "plain"] {
            turn(&second, &[name], &CancellationToken::new()).await;
            commit(&p1, "2025-08-08T00:00:00Z");
        }
        let taken = shown(&rows(&fixture.db).await);
        assert!(taken >= 1, "the other has taken it over");
        // … and if a job is removed, its branches go to one that exists, even if that does not name them.
        let third = app(&fixture.db, &hidden(""));
        let report = report(&third, "hidden").await;
        assert!(report.problems.is_empty() && report.summary.to_string().contains("1 of 1 branches up to date"), "{report:?}");
        let all = rows(&fixture.db).await;
        assert_eq!((all.len(), shown(&all)), (p1.len(), taken));
    }

    async fn all_jobs_at_once_collect_each_with_its_own_token_and_one_refused_stops_no_other(fixture) {
        let gitlab = GitLab::start().await.unwrap();
        add_project(&gitlab, 1, "team/p1");
        let p2 = add_project(&gitlab, 2, "team/p2");
        hide_from_others(&gitlab);
        let text = job("one", &gitlab, "one", "projects = [\"team/p1\"]\nhide_emails = true") + &job("two", &gitlab, "two", "projects = [\"team/p2\"]");
        let app = app(&fixture.db, &text);
        let Ok(Ended::Worked(outcome)) = bulk(&app).start(None, Sharing::Alone).await else { panic!() };
        assert_eq!((outcome.run.run.success_count, outcome.problems.len()), (2, 0), "{outcome:?}");
        let all = rows(&fixture.db).await;
        assert!(all.iter().all(|row| row.author_email.contains('@') == (row.project_id == 2)), "{all:?}");
        commit(&p2, "2025-09-09T00:00:00Z");
        gitlab.set_fault(|asked| (asked.token.as_deref() == Some("one")).then(Fault::expired));
        let ended = bulk(&app).start(None, Sharing::Alone).await;
        assert!(matches!(&ended, Err(Failure::Credentials(why)) if why.to_string().contains("expired")), "{ended:?}");
        assert_eq!(rows(&fixture.db).await.len(), 5, "the other is collected all the same");
        assert_eq!(runs(&fixture.db).await[0].status, RunStatus::Completed);
    }
}

/// The jobs for `bulk start`: all jobs of the config.
fn bulk(app: &App) -> Bulk {
    Bulk::new(app.env.clone(), GitSource::list(&app.env.jobs), Progress::default(), CancellationToken::new())
}
