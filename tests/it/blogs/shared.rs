//! Several processes share a run: every blog is checked once, even if one of them dies.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tsuzuki::db::Db;
use tsuzuki::engine::{Failure, Finished, Job, Progress, Runner, Selection, Skipped};
use tsuzuki::ledger::{Subject, event};
use tsuzuki::{params, sql};

use super::{HOUR, World, config_text};
use crate::databases::Fixture;

/// Answers on every loopback address with a feed of so many entries, once the test allows it.
struct Sites {
    port: u16,
    entries: AtomicUsize,
    asked: AtomicUsize,
    gate: Semaphore,
}

impl Sites {
    async fn start() -> Arc<Self> {
        let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let sites =
            Self { port, entries: AtomicUsize::new(1), asked: AtomicUsize::new(0), gate: Semaphore::new(0) };
        let sites = Arc::new(sites);
        let serving = Arc::clone(&sites);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let sites = Arc::clone(&serving);
                tokio::spawn(async move {
                    let _ = stream.read(&mut [0; 2048]).await;
                    sites.asked.fetch_add(1, Ordering::SeqCst);
                    sites.gate.acquire().await.unwrap().forget();
                    let items: String = (0..sites.entries.load(Ordering::SeqCst))
                        .map(|number| {
                            format!("<item><guid>{number}</guid><title>entry {number}</title></item>")
                        })
                        .collect();
                    let feed = format!("<rss version=\"2.0\"><channel>{items}</channel></rss>");
                    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length";
                    let _ =
                        stream.write_all(format!("{head}: {}\r\n\r\n{feed}", feed.len()).as_bytes()).await;
                });
            }
        });
        sites
    }

    fn answer(&self, requests: usize) {
        self.gate.add_permits(requests);
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    fn config(&self, blogs: usize) -> String {
        let blogs: Vec<String> = (0..blogs)
            .map(|number| {
                let at = format!("http://127.1.{}.{}:{}/", number / 256, number % 256, self.port);
                format!("id = \"b{number}\"\nurl = \"{at}\"\nfeed = \"{at}feed\"")
            })
            .collect();
        config_text("", &blogs)
    }
}

/// Runs the job as another process, as far as the database is concerned.
async fn start(fixture: &Fixture, job: &Job, stop: &CancellationToken) -> JoinHandle<Finished> {
    let (db, job, stop) = (fixture.open_again().await, job.clone(), stop.clone());
    tokio::spawn(async move {
        Runner::new(db, Progress::default()).run(vec![job], Selection::Due, &stop).await.remove(0).1
    })
}

async fn count(db: &Db, text: &'static tsuzuki::db::Sql) -> i64 {
    db.read(move |tx| tx.count(text, params![])).await.unwrap()
}

/// Waits until the statement returns `wanted`.
async fn wait_for(db: &Db, text: &'static tsuzuki::db::Sql, wanted: i64) {
    let reached = async {
        while count(db, text).await != wanted {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), reached).await.expect("it was to happen within 30 seconds");
}

async fn run_lines(db: &Db) -> Vec<(String, String)> {
    let events = db.read(|tx| event::list_about(tx, &Subject::job("blogs"), 10)).await.unwrap();
    let message = |event: &event::Event| event.detail["message"].to_string();
    events.iter().map(|event| (event.code.clone(), message(event))).collect()
}

on_both_databases! {
    async fn several_processes_check_every_blog_once_and_tell_it_in_one_message(fixture) {
        const BLOGS: usize = 640;
        let sites = Sites::start().await;
        let world = World::new(&fixture, &sites.config(BLOGS));
        let (job, stop) = (world.job(), CancellationToken::new());
        for round in 1..=2 {
            let workers = sql!("SELECT COUNT(DISTINCT lease_owner) FROM blog_chunks");
            let mut running = Vec::new();
            for number in 1..=3 {
                running.push(start(&fixture, &job, &stop).await);
                wait_for(&world.db, workers, number).await;
            }
            sites.answer(BLOGS);
            let mut summaries = Vec::new();
            for worker in running {
                let Finished::Ran(report) = worker.await.unwrap() else { panic!("all three had something to do") };
                summaries.push(report.summary.to_string());
            }
            let (lead, helpers): (Vec<&String>, Vec<&String>) = summaries.iter().partition(|summaries| !summaries.starts_with("helped process"));
            assert_eq!((lead.len(), helpers.len()), (1, 2), "{summaries:?}");
            assert!(lead[0].starts_with("checked 640 of 640 blogs: 640 "), "{summaries:?}");
            assert_eq!(sites.asked(), BLOGS * round, "every site is asked once");
            assert_eq!(count(&world.db, sql!("SELECT COUNT(*) FROM check_history")).await, (BLOGS * round) as i64);
            let fewest = sql!("SELECT MIN(checks) FROM (SELECT COUNT(*) AS checks FROM check_history GROUP BY blog_id) AS each_blog");
            assert_eq!(count(&world.db, fewest).await, round as i64, "every blog is checked once");
            assert_eq!(run_lines(&world.db).await.len(), round, "one run, one line in its story");
            fixture.clock.advance(HOUR);
            sites.entries.fetch_add(1, Ordering::SeqCst);
        }
        assert_eq!(world.messages().await.len(), 1, "one digest of all that was found");
        assert_eq!(world.changes().await.len(), BLOGS);
    }

    async fn what_a_worker_has_is_done_by_another_when_it_freezes_and_it_writes_nothing_when_it_wakes(fixture) {
        const BLOGS: usize = 100;
        let sites = Sites::start().await;
        let world = World::new(&fixture, &sites.config(BLOGS));
        let (job, stop) = (world.job(), CancellationToken::new());
        let frozen = start(&fixture, &job, &stop).await;
        wait_for(&world.db, sql!("SELECT COUNT(*) FROM blog_chunks WHERE lease_fence = 1"), 2).await;
        fixture.clock.advance(Duration::from_secs(61));
        let other = start(&fixture, &job, &stop).await;
        wait_for(&world.db, sql!("SELECT COUNT(*) FROM blog_chunks WHERE lease_fence = 2"), 2).await;
        sites.answer(2 * BLOGS);
        let finished = (frozen.await.unwrap(), other.await.unwrap());
        assert!(matches!(finished, (Finished::Failed(Failure::Overtaken), Finished::Ran(_))), "{finished:?}");
        assert_eq!(count(&world.db, sql!("SELECT COUNT(*) FROM check_history")).await, BLOGS as i64);
        assert_eq!(count(&world.db, sql!("SELECT COUNT(DISTINCT blog_id) FROM check_history")).await, BLOGS as i64);
        assert_eq!(run_lines(&world.db).await.len(), 1);
    }

    async fn a_run_that_was_cut_off_goes_on_with_the_blogs_that_are_left(fixture) {
        const BLOGS: usize = 100;
        let sites = Sites::start().await;
        let world = World::new(&fixture, &sites.config(BLOGS));
        let (job, stop) = (world.job(), CancellationToken::new());
        let checks = sql!("SELECT COUNT(*) FROM check_history");
        let first = start(&fixture, &job, &stop).await;
        sites.answer(30);
        wait_for(&world.db, checks, 30).await;
        stop.cancel();
        assert!(matches!(first.await.unwrap(), Finished::Failed(Failure::Interrupted)));
        sites.answer(1_000);
        let second = start(&fixture, &job, &CancellationToken::new()).await.await.unwrap();
        assert!(matches!(&second, Finished::Ran(report) if report.summary.to_string().starts_with("checked 100 of 100 blogs")), "{second:?}");
        assert_eq!(count(&world.db, checks).await, BLOGS as i64, "what was checked is not checked again");
        assert_eq!(count(&world.db, sql!("SELECT COUNT(DISTINCT blog_id) FROM check_history")).await, BLOGS as i64);
        fixture.clock.advance(HOUR);
        start(&fixture, &job, &CancellationToken::new()).await.await.unwrap();
        assert_eq!(count(&world.db, checks).await, 2 * BLOGS as i64, "the next point is a run of its own");
    }

    async fn blogs_of_a_process_of_this_machine_that_died_are_free_at_once(fixture) {
        const BLOGS: usize = 100;
        let sites = Sites::start().await;
        let world = World::new(&fixture, &sites.config(BLOGS));
        let (job, stop) = (world.job(), CancellationToken::new());
        let running = start(&fixture, &job, &stop).await;
        let held = sql!("SELECT COUNT(*) FROM blog_chunks WHERE lease_owner IS NOT NULL");
        wait_for(&world.db, held, 2).await;
        // It belongs to a process that is not there, from now on.
        let dead = tsuzuki::id::Owner::this_process().to_string().replace(&format!("/{}/", std::process::id()), "/4294967295/");
        world.db.write(move |tx| {
            tx.execute(sql!("UPDATE leases SET owner = ?1"), params![dead])?;
            tx.execute(sql!("UPDATE blog_chunks SET lease_owner = ?1"), params![dead])
        }).await.unwrap();
        sites.answer(2 * BLOGS);
        let other = start(&fixture, &job, &stop).await.await.unwrap();
        assert!(matches!(other, Finished::Ran(_)), "{other:?}");
        assert!(matches!(running.await.unwrap(), Finished::Failed(Failure::Overtaken)));
        assert_eq!(count(&world.db, sql!("SELECT COUNT(*) FROM check_history")).await, BLOGS as i64);
    }

    async fn only_processes_with_the_same_blogs_join_and_only_by_themselves(fixture) {
        let sites = Sites::start().await;
        let world = World::new(&fixture, &sites.config(640));
        let (job, stop) = (world.job(), CancellationToken::new());
        let running = start(&fixture, &job, &stop).await;
        wait_for(&world.db, sql!("SELECT COUNT(DISTINCT lease_owner) FROM blog_chunks"), 1).await;
        let other = World::new(&fixture, &sites.config(639)).job();
        let runner = Runner::new(fixture.open_again().await, Progress::default());
        let is_held = |skipped: Option<&Skipped>| matches!(skipped, Some(Skipped::Held(_)));
        for (job, selection, joins) in [(&job, Selection::Due, true), (&job, Selection::Forced, false), (&other, Selection::Due, false)] {
            let skipped = runner.list_skipped(std::slice::from_ref(job), selection).await.unwrap();
            assert_eq!(is_held(skipped[0].as_ref()), !joins, "{selection:?}");
            if !joins {
                let (_, finished) = runner.run(vec![job.clone()], selection, &stop).await.remove(0);
                assert!(matches!(finished, Finished::Skipped(Skipped::Held(_))), "{finished:?}");
            }
        }
        sites.answer(640);
        assert!(matches!(running.await.unwrap(), Finished::Ran(_)));
    }
}
