//! Feeds of every dialect, compared with the expected result.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::Value;
use tsuzuki::parse::feed::inspect::shown;
use tsuzuki::parse::feed::{Context, ENTRY_LIMIT, Feed, FeedError, date, parse, parse_heads};
use tsuzuki::parse::sanitize::clean;

#[test]
fn dates_are_read_in_every_shape() {
    let table = include_str!("../fixtures/feeds/dates.txt");
    let mut wrong = Vec::new();
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let (text, expected) = line.split_once('|').unwrap();
        let read = date::parse(text).map_or("-".to_owned(), |at| at.to_string().replace(".000Z", "Z"));
        if read != expected {
            wrong.push(format!("{text}: {read}, not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Every document in the folder beside its expected content: members that are not listed are not compared.
#[test]
fn fixtures_are_read_as_their_pairs_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/feeds");
    let mut count = 0;
    for file in fs::read_dir(&folder).unwrap() {
        let path = file.unwrap().path();
        if !matches!(path.extension().and_then(|e| e.to_str()), Some("xml" | "jsonfeed")) {
            continue;
        }
        let expected: Value =
            serde_json::from_slice(&fs::read(path.with_extension("json")).unwrap()).unwrap();
        let bytes = fs::read(&path).unwrap();
        let context = Context { url: "http://example.org/feed".parse().ok(), ..Context::default() };
        let read = shown(&parse(&bytes, &context).unwrap());
        let mut wrong = Vec::new();
        compare(&expected, &read, &mut String::new(), &mut wrong);
        assert!(wrong.is_empty(), "{}: {wrong:#?}", path.display());
        check_heads(&bytes);
        count += 1;
    }
    assert!(count >= 9, "only {count} fixtures were found");
}

/// Without the texts of its entries a feed is the same: above all, its keys are.
fn check_heads(bytes: &[u8]) {
    let without_texts = |feed: Result<Feed, FeedError>| {
        feed.map(|mut feed| {
            for entry in &mut feed.entries {
                entry.summary = None;
                entry.content.clear();
            }
            feed
        })
    };
    let context = Context::default();
    assert_eq!(without_texts(parse_heads(bytes, &context)), without_texts(parse(bytes, &context)));
}

#[test]
fn texts_are_stepped_over_unless_they_tell_entries_apart() {
    let document =
        "<rss><channel><item><guid>1</guid><description>a &lt;b&gt; c</description></item></channel></rss>";
    let heads = parse_heads(document.as_bytes(), &Context::default()).unwrap();
    assert_eq!((heads.entries[0].key(), &heads.entries[0].summary), ("id:1", &None));
    for description in ["<![CDATA[x ]] > y]]>", "a<b>c</b>", "a <![CDATA[b]]> c", "", "a &amp; b"] {
        check_heads(document.replace("a &lt;b&gt; c", description).as_bytes());
    }
    let alike = "<rss><channel><item><description>a</description></item><item><description>b</description></item></channel></rss>";
    let heads = parse_heads(alike.as_bytes(), &Context::default()).unwrap();
    assert_ne!(heads.entries[0].key(), heads.entries[1].key());
    check_heads(alike.as_bytes());
}

fn compare(expected: &Value, read: &Value, at: &mut String, wrong: &mut Vec<String>) {
    match (expected, read) {
        (Value::Object(members), Value::Object(_)) => {
            for (name, value) in members {
                let length = at.len();
                at.push('.');
                at.push_str(name);
                compare(value, &read[name.as_str()], at, wrong);
                at.truncate(length);
            }
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            for (index, (expected, found)) in expected.iter().zip(found).enumerate() {
                let length = at.len();
                at.push_str(&format!("[{index}]"));
                compare(expected, found, at, wrong);
                at.truncate(length);
            }
        }
        _ if expected == read => {}
        _ => wrong.push(format!("{at}: {read}, not {expected}")),
    }
}

fn read(text: impl AsRef<[u8]>) -> Result<Feed, FeedError> {
    parse(text.as_ref(), &Context::default())
}

#[test]
fn what_is_no_feed_is_refused_with_its_reason() {
    for (document, refused) in [
        ("", FeedError::Empty),
        (" \n\t\u{feff}", FeedError::Empty),
        ("<!DOCTYPE html><html><head><title>x</title></head><body><p>hi</p></body></html>", FeedError::Html),
        ("<html xmlns='http://www.w3.org/1999/xhtml'><body/></html>", FeedError::Html),
        (
            "<?xml version='1.0'?><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'/>",
            FeedError::Sitemap,
        ),
        ("<sitemapindex/>", FeedError::Sitemap),
        ("<opml version='2.0'><body/></opml>", FeedError::Opml),
        ("<note><to>you</to></note>", FeedError::OtherXml { root: "note".to_owned() }),
        ("just some words", FeedError::NotAFeed),
        ("404 Not Found < sorry", FeedError::NotAFeed),
        ("{\"items\": []}", FeedError::OtherJson),
        ("{\"version\": 1, \"items\": [{\"a\": 1}]}", FeedError::OtherJson),
        ("[1, 2]", FeedError::OtherJson),
    ] {
        assert_eq!(read(document).unwrap_err(), refused, "{document}");
    }
    assert!(matches!(read("{\"items\": ["), Err(FeedError::BrokenJson { .. })));
    assert!(matches!(read(include_bytes!("../fixtures/query_set_hash.json")), Err(FeedError::OtherJson)));
}

#[test]
fn an_empty_feed_is_a_feed() {
    for document in [
        "<rss version='2.0'><channel><title>x</title></channel></rss>",
        "<feed xmlns='http://www.w3.org/2005/Atom'/>",
        "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns='http://purl.org/rss/1.0/'/>",
        "{\"version\":\"https://jsonfeed.org/version/1\",\"title\":\"x\",\"items\":[]}",
    ] {
        assert_eq!(read(document).unwrap().entries.len(), 0, "{document}");
    }
}

/// Each of these is a known attack; all must end soon, in a feed or a refusal, and never in an expansion.
#[test]
fn hostile_documents_end_within_their_limits() {
    let started = Instant::now();
    let rss = |inside: &str| format!("<rss version='2.0'><channel><title>x</title>{inside}</channel></rss>");

    let mut laughs = "<!DOCTYPE rss [<!ENTITY a 'ha'>".to_owned();
    for (one, next) in ('a'..='y').zip('b'..='z') {
        let tenfold = format!("&{one};").repeat(10);
        laughs.push_str(&format!("<!ENTITY {next} '{tenfold}'>"));
    }
    laughs.push_str("]>");
    laughs.push_str(&rss("<item><title>&z;</title></item>"));
    assert_eq!(read(&laughs).unwrap().entries[0].title.as_deref(), Some("&z;"));

    let big = format!("<!DOCTYPE rss [<!ENTITY a '{}'>]>", "x".repeat(100_000));
    let quadratic = big + &rss(&format!("<item><title>{}</title></item>", "&a;".repeat(100_000)));
    assert!(read(&quadratic).unwrap().entries[0].title.as_ref().unwrap().len() <= 300_000);

    let deep = rss(&format!("<item><title>t</title><description>{}x", "<div>".repeat(100_000)));
    let feed = read(&deep).unwrap();
    assert!(feed.damaged && feed.entries[0].summary.as_ref().unwrap().html().len() < 20_000);
    read("<a>".repeat(1_000_000)).unwrap_err();
    read(format!("{}{}", "[".repeat(100_000), "]".repeat(100_000))).unwrap_err();
    let nested =
        format!("{{\"version\":\"https://jsonfeed.org/version/1\",\"items\":{}", "[{\"x\":".repeat(100_000));
    read(nested).unwrap_err();

    let attributes: String = (0..300_000).map(|n| format!(" a{n}='1'")).collect();
    read(rss(&format!("<item{attributes}><title>t</title></item>"))).unwrap();
    let feed =
        read(rss(&format!("<item><title>t</title><description><p{attributes}>x</p></description></item>")));
    assert!(feed.unwrap().entries[0].summary.as_ref().unwrap().html().len() < 10_000);

    let million = rss(&"<item><title>t</title></item>".repeat(1_000_000));
    let feed = read(&million).unwrap();
    assert!(feed.cut == Some(tsuzuki::parse::Cut::Entries) && feed.entries.len() == ENTRY_LIMIT);
    let items = "{\"id\":\"1\",\"title\":\"t\"},".repeat(1_000_000);
    let json = format!("{{\"version\":\"https://jsonfeed.org/version/1\",\"items\":[{items}{{}}]}}");
    let feed = read(&json).unwrap();
    assert!(feed.cut == Some(tsuzuki::parse::Cut::Entries) && feed.entries.len() == ENTRY_LIMIT);

    for junk in [
        "< ",
        "<a ",
        "<a \"> \" ",
        "<a '>\"",
        "</",
        "<!",
        "<![CDATA[",
        "<!--",
        "<?",
        "&",
        "&#",
        "<a b=\"",
        "]]>",
        "<item>",
    ] {
        let _ = read(rss(&junk.repeat(400_000)));
        let inside = format!("<item><description>{}</description></item>", junk.repeat(400_000));
        if let Ok(feed) = read(rss(&inside)) {
            for entry in &feed.entries {
                entry.summary.as_ref().map(tsuzuki::parse::feed::Content::html);
            }
        }
    }
    // Generous for a slow machine without optimisation; a single quadratic step takes hours.
    assert!(started.elapsed() < Duration::from_secs(90), "{:?}", started.elapsed());
}

#[test]
fn items_that_are_never_closed_are_still_told_apart() {
    let items = "<rss><channel>".to_owned() + &"<item><title>t<link>http://example.org/".repeat(2_000);
    let feed = read(items.clone() + "</channel></rss>").unwrap();
    assert_eq!(feed.entries.len(), 2_000);
    assert!(feed.entries.iter().all(|entry| entry.title.as_deref() == Some("t")));
    assert_eq!(read(items).unwrap().entries.len(), 1_999, "the last one is broken off");
}

#[test]
fn a_feed_that_breaks_off_is_read_up_to_the_entry_it_breaks_off_in() {
    let item = |name: &str| {
        format!("<item><guid>{name}</guid><title>{name}</title><link>http://example.org/{name}</link></item>")
    };
    let whole =
        format!("<rss version='2.0'><channel><link>http://example.org/</link>{}{}", item("one"), item("two"));
    let second = whole.find("<item><guid>two").unwrap();
    for at in (0..=whole.len()).filter(|at| whole.is_char_boundary(*at)) {
        let links: Vec<_> = match read(&whole[..at]) {
            Ok(feed) => feed.entries.into_iter().filter_map(|entry| entry.link).collect(),
            Err(_) => continue,
        };
        let known = ["http://example.org/one", "http://example.org/two"];
        assert!(links.iter().all(|link| known.contains(&link.as_str())), "{at}: {links:?}");
        assert!(at < second || !links.is_empty(), "{at}: what was whole is read");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = parse(&bytes, &Context::default());
        check_heads(&bytes);
    }

    #[test]
    fn no_scrambled_feed_makes_the_reader_panic(cuts in proptest::collection::vec((0_usize..1000, 0_usize..1000), 1..12)) {
        let source = include_str!("../fixtures/feeds/atom_without_ids.xml");
        let mut bytes = Vec::new();
        for (from, length) in cuts {
            let from = from % source.len();
            let to = (from + length).min(source.len());
            bytes.extend_from_slice(&source.as_bytes()[from..to]);
        }
        if let Ok(feed) = parse(&bytes, &Context::default()) {
            shown(&feed);
        }
        check_heads(&bytes);
    }

    #[test]
    fn no_markup_makes_the_cleaner_panic_and_cleaning_twice_changes_nothing(pieces in proptest::collection::vec(0_usize..MARKUP.len(), 0..40)) {
        let html: String = pieces.into_iter().map(|index| MARKUP[index]).collect();
        let once = clean(&html, None);
        prop_assert_eq!(clean(&once, None), once);
    }

    #[test]
    fn no_text_makes_the_date_reader_panic(text in "\\PC{0,60}") {
        let _ = date::parse(&text);
    }

    #[test]
    fn no_scrambled_date_makes_the_date_reader_panic(text in "[0-9年月日時分:/+.,TZ wW午後前令和元오전후일월년-]{0,40}") {
        let _ = date::parse(&text);
    }

    #[test]
    fn every_written_moment_is_read_back(seconds in -2_000_000_000_i64..20_000_000_000) {
        let at = tsuzuki::time::Timestamp::from_millis(seconds * 1000);
        prop_assert_eq!(date::parse(&at.to_string()), Some(at));
        let mail = at.to_jiff().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        prop_assert_eq!(date::parse(&mail), Some(at));
    }
}

const MARKUP: &[&str] = &[
    "<p>",
    "</p>",
    "<b>",
    "</b>",
    "<a href=x>",
    "</a>",
    "<div>",
    "</div>",
    "<ul>",
    "<li>",
    "</ul>",
    "<pre>",
    "\n",
    "text",
    " ",
    "&amp;",
    "&lt;b&gt;",
    "<",
    ">",
    "&",
    "<br>",
    "<img src='/i.png' alt=\"a<b\">",
    "<!-- c -->",
    "<script>",
    "</script>",
    "<i title='x'>",
    "</i>",
    "<svg>",
    "<textarea>",
    "<h1>",
    "</h1>",
    "<blockquote>",
    "\u{a0}",
    "日本",
    "<x:y>",
    "<code>",
    "</code>",
];
