//! Temporary behaviour of sites, and entries that must not be lost or sent twice because of it.

use std::fmt::Write as _;

use tsuzuki::demo::site::Site;

use super::{DAY, World, blog, config_text, feed_only, newest, site, watch};

/// A feed of posts that are hours old; `at` is the address of a post.
fn feed(posts: &[&str], at: impl Fn(&str) -> String) -> String {
    let mut feed = "<rss version=\"2.0\"><channel>".to_owned();
    for (title, address) in posts.iter().map(|title| (title, at(title))) {
        let age = title.bytes().map(|letter| u32::from(letter - b'a')).sum::<u32>();
        let _ = write!(
            feed,
            "<item><guid>{address}</guid><link>{address}</link><title>{title}</title><pubDate>{}</pubDate>\
             <description>about {title}</description></item>",
            newest().plus(DAY).minus(DAY / 24 * age)
        );
    }
    feed + "</channel></rss>"
}

fn serve(site: &Site, path: &str, media_type: &str, body: &str) {
    site.edit(|content| {
        content.instead.insert(path.into(), (200, media_type.into(), body.into()));
    });
}

const RSS: &str = "application/rss+xml";

on_both_databases! {
    async fn what_was_published_during_maintenance_is_sent_at_the_first_check_after_it(fixture) {
        for page in ["<p>Maintenance. <script>x</script></p>", "<p>Maintenance. <a href=/status>Status</a>"] {
            let site = site(feed_only).await;
            let blog = blog(&page.len().to_string(), &site, "");
            let world = World::new(&fixture, &config_text("", &[blog]));
            world.run_times(1).await;
            for path in ["/", "/feed.xml", "/robots.txt", "/sitemap.xml"] {
                serve(&site, path, "text/html", page);
            }
            world.run_times(6).await;
            site.edit(|content| {
                content.instead.clear();
                content.publish("x", "x", fixture.clock.now());
            });
            world.run_times(1).await;
            assert_eq!(world.announced(&page.len().to_string()).await, ["x"], "{page}");
        }
    }

    async fn a_feed_that_was_removed_and_is_back_is_read_again_at_once(fixture) {
        let (site, world) = watch(&fixture, feed_only).await;
        world.run_times(1).await;
        site.edit(|content| {
            content.instead.insert("/feed.xml".into(), (410, "text/html".into(), "gone".into()));
        });
        world.run_times(2).await;
        site.edit(|content| {
            content.instead.clear();
            content.publish("x", "x", fixture.clock.now());
        });
        world.run_times(1).await;
        assert_eq!(world.announced("b").await, ["x"]);
    }

    async fn posts_under_new_ids_and_addresses_are_not_new(fixture) {
        let (site, world) = watch(&fixture, feed_only).await;
        let base = site.url.as_str().to_owned();
        let posts = ["a", "b", "c"];
        serve(&site, "/feed.xml", RSS, &feed(&posts, |title| format!("{base}{title}")));
        world.run_times(1).await;
        for (what, posts, renamed, place, announced) in [
            ("one slug is corrected", &["a", "b", "c"][..], "b", "2026/", &[][..]),
            ("all permalinks change, and another post comes", &["d", "a", "b", "c"], "abcd", "2026/", &["d"]),
            ("links have the visitor's number in them", &["d", "a", "b", "c"], "abcd", "?visitor=17&post=", &["d"]),
            ("and another at the next visit", &["e", "d", "a", "b"], "abcde", "?visitor=18&post=", &["d", "e"]),
        ] {
            let at = |title: &str| format!("{base}{}{title}", if renamed.contains(title) { place } else { "" });
            serve(&site, "/feed.xml", RSS, &feed(posts, at));
            world.run_times(1).await;
            assert_eq!(world.announced("b").await, *announced, "{what}");
        }
    }

    async fn texts_count_from_the_first_check_where_the_address_is_the_feed_itself(fixture) {
        let site = site(feed_only).await;
        let feed_url = site.url.join("feed.xml").unwrap();
        let blog = format!("id = \"b\"\nurl = \"{feed_url}\"\ninclude = [\"about\"]");
        let world = World::new(&fixture, &config_text("", &[blog]));
        let base = site.url.as_str().to_owned();
        for posts in [&["a", "b"][..], &["a", "b"], &["c", "a", "b"]] {
            serve(&site, "/feed.xml", RSS, &feed(posts, |title| format!("{base}{title}")));
            world.run_times(1).await;
        }
        assert_eq!(world.announced("b").await, ["c"]);
    }
}
