//! Collecting commits beside the bare limits of the same machine and run, and statistics beside plain SQL.
//!
//! `cargo bench --bench commits [-- PROJECTS COMMITS STATS]`, by default 10 projects of 5,000 commits and statistics
//! over 200,000; `-- 50 20000 1000000` is the full size. Server and clients are processes of their own, so that each
//! figure is of one program alone. Every figure is µs a commit; ratios count, not times.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "the table is the product; a benchmark may panic, and uses the bare client"
)]

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use futures_util::stream::{self, StreamExt as _};
use tsuzuki::commits::stats::{self, By, Counting};
use tsuzuki::commits::store::reading::Scope;
use tsuzuki::db::{Db, DbUrl, Open};
use tsuzuki::demo::gitlab::GitLab;
use tsuzuki::time::Clock;

use measure::{Figures, bulk, measure, report, run, verdict};

mod measure;

const AT_ONCE: usize = 4;
const TURNS: usize = 3;
/// Statistics are short, and measured in real time: more turns, so that one of each is undisturbed.
const STATS_TURNS: usize = 9;
/// The required share of the bare loop's rate.
const RATE_LIMIT: f64 = 1.0 / 1.3;
/// With four times the commits, this much more memory is allowed.
const FLAT_LIMIT: f64 = 1.15;
/// Statistics beside the plain aggregate.
const STATS_LIMIT: f64 = 1.5;

fn main() {
    let args = measure::args();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<usize>().unwrap();
    match words.as_slice() {
        ["serve", projects, commits] => run(serve(number(projects), number(commits), "127.0.0.1")),
        ["serve", projects, commits, address] => run(serve(number(projects), number(commits), address)),
        [what @ ("parse" | "insert" | "bare" | "ours"), url, projects, commits] => {
            let (projects, commits) = (number(projects), number(commits));
            let dir = tempfile::tempdir().unwrap();
            report(|| match *what {
                "parse" => run(parse(url, projects, commits)),
                "insert" => run(insert(url, projects, commits, dir.path())),
                "bare" => run(bare(url, projects, commits, dir.path())),
                _ => run(ours(url, projects, commits, dir.path())),
            });
        }
        rest => {
            let size = |index: usize, usual: usize| rest.get(index).map_or(usual, |text| number(text));
            compare(size(0, 10), size(1, 5_000));
            run(compare_stats(size(2, 200_000)));
        }
    }
}

fn compare(projects: usize, commits: usize) {
    let (of_projects, of_commits) = (projects.to_string(), commits.to_string());
    let server = measure::serve(&["serve", &of_projects, &of_commits]);
    println!("{projects} projects of {commits} commits, best of {TURNS} turns");
    println!("{:<36} {:>8} {:>8} {:>9}", "µs a commit", "CPU", "wall", "VmHWM MiB");
    let mut best: [Option<Figures>; 4] = [None; 4];
    for _ in 0..TURNS {
        for (slot, name) in ["parse", "insert", "bare", "ours"].into_iter().enumerate() {
            let figures = measure(&[name, &server.ready, &of_projects, &of_commits]);
            best[slot] = Some(best[slot].map_or(figures, |best| best.better(figures)));
        }
    }
    let best = best.map(Option::unwrap);
    let each = 1e6 / (projects * commits) as f64;
    let titles = ["JSON parse only", "SQLite insert only", "bare fetch + JSON + batched insert", "tsuzuki"];
    for (Figures { cpu, wall, peak }, title) in best.iter().zip(titles) {
        println!("{title:<36} {:>8.2} {:>8.2} {peak:>9.1}", cpu * each, wall * each);
    }
    let [_, _, bare, ours] = best;
    let rate = bare.cpu / ours.cpu;
    println!(
        "commits a CPU second beside the bare loop: {:.0} %, at least {:.0} %: {}",
        rate * 100.0,
        RATE_LIMIT * 100.0,
        verdict(rate >= RATE_LIMIT)
    );
    println!("commits a second on the wall beside the bare loop: {:.0} %", bare.wall / ours.wall * 100.0);
    drop(server);
    let [small, large] = [commits / 4, commits].map(|commits| {
        let of_commits = commits.to_string();
        let server = measure::serve(&["serve", &of_projects, &of_commits]);
        measure(&["ours", &server.ready, &of_projects, &of_commits]).peak
    });
    println!(
        "memory with a quarter of the commits and with all: {small:.1} and {large:.1} MiB: {}",
        verdict(large <= small * FLAT_LIMIT)
    );
}

async fn serve(projects: usize, commits: usize, address: &str) {
    let gitlab = GitLab::start_on(tokio::net::TcpListener::bind((address, 0)).await.unwrap()).unwrap();
    gitlab.forget_requests();
    for id in 1..=projects {
        gitlab.add_synthetic(i64::try_from(id).unwrap(), &format!("team/p{id}"), commits);
    }
    println!("{}", gitlab.url());
    std::future::pending::<()>().await;
}

#[derive(serde::Deserialize)]
struct Bare {
    id: String,
    author_name: String,
    author_email: String,
    committed_date: String,
    stats: BareStats,
}

#[derive(serde::Deserialize)]
struct BareStats {
    additions: i64,
    deletions: i64,
}

async fn fetch(client: &reqwest::Client, url: &str, project: usize, page: usize) -> bytes::Bytes {
    let url = format!(
        "{url}/api/v4/projects/{project}/repository/commits?ref_name=main&per_page=100&page={page}&with_stats=true"
    );
    client.get(url).send().await.unwrap().bytes().await.unwrap()
}

/// Parses the same page repeatedly.
async fn parse(url: &str, projects: usize, commits: usize) {
    let page = fetch(&client(), url, 1, 1).await;
    let per_page = serde_json::from_slice::<Vec<Bare>>(&page).unwrap().len();
    for _ in 0..projects * commits / per_page {
        let parsed: Vec<Bare> = serde_json::from_slice(&page).unwrap();
        std::hint::black_box(parsed);
    }
}

fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

fn open_bare(dir: &Path) -> rusqlite::Connection {
    let connection = rusqlite::Connection::open(dir.join("bare.db")).unwrap();
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
             CREATE TABLE commits (project_id INTEGER NOT NULL, branch_name TEXT NOT NULL, sha TEXT NOT NULL,
               author_name TEXT NOT NULL, author_email TEXT NOT NULL, committed_date_utc TEXT NOT NULL,
               additions INTEGER NOT NULL, deletions INTEGER NOT NULL, UNIQUE (project_id, branch_name, sha));
             CREATE INDEX by_date ON commits (project_id, branch_name, committed_date_utc);",
        )
        .unwrap();
    connection
}

fn store(connection: &mut rusqlite::Connection, project: usize, commits: &[Bare]) {
    let transaction = connection.transaction().unwrap();
    {
        let mut statement = transaction
            .prepare_cached(
                "INSERT INTO commits VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO NOTHING",
            )
            .unwrap();
        for commit in commits {
            let at: jiff::Timestamp = commit.committed_date.parse().unwrap();
            let row = (
                i64::try_from(project).unwrap(),
                "main",
                &commit.id,
                &commit.author_name,
                &commit.author_email,
                at.to_string(),
                commit.stats.additions,
                commit.stats.deletions,
            );
            statement.execute(row).unwrap();
        }
    }
    transaction.commit().unwrap();
}

/// Stores one parsed page repeatedly under new SHAs, in one transaction each.
async fn insert(url: &str, projects: usize, commits: usize, dir: &Path) {
    let body = fetch(&client(), url, 1, 1).await;
    let mut parsed: Vec<Bare> = serde_json::from_slice(&body).unwrap();
    let mut connection = open_bare(dir);
    for project in 1..=projects {
        for page in 1..=commits.div_ceil(100) {
            for (number, commit) in parsed.iter_mut().enumerate() {
                commit.id = format!(
                    "{:040x}",
                    ((page * 100 + number) as u128).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c)
                );
            }
            store(&mut connection, project, &parsed);
        }
    }
}

async fn bare(url: &str, projects: usize, commits: usize, dir: &Path) {
    let client = client();
    let connection = Arc::new(Mutex::new(open_bare(dir)));
    stream::iter(1..=projects)
        .for_each_concurrent(AT_ONCE, |project| {
            let (client, connection) = (client.clone(), Arc::clone(&connection));
            async move {
                for page in 1..=commits.div_ceil(100) {
                    let body = fetch(&client, url, project, page).await;
                    let parsed: Vec<Bare> = serde_json::from_slice(&body).unwrap();
                    let connection = Arc::clone(&connection);
                    tokio::task::spawn_blocking(move || {
                        store(&mut connection.lock().unwrap(), project, &parsed);
                    })
                    .await
                    .unwrap();
                }
            }
        })
        .await;
}

async fn ours(url: &str, projects: usize, commits: usize, dir: &Path) {
    let db = Db::open(DbUrl::File(dir.join("tsuzuki.db")), Open::Create, Clock::system()).await.unwrap();
    let stored = bulk::collect(url, &db, AT_ONCE).await;
    assert_eq!(stored, i64::try_from(projects * commits).unwrap());
    db.close().await;
}

/// The aggregate as a person would write it; authors are identified by name only, months are in UTC.
const PLAIN: &str =
    "SELECT author_name, substr(committed_date_utc, 1, 7), COUNT(*), CAST(SUM(additions) AS BIGINT),
       CAST(SUM(deletions) AS BIGINT)
     FROM commits GROUP BY 1, 2 ORDER BY 2, 1";

/// The statistics of a large database beside the plain aggregate that gives the same figures.
async fn compare_stats(commits: usize) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("stats.db");
    Db::open(DbUrl::File(path.clone()), Open::Create, Clock::system()).await.unwrap().close().await;
    fill(&path, commits);
    let db = Db::open(DbUrl::File(path.clone()), Open::Existing, Clock::system()).await.unwrap();
    let plain = rusqlite::Connection::open(&path).unwrap();
    let plainly = || {
        let mut statement = plain.prepare(PLAIN).unwrap();
        statement.query_map([], |row| row.get::<_, String>(0)).unwrap().count()
    };
    println!("\nstatistics over {commits} commits by month, CPU seconds on SQLite");
    print_stats(&db, commits, plainly, measure::cpu_secs).await;
    if let Ok(address) = std::env::var("TSUZUKI_TEST_POSTGRES") {
        compare_on_postgres(&address, &path, commits).await;
    }
}

/// The same on a server, in real time.
async fn compare_on_postgres(address: &str, from: &Path, commits: usize) {
    let schema = format!("bench_{}", std::process::id());
    let url = format!("{address}?options=-csearch_path%3D{schema}");
    let mut plain = tokio::task::block_in_place(|| {
        let mut client = postgres::Client::connect(&url, postgres::NoTls).unwrap();
        client.batch_execute(&format!("CREATE SCHEMA {schema}")).unwrap();
        client
    });
    let db = Db::open(DbUrl::Server(url), Open::Create, Clock::system()).await.unwrap();
    tokio::task::block_in_place(|| copy(&mut plain, from));
    println!("\nstatistics over {commits} commits by month, seconds on the wall on PostgreSQL");
    let started = Instant::now();
    let clock = || started.elapsed().as_secs_f64();
    let plainly = || tokio::task::block_in_place(|| plain.query(PLAIN, &[]).unwrap().len());
    print_stats(&db, commits, plainly, clock).await;
    db.close().await;
    tokio::task::block_in_place(|| {
        plain.batch_execute(&format!("DROP SCHEMA {schema} CASCADE")).unwrap();
        drop(plain);
    });
}

async fn print_stats(db: &Db, commits: usize, mut plainly: impl FnMut() -> usize, clock: impl Fn() -> f64) {
    let mut best = [f64::INFINITY; 3];
    for _ in 0..STATS_TURNS {
        let started = clock();
        let rows = plainly();
        best[0] = best[0].min(clock() - started);
        for (slot, zone) in [(1, "UTC"), (2, "Asia/Tokyo")] {
            let started = clock();
            let counting = Counting::new(Scope::default(), zone.parse().unwrap(), std::sync::Arc::default());
            let stats = db.read(move |tx| stats::count(tx, &counting, By::Month)).await.unwrap();
            best[slot] = best[slot].min(clock() - started);
            assert_eq!(stats.total.commits + stats.total.merges, i64::try_from(commits).unwrap());
            assert!(slot != 1 || stats.rows.len() == rows);
        }
    }
    let [plain, utc, tokyo] = best;
    println!("plain SQL aggregate {plain:.3}, ours in UTC {utc:.3}, in Asia/Tokyo {tokyo:.3}");
    for (name, ours) in [("UTC", utc), ("Asia/Tokyo", tokyo)] {
        let ratio = ours / plain;
        println!(
            "{name} beside plain SQL: {ratio:.2} ×, at most {STATS_LIMIT}: {}",
            verdict(ratio <= STATS_LIMIT)
        );
    }
}

/// Copies the filled tables of a SQLite file.
fn copy(client: &mut postgres::Client, from: &Path) {
    let source = rusqlite::Connection::open(from).unwrap();
    for (table, columns) in [
        ("projects", "project_id, host, remote_id, path, name, first_seen_at, last_seen_at"),
        ("commit_roots", "project_id, sha"),
        (
            "commits",
            "project_id, branch_name, sha, author_name, author_email, committed_date_utc, additions, deletions",
        ),
    ] {
        use std::io::Write as _;
        let mut statement = source.prepare(&format!("SELECT {columns} FROM {table}")).unwrap();
        let width = statement.column_count();
        let mut rows = statement.query([]).unwrap();
        let mut writer = client.copy_in(&format!("COPY {table} ({columns}) FROM STDIN")).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let texts = (0..width).map(|column| match row.get_ref(column).unwrap() {
                rusqlite::types::ValueRef::Integer(number) => number.to_string(),
                value => value.as_str().unwrap().to_owned(),
            });
            writeln!(writer, "{}", texts.collect::<Vec<_>>().join("\t")).unwrap();
        }
        writer.finish().unwrap();
    }
    client.batch_execute("ANALYZE").unwrap();
}

fn fill(path: &Path, commits: usize) {
    let mut connection = rusqlite::Connection::open(path).unwrap();
    let transaction = connection.transaction().unwrap();
    for project in 0..50 {
        let row = (project, format!("team/p{project}"));
        transaction
            .execute("INSERT INTO projects (project_id, host, remote_id, path, name, first_seen_at, last_seen_at) VALUES (?1, 'h', ?1, ?2, ?2, '', '')", row)
            .unwrap();
        transaction
            .execute("INSERT INTO commit_roots VALUES (?1, ?2)", (project, format!("{project:040x}")))
            .unwrap();
    }
    let mut statement = transaction
        .prepare("INSERT INTO commits (project_id, branch_name, sha, author_name, author_email, committed_date_utc, additions, deletions) VALUES (?1, 'main', ?2, ?3, ?4, ?5, ?6, ?7)")
        .unwrap();
    for number in 0..commits {
        let sha = format!("{:040x}", (number as u128).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_0cc5));
        let author = number * 7 % 200;
        let date = format!(
            "{}-{:02}-{:02}T10:11:12.000Z",
            2015 + number % 10,
            number / 11 % 12 + 1,
            number / 131 % 28 + 1
        );
        let row = (
            i64::try_from(number * 50 / commits).unwrap(),
            sha,
            format!("Author {author}"),
            format!("author{author}@example.com"),
            date,
            i64::try_from(number % 97).unwrap(),
            i64::try_from(number % 31).unwrap(),
        );
        statement.execute(row).unwrap();
    }
    drop(statement);
    transaction.commit().unwrap();
}
