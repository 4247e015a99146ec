//! Whose feed is adopted: a table of the shapes that public platforms have, served at the socket.

use tsuzuki::blogs::view;
use tsuzuki::demo::site::{Content, Site};

use super::{World, config_text, newest};

/// A site: the address of the blog, what its page links, what answers where, and the correct feed.
struct Shape {
    what: &'static str,
    blog: &'static str,
    /// Feeds that the page names.
    named: &'static [&'static str],
    /// The canonical address of the page.
    canonical: Option<&'static str>,
    /// Posts that the page links to.
    links: &'static [&'static str],
    /// Feeds by path: the page they belong to, and their posts.
    feeds: &'static [(&'static str, &'static str, &'static [&'static str])],
    redirects: &'static [(&'static str, &'static str)],
    expected: Option<&'static str>,
}

const PLAIN: Shape = Shape {
    what: "",
    blog: "/user",
    named: &[],
    canonical: None,
    links: &[],
    feeds: &[],
    redirects: &[],
    expected: None,
};

const OF_OTHERS: &[&str] = &["/other/1", "/other/2", "/third/3", "/user/1"];
const OF_USER: &[&str] = &["/user/1", "/user/2"];
const WHOLE_SITE: (&str, &str, &[&str]) = ("/feed", "/", OF_OTHERS);

fn shapes() -> Vec<Shape> {
    vec![
        Shape { what: "only the whole site has a feed", feeds: &[WHOLE_SITE], ..PLAIN },
        Shape { what: "the same with a slash", blog: "/user/", feeds: &[WHOLE_SITE], ..PLAIN },
        Shape {
            what: "Zenn: below the user",
            feeds: &[WHOLE_SITE, ("/user/feed", "/user", OF_USER)],
            expected: Some("/user/feed"),
            ..PLAIN
        },
        Shape {
            what: "note: below the user, by another name",
            feeds: &[WHOLE_SITE, ("/user/rss", "/user", &["/user/n/n1"])],
            expected: Some("/user/rss"),
            ..PLAIN
        },
        Shape {
            what: "Qiita: below the user, named beside that of the site",
            named: &["/feed", "/user/feed.atom"],
            feeds: &[WHOLE_SITE, ("/user/feed.atom", "/user", &["/user/items/1"])],
            expected: Some("/user/feed.atom"),
            ..PLAIN
        },
        Shape {
            what: "Qiita, when the page names nothing",
            feeds: &[("/user/feed.atom", "/user", &["/user/items/1"])],
            expected: Some("/user/feed.atom"),
            ..PLAIN
        },
        Shape {
            what: "Medium: the user below the feed, with posts in publications",
            blog: "/@user",
            feeds: &[
                WHOLE_SITE,
                ("/feed/@user", "/@user?source=rss-1", &["/@user/1", "/publication/2", "/publication/3"]),
            ],
            expected: Some("/feed/@user"),
            ..PLAIN
        },
        Shape {
            what: "GitHub: the page with an ending",
            blog: "/owner/repo/releases",
            feeds: &[("/owner/repo/releases.atom", "/owner/repo/releases", &["/owner/repo/releases/tag/v1"])],
            expected: Some("/owner/repo/releases.atom"),
            ..PLAIN
        },
        Shape {
            what: "GitHub: names do not care about their case",
            blog: "/Owner",
            feeds: &[("/Owner.atom", "/owner", &["/elsewhere/repo/commit/1"])],
            expected: Some("/Owner.atom"),
            ..PLAIN
        },
        Shape {
            what: "WordPress in a folder, beside its comments",
            blog: "/blog/",
            named: &["/blog/comments/feed/", "/blog/feed/"],
            feeds: &[
                ("/blog/feed/", "/blog", &["/blog/1", "/blog/2"]),
                (
                    "/blog/comments/feed/",
                    "/blog",
                    &["/blog/1#comment-1", "/blog/1#comment-2", "/blog/2#comment-3"],
                ),
            ],
            expected: Some("/blog/feed/"),
            ..PLAIN
        },
        Shape {
            what: "WordPress: below a page are its comments, and the posts are in the feed of the site",
            blog: "/blog",
            feeds: &[
                ("/blog/feed", "/blog", &["/blog#comment-1", "/blog#comment-2"]),
                ("/feed", "/", &["/blog/1", "/blog/2", "/news/3"]),
            ],
            expected: Some("/feed"),
            ..PLAIN
        },
        Shape {
            what: "WordPress: the page lists posts that are not below it, and names their feed",
            blog: "/blog",
            named: &["/feed/"],
            links: &["/2026/01/first", "/2026/01/second"],
            feeds: &[("/feed/", "/", &["/2026/01/first", "/2026/01/second", "/2025/12/third"])],
            expected: Some("/feed/"),
            ..PLAIN
        },
        Shape {
            what: "every page of the platform names the feed of all users",
            named: &["/feed"],
            links: OF_USER,
            feeds: &[WHOLE_SITE],
            ..PLAIN
        },
        Shape {
            what: "a redirect to the feed of the site is not the user's",
            feeds: &[WHOLE_SITE],
            redirects: &[("/user/feed", "/feed")],
            ..PLAIN
        },
        Shape {
            what: "a user who is gone leads to the front page",
            named: &["/feed"],
            feeds: &[WHOLE_SITE],
            redirects: &[("/user", "/front")],
            ..PLAIN
        },
        Shape {
            what: "the feed of the site answers below the user, too",
            feeds: &[WHOLE_SITE, ("/user/feed", "/", OF_OTHERS)],
            ..PLAIN
        },
        Shape {
            what: "posts are on the author's own domain",
            feeds: &[WHOLE_SITE, ("/user/feed", "https://own.example/", &["https://own.example/1"])],
            expected: Some("/user/feed"),
            ..PLAIN
        },
        Shape {
            what: "an empty feed below the user",
            feeds: &[("/user/rss.xml", "", &[])],
            expected: Some("/user/rss.xml"),
            ..PLAIN
        },
        Shape {
            what: "the last of the usual places at the root",
            feeds: &[("/feeds/posts/default", "/", OF_USER)],
            expected: Some("/feeds/posts/default"),
            ..PLAIN
        },
        Shape {
            what: "YouTube: a channel has a name for people and another for its feed",
            blog: "/@user",
            named: &["/feeds/videos.xml"],
            canonical: Some("/channel/1"),
            feeds: &[("/feeds/videos.xml", "/channel/1", &["/watch/1", "/watch/2"])],
            expected: Some("/feeds/videos.xml"),
            ..PLAIN
        },
        Shape {
            what: "a page that calls the front page its own does not own the feed of the site",
            named: &["/feed"],
            canonical: Some("/"),
            feeds: &[WHOLE_SITE],
            ..PLAIN
        },
        Shape {
            what: "a page that nobody but browsers may read",
            blog: "/shut",
            feeds: &[WHOLE_SITE, ("/shut/feed", "/shut", &["/shut/1"])],
            expected: Some("/shut/feed"),
            ..PLAIN
        },
        Shape {
            what: "a site of its own, as on Hatena",
            blog: "/",
            named: &["/feed", "/rss"],
            feeds: &[("/feed", "/", &["/entry/1", "/entry/2"]), ("/rss", "/", &["/entry/1", "/entry/2"])],
            expected: Some("/feed"),
            ..PLAIN
        },
        Shape {
            what: "a site of its own that links elsewhere",
            blog: "/",
            feeds: &[("/index.xml", "", &["https://other.example/1"])],
            expected: Some("/index.xml"),
            ..PLAIN
        },
        Shape {
            what: "a page in a folder",
            blog: "/~user/index.html",
            feeds: &[("/~user/rss.xml", "/~user/", &["/~user/2026-01.html"]), WHOLE_SITE],
            expected: Some("/~user/rss.xml"),
            ..PLAIN
        },
        Shape {
            what: "the fullest of several",
            blog: "/",
            named: &["/short.xml", "/full.xml", "/comments/feed"],
            feeds: &[
                ("/short.xml", "/", &["/1", "/2"]),
                ("/full.xml", "/", &["/1", "/2", "/3"]),
                ("/comments/feed", "/", &["/1#comment-1", "/1#comment-2", "/1#comment-3", "/1#comment-4"]),
            ],
            expected: Some("/full.xml"),
            ..PLAIN
        },
    ]
}

fn absolute(base: &str, address: &str) -> String {
    if address.starts_with('/') { format!("{base}{address}") } else { address.to_owned() }
}

fn feed(base: &str, home: &str, posts: &[&str]) -> String {
    let home = if home.is_empty() { String::new() } else { format!("<link>{}</link>", absolute(base, home)) };
    let items: String = posts
        .iter()
        .map(|post| format!("<item><title>{post}</title><link>{}</link></item>", absolute(base, post)))
        .collect();
    format!("<rss version=\"2.0\"><channel><title>A feed</title>{home}{items}</channel></rss>")
}

async fn serve(shape: &Shape) -> Site {
    let mut content = Content::with_articles(0, newest());
    (content.feed, content.sitemap, content.page) = (None, None, "/nowhere".into());
    let site = Site::start(content).await.unwrap();
    let base = site.url.as_str().trim_end_matches('/').to_owned();
    let named =
        shape.named.iter().map(|at| format!("<link rel=alternate type=application/rss+xml href=\"{at}\">"));
    let links = shape.links.iter().chain(&["/about-us"]).map(|at| format!("<a href=\"{at}\">{at}</a>"));
    let canonical = shape.canonical.map(|at| format!("<link rel=canonical href=\"{at}\">"));
    let page: String = named.chain(canonical).chain(links).collect();
    let status = if shape.blog == "/shut" { 403 } else { 200 };
    site.edit(|content| {
        let at =
            shape.redirects.iter().find(|(from, _)| *from == shape.blog).map_or(shape.blog, |(_, to)| to);
        content.instead.insert(at.into(), (status, "text/html".into(), page));
        for (at, home, posts) in shape.feeds {
            content
                .instead
                .insert((*at).into(), (200, "application/rss+xml".into(), feed(&base, home, posts)));
        }
        for (from, to) in shape.redirects {
            content.redirects.insert((*from).into(), (302, (*to).into()));
        }
    });
    site
}

on_both_databases! {
    async fn a_blog_reads_its_own_feed_and_nobody_elses(fixture) {
        let shapes = shapes();
        let (mut sites, mut blogs) = (Vec::new(), Vec::new());
        for (number, shape) in shapes.iter().enumerate() {
            let site = serve(shape).await;
            let url = absolute(site.url.as_str().trim_end_matches('/'), shape.blog);
            blogs.push(format!("id = \"{number}\"\nurl = \"{url}\""));
            sites.push(site);
        }
        let world = World::new(&fixture, &config_text("", &blogs));
        world.run().await;
        let mut wrong = Vec::new();
        for (number, shape) in shapes.iter().enumerate() {
            let found = world.state(&number.to_string()).await.feed_url;
            if found.as_ref().map(tsuzuki::parse::url::Url::path) != shape.expected {
                wrong.push(format!("{}: {:?}, not {:?}", shape.what, found.map(String::from), shape.expected));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    async fn the_feeds_that_were_not_chosen_are_named(fixture) {
        let shape = shapes().pop().unwrap();
        let site = serve(&shape).await;
        let world = World::new(&fixture, &config_text("", &[format!("id = \"b\"\nurl = \"{}\"", site.url)]));
        world.run().await;
        let now = fixture.clock.now();
        let story = fixture.db.read(move |tx| view::find_details(tx, "b", 10, now)).await.unwrap().unwrap();
        assert_eq!(story.feed_url.as_deref(), Some(site.url.join("full.xml").unwrap().as_str()));
        assert_eq!(story.other_feeds, [site.url.join("short.xml").unwrap().to_string()]);
        let found = story.events.iter().find(|event| event.code == "feed_found").unwrap();
        assert_eq!(found.detail["others"], serde_json::json!(story.other_feeds));
    }
}
