//! Hostile feeds: the size of the result stays in proportion to the document.

use proptest::prelude::*;
use tsuzuki::parse::feed::inspect::shown;
use tsuzuki::parse::feed::{Context, Feed, parse, parse_heads};

/// The limit of a document's addresses and languages: what bases may add, in a few copies.
const ENOUGH: usize = 40 << 20;

fn read(text: &str) -> Feed {
    parse(text.as_bytes(), &Context::default()).unwrap()
}

/// How long all addresses, keys, languages and bases of the entries are together.
fn total(feed: &Feed) -> usize {
    let of = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let entries = feed.entries.iter();
    let sums = entries.map(|entry| {
        let texts = entry.summary.iter().chain(&entry.content);
        of(&entry.link)
            + of(&entry.id)
            + of(&entry.comments)
            + of(&entry.image)
            + of(&entry.language)
            + entry.key().len()
            + entry.links.iter().map(|link| link.href.len()).sum::<usize>()
            + entry.enclosures.iter().map(|file| file.url.len()).sum::<usize>()
            + entry.authors.iter().map(|person| of(&person.url)).sum::<usize>()
            + texts
                .map(|text| {
                    let base = text.base.as_ref().map_or(0, |base| base.as_str().len());
                    text.value.len() + base + of(&text.language) + of(&text.src)
                })
                .sum::<usize>()
    });
    sums.sum()
}

fn rss(attributes: &str, item: &str, times: usize) -> String {
    format!("<rss {attributes}><channel><title>t</title>{}</channel></rss>", item.repeat(times))
}

/// From short to long, so that a parser without limits fails before memory is exhausted.
#[test]
fn a_base_is_not_copied_into_every_address() {
    let places = [
        "<item><link>a</link></item>",
        "<item><link href=''/><link href='a'/><link href='b'/></item>",
        "<item><guid>./a</guid><comments>b</comments><media:content url='c'/><enclosure url='d'/></item>",
        "<item><description xml:base='a'>x</description></item>",
        "<item><description xml:base='.'><p xml:base='b'><a href='c'>x</a><img src='d'/></p></description></item>",
        "<item><author><uri>a</uri></author><image><url>b</url></image></item>",
    ];
    for length in [4_000, 300_000] {
        let base = format!("xml:base='http://x.example/{}/'", "a".repeat(length));
        for item in places {
            let document = rss(&base, item, 10_000);
            let feed = read(&document);
            assert_eq!(feed.entries.len(), 10_000);
            // The bases of texts are shared; those that were made in the document count in full.
            let shared = feed.entries.len() * length.min(4_096);
            assert!(total(&feed) <= ENOUGH + shared + document.len(), "{length} {item}: {}", total(&feed));
            assert!(feed.damaged, "{length} {item}");
        }
    }
}

#[test]
fn bases_do_not_grow_without_end() {
    let step = format!(" xml:base='{}/'", "a".repeat(100));
    let nested = format!("<x{}>", step.repeat(250)).repeat(300);
    let document = rss(
        "xml:base='http://x.example/'",
        &format!("{nested}{}", "<item><link>a</link></item>".repeat(100)),
        1,
    );
    let feed = read(&document);
    assert!(feed.damaged && feed.entries.len() == 100);
    assert!(feed.entries.iter().all(|entry| entry.link.as_ref().unwrap().len() <= 4_200));
}

#[test]
fn a_long_address_of_the_document_is_no_base() {
    let long = format!("http://x.example/{}/", "a".repeat(5_000));
    let usual = "http://y.example/feed".parse().ok();
    let document = rss("", "<item><link>a</link></item>", 2_000);
    let by_location = Context { content_location: Some(long.clone()), url: usual, ..Context::default() };
    let feed = parse(document.as_bytes(), &by_location).unwrap();
    assert_eq!(feed.entries[0].link.as_deref(), Some("http://y.example/a"));
    let by_url = Context { url: long.parse().ok(), ..Context::default() };
    for document in [
        document,
        format!(
            r#"{{"version":"https://jsonfeed.org/version/1","items":[{}{{}}]}}"#,
            r#"{"id":"1","url":"a"},"#.repeat(2_000)
        ),
    ] {
        let feed = parse(document.as_bytes(), &by_url).unwrap();
        assert_eq!((feed.entries.len(), feed.entries[0].link.as_deref()), (2_000, Some("a")));
    }
}

#[test]
fn a_json_feed_copies_its_address_into_no_more_than_is_allowed() {
    let base = Context {
        url: format!("http://x.example/{}/", "a".repeat(4_000)).parse().ok(),
        ..Context::default()
    };
    let item = r#"{"id":"1","url":"a","external_url":"b","image":"c","attachments":[{"url":"d"},{"url":"e"}],"authors":[{"url":"f"}]},"#;
    let document =
        format!(r#"{{"version":"https://jsonfeed.org/version/1","items":[{}{{}}]}}"#, item.repeat(9_000));
    let feed = parse(document.as_bytes(), &base).unwrap();
    assert!(feed.damaged && total(&feed) <= ENOUGH, "{}", total(&feed));
}

#[test]
fn a_language_of_any_length_is_none() {
    let item = "<item><link>http://x.example/</link><description>x</description></item>";
    for length in [1_000, 300_000] {
        let feed = read(&rss(&format!("xml:lang='{}'", "a".repeat(length)), item, 10_000));
        assert!(feed.damaged && feed.language.is_none() && total(&feed) <= ENOUGH, "{length}");
    }
    assert_eq!(read(&rss("xml:lang='ja'", item, 1)).entries[0].language.as_deref(), Some("ja"));
}

#[test]
fn an_address_that_no_server_takes_is_left_out_and_the_entry_stays() {
    let long = format!("http://x.example/{}", "a".repeat(10_000));
    let feed =
        read(&rss("", &format!("<item><guid>{long}</guid><link>{long}</link><title>t</title></item>"), 1));
    assert_eq!((feed.entries[0].title.as_deref(), feed.entries[0].links.len()), (Some("t"), 0));
}

#[test]
fn cleaning_a_text_does_not_copy_its_base_into_every_tag() {
    let base = format!("xml:base='http://x.example/{}/'", "a".repeat(4_000));
    let item =
        format!("<item><description>{}</description></item>", "&lt;a href='b'>x&lt;/a>".repeat(20_000));
    let html = read(&rss(&base, &item, 1)).entries[0].summary.as_ref().unwrap().html();
    assert!(html.len() <= 8 << 20 && html.contains("href=\"b\""), "{}", html.len());
}

#[test]
fn end_tags_that_close_nothing_are_compared_only_so_often() {
    let honest = read(&rss("", "<item><title>t</title></p></B></div></item>", 5_000));
    assert!(honest.damaged && honest.entries.len() == 5_000);
    let deep = format!("{}{}<item>", "<a>".repeat(500), "</x>".repeat(400_000));
    let feed = read(&rss("", &deep, 1));
    assert!(feed.damaged && feed.entries.is_empty(), "the document is given up before its end");
}

/// The tokenizer drops a byte order mark at its start without counting it.
#[test]
fn byte_order_marks_move_no_positions() {
    for document in [
        "<rss version=\"2.0\"><channel><title>t</title><!-- x>\u{feff}日本<item><title>題</title></item>",
        "<rss version=\"2.0\"><channel><title>t</title><!-- x>\u{feff}\u{feff}日本<item><title>題</title></item>",
        "\u{1}\u{feff}<rss version=\"2.0\"><channel><item><title>題</title></item></channel></rss>",
        "\u{feff}\u{1}\u{feff} \u{feff}<rss version=\"2.0\"><channel><item><title>題</title></item></channel></rss>",
        "<rss version=\"2.0\"><channel><a <\u{feff}b>日本</b><item><title>題</title></item></channel></rss>",
    ] {
        let feed = read(document);
        assert_eq!(feed.entries.len(), 1, "{document}");
        assert_eq!(feed.entries[0].title.as_deref(), Some("題"), "{document}");
    }
}

/// Input that confuses a tokenizer, and the expected result.
const PIECES: &[&str] = &[
    "\u{feff}",
    "\u{feff}",
    "\u{1}",
    "\u{0}",
    "\u{85}",
    "<!-- x>",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "<?x",
    "?>",
    "<!DOCTYPE a [",
    "<item>",
    "</item>",
    "<title>",
    "</title>",
    "<link>",
    "</link>",
    "<link href='a'/>",
    "<description>",
    "</description>",
    "<a b='",
    "<a b=\"",
    "'>",
    "\">",
    "<",
    ">",
    "</",
    "/>",
    "&",
    "&amp;",
    "&#1;",
    "&日;",
    "日本",
    "é",
    " ",
    "\r\n",
    "<日本>",
    "</日本>",
    "<a xmlns:b='c' xml:base='d' xml:lang='e'>",
    "<b:c>",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn no_marks_controls_and_unclosed_pieces_make_the_reader_panic(
        before in proptest::collection::vec(0..PIECES.len(), 0..4),
        inside in proptest::collection::vec(0..PIECES.len(), 0..30),
    ) {
        let joined = |at: Vec<usize>| at.into_iter().map(|at| PIECES[at]).collect::<String>();
        let document = format!("{}<rss version='2.0'><channel>{}", joined(before), joined(inside));
        let context = Context { url: "http://x.example/feed".parse().ok(), ..Context::default() };
        if let Ok(feed) = parse(document.as_bytes(), &context) {
            shown(&feed);
        }
        let _ = parse_heads(document.as_bytes(), &context);
    }
}
