//! The pages of a config with one job of each kind, over real sockets; and rows that strangers wrote, to fill them with.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use tsuzuki::app::App;
use tsuzuki::config::{self, Env};
use tsuzuki::db::Tx;
use tsuzuki::engine::daemon::StartRequests;
use tsuzuki::text::Language;
use tsuzuki::web::{self, Pages};
use tsuzuki::{params, sql};

use crate::databases::Fixture;

pub(crate) const CONFIG: &str = "[web]\nlisten = \"127.0.0.1:0\"\n\
    [llm.m]\nkind = \"gemini\"\napi_key = \"k\"\nscreen_model = \"s\"\nsummary_model = \"s\"\n\
    [[job]]\nname = \"watch\"\nkind = \"blogs\"\nblog = [{ id = \"site\", url = \"https://site.example\" }]\n\
    [[job]]\nname = \"ministry\"\nkind = \"press\"\nfeed = \"https://f.example/rss\"\nllm = \"m\"\n\
    [[job]]\nname = \"shelf\"\nkind = \"books\"\nqueries = [\"x\"]\n\
    [[job]]\nname = \"code\"\nkind = \"commits\"\ngitlab = \"https://gitlab.example\"\ntoken = \"t\"\nprojects = [\"team/app\"]\n\
    exclude_authors = [\"*[bot]*\"]\n";
/// Possible text from outside: markup, a character that reverses the text, and template syntax.
pub(crate) const HOSTILE: &str =
    "</title><script>alert(1)</script><img src=x onerror=alert(2)>\u{202e}{{ 7*7 }}{% raw %}\"'&";
pub(crate) const FORM: &str =
    "Content-Type: application/x-www-form-urlencoded\r\nSec-Fetch-Site: same-origin\r\n";
pub(crate) const NOW: &str = "2026-01-14T20:00:00.000Z";

/// Pages that are served as long as this value lives.
pub(crate) struct Site {
    pub(crate) app: App,
    /// The requests of readers to a daemon.
    pub(crate) requests: Option<StartRequests>,
    address: SocketAddr,
    _stop: DropGuard,
}

/// An HTTP answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

impl Site {
    pub(crate) async fn serve(fixture: &Fixture) -> Self {
        Self::serve_with(fixture, CONFIG).await
    }

    /// The same with another config, in its own file.
    pub(crate) async fn serve_with(fixture: &Fixture, text: &str) -> Self {
        let path = fixture.dir.path().join("tsuzuki.toml");
        std::fs::write(&path, text).unwrap();
        let config = config::parse(text, &path, tsuzuki::app::kinds(), &Env::of([])).unwrap();
        let app = App::new(&config, fixture.db.clone()).unwrap();
        let finders = watch::Sender::new(Arc::new(app.finder(&config, 100)));
        let pages = Pages::new(fixture.db.clone(), Language::Ja).with_dashboard(finders.subscribe());
        let bound = web::bind(&app.env.web, &pages).await.unwrap();
        let (address, requests, stop) =
            (bound.addresses()[0], bound.take_requests(), CancellationToken::new());
        let stopping = stop.clone();
        tokio::spawn(async move { bound.serve(&stopping).await });
        Self { app, requests, address, _stop: stop.drop_guard() }
    }

    pub(crate) async fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.unwrap();
        let at = bytes.windows(4).position(|end| end == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(bytes[..at].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head, body: bytes[at + 4..].to_vec() }
    }

    pub(crate) async fn get(&self, path: &str, language: &str) -> Answer {
        self.ask("GET", path, &format!("Accept-Language: {language}\r\n"), "").await
    }

    /// A page in a language; checks what every page has to fulfil.
    pub(crate) async fn read(&self, path: &str, language: &str) -> String {
        let page = self.get(path, language).await;
        let html = page.text();
        assert_eq!(page.status, 200, "{path}: {html}");
        assert!(html.contains(&format!("<html lang=\"{language}\"")), "{path}: {html}");
        let policy = page.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        html.to_owned()
    }
}

pub(crate) fn add_project(tx: &mut Tx<'_>) -> tsuzuki::db::Result<()> {
    tx.execute(sql!("INSERT INTO projects (project_id, host, remote_id, path, name, first_seen_at, last_seen_at) VALUES (7, 'https://gitlab.example', 7, ?1, 'app', ?2, ?2)"), params![HOSTILE, NOW])?;
    tx.execute(sql!("INSERT INTO branches (project_id, branch_name) VALUES (7, ?1)"), params![HOSTILE])?;
    for (number, author, at, lines, missing) in [
        (1, HOSTILE, "2025-12-31T14:59:59.000Z", 10, 0),
        (2, HOSTILE, "2025-12-31T15:00:00.000Z", 500, 0),
        (3, "Bob", "2026-01-05T00:00:00.000Z", 0, 1),
        (4, "renovate[bot]", "2026-01-06T00:00:00.000Z", 7, 0),
    ] {
        let (sha, email) = (format!("{number:040x}"), format!("{number}@secret.example"));
        tx.execute(
            sql!("INSERT INTO commits (project_id, branch_name, sha, author_name, author_email, committed_date_utc, additions, deletions, stats_missing, title) VALUES (7, ?1, ?2, ?3, ?4, ?5, ?6, 1, ?7, 't')"),
            params![HOSTILE, sha, author, if author == HOSTILE { "h@secret.example" } else { &email }, at, lines, missing],
        )?;
    }
    tx.execute(sql!("INSERT INTO bulk_collection_runs (run_id, started_at_utc, completed_at_utc, status, total_targets, completed_count, success_count, failed_count, job_name) VALUES ('550e8400-e29b-41d4-a716-446655440000', ?1, ?1, 'completed', 2, 1, 1, 1, 'code')"), params![NOW])?;
    tx.execute(sql!("INSERT INTO bulk_collection_results (run_id, project_id, branch_name, status, error_message) VALUES ('550e8400-e29b-41d4-a716-446655440000', 7, ?1, 'failed', ?1)"), params![HOSTILE])?;
    Ok(())
}

pub(crate) fn add_item(
    tx: &mut Tx<'_>,
    number: i64,
    status: i64,
    reason: i64,
    summary: Option<&str>,
) -> tsuzuki::db::Result<()> {
    tx.execute(
        sql!("INSERT INTO items (url, title, published_at, status, reason, retry_count, created_at, last_checked_at, job_name, summary) VALUES (?1, ?2, ?3, ?4, ?5, 0, ?3, ?3, 'ministry', ?6)"),
        params![format!("https://f.example/{number}"), format!("{HOSTILE} item {number}."), NOW, status, reason, summary],
    )?;
    Ok(())
}

pub(crate) fn add_book(tx: &mut Tx<'_>, number: i64, is_sent: bool) -> tsuzuki::db::Result<String> {
    let body = format!("978{number:09}");
    let sum: u32 = body
        .chars()
        .enumerate()
        .map(|(at, digit)| digit.to_digit(10).unwrap() * if at % 2 == 0 { 1 } else { 3 })
        .sum();
    let isbn13 = format!("{body}{}", (10 - sum % 10) % 10);
    tx.execute(
        sql!("INSERT INTO books (isbn13, title, authors_json, source, first_seen_at, last_seen_at, last_delivered_at) VALUES (?1, ?2, '[\"青木 遥\"]', 'google_books', ?3, ?3, ?4)"),
        params![isbn13, format!("{HOSTILE} book {number}."), NOW, is_sent.then_some(NOW)],
    )?;
    tx.execute(
        sql!(
            "INSERT INTO job_books (job_name, isbn13, first_seen_at, is_waiting) VALUES ('shelf', ?1, ?2, ?3)"
        ),
        params![isbn13, NOW, i64::from(!is_sent)],
    )?;
    Ok(isbn13)
}

pub(crate) fn add_change(tx: &mut Tx<'_>, number: i64, is_held: bool) -> tsuzuki::db::Result<()> {
    let entry = serde_json::json!({ "key": "k", "title": format!("{HOSTILE} change {number}."), "url": "javascript:alert(1)" });
    let detail = serde_json::json!({ "entries": [entry], "detector": "feed" }).to_string();
    let digest = format!("digest:{number}");
    tx.execute(
        sql!("INSERT INTO blog_changes (job_name, blog_id, found_at, code, held, detail, digest) VALUES ('watch', 'site', ?1, 'new', ?2, ?3, ?4)"),
        params![NOW, i64::from(is_held), detail, digest],
    )?;
    tx.execute(
        sql!("INSERT INTO outbox (key, job_name, channel, recipient, topic, subject, payload, state, created_at, not_before) VALUES (?1, 'watch', 'hook', 'r', 'blogs', ?1, '{}', ?2, ?3, ?3)"),
        params![digest, if is_held { "held" } else { "sent" }, NOW],
    )?;
    Ok(())
}

pub(crate) fn add_message(tx: &mut Tx<'_>, number: i64, state: &str) -> tsuzuki::db::Result<()> {
    let payload = serde_json::json!({ "status": format!("{HOSTILE} message {number}."), "visibility": "unlisted", "language": "ja" });
    tx.execute(
        sql!("INSERT INTO outbox (key, job_name, channel, recipient, topic, subject, payload, state, created_at, not_before) VALUES (?1, 'ministry', 'post', 'r@example.org', 't', ?1, ?2, ?3, ?4, ?4)"),
        params![format!("message:{number}"), payload.to_string(), state, NOW],
    )?;
    Ok(())
}

/// Everything between `before` and the next full stop on a page, over all pages.
pub(crate) async fn read_all(site: &Site, path: &str, before: &str) -> Vec<String> {
    let (mut found, mut next) = (Vec::new(), path.to_owned());
    for _ in 0..20 {
        let html = site.read(&next, "en").await;
        let pieces = html.split(before).skip(1).filter_map(|rest| rest.split_once('.'));
        found.extend(pieces.map(|(number, _)| number.to_owned()).filter(|number| number.len() < 5));
        let Some((_, rest)) = html.split_once("rel=\"next\" href=\"") else { break };
        let href = rest.split_once('"').unwrap().0.replace("&#38;", "&").replace("&amp;", "&");
        next = format!("{}{href}", path.split('?').next().unwrap());
    }
    found
}

pub(crate) fn is_each_once(mut found: Vec<String>, count: usize) -> bool {
    found.sort();
    found.dedup();
    found.len() == count
}
