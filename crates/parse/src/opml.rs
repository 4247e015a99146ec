//! OPML: lists of feeds, as readers exchange them.

use std::fmt::Write as _;
use std::sync::Arc;
use stdx::phrase;
use stdx::phrase::Phrase;

use quick_xml::escape::escape;

use super::decode;
use super::elements::{ElementPiece, pieces};

/// Feeds to read from one list.
const MAX_FEEDS: usize = 100_000;

/// The most folders around a feed.
const MAX_FOLDERS: usize = 16;

/// The longest title.
const MAX_TITLE_CHARS: usize = 1000;

/// One subscribed feed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Feed {
    /// The address of the feed, as written.
    pub url: String,
    pub title: Option<String>,
    /// The page of the feed.
    pub page: Option<String>,
    /// The names of its folders, outermost first; shared by all feeds in them.
    pub folders: Vec<Arc<str>>,
    /// Whether the address is that of a page, which FreshRSS takes apart by itself.
    pub is_page: bool,
}

/// A list of feeds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeedList {
    pub feeds: Vec<Feed>,
    /// Whether the document is truncated.
    pub is_cut_off: bool,
}

/// The document is not a list of feeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotOpml;

impl NotOpml {
    /// In one sentence.
    pub fn phrase(&self) -> Phrase {
        phrase!(
            "this is no OPML: it has neither an `opml` element nor an outline",
            "OPML ではありません（`opml` 要素も outline 要素もありません）"
        )
    }
}

stdx::error_in_english!(NotOpml);

/// Parses a list of feeds: nested or flat, with the attribute names of various programs.
pub fn parse(bytes: &[u8], content_type: Option<&str>) -> Result<FeedList, NotOpml> {
    let text = decode::decode(bytes, content_type, decode::Kind::Xml).text;
    let mut feeds = Vec::new();
    let mut is_opml = false;
    // Whether the root is open; a list may have none.
    let mut root = None;
    // The names of the open outlines; `None` for one that is not a folder.
    let mut open: Vec<Option<Arc<str>>> = Vec::new();
    for piece in pieces(&text) {
        match piece {
            ElementPiece::Open(element) if element.local().eq_ignore_ascii_case("opml") => {
                is_opml = true;
                root = Some(true);
            }
            ElementPiece::Open(element) if element.local().eq_ignore_ascii_case("outline") => {
                is_opml = true;
                let title = element.attribute(&["title", "text"]).map(shortened);
                let kind = element.attribute(&["type"]).unwrap_or_default();
                let url = match element.attribute(&["xmlUrl", "xml_url", "feedUrl"]) {
                    // With these types, `url` is a page, another list or an episode.
                    None if !["link", "include", "podcast-episode"].contains(&&*kind) => {
                        element.attribute(&["url"])
                    }
                    found => found,
                };
                let folder = title.as_deref().filter(|_| url.is_none()).map(Arc::from);
                // A text of control characters is not an address.
                let is_address = |url: &String| url.chars().any(|c| !c.is_control() && !c.is_whitespace());
                if let Some(url) = url.filter(is_address).filter(|_| feeds.len() < MAX_FEEDS) {
                    feeds.push(Feed {
                        url,
                        title,
                        page: element.attribute(&["htmlUrl"]),
                        folders: open.iter().flatten().take(MAX_FOLDERS).cloned().collect(),
                        is_page: kind.starts_with("HTML+XPath"),
                    });
                }
                if open.len() < 512 {
                    open.push(folder);
                }
            }
            ElementPiece::Close(name) if name.eq_ignore_ascii_case("outline") => {
                open.pop();
            }
            ElementPiece::Close(name) if name.eq_ignore_ascii_case("opml") => root = Some(false),
            _ => {}
        }
    }
    let is_cut_off = root.unwrap_or(!open.is_empty());
    if is_opml { Ok(FeedList { feeds, is_cut_off }) } else { Err(NotOpml) }
}

/// Writes a list of feeds as OPML 2.0, in their folders and in their order.
pub fn render(title: &str, feeds: &[Feed]) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<opml version=\"2.0\">\n");
    let _ = write!(out, "  <head>\n    <title>{}</title>\n  </head>\n  <body>\n", clean(title));
    let mut open: &[Arc<str>] = &[];
    for feed in feeds {
        let shared = open.iter().zip(&feed.folders).take_while(|(a, b)| a == b).count();
        for depth in (shared..open.len()).rev() {
            let _ = writeln!(out, "{}</outline>", indent(depth));
        }
        for (depth, folder) in feed.folders.iter().enumerate().skip(shared) {
            let _ = writeln!(out, "{}<outline text=\"{}\">", indent(depth), clean(folder));
        }
        open = &feed.folders;
        let name = feed.title.as_deref().unwrap_or(&feed.url);
        let _ = write!(
            out,
            "{}<outline type=\"rss\" text=\"{name}\" title=\"{name}\" xmlUrl=\"{}\"",
            indent(open.len()),
            clean(&feed.url),
            name = clean(name),
        );
        if let Some(page) = &feed.page {
            let _ = write!(out, " htmlUrl=\"{}\"", clean(page));
        }
        out.push_str("/>\n");
    }
    for depth in (0..open.len()).rev() {
        let _ = writeln!(out, "{}</outline>", indent(depth));
    }
    out.push_str("  </body>\n</opml>\n");
    out
}

fn shortened(mut title: String) -> String {
    if let Some((end, _)) = title.char_indices().nth(MAX_TITLE_CHARS) {
        title.truncate(end);
    }
    title
}

fn indent(depth: usize) -> String {
    " ".repeat(4 + 2 * depth)
}

/// Escaped, without characters that are invalid in XML.
fn clean(text: &str) -> String {
    let allowed: String = text
        .chars()
        .map(|c| if matches!(c, '\t' | '\n' | '\r') { ' ' } else { c })
        .filter(|c| !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}'))
        .collect();
    escape(allowed).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn feed(url: &str, title: &str, folders: &[&str]) -> Feed {
        Feed {
            url: url.into(),
            title: Some(title.into()),
            page: None,
            folders: folders.iter().map(|name| (*name).into()).collect(),
            is_page: false,
        }
    }

    #[test]
    fn an_address_of_control_characters_is_no_feed() {
        let text =
            "<opml><body><outline text='x' xmlUrl='\u{1}\u{4}'/><outline xmlUrl='a\u{1}'/></body></opml>";
        let urls: Vec<String> =
            parse(text.as_bytes(), None).unwrap().feeds.into_iter().map(|feed| feed.url).collect();
        assert_eq!(urls, ["a\u{1}"]);
    }

    #[test]
    fn nested_lists_with_all_spellings_are_read() {
        let text = "\u{feff}<?xml version='1.0'?><OPML version='1.1'><head><title>t</title></head><body>\
            <outline text='News'><outline title='One &amp; more' XMLURL='https://a.example/feed?x=1&y=2'/>\
              <outline text='Deep'><Outline text='Two' xmlUrl=' https://b.example/rss ' type='rss'></Outline></outline></outline>\
            <outline text='Three' url='https://c.example/rss' type='rss'/>\
            <outline text='A page' url='https://d.example/' type='link'/>\
            <outline text='An episode' url='https://e.example/1' enclosureUrl='https://e.example/1.mp3' type='podcast-episode'/>\
            </body></OPML>";
        assert_eq!(
            parse(text.as_bytes(), None).unwrap().feeds,
            [
                feed("https://a.example/feed?x=1&y=2", "One & more", &["News"]),
                feed("https://b.example/rss", "Two", &["News", "Deep"]),
                feed("https://c.example/rss", "Three", &[]),
            ]
        );
    }

    #[test]
    fn broken_lists_give_what_they_have() {
        let text = "<opml><body><outline text='a & b' xmlUrl='https://a.example/'><outline xmlUrl=\"https://b.example/\"";
        let urls: Vec<String> =
            parse(text.as_bytes(), None).unwrap().feeds.into_iter().map(|feed| feed.url).collect();
        assert_eq!(urls, ["https://a.example/"]);
        assert_eq!(parse(b"<opml/>", None).unwrap(), FeedList::default());
    }

    #[test]
    fn the_names_of_folders_are_bounded_and_shared() {
        let folders = format!("<outline text='{}'>", "あ".repeat(70_000)).repeat(MAX_FOLDERS);
        let text = format!("<opml>{folders}{}", "<outline text='t' url='u'/>".repeat(10_000));
        let feeds = parse(text.as_bytes(), None).unwrap().feeds;
        let (first, last) = (&feeds[0].folders, &feeds[9_999].folders);
        assert_eq!(first.len(), MAX_FOLDERS);
        assert!(first.iter().all(|name| name.chars().count() == MAX_TITLE_CHARS));
        assert!(first.iter().zip(last).all(|(one, other)| Arc::ptr_eq(one, other)));
    }

    #[test]
    fn other_documents_are_refused() {
        for text in ["", "plain", "<html><body>x", "{\"opml\":1}"] {
            assert_eq!(parse(text.as_bytes(), None), Err(NotOpml), "{text}");
        }
    }

    #[test]
    fn a_written_list_is_well_formed() {
        let list = render(
            "Mine <&>",
            &[feed("https://a.example/?a=1&b=\"2\"", "A \u{1} <b>", &["x", "y"]), feed("u", "B", &["x"])],
        );
        let mut reader = quick_xml::Reader::from_str(&list);
        while reader.read_event().unwrap() != quick_xml::events::Event::Eof {}
        assert!(list.contains("<title>Mine &lt;&amp;&gt;</title>"));
        assert_eq!(list.matches("text=\"x\"").count(), 1, "a folder is opened once\n{list}");
    }

    #[test]
    fn a_list_that_ends_early_is_known_wherever_it_is_cut() {
        let whole =
            render("t", &[feed("https://a.example/f", "a", &["x"]), feed("https://b.example/f", "b", &[])]);
        assert!(!parse(whole.as_bytes(), None).unwrap().is_cut_off);
        let start = whole.find("<outline").unwrap();
        let end = whole.find("</opml>").unwrap() + "</opml>".len();
        for at in start..end {
            let list = parse(&whole.as_bytes()[..at], None).unwrap();
            assert!(list.is_cut_off, "{}", &whole[..at]);
        }
        for (bare, is_cut_off) in
            [("<outline xmlUrl='a'/>", false), ("<outline text='x'><outline xmlUrl='a'/>", true)]
        {
            assert_eq!(parse(bare.as_bytes(), None).unwrap().is_cut_off, is_cut_off, "{bare}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(names in proptest::collection::vec(("[!-~あ]{1,12}", "[!-~あ ]{0,8}[!-~あ]", proptest::collection::vec("[a-c<&\"]", 0..4)), 0..8)) {
            let feeds: Vec<Feed> = names.iter().map(|(url, title, folders)| {
                feed(url, title.trim(), &folders.iter().map(String::as_str).collect::<Vec<_>>())
            }).collect();
            prop_assert_eq!(parse(render("t", &feeds).as_bytes(), None).unwrap(), FeedList { feeds, is_cut_off: false });
        }

        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&bytes, None);
        }
    }
}
