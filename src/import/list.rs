//! Lists of blogs, from OPML or plain addresses, as config entries that the config does not have yet. Pure.

use std::collections::HashSet;

use crate::parse::opml;
use crate::parse::url::{Url, comparison_key, pasted, resolve_web};
use crate::phrase;
use crate::phrase::Phrase;
use crate::text;

/// The longest id made from a title, in characters.
const MAX_ID_CHARS: usize = 60;

/// A blog to be added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candidate {
    /// The preferred id.
    pub id: Option<String>,
    pub title: Option<String>,
    pub folder: Option<String>,
    pub page: Option<String>,
    pub feed: Option<String>,
    pub sitemap: Option<String>,
}

/// A blog as an entry of the config file.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct NewBlog {
    pub id: String,
    pub url: String,
    /// Its title, if the id does not show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feed: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sitemap: Option<String>,
}

/// A blog in the config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownBlog {
    pub id: String,
    pub url: Url,
    /// Its feed, if the config has it.
    pub feed: Option<Url>,
}

/// The result of comparing a list with the config.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListSelection {
    pub new: Vec<NewBlog>,
    /// How many are there already, in the config or earlier in the list.
    pub known: usize,
    /// What cannot be watched, and why.
    pub refused: Vec<Phrase>,
}

/// The feeds of an OPML list.
pub fn of_opml(list: opml::FeedList) -> Vec<Candidate> {
    let candidate = |feed: opml::Feed| Candidate {
        title: feed.title,
        folder: (!feed.folders.is_empty()).then(|| feed.folders.join("/")),
        page: if feed.is_page { Some(feed.url.clone()) } else { feed.page },
        feed: (!feed.is_page).then_some(feed.url),
        ..Candidate::default()
    };
    list.feeds.into_iter().map(candidate).collect()
}

/// The addresses of a plain list: one a line, a name may follow, or the tags of newsboat; `#` begins a comment.
pub fn of_urls(text: &str) -> Vec<Candidate> {
    let lines = text.trim_start_matches('\u{feff}').lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| {
            let (url, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            let (title, folder) = read_name(rest.trim());
            Candidate { title, folder, page: Some(url.to_owned()), ..Candidate::default() }
        })
        .collect()
}

/// The name and the folder behind an address. In lists of newsboat a `~` stands before the name, and the other words are
/// tags, in quotation marks where they need them; one that begins with `!` only hides the feed.
fn read_name(rest: &str) -> (Option<String>, Option<String>) {
    let words = quoted_words(rest);
    let title = words.iter().find_map(|(word, _)| word.strip_prefix('~'));
    let is_newsboat = title.is_some() || words.iter().all(|(word, is_quoted)| *is_quoted || *word == "!");
    if !is_newsboat {
        return (Some(rest.to_owned()).filter(|name| !name.starts_with('#')), None);
    }
    let folder = words.iter().map(|(word, _)| *word).find(|word| !word.starts_with(['~', '!']));
    (title.map(str::to_owned), folder.map(str::to_owned))
}

/// The words of a text, and whether each stood in quotation marks.
fn quoted_words(text: &str) -> Vec<(&str, bool)> {
    let (mut words, mut rest) = (Vec::new(), text.trim_start());
    while !rest.is_empty() {
        let is_quoted = rest.starts_with('"');
        rest = rest.strip_prefix('"').unwrap_or(rest);
        let is_end = |c: char| if is_quoted { c == '"' } else { c.is_whitespace() };
        let (word, after) = rest.split_once(is_end).unwrap_or((rest, ""));
        words.push((word, is_quoted));
        rest = after.trim_start();
    }
    words
}

/// Leaves out what the config has, and gives the rest ids that nobody has.
///
/// A feed is compared by its address, a page without a feed by its own. A feed is also known if its page is watched
/// without a feed, because the feed would be discovered there.
pub fn choose(candidates: &[Candidate], known: &[KnownBlog]) -> ListSelection {
    let mut ids: HashSet<String> = known.iter().map(|blog| blog.id.clone()).collect();
    let mut feeds: HashSet<String> =
        known.iter().filter_map(|blog| blog.feed.as_ref()).map(comparison_key).collect();
    let mut all_pages: HashSet<String> = known.iter().map(|blog| page_key(&blog.url)).collect();
    let mut bare_pages: HashSet<String> =
        known.iter().filter(|blog| blog.feed.is_none()).map(|blog| page_key(&blog.url)).collect();
    let mut chosen = ListSelection::default();
    for candidate in candidates {
        let (page, feed, sitemap) = match addresses(candidate) {
            Ok(addresses) => addresses,
            Err(why) => {
                chosen.refused.push(why);
                continue;
            }
        };
        let is_known = match &feed {
            Some(feed) => {
                let key = comparison_key(feed);
                feeds.contains(&key)
                    || all_pages.contains(&page_key(feed))
                    || bare_pages.contains(&page_key(&page))
            }
            None => all_pages.contains(&page_key(&page)) || feeds.contains(&comparison_key(&page)),
        };
        if is_known || candidate.id.as_ref().is_some_and(|id| ids.contains(id)) {
            chosen.known += 1;
            continue;
        }
        match &feed {
            Some(feed) => drop(feeds.insert(comparison_key(feed))),
            None => drop(bare_pages.insert(page_key(&page))),
        }
        all_pages.insert(page_key(&page));
        let id = match &candidate.id {
            Some(id) => id.clone(),
            None => free_id(&base_id(candidate.title.as_deref(), &page), &ids),
        };
        ids.insert(id.clone());
        let address = |url: Option<Url>| url.map(String::from);
        let title = candidate.title.as_deref().map(text::one_line);
        chosen.new.push(NewBlog {
            title: title.filter(|title| !title.is_empty() && *title != id),
            folder: candidate.folder.as_deref().map(text::one_line),
            id,
            url: page.into(),
            feed: address(feed),
            sitemap: address(sitemap),
        });
    }
    chosen
}

/// Compares pages without the last slash, which lists may omit.
fn page_key(page: &Url) -> String {
    comparison_key(page).trim_end_matches('/').to_owned()
}

type Addresses = (Url, Option<Url>, Option<Url>);

fn addresses(candidate: &Candidate) -> Result<Addresses, Phrase> {
    let read = |text: &Option<String>| match text.as_deref().map(pasted).filter(|text| !text.is_empty()) {
        None => Ok(None),
        Some(text) => match resolve_web(None, &text) {
            Some(url) if url.username().is_empty() && url.password().is_none() => Ok(Some(url)),
            Some(_) => Err(phrase!(
                "an address with a password cannot be watched; it is left out",
                "パスワードを含むアドレスは監視できないため対象外です"
            )),
            None => Err(phrase!(
                "`{text}` is not a web address",
                "`{text}` は Web アドレスではありません",
                text = text::shorten(&text::one_line(&text), 80)
            )),
        },
    };
    let feed = read(&candidate.feed)?;
    // An invalid page does not matter if the feed is valid.
    let page = match (read(&candidate.page), &feed) {
        (Ok(Some(page)), _) => page,
        (Ok(None) | Err(_), Some(feed)) => site_of(feed),
        (Ok(None), None) => return Err(phrase!("an entry without an address", "アドレスのない項目")),
        (Err(why), None) => return Err(why),
    };
    Ok((page, feed, read(&candidate.sitemap).unwrap_or(None)))
}

/// The home page of a feed's site.
fn site_of(feed: &Url) -> Url {
    let mut site = feed.clone();
    site.set_path("/");
    site.set_query(None);
    site.set_fragment(None);
    site
}

/// The title, or the host, as an id: lower-case letters and digits of any script, with dashes between.
fn base_id(title: Option<&str>, page: &Url) -> String {
    let word = |text: &str| {
        let dashed: String =
            text.to_lowercase().chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
        let joined = dashed.split_whitespace().collect::<Vec<_>>().join("-");
        joined.chars().take(MAX_ID_CHARS).collect::<String>().trim_end_matches('-').to_owned()
    };
    let host = page.host_str().unwrap_or("blog");
    let host = host.strip_prefix("www.").unwrap_or(host);
    let of_title = title.map(word).unwrap_or_default();
    if of_title.is_empty() { word(host) } else { of_title }
}

fn free_id(base: &str, taken: &HashSet<String>) -> String {
    let base = if base.is_empty() { "blog" } else { base };
    if !taken.contains(base) {
        return base.to_owned();
    }
    (2..).map(|number| format!("{base}-{number}")).find(|id| !taken.contains(id)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(id: &str, url: &str, feed: Option<&str>) -> KnownBlog {
        KnownBlog { id: id.into(), url: url.parse().unwrap(), feed: feed.map(|feed| feed.parse().unwrap()) }
    }

    #[test]
    fn addresses_are_read_as_people_paste_them() {
        for (text, expected) in [
            ("example.org", Some("https://example.org/")),
            (" www.example.org/blog/?a=1 ", Some("https://www.example.org/blog/?a=1")),
            ("example.org:8080/feed", Some("https://example.org:8080/feed")),
            ("日本語.jp/ブログ", Some("https://xn--wgv71a119e.jp/%E3%83%96%E3%83%AD%E3%82%B0")),
            ("feed://example.org/feed.xml", Some("http://example.org/feed.xml")),
            ("FEED:https://example.org/feed.xml", Some("https://example.org/feed.xml")),
            ("podcast://example.org/f", Some("http://example.org/f")),
            ("view-source:https://example.org/a", Some("https://example.org/a")),
            ("<https://example.org/y>", Some("https://example.org/y")),
            ("「https://example.org/w」。", Some("https://example.org/w")),
            ("https://example.org/z）", Some("https://example.org/z")),
            ("https://example.org/a.b:c", Some("https://example.org/a.b:c")),
            ("me@example.org", None),
            ("mailto:me@example.org", None),
            ("ftp://example.org/", None),
            ("r/rust", None),
            ("javascript:alert(1.5)", None),
            ("a sentence. And more", None),
            ("feed:", None),
        ] {
            let candidate = Candidate { page: Some(text.to_owned()), ..Candidate::default() };
            let chosen = choose(&[candidate], &[]);
            assert_eq!(chosen.new.first().map(|blog| blog.url.as_str()), expected, "{text}");
        }
    }

    #[test]
    fn a_page_is_known_with_and_without_its_last_slash() {
        let candidate = |page: &str, feed: Option<&str>| Candidate {
            page: Some(page.to_owned()),
            feed: feed.map(str::to_owned),
            ..Candidate::default()
        };
        let known = [known("a", "https://a.example/blog/", None)];
        for feed in [None, Some("https://a.example/blog/feed.xml")] {
            let chosen = choose(&[candidate("https://a.example/blog", feed)], &known);
            assert_eq!((chosen.known, chosen.new.len()), (1, 0), "{feed:?}");
        }
    }

    #[test]
    fn feeds_get_ids_from_titles_and_hosts_that_nobody_has() {
        let opml = "<opml><body><outline text='Rust &amp; more' xmlUrl='https://a.example/feed' htmlUrl='https://a.example/'/>\
            <outline text='Rust, more!' xmlUrl='https://b.example/feed'/><outline xmlUrl='https://www.c.example/feed.xml'/>\
            <outline text='日本語 ブログ' xmlUrl='https://d.example/rss'/><outline text='x' xmlUrl='ftp://e.example/'/></body></opml>";
        let chosen = choose(
            &of_opml(opml::parse(opml.as_bytes(), None).unwrap()),
            &[known("rust-more", "https://z.example/", None)],
        );
        let shown: Vec<_> = chosen.new.iter().map(|blog| (blog.id.as_str(), blog.url.as_str())).collect();
        assert_eq!(
            shown,
            [
                ("rust-more-2", "https://a.example/"),
                ("rust-more-3", "https://b.example/"),
                ("c-example", "https://www.c.example/"),
                ("日本語-ブログ", "https://d.example/"),
            ]
        );
        assert_eq!(chosen.refused, ["`ftp://e.example/` is not a web address"]);
    }

    #[test]
    fn a_list_of_newsboat_names_its_feeds_and_their_first_tag() {
        let list = of_urls(concat!(
            "https://a.example/f tech \"long reads\" \"~My Blog\"\nhttps://b.example/f \"tech\" \"it\"\n",
            "https://c.example/f !\nhttps://d.example/f   \"~D only\"\nhttps://e.example/f \"Best\" of E\n",
            "\"query:Unread:unread = \\\"yes\\\"\"\n",
        ));
        let shown: Vec<_> =
            list[..5].iter().map(|blog| (blog.title.as_deref(), blog.folder.as_deref())).collect();
        assert_eq!(
            shown,
            [
                (Some("My Blog"), Some("tech")),
                (None, Some("tech")),
                (None, None),
                (Some("D only"), None),
                (Some("\"Best\" of E"), None),
            ]
        );
        assert_eq!(choose(&list, &[]).refused.len(), 1);
    }

    #[test]
    fn a_page_that_another_reader_takes_apart_is_no_feed() {
        let opml = "<opml><body><outline type='HTML+XPath' text='P' xmlUrl='https://p.example/news' htmlUrl='https://p.example/'/>\
            <outline type='rss' text='F' xmlUrl='https://f.example/feed'/></body></opml>";
        let chosen = choose(&of_opml(opml::parse(opml.as_bytes(), None).unwrap()), &[]);
        let shown: Vec<_> = chosen.new.iter().map(|blog| (blog.url.as_str(), blog.feed.as_deref())).collect();
        let feed = Some("https://f.example/feed");
        assert_eq!(shown, [("https://p.example/news", None), ("https://f.example/", feed)]);
    }

    #[test]
    fn what_is_watched_is_not_added_again_however_it_is_written() {
        let watched = [
            known("a", "https://a.example/", Some("https://a.example/feed")),
            known("b", "https://b.example/blog", None),
        ];
        for (page, feed, is_known) in [
            (None, Some("http://A.example:80/feed?utm_source=x"), true),
            (Some("https://a.example/"), Some("https://a.example/comments"), false),
            (Some("https://a.example/"), None, true),
            (Some("https://b.example/blog#top"), None, true),
            (Some("https://b.example/blog"), Some("https://b.example/atom"), true),
            (Some("https://b.example/other"), None, false),
        ] {
            let candidate = Candidate {
                page: page.map(str::to_owned),
                feed: feed.map(str::to_owned),
                ..Candidate::default()
            };
            let chosen = choose(&[candidate], &watched);
            assert_eq!(chosen.known == 1, is_known, "{page:?} {feed:?}");
        }
    }

    #[test]
    fn a_second_reading_of_the_same_list_adds_nothing() {
        let list = of_urls(
            "\u{feff}# mine\nhttps://a.example/ The A blog\n\nhttps://b.example/x\nhttps://b.example/x?utm_id=1\nnonsense\n",
        );
        let first = choose(&list, &[]);
        assert_eq!(
            first.new.iter().map(|blog| blog.id.as_str()).collect::<Vec<_>>(),
            ["the-a-blog", "b-example"]
        );
        assert_eq!((first.known, first.refused.len()), (1, 1));
        let now: Vec<KnownBlog> =
            first.new.iter().map(|blog| known(&blog.id, &blog.url, blog.feed.as_deref())).collect();
        assert_eq!(choose(&list, &now).new, []);
    }
}
