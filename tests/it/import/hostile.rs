//! Broken, foreign or hostile files: valid rows are imported, others are rejected with a reason, and the file is not
//! changed.

use std::collections::BTreeSet;

use tokio_util::sync::CancellationToken;
use tsuzuki::commits::author::Emails;
use tsuzuki::import::gitlab_analyzer::{self, Home};
use tsuzuki::import::{Options, Report, blog_watcher, dre, mic_bot};

use super::{BLOG_WATCHER, DRE, GITLAB_ANALYZER, MIC_BOT, everything, figures, options, rows, source};

/// The reasons for which rows of a table were refused, in alphabetical order.
fn reasons(report: &Report, table: &str) -> Vec<String> {
    let found = report.tables.iter().find(|report| report.table == table).unwrap();
    let mut reasons: Vec<String> =
        found.reasons.iter().map(|reason| format!("{} {}", reason.count, reason.reason)).collect();
    reasons.sort();
    reasons
}

fn home() -> Home {
    Home { job: None, host: "git.example".into(), emails: Emails::Plain, can_go_on: false }
}

on_both_databases! {
    async fn bad_items_are_refused_one_by_one_with_reasons(fixture) {
        // A column of SQLite accepts any type, whatever it was declared as.
        let t = "'2025-01-01T00:00:00Z'";
        let row = |values: String| format!("INSERT INTO items (url, title, published_at, status, reason, retry_count, created_at, last_checked_at) VALUES ({values});");
        let mut sql = MIC_BOT.to_owned();
        for values in [
            format!("'https://a.example/good', 't', {t}, 0, NULL, 0, {t}, {t}"),
            format!("'https://a.example/good-digits', 't', {t}, '3', '0', '2', 1735689600, 1735689600.5"),
            format!("'https://a.example/long', '{}', {t}, 0, NULL, 0, {t}, {t}", "長".repeat(400_000)),
            format!("'https://a.example/nul', 'a' || char(0) || 'b', {t}, 0, NULL, 0, {t}, {t}"),
            format!("'https://a.example/1', 't', 'soon', 0, NULL, 0, {t}, {t}"),
            format!("'https://a.example/2', 't', {t}, 'four', NULL, 0, {t}, {t}"),
            format!("'https://a.example/3', 't', {t}, 4, NULL, 0, {t}, {t}"),
            format!("'https://a.example/4', 't', {t}, 1, 7, 0, {t}, {t}"),
            format!("'https://a.example/5', 't', {t}, 0, NULL, -1, {t}, {t}"),
            format!("'https://a.example/6', x'ff', {t}, 0, NULL, 0, {t}, {t}"),
            format!("'https://a.example/7', CAST(x'61ff' AS TEXT), {t}, 0, NULL, 0, {t}, {t}"),
            format!("'javascript:alert(1)', 't', {t}, 0, NULL, 0, {t}, {t}"),
            format!("'https://a.example/{}', 't', {t}, 0, NULL, 0, {t}, {t}", "x".repeat(1_000_000)),
            format!("'https://a.example/8', 't', {t}, 0, NULL, 9223372036854775807, {t}, {t}"),
        ] {
            sql.push_str(&row(values));
        }
        let file = source(fixture.dir.path(), "mic.db", &sql);
        let before = std::fs::read(&file).unwrap();
        let report = mic_bot::import(&fixture.db, file.clone(), "mic".parse().unwrap(), None, options()).await.unwrap();
        assert_eq!(figures(&report), ["items 14/4/0/10"]);
        let listed = reasons(&report, "items");
        for reason in [
            "1 `published_at` is not a time", "1 `status` is not a whole number", "1 `status` is not 0, 1, 2 or 3",
            "1 `reason` is not 0 to 6", "1 `retry_count` is below zero", "1 `retry_count` is too large",
            "1 `title` is not text", "1 `title` is not UTF-8", "1 `url` is not a web address: javascript:alert(1)",
        ] {
            assert!(listed.contains(&reason.to_owned()), "{reason} in {listed:?}");
        }
        assert!(listed.iter().all(|reason| reason.len() < 200), "no reason repeats a megabyte");
        assert_eq!(std::fs::read(&file).unwrap(), before);
        let beside: Vec<_> = std::fs::read_dir(fixture.dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).filter(|name| name.to_string_lossy().starts_with("mic.db")).collect();
        assert_eq!(beside, ["mic.db"], "no file appeared beside it");
        let titles = rows(&fixture.db, tsuzuki::sql!("SELECT title FROM items ORDER BY id"), 1).await;
        assert_eq!(titles[3], "ab");
        assert!(titles[2].chars().count() < 600);
    }

    async fn bad_rows_of_the_other_programs_are_refused_too(fixture) {
        let good = tsuzuki::demo::google_books::isbn(1);
        let file = source(fixture.dir.path(), "app.db", &format!("{DRE}
            INSERT INTO books VALUES ('{good}', 't', 'no json', NULL, NULL, NULL, NULL, NULL, 'g', '2025-01-01', '2025-01-01', NULL), ('9780000000000', 't', NULL, NULL, NULL, NULL, NULL, NULL, 'g', '2025-01-01', '2025-01-01', NULL);
            INSERT INTO deliveries VALUES (1, 'a b', '2025-01-01', '[]'), (2, '--', '2025-01-01', '[]'), (3, 'j', '2025-01-01', '{{}}');
            INSERT INTO api_usage VALUES ('yesterday', 'g', 1), ('2025-01-01', 'g', -1), ('2025-01-02', 'g', 1);
            INSERT INTO prompts VALUES (1, '{good}', '', '2025-01-01');
            INSERT INTO prompt_tokens VALUES ('short', 1, '2025-01-01', '2025-01-01'), ('{t}', 1, '2025-01-01', '2025-01-01');
            INSERT INTO collect_cursor VALUES ('j', 'abc', 0, 0, '2025-01-01'), ('j', '{h}', 0, 2, '2025-01-01')", t = "a".repeat(32), h = "a".repeat(64)));
        let report = dre::import(&fixture.db, file, None, BTreeSet::new(), BTreeSet::new(), options()).await.unwrap();
        assert_eq!(figures(&report), ["books 2/0/0/2", "deliveries 3/1/0/2", "delivery_items 0/0/0/0", "job_state 0/0/0/0", "api_usage 3/1/0/2", "collect_cursor 2/0/0/2", "prompts 1/0/0/1", "prompt_tokens 2/0/0/2"]);
        assert_eq!(reasons(&report, "prompt_tokens"), ["1 `token` is not 32 hex characters", "1 its prompt is missing"]);

        let file = source(fixture.dir.path(), "state.db", &format!("{BLOG_WATCHER}
            INSERT INTO blog_state (blog_id, feed_url, recent_entry_keys, last_check_at) VALUES ('a', 'file:///etc/passwd', NULL, '2025-01-01'), ('b', NULL, '{{}}', '2025-01-01'), ('c', NULL, NULL, 'never'), ('{}', NULL, NULL, '2025-01-01');
            INSERT INTO check_history (blog_id, checked_at, http_status, skipped) VALUES ('a', '2025-01-01', 'OK', 0), ('a', '2025-01-01', 200, 7)", "x".repeat(201)));
        let report = blog_watcher::import(&fixture.db, file, "blogs".parse().unwrap(), options()).await.unwrap();
        assert_eq!(figures(&report), ["blog_state 4/0/0/4", "check_history 2/0/0/2"]);

        let run = "550e8400-e29b-41d4-a716-446655440000";
        let file = source(fixture.dir.path(), "gitlab.db", &format!("{GITLAB_ANALYZER}
            INSERT INTO commits VALUES (1, 'main', 'abc', 'A', 'a@x', '2025-01-01T00:00:00Z', 1, 1), (-1, 'main', '{s}', 'A', 'a@x', '2025-01-01T00:00:00Z', 1, 1), (1, 'main', '{s}', '', '', '2025-01-01T00:00:00Z', 1, 1), (1, 'dev', '{s}', 'A', 'a@x', '', 1, 1), (1, 'rel', '{s}', 'A', 'a@x', '2025-01-01T00:00:00Z', 'many', 1);
            INSERT INTO bulk_collection_runs VALUES ('1', '2025-01-01T00:00:00Z', NULL, 'running', 1, 0, 0, 0), ('{run}', '2025-01-01T00:00:00Z', '2025-01-01T00:00:00Z', 'completed', 1, 2, 1, 1);
            INSERT INTO bulk_collection_results VALUES ('{run}', 1, 'main', 'success', 1, NULL, NULL)", s = "a".repeat(40)));
        let report = gitlab_analyzer::import(&fixture.db, file, home(), options()).await.unwrap();
        assert_eq!(figures(&report), ["projects 0/0/0/0", "commits 5/1/0/4", "bulk_collection_runs 2/0/0/2", "bulk_collection_results 1/0/0/1"]);
        let names = rows(&fixture.db, tsuzuki::sql!("SELECT author_name, author_email FROM commits"), 2).await;
        assert_eq!(names, ["(no name) | (no name)"]);
    }

    async fn a_file_of_another_kind_is_named_and_nothing_is_written(fixture) {
        let dir = fixture.dir.path();
        std::fs::write(dir.join("empty.db"), "").unwrap();
        std::fs::write(dir.join("text.db"), "id,url\n1,https://a.example\n").unwrap();
        let mut cut = std::fs::read(source(dir, "whole.db", MIC_BOT)).unwrap();
        cut.truncate(4096 + 100);
        std::fs::write(dir.join("cut.db"), cut).unwrap();
        source(dir, "other.db", "CREATE TABLE notes (id INTEGER)");
        source(dir, "older.db", "CREATE TABLE items (id INTEGER PRIMARY KEY, url TEXT)");
        source(dir, "view.db", "CREATE VIEW items AS SELECT 1 AS url");
        let before = everything(&fixture.db).await;
        for (name, words) in [
            ("none.db", "does not exist"),
            ("empty.db", "is empty"),
            ("text.db", "is not a SQLite database"),
            ("cut.db", "cut.db is damaged"),
            ("other.db", "is not a database of mic-bot: it has no table `items`"),
            ("view.db", "it has no table `items`"),
            ("older.db", "the table `items` has no column `title`"),
            (".", "is not a file"),
        ] {
            let outcome = mic_bot::import(&fixture.db, dir.join(name), "mic".parse().unwrap(), None, options()).await;
            let error = outcome.unwrap_err().to_string();
            assert!(error.contains(words), "{name}: {error}");
        }
        let error = gitlab_analyzer::import(&fixture.db, dir.join("other.db"), home(), options()).await.unwrap_err();
        assert!(error.to_string().contains("it has no table `commits`"), "{error}");
        assert_eq!(everything(&fixture.db).await, before);
    }

    async fn an_interrupted_import_leaves_nothing_behind(fixture) {
        let rows: String = (0..3000).map(|n| format!("INSERT INTO items (url, title, published_at, status, retry_count, created_at, last_checked_at) VALUES ('https://a.example/{n}', 't', '2025-01-01', 0, 0, '2025-01-01', '2025-01-01');")).collect();
        let file = source(fixture.dir.path(), "mic.db", &format!("{MIC_BOT} {rows}"));
        let before = everything(&fixture.db).await;
        let stop = CancellationToken::new();
        let at_1000 = stop.clone();
        let progress = std::sync::Arc::new(move |_: &str, done: u64, _: u64| if done == 1000 { at_1000.cancel() });
        let how = Options { stop, progress, ..options() };
        let error = mic_bot::import(&fixture.db, file.clone(), "mic".parse().unwrap(), None, how).await.unwrap_err();
        assert!(error.to_string().contains("interrupted"), "{error}");
        assert_eq!(everything(&fixture.db).await, before);
        let report = mic_bot::import(&fixture.db, file, "mic".parse().unwrap(), None, options()).await.unwrap();
        assert_eq!(figures(&report), ["items 3000/3000/0/0"]);
    }

    async fn columns_that_we_do_not_know_are_named_and_ignored(fixture) {
        let schema = MIC_BOT.replace("status INTEGER NOT NULL,", "status INTEGER NOT NULL, mood TEXT,");
        let file = source(fixture.dir.path(), "mic.db", &format!("{schema} INSERT INTO items (url, title, published_at, status, mood, retry_count, created_at, last_checked_at) VALUES ('https://a.example/', 't', '2025-01-01', 0, 'good', 0, '2025-01-01', '2025-01-01')"));
        let report = mic_bot::import(&fixture.db, file, "mic".parse().unwrap(), None, options()).await.unwrap();
        assert!(report.notices.iter().any(|notice| *notice == "`items` has columns that are not imported: mood"), "{:?}", report.notices);
        assert_eq!(report.added(), 1);
    }
}
