//! Pages that belong to no pipeline, over real sockets: messages, limits, the search, the config file, feeds; and their API.

use serde_json::Value;
use tsuzuki::db::Tx;
use tsuzuki::parse::feed::{self, Context};
use tsuzuki::{params, sql};

use crate::site::{
    CONFIG, FORM, NOW, Site, add_book, add_change, add_item, add_message, add_project, is_each_once, read_all,
};

/// One of everything.
fn fill(tx: &mut Tx<'_>) -> tsuzuki::db::Result<()> {
    add_project(tx)?;
    add_item(tx, 1, 3, 0, Some("電気通信の要約"))?;
    add_item(tx, 2, 1, 1, None)?;
    add_change(tx, 1, false)?;
    add_book(tx, 1, true)?;
    add_message(tx, 1, "sent")
}

async fn json(site: &Site, path: &str) -> Value {
    let answer = site.ask("GET", path, "", "").await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    serde_json::from_slice(&answer.body).unwrap()
}

on_both_databases! {
    async fn one_search_finds_parts_of_japanese_words_names_and_addresses_of_every_sort(fixture) {
        fixture.db.write(fill).await.unwrap();
        let site = Site::serve(&fixture).await;
        for (sought, about) in [
            ("%E6%B0%97%E9%80%9A%E4%BF%A1", "item:1"),
            ("ITEM+1.", "item:1"),
            ("f.example%2F2", "item:2"),
            ("%E9%9D%92%E6%9C%A8", "book:"),
            ("change+1.", "blog:site"),
            ("bob", "branch:"),
            ("r%40example.org", "delivery:"),
            ("minist", "job:ministry"),
        ] {
            let hits = json(&site, &format!("/api/v1/search?q={sought}")).await;
            let names: Vec<&str> = hits.as_array().unwrap().iter().map(|hit| hit["name"].as_str().unwrap()).collect();
            assert!(names.iter().any(|name| name.starts_with(about)), "{sought}: {names:?}");
        }
        for nothing in ["i%25m", "_tem", "secret.example", "zzz"] {
            assert_eq!(json(&site, &format!("/api/v1/search?q={nothing}")).await, serde_json::json!([]), "{nothing}");
        }
        assert_eq!(site.ask("GET", "/api/v1/search?q=+", "", "").await.status, 400);
        let html = site.read("/search?q=item", "ja").await;
        assert!(html.contains("/why/item/1") && html.contains("/why/item/2") && html.contains("5000"), "{html}");
        assert!(!html.contains("alert(1)</script>"), "{html}");
        assert!(site.read("/search?q=zzz", "en").await.contains("Nothing has"));
        assert!(site.read("/search", "en").await.contains("Every word has to be there"));
    }

    async fn what_is_named_exactly_is_shown_at_once(fixture) {
        fixture.db.write(fill).await.unwrap();
        let site = Site::serve(&fixture).await;
        for (sought, path) in [
            ("ministry", "/job/ministry"),
            ("job%3Aministry", "/job/ministry"),
            ("https%3A%2F%2Ff.example%2F2", "/why/item/2"),
            ("site", "/why/blog/site"),
        ] {
            let answer = site.ask("GET", &format!("/search?q={sought}"), "", "").await;
            assert_eq!((answer.status, answer.header("location")), (303, Some(path)), "{sought}");
        }
    }

    async fn a_number_that_several_things_have_leads_to_a_choice(fixture) {
        fixture.db.write(fill).await.unwrap();
        let site = Site::serve(&fixture).await;
        let html = site.read("/search?q=1", "en").await;
        for path in ["/why/item/1", "/why/change/1", "/why/delivery/1"] {
            assert!(html.contains(&format!("href=\"{path}\"")), "{path}: {html}");
        }
    }

    async fn messages_are_listed_by_state_page_by_page_with_what_they_say(fixture) {
        fixture.db.write(|tx| {
            (1..=40).try_for_each(|number| add_message(tx, number, "sent"))?;
            add_message(tx, 41, "held")?;
            add_message(tx, 42, "failed")
        }).await.unwrap();
        let site = Site::serve(&fixture).await;
        assert!(is_each_once(read_all(&site, "/deliveries", "message ").await, 42));
        let held = site.read("/deliveries?state=held", "en").await;
        assert!(held.contains("message 41.") && !held.contains("message 42."), "{held}");
        assert!(held.contains("needs approval (1)") && held.contains("data-verb=\"approve\""), "{held}");
        assert!(held.contains("<pre>") && !held.contains("alert(1)</script>"), "{held}");
        assert!(site.read("/deliveries?state=failed", "ja").await.contains("再送する"));
        assert!(site.read("/deliveries?job=nobody", "en").await.contains("No such message was found"));
    }

    async fn limits_are_shown_with_their_reset_and_whether_they_last(fixture) {
        fixture.db.write(|tx| {
            tx.execute(sql!("INSERT INTO api_usage (date, provider, count) VALUES ('2026-01-15', 'google_books', 90)"), params![])?;
            tx.execute(sql!("INSERT INTO llm_answers (key, provider, model, purpose, answer_json, tokens_in, tokens_out, created_at) VALUES ('k', 'm', 'flash', 'screen', '{}', 1200, 34, ?1)"), params![NOW])?;
            Ok(())
        }).await.unwrap();
        let site = Site::serve(&fixture).await;
        let html = site.read("/quotas", "en").await;
        // Nine hours of the day have passed with 90 of 100.
        for word in ["google_books", "90 of 100", "at this pace full at", "flash", "1200", "34"] {
            assert!(html.contains(word), "`{word}`: {html}");
        }
        assert!(site.read("/quotas", "ja").await.contains("このペースでは"));
    }

    async fn a_feed_of_every_job_is_read_by_our_own_reader(fixture) {
        fixture.db.write(|tx| {
            fill(tx)?;
            tx.execute(sql!("UPDATE branches SET job_name = 'code'"), params![])?;
            Ok(())
        }).await.unwrap();
        let site = Site::serve(&fixture).await;
        for (job, count) in [("ministry", 2), ("shelf", 1), ("watch", 1), ("code", 4)] {
            for (ending, media_type) in [("atom", "application/atom+xml"), ("json", "application/feed+json")] {
                let answer = site.ask("GET", &format!("/feeds/job/{job}.{ending}"), "", "").await;
                assert!(answer.status == 200 && answer.head.contains(media_type), "{job}: {}", answer.head);
                let context = Context { content_type: Some(media_type.to_owned()), ..Context::default() };
                let read = feed::parse(&answer.body, &context).unwrap();
                let text = answer.text();
                assert_eq!(read.entries.len(), count, "{job}: {text}");
                assert!(!text.contains("<script") && !text.contains("javascript:") && !text.contains("secret.example"), "{text}");
            }
        }
        for missing in ["nobody.atom", "ministry", "ministry.rss"] {
            assert_eq!(site.ask("GET", &format!("/feeds/job/{missing}"), "", "").await.status, 404, "{missing}");
        }
        let page = site.read("/job/ministry", "en").await;
        assert!(page.contains("type=\"application/atom+xml\" title=\"Atom\" href=\"/feeds/job/ministry.atom\""), "{page}");
    }

    async fn programs_do_what_buttons_do_and_hear_why_not(fixture) {
        fixture.db.write(|tx| add_message(tx, 1, "held")).await.unwrap();
        let site = Site::serve(&fixture).await;
        for (path, status, words) in [
            ("delivery/1/approve?lang=en", 200, "Delivery 1: queued"),
            ("delivery/1/approve?lang=en", 409, "stays as it is"),
            ("delivery/9/approve", 404, "no delivery of this name"),
            ("delivery/1/run", 404, "no delivery of this name"),
            ("delivery/1/eat", 404, "verbs are: run, pause"),
            ("cat/1/run", 404, "no cat of this name"),
            ("job/ministry/pause?lang=ja", 200, "一時停止しました"),
            ("job/ministry/resume?lang=en", 200, "runs again"),
            ("job/shelf/reset?lang=en", 409, "add `?yes=true`"),
            ("job/shelf/reset?yes=true&lang=en", 200, "Reset 0 cursor(s)"),
        ] {
            let answer = site.ask("POST", &format!("/api/v1/things/{path}"), "", "").await;
            let (head, body) = (&answer.head, answer.text());
            assert_eq!(answer.status, status, "{path}: {body}");
            assert!(body.contains(words), "{path}: {body}");
            let media_type = if status == 200 { "application/json" } else { "application/problem+json" };
            assert!(head.contains(&format!("content-type: {media_type}")), "{path}: {head}");
        }
    }

    async fn the_config_file_is_shown_without_secrets_and_a_form_adds_a_job(fixture) {
        let config = CONFIG.replace("token = \"t\"", "token = \"literal-secret\" # keep this comment");
        let site = Site::serve_with(&fixture, &config).await;
        let path = fixture.dir.path().join("tsuzuki.toml");
        let html = site.read("/settings?kind=books", "en").await;
        assert!(!html.contains("literal-secret") && html.contains("keep this comment"), "{html}");
        assert!(html.contains("secret in plain text") || html.contains("warning"), "{html}");
        assert!(html.contains("name=\"flag.query\"") && html.contains("name=\"flag.book-lang\""), "{html}");
        let add = |body: &'static str| site.ask("POST", "/settings/jobs", FORM, body);
        for (body, words) in [
            ("kind=books&name=ministry&flag.query=x", "ジョブ `ministry` はすでにあります"),
            ("kind=books&name=more", "queries"),
            ("kind=books&name=more&flag.query=x&every=soon", "every"),
            ("kind=books&name=more&flag.query=x&deliver=nobody", "nobody"),
            ("kind=commits&name=more&flag.gitlab=https://evil.example&flag.project=a/b&flag.token-env=file:/etc/passwd", "token-env"),
        ] {
            let answer = add(body).await;
            let html = answer.text();
            assert!(answer.status == 422 && html.contains("role=\"alert\"") && html.contains(words), "{body}: {html}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), config, "{body}");
        }
        let added = add("kind=books&name=more&flag.query=a+b%0D%0A%E7%B5%8C%E5%96%B6&flag.book-lang=ja&every=3h").await;
        assert_eq!((added.status, added.header("location")), (303, Some("/settings")));
        let after = std::fs::read_to_string(&path).unwrap();
        let added = after.strip_prefix(&config).unwrap();
        for line in ["[[job]]", "name = \"more\"", "kind = \"books\"", "queries = [\"a b\", \"経営\"]", "google_books.langRestrict = \"ja\"", "every = \"3h\""] {
            assert!(added.contains(line), "`{line}`: {added}");
        }
        assert_eq!(add("kind=cats&name=x").await.status, 404);
    }

    async fn the_config_file_is_not_changed_where_that_is_switched_off(fixture) {
        let config = CONFIG.replacen("[web]\n", "[web]\nedit = false\n", 1);
        let site = Site::serve_with(&fixture, &config).await;
        let html = site.read("/settings?kind=books", "en").await;
        assert!(!html.contains("name=\"flag.query\""), "{html}");
        assert_eq!(site.ask("POST", "/settings/jobs", FORM, "kind=books&name=more&flag.query=x").await.status, 403);
        assert_eq!(std::fs::read_to_string(fixture.dir.path().join("tsuzuki.toml")).unwrap(), config);
    }
}
