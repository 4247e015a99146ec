//! The next run after an import sends nothing that was sent, and loses nothing that is new.

use std::collections::BTreeSet;

use tsuzuki::books::token::{self, Lookup};
use tsuzuki::commits::author::Emails;
use tsuzuki::demo::google_books::{isbn, volumes};
use tsuzuki::hash::query_set_hash;
use tsuzuki::import::gitlab_analyzer::{self, Home};
use tsuzuki::import::{blog_watcher, dre, mic_bot};
use tsuzuki::sql;

use super::{BLOG_WATCHER, DRE, GITLAB_ANALYZER, MIC_BOT, options, rows, source};
use crate::blogs::{self, config_text, feed_only};
use crate::books_world;
use crate::commits::world as commits;
use crate::press;

on_both_databases! {
    async fn what_mic_bot_posted_is_not_posted_again_and_what_came_since_is(fixture) {
        let world = press::World::untouched(&fixture, &press::More { job: "items_per_run = 4", ..press::More::default() }).await;
        for slug in ["posted", "given-up", "waiting"] {
            world.publish(slug, press::files(&[1000]));
        }
        let row = |slug: &str, rest: &str| format!(
            "INSERT INTO items (url, title, published_at, status, reason, retry_count, created_at, last_checked_at) VALUES ('{}', '{slug}', '2026-01-14T00:00:00Z', {rest}, '2026-01-14T00:00:00Z', '2026-01-14T00:00:00Z');",
            world.ministry.page(slug)
        );
        let file = source(fixture.dir.path(), "mic.db", &format!("{MIC_BOT} {} {} {}", row("posted", "3, 0, 0"), row("given-up", "3, 6, 4"), row("waiting", "2, NULL, 0")));
        mic_bot::import(&fixture.db, file, "mic".parse().unwrap(), Some(world.ministry.feed()), options()).await.unwrap();
        world.publish("since", press::files(&[1000]));
        world.live(4).await;
        let mut posts = world.posts();
        posts.sort();
        assert_eq!(posts.len(), 2, "{posts:?}");
        for slug in ["since", "waiting"] {
            assert!(posts.iter().any(|post| post.contains(&world.ministry.page(slug))), "{slug} in {posts:?}");
        }
        assert_eq!(world.standing("posted").await, "3/0/0");
        assert_eq!(world.standing("given-up").await, "3/6/4");
    }

    async fn what_dre_mailed_is_not_mailed_again_and_its_search_goes_on_where_it_stood(fixture) {
        let world = books_world::World::new(&fixture, volumes(0, 12)).await;
        let books: String = (0..8).map(|n| format!("INSERT INTO books VALUES ('{}', 'Book {n}', NULL, NULL, NULL, NULL, NULL, NULL, 'google_books', '2026-01-01T00:00:00Z', '2026-01-01T00:00:00Z', NULL);", isbn(n))).collect();
        let sent: String = (0..5).map(|n| format!("INSERT INTO delivery_items (delivery_id, job_name, isbn13, delivered_at) VALUES (1, 'shelf', '{}', '2026-01-02T00:00:00Z');", isbn(n))).collect();
        let hash = query_set_hash(&["rust"]);
        let file = source(fixture.dir.path(), "app.db", &format!("{DRE} {books}
            INSERT INTO deliveries VALUES (1, 'shelf', '2026-01-02T00:00:00Z', '[]'); {sent}
            INSERT INTO collect_cursor VALUES ('shelf', '{hash}', 8, 0, '2026-01-02 00:00:00');
            INSERT INTO api_usage VALUES ('2026-01-15', 'google_books', 99);
            INSERT INTO prompts VALUES (1, '{}', 'Ask', '2026-01-02T00:00:00Z');
            INSERT INTO prompt_tokens VALUES ('{t}', 1, '2026-02-01T00:00:00Z', '2026-01-02T00:00:00Z')", isbn(0), t = "0f".repeat(16)));
        dre::import(&fixture.db, file, None, BTreeSet::new(), BTreeSet::new(), options()).await.unwrap();
        let found = fixture.db.read(|tx| token::look_up(tx, &"0f".repeat(16), "2026-01-15T00:00:00Z".parse().unwrap())).await.unwrap();
        assert!(matches!(found, Lookup::Works(found) if found.prompt_text == "Ask"));
        for _ in 0..3 {
            world.run("max_per_run = 40\nmail_limit = 3\nfallback_limit = 0").await;
            world.send().await;
        }
        let asked: Vec<i64> = world.google.asked().iter().map(|asked| asked.start_index).collect();
        assert_eq!(asked, [8], "one request was left of today's quota, and the search went on at 8");
        let announced_titles: BTreeSet<String> = world.delivered().await.into_iter().skip(5).collect();
        let expected: BTreeSet<String> = (5..12).map(isbn).collect();
        assert_eq!(announced_titles, expected, "what was waiting and what is new, nothing else");
        let bodies: String = world.hook.posts().into_iter().map(|post| post.body).collect();
        assert!((0..5).all(|n| !bodies.contains(&isbn(n))), "nothing that was mailed before");
    }

    async fn what_dre_mailed_in_combined_mails_is_mailed_again_by_no_job(fixture) {
        let world = books_world::World::new(&fixture, volumes(0, 6)).await;
        let books: String = (0..4).map(|n| format!("INSERT INTO books VALUES ('{}', 'Book {n}', NULL, NULL, NULL, NULL, NULL, NULL, 'google_books', '2026-01-01T00:00:00Z', '2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z');", isbn(n))).collect();
        let sent: String = (0..4).map(|n| format!("INSERT INTO delivery_items (delivery_id, job_name, isbn13, delivered_at) VALUES (1, 'combined', '{}', '2026-01-02T00:00:00Z');", isbn(n))).collect();
        let file = source(fixture.dir.path(), "app.db", &format!("{DRE} {books}
            INSERT INTO deliveries VALUES (1, 'combined', '2026-01-02T00:00:00Z', '[]'); {sent}
            INSERT INTO job_state VALUES ('other', NULL, '2026-01-02T00:00:00Z')"));
        let readers = BTreeSet::from(["shelf".parse().unwrap()]);
        let report = dre::import(&fixture.db, file, None, BTreeSet::new(), readers, options()).await.unwrap();
        assert!(format!("{report:?}").contains("sent in combined mails"), "{report:?}");
        for _ in 0..3 {
            world.run("max_per_run = 40\nmail_limit = 3\nfallback_limit = 0").await;
            world.send().await;
        }
        let announced_titles: Vec<String> = world.delivered().await.into_iter().skip(4).collect();
        assert_eq!(announced_titles, [isbn(5), isbn(4)], "what is new alone");
    }

    async fn what_dre_mailed_before_it_noted_for_whom_is_mailed_again_by_no_job(fixture) {
        let world = books_world::World::new(&fixture, volumes(0, 6)).await;
        let books: String = (0..4).map(|n| format!("INSERT INTO books VALUES ('{}', 'Book {n}', NULL, NULL, NULL, NULL, NULL, NULL, 'google_books', '2026-01-01T00:00:00Z', '2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z');", isbn(n))).collect();
        let file = source(fixture.dir.path(), "app.db", &format!("{DRE} {books}
            INSERT INTO deliveries VALUES (1, 'combined', '2026-01-02T00:00:00Z', '[]');
            INSERT INTO job_state VALUES ('one', NULL, '2026-01-02T00:00:00Z'), ('two', NULL, '2026-01-02T00:00:00Z')"));
        let readers = BTreeSet::from(["shelf".parse().unwrap()]);
        dre::import(&fixture.db, file, None, BTreeSet::new(), readers, options()).await.unwrap();
        for _ in 0..3 {
            world.run("max_per_run = 40\nmail_limit = 3\nfallback_limit = 0").await;
            world.send().await;
        }
        assert_eq!(world.delivered().await, [isbn(5), isbn(4)], "what is new alone");
    }

    async fn what_blog_watcher_told_is_not_told_again_and_what_came_since_is(fixture) {
        // Its keys are guids here, links there, and guids that look like links; it remembers two of six entries, and a
        // sitemap has no keys at all.
        let (by_guid, by_link, by_map) = (blogs::site(feed_only).await, blogs::site(feed_only).await, blogs::site(blogs::sitemap_only).await);
        let by_number = blogs::site(feed_only).await;
        let number = |slug: &str| format!("{}?p={slug}", by_number.url);
        by_number.edit(|content| for article in &mut content.articles { article.guid = number(&article.slug) });
        let text = config_text("", &[
            format!("id = \"guid\"\nurl = \"{}\"", by_guid.url),
            format!("id = \"link\"\nurl = \"{}\"\nfeed = \"{}feed.xml\"", by_link.url, by_link.url),
            format!("id = \"map\"\nurl = \"{}\"", by_map.url),
            format!("id = \"number\"\nurl = \"{}\"", by_number.url),
        ]);
        let world = blogs::World::new(&fixture, &text);
        // The newest entry is a day old, which is within the slack that dates in feeds get: only its key keeps it quiet.
        let checked = "2026-01-14T12:00:00+00:00";
        let file = source(fixture.dir.path(), "state.db", &format!("{BLOG_WATCHER}
            INSERT INTO blog_state (blog_id, feed_url, sitemap_url, recent_entry_keys, url_fingerprint, last_check_at) VALUES
            ('guid', '{}feed.xml', NULL, '[\"urn:article-6\", \"urn:article-5\"]', NULL, '{checked}'),
            ('link', NULL, NULL, '[\"{l}article-6\", \"{l}article-5\"]', NULL, '{checked}'),
            ('number', NULL, NULL, '[\"{}\", \"{}\"]', NULL, '{checked}'),
            ('map', NULL, '{}sitemap.xml', NULL, 'abc', '{checked}')", by_guid.url, number("article-6"), number("article-5"), by_map.url, l = by_link.url));
        blog_watcher::import(&fixture.db, file, "blogs".parse().unwrap(), options()).await.unwrap();
        for site in [&by_guid, &by_link, &by_map, &by_number] {
            site.edit(|content| content.publish("since", "Since", fixture.clock.now()));
        }
        world.run_times(3).await;
        assert_eq!(world.announced("guid").await, ["Since"]);
        assert_eq!(world.announced("link").await, ["Since"]);
        assert_eq!(world.announced("number").await, ["Since"]);
        assert_eq!(world.announced("map").await, Vec::<String>::new(), "the first look at a sitemap is a baseline");
        by_map.edit(|content| content.publish("later", "Later", fixture.clock.now()));
        world.run_times(2).await;
        assert_eq!(world.announced("map").await, ["later"]);
        assert_eq!(world.announced("guid").await.len() + world.announced("link").await.len(), 2);
    }

    async fn commits_of_gitlab_analyzer_are_completed_and_counted_once(fixture) {
        let repo = commits::Repo::create(fixture.dir.path(), "app");
        let world = commits::World::new(&fixture.db, "projects = [\"team/app\"]").await;
        world.gitlab.add_repository(7, "team/app", &repo.dir);
        repo.commit_many(30);
        // It missed one, as collecting by date does.
        let known: Vec<String> = repo.rev_list("main").into_iter().skip(1).collect();
        let inserts: String = known.iter().map(|sha| format!("INSERT INTO commits VALUES (7, 'main', '{sha}', 'Ann Author', 'ann@example.com', '2025-01-01T00:00:00Z', 1, 0);")).collect();
        let file = source(fixture.dir.path(), "gitlab.db", &format!("{GITLAB_ANALYZER} INSERT INTO projects VALUES (7, 'app', 'team/app'); {inserts}"));
        let host = tsuzuki::commits::config::host_of(&world.gitlab.url().parse().unwrap());
        let home = Home { job: None, host, emails: Emails::Plain, can_go_on: true };
        gitlab_analyzer::import(&fixture.db, file, home, options()).await.unwrap();
        assert_eq!(world.stored("main").await.len(), 29);
        repo.commit("2025-03-01T00:00:00Z");
        world.start().await.unwrap();
        assert_eq!(world.stored("main").await, repo.rev_list("main"));
        assert_eq!(rows(&fixture.db, sql!("SELECT status, new_commits_count FROM bulk_collection_results"), 2).await, ["success | 2"], "the missed one and the new one");
        assert_eq!(rows(&fixture.db, sql!("SELECT project_id, path FROM projects"), 2).await, ["7 | team/app"]);
    }
}
