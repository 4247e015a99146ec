//! Single cases of a blogs job: discovery, holding, pausing, renaming, previews, digests.

use std::collections::HashSet;

use tsuzuki::app;
use tsuzuki::blogs::{commands, store, view};
use tsuzuki::channel::outbox::{State as Delivery, Topics};
use tsuzuki::demo::faults::Fault;
use tsuzuki::demo::site::{Site, Versions};
use tsuzuki::ledger::{Subject, event};

use super::{
    DAY, HOUR, World, blog, config_text, feed_only, html_only, name_of, newest, site, sitemap_only, watch,
};

fn paths(site: &Site) -> Vec<String> {
    site.take_log().into_iter().map(|asked| format!("{} {}", asked.method, asked.path)).collect()
}

on_both_databases! {
    async fn what_was_not_found_is_searched_for_again_after_a_week_and_not_before(fixture) {
        let (site, world) = watch(&fixture, html_only).await;
        world.run().await;
        let asked = paths(&site);
        for path in ["GET /", "GET /robots.txt", "GET /feed.xml", "GET /sitemap.xml"] {
            assert!(asked.contains(&path.to_owned()), "{path} in {asked:?}");
        }
        let state = world.state("b").await;
        assert_eq!((state.feed_url, state.sitemap_url), (None, None));
        for _ in 0..6 {
            fixture.clock.advance(DAY);
            world.run().await;
            assert_eq!(paths(&site), ["GET /"], "only the page is asked for");
        }
        site.edit(|content| content.feed = Some("/feed.xml".into()));
        fixture.clock.advance(DAY);
        world.run().await;
        assert!(world.state("b").await.feed_url.is_some_and(|url| url.path() == "/feed.xml"));
        assert!(world.changes().await.is_empty(), "another detector makes nothing new");
        site.edit(|content| content.publish("x", "x", fixture.clock.now()));
        world.run().await;
        assert_eq!(world.announced("b").await, ["x"]);
    }

    async fn a_lost_feed_is_searched_for_and_what_it_told_is_not_told_by_the_sitemap(fixture) {
        let (site, world) = watch(&fixture, |_| {}).await;
        world.run_times(1).await;
        site.edit(|content| content.publish("x", "x", fixture.clock.now()));
        world.run_times(1).await;
        assert_eq!(world.announced("b").await, ["x"]);
        site.edit(|content| (content.feed, content.names_feed) = (None, false));
        world.run_times(3).await;
        assert_eq!(world.state("b").await.failures_in_a_row, 3);
        world.run_times(1).await;
        let state = world.state("b").await;
        assert_eq!((state.feed_url, state.failures_in_a_row), (None, 0));
        assert_eq!(state.decided_by.unwrap().word(), "sitemap");
        site.edit(|content| content.publish("y", "y", fixture.clock.now()));
        world.run_times(2).await;
        assert_eq!(world.announced("b").await, ["x", "y"]);
        site.edit(|content| (content.feed, content.names_feed) = (Some("/other.xml".into()), true));
        fixture.clock.advance(DAY * 7);
        world.run_times(2).await;
        assert_eq!(world.state("b").await.feed_url.unwrap().path(), "/other.xml");
        assert_eq!(world.announced("b").await, ["x", "y"], "the feed does not tell it again");
    }

    async fn an_entry_told_by_its_address_is_not_told_by_another_detector_or_guid(fixture) {
        let (site, world) = watch(&fixture, |content| content.permalinks = true).await;
        world.run_times(1).await;
        site.edit(|content| content.publish("x", "x", fixture.clock.now()));
        world.run_times(1).await;
        assert_eq!(world.announced("b").await, ["x"]);
        let address = site.url.join("x").unwrap();
        let key = tsuzuki::parse::url::comparison_key(&address);
        let found = fixture.db.read(move |tx| store::list_entries_at(tx, &key)).await.unwrap();
        let found: Vec<_> = found.iter().map(|entry| (entry.url.as_deref(), entry.title.as_deref())).collect();
        assert_eq!(found, [(Some(address.as_str()), Some("x"))], "the address is the key, and is found by it");
        // The generator changes: all guids are new, the addresses stay.
        site.edit(|content| content.permalinks = false);
        world.run_times(2).await;
        site.edit(|content| (content.feed, content.names_feed) = (None, false));
        world.run_times(5).await;
        assert_eq!(world.state("b").await.decided_by.unwrap().word(), "sitemap");
        assert_eq!(world.announced("b").await, ["x"], "known under every name");
    }

    async fn an_entry_that_is_known_by_its_guid_is_not_new_at_another_or_a_shared_address(fixture) {
        let (site, world) = watch(&fixture, feed_only).await;
        let base = site.url.as_str().trim_end_matches('/').to_owned();
        let feed = |entries: &[(&str, &str)]| {
            let items: String = entries
                .iter()
                .map(|(guid, link)| format!("<item><guid>{base}{guid}</guid><link>{base}{link}</link><title>{guid} at {link}</title></item>"))
                .collect();
            let text = format!("<rss version=\"2.0\"><channel>{items}</channel></rss>");
            site.edit(|content| {
                content.instead.insert("/feed.xml".into(), (200, "application/rss+xml".into(), text));
            });
        };
        feed(&[("/a", "/a"), ("/b", "/b"), ("/c", "/c")]);
        world.run_times(1).await;
        for (what, entries, announced) in [
            ("its link is edited", &[("/a", "/posts/a"), ("/b", "/b"), ("/c", "/c")][..], &[][..]),
            ("and back again", &[("/a", "/a"), ("/b", "/b"), ("/c", "/c")], &[]),
            ("a second entry shares its link", &[("/d", "/c"), ("/b", "/b"), ("/c", "/c")], &["/d at /c"]),
            ("the second entry leaves", &[("/b", "/b"), ("/c", "/c")], &[]),
            ("two that share a link from the start", &[("/e", "/e"), ("/f", "/e"), ("/c", "/c")], &["/e at /e", "/f at /e"]),
            ("one of them stays", &[("/e", "/e"), ("/c", "/c")], &[]),
        ] {
            let before = world.announced("b").await.len();
            feed(entries);
            world.run_times(2).await;
            let all = world.announced("b").await;
            assert_eq!(all[before..], *announced, "{what}");
        }
    }

    async fn a_list_of_hundreds_is_compared_in_full(fixture) {
        let site = site(sitemap_only).await;
        site.edit(|content| {
            for number in 0..250 {
                content.publish(&format!("old-{number}"), "old", newest());
            }
        });
        let world = World::new(&fixture, &config_text("", &[blog("b", &site, "")]));
        world.run_times(1).await;
        assert_eq!(world.state("b").await.url_count, 256);
        // Before, among and behind the known ones, across the borders of every hundred.
        let names = ["first", "at-99", "at-100", "at-101", "at-200", "last"];
        site.edit(|content| {
            for (name, at) in names.iter().zip([0, 99, 100, 101, 200, 261]) {
                let article = tsuzuki::demo::site::Article::new(name, name, fixture.clock.now());
                content.articles.insert(at, article);
            }
        });
        world.run_times(2).await;
        assert_eq!(world.announced("b").await, names);
    }

    async fn an_equal_strong_tag_without_304_is_skipped_and_head_comes_first_when_asked(fixture) {
        let get = site(|content| { feed_only(content); content.versions = Versions::TagsWithout304; }).await;
        let head = site(feed_only).await;
        let world = World::new(&fixture, &config_text("", &[blog("get", &get, "")]));
        world.run_times(2).await;
        let checks = world.checks("get", 2).await;
        assert!(checks[0].skipped && checks[0].http_status == Some(200) && !checks[1].skipped);
        let world = World::new(&fixture, &config_text("probe = \"head\"", &[blog("head", &head, "")]));
        world.run_times(1).await;
        head.take_log();
        world.run_times(1).await;
        assert_eq!(paths(&head), ["HEAD /feed.xml"]);
        head.edit(|content| content.publish("x", "x", fixture.clock.now()));
        world.run_times(1).await;
        assert_eq!(paths(&head), ["HEAD /feed.xml", "GET /feed.xml"]);
        assert_eq!(world.announced("head").await, ["x"]);
    }

    async fn validators_belong_to_the_document_that_decided(fixture) {
        let (site, world) = watch(&fixture, sitemap_only).await;
        world.run_times(1).await;
        let state = world.state("b").await;
        assert_eq!(state.known.len(), 1);
        assert_eq!(state.known[0].url.path(), "/sitemap.xml");
        site.take_log();
        world.run_times(1).await;
        let asked = site.take_log();
        assert_eq!(asked.len(), 1);
        assert_eq!(asked[0].if_none_match, state.known[0].etag);
    }

    async fn a_sitemap_of_sitemaps_is_read_in_full_and_skipped_in_full(fixture) {
        let site = site(sitemap_only).await;
        let base = site.url.as_str().trim_end_matches('/').to_owned();
        let list = |names: &[&str]| {
            let items: String = names.iter().map(|name| format!("<url><loc>{base}/{name}</loc></url>")).collect();
            (200, "application/xml".to_owned(), format!("<urlset>{items}</urlset>"))
        };
        let index = format!(
            "<sitemapindex><sitemap><loc>{base}/one.xml</loc></sitemap><sitemap><loc>{base}/two.xml</loc></sitemap></sitemapindex>"
        );
        site.edit(|content| {
            content.instead.insert("/sitemap.xml".into(), (200, "application/xml".into(), index));
            content.instead.insert("/one.xml".into(), list(&["a", "b", "c"]));
            content.instead.insert("/two.xml".into(), list(&["d", "e"]));
        });
        let world = World::new(&fixture, &config_text("", &[blog("b", &site, "")]));
        world.run_times(1).await;
        assert_eq!(world.state("b").await.url_count, 5);
        site.take_log();
        world.run_times(1).await;
        assert!(world.checks("b", 1).await[0].skipped);
        assert!(site.take_log().iter().all(|asked| asked.status == 304));
        site.edit(|content| { content.instead.insert("/two.xml".into(), list(&["d", "e", "f"])); });
        world.run_times(1).await;
        assert_eq!(world.announced("b").await, ["f"]);
    }

    async fn more_than_hold_above_is_held_until_somebody_decides(fixture) {
        let (one, two) = (site(feed_only).await, site(feed_only).await);
        let blogs = [blog("one", &one, ""), blog("two", &two, "")];
        let world = World::new(&fixture, &config_text("hold_above = 3", &blogs));
        world.run_times(1).await;
        for number in 0..4 {
            one.edit(|content| content.publish(&format!("n{number}"), "flood", fixture.clock.now()));
        }
        two.edit(|content| content.publish("x", "x", fixture.clock.now()));
        world.run_times(2).await;
        let states: Vec<_> = world.messages().await.into_iter().map(|row| (row.state, row.subject)).collect();
        assert_eq!(states.len(), 2, "{states:?}");
        assert_eq!((states[0].0, states[1].0), (Delivery::Held, Delivery::Ready));
        let changes = world.changes().await;
        let held = changes.iter().find(|change| change.held).unwrap();
        let (id, now) = (held.id, fixture.clock.now());
        assert_eq!(held.blog_id, "one");
        let other = changes.iter().find(|change| !change.held).unwrap().id;
        let refused = fixture.db.write(move |tx| commands::approve(tx, other, now)).await.unwrap();
        assert_eq!(refused, Some(vec![]), "a digest tells other changes too");
        fixture.db.write(move |tx| commands::approve(tx, id, now)).await.unwrap().unwrap();
        let shown = fixture.db.read(move |tx| view::find_change(tx, id)).await.unwrap().unwrap();
        assert_eq!(shown.deliveries[0].state.word(), "ready");
        fixture.db.write(move |tx| commands::skip(tx, id, &Topics::new(), now)).await.unwrap().unwrap();
        world.run_times(2).await;
        assert_eq!(world.messages().await.len(), 2, "what was skipped stays known");
        let missing = fixture.db.write(move |tx| commands::approve(tx, 999, now)).await.unwrap();
        assert_eq!(missing, None);
    }

    async fn a_blog_that_is_gone_is_paused_and_told_and_can_be_resumed(fixture) {
        let gone = site(feed_only).await;
        let world = World::new(&fixture, &config_text("", &[blog("b", &gone, "")]));
        world.run_times(1).await;
        gone.edit(|content| content.fault = Some(Fault::Status(410, vec![])));
        world.run_times(1).await;
        assert_eq!(world.alerts("b").await, ["gone"]);
        gone.take_log();
        world.run_times(3).await;
        assert!(gone.take_log().is_empty(), "it is left alone");
        assert_eq!(world.alerts("b").await, ["gone"], "and told once");
        let now = fixture.clock.now();
        let story = fixture.db.read(move |tx| view::find_details(tx, "b", 9, now)).await.unwrap().unwrap();
        assert!(story.paused.is_some() && story.events.iter().any(|event| event.code == "gone"));
        gone.edit(|content| content.fault = None);
        assert!(fixture.db.write(move |tx| store::resume(tx, "b", now)).await.unwrap());
        world.run_times(1).await;
        assert_eq!(world.alerts("b").await, ["gone", "recovered"]);
    }

    async fn a_paused_blog_with_a_new_address_is_checked_again(fixture) {
        let (old, new) = (site(feed_only).await, site(feed_only).await);
        let mut world = World::new(&fixture, &config_text("", &[blog("b", &old, "")]));
        old.edit(|content| content.fault = Some(Fault::Status(410, vec![])));
        world.run_times(1).await;
        let plan = |world: &World| { let work = world.job().collector; let db = fixture.db.clone(); let now = fixture.clock.now(); async move { work.plan(&db, now).await.unwrap().steps } };
        assert_eq!(plan(&world).await, ["skip 1 blog: paused, or not due"]);
        world.reconfigure(&config_text("", &[blog("b", &new, "")]));
        let steps = plan(&world).await;
        assert!(steps.len() == 1 && steps[0].to_string().starts_with("check b ("), "a dry run says what the run does: {steps:?}");
        world.run_times(2).await;
        assert!(!new.take_log().is_empty());
        let now = fixture.clock.now();
        assert!(fixture.db.read(move |tx| store::list_paused(tx, now)).await.unwrap().is_empty());
    }

    async fn a_renamed_address_keeps_the_state_and_a_removed_blog_keeps_its_rows(fixture) {
        let (old, new) = (site(feed_only).await, site(feed_only).await);
        let mut world = World::new(&fixture, &config_text("", &[blog("b", &old, ""), blog("c", &old, "")]));
        world.run_times(2).await;
        world.reconfigure(&config_text("", &[blog("b", &new, "")]));
        new.edit(|content| content.publish("x", "x", fixture.clock.now()));
        world.run_times(2).await;
        // The articles of the new host have other addresses, but the guids of those that are known.
        assert_eq!(world.announced("b").await, ["x"]);
        let checks = world.checks("b", 9).await;
        assert_eq!(checks.len(), 4, "its history goes on");
        let configured = HashSet::from(["b".to_owned()]);
        let left = fixture.db.read(move |tx| view::list_left(tx, &configured)).await.unwrap();
        assert_eq!(left.iter().map(|left| left.name.as_str()).collect::<Vec<_>>(), ["c"]);
    }

    async fn detect_restricts_and_named_documents_are_not_searched_for(fixture) {
        let site = site(|_| {}).await;
        let world = World::new(&fixture, &config_text("", &[
            blog("html", &site, "detect = [\"html\"]\nconfirm = false"),
            blog("sitemap", &site, &format!("detect = [\"sitemap\"]\nsitemap = \"{}sitemap.xml\"", site.url)),
            blog("feed", &site, &format!("feed = \"{}feed.xml\"", site.url)),
        ]));
        world.run_times(1).await;
        let mut asked = paths(&site);
        asked.sort();
        assert_eq!(asked, ["GET /", "GET /feed.xml", "GET /sitemap.xml"]);
        site.edit(|content| content.publish("x", "x", fixture.clock.now()));
        world.run_times(1).await;
        for name in ["html", "sitemap", "feed"] {
            assert_eq!(world.announced(name).await, ["x"], "{name}");
        }
        let messages = world.messages().await;
        assert_eq!(messages.len(), 1, "one digest for all of them");
        for name in ["html", "sitemap", "feed"] {
            assert!(messages[0].payload.contains(name), "{}", messages[0].payload);
        }
    }

    async fn trying_out_shows_what_would_be_told_and_writes_nothing(fixture) {
        let (site, world) = watch(&fixture, feed_only).await;
        let first = world.blogs().preview(&fixture.db, None).await.unwrap();
        assert_eq!((first[0].entries, first[0].new.len()), (6, 0));
        assert!(first[0].feed_url.as_ref().is_some_and(|url| url.ends_with("/feed.xml")));
        let writes = fixture.db.stats().writes();
        world.blogs().preview(&fixture.db, Some("b")).await.unwrap();
        assert_eq!(fixture.db.stats().writes(), writes);
        assert!(world.checks("b", 1).await.is_empty());
        world.run_times(1).await;
        site.edit(|content| content.publish("x", "x", fixture.clock.now()));
        let trial = world.blogs().preview(&fixture.db, None).await.unwrap();
        assert_eq!(trial[0].new.iter().map(name_of).collect::<Vec<_>>(), ["x"]);
        world.run_times(1).await;
        assert_eq!(world.announced("b").await, ["x"], "trying out took nothing away");
        site.edit(|content| content.fault = Some(Fault::Status(500, vec![])));
        let trial = world.blogs().preview(&fixture.db, None).await.unwrap();
        assert!(trial[0].error.is_some());
    }

    async fn a_server_that_asks_for_patience_gets_it(fixture) {
        let (site, world) = watch(&fixture, feed_only).await;
        world.run_times(1).await;
        let later = Fault::Status(429, vec![("retry-after", "20000".into())]);
        site.edit(|content| content.fault = Some(later));
        world.run_times(1).await;
        site.take_log();
        world.run_times(4).await;
        assert!(site.take_log().is_empty(), "it is left alone for as long as it asks");
        site.edit(|content| content.fault = None);
        fixture.clock.advance(HOUR);
        world.run_times(1).await;
        assert_eq!(world.checks("b", 1).await[0].error_message, None);
    }

    async fn a_missed_stretch_raises_the_gap_alarm(fixture) {
        let (site, world) = watch(&fixture, feed_only).await;
        world.run_times(1).await;
        site.edit(|content| {
            content.articles.clear();
            content.publish("p", "p", fixture.clock.now());
            content.publish("q", "q", fixture.clock.now());
        });
        world.run_times(1).await;
        assert_eq!(world.announced("b").await, ["q", "p"]);
        assert!(world.messages().await[0].payload.contains("missed"));
        let events = fixture.db.read(|tx| event::list_about(tx, &Subject::new("blog", "b"), 20)).await.unwrap();
        assert!(events.iter().any(|event| event.code == "gap"));
    }

    async fn old_checks_are_pruned_in_small_steps(fixture) {
        let (_site, world) = watch(&fixture, feed_only).await;
        world.run_times(10).await;
        let before = fixture.clock.now().minus(HOUR * 4);
        assert_eq!(fixture.db.write(move |tx| store::prune_history(tx, before, 2)).await.unwrap(), 2);
        let pruned = app::prune(&fixture.db, before).await.unwrap();
        assert!(pruned >= 4, "the other checks, and what tells of the runs: {pruned}");
        assert_eq!(world.checks("b", 99).await.len(), 4);
        assert_eq!(app::prune(&fixture.db, before).await.unwrap(), 0);
        // As an import writes it: old, behind more than a batch of newer ones.
        let imported = tsuzuki::sql!(
            "INSERT INTO check_history (id, blog_id, checked_at, skipped, changed)
             VALUES (9999, 'b', '2020-01-01T00:00:00.000Z', 0, 0)"
        );
        fixture.db.write(move |tx| tx.execute(imported, tsuzuki::params![])).await.unwrap();
        assert_eq!(app::prune(&fixture.db, before).await.unwrap(), 1);
        assert_eq!(world.checks("b", 99).await.len(), 4);
    }

    async fn a_dry_run_names_what_is_due(fixture) {
        let site = site(feed_only).await;
        let blogs = [blog("a", &site, ""), blog("slow", &site, "every = \"1d\"")];
        let world = World::new(&fixture, &config_text("", &blogs));
        world.run_times(1).await;
        let plan = world.job().collector.plan(&fixture.db, fixture.clock.now()).await.unwrap();
        assert_eq!(plan.steps.len(), 2, "{plan:?}");
        assert!(plan.steps[0].to_string().starts_with("check a"));
        world.run_times(1).await;
        assert_eq!(world.checks("slow", 9).await.len(), 1);
    }
}

#[test]
fn mistakes_in_the_config_are_named_with_their_place() {
    let problems =
        |text: &str| crate::test_env::output_text(&crate::test_env::TestEnv::new(text).run(&["check"]));
    let text = config_text(
        "warn_after = 0",
        &[
            "id = \"a\"\nurl = \"https://a.example\"\ndetect = [\"feed\"]\nselector = \"main\"".into(),
            "id = \"a\"\nurl = \"https://b.example\"\nselector = \"main[\"".into(),
            "id = \"c\"\nurl = \"https://c.example\"\ndetect = []".into(),
        ],
    );
    let printed = problems(&text);
    for expected in
        ["of no use without", "already that of blog number 1", "main[", "at least one of", "warning needs"]
    {
        assert!(printed.contains(expected), "{expected:?} in {printed}");
    }
    let twice = format!(
        "{text}\n[[job]]\nname = \"more\"\nkind = \"blogs\"\nblog = [{{ id = \"c\", url = \"https://d.example\" }}]"
    );
    let printed = problems(&twice);
    assert!(printed.contains("already that of a blog of job `blogs`"), "{printed}");
}
