//! Sitemaps as they occur on real sites.

use std::io::Write as _;

use proptest::prelude::*;

use super::*;

fn read(text: &str) -> Result<Sitemap, SitemapError> {
    let base = Url::parse("https://example.com/sitemap.xml").unwrap();
    parse(text.as_bytes(), None, Some(&base), &SitemapLimits::default())
}

fn locs(text: &str) -> Vec<String> {
    read(text).unwrap().urls.into_iter().map(|location| location.loc).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn pages_and_dates_are_read() {
    let sitemap = read(
        "<?xml version='1.0' encoding='UTF-8'?><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>\
         <url><loc>https://example.com/a?x=1&amp;y=2</loc><lastmod>2026-01-15</lastmod><priority>0.5</priority></url>\
         <url><lastmod>2026-01-15T09:00:00+09:00</lastmod><loc>\n  <![CDATA[https://example.com/b&c]]>\n</loc></url>\
         <url><loc>/relative</loc><lastmod>sometime</lastmod></url><url><loc>mailto:x@y</loc></url><url/></urlset>",
    )
    .unwrap();
    let found: Vec<(String, Option<String>)> =
        sitemap.urls.into_iter().map(|at| (at.loc, at.lastmod.map(|at| at.to_string()))).collect();
    let midnight = Some("2026-01-15T00:00:00.000Z".to_owned());
    assert_eq!(
        found,
        [
            ("https://example.com/a?x=1&y=2".to_owned(), midnight.clone()),
            ("https://example.com/b&c".to_owned(), midnight),
            ("https://example.com/relative".to_owned(), None),
        ]
    );
    assert!(sitemap.cut.is_none() && sitemap.children.is_empty());
}

#[test]
fn a_sitemap_of_news_names_its_pages_and_says_when_they_appeared() {
    let sitemap = read(
        "<urlset xmlns:news='http://www.google.com/schemas/sitemap-news/0.9'>\
         <url><loc>https://example.com/a</loc><news:news><news:publication><news:name>Paper</news:name></news:publication>\
         <news:publication_date>2026-01-15T09:00:00+09:00</news:publication_date>\
         <news:title>\n Rain &amp;amp; <![CDATA[snow]]>\n</news:title></news:news><video:title>v</video:title></url>\
         <url><loc>https://example.com/b</loc><lastmod>2026-01-16</lastmod><video:title>v</video:title>\
         <news:publication_date>2026-01-15</news:publication_date><news:title>Half",
    )
    .unwrap();
    let shown = |at: &Location| (at.loc.clone(), at.lastmod.unwrap().to_string(), at.title.clone());
    let found: Vec<_> = sitemap.urls.iter().map(shown).collect();
    assert_eq!(
        found,
        [
            (
                "https://example.com/a".into(),
                "2026-01-15T00:00:00.000Z".into(),
                Some("Rain &amp; snow".into())
            ),
            ("https://example.com/b".into(), "2026-01-16T00:00:00.000Z".into(), None),
        ]
    );
}

#[test]
fn an_index_lists_further_sitemaps() {
    let sitemap = read(
        "<sitemapindex><sitemap><loc>https://example.com/1.xml.gz</loc><lastmod>2026-01</lastmod></sitemap>\
         <sitemap><loc>2.xml</loc></sitemap></sitemapindex>",
    )
    .unwrap();
    let children: Vec<&str> = sitemap.children.iter().map(|child| child.loc.as_str()).collect();
    assert_eq!(children, ["https://example.com/1.xml.gz", "https://example.com/2.xml"]);
    assert!(sitemap.children[0].lastmod.is_some() && sitemap.urls.is_empty());
}

#[test]
fn namespaces_may_be_missing_wrong_or_prefixed_and_images_are_not_pages() {
    for text in [
        "<urlset><url><loc>https://a.example/</loc></url></urlset>",
        "<urlset xmlns='http://wrong.example'><url><loc>https://a.example/</loc></url></urlset>",
        "<s:urlset xmlns:s='x'><s:url><s:loc>https://a.example/</s:loc></s:url></s:urlset>",
        "<URLSET><URL><LOC>https://a.example/</LOC></URL></URLSET>",
        "<pages><url><loc>https://a.example/</loc></url></pages>",
        "<urlset><url><image:image><image:loc>https://i.example/x.png</image:loc></image:image>\
         <loc>https://a.example/</loc><xhtml:link href='https://b.example/'/></url></urlset>",
        "<!-- c --><?xml-stylesheet href='x'?>\n<urlset><url><loc>https://a.example/</loc><loc>https://b.example/</loc>",
        "\n\n<?xml version='1.0'?><urlset><url><loc>https://a.example/</loc><url></urlset>",
    ] {
        assert_eq!(locs(text), ["https://a.example/"], "{text}");
    }
}

#[test]
fn broken_markup_gives_what_can_be_read() {
    assert_eq!(
        locs(
            "<urlset><url><loc>https://a.example/?x=1&y=2</loc></url><url><loc>https://b.example/<</loc></url><url><loc>https://c.exa"
        ),
        ["https://a.example/?x=1&y=2", "https://b.example/"],
        "what the document breaks off in is no address"
    );
    let cut = read("<urlset><url><loc>https://a.example/").unwrap();
    assert!(cut.cut.is_some() && cut.urls.is_empty());
    let cut = read("<urlset><url><loc>https://a.example/</loc><lastmod>2026-01").unwrap();
    assert!(
        cut.cut.is_some() && cut.urls.len() == 1 && cut.urls[0].lastmod.is_none(),
        "the address is whole, its date is not"
    );
    assert_eq!(
        locs("<urlset><url><loc>https://a.example/</loc></urlset>"),
        ["https://a.example/"],
        "only an end tag is missing"
    );
    assert_eq!(locs("<urlset></urlset>"), [""; 0]);
}

#[test]
fn a_text_sitemap_lists_one_address_a_line() {
    assert_eq!(
        locs("\u{feff}https://example.com/a\r\n\r\n https://example.com/b \nnot an address\n"),
        ["https://example.com/a", "https://example.com/b"]
    );
}

#[test]
fn a_feed_is_a_sitemap_of_its_entries() {
    for text in [
        "<rss version='2.0'><channel><item><link>https://a.example/1</link><pubDate>Thu, 15 Jan 2026 09:00:00 +0900</pubDate></item></channel></rss>",
        "<feed xmlns='http://www.w3.org/2005/Atom'><entry><id>x</id><link href='https://a.example/1'/><updated>2026-01-15T00:00:00Z</updated></entry></feed>",
    ] {
        let sitemap = read(text).unwrap();
        assert_eq!(sitemap.urls.len(), 1, "{text}");
        assert_eq!(sitemap.urls[0].loc, "https://a.example/1");
        assert_eq!(sitemap.urls[0].lastmod.unwrap().to_string(), "2026-01-15T00:00:00.000Z");
    }
}

#[test]
fn other_documents_are_refused_with_a_reason() {
    for (text, why) in [
        ("", "the document is empty"),
        (" \n", "the document is empty"),
        ("<!DOCTYPE html><html><body>404", "this is an HTML page, not a sitemap"),
        ("<opml><body/></opml>", "this is XML with root `opml`, not a sitemap"),
        ("{\"a\": \"https://example.com/\"}", "this is neither XML nor a list of addresses"),
        ("User-agent: *\nDisallow: /\n", "this is neither XML nor a list of addresses"),
        ("See https://example.com/ for more.", "this is neither XML nor a list of addresses"),
    ] {
        assert_eq!(read(text).unwrap_err().to_string(), why, "{text}");
    }
}

#[test]
fn gzip_is_known_by_its_first_bytes_and_bounded() {
    let text = "<urlset><url><loc>https://example.com/</loc></url></urlset>";
    let packed = gzip(text.as_bytes());
    let limits = SitemapLimits::default();
    let read =
        |bytes: &[u8], limits: &SitemapLimits| parse(bytes, Some("text/html; charset=utf-16"), None, limits);
    assert_eq!(read(&packed, &limits).unwrap().urls.len(), 1);
    let cut = read(&packed[..packed.len() - 4], &limits).unwrap();
    assert!(cut.cut.is_some() && cut.urls.len() == 1);
    assert_eq!(read(b"\x1f\x8b\x08junk", &limits), Err(SitemapError::Damaged));
    let bomb = gzip(&vec![b' '; 40_000_000]);
    assert!(matches!(read(&bomb, &limits), Err(SitemapError::TooLarge { limit }) if limit < 40_000_000));
    let small = SitemapLimits { max_decoded_bytes: 20, ..limits };
    assert_eq!(read(&packed, &small), Err(SitemapError::TooLarge { limit: 20 }));
}

#[test]
fn a_list_is_cut_at_the_limit_and_says_so() {
    let text: String =
        (0..60_000).map(|n| format!("<url><loc>https://example.com/{n}</loc></url>")).collect();
    let sitemap = read(&format!("<urlset>{text}</urlset>")).unwrap();
    assert_eq!((sitemap.urls.len(), sitemap.cut), (50_000, Some(Cut::Addresses)));
    let lines: String = (0..60_000).map(|n| format!("https://example.com/{n}\n")).collect();
    let sitemap = read(&lines).unwrap();
    assert_eq!((sitemap.urls.len(), sitemap.cut), (50_000, Some(Cut::Addresses)));
}

#[test]
fn a_base_is_not_copied_into_every_address() {
    let text = format!("<urlset>{}</urlset>", "<url><loc>a</loc></url>".repeat(5_000));
    for length in [4_000, 300_000] {
        let base = Url::parse(&format!("https://example.com/{}/", "a".repeat(length))).unwrap();
        let sitemap = parse(text.as_bytes(), None, Some(&base), &SitemapLimits::default()).unwrap();
        let total: usize = sitemap.urls.iter().map(|location| location.loc.len()).sum();
        assert!(total <= 9 << 20, "{length}: {total}");
    }
}

#[test]
fn a_field_of_nothing_but_space_is_empty_and_is_not_looked_through_again() {
    let spaces = " ".repeat(1_000_000);
    let text = format!("<urlset><url><loc>{spaces}{}https://a.example/</loc></url>", "<loc>".repeat(200_000));
    assert_eq!(locs(&text), ["https://a.example/"]);
}

#[test]
fn entities_are_never_expanded() {
    let bomb = "<!DOCTYPE urlset [<!ENTITY a 'https://a.example/'><!ENTITY b '&a;&a;&a;'>]><urlset><url><loc>&b;</loc></url></urlset>";
    assert_eq!(locs(bomb), ["https://example.com/&b;"]);
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(mut bytes in proptest::collection::vec(any::<u8>(), 0..400), packed: bool) {
        if packed {
            bytes.splice(0..0, [0x1f, 0x8b, 8, 0]);
        }
        let _ = parse(&bytes, None, None, &SitemapLimits::default());
    }

    #[test]
    fn any_markup_is_read_or_refused(text in "<urlset>(<url>|</url>|<loc>|</loc>|<lastmod>|https://a\\.b/|2026-|<!\\[CDATA\\[|]]>|<!-- x>|\u{feff}|\u{1}|&|\\PC){0,40}") {
        let _ = read(&text);
    }
}
