//! The runner: due jobs run once, under a lease, and their end is recorded.

use std::net::TcpListener;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use rustix::process::Signal;
use tokio_util::sync::CancellationToken;
use tsuzuki::config::ScheduleSpec;
use tsuzuki::db::{self, Db};
use tsuzuki::engine::{
    Collector, Failure, Finished, Job, JobState, Plan, Preview, Progress, Report, RunContext, RunOutcome,
    Runner, Schedule, Selection, Skipped, daemon, store,
};
use tsuzuki::id::JobName;
use tsuzuki::ledger::{Subject, event, pause};
use tsuzuki::time::Timestamp;

use crate::databases::Fixture;
use crate::test_env::{TestEnv, ends_with, send_signal};

/// A job that counts its runs and ends them as given.
pub(crate) struct Counted {
    runs: AtomicU32,
    end: fn(&RunContext) -> Result<Report, Failure>,
    /// How long a run takes.
    lasts: Duration,
}

#[async_trait]
impl Collector for Counted {
    async fn run(&self, turn: &RunContext) -> Result<Report, Failure> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        tokio::select! {
            () = tokio::time::sleep(self.lasts) => (self.end)(turn),
            () = turn.stop.cancelled() => Err(Failure::Interrupted),
        }
    }

    async fn test(&self, _: &Db) -> Result<Preview, Failure> {
        Ok(Preview::default())
    }

    async fn plan(&self, _: &Db, _: Timestamp) -> db::Result<Plan> {
        Ok(Plan::default())
    }
}

pub(crate) fn job(
    name: &str,
    end: fn(&RunContext) -> Result<Report, Failure>,
    lasts: Duration,
) -> (Job, Arc<Counted>) {
    let work = Arc::new(Counted { runs: AtomicU32::new(0), end, lasts });
    let spec = ScheduleSpec::Every("1h".parse().unwrap());
    let job = Job {
        name: name.parse().unwrap(),
        kind: "test",
        enabled: true,
        schedule: Schedule::new(&spec, Duration::from_secs(3600), jiff::tz::TimeZone::UTC),
        collector: Arc::clone(&work) as Arc<dyn Collector>,
        ping: None,
    };
    (job, work)
}

fn well(_: &RunContext) -> Result<Report, Failure> {
    Ok(Report::new("all done".into()))
}

async fn run(fixture: &Fixture, jobs: &[&Job]) -> Vec<Finished> {
    let runner = Runner::new(fixture.db.clone(), Progress::default());
    let jobs = jobs.iter().map(|job| (*job).clone()).collect();
    let finished = runner.run(jobs, Selection::Due, &CancellationToken::new()).await;
    finished.into_iter().map(|(_, finished)| finished).collect()
}

async fn state(fixture: &Fixture, name: &'static str) -> JobState {
    fixture.db.read(move |tx| store::find_state(tx, name)).await.unwrap().unwrap()
}

on_both_databases! {
    async fn a_due_job_runs_once_per_point_of_its_grid(fixture) {
        let (job, work) = job("a", well, Duration::ZERO);
        assert!(matches!(run(&fixture, &[&job]).await[..], [Finished::Ran(_)]));
        assert!(matches!(run(&fixture, &[&job]).await[..], [Finished::Skipped(Skipped::NotDue(Some(_)))]));
        fixture.clock.advance(Duration::from_secs(3 * 3600));
        assert!(matches!(run(&fixture, &[&job]).await[..], [Finished::Ran(_)]), "three missed points run once");
        assert!(matches!(run(&fixture, &[&job]).await[..], [Finished::Skipped(_)]));
        assert_eq!(work.runs.load(Ordering::SeqCst), 2);
        let state = state(&fixture, "a").await;
        assert_eq!(state.last_outcome, Some(RunOutcome::Success));
        assert_eq!(state.last_success_at, Some(fixture.clock.now()));
        assert_eq!(state.last_message.unwrap(), "all done");
    }

    async fn several_processes_never_do_the_same_due_job_twice(fixture) {
        let (job, work) = job("a", well, Duration::from_millis(50));
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..6 {
            let (db, job) = (fixture.open_again().await, job.clone());
            tasks.spawn(async move {
                let runner = Runner::new(db, Progress::default());
                runner.run(vec![job], Selection::Due, &CancellationToken::new()).await.remove(0).1
            });
        }
        let ran = tasks.join_all().await.into_iter().filter(|finished| matches!(finished, Finished::Ran(_))).count();
        assert_eq!(ran, 1);
        assert_eq!(work.runs.load(Ordering::SeqCst), 1);
    }

    async fn a_failure_is_remembered_and_does_not_count_as_success(fixture) {
        fn badly(_: &RunContext) -> Result<Report, Failure> {
            Err(Failure::Failed("no such feed".into()))
        }
        fn partly(_: &RunContext) -> Result<Report, Failure> {
            Ok(Report { problems: vec!["one blog".into()], ..Report::new("".into()) })
        }
        let (bad, _) = job("bad", badly, Duration::ZERO);
        let (part, _) = job("part", partly, Duration::ZERO);
        run(&fixture, &[&bad, &part]).await;
        let bad = state(&fixture, "bad").await;
        assert_eq!((bad.last_outcome, bad.last_success_at, bad.failures_in_a_row), (Some(RunOutcome::Failed), None, 1));
        let part = state(&fixture, "part").await;
        assert_eq!((part.last_outcome, part.last_success_at), (Some(RunOutcome::Partly), None));
    }

    async fn a_run_in_which_every_part_went_wrong_has_failed(fixture) {
        fn all_failed(_: &RunContext) -> Result<Report, Failure> {
            Ok(Report { problems: vec!["one blog".into(), "the other".into()], all_failed: true, ..Report::new("".into()) })
        }
        let (job, _) = job("a", all_failed, Duration::ZERO);
        assert!(matches!(&run(&fixture, &[&job]).await[..], [Finished::Ran(report)] if report.outcome() == RunOutcome::Failed));
        let state = state(&fixture, "a").await;
        assert_eq!((state.last_outcome, state.failures_in_a_row), (Some(RunOutcome::Failed), 1));
        assert_eq!(state.last_message.unwrap(), "one blog; the other");
    }

    async fn every_run_leaves_its_line_in_the_story_of_the_job(fixture) {
        let (job, _) = job("a", well, Duration::ZERO);
        let began_at = fixture.clock.now();
        run(&fixture, &[&job]).await;
        fixture.clock.advance(Duration::from_secs(3600));
        run(&fixture, &[&job]).await;
        let events = fixture.db.read(|tx| event::list_about(tx, &Subject::job("a"), 10)).await.unwrap();
        let codes: Vec<&str> = events.iter().map(|event| event.code.as_str()).collect();
        assert_eq!(codes, ["success", "success"]);
        assert_eq!(events[0].detail, serde_json::json!({ "message": "all done", "began_at": began_at, "new_count": 0 }));
        assert!(fixture.db.read(|tx| event::list_work_of_job(tx, "a", 10)).await.unwrap().is_empty());
    }

    async fn each_job_is_told_when_it_ends_and_all_of_them_in_their_order(fixture) {
        // It ends after the other was reported, however slow the machine is.
        let (slow, _) = job("slow", well, Duration::from_secs(3600));
        let (quick, _) = job("quick", well, Duration::ZERO);
        let runner = Runner::new(fixture.db.clone(), Progress::default());
        let (stop, mut ended) = (CancellationToken::new(), Vec::new());
        let on_end = |job: &JobName, _: &Finished| {
            ended.push(job.to_string());
            stop.cancel();
        };
        let finished = runner.run_reporting(vec![slow, quick], Selection::Due, &stop, on_end).await;
        assert_eq!(ended, ["quick", "slow"]);
        let names: Vec<&str> = finished.iter().map(|(job, _)| job.as_str()).collect();
        assert_eq!(names, ["slow", "quick"]);
    }

    async fn the_next_start_is_known_with_its_small_delay(fixture) {
        let (first, _) = job("first", well, Duration::ZERO);
        let (mut off, _) = job("off", well, Duration::ZERO);
        off.enabled = false;
        let runner = Runner::new(fixture.db.clone(), Progress::default());
        let delay = first.schedule.jitter("first");
        let jobs = [off.clone(), first];
        let next = daemon::find_next(&runner, &jobs).await.unwrap();
        assert_eq!(next, Some((fixture.clock.now().plus(delay), "first".parse().unwrap())), "it is due");
        run(&fixture, &[&jobs[1]]).await;
        let (at, _) = daemon::find_next(&runner, &jobs).await.unwrap().unwrap();
        let point: Timestamp = "2026-01-15T01:00:00Z".parse().unwrap();
        assert_eq!(at, point.plus(delay));
        assert_eq!(daemon::find_next(&runner, &[off]).await.unwrap(), None);
    }

    async fn a_crashing_job_takes_nobody_with_it(fixture) {
        fn crash(_: &RunContext) -> Result<Report, Failure> {
            panic!("on purpose")
        }
        let (bad, _) = job("bad", crash, Duration::ZERO);
        let (good, _) = job("good", well, Duration::ZERO);
        let finished = run(&fixture, &[&bad, &good]).await;
        assert!(matches!(finished[..], [Finished::Failed(Failure::Failed(_)), Finished::Ran(_)]), "{finished:?}");
        // The lease is given back, so the next point runs.
        fixture.clock.advance(Duration::from_secs(3600));
        assert!(matches!(run(&fixture, &[&bad]).await[..], [Finished::Failed(Failure::Failed(_))]));
    }

    async fn an_interrupted_run_is_due_at_once(fixture) {
        let (long, work) = job("long", well, Duration::from_secs(3600));
        let stop = CancellationToken::new();
        let runner = Runner::new(fixture.db.clone(), Progress::default());
        let running = { let (long, stop) = (long.clone(), stop.clone()); tokio::spawn(async move { runner.run(vec![long], Selection::Due, &stop).await }) };
        while work.runs.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        stop.cancel();
        let finished = running.await.unwrap();
        assert!(matches!(finished[..], [(_, Finished::Failed(Failure::Interrupted))]));
        assert_eq!(state(&fixture, "long").await.last_outcome, Some(RunOutcome::Interrupted));
        let runner = Runner::new(fixture.db.clone(), Progress::default());
        assert_eq!(runner.list_skipped(&[long], Selection::Due).await.unwrap(), [None], "it continues without waiting for the next point");
    }

    async fn a_run_that_died_is_due_when_its_lease_is_over(fixture) {
        let (job, _) = job("a", well, Duration::ZERO);
        let name = job.name.clone();
        // The rows of a process killed in the middle of a run: begun, leased, no end.
        let now = fixture.clock.now();
        fixture.db.write(move |tx| {
            let owner = tsuzuki::id::Owner::this_process();
            tsuzuki::ledger::lease::claim(tx, &tsuzuki::engine::runner::lease_name(&name), &owner, Duration::from_secs(60))?;
            store::mark_begun(tx, name.as_str(), now)
        }).await.unwrap();
        assert!(matches!(run(&fixture, &[&job]).await[..], [Finished::Skipped(Skipped::Held(_))]));
        fixture.clock.advance(Duration::from_secs(61));
        assert!(matches!(run(&fixture, &[&job]).await[..], [Finished::Ran(_)]));
    }

    async fn a_paused_or_disabled_job_rests_unless_it_is_forced(fixture) {
        let (mut job, _) = job("a", well, Duration::ZERO);
        let now = fixture.clock.now();
        fixture.db.write(move |tx| pause::put(tx, &Subject::job("a"), None, &"by hand".into(), now)).await.unwrap();
        assert!(matches!(run(&fixture, &[&job]).await[..], [Finished::Skipped(Skipped::Paused(_))]));
        fixture.db.write(|tx| pause::reset(tx, &Subject::job("a"))).await.unwrap();
        job.enabled = false;
        assert!(matches!(run(&fixture, &[&job]).await[..], [Finished::Skipped(Skipped::Disabled)]));
        let runner = Runner::new(fixture.db.clone(), Progress::default());
        let forced = runner.run(vec![job], Selection::Forced, &CancellationToken::new()).await;
        assert!(matches!(forced[..], [(_, Finished::Ran(_))]));
    }
}

#[test]
fn sigterm_ends_a_run_that_waits_for_a_server_at_once_and_leaves_nothing_running() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let test_env = TestEnv::new(&format!(
        "[[job]]\nname = \"a\"\nkind = \"blogs\"\nallow_private = [\"127.0.0.1\"]\nblog = [{{ id = \"x\", url = \"http://{}/\" }}]\n",
        silent.local_addr().unwrap()
    ));
    let mut command = test_env.command(&["run", "a"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _unanswered = silent.accept().unwrap();
    let start = Instant::now();
    send_signal(child.id(), Signal::TERM);
    let said = ends_with(&child.wait_with_output().unwrap(), 130);
    // An answer would be waited for for 30 s.
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    assert!(said.contains("a: interrupted: ") && said.contains("`tsuzuki run-due` continues"), "{said}");
    let status = test_env.ends("status", 0);
    assert!(status.contains("Due: its last run was cut off") && !status.contains("Running"), "{status}");
}
