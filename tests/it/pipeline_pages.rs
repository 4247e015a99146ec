//! The pages of the pipelines over real sockets: both languages, hostile titles, empty databases, paging, downloads, decisions.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use tsuzuki::app::App;
use tsuzuki::config::{self, Env};
use tsuzuki::db::Tx;
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
pub(crate) const HOSTILE: &str = "</title><script>alert(1)</script>\u{202e}{{ 7*7 }}\"'&";
pub(crate) const NOW: &str = "2026-01-14T20:00:00.000Z";

/// Pages that are served as long as this value lives.
pub(crate) struct Site {
    address: SocketAddr,
    _stop: DropGuard,
}

impl Site {
    pub(crate) async fn serve(fixture: &Fixture) -> Self {
        Self::serve_with(fixture, CONFIG).await
    }

    /// The same with another config, in a file of its own.
    pub(crate) async fn serve_with(fixture: &Fixture, text: &str) -> Self {
        let path = fixture.dir.path().join("tsuzuki.toml");
        std::fs::write(&path, text).unwrap();
        let config = config::parse(text, &path, tsuzuki::app::kinds(), &Env::of([])).unwrap();
        let app = App::new(&config, fixture.db.clone()).unwrap();
        let finders = watch::Sender::new(Arc::new(app.finder(&config, 100)));
        let pages = Pages::new(fixture.db.clone(), Language::Ja).with_dashboard(finders.subscribe());
        let bound = web::bind(&app.env.web, &pages).await.unwrap();
        // No daemon beside the pages: a job that is to be started is told so at once.
        drop(bound.take_requests());
        let (address, stop) = (bound.addresses()[0], CancellationToken::new());
        let stopping = stop.clone();
        tokio::spawn(async move { bound.serve(&stopping).await });
        Self { address, _stop: stop.drop_guard() }
    }

    pub(crate) async fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> (u16, String, Vec<u8>) {
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
        (status, head.to_ascii_lowercase(), bytes[at + 4..].to_vec())
    }

    /// A page that is there, in a language; what every page keeps to is checked.
    pub(crate) async fn read(&self, path: &str, language: &str) -> String {
        let (status, head, body) =
            self.ask("GET", path, &format!("Accept-Language: {language}\r\n"), "").await;
        let html = String::from_utf8(body).unwrap();
        assert_eq!(status, 200, "{path}: {html}");
        assert!(head.contains("content-security-policy: default-src 'none'"), "{head}");
        assert!(!html.contains("<script>") && !html.contains(" style=") && !html.contains("<img"), "{html}");
        assert!(!html.contains("{{ ") || html.contains("{{ 7*7 }}"), "a template was not filled: {html}");
        html
    }

    pub(crate) async fn act(&self, about: &str, verb: &str) -> u16 {
        let form = "Content-Type: application/x-www-form-urlencoded\r\nSec-Fetch-Site: same-origin\r\n";
        let body = format!("about={about}&verb={verb}&next=%2Fchanges");
        self.ask("POST", "/act", form, &body).await.0
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

/// Everything that stands between `before` and the next point on a page, however many pages there are.
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

on_both_databases! {
    async fn an_empty_database_has_pages_that_say_what_to_do_first(fixture) {
        let site = Site::serve(&fixture).await;
        for (path, english, japanese) in [
            ("/commits", "No commits yet", "コミットはまだありません"),
            ("/changes", "Nothing new in this time", "この期間の新着はありません"),
            ("/press", "No items yet", "記事はまだありません"),
            ("/books", "No books yet", "書籍はまだありません"),
        ] {
            let html = site.read(path, "en").await;
            assert!(html.contains(english) && html.contains("<code>tsuzuki "), "{html}");
            assert!(site.read(path, "ja").await.contains(japanese));
        }
        assert_eq!(site.ask("GET", "/nothing", "", "").await.0, 404);
    }

    async fn every_page_is_there_in_both_languages_and_what_others_wrote_is_inert(fixture) {
        fixture.db.write(|tx| {
            add_project(tx)?;
            add_item(tx, 1, 3, 0, Some(HOSTILE))?;
            add_item(tx, 2, 1, 1, None)?;
            add_change(tx, 1, true)?;
            add_book(tx, 1, true)?;
            Ok(())
        }).await.unwrap();
        let site = Site::serve(&fixture).await;
        for (path, english, japanese) in [
            ("/commits", ["Per person", "Weekday and hour (Asia/Tokyo)", "retry what failed"], ["メンバー別", "曜日と時刻（Asia/Tokyo）", "失敗分を再試行する"]),
            ("/changes", ["What was new", "needs approval", "found in feed"], ["新着", "確認待ち", "フィードで検出"]),
            ("/press", ["worth a post", "put off: not worth a post", "look at it again"], ["投稿対象", "延期：投稿する価値なし", "もう一度確認する"]),
            ("/books", ["Found last", "青木 遥", "not sent yet"], ["新しく見つかった順", "青木 遥", "未送信"]),
        ] {
            for (language, words) in [("en", english), ("ja", japanese)] {
                let html = site.read(path, language).await;
                for word in words {
                    assert!(html.contains(word), "`{word}` on {path}:\n{html}");
                }
                assert!(html.contains("&#60;script&#62;alert(1)") || html.contains("&lt;script&gt;alert(1)"), "{path}: {html}");
                assert!(!html.contains("alert(1)</script>") && !html.contains("href=\"javascript:"), "{path}: {html}");
            }
        }
    }

    async fn commits_are_counted_by_year_and_person_and_can_be_taken_away_but_no_address_is_shown(fixture) {
        fixture.db.write(add_project).await.unwrap();
        let site = Site::serve(&fixture).await;
        let html = site.read("/commits", "en").await;
        for word in ["Months and days begin as in <bdi>Asia/Tokyo</bdi>", "1 commit without line counts", "1 by author", "2026-01"] {
            assert!(html.contains(word), "`{word}`:\n{html}");
        }
        assert!(!html.contains("secret.example"), "{html}");
        // The second commit was made in 2026 of Tokyo.
        let csv = |query: &'static str| {
            let site = &site;
            async move {
                let (status, head, body) = site.ask("GET", &format!("/commits?format=csv&{query}"), "Accept-Language: en\r\n", "").await;
                assert_eq!(status, 200);
                assert!(head.contains("attachment; filename=\"commits.csv\""), "{head}");
                String::from_utf8(body).unwrap()
            }
        };
        let of_2026 = csv("year=2026").await;
        assert!(of_2026.starts_with("\u{feff}name,2026-01,2026-02,") && of_2026.contains(",501,0,"), "{of_2026}");
        assert!(of_2026.contains("Bob,1,0,"), "{of_2026}");
        let of_2025 = csv("year=2025").await;
        assert!(of_2025.contains(",11,11\r\n") && !of_2025.contains("Bob"), "{of_2025}");
        let bob = csv("year=all&person=Bob&show=commits").await;
        assert_eq!(bob, "\u{feff}name,2025-12,2026-01,total\r\nBob,0,1,1\r\n");
        let (_, head, workbook) = site.ask("GET", "/commits?format=xlsx", "", "").await;
        assert!(head.contains("spreadsheetml") && workbook.starts_with(b"PK"), "{head}");
        assert_eq!(site.ask("GET", "/commits?format=exe", "", "").await.0, 404);
        assert!(html.contains("<textarea id=\"tsv\" readonly") && html.contains("name\t2026-01\t"), "{html}");
    }

    async fn listings_go_on_where_they_ended(fixture) {
        fixture.db.write(|tx| {
            for number in 1..=75 {
                add_item(tx, number, if number % 3 == 0 { 1 } else { 3 }, 0, None)?;
                add_change(tx, number, false)?;
                add_book(tx, number, number % 2 == 0)?;
            }
            Ok(())
        }).await.unwrap();
        let site = Site::serve(&fixture).await;
        for (path, before, count) in [
            ("/press", " item ", 75),
            ("/press?job=ministry", " item ", 75),
            ("/press?state=deferred", " item ", 25),
            ("/press?state=processed&job=ministry", " item ", 50),
            ("/press?text=item%203", " item ", 11),
            ("/changes", " change ", 75),
            ("/changes?job=watch&text=change%207", " change ", 7),
            ("/changes?blog=site", " change ", 75),
            ("/books", " book ", 75),
            ("/books?job=shelf", " book ", 75),
            ("/books?sent=no", " book ", 38),
            ("/books?sent=no&job=shelf", " book ", 38),
            ("/books?sent=yes", " book ", 37),
        ] {
            let found = read_all(&site, path, before).await;
            assert!(is_each_once(found.clone(), count), "{path}: {} of {count}: {found:?}", found.len());
        }
        assert!(site.read("/changes?text=nothing%20like%20it", "en").await.contains("Nothing of the sort"));
    }

    async fn a_change_that_is_held_is_approved_or_skipped_on_the_page(fixture) {
        fixture.db.write(|tx| {
            add_change(tx, 1, true)?;
            add_change(tx, 2, true)
        }).await.unwrap();
        let site = Site::serve(&fixture).await;
        let html = site.read("/changes", "en").await;
        assert!(html.contains("value=\"change:1\"") && html.contains("same as `tsuzuki change approve 1`"), "{html}");
        assert_eq!((site.act("change%3A1", "approve").await, site.act("change%3A2", "skip").await), (303, 303));
        let states = fixture.db.read(|tx| tx.list(sql!("SELECT state FROM outbox ORDER BY id"), params![], |row| row.get::<String>(0))).await.unwrap();
        assert_eq!(states, ["ready", "skipped"]);
        let html = site.read("/changes", "en").await;
        assert!(!html.contains("value=\"change:1\""), "it was decided: {html}");
    }
}
