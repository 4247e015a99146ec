//! The dashboard over real sockets: both languages, and what its buttons do, on both databases.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tsuzuki::channel::outbox::{self, NewMessage, Provenance, State};
use tsuzuki::engine::events::RunEvent;
use tsuzuki::engine::{Progress, RunOutcome, Runner, daemon, store as jobs};
use tsuzuki::id::JobName;
use tsuzuki::ledger::cursor::{self, Cursor};
use tsuzuki::ledger::{Subject, event, pause};
use tsuzuki::phrase::Phrase;

use crate::databases::Fixture;
use crate::site::{FORM, HOSTILE, Site};

const CONFIG: &str = r#"
[web]
listen = "127.0.0.1:0"
[channel.hook]
kind = "webhook"
url = "https://hook.example/"
[[job]]
name = "feeds"
kind = "blogs"
deliver = ["hook"]
blog = [{ id = "a", url = "https://a.example" }]
[[job]]
name = "reading"
kind = "books"
queries = ["x"]
"#;

/// Clicks a button; returns the message on the page that follows, in English.
async fn act(site: &Site, form: &str) -> String {
    let answer = site.ask("POST", "/act", FORM, form).await;
    assert_eq!((answer.status, answer.header("location")), (303, Some("/")), "{form}: {}", answer.text());
    let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap();
    let page = site.ask("GET", "/", &format!("Accept-Language: en\r\nCookie: {cookie}\r\n"), "").await;
    assert!(page.header("set-cookie").unwrap().starts_with("flash=;"), "it is said once: {}", page.head);
    let (_, message) =
        page.text().split_once("<p class=\"flash\" role=\"status\">").expect("what was done is said");
    plain(message.split_once("</p>").unwrap().0)
}

/// The words of a page without its markup.
fn plain(html: &str) -> String {
    let mut text = String::new();
    let mut is_tag = false;
    for c in html.chars() {
        match c {
            '<' => is_tag = true,
            '>' => is_tag = false,
            c if !is_tag => text.push(c),
            _ => {}
        }
    }
    text
}

/// A job that ran with hostile words, a position, and a message that waits for a person.
async fn fill(fixture: &Fixture) -> i64 {
    fixture
        .db
        .write(|tx| {
            let (now, job): (_, JobName) = (tx.now(), "feeds".parse().unwrap());
            let message = Phrase::verbatim(HOSTILE);
            jobs::mark_begun(tx, "feeds", now)?;
            jobs::mark_ended(tx, "feeds", RunOutcome::Failed, &message, None, now)?;
            let run = RunEvent { code: RunOutcome::Failed, message, began_at: Some(now), new_count: 2 };
            event::record(tx, Some(&job), &Subject::job("feeds"), &run, now)?;
            event::add(tx, Some(&job), &Subject::new("blog", HOSTILE), HOSTILE, &serde_json::json!({}), now)?;
            cursor::add(
                tx,
                &Cursor {
                    job_name: "reading".to_owned(),
                    query_set_hash: "0123456789abcdef".to_owned(),
                    start_index: 120,
                    is_exhausted: true,
                    last_updated_at: now,
                },
            )?;
            let message = NewMessage {
                job: &job,
                channel: "hook",
                recipient: HOSTILE,
                topic: "test",
                subject: HOSTILE,
                generation: 0,
                payload: "{}",
                hold: true,
                not_before: None,
                found: Provenance::Since(Some(now)),
            };
            outbox::add(tx, &message, now)?;
            Ok(outbox::list(tx, &outbox::DeliveryFilter::default(), 1)?[0].id)
        })
        .await
        .unwrap()
}

on_both_databases! {
    async fn every_page_answers_in_both_languages(fixture) {
        let id = fill(&fixture).await;
        let site = Site::serve_with(&fixture, CONFIG).await;
        let known = ["/", "/?show=failing", "/job/feeds", "/job/reading", "/why/job/feeds", &format!("/why/delivery/{id}"), "/why/channel/hook"]
            .map(str::to_owned);
        for path in known {
            for language in ["en", "ja"] {
                let html = site.read(&path, language).await;
                let words = plain(html.split_once("<main").unwrap().1);
                if language == "en" {
                    let foreign: String = words.replace("日本語", "").chars().filter(|c| ('\u{3040}'..='\u{9fff}').contains(c)).collect();
                    assert_eq!(foreign, "", "{path} in English");
                } else {
                    for word in ["Needs you", "Run now", "Overview", "Newest", "Show as table", "last run", "Keyboard", "Command line"] {
                        assert!(!words.contains(word), "{word} on {path} in Japanese");
                    }
                }
            }
        }
        let overview = plain(site.get("/", "en").await.text());
        assert!(overview.contains("2 need you"), "{overview}");
        assert!(plain(site.get("/", "ja").await.text()).contains("要対応 2 件"));
    }

    async fn buttons_do_what_the_commands_do_and_say_so(fixture) {
        let id = fill(&fixture).await;
        let site = Site::serve_with(&fixture, CONFIG).await;
        assert_eq!(act(&site, "about=job:feeds&verb=pause&next=/").await, "feeds is paused until it is resumed");
        let now = fixture.clock.now();
        let paused = || fixture.db.read(move |tx| pause::find(tx, &Subject::job("feeds"), now));
        assert!(paused().await.unwrap().is_some());
        assert_eq!(act(&site, "about=job:feeds&verb=resume&next=/").await, "feeds runs again");
        assert!(paused().await.unwrap().is_none());

        let state = || fixture.db.read(move |tx| Ok(outbox::find(tx, id)?.unwrap().state));
        assert_eq!(state().await.unwrap(), State::Held);
        assert_eq!(act(&site, &format!("about=delivery:{id}&verb=approve&next=/")).await, format!("Delivery {id}: queued"));
        assert_eq!(state().await.unwrap(), State::Ready);
        let refused = act(&site, &format!("about=delivery:{id}&verb=approve&next=/")).await;
        assert!(refused.contains("only a held message needs approval"), "{refused}");
        assert_eq!(act(&site, &format!("about=delivery:{id}&verb=skip&next=https://evil.example/")).await, format!("Delivery {id}: discarded"));
        assert_eq!(state().await.unwrap(), State::Skipped);

        assert_eq!(act(&site, "about=job:nobody&verb=pause&next=/").await, "job:nobody: nothing there to pause");
        let several = act(&site, "about=job:feeds&about=job:reading&verb=resume&next=/").await;
        assert_eq!(several, "feeds was not paused; reading was not paused");
        assert_eq!(site.ask("POST", "/act", FORM, "about=job:feeds&verb=explode").await.status, 404);
        assert_eq!(site.ask("GET", "/act?about=job:feeds&verb=pause", "", "").await.status, 405);
    }

    async fn what_forgets_something_asks_first(fixture) {
        fill(&fixture).await;
        let site = Site::serve_with(&fixture, CONFIG).await;
        let count = || fixture.db.read(|tx| Ok(cursor::list(tx, Some("reading"))?.len()));
        let asked = site.ask("POST", "/act", &format!("{FORM}Accept-Language: en\r\n"), "about=job:reading&verb=reset&next=/").await;
        assert_eq!((asked.status, count().await.unwrap()), (200, 1), "nothing is forgotten yet");
        let words = plain(asked.text());
        assert!(words.contains("forgets position 120 (all collected)") && words.contains("Yes, do it"), "{words}");
        assert_eq!(act(&site, "about=job:reading&verb=reset&yes=1&next=/").await, "Reset 1 cursor(s) for job: reading");
        assert_eq!(count().await.unwrap(), 0);
    }

    async fn a_job_is_run_by_the_daemon_of_the_process_and_by_nobody_else(fixture) {
        let mut site = Site::serve_with(&fixture, CONFIG).await;
        let requests = site.requests.take().unwrap();
        let (_jobs, list) = watch::channel(Arc::new(site.app.jobs.clone()));
        let runner = Runner::new(fixture.db.clone(), Progress::default());
        // Nothing is scheduled, so everything that runs was requested.
        let now = fixture.clock.now();
        fixture.db.write(move |tx| {
            for job in ["feeds", "reading"] {
                jobs::mark_begun(tx, job, now)?;
                jobs::mark_ended(tx, job, RunOutcome::Success, &Phrase::verbatim("fine"), None, now)?;
            }
            Ok(())
        }).await.unwrap();
        let stop = CancellationToken::new();
        let stopping = stop.clone();
        let daemon = tokio::spawn(async move { daemon::serve(&runner, list, requests, &stopping).await });
        assert_eq!(act(&site, "about=job:feeds&verb=run&next=/").await, "feeds was started");
        let runs = || fixture.db.read(|tx| event::list_about(tx, &Subject::job("feeds"), 10));
        tokio::time::timeout(Duration::from_secs(60), async {
            while runs().await.unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
        }).await.expect("it ran, and wrote down how it ended");
        stop.cancel();
        daemon.await.unwrap();
        let refused = act(&site, "about=job:feeds&verb=run&next=/").await;
        assert!(refused.contains("no daemon runs in this process"), "{refused}");
    }
}

on_both_databases! {
    async fn language_and_theme_are_remembered_and_the_first_load_is_small(fixture) {
        let site = Site::serve_with(&fixture, CONFIG).await;
        let chosen = site.ask("POST", "/preferences", FORM, "lang=en&theme=dark&next=//evil.example").await;
        assert_eq!((chosen.status, chosen.header("location")), (303, Some("/")));
        let cookies: Vec<&str> =
            chosen.head.lines().filter_map(|line| line.strip_prefix("set-cookie: ")?.split(';').next()).collect();
        assert_eq!(cookies, ["lang=en", "theme=dark"]);
        let page = site.ask("GET", "/", "Cookie: lang=en; theme=dark\r\nAccept-Language: ja\r\n", "").await;
        assert!(page.text().contains("<html lang=\"en\" data-theme=\"dark\">"), "{}", page.text());
        let mut total = page.body.len();
        let assets: Vec<&str> = page.text().split('"').filter(|part| part.starts_with("/assets/")).collect();
        assert_eq!(assets.len(), 3, "{assets:?}");
        for path in assets {
            let asset = site.ask("GET", path, "Accept-Encoding: gzip\r\n", "").await;
            assert_eq!((asset.status, asset.header("content-encoding")), (200, Some("gzip")), "{path}");
            assert!(asset.header("cache-control").unwrap().contains("immutable"), "{path}");
            total += asset.body.len();
            let unpacked = site.ask("GET", path, "", "").await;
            assert!(unpacked.header("content-encoding").is_none() && unpacked.body.len() > asset.body.len());
        }
        assert!(total < 100_000, "{total} bytes");
        assert_eq!(site.ask("GET", "/assets/style-0.css", "", "").await.status, 404);
    }
}
