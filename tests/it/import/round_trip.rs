//! After an import, counts and keys are equal, a second import adds nothing, and an export returns the content of the
//! source.

use std::collections::BTreeSet;

use tokio_util::sync::CancellationToken;
use tsuzuki::commits::author::Emails;
use tsuzuki::demo::google_books::isbn;
use tsuzuki::engine::table::TableFilter;
use tsuzuki::export::{self, Format, RowWriter, Style};
use tsuzuki::import::gitlab_analyzer::Home;
use tsuzuki::import::{self, blog_watcher, dre, gitlab_analyzer, mic_bot};
use tsuzuki::sql;

use super::{BLOG_WATCHER, DRE, GITLAB_ANALYZER, MIC_BOT, dry, everything, figures, options, rows, source};
use crate::databases::Fixture;

async fn exported(fixture: &Fixture, what: &str) -> Vec<serde_json::Value> {
    let mut writer = RowWriter::new(Vec::new(), Format::Ndjson, Style::default());
    let stop = CancellationToken::new();
    export::write(&fixture.db, table(what), &TableFilter::default(), &mut writer, &stop).await.unwrap();
    let text = String::from_utf8(writer.into_inner()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Imports three times: dry, for real, again; returns the figures of each. The dry one must change nothing.
async fn three_times<F>(fixture: &Fixture, import: impl Fn(import::Options) -> F) -> [Vec<String>; 3]
where
    F: Future<Output = tsuzuki::db::Result<import::Report>>,
{
    let before = everything(&fixture.db).await;
    let dry = figures(&import(dry()).await.unwrap());
    assert_eq!(everything(&fixture.db).await, before, "a dry run changes nothing");
    let first = figures(&import(options()).await.unwrap());
    let after = everything(&fixture.db).await;
    let again = figures(&import(options()).await.unwrap());
    assert_eq!(everything(&fixture.db).await, after, "a second import changes nothing");
    assert_eq!(dry, first, "a dry run says what the real one does");
    [dry, first, again]
}

on_both_databases! {
    async fn items_of_mic_bot_arrive_with_their_keys(fixture) {
        // The last two are times as Go writes them, with its monotonic clock, and as SQLite does.
        let file = source(fixture.dir.path(), "mic.db", &format!("{MIC_BOT}
            INSERT INTO items (url, title, published_at, status, reason, retry_count, created_at, last_checked_at) VALUES
            ('https://a.example/1', '一', '2025-06-01T09:00:00+09:00', 3, 0, 0, '2025-06-01T00:00:00Z', '2025-06-01T00:05:00Z'),
            ('https://a.example/二', '=二', '2025-06-02 09:00:00 +0900 JST', 1, 2, 3, '2025-06-02 09:00:00.5 +0900 JST m=+1.5', '2025-06-02 00:10:00'),
            ('https://A.example', ' three
             lines ', '2025-06-03 00:00:00', 2, NULL, 1, '2025-06-03 00:00:00', '2025-06-03 00:00:00')"));
        let job = || "mic".parse().unwrap();
        let [_, first, again] = three_times(&fixture, |options| {
            mic_bot::import(&fixture.db, file.clone(), job(), Some("https://a.example/feed".into()), options)
        }).await;
        assert_eq!((first, again), (vec!["items 3/3/0/0".to_owned()], vec!["items 3/0/3/0".to_owned()]));
        assert_eq!(
            rows(&fixture.db, sql!("SELECT url, title, published_at, status, reason, retry_count, created_at, last_checked_at, job_name FROM items ORDER BY id"), 9).await,
            [
                "https://a.example/1 | 一 | 2025-06-01T00:00:00.000Z | 3 | 0 | 0 | 2025-06-01T00:00:00.000Z | 2025-06-01T00:05:00.000Z | mic",
                "https://a.example/%E4%BA%8C | =二 | 2025-06-02T00:00:00.000Z | 1 | 2 | 3 | 2025-06-02T00:00:00.500Z | 2025-06-02T00:10:00.000Z | mic",
                "https://a.example/ | three lines | 2025-06-03T00:00:00.000Z | 2 | - | 1 | 2025-06-03T00:00:00.000Z | 2025-06-03T00:00:00.000Z | mic",
            ]
        );
        let items = exported(&fixture, "items").await;
        let shown: Vec<_> = items.iter().map(|item| (item["url"].as_str().unwrap(), item["status"].as_str().unwrap(), item["retry_count"].as_i64().unwrap())).collect();
        assert_eq!(shown, [("https://a.example/1", "processed", 0), ("https://a.example/%E4%BA%8C", "deferred", 3), ("https://a.example/", "pending", 1)]);
    }

    async fn all_eight_tables_of_dre_arrive(fixture) {
        let books: String = (0..6).map(|n| format!("INSERT INTO books VALUES ('{}', 'Book {n}', '[\"A\", \"B\"]', NULL, '2025', 'text', NULL, '[{{\"label\":\"l\",\"url\":\"https://b.example/{n}\"}}]', 'google_books', '2025-01-0{}T00:00:00.000Z', '2025-02-01T00:00:00.000Z', {});", isbn(n), n + 1, if n < 3 { "'2025-03-01T00:00:00.000Z'" } else { "NULL" })).collect();
        let (a, b) = (isbn(0), isbn(1));
        let file = source(fixture.dir.path(), "app.db", &format!("{DRE} {books}
            INSERT INTO deliveries VALUES (7, 'shelf', '2025-03-01T00:00:00.000Z', '[\"{a}\"]'), (9, 'other', '2025-03-02T00:00:00.000Z', '[\"{b}\"]');
            INSERT INTO delivery_items (delivery_id, job_name, isbn13, delivered_at) VALUES (7, 'shelf', '{a}', '2025-03-01T00:00:00.000Z'), (9, 'other', '{b}', '2025-03-02T00:00:00.000Z'), (99, 'other', '{a}', '2025-03-03T00:00:00Z');
            INSERT INTO job_state VALUES ('shelf', '2025-03-01T00:00:00Z', '2025-03-01T00:00:00Z'), ('other', NULL, '2025-03-02T00:00:00Z');
            INSERT INTO api_usage VALUES ('2025-03-01', 'google_books', 42), ('2025-03-02', 'google_books', 100);
            INSERT INTO prompts VALUES (3, '{a}', 'Tell me', '2025-03-01T00:00:00Z'), (4, '{b}', 'Tell me more', '2025-03-02T00:00:00Z');
            INSERT INTO prompt_tokens VALUES ('0123456789abcdef0123456789abcdef', 4, '2026-04-01T00:00:00Z', '2025-03-02T00:00:00Z');
            INSERT INTO collect_cursor VALUES ('shelf', '{h}', 120, 1, '2025-03-01 00:00:00'), ('other', '{h}', 40, 0, '2025-03-02 00:00:00')", h = "ab".repeat(32)));
        let [_, first, again] = three_times(&fixture, |options| {
            dre::import(&fixture.db, file.clone(), Some("shelf".parse().unwrap()), BTreeSet::new(), BTreeSet::new(), options)
        }).await;
        assert_eq!(first, ["books 6/6/0/0", "deliveries 2/2/0/0", "delivery_items 3/2/0/1", "job_state 2/2/0/0", "api_usage 2/2/0/0", "collect_cursor 2/2/0/0", "prompts 2/2/0/0", "prompt_tokens 1/1/0/0"]);
        assert_eq!(again[0], "books 6/0/6/0");
        assert!(again.iter().all(|line| line.contains("/0/")), "{again:?}");
        assert_eq!(
            rows(&fixture.db, sql!("SELECT i.job_name, i.isbn13, i.delivered_at, d.isbn13_list_json FROM delivery_items i JOIN deliveries d ON d.id = i.delivery_id ORDER BY i.id"), 4).await,
            [format!("shelf | {a} | 2025-03-01T00:00:00.000Z | [\"{a}\"]"), format!("other | {b} | 2025-03-02T00:00:00.000Z | [\"{b}\"]")]
        );
        // Book 2 was sent before `delivery_items` existed; 3, 4 and 5 never were; book 0 counts as sent by `other`,
        // although its delivery is missing.
        assert_eq!(
            rows(&fixture.db, sql!("SELECT job_name, isbn13, is_waiting, last_sent_at FROM job_books ORDER BY job_name, isbn13"), 4).await,
            [
                format!("other | {a} | 0 | 2025-03-03T00:00:00.000Z"),
                format!("other | {b} | 0 | 2025-03-02T00:00:00.000Z"),
                format!("shelf | {a} | 0 | 2025-03-01T00:00:00.000Z"),
                format!("shelf | {} | 0 | 2025-03-01T00:00:00.000Z", isbn(2)),
                format!("shelf | {} | 1 | -", isbn(3)),
                format!("shelf | {} | 1 | -", isbn(4)),
                format!("shelf | {} | 1 | -", isbn(5)),
            ]
        );
        assert_eq!(
            rows(&fixture.db, sql!("SELECT job_name, last_success_at, last_run_at, last_outcome FROM job_state ORDER BY job_name"), 4).await,
            ["other | - | 2025-03-02T00:00:00.000Z | failed", "shelf | 2025-03-01T00:00:00.000Z | 2025-03-01T00:00:00.000Z | success"]
        );
        assert_eq!(
            rows(&fixture.db, sql!("SELECT t.token, p.prompt_text, t.expires_at FROM prompt_tokens t JOIN prompts p ON p.id = t.prompt_id"), 3).await,
            ["0123456789abcdef0123456789abcdef | Tell me more | 2026-04-01T00:00:00.000Z"]
        );
        assert_eq!(
            rows(&fixture.db, sql!("SELECT job_name, start_index, is_exhausted, last_updated_at FROM collect_cursor ORDER BY job_name"), 4).await,
            ["other | 40 | 0 | 2025-03-02T00:00:00.000Z", "shelf | 120 | 1 | 2025-03-01T00:00:00.000Z"]
        );
        let books = exported(&fixture, "books").await;
        assert_eq!(books.len(), 6);
        assert_eq!((&books[0]["isbn13"], &books[0]["authors"][1], &books[0]["links"][0]["url"]), (&a.clone().into(), &"B".into(), &"https://b.example/0".into()));
        let deliveries = exported(&fixture, "deliveries").await;
        assert_eq!(deliveries.iter().map(|row| row["isbn13_list"][0].as_str().unwrap()).collect::<Vec<_>>(), [a.as_str(), b.as_str()]);
    }

    async fn both_spellings_of_blog_watcher_arrive(fixture) {
        let other = BLOG_WATCHER.replace("last_check_at", "last_checked_at").replace("last_change_at TEXT", "last_changed_at TEXT, consecutive_errors INTEGER");
        for (number, schema) in [BLOG_WATCHER, &other].into_iter().enumerate() {
            let file = source(fixture.dir.path(), &format!("state{number}.db"), &format!("{schema}
                INSERT INTO blog_state (blog_id, etag, feed_url, recent_entry_keys, url_fingerprint, {}) VALUES
                ('blog{number}', '\"e\"', 'https://a.example/feed', '[\"k1\", \"https://a.example/2\"]', 'ff', '2025-06-01T00:00:00+00:00', '2025-05-01T00:00:00+00:00');
                INSERT INTO check_history (blog_id, checked_at, http_status, skipped, changed, url_fingerprint, error_message) VALUES
                ('blog{number}', '2025-05-31T00:00:00+00:00', 200, 0, 1, 'ff', NULL), ('blog{number}', '2025-06-01T00:00:00+00:00', 500, 0, 0, NULL, 'boom')",
                if number == 0 { "last_check_at, last_change_at" } else { "last_checked_at, last_changed_at" }));
            let [_, first, again] = three_times(&fixture, |options| {
                blog_watcher::import(&fixture.db, file.clone(), "blogs".parse().unwrap(), options)
            }).await;
            assert_eq!(first, ["blog_state 1/1/0/0", "check_history 2/2/0/0"]);
            assert_eq!(again, ["blog_state 1/0/1/0", "check_history 2/0/2/0"]);
        }
        let states = rows(&fixture.db, sql!("SELECT etag, feed_url, recent_entry_keys, last_check_at, last_change_at, last_success_at, job_name FROM blog_state ORDER BY blog_id"), 7).await;
        assert_eq!(states[0], "\"e\" | https://a.example/feed | [\"k1\",\"https://a.example/2\"] | 2025-06-01T00:00:00.000Z | 2025-05-01T00:00:00.000Z | 2025-05-31T00:00:00.000Z | blogs");
        assert_eq!(states[0], states[1]);
        assert_eq!(
            rows(&fixture.db, sql!("SELECT http_status, skipped, changed, url_fingerprint, error_message FROM check_history WHERE blog_id = 'blog1' ORDER BY checked_at"), 5).await,
            ["200 | 0 | 1 | ff | -", "500 | 0 | 0 | - | boom"]
        );
    }

    async fn projects_commits_and_runs_of_gitlab_analyzer_arrive(fixture) {
        let commits: String = (0..1234).map(|n| format!("INSERT INTO commits VALUES ({}, 'main', '{:040x}', 'Ann', 'Ann@example.com', '2025-01-01T00:00:{:02}+00:00', {n}, 1);", 5 + n % 2, n, n % 60)).collect();
        let (done, running) = ("550e8400-e29b-41d4-a716-446655440000", "550e8400-e29b-41d4-a716-446655440001");
        let file = source(fixture.dir.path(), "gitlab.db", &format!("{GITLAB_ANALYZER} {commits}
            INSERT INTO projects VALUES (5, 'app', 'team/app');
            INSERT INTO bulk_collection_runs VALUES ('{done}', '2025-01-01T00:00:00Z', '2025-01-01T01:00:00Z', 'completed', 3, 3, 1, 2), ('{running}', '2025-01-02T00:00:00Z', NULL, 'running', 2, 1, 0, 1);
            INSERT INTO bulk_collection_results VALUES ('{done}', 5, 'main', 'success', 10, NULL, '2025-01-01T00:10:00Z'), ('{done}', 6, 'main', 'success', 0, NULL, '2025-01-01T00:20:00Z'), ('{done}', 6, 'dev', 'failed', NULL, 'HTTP 404', '2025-01-01T00:30:00Z'), ('{running}', 5, 'main', 'success', 1, NULL, '2025-01-02T00:10:00Z'), ('{running}', 6, 'main', 'pending', NULL, NULL, NULL)"));
        let home = Home { job: Some("code".parse().unwrap()), host: "git.example".into(), emails: Emails::Hidden, can_go_on: true };
        let [_, first, again] = three_times(&fixture, |options| {
            gitlab_analyzer::import(&fixture.db, file.clone(), home.clone(), options)
        }).await;
        assert_eq!(first, ["projects 1/1/0/0", "commits 1234/1234/0/0", "bulk_collection_runs 2/2/0/0", "bulk_collection_results 5/5/0/0"]);
        assert_eq!(again, ["projects 1/0/1/0", "commits 1234/0/1234/0", "bulk_collection_runs 2/0/2/0", "bulk_collection_results 5/0/5/0"]);
        assert_eq!(
            rows(&fixture.db, sql!("SELECT project_id, host, remote_id, path FROM projects ORDER BY project_id"), 4).await,
            ["5 | git.example | 5 | team/app", "6 | git.example | 6 | project-6"]
        );
        assert_eq!(
            rows(&fixture.db, sql!("SELECT run_id, status, total_targets, completed_count, failed_count, success_count, told_at FROM bulk_collection_runs ORDER BY run_id"), 7).await,
            [format!("{done} | completed | 3 | 2 | 1 | 2 | 2025-01-01T01:00:00.000Z"), format!("{running} | running | 2 | 1 | 0 | 1 | -")],
            "completed_count no longer counts failures"
        );
        let exported = exported(&fixture, "commits").await;
        let shas: BTreeSet<&str> = exported.iter().map(|commit| commit["sha"].as_str().unwrap()).collect();
        assert_eq!((exported.len(), shas.len()), (1234, 1234));
        assert!(!exported.iter().any(|commit| commit.to_string().contains('@') || commit.to_string().contains("sha256:")), "addresses are never exported");
        let hidden = rows(&fixture.db, sql!("SELECT DISTINCT author_email FROM commits"), 1).await;
        assert_eq!(hidden, [tsuzuki::commits::author::fingerprint("ann@example.com")]);
        assert_eq!(rows(&fixture.db, sql!("SELECT project_id, branch_name FROM branches ORDER BY project_id"), 2).await, ["5 | main", "6 | main"]);
    }
}

fn table(name: &str) -> &'static tsuzuki::engine::Table {
    tsuzuki::app::tables().find(|table| table.name == name).unwrap()
}
