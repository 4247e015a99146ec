//! The response time of each page of a pipeline, over real sockets, with a large generated database.
//!
//! `cargo bench --bench pages` fills 100,000 items, checks, changes and books, a million commits and a million messages; a number
//! behind `--` multiplies all of them. With `TSUZUKI_TEST_POSTGRES` set, PostgreSQL is measured, too.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tsuzuki::app::App;
use tsuzuki::config::{self, Env};
use tsuzuki::db::{Db, DbUrl, Dialect, Open};
use tsuzuki::text::Language;
use tsuzuki::time::Clock;
use tsuzuki::web::{self, Pages};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const CONFIG: &str = "[web]\nlisten = \"127.0.0.1:0\"\n\
    [llm.m]\nkind = \"gemini\"\napi_key = \"k\"\nscreen_model = \"s\"\nsummary_model = \"s\"\n\
    [[job]]\nname = \"watch\"\nkind = \"blogs\"\nblog = [{ id = \"site1\", url = \"https://a.example\" }, { id = \"site2\", url = \"https://b.example\" }]\n\
    [[job]]\nname = \"ministry\"\nkind = \"press\"\nfeed = \"https://f.example/rss\"\nllm = \"m\"\n\
    [[job]]\nname = \"shelf\"\nkind = \"books\"\nqueries = [\"x\"]\n\
    [[job]]\nname = \"code\"\nkind = \"commits\"\ngitlab = \"https://gitlab.example\"\ntoken = \"t\"\nprojects = [\"team/p1\"]\n";

/// Pages with their parameters.
const PATHS: [&str; 26] = [
    "/",
    "/commits",
    "/commits?year=all",
    "/commits?year=all&person=Author%203&show=commits&scale=log",
    "/commits?project=2",
    "/commits?format=csv",
    "/changes",
    "/changes?days=all&text=nothing",
    "/changes?days=all&before=500",
    "/press",
    "/press?state=pending",
    "/press?text=nothing",
    "/press?job=ministry&before=2026-01-01T00:00:00.000Z/500",
    "/books",
    "/books?sent=no&job=shelf",
    "/books?text=nothing",
    "/deliveries",
    "/deliveries?state=failed",
    "/quotas",
    "/search?q=nothing+like+it",
    "/job/shelf",
    "/job/ministry",
    "/why/item/500",
    "/why/blog/site1",
    "/feeds/job/ministry.atom",
    "/api/v1/overview",
];

/// Requests of each page; the median is printed.
const TIMES: usize = 7;

fn main() -> Result<()> {
    let factor: f64 = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(1.0);
    let runtime = tokio::runtime::Runtime::new()?;
    let dir = tempfile::tempdir()?;
    let file = DbUrl::File(dir.path().join("pages.db"));
    runtime.block_on(measure("SQLite", file, Dialect::Sqlite, factor))?;
    if let Ok(url) = std::env::var("TSUZUKI_TEST_POSTGRES") {
        let schema = format!("pages_{}", std::process::id());
        postgres::Client::connect(&url, postgres::NoTls)?
            .batch_execute(&format!("CREATE SCHEMA {schema}"))?;
        let joint = if url.contains('?') { '&' } else { '?' };
        let place = DbUrl::Server(format!("{url}{joint}options=-csearch_path%3D{schema}"));
        let measured = runtime.block_on(measure("PostgreSQL", place, Dialect::Postgres, factor));
        let mut client = postgres::Client::connect(&url, postgres::NoTls)?;
        client.batch_execute(&format!("DROP SCHEMA {schema} CASCADE"))?;
        measured?;
    }
    Ok(())
}

async fn measure(name: &str, place: DbUrl, dialect: Dialect, factor: f64) -> Result<()> {
    let db = Db::open(place.clone(), Open::Create, Clock::system()).await?;
    let started = Instant::now();
    let text = fill(dialect, factor);
    tokio::task::spawn_blocking(move || execute(&place, &text)).await??;
    let mut out = std::io::stdout();
    writeln!(out, "{name}: filled in {:.1} s", started.elapsed().as_secs_f64())?;
    let config = config::parse(CONFIG, "bench.toml".as_ref(), tsuzuki::app::kinds(), &Env::of([]))
        .map_err(|problems| format!("{problems:?}"))?;
    let app = App::new(&config, db.clone()).map_err(|problems| format!("{problems:?}"))?;
    let finders = watch::Sender::new(Arc::new(app.finder(&config, 100)));
    // The daemon does this in the background.
    let started = Instant::now();
    for pipeline in tsuzuki::app::PIPELINES {
        (pipeline.refresh)(&config, &db, &Clock::system()).await?;
    }
    writeln!(out, "{name}: counted for the pages in {:.1} s", started.elapsed().as_secs_f64())?;
    let pages = Pages::new(db, Language::En).with_dashboard(finders.subscribe());
    let bound = web::bind(&app.env.web, &pages).await?;
    let (address, stop) = (bound.addresses()[0], CancellationToken::new());
    let stopping = stop.clone();
    let serving = tokio::spawn(async move { bound.serve(&stopping).await });
    for path in PATHS {
        let (first, _) = ask(address, path).await?;
        let mut took = Vec::new();
        let mut bytes = 0;
        for _ in 0..TIMES {
            let (one, length) = ask(address, path).await?;
            took.push(one);
            bytes = length;
        }
        took.sort();
        let (first, median) = (millis(first), millis(took[TIMES / 2]));
        writeln!(out, "  {first:>8.1} ms first {median:>8.1} ms then {bytes:>8} bytes  {path}")?;
    }
    stop.cancel();
    serving.await?;
    Ok(())
}

fn millis(took: Duration) -> f64 {
    took.as_secs_f64() * 1_000.0
}

async fn ask(address: SocketAddr, path: &str) -> Result<(Duration, usize)> {
    let started = Instant::now();
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await?;
    if !bytes.starts_with(b"HTTP/1.1 200") {
        return Err(format!("{path}: {}", String::from_utf8_lossy(&bytes[..bytes.len().min(300)])).into());
    }
    Ok((started.elapsed(), bytes.len()))
}

fn execute(place: &DbUrl, text: &str) -> std::result::Result<(), String> {
    match place {
        DbUrl::File(path) => {
            let connection = rusqlite::Connection::open(path).map_err(|error| error.to_string())?;
            let _ = connection.execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -200000");
            connection.execute_batch(text).map_err(|error| error.to_string())
        }
        DbUrl::Server(url) => {
            let mut client =
                postgres::Client::connect(url, postgres::NoTls).map_err(|error| error.to_string())?;
            client.batch_execute(text).map_err(|error| error.to_string())
        }
        DbUrl::Memory => Err("a database in memory has one owner".to_owned()),
    }
}

/// Ten years of work of 40 people in five projects with three disjoint branches each, and the other tables.
fn fill(dialect: Dialect, factor: f64) -> String {
    // Statistics identify commits by the first half of their SHAs.
    let sha = |number: &str| match dialect {
        Dialect::Sqlite => format!("printf('%08x%032d', {number}, 0)"),
        Dialect::Postgres => format!("rpad(lpad(to_hex({number}), 8, '0'), 40, '0')"),
    };
    let pad = |number: &str, width: u32| match dialect {
        Dialect::Sqlite => format!("printf('%0{width}d', {number})"),
        Dialect::Postgres => format!("lpad(CAST({number} AS TEXT), {width}, '0')"),
    };
    let text = |number: &str| format!("CAST({number} AS TEXT)");
    let rows = |count: f64| {
        format!(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count:.0}) SELECT "
        )
    };
    let (hundred, million) = (rows(100_000.0 * factor), rows(1_000_000.0 * factor));
    let date = format!(
        "'20' || {} || '-' || {} || '-' || {} || 'T' || {} || ':' || {} || ':00.000Z'",
        pad("16 + i % 10", 2),
        pad("1 + i / 10 % 12", 2),
        pad("1 + i / 120 % 28", 2),
        pad("i / 3360 % 24", 2),
        pad("i / 80640 % 60", 2)
    );
    let entry = "'{\"entries\":[{\"key\":\"k\",\"title\":\"An entry about something\",\"url\":\"https://a.example/e\"}],\"detector\":\"feed\"}'";
    [
        format!("INSERT INTO projects (project_id, host, remote_id, path, name, first_seen_at, last_seen_at) {} i, 'h', i, 'team/p' || {}, 'p', '', '' FROM n", rows(5.0), text("i")),
        format!("INSERT INTO branches (project_id, branch_name, complete_head, job_name) {} 1 + i / 3, 'b' || {}, 'x', 'code' FROM n", rows(14.0), text("i % 3")),
        format!("INSERT INTO commits (project_id, branch_name, sha, author_name, author_email, committed_date_utc, additions, deletions, title) {million} 1 + i % 5, 'b' || {}, {}, 'Author ' || {}, 'a' || {} || '@x', {date}, i % 90, i % 30, 'Do something' FROM n", text("i / 5 % 3"), sha("i"), text("i % 40"), text("i % 40")),
        format!("INSERT INTO items (url, title, published_at, status, reason, retry_count, created_at, last_checked_at, job_name, summary) {hundred} 'https://f.example/' || {0}, 'A press release about ' || {0}, {date}, CASE WHEN i % 50 = 0 THEN 1 WHEN i % 1000 = 1 THEN 2 ELSE 3 END, i % 7, 0, {date}, {date}, 'ministry', 'A summary of two hundred letters that says what the release is about, for whom it is, and since when.' FROM n", text("i")),
        format!("INSERT INTO check_history (blog_id, checked_at, http_status, skipped, changed) {hundred} 'site' || {}, {date}, 200, i % 2, 0 FROM n", text("1 + i % 2")),
        format!("INSERT INTO blog_state (blog_id, last_check_at, job_name, decided_by) {} 'site' || {}, '2026-01-01T00:00:00.000Z', 'watch', 'feed' FROM n", rows(2.0), text("i")),
        format!("INSERT INTO blog_changes (job_name, blog_id, found_at, code, detail, digest) {hundred} 'watch', 'site' || {}, {date}, 'new', {entry}, 'digest:' || {} FROM n", text("1 + i % 2"), text("i")),
        format!("INSERT INTO books (isbn13, title, authors_json, source, first_seen_at, last_seen_at, last_delivered_at) {hundred} '978' || {} || '0', 'A book about ' || {}, '[\"Somebody\"]', 'google_books', {date}, {date}, CASE WHEN i % 10 > 0 THEN {date} END FROM n", pad("i", 9), text("i")),
        format!("INSERT INTO job_books (job_name, isbn13, first_seen_at, is_waiting, last_sent_at) {hundred} 'shelf', '978' || {} || '0', {date}, CASE WHEN i % 10 = 0 THEN 1 ELSE 0 END, CASE WHEN i % 10 > 0 THEN {date} END FROM n", pad("i", 9)),
        format!("INSERT INTO outbox (key, job_name, channel, recipient, topic, subject, payload, state, created_at, not_before, settled_at) {million} 'k' || {0}, 'watch', 'hook', 'r', 'blogs', 'digest:' || {0}, '{{}}', 'sent', {date}, {date}, {date} FROM n", text("i")),
        // PostgreSQL does this by itself after a while; SQLite never does, and plans without statistics.
        match dialect {
            Dialect::Sqlite => String::new(),
            Dialect::Postgres => "ANALYZE".to_owned(),
        },
    ]
    .join(";\n")
}
