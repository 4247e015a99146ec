//! The pages of the pipelines over real sockets: both languages, empty databases, paging, downloads, decisions.

use tsuzuki::{params, sql};

use crate::site::{
    FORM, HOSTILE, NOW, Site, add_book, add_change, add_item, add_project, is_each_once, read_all,
};

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
        assert_eq!(site.ask("GET", "/nothing", "", "").await.status, 404);
    }

    async fn every_page_is_there_in_both_languages(fixture) {
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
            }
        }
    }

    async fn a_press_item_that_was_posted_is_not_offered_for_a_retry(fixture) {
        // Its first post failed and was deferred; then it was sent by a command.
        fixture.db.write(|tx| {
            add_item(tx, 1, 1, 5, Some("summary"))?;
            tx.execute(
                sql!("INSERT INTO outbox (key, job_name, channel, recipient, topic, subject, payload, state, created_at, not_before) VALUES ('k', 'ministry', 'post', 'r', 'press.post', 'https://f.example/1', '{}', 'failed', ?1, ?1)"),
                params!["2026-01-15T00:00:00.000Z"],
            )
        }).await.unwrap();
        let site = Site::serve(&fixture).await;
        assert!(site.read("/press", "en").await.contains("look at it again"), "it failed");
        fixture.db.write(|tx| tx.execute(sql!("UPDATE outbox SET state = 'sent'"), params![])).await.unwrap();
        let html = site.read("/press", "en").await;
        assert!(html.contains(" item 1.") && !html.contains("look at it again"), "{html}");
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
                let csv = site.get(&format!("/commits?format=csv&{query}"), "en").await;
                assert_eq!(csv.status, 200);
                assert!(csv.head.contains("attachment; filename=\"commits.csv\""), "{}", csv.head);
                csv.text().to_owned()
            }
        };
        let of_2026 = csv("year=2026").await;
        assert!(of_2026.starts_with("\u{feff}name,2026-01,2026-02,") && of_2026.contains(",501,0,"), "{of_2026}");
        assert!(of_2026.contains("Bob,1,0,"), "{of_2026}");
        let of_2025 = csv("year=2025").await;
        assert!(of_2025.contains(",11,11\r\n") && !of_2025.contains("Bob"), "{of_2025}");
        let bob = csv("year=all&person=Bob&show=commits").await;
        assert_eq!(bob, "\u{feff}name,2025-12,2026-01,total\r\nBob,0,1,1\r\n");
        let workbook = site.get("/commits?format=xlsx", "en").await;
        assert!(workbook.head.contains("spreadsheetml") && workbook.body.starts_with(b"PK"), "{}", workbook.head);
        assert_eq!(site.ask("GET", "/commits?format=exe", "", "").await.status, 404);
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

    async fn a_job_with_many_blogs_shows_which_cannot_be_read_and_why(fixture) {
        let site = Site::serve(&fixture).await;
        assert!(!site.read("/job/watch", "en").await.contains("Blogs that cannot be read"));
        fixture.db.write(|tx| {
            for blog in ["site", "left"] {
                tx.execute(
                    sql!("INSERT INTO blog_state (blog_id, job_name, last_check_at, failures_in_a_row) VALUES (?1, 'watch', ?2, 3)"),
                    params![blog, NOW],
                )?;
                tx.execute(
                    sql!("INSERT INTO check_history (blog_id, checked_at, http_status, error_message) VALUES (?1, ?2, 503, ?3)"),
                    params![blog, NOW, HOSTILE],
                )?;
            }
            Ok(())
        }).await.unwrap();
        let html = site.read("/job/watch", "en").await;
        for word in ["Blogs that cannot be read", "href=\"/why/blog/site\"", "href=\"https://site.example/\"", "(HTTP 503)"] {
            assert!(html.contains(word), "`{word}`:\n{html}");
        }
        assert!(!html.contains("/why/blog/left"), "the config does not name it any more:\n{html}");
        assert!(site.read("/job/watch", "ja").await.contains("確認できないブログ"));
        assert!(site.read("/why/blog/site", "ja").await.contains("href=\"https://site.example/\""));
        // The page of all blogs shows the same as `blog ls`.
        let until = fixture.clock.now().plus(std::time::Duration::from_secs(600));
        fixture.db.write(move |tx| tx.execute(sql!("UPDATE blog_state SET not_before = ?1"), params![until])).await.unwrap();
        assert!(site.read("/changes", "en").await.contains("is-waiting"));
    }

    async fn a_change_that_is_held_is_approved_or_skipped_on_the_page(fixture) {
        fixture.db.write(|tx| {
            add_change(tx, 1, true)?;
            add_change(tx, 2, true)
        }).await.unwrap();
        let site = Site::serve(&fixture).await;
        let html = site.read("/changes", "en").await;
        assert!(html.contains("value=\"change:1\"") && html.contains("same as `tsuzuki change approve 1`"), "{html}");
        for body in ["about=change%3A1&verb=approve", "about=change%3A2&verb=skip"] {
            assert_eq!(site.ask("POST", "/act", FORM, body).await.status, 303, "{body}");
        }
        let states = fixture.db.read(|tx| tx.list(sql!("SELECT state FROM outbox ORDER BY id"), params![], |row| row.get::<String>(0))).await.unwrap();
        assert_eq!(states, ["ready", "skipped"]);
        let html = site.read("/changes", "en").await;
        assert!(!html.contains("value=\"change:1\""), "it was decided: {html}");
    }
}
