//! Pages as they occur on real sites.

use proptest::prelude::*;

use super::*;

fn page(html: &str) -> Html {
    Html::from_text(html, Some(&Url::parse("https://example.com/dir/page.html").unwrap()))
}

fn feeds(html: &str) -> Vec<String> {
    page(html).feeds().iter().map(|feed| feed.href.clone()).collect()
}

#[test]
fn feeds_are_found_whatever_the_order_case_and_quotes() {
    for tag in [
        r#"<link rel="alternate" type="application/rss+xml" href="/feed">"#,
        r"<LINK HREF=/feed TYPE=Application/RSS+XML REL=ALTERNATE>",
        r#"<link title="x>y" href='/feed' type=" application/atom+xml ; charset=utf-8" rel="home  Alternate	x" />"#,
        r#"<body><p><link rel=alternate type="text/xml" href="/feed"></p>"#,
        r#"<a rel="alternate" type="application/rss+xml" href="/feed">RSS</a>"#,
        r#"<link rel="feed" href="/feed">"#,
        r#"<link rel=alternate type=application/feed+json href="/feed">"#,
        r#"<link rel=alternate type=application/json href="/feed">"#,
        r#"<link rel=alternate type=application/rss+xml href="feed:https://example.com/feed">"#,
        "<link rel=alternate type=application/rss+xml href=\" \n/feed \">",
        r#"<noscript><link rel=alternate type=application/rss+xml href="&#x2F;feed"></noscript>"#,
    ] {
        assert_eq!(feeds(tag), ["https://example.com/feed"], "{tag}");
    }
}

#[test]
fn what_is_no_feed_is_not_taken_for_one() {
    for tag in [
        r#"<!-- <link rel="alternate" type="application/rss+xml" href="/feed"> -->"#,
        r#"<script>'<link rel="alternate" type="application/rss+xml" href="/feed">'</script>"#,
        r#"<title><link rel="alternate" type="application/rss+xml" href="/feed"></title>"#,
        r#"<link rel="alternate" hreflang="ja" href="/ja">"#,
        r#"<link rel="alternate stylesheet" type="text/xml" href="/x">"#,
        r#"<link rel="stylesheet" type="application/rss+xml" href="/x">"#,
        r#"<link rel=alternate type=application/json+oembed href="/x">"#,
        r#"<link rel=alternate type=application/json href="/wp-json/wp/v2/pages/2">"#,
        r#"<link rel=alternate type=application/rss+xml href="">"#,
        r#"<link rel=alternate type=application/rss+xml href="javascript:alert(1)">"#,
        r#"<link rel=alternate type=application/rss+xml>"#,
        r#"<a href="x" title='<link rel="alternate" type="application/rss+xml" href="/feed">'>"#,
    ] {
        assert_eq!(feeds(tag), [""; 0], "{tag}");
    }
}

#[test]
fn a_base_is_not_copied_into_every_link() {
    let links = "<a href=x>X</a><link rel=feed href=y>".repeat(4_000);
    for length in [4_000, 300_000] {
        let html = page(&format!("<base href='https://b.example/{}/'>{links}", "a".repeat(length)));
        let found = html.links(None).unwrap();
        let total: usize = found.iter().map(|link| link.href.len()).sum();
        assert!(total <= 9 << 20, "{length}: {total}");
        assert_eq!(found[0].href.contains("b.example"), length <= 4_000, "{length}");
        assert_eq!(html.feeds().len(), 1);
    }
    let long = Url::parse(&format!("https://b.example/{}/", "a".repeat(300_000))).unwrap();
    assert_eq!(Html::from_text(&links, Some(&long)).links(None).unwrap()[0].href, "x");
}

#[test]
fn what_stands_for_a_link_is_not_copied_into_all_links_around_it() {
    let nested = "<a href=x><object>".repeat(200);
    let html = page(&format!("{nested}<img alt='{}'>", "a".repeat(100_000)));
    let found = html.links(None).unwrap();
    assert_eq!(found.len(), 200);
    assert!(found.iter().all(|link| link.text.len() <= 1_000));
}

#[test]
fn a_base_moves_feeds_and_links_wherever_it_stands() {
    let html = page(
        r#"<link rel=alternate type=application/rss+xml href=feed title=" My
 feed "><base target=_top><base href="/blog/"><base href="/other/"><a href="x">X</a>"#,
    );
    assert_eq!(html.base().unwrap().as_str(), "https://example.com/blog/");
    let feed = &html.feeds()[0];
    assert_eq!(
        (feed.href.as_str(), feed.title.as_deref()),
        ("https://example.com/blog/feed", Some("My feed"))
    );
    assert_eq!(feed.media_type.as_deref(), Some("application/rss+xml"));
    assert_eq!(html.links(None).unwrap()[0].href, "https://example.com/blog/x");
    assert_eq!(
        page("<base href='data:text/plain,x'><a href=y>").links(None).unwrap()[0].href,
        "https://example.com/dir/y"
    );
}

#[test]
fn each_feed_is_named_once_and_in_order() {
    let link = |href: &str| format!("<link rel=alternate type=application/rss+xml href='{href}'>");
    assert_eq!(
        feeds(&format!("{}{}{}", link("/a"), link("b"), link("https://EXAMPLE.com/a"))),
        ["https://example.com/a", "https://example.com/dir/b"]
    );
}

#[test]
fn without_an_address_links_stay_as_written() {
    let html = Html::from_text(
        "<link rel=alternate type=application/rss+xml href=feed.xml><a href='x/y'>z</a>",
        None,
    );
    assert_eq!(html.feeds()[0].href, "feed.xml");
    assert_eq!(html.links(None).unwrap(), [PageLink { href: "x/y".into(), text: "z".into() }]);
}

#[test]
fn titles_are_one_line_and_come_from_the_page() {
    for (html, title) in [
        ("<title>\n A &amp; <b>B</b>\t 続き </title><title>x</title>", Some("A & <b>B</b> 続き")),
        ("<svg><title>icon</title></svg><title>page</title>", Some("page")),
        ("<meta content='Social' property='og:title'>", Some("Social")),
        ("<title> </title><meta name='twitter:title' content='Social'>", Some("Social")),
        ("<p>no title", None),
    ] {
        assert_eq!(page(html).title(), title, "{html}");
    }
}

#[test]
fn refreshes_are_read_as_browsers_read_them() {
    for (content, expected) in [
        ("0;url=next", Some((0, Some("https://example.com/dir/next")))),
        (" 5 ; URL = '/x y' z", Some((5, Some("https://example.com/x%20y")))),
        ("3.5, http://other.example/", Some((3, Some("http://other.example/")))),
        ("0; url=\"unclosed", Some((0, Some("https://example.com/dir/unclosed")))),
        ("300", Some((300, None))),
        ("0 next", Some((0, Some("https://example.com/dir/next")))),
        ("url=next", None),
        ("5x; url=next", None),
        ("0; url=javascript:alert(1)", None),
    ] {
        let html = page(&format!("<meta HTTP-EQUIV=Refresh content='{}'>", content.replace('\'', "&#39;")));
        let found = html.refresh().map(|refresh| (refresh.after_secs, refresh.url.as_ref().map(Url::as_str)));
        assert_eq!(found, expected, "{content}");
    }
    assert!(page("<noscript><meta http-equiv=refresh content='0;url=/nojs'></noscript>").refresh().is_none());
    assert_eq!(page("<link rel=canonical href=/c>").canonical().unwrap().as_str(), "https://example.com/c");
}

#[test]
fn links_have_the_text_that_a_reader_sees() {
    let html = page(
        "<a href='/1'> one\n <b>bold</b></a><a href=2><img alt='picture'></a><a href=3 title=t></a><area href=4 alt=map>\
         <a name=x>no</a><a href='#top'>up</a><a href='mailto:a@b'>m</a><a href='javascript:x'>j</a><a href='http://['>bad</a>\
         <a href=5><style>.x{}</style><span hidden>h</span>five</a>",
    );
    let found: Vec<(String, String)> =
        html.links(None).unwrap().into_iter().map(|link| (link.href, link.text)).collect();
    let expected = [
        ("https://example.com/1", "one bold"),
        ("https://example.com/dir/2", "picture"),
        ("https://example.com/dir/3", "t"),
        ("https://example.com/dir/4", "map"),
        ("https://example.com/dir/5", "five"),
    ];
    assert_eq!(found, expected.map(|(href, text)| (href.to_owned(), text.to_owned())));
}

#[test]
fn a_selector_narrows_links_and_says_what_is_wrong_with_it() {
    let html = page(
        "<nav><a href=n>n</a></nav><div class=list><div class=list><a href=a>a</a></div></div><a class=x href=b>b</a>",
    );
    let hrefs =
        |selector| html.links(Some(selector)).unwrap().into_iter().map(|link| link.text).collect::<Vec<_>>();
    assert_eq!(hrefs(".list, a.x"), ["a", "b"]);
    assert_eq!(hrefs("section"), [""; 0]);
    let error = html.links(Some("div[")).unwrap_err();
    assert_eq!(error.selector, "div[");
    assert_eq!(check_selector("a:nope").unwrap_err().why, "unsupported pseudo class or element");
    assert!(check_selector("a:nth-child(2n+1) > b").is_ok());
    assert!(check_selector("").is_err());
}

#[test]
fn attachments_are_files_by_their_path() {
    let html = page(
        "<a href='/files/%E5%A0%B1%E5%91%8A.PDF?v=2'>報告書（PDF：120KB）</a><a href='a.pdf#page=2'></a><a href='a.pdf'>again</a>\
         <a href='/download?file=x.pdf'>query</a><a href='/.pdf'>dot</a><a href='b.xlsx'>B</a><a href='c.zip'>C</a>",
    );
    let found = html.attachments(&["pdf", ".xlsx"], None).unwrap();
    let titles: Vec<(&str, &str)> = found.iter().map(|file| (&*file.title, &*file.extension)).collect();
    assert_eq!(titles, [("報告書（PDF：120KB）", "pdf"), ("a.pdf", "pdf"), ("B", "xlsx")]);
}

#[test]
fn tables_and_lists_read_line_by_line() {
    let html = page(
        "<div id=x><h1>見出し</h1><table><tr><th>日付</th><th><p>件名</p></th></tr><tr><td>1月</td><td>a<br>b</td></tr></table>\
         <ul><li>one<li>two</ul>tail <em>text</em>.</div>",
    );
    assert_eq!(
        html.main_text(Some("#x")).unwrap(),
        "見出し\n\n日付\t件名\n1月\ta\nb\n\none\ntwo\n\ntail text."
    );
}

#[test]
fn the_article_is_found_among_what_stands_around_it() {
    let paragraph =
        "<p>The ministry published a long report on the state of things, with figures, tables and words.</p>";
    let html = page(&format!(
        "<body><nav><ul><li><a href=/>Home</a></ul></nav><div id=side>Popular: <a href=/p>p</a></div>\
         <div class=article>{}</div><footer>Copyright</footer>",
        paragraph.repeat(12)
    ));
    let text = html.main_text(None).unwrap();
    assert!(text.contains("The ministry published"));
    assert!(!text.contains("Copyright") && !text.contains("Home"), "{text}");
}

#[test]
fn a_page_of_tables_keeps_its_tables() {
    let rows: String = (0..40)
        .map(|n| format!("<tr><td>令和8年{n}月</td><td><a href='{n}.pdf'>第{n}回会議資料</a></td></tr>"))
        .collect();
    let html = page(&format!("<header>省</header><div id=contents><h1>会議</h1><table>{rows}</table></div>"));
    let text = html.main_text(None).unwrap();
    assert!(text.contains("会議") && text.contains("令和8年39月\t第39回会議資料"), "{text}");
    assert!(!text.contains('省'));
}

#[test]
fn a_selector_that_matches_nothing_falls_back_to_the_main_text() {
    assert_eq!(page("<body><p>short</p>").main_text(Some(".gone")).unwrap(), "short");
    assert_eq!(page("").main_text(None).unwrap(), "");
}

#[test]
fn hostile_pages_are_read_within_bounds() {
    let deep = format!("{}text", "<div><a href=x>".repeat(20_000));
    let wide = "<p><a href=x>y</a>".repeat(60_000);
    let attributes = format!("<a {}href=z>w</a>", (0..100_000).map(|n| format!("a{n} ")).collect::<String>());
    for html in [deep, wide, attributes] {
        let read = read_page(html.as_bytes(), None, None);
        assert!(!read.text.is_empty());
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..800)) {
        let _ = read_page(&bytes, None, None);
    }

    #[test]
    fn any_markup_is_read(html in "(<(a|p|b|td|table|svg|math|template|title|select|frameset|form|/p|/a|/table|br)( href=x| rel=alternate)?>|text|\\PC|<!--|-->|&#x[0-9]{1,7};){0,60}") {
        let _ = read_page(html.as_bytes(), None, Some(&Url::parse("https://example.com/").unwrap()));
    }
}
