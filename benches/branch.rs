//! One large branch: collected, counted, listed and rewound by half, beside one of a quarter of its size.
//!
//! `cargo bench --bench branch [-- COMMITS]`, by default 100,000; a million is the full size. With `TSUZUKI_TEST_POSTGRES` set it
//! is done on PostgreSQL, too. Each size is a process of its own, with the made-up GitLab in it; what a commit costs in
//! both, and how long a small write waits meanwhile, count more than times.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "the table is the product; a benchmark may panic"
)]

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use tsuzuki::commits::stats::{self, By, Counting};
use tsuzuki::commits::store::reading::{self, Scope};
use tsuzuki::db::{Db, DbUrl, Open};
use tsuzuki::demo::gitlab::{GitLab, UnknownRevision};
use tsuzuki::ledger::{Subject, pause};
use tsuzuki::time::Clock;
use tsuzuki::{params, sql};

use measure::{bulk, cpu_secs, peak_mib, reset_peak, run, verdict};

mod measure;

/// Rows of a page of `commits ls`.
const PAGE: usize = 50;
/// With four times the commits, each may cost this much more.
const LINEAR_LIMIT: f64 = 1.5;
/// Four times the commits may take this much more memory while they are collected.
const FLAT_LIMIT: f64 = 1.15;
/// The longest wait of a small write.
const LONGEST_WAIT_MS: f64 = 1_000.0;

/// The cost of one phase.
#[derive(Clone, Copy, Debug)]
struct Phase {
    secs: f64,
    /// CPU seconds of this process, without those of a database server.
    cpu: f64,
    peak: f64,
    /// The longest wait of a small write in milliseconds: in the same process, and in another.
    waits: [f64; 2],
}

/// Means a temporary file.
const SQLITE: &str = "sqlite";

const PHASES: [&str; 4] = ["collect", "stats by month", "a page of ls", "rewind by half"];

fn main() {
    let args = measure::args();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["one", SQLITE, commits] => {
            let dir = tempfile::tempdir().unwrap();
            run(one(DbUrl::File(dir.path().join("tsuzuki.db")), commits.parse().unwrap()));
        }
        ["one", url, commits] => run(one(DbUrl::Server((*url).to_owned()), commits.parse().unwrap())),
        rest => {
            let commits: usize = rest.first().map_or(100_000, |text| text.parse().unwrap());
            compare("SQLite", [SQLITE, SQLITE], commits);
            if let Ok(address) = std::env::var("TSUZUKI_TEST_POSTGRES") {
                with_schemas(&address, |urls| compare("PostgreSQL", urls, commits));
            }
        }
    }
}

fn compare(name: &str, urls: [&str; 2], commits: usize) {
    let [quarter, whole] =
        [(urls[0], commits / 4), (urls[1], commits)].map(|(url, commits)| measure(url, commits));
    println!("\none branch of {commits} commits on {name}, beside one of {}", commits / 4);
    println!(
        "{:<16} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "", "s", "s a 1/4", "MiB", "MiB a 1/4", "wait ms", "other ms"
    );
    for (at, title) in PHASES.iter().enumerate() {
        let (small, large) = (quarter[at], whole[at]);
        println!(
            "{title:<16} {:>9.3} {:>9.3} {:>9.1} {:>9.1} {:>9.1} {:>9.1}",
            large.secs, small.secs, large.peak, small.peak, large.waits[0], large.waits[1]
        );
    }
    for at in [0, 1, 3] {
        // For SQLite, all work is in this process, so the load of the machine does not count.
        let cost = |phase: &Phase| if urls[0] == SQLITE { phase.cpu } else { phase.secs };
        let growth = cost(&whole[at]) / cost(&quarter[at]).max(0.01) / 4.0;
        println!(
            "{}: a commit costs {growth:.2} × as much, at most {LINEAR_LIMIT}: {}",
            PHASES[at],
            verdict(growth <= LINEAR_LIMIT)
        );
    }
    let flat = whole[0].peak / quarter[0].peak;
    println!("memory while collecting: {flat:.2} ×, at most {FLAT_LIMIT}: {}", verdict(flat <= FLAT_LIMIT));
    let longest = [0, 3].into_iter().flat_map(|at| whole[at].waits).fold(0.0, f64::max);
    println!("the longest wait of a small write: {longest:.0} ms: {}", verdict(longest < LONGEST_WAIT_MS));
}

/// Creates two schemas, dropped at the end.
fn with_schemas(address: &str, work: impl FnOnce([&str; 2])) {
    let names = ["quarter", "whole"].map(|name| format!("bench_{name}_{}", std::process::id()));
    let mut client = postgres::Client::connect(address, postgres::NoTls).unwrap();
    for name in &names {
        client.batch_execute(&format!("CREATE SCHEMA {name}")).unwrap();
    }
    let urls = names.each_ref().map(|name| format!("{address}?options=-csearch_path%3D{name}"));
    work(urls.each_ref().map(String::as_str));
    for name in &names {
        client.batch_execute(&format!("DROP SCHEMA {name} CASCADE")).unwrap();
    }
}

/// Runs one size in a child process.
fn measure(url: &str, commits: usize) -> Vec<Phase> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output = command.args(["one", url, &commits.to_string()]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read = |line: &str| {
        let figures: Vec<f64> = line.split(' ').map(|figure| figure.parse().unwrap()).collect();
        Phase { secs: figures[0], cpu: figures[1], peak: figures[2], waits: [figures[3], figures[4]] }
    };
    let phases: Vec<Phase> = String::from_utf8(output.stdout).unwrap().lines().map(read).collect();
    assert_eq!(phases.len(), PHASES.len());
    phases
}

async fn one(place: DbUrl, commits: usize) {
    let gitlab = GitLab::start().await.unwrap();
    gitlab.forget_requests();
    gitlab.set_unknown_revision(UnknownRevision::Empty);
    gitlab.add_synthetic(1, "team/p1", commits);
    let db = Db::open(place.clone(), Open::Create, Clock::system()).await.unwrap();
    let other = Db::open(place, Open::Existing, Clock::system()).await.unwrap();
    let total = i64::try_from(commits).unwrap();
    let url = gitlab.url();

    let collected = phase(&db, &other, async || bulk::collect(&url, &db, 4).await).await;
    assert_eq!(collected, total);
    let counting = Counting::new(Scope::default(), "Asia/Tokyo".parse().unwrap(), Arc::default());
    let count = move |tx: &mut tsuzuki::db::Tx<'_>| stats::count(tx, &counting, By::Month);
    let counted = phase(&db, &other, async || db.read(count).await.unwrap()).await;
    assert_eq!(counted.total.commits + counted.total.merges, total);
    let list = |tx: &mut tsuzuki::db::Tx<'_>| reading::list_commits(tx, &Scope::default(), PAGE);
    assert_eq!(phase(&db, &other, async || db.read(list).await.unwrap()).await.len(), PAGE);
    gitlab.add_synthetic(1, "team/p1", commits / 2);
    assert_eq!(phase(&db, &other, async || bulk::collect(&url, &db, 4).await).await, 0);

    let marked = db
        .read(|tx| {
            tx.count(sql!("SELECT COUNT(*) FROM commits WHERE unreachable_since IS NOT NULL"), params![])
        })
        .await
        .unwrap();
    assert_eq!(marked, i64::try_from(commits - commits / 2).unwrap());
    other.close().await;
    db.close().await;
}

/// Runs `work` during small writes in this process and over another connection, and prints its cost.
async fn phase<T>(db: &Db, other: &Db, work: impl AsyncFnOnce() -> T) -> T {
    let stop = CancellationToken::new();
    let writing = [db, other].map(|db| tokio::spawn(write_on(db.clone(), stop.clone())));
    reset_peak();
    let (started, cpu) = (Instant::now(), cpu_secs());
    let done = work().await;
    let (took, cpu) = (started.elapsed().as_secs_f64(), cpu_secs() - cpu);
    stop.cancel();
    let mut waits = [0.0; 2];
    for (slot, writing) in writing.into_iter().enumerate() {
        waits[slot] = writing.await.unwrap();
    }
    println!("{took} {cpu} {} {} {}", peak_mib(), waits[0], waits[1]);
    done
}

/// Writes a row repeatedly, with a small pause, as `job pause` would; returns the longest time in milliseconds.
async fn write_on(db: Db, stop: CancellationToken) -> f64 {
    let mut longest: f64 = 0.0;
    while !stop.is_cancelled() {
        let (name, started) = (Subject::provider("bench"), Instant::now());
        db.write(move |tx| {
            let now = tx.now();
            pause::put(tx, &name, Some(now), &"measured".into(), now)
        })
        .await
        .unwrap();
        longest = longest.max(started.elapsed().as_secs_f64() * 1e3);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    longest
}
