//! Silence and switches: a feed that has stopped beside a growing sitemap, what came while a feed was lost, and blogs that
//! bring nothing for much longer than usual.

use tsuzuki::blogs::events;
use tsuzuki::demo::site::Content;
use tsuzuki::ledger::event;

use super::{DAY, HOUR, World, blog, config_text, feed_only, site, watch};
use crate::test_env::TestEnv;

async fn codes(world: &World) -> Vec<String> {
    let events = world.db.read(|tx| event::list_about(tx, &events::subject("b"), 500)).await.unwrap();
    events.into_iter().map(|event| event.code).collect()
}

/// The feed of today, frozen while the site changes.
fn freeze_feed(content: &mut Content, base: &str) {
    let mut feed = "<rss version=\"2.0\"><channel><title>s</title>".to_owned();
    for article in &content.articles {
        feed += &format!(
            "<item><guid isPermaLink=\"false\">{0}</guid><title>{1}</title><link>{base}{2}</link><pubDate>Mon, 05 Mar 2018 00:00:00 GMT</pubDate></item>",
            article.guid, article.title, article.slug
        );
    }
    content
        .instead
        .insert("/feed.xml".into(), (200, "application/rss+xml".into(), feed + "</channel></rss>"));
}

on_both_databases! {
    async fn a_feed_that_stopped_years_ago_gives_way_to_a_growing_sitemap_and_comes_back(fixture) {
        let site = site(|_| {}).await;
        let base = site.url.to_string();
        site.edit(|content| freeze_feed(content, &base));
        let world = World::new(&fixture, &config_text("", &[blog("b", &site, "")]));
        for _ in 0..3 {
            world.run().await;
            fixture.clock.advance(DAY);
        }
        assert!(world.changes().await.is_empty() && world.state("b").await.decided_by.unwrap().word() == "feed");
        site.edit(|content| content.publish("x", "x", fixture.clock.now()));
        world.run().await;
        assert_eq!(world.announced("b").await, ["x"], "the sitemap knows it");
        assert_eq!(world.state("b").await.decided_by.unwrap().word(), "sitemap");
        let recorded = codes(&world).await;
        assert!(recorded.contains(&"feed_stopped".to_owned()) && recorded.contains(&"detector_changed".to_owned()), "{recorded:?}");
        fixture.clock.advance(HOUR);
        site.edit(|content| content.publish("y", "y", fixture.clock.now()));
        site.take_log();
        world.run().await;
        assert_eq!(world.announced("b").await, ["x", "y"]);
        assert!(site.take_log().iter().all(|asked| asked.path != "/feed.xml"), "the feed is not asked every time");

        // The feed resumes: what the sitemap announced is not announced again.
        site.edit(|content| drop(content.instead.remove("/feed.xml")));
        for _ in 0..9 {
            fixture.clock.advance(DAY);
            world.run().await;
        }
        assert_eq!(world.state("b").await.decided_by.unwrap().word(), "feed");
        assert_eq!(world.announced("b").await, ["x", "y"]);
    }

    async fn what_lastmod_proves_new_is_announced_when_the_sitemap_takes_over_from_a_lost_feed(fixture) {
        let (site, world) = watch(&fixture, |content| content.lastmods = true).await;
        world.run_times(2).await;
        site.edit(|content| {
            (content.feed, content.names_feed) = (None, false);
            content.publish("meanwhile", "meanwhile", fixture.clock.now());
            // Older than known entries, and never seen because a feed is limited.
            content.articles.push(tsuzuki::demo::site::Article::new("ancient", "ancient", fixture.clock.now().minus(DAY * 900)));
        });
        world.run_times(5).await;
        assert_eq!(world.state("b").await.decided_by.unwrap().word(), "sitemap");
        assert_eq!(world.announced("b").await, ["meanwhile"]);
    }

    async fn a_site_that_was_built_anew_while_its_feed_was_lost_announces_nothing(fixture) {
        let (site, world) = watch(&fixture, |content| content.lastmods = true).await;
        world.run_times(2).await;
        site.edit(|content| {
            (content.feed, content.names_feed) = (None, false);
            for article in &mut content.articles {
                article.slug.insert_str(0, "new-");
                article.published = fixture.clock.now();
            }
        });
        world.run_times(5).await;
        assert_eq!(world.announced("b").await, [""; 0], "every page has a new date, which proves nothing");
    }

    async fn a_blog_that_falls_silent_is_noted_once_and_shown(fixture) {
        let site = site(feed_only).await;
        let text = config_text("", &[blog("b", &site, "")]);
        let world = World::new(&fixture, &text);
        for _ in 0..8 {
            world.run().await;
            fixture.clock.advance(DAY);
        }
        let count = |codes: &[String], code: &str| codes.iter().filter(|known| *known == code).count();
        assert_eq!(count(&codes(&world).await, "silent"), 1);
        let env = TestEnv::on(&fixture, &text);
        for line in ["why b", "blog ls", "blog show b"] {
            let printed = env.ends(line, 0);
            assert!(printed.contains("usually something comes every"), "{line}: {printed}");
        }
        site.edit(|content| content.publish("x", "x", fixture.clock.now()));
        world.run().await;
        assert_eq!(count(&codes(&world).await, "silence_over"), 1);
        assert_eq!(world.alerts("b").await, [""; 0], "readers hear nothing of it");
    }
}
