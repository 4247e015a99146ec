//! Extracts entries from documents: entries of a feed, addresses of a sitemap, links of a page. Pure.

use std::collections::{HashMap, HashSet};

use super::config::{Blog, EntryText};
use super::home::{Home, same_site};
use super::model::{FoundEntry, bounded_key, url_key};
use crate::hash;
use crate::parse::feed::{self, Feed};
use crate::parse::html::{BadSelector, Html};
use crate::parse::sitemap::Location;
use crate::parse::url::{Url, plain_key, resolve_web};
use crate::text;

/// Characters of a title that are kept.
const TITLE_COLUMNS: usize = 200;
/// Characters of a text that stand for a title.
const EXCERPT_COLUMNS: usize = 80;
/// Longer addresses are not those of articles.
const LONGEST_URL: usize = 2_000;
/// Characters of a text that are kept for a message.
const TEXT_CHARS: usize = 4_000;

/// The entries of a feed that match the filters, in its order.
pub fn feed_entries(feed: Feed, blog: &Blog) -> Vec<FoundEntry> {
    let site = feed.link.as_deref().and_then(|link| resolve_web(Some(&blog.url), link));
    let home = [Some(url_key(&blog.url)), site.as_ref().map(url_key)];
    let mut seen = HashSet::with_capacity(feed.entries.len());
    let is_first: Vec<bool> = feed.entries.iter().map(|entry| seen.insert(entry.key())).collect();
    let once = feed.entries.into_iter().zip(is_first).filter(|(_, is_first)| *is_first);
    let mut found: Vec<FoundEntry> = once.filter_map(|(entry, _)| feed_entry(entry, blog)).collect();
    // An address that several entries share, or that is the site itself, does not identify an entry.
    let mut keys: HashMap<&str, usize> = HashMap::with_capacity(found.len());
    for key in found.iter().filter_map(|entry| entry.url_key.as_deref()) {
        *keys.entry(key).or_default() += 1;
    }
    let is_distinct: Vec<bool> = found
        .iter()
        .map(|entry| {
            let key = entry.url_key.as_deref();
            key.is_some_and(|key| keys.get(key) == Some(&1))
                && !home.iter().any(|home| home.as_deref() == key)
        })
        .collect();
    for (entry, is_distinct) in found.iter_mut().zip(is_distinct) {
        if is_distinct { entry.prefer_address() } else { entry.url_key = None }
    }
    found
}

fn feed_entry(mut entry: feed::Entry, blog: &Blog) -> Option<FoundEntry> {
    let (url_key, url) = match plain_url_key(&entry, blog) {
        Some(key) => (Some(key), entry.link.take()),
        None => {
            let url = entry.link.as_deref().and_then(|link| resolve_web(Some(&blog.url), link));
            if !is_admitted(&entry, url.as_ref(), blog) {
                return None;
            }
            let url = url.filter(|url| url.as_str().len() <= LONGEST_URL);
            (url.as_ref().map(url_key), url.map(String::from))
        }
    };
    Some(FoundEntry {
        url_key,
        title: entry
            .title
            .as_deref()
            .map(title)
            .filter(|title| !title.is_empty())
            .or_else(|| excerpt(&entry)),
        published_at: entry.date(),
        text: text_of(&entry, blog.text),
        key: bounded_key(entry.into_key()),
        url,
    })
}

/// Whether texts of entries are needed; they are skipped otherwise.
pub fn wants_texts(blog: &Blog) -> bool {
    blog.text != EntryText::None || !blog.patterns().are_addresses()
}

fn is_admitted(entry: &feed::Entry, url: Option<&Url>, blog: &Blog) -> bool {
    if blog.patterns().are_addresses() {
        return blog.patterns().admit(&[], url);
    }
    let texts = entry.summary.iter().chain(&entry.content).map(feed::Content::text);
    let texts: Vec<String> = entry.title.clone().into_iter().chain(texts).collect();
    blog.patterns().admit(&texts.iter().map(String::as_str).collect::<Vec<_>>(), url)
}

/// The beginning of a note without a title, used as its title.
fn excerpt(entry: &feed::Entry) -> Option<String> {
    let line = text::one_line(&entry.summary_or_content()?.text());
    (!line.is_empty()).then(|| text::shorten(&line, EXCERPT_COLUMNS))
}

/// The text of a message about the entry.
fn text_of(entry: &feed::Entry, wanted: EntryText) -> Option<String> {
    let content = match wanted {
        EntryText::None => return None,
        EntryText::Summary => entry.summary_or_content(),
        EntryText::Content => entry.content.first().or(entry.summary.as_ref()),
    };
    let text: String = content?.text().chars().take(TEXT_CHARS).collect();
    (!text.is_empty()).then_some(text)
}

/// The key of an entry's address, if it can be derived without parsing the address.
fn plain_url_key(entry: &feed::Entry, blog: &Blog) -> Option<String> {
    let link = entry.link.as_deref().filter(|link| link.len() <= LONGEST_URL)?;
    let key = if blog.patterns().is_empty() { plain_key(&blog.url, link)? } else { return None };
    Some(bounded_key(key.to_owned()))
}

/// The addresses of a sitemap that match the filters, in its order.
///
/// When the blog is in a folder of its site and the sitemap lists pages in it, only those are taken.
pub fn sitemap_entries(locations: &[Location], blog: &Blog) -> Vec<FoundEntry> {
    let addresses: Vec<(Url, &Location)> = locations
        .iter()
        .filter_map(|location| Some((resolve_web(Some(&blog.url), &location.loc)?, location)))
        .collect();
    let home = Home::new(&blog.url);
    let folder = home.folder();
    let in_folder = |url: &Url| url.path().starts_with(folder) && url.path() != folder;
    let narrow = folder != "/" && addresses.iter().any(|(url, _)| in_folder(url));
    let mut list = SiteEntries::new(blog);
    for (url, location) in addresses {
        if !narrow || in_folder(&url) {
            list.add(&url, location.title.as_deref(), location.lastmod);
        }
    }
    list.found
}

/// The links of a page that match the filters, in its order.
pub fn page_entries(page: &Html, blog: &Blog) -> Result<Vec<FoundEntry>, BadSelector> {
    let mut list = SiteEntries::new(blog);
    for link in page.links(blog.selector.as_deref())? {
        if let Some(url) = resolve_web(page.base().or(Some(&blog.url)), &link.href) {
            list.add(&url, Some(&link.text), None);
        }
    }
    Ok(list.found)
}

/// The keys of all addresses that a page links to.
pub fn linked_keys(page: &Html, blog: &Blog) -> HashSet<String> {
    let links = page.links(None).unwrap_or_default();
    let links = links.iter().filter_map(|link| resolve_web(page.base().or(Some(&blog.url)), &link.href));
    links.map(|url| url_key(&url)).collect()
}

/// Addresses of one site, each once.
struct SiteEntries<'a> {
    blog: &'a Blog,
    own_key: String,
    at: HashMap<String, usize>,
    found: Vec<FoundEntry>,
}

impl<'a> SiteEntries<'a> {
    fn new(blog: &'a Blog) -> Self {
        Self { blog, own_key: url_key(&blog.url), at: HashMap::new(), found: Vec::new() }
    }

    fn add(&mut self, url: &Url, text: Option<&str>, date: Option<crate::time::Timestamp>) {
        let patterns = self.blog.patterns();
        let usual = !patterns.include.is_empty() || !is_furniture(url);
        let texts = text.map(|text| [text]);
        let texts = texts.as_ref().map_or(&[][..], |texts| &texts[..]);
        let wanted = same_site(url, &self.blog.url) && usual && patterns.admit(texts, Some(url));
        if !wanted || url.as_str().len() > LONGEST_URL {
            return;
        }
        let key = url_key(url);
        if key == self.own_key {
            return;
        }
        let title = text.map(title).filter(|title| !title.is_empty());
        match self.at.get(&key) {
            // An image often links to the same page just before its title does.
            Some(at) => {
                let known = &mut self.found[*at];
                if known.title.is_none() {
                    known.title = title;
                }
            }
            None => {
                self.at.insert(key.clone(), self.found.len());
                self.found.push(FoundEntry {
                    url_key: Some(key.clone()),
                    key,
                    url: Some(url.as_str().to_owned()),
                    title,
                    published_at: date,
                    text: None,
                });
            }
        }
    }
}

/// SHA-256 of the sorted keys: the same for the same set of addresses in any order.
pub fn fingerprint(entries: &[FoundEntry]) -> String {
    let mut keys: Vec<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
    keys.sort_unstable();
    hash::sha256_hex(keys.join("\n"))
}

fn title(text: &str) -> String {
    let line = text::one_line(text);
    if line.len() <= TITLE_COLUMNS { line } else { text::shorten(&line, TITLE_COLUMNS) }
}

/// Whether an address is a standard page and not an article: archives, tags, login, feeds, pictures.
fn is_furniture(url: &Url) -> bool {
    const FOLDERS: [&str; 14] = [
        "tag",
        "tags",
        "category",
        "categories",
        "author",
        "authors",
        "page",
        "login",
        "wp-login.php",
        "wp-admin",
        "feed",
        "feeds",
        "search",
        "cart",
    ];
    const ENDINGS: [&str; 12] =
        [".jpg", ".jpeg", ".png", ".gif", ".webp", ".svg", ".css", ".js", ".xml", ".rss", ".atom", ".ico"];
    let path = url.path().to_ascii_lowercase();
    let mut segments = path.split('/').filter(|segment| !segment.is_empty());
    path == "/"
        || segments.any(|segment| FOLDERS.contains(&segment))
        || ENDINGS.iter().any(|ending| path.ends_with(ending))
        || url.query_pairs().any(|(name, _)| matches!(&*name, "replytocom" | "share" | "paged" | "page"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blog(url: &str) -> Blog {
        Blog::sample(url, "")
    }

    fn urls(found: &[FoundEntry]) -> Vec<&str> {
        found.iter().filter_map(|entry| entry.url.as_deref()).collect()
    }

    #[test]
    fn links_to_other_sites_and_to_furniture_do_not_count() {
        let html = r#"<a href="/a"><img src=x></a> <a href="/a?utm_source=x">First</a> <a href="https://other.example/x">x</a>
            <a href="/tag/rust">rust</a> <a href="/page/2">older</a> <a href="/">home</a> <a href="/b#c">Second</a>
            <a href="//www.blog.example/c">Third</a> <a href="photo.jpg">p</a> <a href="/?page=2">2</a>"#;
        let blog = blog("https://blog.example/");
        let page = Html::from_text(html, Some(&blog.url));
        let found = page_entries(&page, &blog).unwrap();
        assert_eq!(
            urls(&found),
            ["https://blog.example/a", "https://blog.example/b#c", "https://www.blog.example/c"]
        );
        assert_eq!(found[0].title.as_deref(), Some("First"), "the title comes with the second link");
    }

    #[test]
    fn a_selector_and_patterns_narrow_the_list() {
        let html =
            r#"<nav><a href="/about">x</a></nav><main><a href="/tag/a">A</a> <a href="/b">B</a></main>"#;
        let blog = Blog::sample("https://blog.example/", "selector = 'main'");
        let page = Html::from_text(html, Some(&blog.url));
        assert_eq!(urls(&page_entries(&page, &blog).unwrap()), ["https://blog.example/b"]);
        let blog = Blog::sample("https://blog.example/", "selector = 'main'\ninclude = ['/tag/*']");
        assert_eq!(
            urls(&page_entries(&page, &blog).unwrap()),
            ["https://blog.example/tag/a"],
            "requested by name"
        );
    }

    #[test]
    fn a_sitemap_of_the_whole_site_is_narrowed_to_the_blogs_folder() {
        let at = |loc: &str| Location { loc: loc.into(), lastmod: None, title: None };
        let list =
            [at("https://x.example/shop/1"), at("https://x.example/blog/a"), at("https://x.example/blog/")];
        for page in ["blog/", "blog", "blog/index.html"] {
            let blog = blog(&format!("https://x.example/{page}"));
            assert_eq!(urls(&sitemap_entries(&list, &blog)), ["https://x.example/blog/a"], "{page}");
        }
        assert_eq!(sitemap_entries(&list, &blog("https://x.example/news/")).len(), 3);
        assert_eq!(sitemap_entries(&list, &blog("https://x.example/")).len(), 3);
    }

    #[test]
    fn the_fingerprint_does_not_depend_on_order_or_tracking() {
        let at = |loc: &str| Location { loc: loc.into(), lastmod: None, title: None };
        let blog = blog("https://x.example/");
        let one = sitemap_entries(&[at("https://x.example/a"), at("http://x.example/b?utm_id=1")], &blog);
        let other = sitemap_entries(&[at("https://x.example/b"), at("https://x.example/a#x")], &blog);
        assert_eq!(fingerprint(&one), fingerprint(&other));
        assert_eq!(fingerprint(&one).len(), 64);
        assert_ne!(fingerprint(&one), fingerprint(&one[..1]));
    }

    #[test]
    fn an_address_that_entries_share_does_not_tell_them_apart() {
        let feed = r#"<rss version="2.0"><channel><link>https://x.example/</link>
            <item><guid>1</guid><link>https://x.example/status</link><title>one</title></item>
            <item><guid>2</guid><link>https://x.example/status</link><title>two</title></item>
            <item><guid>3</guid><link>https://x.example/</link><title>three</title></item>
            <item><guid>4</guid><link>https://x.example/four</link><title>four</title></item>
            <item><guid>4</guid><link>https://x.example/four</link><title>four</title></item>
            </channel></rss>"#;
        let feed = feed::parse(feed.as_bytes(), &feed::Context::default()).unwrap();
        let found = feed_entries(feed, &blog("https://x.example/"));
        let keys: Vec<_> = found.iter().map(|entry| entry.url_key.as_deref()).collect();
        assert_eq!(keys, [None, None, None, Some("//x.example/four")]);
    }

    #[test]
    fn a_note_without_a_title_is_called_by_its_first_words() {
        let feed = r#"<rss version="2.0"><channel>
            <item><guid>1</guid><description>&lt;p&gt;A toot&lt;br&gt;of two lines&lt;/p&gt;</description></item>
            <item><guid>2</guid><title>Named</title><description>x</description></item><item><guid>3</guid></item></channel></rss>"#;
        let feed = feed::parse(feed.as_bytes(), &feed::Context::default()).unwrap();
        let found = feed_entries(feed, &blog("https://x.example/"));
        let titles: Vec<_> = found.iter().map(|entry| entry.title.as_deref()).collect();
        assert_eq!(titles, [Some("A toot of two lines"), Some("Named"), None]);
    }

    #[test]
    fn an_entry_whose_id_is_its_address_is_recognised_as_a_sitemap_would() {
        let item = |id: &str, link: &str| {
            format!("<item><guid>{id}</guid><link>{link}</link><title>{id}</title></item>")
        };
        let feed = [
            item("https://x.example/same", "https://x.example/same"),
            item("http://x.example/before-https", "https://x.example/before-https"),
            item("https://x.example/?p=3", "https://x.example/three"),
            item("https://x.example/four#a", "https://x.example/four#a"),
            item("https://x.example/five?utm_id=1", "https://x.example/five?utm_id=1"),
            "<item><link>https://x.example/six</link></item>".to_owned(),
        ]
        .concat();
        let feed = format!(r#"<rss version="2.0"><channel>{feed}</channel></rss>"#);
        let feed = feed::parse(feed.as_bytes(), &feed::Context::default()).unwrap();
        let found = feed_entries(feed, &blog("https://x.example/"));
        let keys: Vec<&str> = found.iter().map(|entry| entry.key.as_str()).collect();
        assert_eq!(
            keys,
            [
                "//x.example/same",
                "//x.example/before-https",
                "id:https://x.example/?p=3",
                "id:https://x.example/four#a",
                "id:https://x.example/five?utm_id=1",
                "//x.example/six",
            ]
        );
    }
}
