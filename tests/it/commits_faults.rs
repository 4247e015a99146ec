//! A GitLab that delays, truncates, repeats or loses data, and a worker that was overtaken: none of that is stored as
//! truth.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tsuzuki::commits::run::Ended;
use tsuzuki::commits::run::decide::{Again, Sharing};
use tsuzuki::commits::run::{self, Target};
use tsuzuki::commits::stats::{self, By, Counting, Stats};
use tsuzuki::commits::store::reading::Scope;
use tsuzuki::commits::store::{branches, projects};
use tsuzuki::db::Db;
use tsuzuki::demo::gitlab::Fault;
use tsuzuki::engine::Failure;
use tsuzuki::id::{Owner, RunId};
use tsuzuki::phrase::Phrase;

use crate::commits::world::{TOKEN, World, rows};
use crate::commits_runs::tick;

/// GitLab's answer about the limits of single endpoints.
const TOO_MANY_HERE: &str =
    "{\"message\":{\"error\":\"This endpoint has been requested too many times. Try again later.\"}}";
const LEASE: Duration = Duration::from_secs(60);
const PROJECT: &str = "projects = [\"team/app\"]\nbranches = [\"main\"]";
/// One request after the other.
const ALONE: &str = "group = \"team\"\nconcurrency = 1";

async fn count(db: &Db, scope: Scope, by: By, zone: &str) -> Stats {
    let counting = Counting::new(scope, zone.parse().unwrap(), Arc::default());
    db.read(move |tx| stats::count(tx, &counting, by)).await.unwrap()
}

on_both_databases! {
    async fn pages_end_where_gitlab_says_and_not_where_they_are_short(fixture) {
        let (repo, world) = World::over_repo(&fixture, PROJECT).await;
        world.gitlab.set_most_per_page(30);
        // Either sign of a next page is enough.
        for (missing, commits) in [("x-next-page", 100), ("link", 70)] {
            repo.commit_many(commits);
            world.gitlab.set_fault(move |asked| asked.is_for_commits().then(|| Fault::Headers(vec![(missing, None)])));
            let outcome = world.start().await.unwrap();
            assert_eq!(outcome.run.new_commits_count, i64::from(commits), "without {missing}");
            assert_eq!(world.stored("main").await, repo.rev_list("main"));
        }
        // Nothing narrows the list: no dates, no first parents only.
        let known = ["ref_name", "per_page", "page", "with_stats"];
        for asked in world.gitlab.requests().iter().filter(|asked| asked.is_for_commits()) {
            assert!(asked.query.iter().all(|(name, _)| known.contains(&name.as_str())), "{asked:?}");
        }
    }

    async fn a_gitlab_that_goes_in_circles_is_not_followed(fixture) {
        let world = World::new(&fixture.db, ALONE).await;
        world.gitlab.add_synthetic(1, "team/app", 250);
        let seen = AtomicUsize::new(0);
        world.gitlab.set_fault(move |asked| {
            let circles = asked.is_for_commits() && seen.fetch_add(1, Ordering::SeqCst) < 10;
            circles.then(|| Fault::Headers(vec![("x-next-page", Some("1".into()))]))
        });
        let outcome = world.start().await.unwrap();
        assert_eq!(outcome.run.run.failed_count, 1);
        assert!(outcome.problems[0].to_string().contains("no sensible page after page 1"), "{:?}", outcome.problems);
        world.gitlab.reset_fault();
        assert_eq!(world.start().await.unwrap().run.new_commits_count, 250);
    }

    async fn gitlab_is_not_asked_again_before_the_moment_it_named_or_for_a_minute(fixture) {
        const WAIT_SECS: i64 = 30;
        for sign in ["retry-after", "reset of a refusal", "nothing left", "no moment", "a moment that is over"] {
            let world = World::new(&fixture.db, ALONE).await;
            world.gitlab.add_synthetic(1, "team/app", 150);
            let asked_at = Arc::new(Mutex::new(Vec::new()));
            let (clock, log) = (fixture.clock.clone(), Arc::clone(&asked_at));
            world.gitlab.set_fault(move |asked| {
                if !asked.is_for_commits() { return None; }
                let now = clock.now();
                log.lock().unwrap().push(now);
                if log.lock().unwrap().len() > 1 { return None; }
                let reset = (now.as_millis() / 1000 + WAIT_SECS + 1).to_string();
                Some(match sign {
                    "retry-after" => Fault::too_many(WAIT_SECS as u32),
                    "nothing left" => Fault::Headers(vec![("ratelimit-remaining", Some("0".into())), ("ratelimit-reset", Some(reset))]),
                    "no moment" => Fault::Status(429, vec![], TOO_MANY_HERE),
                    "a moment that is over" => Fault::Status(429, vec![("ratelimit-reset", (now.as_millis() / 1000).to_string())], TOO_MANY_HERE),
                    _ => Fault::Status(429, vec![("ratelimit-reset", reset)], "Retry later\n"),
                })
            });
            let ticking = tick(&fixture.clock);
            let outcome = world.start().await.unwrap();
            ticking.abort();
            assert_eq!(outcome.run.new_commits_count, 150, "{sign}: {:?}", outcome.problems);
            let left = world.branch("main").await.stats_missing;
            assert_eq!(left, 0, "{sign}: it is no sign that lines are too much");
            let asked_at = asked_at.lock().unwrap();
            let waited = asked_at[1].since(asked_at[0]);
            let least = if sign.contains("moment") { 60 } else { WAIT_SECS as u64 };
            assert!(waited >= Duration::from_secs(least), "{sign}: {waited:?}");
        }
    }

    async fn a_worker_that_lost_its_lease_while_it_waited_for_gitlab_writes_nothing(fixture) {
        for lost_at in ["main", "commits"] {
            let world = World::new(&fixture.db, ALONE).await;
            world.gitlab.add_synthetic(1, "team/app", 150);
            let (clock, seen) = (fixture.clock.clone(), AtomicUsize::new(0));
            world.gitlab.set_fault(move |asked| {
                if asked.segments.last().is_none_or(|last| last != lost_at) { return None; }
                match seen.fetch_add(1, Ordering::SeqCst) {
                    // The answer comes after the lease has expired …
                    0 => { clock.advance(LEASE); None }
                    // … and the next worker gets no answer.
                    _ => Some(Fault::Status(403, vec![], "{\"message\":\"403 Forbidden\"}")),
                }
            });
            let outcome = world.start().await.unwrap();
            assert_eq!((outcome.run.run.failed_count, outcome.run.new_commits_count), (1, 0), "{lost_at}");
            assert_eq!(rows(&fixture.db).await.len(), 0, "{lost_at}: no commit is stored");
            let branches = fixture.db.read(|tx| branches::list(tx, None)).await.unwrap();
            let walking = branches.iter().filter(|branch| branch.walking).count();
            assert_eq!(walking, usize::from(lost_at == "commits"), "{lost_at}: no walk is begun");
        }
    }

    async fn a_list_with_a_hole_is_never_taken_for_complete(fixture) {
        let (repo, world) = World::over_repo(&fixture, PROJECT).await;
        repo.commit_many(3);
        world.start().await.unwrap();
        let before = world.branch("main").await.complete_head;
        repo.commit_many(3);
        let hole = Fault::Edit(|page| {
            if let Some(commits) = page.as_array_mut().filter(|commits| commits.len() > 2) {
                commits.remove(1);
            }
        });
        let everywhere = hole.clone();
        world.gitlab.set_fault(move |asked| asked.is_for_commits().then(|| everywhere.clone()));
        let outcome = world.start().await.unwrap();
        assert_eq!(outcome.run.run.failed_count, 1);
        assert!(outcome.problems[0].to_string().contains("parent commit"), "{:?}", outcome.problems);
        let branch = world.branch("main").await;
        assert_eq!((branch.closed, branch.complete_head), (Some(false), before));
        // A hole in the range alone is mended by the whole history.
        world.gitlab.set_fault(move |asked| {
            let is_range = asked.parameter("ref_name").is_some_and(|name| name.contains(".."));
            (asked.is_for_commits() && is_range).then(|| hole.clone())
        });
        let outcome = world.start().await.unwrap();
        assert_eq!((outcome.run.run.success_count, outcome.problems.len()), (1, 0), "{:?}", outcome.problems);
        assert_eq!(world.stored("main").await, repo.rev_list("main"));
        assert_eq!(world.branch("main").await.closed, Some(true));
    }

    async fn a_list_of_something_else_is_not_stored_as_the_branch(fixture) {
        let (repo, world) = World::over_repo(&fixture, PROJECT).await;
        repo.commit_many(3);
        world.gitlab.set_fault(|asked| asked.is_for_commits().then_some(Fault::Edit(|page| {
            if let Some(commits) = page.as_array_mut() {
                commits.remove(0);
            }
        })));
        let outcome = world.start().await.unwrap();
        assert_eq!((outcome.run.run.failed_count, outcome.run.new_commits_count), (1, 0));
        assert!(outcome.problems[0].to_string().contains("does not list it"), "{:?}", outcome.problems);
        assert_eq!(world.branch("main").await.complete_head, None);
    }

    async fn a_page_that_is_gone_when_a_walk_goes_on_means_the_whole_history(fixture) {
        let (repo, world) = World::over_repo(&fixture, PROJECT).await;
        repo.commit_many(250);
        let seen = AtomicUsize::new(0);
        world.gitlab.set_fault(move |asked| {
            let second = asked.is_for_commits() && asked.parameter("page") == Some("2");
            (second && seen.fetch_add(1, Ordering::SeqCst) == 0)
                .then(|| Fault::Status(404, vec![], "{\"message\":\"404 Commits Not Found\"}"))
        });
        // The first walk was the whole history already: it is not begun over and over.
        let outcome = world.start().await.unwrap();
        assert_eq!(outcome.run.run.failed_count, 1, "{:?}", outcome.problems);
        let outcome = world.start().await.unwrap();
        assert_eq!(outcome.run.run.success_count, 1, "{:?}", outcome.problems);
        assert_eq!(world.stored("main").await, repo.rev_list("main"));

        // A walk whose next page no longer exists starts over.
        repo.commit_many(250);
        let stop = CancellationToken::new();
        let cut = stop.clone();
        world.gitlab.set_fault(move |asked| {
            let second = asked.is_for_commits() && asked.parameter("page") == Some("2");
            if second { cut.cancel(); }
            second.then_some(Fault::Hang)
        });
        assert!(matches!(world.bulk(&stop).start(None, Sharing::Alone).await, Err(Failure::Interrupted)));
        let seen = AtomicUsize::new(0);
        world.gitlab.set_fault(move |asked| {
            let second = asked.is_for_commits() && asked.parameter("page") == Some("2");
            (second && seen.fetch_add(1, Ordering::SeqCst) == 0)
                .then(|| Fault::Status(404, vec![], "{\"message\":\"404 Commits Not Found\"}"))
        });
        let outcome = world.start().await.unwrap();
        assert_eq!(outcome.run.run.success_count, 1, "{:?}", outcome.problems);
        assert_eq!(world.stored("main").await, repo.rev_list("main"));
    }

    async fn a_first_walk_that_was_cut_off_is_not_forgotten_when_since_changes(fixture) {
        let (repo, mut world) = World::over_repo(&fixture, PROJECT).await;
        repo.commit_many(250);
        let stop = CancellationToken::new();
        let cut = stop.clone();
        world.gitlab.set_fault(move |asked| {
            let second = asked.is_for_commits() && asked.parameter("page") == Some("2");
            if second { cut.cancel(); }
            second.then_some(Fault::Hang)
        });
        assert!(matches!(world.bulk(&stop).start(None, Sharing::Alone).await, Err(Failure::Interrupted)));
        assert_eq!(world.branch("main").await.complete_head, None);
        world.gitlab.reset_fault();
        world.set_keys(TOKEN, &format!("{PROJECT}\nsince = \"2001-01-01\""));
        world.start().await.unwrap();
        assert_eq!(world.stored("main").await, repo.rev_list("main"));
    }

    async fn a_project_that_goes_away_during_a_run_is_told_and_its_commits_are_kept(fixture) {
        let (repo, world) = World::over_repo(&fixture, PROJECT).await;
        repo.commit_many(2);
        world.start().await.unwrap();
        let removed = || fixture.db.read(|tx| Ok(projects::find(tx, 7)?.and_then(|project| project.removed_at)));
        // It is there when targets are listed by path, and gone when it is requested by id.
        world.gitlab.set_fault(|asked| {
            let gone = asked.segments.get(1).is_some_and(|id| id == "7");
            gone.then(|| Fault::Status(404, vec![], "{\"message\":\"404 Project Not Found\"}"))
        });
        let outcome = world.start().await.unwrap();
        assert_eq!(outcome.run.run.failed_count, 1);
        assert!(outcome.problems[0].to_string().contains("is gone"), "{:?}", outcome.problems);
        assert!(removed().await.unwrap().is_some());
        assert_eq!(rows(&fixture.db).await.len(), 2);
        world.gitlab.reset_fault();
        repo.commit_many(1);
        assert_eq!(world.start().await.unwrap().run.new_commits_count, 1);
        assert_eq!(removed().await.unwrap(), None, "it is back");
    }

    async fn statistics_follow_the_branch_and_take_the_name_that_was_used_last(fixture) {
        let (repo, world) = World::over_repo(&fixture, PROJECT).await;
        // In Tokyo the second is of February and the fourth of the eleventh.
        for date in ["2024-01-30T20:00:00Z", "2024-01-31T20:00:00Z", "2024-02-10T10:00:00Z", "2024-02-10T20:00:00Z"] {
            repo.commit(date);
        }
        world.start().await.unwrap();
        for (date, rename) in [
            ("2024-02-20T10:00:00Z", Fault::Edit(|page| page[0]["author_name"] = "Ann Married".into())),
            ("2019-05-05T10:00:00Z", Fault::Edit(|page| page[0]["author_name"] = "Ann Maiden".into())),
        ] {
            repo.commit(date);
            world.gitlab.set_fault(move |asked| asked.is_for_commits().then(|| rename.clone()));
            world.start().await.unwrap();
        }
        let people = count(&fixture.db, Scope::default(), By::Person, "UTC").await;
        assert_eq!((people.rows.len(), people.rows[0].author.as_deref(), people.total.commits), (1, Some("Ann Married"), 6));
        let periods = |stats: Stats| stats.rows.into_iter().map(|row| (row.period.unwrap(), row.sum.commits)).collect::<Vec<_>>();
        let months = periods(count(&fixture.db, Scope::default(), By::Month, "Asia/Tokyo").await);
        assert_eq!(months, [("2019-05".into(), 1), ("2024-01".into(), 1), ("2024-02".into(), 4)]);
        let days = periods(count(&fixture.db, Scope::default(), By::Day, "Asia/Tokyo").await);
        let days: Vec<_> = days.iter().map(|(day, commits)| (day.as_str(), *commits)).collect();
        let expected = ["2019-05-05", "2024-01-31", "2024-02-01", "2024-02-10", "2024-02-11", "2024-02-20"];
        assert_eq!(days, expected.map(|day| (day, 1)));

        repo.git(&["reset", "--quiet", "--hard", "HEAD~2"]);
        world.gitlab.reset_fault();
        world.start().await.unwrap();
        assert_eq!(rows(&fixture.db).await.len(), 6, "kept");
        let (project_id, branch_name) = (Some(7), Some("main".to_owned()));
        let from = Some("2000-01-01T00:00:00Z".parse().unwrap());
        for scope in [
            Scope::default(),
            Scope { from, ..Scope::default() },
            Scope { project_id, ..Scope::default() },
            Scope { branch_name: branch_name.clone(), ..Scope::default() },
            Scope { project_id, branch_name, ..Scope::default() },
        ] {
            let counted = count(&fixture.db, scope.clone(), By::Person, "UTC").await;
            assert_eq!(counted.total.commits, 4, "what the branch no longer contains does not count: {scope:?}");
        }
        // The same when commits may repeat, because another branch has them.
        repo.git(&["branch", "other"]);
        let world = { let mut world = world; world.set_keys(TOKEN, "projects = [\"team/app\"]\nbranches = [\"*\"]"); world };
        world.start().await.unwrap();
        assert_eq!(count(&fixture.db, Scope::default(), By::Month, "UTC").await.total.commits, 4);
    }

    async fn since_includes_its_own_moment(fixture) {
        let (repo, world) = World::over_repo(&fixture, &format!("{PROJECT}\nsince = \"2024-01-01\"")).await;
        repo.commit("2023-12-31T23:59:59Z");
        let first = repo.commit("2024-01-01T00:00:00Z");
        world.start().await.unwrap();
        assert_eq!(world.stored("main").await, BTreeSet::from([first]));
    }

    async fn an_old_date_on_one_page_does_not_end_the_walk(fixture) {
        let (repo, world) = World::over_repo(&fixture, &format!("{PROJECT}\nsince = \"2010-01-01\"")).await;
        repo.commit_many(150);
        repo.commit("2001-01-01T00:00:00Z");
        assert_eq!(world.start().await.unwrap().run.new_commits_count, 150);
        assert_eq!(world.branch("main").await.closed, Some(true));
    }

    async fn what_was_left_out_for_its_age_is_known_and_not_read_again(fixture) {
        let (repo, world) = World::over_repo(&fixture, &format!("{PROJECT}\nsince = \"2024-01-01\"")).await;
        let old = repo.commit("2020-01-01T00:00:00Z");
        repo.commit("2024-03-01T00:00:00Z");
        world.start().await.unwrap();
        repo.git(&["checkout", "--quiet", "-b", "side", &old]);
        repo.commit("2024-04-01T00:00:00Z");
        repo.git(&["checkout", "--quiet", "main"]);
        repo.git(&["merge", "--quiet", "--no-ff", "side", "-m", "Merge what began before"]);
        let asked = world.gitlab.requests().len();
        assert_eq!(world.start().await.unwrap().run.new_commits_count, 2);
        let asked = world.gitlab.requests().split_off(asked);
        let revisions: Vec<_> = asked.iter().filter_map(|asked| asked.parameter("ref_name")).collect();
        assert!(!revisions.is_empty() && revisions.iter().all(|name| name.contains("..")), "{revisions:?}");
    }

    async fn what_became_readable_is_no_longer_counted_as_unreadable(fixture) {
        let (repo, mut world) = World::over_repo(&fixture, &format!("{PROJECT}\nsince = \"2001-01-01\"")).await;
        repo.commit_many(3);
        world.gitlab.set_fault(|asked| {
            asked.is_for_commits().then_some(Fault::Edit(|page| page[1]["committed_date"] = "soon".into()))
        });
        world.start().await.unwrap();
        assert_eq!(world.branch("main").await.unreadable, 1);
        // The whole history is read again without `since`, by then with its dates.
        world.gitlab.reset_fault();
        world.set_keys(TOKEN, PROJECT);
        world.start().await.unwrap();
        assert_eq!(world.stored("main").await, repo.rev_list("main"));
        assert_eq!(world.branch("main").await.unreadable, 0);
    }

    async fn every_commit_without_a_readable_date_is_counted_however_many(fixture) {
        let world = World::new(&fixture.db, PROJECT).await;
        world.gitlab.add_synthetic(7, "team/app", 250);
        world.gitlab.set_fault(|asked| {
            asked.is_for_commits().then_some(Fault::Edit(|page| {
                for commit in page.as_array_mut().unwrap().iter_mut().skip(1) {
                    commit["committed_date"] = "soon".into();
                }
            }))
        });
        let outcome = world.start().await.unwrap();
        assert_eq!((outcome.run.run.failed_count, outcome.run.new_commits_count), (1, 3));
        assert!(outcome.problems[0].to_string().contains("readable date: 247 commits, e.g. "), "{:?}", outcome.problems);
        assert_eq!(world.branch("main").await.unreadable, 247);
        // The history of events is pruned, but the branch still has its state.
        let later = fixture.clock.now().plus(Duration::from_secs(1));
        fixture.db.write(move |tx| tsuzuki::ledger::event::prune(tx, later, 1_000)).await.unwrap();
        assert_eq!(world.branch("main").await.unreadable, 247);
        assert_eq!(world.start().await.unwrap().problems, Vec::<String>::new(), "told once");
    }

    async fn a_branch_that_fails_as_before_is_known_to_whatever_the_figures_say(fixture) {
        let world = World::new(&fixture.db, PROJECT).await;
        world.gitlab.add_synthetic(7, "team/app", 5);
        world.start().await.unwrap();
        for (why, is_new) in [
            ("HTTP 503 from git.example; no retry for 46 s, after 5 tries", true),
            ("HTTP 503 from git.example; no retry for 2 min, after 3 tries", false),
            ("no connection to git.example: refused, after 3 tries", true),
            ("no connection to git.example: refused, after 4 tries", false),
        ] {
            let now = fixture.clock.now();
            let noted = fixture.db.write(move |tx| branches::mark_failing(tx, 7, "main", &Phrase::verbatim(why), now)).await.unwrap();
            assert_eq!(noted, is_new, "{why}");
            let shown = world.branch("main").await.failing_why.unwrap().to_string();
            assert_eq!(shown, why, "the newest figures are shown");
        }
    }

    async fn a_branch_that_was_taken_out_by_hand_stays_out_though_the_config_names_it(fixture) {
        let world = World::new(&fixture.db, "projects = [\"team/app\"]\nbranches = [\"main\"]").await;
        world.gitlab.add_synthetic(7, "team/app", 5);
        world.start().await.unwrap();
        let now = fixture.clock.now();
        assert!(fixture.db.write(move |tx| branches::mark_ignored(tx, 7, "main", now)).await.unwrap());
        let ended = world.bulk(&CancellationToken::new()).start(None, Sharing::Alone).await.unwrap();
        assert!(matches!(ended, Ended::Nothing(_)), "{ended:?}");
    }

    async fn resume_takes_what_was_never_settled_and_retry_what_failed(fixture) {
        let world = World::new(&fixture.db, "group = \"team\"").await;
        let mut targets = Vec::new();
        for id in 1..=4 {
            world.gitlab.add_synthetic(id, &format!("team/p{id}"), 5);
        }
        // One run to make the projects known, so that the targets are real ones.
        world.start().await.unwrap();
        let host = fixture.db.read(|tx| Ok(projects::find(tx, 1)?.map(|project| project.host))).await.unwrap().unwrap();
        targets.extend((1..=4).map(|project_id| Target { project_id, branch_name: "main".into(), host: host.clone(), job_name: Some("code".into()) }));
        let id = RunId::random();
        fixture.db.write(move |tx| run::register(tx, id, None, &targets)).await.unwrap().unwrap();
        let (mut good, mut bad) = (0, 0);
        for outcome in [Ok(()), Err("as it must")] {
            let (me, host) = (Owner::this_process(), host.clone());
            let claimed = fixture.db.claim(move |tx| run::claim(tx, &id, &host, "code", &me)).await.unwrap().unwrap();
            match outcome {
                Ok(()) => good = claimed.project_id,
                Err(_) => bad = claimed.project_id,
            }
            fixture.db.claim(move |tx| run::complete_target(tx, &claimed, outcome.map_err(Phrase::from).as_ref().copied())).await.unwrap();
        }
        assert!(fixture.db.write(move |tx| run::cancel(tx, &id)).await.unwrap());
        let stop = CancellationToken::new();
        for (again, expected) in [
            (Again::Pending, (1..=4).filter(|id| *id != good && *id != bad).collect::<Vec<i64>>()),
            (Again::Failed, vec![bad]),
        ] {
            fixture.clock.advance(LEASE);
            let Some(Ended::Worked(outcome)) = world.bulk(&stop).again(Some(id), again, Sharing::Alone).await.unwrap() else { panic!() };
            let run_id = outcome.run.run.run_id;
            assert_ne!(run_id, id);
            let results = fixture.db.read(move |tx| run::list_results(tx, &run_id)).await.unwrap();
            let taken: BTreeSet<i64> = results.iter().map(|target| target.project_id).collect();
            assert_eq!(taken, expected.into_iter().collect(), "{again:?}");
        }
    }
}
