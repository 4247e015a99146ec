//! Documents as they are found: broken off, forwarding, drawn by a script, lists inside lists.

use crate::test_env::TestEnv;

use super::{HOUR, World, blog, config_text, feed_only, html_only, site, sitemap_only};

on_both_databases! {
    async fn a_document_that_breaks_off_yields_no_half_an_address(fixture) {
        for (path, media_type, edit) in [
            ("/feed.xml", "application/rss+xml", feed_only as fn(&mut tsuzuki::demo::site::Content)),
            ("/sitemap.xml", "application/xml", sitemap_only),
        ] {
            let site = site(edit).await;
            let id = path.trim_matches('/').replace('.', "");
            let text = config_text("", &[blog(&id, &site, "")]);
            let world = World::new(&fixture, &text);
            world.run_times(1).await;
            let list: String = (1..=6)
                .map(|number| match path {
                    "/feed.xml" => format!("<item><guid>urn:article-{number}</guid><link>{}article-{number}</link></item>", site.url),
                    _ => format!("<url><loc>{}article-{number}</loc></url>", site.url),
                })
                .collect();
            let (list, begun) = match path {
                "/feed.xml" => (format!("<rss><channel>{list}"), "<item><guid>g</guid><link>"),
                _ => (format!("<urlset>{list}"), "<url><loc>"),
            };
            let broken = format!("{list}{begun}{}a-very-lo", site.url);
            site.edit(|content| content.publish("a-very-long-address", "x", fixture.clock.now()));
            site.edit(|content| drop(content.instead.insert(path.into(), (200, media_type.into(), broken.clone()))));
            world.run_times(2).await;
            assert_eq!(world.announced(&id).await, [""; 0], "{path}: half an address is none");
            site.edit(|content| drop(content.instead.remove(path)));
            world.run_times(1).await;
            assert_eq!(world.announced(&id).await.len(), 1, "{path}: the whole one is news");
        }
    }

    async fn what_is_cut_at_a_limit_is_said_in_the_history_in_why_and_by_the_run(fixture) {
        let rss = |entries: usize, inside: &str| {
            let items: String = (0..entries).map(|number| format!("<item><link>https://a.example/{number}</link></item>")).collect();
            format!("<rss><channel><title>t</title>{inside}{items}</channel></rss>")
        };
        let deep = format!("{}{}", "<a>".repeat(600), "</a>".repeat(600));
        let page = format!("{}<p>", (0..5).map(|number| format!("<a href=/{number}>{number}</a>")).collect::<String>()).repeat(20_000);
        let sitemap = (0..50_001).map(|number| format!("https://a.example/{number}\n")).collect::<String>();
        for (id, edit, path, body, words) in [
            ("many", feed_only as fn(&mut tsuzuki::demo::site::Content), "/feed.xml", rss(10_001, ""), "more than 10000 entries"),
            ("deep", feed_only, "/feed.xml", rss(3, &deep), "nest deeper than 512"),
            ("addresses", sitemap_only, "/sitemap.xml", sitemap, "more than 50000 addresses"),
            ("elements", html_only, "/", page, "more than 200000 elements"),
        ] {
            let site = site(edit).await;
            let media_type = if id == "elements" { "text/html" } else { "text/plain" };
            site.edit(|content| drop(content.instead.insert(path.into(), (200, media_type.into(), body.replace("https://a.example/", site.url.as_str())))));
            let text = config_text("", &[blog(id, &site, "")]);
            let world = World::new(&fixture, &text);
            let line = world.run().await.summary.to_string();
            assert!(line.contains(&format!("1 read in part ({id}: ")) && line.contains(words), "{id}: {line}");
            fixture.clock.advance(HOUR);
            assert!(world.checks(id, 1).await[0].cut.is_some(), "{id}");
            let printed = TestEnv::on(&fixture, &text).ends(&format!("why {id}"), 0);
            assert_eq!(printed.matches(words).count(), 3, "a fact, a check, an event: {printed}");
            site.edit(|content| drop(content.instead.remove(path)));
            world.run_times(2).await;
            assert_eq!(world.checks(id, 1).await[0].cut, None, "{id}");
        }
    }

    async fn a_feed_that_wants_a_login_says_which_keys_give_it_one(fixture) {
        for (id, keys, words) in [
            ("open", "", "give this blog a `login`"),
            ("known", "headers = { X-Key = \"wrong\" }", "does not accept the `login`"),
        ] {
            let site = site(feed_only).await;
            let world = World::new(&fixture, &config_text("", &[blog(id, &site, keys)]));
            world.run_times(1).await;
            site.edit(|content| drop(content.instead.insert("/feed.xml".into(), (401, "text/plain".into(), String::new()))));
            let problems = world.run().await.problems;
            assert!(problems[0].to_string().contains(words), "{id}: {problems:?}");
        }
    }

    async fn pages_that_forward_or_need_a_script_say_so(fixture) {
        for (html, words) in [
            ("<html><head><meta http-equiv=\"refresh\" content=\"0; url=/blog/\"></head><body></body></html>", "forwards to"),
            ("<html><body><div id=\"root\"></div><script src=\"/app.js\"></script></body></html>", "JavaScript"),
        ] {
            let site = site(html_only).await;
            site.edit(|content| drop(content.instead.insert("/".into(), (200, "text/html".into(), html.into()))));
            let world = World::new(&fixture, &config_text("", &[blog("b", &site, "")]));
            let report = world.run().await;
            assert!(report.problems[0].to_string().contains(words), "{report:?}");
            assert_eq!(report.summary, "checked 1 of 1 blog: 1 failed", "what is refused at first counts once");
        }
    }

    async fn a_list_of_sitemaps_inside_a_list_is_read_and_one_deeper_is_not(fixture) {
        let site = site(sitemap_only).await;
        let base = site.url.as_str().trim_end_matches('/').to_owned();
        let index = |child: &str| format!("<sitemapindex><sitemap><loc>{base}/{child}</loc></sitemap></sitemapindex>");
        let list = |page: &str| format!("<urlset><url><loc>{base}/{page}</loc></url></urlset>");
        let put = |path: &str, body: String| {
            site.edit(|content| drop(content.instead.insert(path.into(), (200, "application/xml".into(), body))));
        };
        put("/sitemap.xml", index("one.xml"));
        put("/one.xml", index("two.xml"));
        put("/two.xml", list("found"));
        let world = World::new(&fixture, &config_text("", &[blog("b", &site, "")]));
        world.run_times(1).await;
        put("/two.xml", format!("<urlset><url><loc>{base}/found</loc></url><url><loc>{base}/new</loc></url></urlset>"));
        world.run_times(1).await;
        assert_eq!(world.announced("b").await, ["new"]);
        put("/two.xml", index("three.xml"));
        put("/three.xml", list("too-deep"));
        world.run_times(4).await;
        assert_eq!(world.announced("b").await, ["new"]);
    }

    async fn a_refused_first_list_is_counted_once(fixture) {
        let site = site(sitemap_only).await;
        site.edit(|content| drop(content.instead.insert("/sitemap.xml".into(), (200, "application/xml".into(), "<urlset></urlset>".into()))));
        let more = format!("{}\nsitemap = \"{}sitemap.xml\"\ndetect = [\"sitemap\"]", blog("b", &site, ""), site.url);
        let world = World::new(&fixture, &config_text("", &[more]));
        assert_eq!(world.run().await.summary, "checked 1 of 1 blog: 1 failed");
    }
}
