//! Looking after many feeds: the noun `blog`, names and channels of single blogs, words, logins, a message for each entry, OPML.

use std::fmt::Write as _;

use tsuzuki::demo::site::{Content, Site};

use super::{DAY, World, blog, config_text, feed_only, site};
use crate::test_env::{TestEnv, ends_with, out};

/// Entries with title and text, in place of the feed.
fn serve(site: &Site, entries: &[(&str, &str)]) {
    let mut feed = "<rss version=\"2.0\"><channel>".to_owned();
    for (title, text) in entries {
        let slug = title.to_lowercase().replace(' ', "-");
        let _ = write!(
            feed,
            "<item><guid>{}{slug}</guid><link>{0}{slug}</link><title>{title}</title><description>{text}</description></item>",
            site.url
        );
    }
    site.edit(|content: &mut Content| {
        content
            .instead
            .insert("/feed.xml".into(), (200, "application/rss+xml".into(), feed + "</channel></rss>"));
    });
}

on_both_databases! {
    async fn words_and_regular_expressions_choose_by_title_and_text(fixture) {
        let site = site(feed_only).await;
        serve(&site, &[("Old", "nothing")]);
        let more = "include = [\"rust\", \"/release [0-9]+/\", \"/*special*\"]\nexclude = [\"sponsored\"]";
        let world = World::new(&fixture, &config_text("", &[blog("b", &site, more)]));
        world.run_times(1).await;
        serve(&site, &[("Rust news", "x"), ("Other", "about RUST"), ("Cooking", "soup"), ("Release 12", "x"), ("release 13", "x"), ("A special", "x"), ("Rust ads", "Sponsored post")]);
        world.run_times(1).await;
        assert_eq!(world.announced("b").await, ["Rust news", "Other", "release 13", "A special"]);
    }

    async fn each_entry_has_a_message_with_its_text_where_the_job_wants_that(fixture) {
        let site = site(feed_only).await;
        serve(&site, &[("Old", "nothing")]);
        let world = World::new(&fixture, &config_text("digest = false", &[blog("b", &site, "title = \"The Blog\"\ntags = [\"rust\"]")]));
        world.run_times(1).await;
        serve(&site, &[("Second", "its text"), ("First", "older"), ("Old", "nothing")]);
        world.run_times(1).await;
        let messages = world.messages().await;
        assert_eq!(messages.len(), 2);
        let second = messages.iter().find(|row| row.payload.contains("Second")).unwrap();
        for part in ["The Blog: Second", "its text", "rust"] {
            assert!(second.payload.contains(part), "{part} in {}", second.payload);
        }
        assert!(messages[0].payload.contains("First"), "the older one goes first");
        world.run_times(1).await;
        assert_eq!(world.messages().await.len(), 2);
    }

    async fn a_blog_of_its_own_channels_is_told_there_alone(fixture) {
        let (one, two) = (site(feed_only).await, site(feed_only).await);
        let text = config_text("", &[blog("one", &one, ""), blog("two", &two, "deliver = [\"other\"]")]);
        let other = "[channel.other]\nkind = \"webhook\"\nurl = \"http://127.0.0.1:9/other\"\nallow_private = [\"127.0.0.1\"]\n";
        let world = World::new(&fixture, &text.replacen("[[job]]", &format!("{other}[[job]]"), 1));
        world.run_times(1).await;
        for (site, title) in [(&one, "x"), (&two, "y")] {
            site.edit(|content| content.publish(title, title, fixture.clock.now()));
        }
        world.run_times(1).await;
        let mut sent: Vec<_> = world.messages().await.into_iter().map(|row| (row.channel, row.payload.contains("one: x"))).collect();
        sent.sort();
        assert_eq!(sent, [("hook".to_owned(), true), ("other".to_owned(), false)]);
    }

    async fn logins_headers_and_cookies_go_to_the_blogs_own_servers(fixture) {
        for (wants, more) in [
            (("authorization", "Basic bWU6cGFzcy05ZjNhN2MyMQ=="), "login = { user = \"me\", password = \"pass-9f3a7c21\" }"),
            (("x-key", "token-9f3a7c21"), "headers = { \"X-Key\" = \"token-9f3a7c21\" }"),
            (("cookie", "session=1"), "cookies = \"session=1\""),
        ] {
            let site = site(feed_only).await;
            site.edit(|content| content.wants = Some((wants.0.into(), wants.1.into())));
            let id = wants.0;
            let world = World::new(&fixture, &config_text("", &[blog(id, &site, "")]));
            assert_eq!(world.run().await.problems.len(), 1, "{id} is needed");
            let world = World::new(&fixture, &config_text("", &[blog(id, &site, more)]));
            let report = world.run().await;
            assert!(report.problems.is_empty(), "{report:?}");
            // The doctor asks as a run does.
            let env = TestEnv::on(&fixture, &config_text("", &[blog(id, &site, more)]));
            let findings: serde_json::Value = serde_json::from_str(&out(&env.run_beside(&["doctor", "--json"]).await)).unwrap();
            let of_blog = findings.as_array().unwrap().iter().find(|finding| finding["check"] == format!("job blogs: {id}")).unwrap();
            assert_eq!(of_blog["verdict"], "ok", "{of_blog}");
            let state = format!("{:?}", world.state(id).await);
            assert!(!state.contains(wants.1), "{state}");
        }
    }

    async fn blogs_are_listed_added_paused_and_removed(fixture) {
        let (fine, broken) = (site(feed_only).await, site(feed_only).await);
        let text = config_text("", &[blog("fine", &fine, "title = \"Fine blog\""), blog("broken", &broken, "")]);
        let world = World::new(&fixture, &text);
        world.run_times(1).await;
        broken.edit(|content| content.fault = Some(tsuzuki::demo::faults::Fault::Status(500, vec![])));
        world.run_times(2).await;
        let env = TestEnv::on(&fixture, &format!("# mine\n{text}"));
        let run = async |args: &[&str], code: i32| {
            let output = env.run_beside(args).await;
            (ends_with(&output, code), out(&output))
        };
        let (listed, _) = run(&["blog", "ls"], 0).await;
        for part in ["Fine blog", "broken", "Failing", "1 of 2 blogs need a look: `tsuzuki blog ls --failing`"] {
            assert!(listed.contains(part), "{part} in {listed}");
        }
        let (listed, _) = run(&["blog", "ls", "--failing"], 0).await;
        assert!(listed.contains("WHY") && listed.contains("/feed.xml: HTTP 500 from 127.0.0.1"), "{listed}");
        let (_, json) = run(&["--json", "blog", "ls", "--failing"], 0).await;
        let rows: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!((rows.as_array().unwrap().len(), &rows[0]["blog_id"], &rows[0]["failures_in_a_row"]), (1, &"broken".into(), &2.into()));
        assert!(rows[0]["next_check_at"].is_string() && rows[0]["last_check_at"].is_string(), "{rows}");

        run(&["blog", "pause", "fine", "--for", "7d", "--reason", "holidays"], 0).await;
        let (listed, _) = run(&["blog", "ls"], 0).await;
        assert!(listed.contains("Paused") && listed.contains("holidays"), "{listed}");
        fine.take_log();
        world.run_times(1).await;
        assert!(fine.take_log().is_empty(), "a paused blog is left alone");
        let (shown, _) = run(&["blog", "show", "fine"], 0).await;
        assert!(shown.contains("blog resume fine"), "{shown}");
        run(&["blog", "resume", "fine"], 0).await;
        assert!(run(&["blog", "resume", "fine"], 1).await.0.contains("is not paused"));

        run(&["blog", "add", "https://new.example/", "--title", "New one", "--folder", "Tech/Rust"], 0).await;
        assert!(env.config().contains("id = \"new-one\"") && env.config().starts_with("# mine"), "{}", env.config());
        assert!(run(&["blog", "add", "https://new.example/"], 1).await.0.contains("watched already"));
        assert!(run(&["blog", "rm", "new-one"], 2).await.0.contains("--yes"));
        run(&["blog", "rm", "new-one", "--yes"], 0).await;
        assert!(!env.config().contains("new-one") && env.config().contains("id = \"broken\""), "{}", env.config());
        assert!(run(&["blog", "rm", "brokn", "--yes"], 2).await.0.contains("did you mean `broken`?"));
        fixture.clock.advance(DAY);
    }
}

#[test]
fn opml_keeps_folders_and_titles_both_ways() {
    let opml = "<opml version=\"2.0\"><body><outline text=\"Tech\"><outline text=\"Rust\">\
        <outline text=\"The Rust Blog\" xmlUrl=\"https://blog.rust-lang.example/feed.xml\" htmlUrl=\"https://blog.rust-lang.example/\"/>\
        </outline></outline></body></opml>";
    let env = TestEnv::new("");
    env.write("in.opml", opml);
    env.ends("import opml in.opml", 0);
    let config = env.config();
    assert!(
        config.contains("title = \"The Rust Blog\"") && config.contains("folder = \"Tech/Rust\""),
        "{config}"
    );
    let exported = out(&env.run(&["export", "opml"]));
    let place = |part: &str| exported.find(part).unwrap_or_else(|| panic!("{part} in {exported}"));
    assert!(
        place("\"Tech\"") < place("\"Rust\"") && place("\"Rust\"") < place("The Rust Blog"),
        "{exported}"
    );
}
