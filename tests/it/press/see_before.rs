//! See before it is public: one item whole, several feeds, words that decide before the model, and posts without one.

use super::*;
use crate::test_env::ends_with;

const PLAIN: More<'static> = More { tables: "", llm: "", job: "items_per_run = 9" };

/// The program beside the servers, over the database of the test.
async fn tsuzuki(world: &World, fixture: &Fixture, more: &More<'_>, args: &[&str]) -> String {
    ends_with(&world.test_env(fixture, more).run_beside(args).await, 0)
}

on_both_databases! {
    async fn one_item_is_shown_whole_and_nothing_is_sent_or_stored(fixture) {
        let world = World::new(&fixture, &PLAIN).await;
        world.publish("a", files(&[2000, 3000]));
        let url = world.ministry.page("a");
        let shown = tsuzuki(&world, &fixture, &PLAIN, &["job", "test", "mic", "--item", &url]).await;
        for part in [
            "報道資料 a",
            "家計に関する調査の結果を公表します。",
            "別紙（bessi0.pdf） (2 kB)",
            "question to the model (screening)",
            "<<<PAGE",
            "post (toots)",
            "--ask",
        ] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
        assert_eq!(world.gemini.questions().len(), 0, "the model is not asked");

        let asked = tsuzuki(&world, &fixture, &PLAIN, &["job", "test", "mic", "--item", &url, "--ask"]).await;
        for part in ["worth a post", "資料2件を公表した。", "post (toots)", &url] {
            assert!(asked.contains(part), "{part} in {asked}");
        }
        assert_eq!((world.gemini.questions().len(), world.posts().len(), world.items().await.len()), (2, 0, 0));
        let json = tsuzuki(&world, &fixture, &PLAIN, &["--json", "job", "test", "mic", "--item", &url, "--ask"]).await;
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["files"].as_array().unwrap().len(), 2);
        assert!(json["posts"][0]["text"].as_str().unwrap().contains(&url), "{json}");
        assert_eq!(world.gemini.questions().len(), 2, "its answers are known by now");
    }

    async fn a_job_reads_several_feeds_and_one_that_fails_keeps_no_other_from_it(fixture) {
        let mut world = World::untouched(&fixture, &PLAIN).await;
        let feed = |slug: &str| format!(
            "<rss version=\"2.0\"><channel><item><link>{0}menu_news/s-news/{slug}.html</link><title>{slug}</title>\
             <pubDate>Wed, 14 Jan 2026 00:00:00 GMT</pubDate></item></channel></rss>",
            world.ministry.url
        );
        let text = config_text(&world.ministry, &world.gemini, &world.mastodon, &PLAIN);
        let feeds = format!("[\"{0}news.rdf\", \"{0}second.rdf\", \"{0}third.rdf\"]", world.ministry.url);
        world.config = read_config(&text.replace(&format!("\"{}\"", world.ministry.feed()), &feeds));
        world.ministry.instead("/second.rdf", "application/rss+xml", feed("old"));
        world.run().await;
        world.clock.advance(HOUR);
        world.publish("first", files(&[2000]));
        for slug in ["second", "first"] {
            world.ministry.publish(slug, slug, Some(at("2026-01-14T00:00:00Z")), files(&[2000]));
        }
        world.ministry.instead("/second.rdf", "application/rss+xml", feed("second"));
        let report = world.live(1).await.remove(0);
        let summary = report.summary.to_string();
        assert!(summary.contains("news.rdf: 2 new") && summary.contains("second.rdf: 0 new"), "one item in two feeds is one: {summary}");
        assert!(report.problems.len() == 1 && report.problems[0].to_string().contains("third.rdf"), "{report:?}");
        assert_eq!(world.posts().len(), 2);
    }

    async fn words_leave_entries_out_before_the_model_is_asked(fixture) {
        let job = "items_per_run = 9\ninclude = [\"調査\", \"/^報道資料 [0-9]+$/\"]\nexclude = [\"人事\"]";
        let world = World::new(&fixture, &More { job, ..PLAIN }).await;
        for (slug, title) in [("a", "家計調査の結果"), ("b", "会見"), ("c", "人事に関する調査"), ("d", "報道資料 12"), ("e", "報道資料 x")] {
            world.ministry.publish(slug, title, Some(world.clock.now().minus(HOUR)), files(&[2000]));
        }
        let report = world.live(1).await.remove(0);
        assert!(report.summary.to_string().contains("2 new, 3 left out by `include` or `exclude`"), "{}", report.summary);
        assert_eq!(world.posts().len(), 2);
        assert_eq!(world.gemini.questions().len(), 4, "two items, each screened and summarised");
        assert_eq!((world.standing("c").await.as_str(), world.story("c").await), ("3/0/0", vec!["filtered".to_owned()]));
        world.clock.advance(HOUR);
        world.live(1).await;
        assert_eq!(world.posts().len(), 2, "left out once, left out for good");
    }

    async fn what_is_not_worth_a_summary_is_posted_with_its_title_if_the_job_says_so(fixture) {
        let world = World::new(&fixture, &More { job: "items_per_run = 9\nnot_valuable = \"post_title\"", ..PLAIN }).await;
        world.publish("bare", Shape::Bare);
        world.publish("done", files(&[2000]));
        world.live(2).await;
        assert_eq!(world.standing("bare").await, "3/0/0");
        assert_eq!(world.story("bare").await, ["found", "not_valuable", "queued", "posted"]);
        let post = world.posts().into_iter().find(|post| post.contains("bare")).unwrap();
        assert_eq!(post, format!("報道資料 bare\n\n{}", world.ministry.page("bare")));
        let asked = world.gemini.questions().iter().filter(|asked| asked.text().contains("報道資料 bare")).count();
        assert_eq!((asked, world.posts().len()), (1, 2), "no summary was asked for");
    }

    async fn without_a_model_title_and_excerpt_are_posted(fixture) {
        let job = "items_per_run = 9\nllm = \"none\"\nsummary_chars = 60";
        let world = World::new(&fixture, &More { job, ..PLAIN }).await;
        world.publish("page", files(&[2000]));
        let feed = format!(
            "<rss version=\"2.0\"><channel><item><link>{0}x.html</link><title>題</title>\
             <description>&lt;p&gt;要旨である。&lt;a href='https://evil.example/'&gt;続き&lt;/a&gt; @someone&lt;/p&gt;</description></item>\
             <item><link>{1}</link><title>頁</title></item></channel></rss>",
            world.ministry.url, world.ministry.page("page")
        );
        world.ministry.instead("/news.rdf", "application/rss+xml", feed);
        world.live(1).await;
        let posts = world.posts();
        assert_eq!((posts.len(), world.gemini.log().len()), (2, 0), "{posts:?}");
        let described = posts.iter().find(|post| post.starts_with("題")).unwrap();
        assert!(described.contains("要旨である。") && !described.contains("@someone") && !described.contains("evil"), "{described}");
        let page = posts.iter().find(|post| post.starts_with("頁")).unwrap();
        assert!(page.contains("家計に関する調査の結果を公表します。"), "the page has to do: {page}");
    }
}

#[test]
fn a_pattern_that_is_none_is_told_at_its_place() {
    let text = "[[job]]\nname = \"p\"\nkind = \"press\"\nfeed = []\nllm = \"none\"\ninclude = [\"/(/\"]\n";
    let env = TestEnv::new(text);
    let printed = env.ends("check", 5);
    for part in ["is not a regular expression", "tsuzuki.toml:6", "the list is empty", "tsuzuki.toml:4"] {
        assert!(printed.contains(part), "{part} in {printed}");
    }
}
