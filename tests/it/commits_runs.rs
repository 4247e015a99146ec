//! Runs: shared, interrupted, killed, cancelled and taken up again, with the books balanced at every moment.

use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tsuzuki::commits::run::Ended;
use tsuzuki::commits::run::decide::{Again, Sharing};
use tsuzuki::commits::run::{self, RunRow, RunStatus, Target};
use tsuzuki::db::{Db, DbUrl, Open};
use tsuzuki::demo::gitlab::{Asked, Fault, GitLab};
use tsuzuki::engine::Failure;
use tsuzuki::id::{Owner, RunId};
use tsuzuki::phrase::Phrase;
use tsuzuki::time::Clock;

use crate::commits::world::{Repo, TOKEN, World, config_text, rows};
use crate::test_env::{TestEnv, ends_with, err, out, output_beside, send_signal};
use rustix::process::Signal;

const LEASE: Duration = Duration::from_secs(60);
const GROUP: &str = "group = \"team\"";

/// A team of synthetic projects.
fn add_team(gitlab: &GitLab, projects: i64, commits: usize) {
    for id in 1..=projects {
        gitlab.add_synthetic(id, &format!("team/p{id}"), commits);
    }
}

/// The counters of every run agree with its rows, and the rules of the seed hold.
async fn check_books(db: &Db) -> Vec<RunRow> {
    let books = db
        .read(|tx| {
            let mut books = Vec::new();
            for run in run::list_runs(tx, 100)? {
                let results = run::list_results(tx, &run.run_id)?;
                books.push((run, results));
            }
            Ok(books)
        })
        .await
        .unwrap();
    let count =
        |results: &[run::TargetRow], status| results.iter().filter(|row| row.status == status).count() as i64;
    for (row, results) in &books {
        assert_eq!(row.completed_count, count(results, run::TargetStatus::Success), "{row:?}");
        assert_eq!(row.success_count, row.completed_count);
        assert_eq!(row.failed_count, count(results, run::TargetStatus::Failed), "{row:?}");
        assert_eq!(row.total_targets, results.len() as i64);
        assert!(row.completed_count + row.failed_count <= row.total_targets);
        assert_eq!(row.completed_at_utc.is_some(), row.status != RunStatus::Running);
        if row.status == RunStatus::Completed {
            assert_eq!(row.pending_count(), 0);
        }
        for target in results {
            assert_eq!(target.new_commits_count.is_some(), target.status == run::TargetStatus::Success);
            assert_eq!(target.error_message.is_some(), target.status == run::TargetStatus::Failed);
        }
    }
    assert!(books.iter().filter(|(row, _)| row.status == RunStatus::Running).count() <= 1);
    books.into_iter().map(|(row, _)| row).collect()
}

on_both_databases! {
    async fn a_run_and_its_targets_are_registered_at_once_and_only_one_runs(fixture) {
        let targets: Vec<Target> = (0..120).map(|n| Target { project_id: n, branch_name: "main".into(), host: "h".into(), job_name: Some("code".into()) }).collect();
        let (first, again) = (targets.clone(), targets.clone());
        let (one, two) = (RunId::random(), RunId::random());
        let run = fixture.db.write(move |tx| run::register(tx, one, Some("code"), &first)).await.unwrap().unwrap();
        assert_eq!((run.total_targets, run.status, run.completed_at_utc), (120, RunStatus::Running, None));
        let refused = fixture.db.write(move |tx| run::register(tx, two, None, &again)).await.unwrap().unwrap_err();
        assert_eq!(refused.run_id, one);
        check_books(&fixture.db).await;

        // Many workers, each target once.
        let workers = (0..8).map(|_| {
            let db = fixture.db.clone();
            tokio::spawn(async move {
                let owner = Owner::this_process();
                let mut mine = Vec::new();
                loop {
                    let me = owner.clone();
                    let Some(claimed) = db.claim(move |tx| run::claim(tx, &one, "h", "code", &me)).await.unwrap() else { return mine };
                    mine.push(claimed.project_id);
                    let outcome = if claimed.project_id % 10 == 0 { Err("as it must") } else { Ok(()) };
                    db.claim(move |tx| run::complete_target(tx, &claimed, outcome.map_err(Phrase::from).as_ref().copied())).await.unwrap();
                }
            })
        });
        let mut taken = Vec::new();
        for worker in workers.collect::<Vec<_>>() {
            taken.extend(worker.await.unwrap());
        }
        taken.sort_unstable();
        assert_eq!(taken, (0..120).collect::<Vec<i64>>());
        let runs = check_books(&fixture.db).await;
        assert_eq!((runs[0].status, runs[0].success_count, runs[0].failed_count), (RunStatus::Completed, 108, 12));
    }

    async fn many_who_register_at_once_agree_on_one_run(fixture) {
        let tries = (0..6).map(|_| {
            let db = fixture.db.clone();
            tokio::spawn(async move {
                let (id, targets) = (RunId::random(), vec![Target { project_id: 1, branch_name: "main".into(), host: "h".into(), job_name: Some("code".into()) }]);
                db.write(move |tx| run::register(tx, id, None, &targets)).await.unwrap()
            })
        });
        let mut ids = std::collections::BTreeSet::new();
        let mut registered = 0;
        for attempt in tries.collect::<Vec<_>>() {
            let outcome = attempt.await.unwrap();
            registered += usize::from(outcome.is_ok());
            ids.insert(outcome.unwrap_or_else(|running| running).run_id.to_string());
        }
        assert_eq!((registered, ids.len()), (1, 1));
    }

    async fn a_worker_that_stalled_or_was_cancelled_writes_nothing_more(fixture) {
        let targets = vec![Target { project_id: 1, branch_name: "main".into(), host: "h".into(), job_name: Some("code".into()) }];
        let id = RunId::random();
        fixture.db.write(move |tx| run::register(tx, id, None, &targets)).await.unwrap().unwrap();
        let claim = |db: Db| async move {
            let me = Owner::this_process();
            db.claim(move |tx| run::claim(tx, &id, "h", "code", &me)).await.unwrap()
        };
        let stalled = claim(fixture.db.clone()).await.unwrap();
        assert_eq!(claim(fixture.db.clone()).await, None, "one at a time");
        fixture.clock.advance(LEASE);
        let (late, settled) = (stalled.clone(), stalled.clone());
        assert!(!fixture.db.write(move |tx| run::renew(tx, &late, 5)).await.unwrap());
        assert_eq!(fixture.db.write(move |tx| run::complete_target(tx, &settled, Ok(()))).await.unwrap(), None);
        let fallback_job = claim(fixture.db.clone()).await.unwrap();
        let late = stalled.clone();
        fixture.db.write(move |tx| run::release(tx, &late)).await.unwrap();
        let held = fallback_job.clone();
        assert!(fixture.db.write(move |tx| run::renew(tx, &held, 1)).await.unwrap(), "the loser frees nothing");
        assert!(fixture.db.write(move |tx| run::cancel(tx, &id)).await.unwrap());
        assert_eq!(fixture.db.write(move |tx| run::complete_target(tx, &fallback_job, Ok(()))).await.unwrap(), None);
        assert!(!fixture.db.write(move |tx| run::cancel(tx, &id)).await.unwrap(), "terminal");
        assert_eq!(claim(fixture.db.clone()).await, None);
        check_books(&fixture.db).await;
    }

    async fn a_target_taken_under_a_clock_that_was_ahead_is_free_once_the_clock_is_right(fixture) {
        let target = |id| Target { project_id: id, branch_name: "main".into(), host: "h".into(), job_name: Some("code".into()) };
        let (id, targets) = (RunId::random(), vec![target(1), target(2), target(3)]);
        fixture.db.write(move |tx| run::register(tx, id, None, &targets)).await.unwrap().unwrap();
        let claim = |db: Db, job: &'static str| async move {
            let me = Owner::this_process();
            db.claim(move |tx| run::claim(tx, &id, "h", job, &me)).await.unwrap()
        };
        let leased = || async { fixture.db.read(move |tx| run::list_leased(tx, &id)).await.unwrap().len() };
        let right = fixture.clock.now();
        fixture.clock.set(right.plus(Duration::from_secs(3650 * 86_400)));
        let mut taken = Vec::new();
        for _ in 0..3 {
            taken.push(claim(fixture.db.clone(), "code").await.unwrap());
        }
        assert_eq!((leased().await, claim(fixture.db.clone(), "code").await), (3, None));
        // A clock that differs a little is none that was ahead.
        fixture.clock.set(right.plus(Duration::from_secs(3650 * 86_400 - 300)));
        assert_eq!((leased().await, claim(fixture.db.clone(), "code").await), (3, None));
        fixture.clock.set(right);
        assert_eq!(leased().await, 0, "nobody is in the way");
        // A live worker renews its lease and keeps it.
        let at_work = taken.remove(0);
        assert!(fixture.db.write(move |tx| run::renew(tx, &at_work, 0)).await.unwrap());
        assert_eq!(leased().await, 1);
        let fallback_job = claim(fixture.db.clone(), "code").await.unwrap();
        let late = taken.into_iter().find(|one| one.project_id == fallback_job.project_id).unwrap();
        assert!(!fixture.db.write(move |tx| run::renew(tx, &late, 0)).await.unwrap());
        assert_eq!(fixture.db.write(move |tx| run::reassign(tx, &id, "h", Some("code"), "other")).await.unwrap(), 1);
        assert_eq!(fixture.db.write(move |tx| run::give_up(tx, &id, "h", Some("other"), &"nobody has it".into())).await.unwrap(), (1, false));
        assert_eq!((leased().await, claim(fixture.db.clone(), "code").await), (2, None));
    }

    async fn a_word_that_means_nothing_is_an_error_and_no_other_meaning(fixture) {
        let (id, targets) = (RunId::random(), vec![Target { project_id: 1, branch_name: "main".into(), host: "h".into(), job_name: None }]);
        fixture.db.write(move |tx| run::register(tx, id, None, &targets)).await.unwrap().unwrap();
        for status in run::TargetStatus::ALL {
            assert_eq!(status.word().parse(), Ok(*status));
        }
        for status in RunStatus::ALL {
            assert_eq!(status.word().parse(), Ok(*status));
        }
        let now = fixture.clock.now();
        fixture.db.write(move |tx| tsuzuki::engine::store::mark_begun(tx, "code", now)).await.unwrap();
        fixture.db.write(|tx| tx.execute(tsuzuki::sql!("UPDATE job_state SET last_outcome = 'splendid'"), tsuzuki::params![])).await.unwrap();
        let state = fixture.db.read(|tx| tsuzuki::engine::store::find_state(tx, "code")).await;
        assert!(state.unwrap_err().to_string().contains("splendid"));
    }

    async fn two_starts_share_nothing_unless_they_join(fixture) {
        let world = Arc::new(World::new(&fixture.db, GROUP).await);
        add_team(&world.gitlab, 6, 150);
        let release = CancellationToken::new();
        let held = Arc::new(AtomicUsize::new(0));
        let (gate, count) = (release.clone(), Arc::clone(&held));
        world.gitlab.set_fault(move |asked| {
            let holds = asked.is_for_commits() && !gate.is_cancelled();
            if holds { count.fetch_add(1, Ordering::SeqCst); }
            holds.then(|| Fault::too_many(1))
        });
        let first = { let world = Arc::clone(&world); tokio::spawn(async move { world.start().await }) };
        while held.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        let stop = CancellationToken::new();
        let Ended::Busy(run, holder) = world.bulk(&stop).start(None, Sharing::Alone).await.unwrap() else { panic!() };
        assert_eq!(run.status, RunStatus::Running);
        assert!(holder.owner.contains(&format!("/{}/", std::process::id())));
        assert_eq!(holder.taken_at, fixture.clock.now());
        let joined = { let bulk = world.bulk(&stop); tokio::spawn(async move { bulk.start(None, Sharing::Join).await }) };
        release.cancel();
        let ticking = tick(&fixture.clock);
        let outcome = first.await.unwrap().unwrap();
        assert!(matches!(joined.await.unwrap(), Ok(Ended::Worked(_))));
        ticking.abort();
        let runs = check_books(&fixture.db).await;
        assert_eq!((runs.len(), runs[0].success_count), (1, 6), "{outcome:?}");
        assert_eq!(rows(&fixture.db).await.len(), 900);
    }

    async fn an_interruption_keeps_everything_and_the_same_run_goes_on(fixture) {
        let world = World::new(&fixture.db, GROUP).await;
        add_team(&world.gitlab, 5, 350);
        let stop = CancellationToken::new();
        let cut = stop.clone();
        world.gitlab.set_fault(move |asked| {
            let third = asked.is_for_commits() && asked.parameter("page") == Some("3");
            if third { cut.cancel(); }
            third.then_some(Fault::Hang)
        });
        let began = tokio::time::Instant::now();
        assert!(matches!(world.bulk(&stop).start(None, Sharing::Alone).await, Err(Failure::Interrupted)));
        assert!(began.elapsed() < Duration::from_secs(10));
        let interrupted = check_books(&fixture.db).await.remove(0);
        assert_eq!(interrupted.status, RunStatus::Running);
        let before = rows(&fixture.db).await.len();
        assert!(before >= 100, "pages before the interruption are kept: {before}");
        let id = interrupted.run_id;
        assert_eq!(fixture.db.read(move |tx| run::list_leased(tx, &id)).await.unwrap(), [], "leases are given back");
        world.gitlab.reset_fault();
        let asked = world.gitlab.requests().len();
        let outcome = world.start().await.unwrap();
        assert_eq!((outcome.run.run.run_id, outcome.run.run.status), (id, RunStatus::Completed));
        assert_eq!(outcome.run.new_commits_count, 5 * 350, "counted over both parts");
        assert_eq!(rows(&fixture.db).await.len(), 5 * 350);
        let first_pages = world.gitlab.requests()[asked..].iter()
            .filter(|asked| asked.is_for_commits() && asked.parameter("page") == Some("1")).count();
        assert!(first_pages < 5, "a branch that was cut off goes on in the middle");
        check_books(&fixture.db).await;
    }

    async fn cancel_ends_a_run_in_the_middle_and_resume_opens_a_new_one(fixture) {
        let world = Arc::new(World::new(&fixture.db, &format!("{GROUP}\nconcurrency = 2")).await);
        add_team(&world.gitlab, 4, 250);
        world.gitlab.add_synthetic(5, "team/bad", 10);
        let seen = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&seen);
        world.gitlab.set_fault(move |asked| {
            if asked.segments.get(1).is_some_and(|id| id == "5") && asked.is_for_commits() {
                return Some(Fault::Status(403, vec![], "{\"message\":\"403 Forbidden\"}"));
            }
            let late = asked.is_for_commits() && asked.parameter("page") == Some("2") && asked.segments[1] == "3";
            if late { count.fetch_add(1, Ordering::SeqCst); }
            late.then_some(Fault::Hang)
        });
        let stop = CancellationToken::new();
        let working = { let bulk = world.bulk(&stop); tokio::spawn(async move { bulk.start(None, Sharing::Alone).await }) };
        while seen.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        let id = fixture.db.read(run::find_running).await.unwrap().unwrap().run_id;
        assert!(fixture.db.write(move |tx| run::cancel(tx, &id)).await.unwrap());
        stop.cancel();
        let _ = working.await.unwrap();
        let cancelled = check_books(&fixture.db).await.remove(0);
        assert_eq!(cancelled.status, RunStatus::Cancelled);
        assert!(cancelled.pending_count() >= 1);
        world.gitlab.reset_fault();
        fixture.clock.advance(LEASE);

        let stop = CancellationToken::new();
        let pending = cancelled.pending_count();
        let Some(Ended::Worked(resumed)) = world.bulk(&stop).again(None, Again::Pending, Sharing::Alone).await.unwrap() else { panic!() };
        assert_ne!(resumed.run.run.run_id, id, "cancelled is terminal");
        assert_eq!(resumed.run.run.total_targets, pending, "pending only");
        if cancelled.failed_count > 0 {
            let Some(Ended::Worked(retried)) = world.bulk(&stop).again(Some(id), Again::Failed, Sharing::Alone).await.unwrap() else { panic!() };
            assert_eq!(retried.run.run.total_targets, cancelled.failed_count, "no success is run again");
        }
        assert!(world.bulk(&stop).again(Some(resumed.run.run.run_id), Again::Pending, Sharing::Alone).await.unwrap().is_none());
        assert_eq!(rows(&fixture.db).await.len(), 4 * 250 + 10);
        check_books(&fixture.db).await;
    }

    async fn retry_failed_runs_the_failures_again_and_nothing_else(fixture) {
        let world = World::new(&fixture.db, GROUP).await;
        add_team(&world.gitlab, 4, 20);
        world.gitlab.set_fault(|asked| {
            let bad = asked.is_for_commits() && ["2", "3"].contains(&asked.segments[1].as_str());
            bad.then(|| Fault::Status(403, vec![], "{\"message\":\"403 Forbidden\"}"))
        });
        let outcome = world.start().await.unwrap();
        assert_eq!((outcome.run.run.success_count, outcome.run.run.failed_count), (2, 2));
        assert_eq!(outcome.problems.len(), 2);
        world.gitlab.reset_fault();
        fixture.clock.advance(LEASE);
        let asked = world.gitlab.requests().len();
        let stop = CancellationToken::new();
        let Some(Ended::Worked(retried)) = world.bulk(&stop).again(None, Again::Failed, Sharing::Alone).await.unwrap() else { panic!() };
        assert_eq!((retried.run.run.total_targets, retried.run.run.success_count, retried.run.new_commits_count), (2, 2, 40));
        let projects: std::collections::BTreeSet<String> =
            world.gitlab.requests()[asked..].iter().map(|asked| asked.segments[1].clone()).collect();
        assert_eq!(projects, ["2".to_owned(), "3".to_owned()].into());
        assert!(world.bulk(&stop).again(None, Again::Failed, Sharing::Alone).await.unwrap().is_none());
        check_books(&fixture.db).await;
    }

    async fn half_of_all_answers_may_be_429(fixture) {
        let world = World::new(&fixture.db, GROUP).await;
        add_team(&world.gitlab, 4, 450);
        world.gitlab.set_fault(|asked| (asked.number % 2 == 0).then(|| Fault::too_many(1)));
        let ticking = tick(&fixture.clock);
        let outcome = world.start().await.unwrap();
        ticking.abort();
        assert_eq!((outcome.run.run.success_count, outcome.run.new_commits_count), (4, 4 * 450), "{:?}", outcome.problems);
        let refused = world.gitlab.statuses().iter().filter(|status| **status == 429).count();
        assert!(refused >= 10, "{refused}");
        check_books(&fixture.db).await;
    }

    async fn a_token_that_expires_midway_stops_the_run_and_a_new_one_continues_it(fixture) {
        let mut world = World::new(&fixture.db, GROUP).await;
        add_team(&world.gitlab, 6, 250);
        world.gitlab.set_fault(|asked| (asked.number >= 14).then(Fault::expired));
        let failure = world.start().await.unwrap_err();
        let Failure::Credentials(why) = &failure else { panic!("{failure}") };
        assert!(why.to_string().contains("expired") && why.to_string().contains("read_api") && !why.to_string().contains(TOKEN), "{why}");
        let stopped = check_books(&fixture.db).await.remove(0);
        assert_eq!((stopped.status, stopped.failed_count), (RunStatus::Running, 0), "no target is to blame");
        let before = rows(&fixture.db).await.len();
        assert!(before > 0);
        world.gitlab.reset_fault();
        world.gitlab.set_token("glpat-renewed");
        world.set_keys("glpat-renewed", GROUP);
        let outcome = world.start().await.unwrap();
        assert_eq!((outcome.run.run.run_id, outcome.run.run.success_count), (stopped.run_id, 6));
        assert_eq!(rows(&fixture.db).await.len(), 6 * 250);
        check_books(&fixture.db).await;
    }

    async fn a_long_wait_is_left_to_the_next_run(fixture) {
        let world = World::new(&fixture.db, GROUP).await;
        add_team(&world.gitlab, 2, 50);
        world.gitlab.set_fault(|asked| asked.is_for_commits().then(|| Fault::too_many(3600)));
        let outcome = world.start().await.unwrap();
        assert_eq!(outcome.run.run.status, RunStatus::Running);
        let until = outcome.waiting_until.unwrap();
        assert!(until.since(fixture.clock.now()) > Duration::from_secs(3500));
        world.gitlab.reset_fault();
        fixture.clock.advance(Duration::from_secs(3700));
        let done = world.start().await.unwrap();
        assert_eq!((done.run.run.run_id, done.run.run.success_count), (outcome.run.run.run_id, 2));
    }

    async fn a_wait_that_gitlab_asks_for_is_kept_by_the_next_process(fixture) {
        for is_for_projects in [true, false] {
            let world = World::new(&fixture.db, GROUP).await;
            add_team(&world.gitlab, 2, 50);
            world.gitlab.set_fault(move |asked| (is_for_projects || asked.is_for_commits()).then(|| Fault::too_many(3600)));
            let first = world.start().await;
            assert!(is_for_projects == first.is_err(), "{first:?}");
            world.gitlab.reset_fault();
            let asked = world.gitlab.requests().len();
            fixture.clock.advance(Duration::from_secs(1800));
            // Another client, as in another process.
            match world.start().await {
                Ok(outcome) => assert!(outcome.waiting_until.is_some_and(|until| until > fixture.clock.now())),
                Err(failure) => assert!(failure.to_string().contains("asked us to wait until"), "{failure}"),
            }
            assert_eq!(world.gitlab.requests().len(), asked, "it is not asked again so early");
            fixture.clock.advance(Duration::from_secs(1900));
            assert_eq!(world.start().await.unwrap().run.run.success_count, 2);
        }
    }

    async fn a_host_that_asks_for_a_long_wait_is_no_failure(fixture) {
        let gitlab = GitLab::start().await.unwrap();
        gitlab.set_token(TOKEN);
        gitlab.add_synthetic(1, "team/app", 50);
        let test_env = TestEnv::on(&fixture, &config_text(&gitlab.url(), TOKEN, GROUP));
        for (is_for_projects, command) in [(false, "run-due"), (false, "bulk start"), (true, "run-due"), (true, "bulk start")] {
            gitlab.set_fault(move |asked| (is_for_projects || asked.is_for_commits()).then(|| Fault::too_many(3600)));
            let words = test_env.ends(command, 0);
            assert!(words.contains("wait until"), "{is_for_projects} {command}: {words}");
            assert!(!words.contains("failed:") && !words.contains("error:"), "{is_for_projects} {command}: {words}");
            let words = test_env.ends("status", 0);
            assert!(!words.contains("Failing"), "{is_for_projects} {command}: {words}");
            fixture.clock.advance(Duration::from_secs(2 * 60 * 60));
        }
        gitlab.reset_fault();
        assert!(test_env.ends("run-due", 0).contains("50 new commits"));
    }

    async fn line_counts_that_gitlab_cannot_give_are_done_without(fixture) {
        let world = World::new(&fixture.db, GROUP).await;
        add_team(&world.gitlab, 1, 150);
        world.gitlab.set_fault(|asked| {
            let heavy = asked.parameter("with_stats").is_some() && asked.parameter("page") == Some("2");
            (heavy || asked.is_for_one_commit()).then(|| Fault::Status(500, vec![], "{\"message\":\"500 Internal Server Error\"}"))
        });
        let ticking = tick(&fixture.clock);
        let outcome = world.start().await.unwrap();
        assert_eq!((outcome.run.run.success_count, outcome.run.new_commits_count), (1, 150), "{:?}", outcome.problems);
        assert_eq!(world.branch("main").await.stats_missing, 50);
        let asked = world.gitlab.requests();
        let singles = asked.iter().filter(|asked| asked.is_for_one_commit()).count();
        assert!((1..=12).contains(&singles), "the first failure ends it: {singles}");
        world.gitlab.reset_fault();
        fixture.clock.advance(Duration::from_secs(600));
        world.start().await.unwrap();
        // Until here: a request that a busy machine cuts off is repeated after a wait.
        ticking.abort();
        assert_eq!(world.branch("main").await.stats_missing, 0, "the next run asks for them one by one");
        let zero = rows(&fixture.db).await.into_iter().filter(|row| row.additions == 0).count();
        assert!(zero <= 2, "with the lines that GitLab counts: {zero}");
    }

    async fn a_run_by_hand_is_in_the_story_of_its_job(fixture) {
        let gitlab = GitLab::start().await.unwrap();
        gitlab.add_synthetic(1, "team/app", 5);
        let keys = format!("{GROUP}\ncron = \"0 0 1 1 *\"");
        let test_env = TestEnv::on(&fixture, &config_text(&gitlab.url(), TOKEN, &keys));
        test_env.ends("bulk start --branch main", 0);
        assert!(test_env.ends("status", 0).contains("Not run yet"), "some of its branches are not the job");
        test_env.ends("bulk start", 0);
        let words = test_env.ends("status", 0);
        assert!(words.contains("OK") && words.contains("1 of 1 branches up to date"), "{words}");
        let words = test_env.ends("why code", 0);
        assert!(words.contains("success: run ") && words.contains("not due before"), "{words}");
        gitlab.set_token("another");
        test_env.ends("bulk start", 4);
        assert!(test_env.ends("status", 0).contains("Failing"), "nor is a token that was refused");
    }

    async fn a_commit_whose_lines_gitlab_cannot_count_keeps_no_other_waiting(fixture) {
        let world = World::new(&fixture.db, &format!("{GROUP}\nconcurrency = 1")).await;
        add_team(&world.gitlab, 1, 30);
        let too_large = Mutex::new(None);
        world.gitlab.set_fault(move |asked| {
            let is_too_large = asked.is_for_one_commit() && {
                let sha = asked.segments.last().cloned();
                *too_large.lock().unwrap().get_or_insert_with(|| sha.clone()) == sha
            };
            (is_too_large || asked.parameter("with_stats").is_some())
                .then(|| Fault::Status(500, vec![], "{\"message\":\"500 Internal Server Error\"}"))
        });
        let ticking = tick(&fixture.clock);
        let mut left = Vec::new();
        for _ in 0..3 {
            world.start().await.unwrap();
            left.push(world.branch("main").await.stats_missing);
            fixture.clock.advance(Duration::from_secs(600));
        }
        assert_eq!(left, [30, 1, 1]);
        world.gitlab.reset_fault();
        world.start().await.unwrap();
        ticking.abort();
        assert_eq!(world.branch("main").await.stats_missing, 0, "it is asked for again after the others");
    }

    async fn a_page_of_lines_that_takes_long_is_the_last_and_a_wait_that_gitlab_asks_for_is_not(fixture) {
        let is_third = |asked: &Asked| asked.parameter("with_stats").is_some() && asked.parameter("page") == Some("3");
        for (group, fault, expected) in [("slow", None, 3), ("busy", Some(Fault::too_many(30)), 6)] {
            let world = World::new(&fixture.db, &format!("group = \"{group}\"")).await;
            world.gitlab.add_synthetic(1, &format!("{group}/app"), 450);
            let (clock, is_met) = (fixture.clock.clone(), AtomicBool::new(false));
            world.gitlab.set_fault(move |asked| {
                if !is_third(asked) || is_met.swap(true, Ordering::Relaxed) {
                    return None;
                }
                clock.advance(Duration::from_secs(if fault.is_none() { 21 } else { 0 }));
                fault.clone()
            });
            let with_lines = || world.gitlab.requests().into_iter().filter(|asked| asked.parameter("with_stats").is_some());
            let waiting = async {
                while !world.gitlab.statuses().contains(&429) || with_lines().filter(is_third).count() < 2 {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    if world.gitlab.statuses().contains(&429) {
                        fixture.clock.advance(Duration::from_secs(3));
                    }
                }
                std::future::pending::<()>().await;
            };
            let outcome = tokio::select! {
                outcome = world.start() => outcome.unwrap(),
                () = waiting => unreachable!(),
            };
            assert_eq!(outcome.run.new_commits_count, 450, "{:?}", outcome.problems);
            assert_eq!(with_lines().count(), expected, "{group}");
        }
    }

    async fn a_gitlab_slow_at_counting_lines_costs_one_page_and_the_rest_comes_after(fixture) {
        let world = World::new(&fixture.db, GROUP).await;
        add_team(&world.gitlab, 1, 1_050);
        let clock = fixture.clock.clone();
        world.gitlab.set_fault(move |asked| {
            if asked.is_for_one_commit() {
                clock.advance(Duration::from_secs(1));
            }
            asked.parameter("with_stats").map(|_| Fault::Status(504, vec![], "Gateway Timeout"))
        });
        let ticking = tick(&fixture.clock);
        let outcome = world.start().await.unwrap();
        assert_eq!((outcome.run.run.success_count, outcome.run.new_commits_count), (1, 1_050), "{:?}", outcome.problems);
        let with_lines = world.gitlab.requests().iter().filter(|asked| asked.parameter("with_stats").is_some()).count();
        assert_eq!(with_lines, 3, "three tries of the first page, and none of the ten after it");
        let left = world.branch("main").await.stats_missing;
        assert!((440..950).contains(&left), "{left}: as many as ten minutes are enough for");
        world.gitlab.reset_fault();
        fixture.clock.advance(Duration::from_secs(600));
        world.start().await.unwrap();
        // Until here: a request that a busy machine cuts off is repeated after a wait.
        ticking.abort();
        assert_eq!(world.branch("main").await.stats_missing, 0, "the next run goes on");
    }
}

/// Lets a manual clock run fifty times as fast as the machine's.
pub(crate) fn tick(clock: &Clock) -> tokio::task::JoinHandle<()> {
    let clock = clock.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(2)).await;
            clock.advance(Duration::from_millis(100));
        }
    })
}

/// The program with a job for the test's GitLab, and a database in a file.
struct Program {
    gitlab: GitLab,
    test_env: TestEnv,
}

impl Program {
    async fn new(keys: &str) -> Self {
        let gitlab = GitLab::start().await.unwrap();
        gitlab.set_token(TOKEN);
        let test_env = TestEnv::new(&config_text(&gitlab.url(), "${TEST_TOKEN}", keys));
        Self { gitlab, test_env }
    }

    fn command(&self, line: &str) -> Command {
        let mut command = self.test_env.command(&line.split(' ').collect::<Vec<_>>());
        command.env("TEST_TOKEN", TOKEN).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    async fn run(&self, line: &str) -> Output {
        output_beside(self.command(line)).await
    }

    async fn ends(&self, line: &str, code: i32) -> String {
        ends_with(&self.run(line).await, code)
    }

    /// Runs a command that dies at a point; returns whether it did.
    async fn dies_at(&self, point: &str, line: &str) -> bool {
        let mut command = self.command(line);
        command.env("TSUZUKI_FAIL_AT", point);
        output_beside(command).await.status.code().is_none()
    }

    async fn open(&self) -> Db {
        let place = DbUrl::File(self.test_env.file("tsuzuki.db"));
        Db::open(place, Open::Existing, Clock::system()).await.unwrap()
    }

    /// A command waiting for a page that never comes, after two requests.
    async fn hang(&self, line: &str, page: &'static str) -> Child {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        self.gitlab.set_fault(move |request| {
            let late = request.is_for_commits() && request.parameter("page") == Some(page);
            if late {
                count.fetch_add(1, Ordering::SeqCst);
            }
            late.then_some(Fault::Hang)
        });
        let child = self.command(line).spawn().unwrap();
        while asked.load(Ordering::SeqCst) < 2 {
            tokio::task::yield_now().await;
        }
        child
    }
}

/// The program dies at different named points, and every next start continues.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_dies_at_any_point_leaves_a_run_that_the_next_one_finishes() {
    let program = Program::new(GROUP).await;
    let repo = Repo::create(program.test_env.path(), "app");
    repo.commit_many(330);
    program.gitlab.add_repository(99, "team/app", &repo.dir);
    // More than the nine lives below can complete, however their workers are scheduled.
    add_team(&program.gitlab, 20, 320);
    let points = [
        "commits.page",
        "commits.page:3",
        "commits.stored:1",
        "commits.stored:4",
        "commits.collected",
        "commits.settled",
        "commits.collected:1",
        "commits.page:5",
        "commits.settled:1",
    ];
    let mut ids = std::collections::BTreeSet::new();
    let mut died = 0;
    for point in points {
        died += usize::from(program.dies_at(point, "bulk start -q").await);
        let db = program.open().await;
        let runs = check_books(&db).await;
        ids.insert(runs[0].run_id.to_string());
        let stored = rows(&db).await;
        let unique: std::collections::BTreeSet<_> =
            stored.iter().map(|row| (row.project_id, row.branch.clone(), row.sha.clone())).collect();
        assert_eq!(unique.len(), stored.len());
        db.close().await;
    }
    assert!(died >= 5, "only {died} of {} points were reached", points.len());
    program.ends("bulk resume", 0).await;
    let db = program.open().await;
    let runs = check_books(&db).await;
    assert_eq!(ids.len(), 1, "one run, however often it was cut off");
    assert_eq!((runs.len(), runs[0].status, runs[0].success_count), (1, RunStatus::Completed, 21));
    let id = runs[0].run_id;
    let summary = db.read(move |tx| run::find_summary(tx, &id)).await.unwrap().unwrap();
    assert_eq!(summary.new_commits_count, 330 + 20 * 320, "counted once each over all lives");
    let mine: std::collections::BTreeSet<String> =
        rows(&db).await.into_iter().filter(|row| row.project_id == 99).map(|row| row.sha).collect();
    assert_eq!(mine, repo.rev_list("main"));
    db.close().await;
}

/// The program dies between two steps of marking the commits that a rewind has lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_dies_while_it_marks_lost_commits_is_continued() {
    let program = Program::new(GROUP).await;
    let repo = Repo::create(program.test_env.path(), "app");
    let root = repo.commit("2024-01-01T00:00:00Z");
    repo.commit_many(2_200);
    program.gitlab.add_repository(99, "team/app", &repo.dir);
    program.ends("bulk start -q", 0).await;
    repo.git(&["reset", "--quiet", "--hard", &root]);
    assert!(program.dies_at("commits.marked:1", "bulk start -q").await);
    let db = program.open().await;
    let marked = rows(&db).await.iter().filter(|row| !row.reachable).count();
    assert_eq!(marked, 2_000, "two steps are saved");
    db.close().await;

    program.ends("bulk resume", 0).await;
    let db = program.open().await;
    let left: Vec<String> =
        rows(&db).await.into_iter().filter(|row| row.reachable).map(|row| row.sha).collect();
    assert_eq!(left, [root.trim()]);
    let subject = tsuzuki::commits::events::branch("team/app", "main");
    let events = db.read(move |tx| tsuzuki::ledger::event::list_about(tx, &subject, 99)).await.unwrap();
    let lost: Vec<_> = events
        .iter()
        .filter(|event| event.code == "history_rewritten")
        .map(|event| event.detail["unreachable"].as_i64())
        .collect();
    assert_eq!(lost, [Some(2_200)], "told once, with all of them");
    db.close().await;
}

/// SIGKILL from outside while pages are on their way.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_killed_is_replaced_at_once() {
    let program = Program::new(GROUP).await;
    add_team(&program.gitlab, 4, 300);
    let mut child = program.hang("bulk start -q", "3").await;
    // While it lives, another start is refused with its process and since when it runs.
    let words = program.ends("bulk start", 6).await;
    assert!(words.contains(&format!("process {}", child.id())) && words.contains("since 20"), "{words}");
    assert!(words.contains("--join"), "{words}");
    for line in ["bulk retry-failed", "run code"] {
        program.ends(line, 6).await;
    }
    child.kill().unwrap();
    child.wait().unwrap();
    program.gitlab.reset_fault();
    let ended = program.run("bulk start --json").await;
    assert!(!ends_with(&ended, 0).contains(TOKEN));
    let report: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(report["new_commits_count"], 1200);
    let db = program.open().await;
    assert_eq!(check_books(&db).await.len(), 1);
    assert_eq!(rows(&db).await.len(), 1200);
    db.close().await;
}

/// A worker that was killed is not named as one, and its run is not shown as running, by any command.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_kill_no_run_is_shown_as_running_and_no_dead_process_as_its_worker() {
    let program = Program::new(GROUP).await;
    add_team(&program.gitlab, 4, 300);
    for command in ["bulk start -q", "run code -q"] {
        let mut child = program.hang(command, "3").await;
        let (pid, worker) = (child.id().to_string(), format!("process {} on", child.id()));
        let alive = program.ends("bulk status", 0).await;
        assert!(alive.contains(" running: ") && alive.contains(&worker), "{command}: {alive}");
        child.kill().unwrap();
        child.wait().unwrap();
        for listing in ["bulk status", "bulk status --json", "bulk ls", "bulk show", "bulk show --json"] {
            let dead = program.ends(listing, 0).await;
            assert!(dead.contains("interrupted"), "{command} {listing}: {dead}");
            let is_named = dead.contains(&worker) || dead.contains(&format!("/{pid}/"));
            assert!(!is_named && !dead.contains(" running"), "{command} {listing}: {dead}");
        }
        let status = program.ends("status", 0).await;
        assert!(!status.contains("Running") && !status.contains(&worker), "{command}: {status}");
        let says_how =
            ["▷ Due: its last run was cut off", "○ Not run yet"].iter().any(|how| status.contains(how));
        assert!(says_how, "{command}: {status}");
        let how = program.ends("bulk status", 0).await;
        assert!(how.contains("`tsuzuki bulk resume` continues"), "{how}");
    }
}

/// Ctrl-C: within seconds, exit 130, with the command that continues.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_says_how_to_continue() {
    let program = Program::new(GROUP).await;
    add_team(&program.gitlab, 2, 300);
    let child = program.hang("bulk start", "2").await;
    send_signal(child.id(), Signal::INT);
    let began = std::time::Instant::now();
    let ended = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap()).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert_eq!(ended.status.code(), Some(130));
    assert!(String::from_utf8_lossy(&ended.stderr).contains("tsuzuki bulk resume"));
    let status = program.ends("bulk status", 0).await;
    assert!(status.contains(" interrupted: ") && !status.contains("process "), "{status}");
    let db = program.open().await;
    assert_eq!(rows(&db).await.len(), 200, "the page before is saved");
    check_books(&db).await;
    db.close().await;
}

/// A new database, a branch added explicitly, and its listings.
#[tokio::test(flavor = "multi_thread")]
async fn a_single_branch_is_collected_into_an_empty_database() {
    let program = Program::new("").await;
    let repo = Repo::create(program.test_env.path(), "app");
    repo.commit("2024-01-01T00:00:00Z");
    repo.commit("2024-02-01T00:00:00Z");
    program.gitlab.add_repository(9, "team/app", &repo.dir);
    assert!(program.ends("bulk start", 1).await.contains("tsuzuki branch add"));
    program.ends("branch add team/app main", 0).await;
    program.ends("run code", 0).await;
    let listed: serde_json::Value = serde_json::from_str(&program.ends("branch ls --json", 0).await).unwrap();
    assert_eq!((&listed[0]["commits"], &listed[0]["closed"]), (&2.into(), &true.into()));
    let ended = program.run("commits stats --by month --format tsv").await;
    assert!(err(&ended).contains("2 commits; days begin in UTC"), "{ended:?}");
    assert_eq!(
        out(&ended),
        "month (UTC)\tauthor\tcommits\tmerges\tadditions\tdeletions\n2024-01\tAnn Author\t1\t0\t2\t0\n2024-02\tAnn Author\t1\t0\t2\t0\n"
    );
    let shown = program.ends("commits ls", 0).await;
    assert!(shown.contains("team/app") && !shown.contains('@'), "{shown}");
    // Nothing is left to collect.
    for (line, code) in [
        ("branch rm app main", 0),
        ("bulk start", 1),
        ("bulk show", 0),
        ("bulk status", 0),
        ("project sync", 0),
    ] {
        program.ends(line, code).await;
    }
    assert!(program.ends("project ls", 0).await.contains("team/app"));
}
