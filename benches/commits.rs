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

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use futures_util::stream::{self, StreamExt as _};
use tokio_util::sync::CancellationToken;
use tsuzuki::app::{self, App};
use tsuzuki::commits::Source;
use tsuzuki::commits::bulk::{Bulk, Ended};
use tsuzuki::commits::stats::{self, By};
use tsuzuki::commits::store::reading::Scope;
use tsuzuki::config::{self, Env};
use tsuzuki::db::{Db, Open, Place};
use tsuzuki::demo::gitlab::GitLab;
use tsuzuki::engine::Progress;
use tsuzuki::engine::run::decide::Sharing;
use tsuzuki::time::Clock;

const AT_ONCE: usize = 4;
const TURNS: usize = 3;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<usize>().unwrap();
    match words.as_slice() {
        ["serve", projects, commits] => run(serve(number(projects), number(commits))),
        [what @ ("parse" | "insert" | "bare" | "ours"), url, projects, commits] => {
            let (projects, commits) = (number(projects), number(commits));
            let dir = tempfile::tempdir().unwrap();
            let before = cpu_secs();
            let started = Instant::now();
            match *what {
                "parse" => run(parse(url, projects, commits)),
                "insert" => run(insert(url, projects, commits, dir.path())),
                "bare" => run(bare(url, projects, commits, dir.path())),
                _ => run(ours(url, projects, commits, dir.path())),
            }
            let each = (projects * commits) as f64 / 1e6;
            println!(
                "{} {} {}",
                (cpu_secs() - before) / each,
                started.elapsed().as_secs_f64() / each,
                peak_mib()
            );
        }
        rest => {
            let size = |index: usize, usual: usize| rest.get(index).map_or(usual, |text| number(text));
            compare(size(0, 10), size(1, 5_000));
            run(compare_stats(size(2, 200_000)));
        }
    }
}

fn run(work: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(work);
}

fn compare(projects: usize, commits: usize) {
    let (mut server, url) = start_server(projects, commits);
    println!("{projects} projects of {commits} commits, best of {TURNS} turns");
    println!("{:<36} {:>8} {:>8} {:>9}", "µs a commit", "CPU", "wall", "VmHWM MiB");
    let mut best = [[f64::INFINITY; 3]; 4];
    let names = ["parse", "insert", "bare", "ours"];
    for _ in 0..TURNS {
        for (figures, name) in best.iter_mut().zip(names) {
            for (figure, measured) in figures.iter_mut().zip(measure(name, &url, projects, commits)) {
                *figure = figure.min(measured);
            }
        }
    }
    let titles = ["JSON parse only", "SQLite insert only", "bare fetch + JSON + batched insert", "tsuzuki"];
    for ([cpu, wall, memory], title) in best.iter().zip(titles) {
        println!("{title:<36} {cpu:>8.2} {wall:>8.2} {memory:>9.1}");
    }
    let [bare, ours] = [best[2], best[3]];
    println!("rate of the bare loop reached: {:.0} % (goal: 50 %)", bare[1] / ours[1] * 100.0);
    println!("CPU beside the bare loop: {:.2} ×", ours[0] / bare[0]);
    let mut memory =
        |commits| measure("ours", &start_at(&mut server, projects, commits), projects, commits)[2];
    let (small, large) = (memory(commits / 4), memory(commits));
    println!("memory with a quarter of the commits and with all: {small:.1} and {large:.1} MiB");
    server.kill().unwrap();
    server.wait().unwrap();
}

fn start_at(server: &mut Child, projects: usize, commits: usize) -> String {
    server.kill().unwrap();
    server.wait().unwrap();
    let (next, url) = start_server(projects, commits);
    *server = next;
    url
}

fn start_server(projects: usize, commits: usize) -> (Child, String) {
    let mut server = Command::new(std::env::current_exe().unwrap())
        .args(["serve", &projects.to_string(), &commits.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut url = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut url).unwrap();
    (server, url.trim().to_owned())
}

fn measure(what: &str, url: &str, projects: usize, commits: usize) -> [f64; 3] {
    let output = Command::new(std::env::current_exe().unwrap())
        .args([what, url, &projects.to_string(), &commits.to_string()])
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let figures: Vec<f64> = text.split_whitespace().map(|figure| figure.parse().unwrap()).collect();
    figures.try_into().unwrap()
}

async fn serve(projects: usize, commits: usize) {
    let gitlab = GitLab::start().await.unwrap();
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

/// The same page again and again.
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

/// One page that was parsed before, stored again and again under new SHAs, one transaction each.
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
    let text = format!(
        "[[job]]\nname = \"code\"\nkind = \"commits\"\nallow_private = [\"127.0.0.1\"]\ngitlab = \"{url}\"\n\
         group = \"team\"\nconcurrency = {AT_ONCE}\n"
    );
    let config = config::parse(&text, Path::new("bench.toml"), app::kinds(), &Env::of_process()).unwrap();
    let db = Db::open(Place::File(dir.join("tsuzuki.db")), Open::Create, Clock::system()).await.unwrap();
    let parts = App::new(&config, db.clone()).unwrap().parts;
    let source = Arc::new(Source::read(&config.jobs[0]).unwrap());
    let bulk = Bulk::new(parts, vec![source], Progress::default(), CancellationToken::new());
    let Ended::Worked(outcome) = bulk.start(None, Sharing::Alone).await.unwrap() else {
        panic!("nothing to do")
    };
    assert_eq!(
        outcome.run.new_commits_count,
        i64::try_from(projects * commits).unwrap(),
        "{:?}",
        outcome.problems
    );
    drop(bulk);
    db.close().await;
}

/// The statistics of a large database beside the plain aggregate that gives the same figures.
async fn compare_stats(commits: usize) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("stats.db");
    Db::open(Place::File(path.clone()), Open::Create, Clock::system()).await.unwrap().close().await;
    fill(&path, commits);
    let db = Db::open(Place::File(path.clone()), Open::Existing, Clock::system()).await.unwrap();
    let plain = rusqlite::Connection::open(&path).unwrap();
    let (mut ours, mut theirs) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..TURNS {
        let started = Instant::now();
        let mut statement = plain
            .prepare(
                "SELECT author_name, substr(committed_date_utc, 1, 7), COUNT(*), SUM(additions), SUM(deletions)
                 FROM commits GROUP BY 1, 2 ORDER BY 2, 1",
            )
            .unwrap();
        let rows = statement.query_map([], |row| row.get::<_, String>(0)).unwrap().count();
        theirs = theirs.min(started.elapsed().as_secs_f64());
        let started = Instant::now();
        let zone = "UTC".parse().unwrap();
        let stats = db.read(move |tx| stats::count(tx, &Scope::default(), By::Month, &zone)).await.unwrap();
        ours = ours.min(started.elapsed().as_secs_f64());
        assert_eq!(stats.rows.len(), rows);
        assert_eq!(stats.commits, i64::try_from(commits).unwrap());
    }
    println!("\nstatistics over {commits} commits: {ours:.3} s, plain SQL aggregate {theirs:.3} s");
    println!("beside plain SQL: {:.2} × (goal: 1.5 ×)", ours / theirs);
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

fn cpu_secs() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let after_name = stat.rsplit(')').next().unwrap();
    let ticks: u64 =
        after_name.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    ticks as f64 / 100.0
}

fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}
