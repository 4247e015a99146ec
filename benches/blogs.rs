//! CPU and memory of checking 10,000 blogs: the program itself against bare loops with the same HTTP client, in one run.
//!
//! `cargo bench --bench blogs [-- BLOGS]`. Server and clients are processes of their own, so that each figure is of one
//! program alone; blogs are spread over 127.0.0.0/8, so politeness per host is on. "first": every feed has 35 entries
//! that nobody knows. "304": nothing changed. Ours is the whole command, from reading the config to closing the database.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "the table is the product; a benchmark may panic"
)]

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use quick_xml::events::Event;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use measure::{Figures, measure, report, report_children, run, verdict};

mod measure;

const ENTRIES: usize = 35;
const AT_ONCE: usize = 64;
const TURNS: usize = 5;
const BATCH: usize = 100;
const MEMORY_LIMIT_MIB: f64 = 64.0;
const RATIO_LIMIT: f64 = 2.0;

fn main() {
    let args = measure::args();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["serve"] => run(serve(Duration::ZERO)),
        ["serve", millis] => run(serve(Duration::from_millis(millis.parse().unwrap()))),
        ["ours", dir, now] => report_children(|| ours(Path::new(dir), now)),
        ["bare-first", dir, port, blogs] => {
            report(|| run(bare_first(Path::new(dir), port.parse().unwrap(), blogs.parse().unwrap())));
        }
        ["bare-304", dir, port, blogs] => {
            report(|| run(bare_304(Path::new(dir), port.parse().unwrap(), blogs.parse().unwrap())));
        }
        rest => compare(rest.first().map_or(10_000, |blogs| blogs.parse().unwrap())),
    }
}

/// Runs all variants in turn and prints the best turn of each.
fn compare(blogs: usize) {
    let server = measure::serve(&["serve"]);
    let port: u16 = server.ready.parse().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut best: [Option<Figures>; 4] = [None; 4];
    for turn in 0..TURNS {
        let dir = dir.path().join(turn.to_string());
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(dir.join("tsuzuki.toml"), config(port, blogs)).unwrap();
        let (at, port, count) = (dir.to_str().unwrap(), port.to_string(), blogs.to_string());
        let runs: [&[&str]; 4] = [
            &["bare-first", at, &port, &count],
            &["ours", at, "2026-01-15T00:00:00Z"],
            &["bare-304", at, &port, &count],
            &["ours", at, "2026-01-15T02:00:00Z"],
        ];
        for (slot, args) in runs.into_iter().enumerate() {
            let figures = measure(args);
            best[slot] = Some(best[slot].map_or(figures, |best| best.better(figures)));
        }
        check_database(&dir, blogs);
    }
    println!("{blogs} blogs, best of {TURNS} turns, per check");
    println!("{:<6} {:<5} {:>8} {:>8} {:>10}", "", "", "CPU µs", "wall µs", "VmHWM MiB");
    let each = 1e6 / blogs as f64;
    let best = best.map(Option::unwrap);
    for (name, pair) in ["first", "304"].into_iter().zip(best.chunks(2)) {
        for (who, figures) in ["bare", "ours"].into_iter().zip(pair) {
            let Figures { cpu, wall, peak } = figures;
            println!("{name:<6} {who:<5} {:>8.1} {:>8.1} {peak:>10.1}", cpu * each, wall * each);
        }
        let ratio = pair[1].cpu / pair[0].cpu;
        println!("{name:<6} ratio {ratio:>8.2}   at most {RATIO_LIMIT}: {}", verdict(ratio <= RATIO_LIMIT));
    }
    let peak = best[3].peak;
    println!(
        "304    peak  {peak:>8.1}   MiB, at most {MEMORY_LIMIT_MIB}: {}",
        verdict(peak <= MEMORY_LIMIT_MIB)
    );
}

/// Every check has its row, every entry is known, nothing failed.
fn check_database(dir: &Path, blogs: usize) {
    let db = rusqlite::Connection::open(dir.join("tsuzuki.db")).unwrap();
    let count = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap() as usize;
    assert_eq!(count("SELECT count(*) FROM check_history"), blogs * 2);
    assert_eq!(count("SELECT count(*) FROM check_history WHERE skipped = 1 AND http_status = 304"), blogs);
    assert_eq!(count("SELECT count(*) FROM check_history WHERE error_message IS NOT NULL"), 0);
    assert_eq!(count("SELECT count(*) FROM blog_entries"), blogs * ENTRIES);
}

fn config(port: u16, blogs: usize) -> String {
    let mut text = String::from(
        "[[job]]\nname = \"blogs\"\nkind = \"blogs\"\nallow_private = [\"127.0.0.0/8\"]\nblog = [\n",
    );
    for blog in 0..blogs {
        let host = host(blog);
        let _ = writeln!(
            text,
            "  {{ id = \"blog-{blog}\", url = \"http://{host}:{port}/\", feed = \"http://{host}:{port}/feed.xml\" }},"
        );
    }
    text.push_str("]\n");
    text
}

fn host(blog: usize) -> String {
    let number = blog + 257;
    format!("127.{}.{}.{}", number >> 16, number >> 8 & 255, number & 255)
}

/// The program itself.
fn ours(dir: &Path, now: &str) {
    let config = dir.join("tsuzuki.toml");
    let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_tsuzuki"));
    program.args(["-q", "--now", now, "--config", config.to_str().unwrap(), "run-due", "--no-deliver"]);
    assert!(program.status().unwrap().success());
}

/// Answers 304 if the version matches, on every loopback address, and a feed otherwise. After a request for `/publish`
/// every twentieth blog has one more entry. Every answer takes `delay`, and `/asked` returns their number.
async fn serve(delay: Duration) {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    static PUBLISHED: AtomicUsize = AtomicUsize::new(0);
    let listener = tokio::net::TcpListener::bind("0.0.0.0:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap().port());
    loop {
        let Ok((mut stream, _)) = listener.accept().await else { continue };
        tokio::spawn(async move {
            let address = stream.local_addr().unwrap();
            let base = format!("http://{address}");
            let SocketAddr::V4(address) = address else { return };
            let is_busy = address.ip().octets()[3].is_multiple_of(20);
            let mut bytes = [0; 4096];
            while let Ok(read) = stream.read(&mut bytes).await
                && read > 0
            {
                let request = String::from_utf8_lossy(&bytes[..read]);
                if request.starts_with("GET /publish ") {
                    PUBLISHED.fetch_add(1, Ordering::SeqCst);
                }
                if request.starts_with("GET /asked ") {
                    let asked = ASKED.load(Ordering::SeqCst).to_string();
                    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{asked}", asked.len());
                    let _ = stream.write_all(answer.as_bytes()).await;
                    continue;
                }
                ASKED.fetch_add(1, Ordering::SeqCst);
                if !delay.is_zero() {
                    tokio::time::sleep(delay).await;
                }
                let new = if is_busy { PUBLISHED.load(Ordering::SeqCst) } else { 0 };
                let tag = format!("\"v{}\"", new + 1);
                let answer = if request.contains(&tag) {
                    format!("HTTP/1.1 304 Not Modified\r\netag: {tag}\r\n\r\n")
                } else {
                    let feed = feed(&base, new);
                    format!(
                        "HTTP/1.1 200 OK\r\netag: {tag}\r\ncontent-type: application/rss+xml\r\ncontent-length: {}\r\n\r\n{feed}",
                        feed.len()
                    )
                };
                if stream.write_all(answer.as_bytes()).await.is_err() {
                    return;
                }
            }
        });
    }
}

fn feed(base: &str, new: usize) -> String {
    let mut feed = format!(
        "<?xml version=\"1.0\"?><rss version=\"2.0\"><channel><title>A blog</title><link>{base}/</link>"
    );
    for number in (new..new + ENTRIES).rev() {
        let _ = write!(
            feed,
            "<item><guid>{base}/post-{number}</guid><title>Post number {number} &amp; its title</title>\
             <link>{base}/post-{number}</link><pubDate>Wed, 14 Jan 2026 {:02}:{:02}:00 GMT</pubDate>\
             <description>&lt;p&gt;Some words about what this post says, enough to fill two lines of a page that \
             somebody might read, with &lt;b&gt;markup&lt;/b&gt; in it.&lt;/p&gt;</description></item>",
            number / 60,
            number % 60
        );
    }
    feed.push_str("</channel></rss>");
    feed
}

#[allow(clippy::disallowed_methods, reason = "the bare client is what we are compared with")]
fn client() -> reqwest::Client {
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(reqwest::redirect::Policy::none())
        .timeout(Duration::from_secs(60))
        .pool_max_idle_per_host(0)
        .no_proxy()
        .build()
        .unwrap()
}

fn bare_db(dir: &Path) -> rusqlite::Connection {
    let db = rusqlite::Connection::open(dir.join("bare.db")).unwrap();
    db.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         CREATE TABLE IF NOT EXISTS check_history (
           id INTEGER PRIMARY KEY AUTOINCREMENT, blog_id TEXT NOT NULL, checked_at TEXT NOT NULL,
           http_status INTEGER, skipped INTEGER NOT NULL DEFAULT 0, changed INTEGER NOT NULL DEFAULT 0,
           url_fingerprint TEXT, error_message TEXT);
         CREATE INDEX IF NOT EXISTS idx_check_history_blog_time ON check_history (blog_id, checked_at DESC);
         CREATE INDEX IF NOT EXISTS idx_check_history_changed ON check_history (changed) WHERE changed = 1;
         CREATE TABLE IF NOT EXISTS entries (
           blog_id TEXT NOT NULL, key TEXT NOT NULL, url TEXT, title TEXT, published_at TEXT,
           PRIMARY KEY (blog_id, key));",
    )
    .unwrap();
    db
}

const HISTORY: &str =
    "INSERT INTO check_history (blog_id, checked_at, http_status, skipped) VALUES (?1, ?2, ?3, ?4)";

async fn bare_304(dir: &Path, port: u16, blogs: usize) {
    let (client, mut db) = (client(), bare_db(dir));
    let answers = stream::iter(0..blogs).map(|blog| {
        let url = format!("http://{}:{port}/feed.xml", host(blog));
        let request = client.get(url).header("if-none-match", "\"v1\"");
        async move { (blog, request.send().await.unwrap().status().as_u16()) }
    });
    let mut batches = answers.buffer_unordered(AT_ONCE).chunks(BATCH);
    while let Some(batch) = batches.next().await {
        let tx = db.transaction().unwrap();
        for (blog, status) in batch {
            assert_eq!(status, 304);
            let mut insert = tx.prepare_cached(HISTORY).unwrap();
            insert.execute((format!("blog-{blog}"), "2026-01-15T02:00:00.000Z", status, 1)).unwrap();
        }
        tx.commit().unwrap();
    }
}

async fn bare_first(dir: &Path, port: u16, blogs: usize) {
    let (client, mut db) = (client(), bare_db(dir));
    let answers = stream::iter(0..blogs).map(|blog| {
        let request = client.get(format!("http://{}:{port}/feed.xml", host(blog)));
        async move { (blog, parse(&request.send().await.unwrap().text().await.unwrap())) }
    });
    let mut batches = answers.buffer_unordered(AT_ONCE).chunks(BATCH);
    while let Some(batch) = batches.next().await {
        let tx = db.transaction().unwrap();
        for (blog, entries) in batch {
            assert_eq!(entries.len(), ENTRIES);
            let id = format!("blog-{blog}");
            tx.prepare_cached(HISTORY).unwrap().execute((&id, "2026-01-15T00:00:00.000Z", 200, 0)).unwrap();
            let mut insert =
                tx.prepare_cached("INSERT OR IGNORE INTO entries VALUES (?1, ?2, ?3, ?4, ?5)").unwrap();
            for [guid, title, link, date] in &entries {
                insert.execute((&id, guid, link, title, date)).unwrap();
            }
        }
        tx.commit().unwrap();
    }
}

/// The minimum that a feed reader does: guid, title, link and date of every item.
fn parse(text: &str) -> Vec<[String; 4]> {
    let mut reader = quick_xml::Reader::from_str(text);
    let (mut entries, mut item, mut field) = (Vec::new(), None::<[String; 4]>, None);
    loop {
        match reader.read_event().unwrap() {
            Event::Start(tag) => match tag.name().as_ref() {
                "item" => item = Some(Default::default()),
                "guid" => field = Some(0),
                "title" => field = Some(1),
                "link" => field = Some(2),
                "pubDate" => field = Some(3),
                _ => field = None,
            },
            Event::Text(words) => {
                if let (Some(item), Some(field)) = (&mut item, field) {
                    item[field].push_str(&words.xml10_content());
                }
            }
            Event::End(tag) => {
                field = None;
                if tag.name().as_ref() == "item" {
                    entries.extend(item.take());
                }
            }
            Event::Eof => return entries,
            _ => {}
        }
    }
}
