//! `commits` jobs in the runner: several at once, announced at the end, planned without side effects.

use tokio_util::sync::CancellationToken;
use tsuzuki::app::App;
use tsuzuki::channel::outbox::{self, DeliveryFilter};
use tsuzuki::commits::run::{self, RunStatus};
use tsuzuki::db::Db;
use tsuzuki::demo::gitlab::{Fault, GitLab};
use tsuzuki::engine::newest;
use tsuzuki::engine::{Finished, Progress, Runner, Selection};
use tsuzuki::ledger::event;

use crate::commits::world::rows;
use crate::test_env::read_config;

/// A GitLab with projects `team/p1` and on.
async fn gitlab(projects: i64, commits: usize) -> GitLab {
    let gitlab = GitLab::start().await.unwrap();
    for id in 1..=projects {
        gitlab.add_synthetic(id, &format!("team/p{id}"), commits);
    }
    gitlab
}

fn job(name: &str, gitlab: &GitLab, more: &str) -> String {
    format!(
        "[[job]]\nname = \"{name}\"\nkind = \"commits\"\nallow_private = [\"127.0.0.1\"]\ngitlab = \"{}\"\n\
         group = \"team\"\n{more}\n",
        gitlab.url()
    )
}

pub(crate) fn app(db: &Db, text: &str) -> App {
    App::new(&read_config(text), db.clone()).unwrap()
}

async fn run_all(app: &App) -> Vec<Finished> {
    let runner = Runner::new(app.env.db.clone(), Progress::default());
    let finished = runner.run(app.jobs.clone(), Selection::Forced, &CancellationToken::new()).await;
    finished.into_iter().map(|(_, finished)| finished).collect()
}

on_both_databases! {
    async fn jobs_of_two_gitlabs_take_turns_and_both_finish(fixture) {
        let (one, two) = (gitlab(3, 120).await, gitlab(2, 130).await);
        let app = app(&fixture.db, &(job("one", &one, "") + &job("two", &two, "")));
        for _ in 0..2 {
            for finished in run_all(&app).await {
                let Finished::Ran(report) = finished else { panic!("{finished:?}") };
                assert!(report.problems.is_empty() && report.waiting_until.is_none(), "{report:?}");
            }
        }
        assert_eq!(rows(&fixture.db).await.len(), 3 * 120 + 2 * 130);
        let runs = fixture.db.read(|tx| run::list_runs(tx, 10)).await.unwrap();
        assert_eq!(runs.len(), 4);
        assert!(runs.iter().all(|run| run.status == RunStatus::Completed && run.failed_count == 0));
    }

    async fn more_projects_than_fit_on_a_page_are_all_found(fixture) {
        let gitlab = gitlab(230, 1).await;
        let app = app(&fixture.db, &job("code", &gitlab, "concurrency = 8"));
        let finished = run_all(&app).await;
        assert!(matches!(&finished[0], Finished::Ran(report) if report.problems.is_empty()), "{finished:?}");
        assert_eq!(rows(&fixture.db).await.len(), 230);
    }

    async fn the_end_of_a_run_is_told_once_and_only_when_there_is_news(fixture) {
        let gitlab = gitlab(2, 10).await;
        let channel = "[channel.hook]\nkind = \"webhook\"\nurl = \"https://hook.example/x\"\n";
        let text = channel.to_owned() + &job("code", &gitlab, "deliver = [\"hook\"]");
        let app = app(&fixture.db, &text);
        let queued = || fixture.db.read(|tx| outbox::list(tx, &DeliveryFilter::default(), 10));
        run_all(&app).await;
        let first = queued().await.unwrap();
        assert_eq!(first.len(), 1);
        assert!(first[0].payload.contains("20") && first[0].subject.starts_with("run:"), "{:?}", first[0]);
        run_all(&app).await;
        assert_eq!(queued().await.unwrap().len(), 1, "nothing new, nothing told");
        gitlab.set_fault(|asked| {
            let broken = asked.segments.get(1).is_some_and(|id| id == "2") && asked.segments.len() > 2;
            broken.then(|| Fault::Status(403, vec![], "{\"message\":\"403 Forbidden\"}"))
        });
        run_all(&app).await;
        let failed = queued().await.unwrap();
        assert_eq!(failed.len(), 2);
        assert!(failed[0].payload.contains("team/p2"), "{}", failed[0].payload);
        let finder = app.finder(&read_config(&text), 10);
        let newest = fixture.db.read(move |tx| newest::list(&finder, tx, 10)).await.unwrap();
        let about: Vec<_> = newest.iter().map(|one| one.about.as_str()).collect();
        assert!(!about.is_empty() && about.iter().all(|about| !about.starts_with("run:")), "things, not runs: {about:?}");
    }

    async fn an_end_that_cannot_be_told_is_a_problem_and_part_of_the_story(fixture) {
        let gitlab = gitlab(2, 10).await;
        let channels = "[channel.hook]\nkind = \"webhook\"\nurl = \"https://hook.example/x\"\n\
                        [channel.toot]\nkind = \"mastodon\"\ninstance = \"http://127.0.0.1:9\"\ntoken = \"t\"\nallow_private = [\"127.0.0.1\"]\n\
                        template = \"{% if link %}{{ link }}{% else %}{{ nothing }}{% endif %}\"\n";
        for (number, (deliver, messages)) in [("[\"toot\", \"hook\"]", 1), ("[\"toot\"]", 0)].into_iter().enumerate() {
            let name = format!("code{number}");
            fixture.clock.advance(std::time::Duration::from_secs(60));
            let app = app(&fixture.db, &(channels.to_owned() + &job(&name, &gitlab, &format!("deliver = {deliver}\nprojects = [\"team/p{}\"]", number + 1)).replace("group = \"team\"\n", "")));
            let finished = run_all(&app).await;
            let Finished::Ran(report) = &finished[0] else { panic!("{finished:?}") };
            assert_eq!(report.problems.len(), 1, "{report:?}");
            let problem = report.problems[0].to_string();
            assert!(problem.contains("nobody is notified of the end") && problem.contains("`toot` cannot make a message"), "{problem}");
            assert_eq!(report.outcome().word(), "partly");
            let wanted = DeliveryFilter { job: Some(name), ..DeliveryFilter::default() };
            let queued = fixture.db.read(move |tx| outbox::list(tx, &wanted, 10)).await.unwrap();
            assert_eq!(queued.len(), messages);
            let run = fixture.db.read(run::find_latest).await.unwrap().unwrap();
            let about = tsuzuki::commits::events::run(&run.run_id);
            let story = fixture.db.read(move |tx| event::list_about(tx, &about, 10)).await.unwrap();
            let unannounced = story.iter().find(|event| event.code == "not_rendered").unwrap();
            assert_eq!(unannounced.detail["channel"], "toot", "{unannounced:?}");
            assert_eq!(story.iter().filter(|event| event.code == "run_told").count(), messages);
            let Finished::Ran(report) = &run_all(&app).await[0] else { panic!() };
            assert!(report.problems.is_empty(), "told once: {report:?}");
        }
    }

    async fn a_plan_asks_nobody_and_changes_nothing(fixture) {
        let gitlab = gitlab(2, 10).await;
        let app = app(&fixture.db, &job("code", &gitlab, ""));
        run_all(&app).await;
        let (asked, writes) = (gitlab.requests().len(), fixture.db.stats().writes());
        let plan = app.jobs[0].collector.plan(&fixture.db, fixture.clock.now()).await.unwrap();
        assert!(plan.steps.iter().any(|step| step.to_string().contains("team/p1 main")), "{plan:?}");
        assert!(plan.steps.iter().any(|step| step.to_string().contains("group team")), "{plan:?}");
        assert_eq!((gitlab.requests().len(), fixture.db.stats().writes()), (asked, writes));
    }
}
