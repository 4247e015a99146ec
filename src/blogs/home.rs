//! The part of a site that belongs to a blog: what is below its address, where its feed may be, and whether a feed is
//! its own. Pure.

use std::collections::HashSet;

use super::model::url_key;
use crate::parse::feed::Feed;
use crate::parse::url::{Url, resolve_web};

/// Entries of a feed that are compared with the links of a page.
const COMPARED: usize = 10;
/// Extensions of addresses that are a page inside their folder and not a folder. Other names may contain a dot, too.
const PAGES: [&str; 10] =
    [".html", ".htm", ".xhtml", ".shtml", ".php", ".asp", ".aspx", ".jsp", ".cgi", ".xml"];
/// The usual names of feeds, most common first.
const NAMES: [&str; 13] = [
    "feed",
    "feed/",
    "rss",
    "rss.xml",
    "feed.xml",
    "atom.xml",
    "index.xml",
    "feed.json",
    "feed.atom",
    "index.rdf",
    "rss2.xml",
    "feeds/posts/default",
    "?feed=rss2",
];

/// The address of a blog, and everything below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    url: Url,
    folder: String,
}

impl Home {
    /// The home of a blog with this page. `/user` is a folder like `/user/`.
    pub fn new(page: &Url) -> Self {
        let path = page.path();
        let (above, name) = path.split_at(path.rfind('/').map_or(0, |slash| slash + 1));
        let lower = name.to_ascii_lowercase();
        let folder = if name.is_empty() || PAGES.iter().any(|ending| lower.ends_with(ending)) {
            above.to_owned()
        } else {
            format!("{path}/")
        };
        Self { url: page.clone(), folder }
    }

    /// The home of a blog whose address led to `page`.
    ///
    /// A redirect along the path, to the user's posts or to the front page when there is no such user, does not change
    /// whose blog it is. A redirect to another place has moved it there.
    pub fn behind(blog: &Url, page: &Url) -> Self {
        let (named, found) = (Self::new(blog), Self::new(page));
        if named.holds(page) || found.holds(blog) { named } else { found }
    }

    /// Its path, with a slash at the end.
    pub fn folder(&self) -> &str {
        &self.folder
    }

    fn is_whole_site(&self) -> bool {
        self.folder == "/"
    }

    /// Whether `url` is the page itself or below it. Platforms do not care about the case of user names.
    pub fn holds(&self, url: &Url) -> bool {
        let path = format!("{}/", url.path());
        let start = path.as_bytes().get(..self.folder.len());
        same_site(&self.url, url)
            && start.is_some_and(|start| start.eq_ignore_ascii_case(self.folder.as_bytes()))
    }

    /// The usual places of its feed when its page names none: below the page, below the address in the config, beside
    /// the page (`/user.atom`, `/feed/user`), and last the feed of the whole site.
    pub fn usual_feeds(&self, page: &Url) -> Vec<Url> {
        let found = Self::new(page);
        let mut folders = vec![found.folder.clone()];
        if same_site(&self.url, page) {
            folders.push(self.folder.clone());
        }
        let mut paths: Vec<String> = Vec::new();
        for folder in &folders {
            paths.extend(NAMES.iter().map(|name| format!("{folder}{name}")));
        }
        for folder in folders.iter().filter(|folder| *folder != "/") {
            let path = folder.trim_end_matches('/');
            paths.extend([format!("{path}.atom"), format!("{path}.rss"), format!("/feed{path}")]);
        }
        paths.extend(NAMES.iter().map(|name| format!("/{name}")));
        let mut seen = HashSet::new();
        paths.retain(|path| seen.insert(path.clone()));
        paths.iter().filter_map(|path| page.join(path).ok()).collect()
    }

    /// Whether `feed`, found at `at`, is that of this blog, and not that of the whole site, of a neighbour or of
    /// comments.
    pub fn owns(&self, feed: &Feed, at: &Url) -> bool {
        if is_of_comments(feed) {
            return false;
        }
        if self.is_whole_site() {
            return true;
        }
        let own_words = own_words_of(feed, at);
        let entries = links_of(feed, at);
        let below = entries.iter().filter(|url| self.holds(url)).count();
        if own_words.iter().any(|url| self.holds(url)) || below * 2 > entries.len() {
            return true;
        }
        // Links to other sites, such as the author's own domain, do not speak against it.
        let is_of_site = own_words.iter().chain(&entries).any(|url| same_site(url, &self.url));
        self.holds(at) && !is_of_site
    }

    /// Whether `feed` belongs to the page with the canonical address `canonical`: a channel has one address for people
    /// and another for programs.
    pub fn is_named(feed: &Feed, at: &Url, canonical: &Url) -> bool {
        let key = url_key(canonical);
        canonical.path() != "/" && own_words_of(feed, at).iter().any(|word| url_key(word) == key)
    }

    /// Whether a page that names `feed` lists its entries: posts need not be below the page that lists them.
    pub fn is_listed(feed: &Feed, at: &Url, linked: &HashSet<String>) -> bool {
        let mut entries = links_of(feed, at);
        entries.truncate(COMPARED);
        let listed = entries.iter().filter(|url| linked.contains(&url_key(url))).count();
        !is_of_comments(feed) && listed > 0 && listed * 2 >= entries.len()
    }
}

/// The address that the feed gives for itself and for its page.
fn own_words_of(feed: &Feed, at: &Url) -> Vec<Url> {
    let links = feed.links.iter().filter(|link| matches!(&*link.rel, "self" | "alternate"));
    let words = links.map(|link| &*link.href).chain(feed.link.as_deref());
    words.filter_map(|link| resolve_web(Some(at), link)).collect()
}

fn links_of(feed: &Feed, at: &Url) -> Vec<Url> {
    let links = feed.entries.iter().filter_map(|entry| entry.link.as_deref());
    links.filter_map(|link| resolve_web(Some(at), link)).collect()
}

/// Whether a feed is of comments: every entry is a fragment of a page, or there is none yet and the title says so.
fn is_of_comments(feed: &Feed) -> bool {
    let is_comment = |place: &str| {
        let number = place.strip_prefix('c').unwrap_or_default();
        place.starts_with("comment") || number.starts_with(|c: char| c.is_ascii_digit())
    };
    let links = feed.entries.iter().map(|entry| entry.link.as_deref().unwrap_or_default());
    let mut places = links.map(|link| link.split_once('#').map_or("", |(_, place)| place));
    if !feed.entries.is_empty() {
        return places.all(is_comment);
    }
    let title = feed.title.as_deref().unwrap_or_default().to_lowercase();
    title.starts_with("comments on") || title.starts_with("comments for ") || title.ends_with("へのコメント")
}

/// Whether both addresses are of one site; with and without `www.` are.
pub fn same_site(one: &Url, other: &Url) -> bool {
    let name = |url: &Url| url.host_str().map(|host| host.strip_prefix("www.").unwrap_or(host).to_owned());
    name(one) == name(other) && one.port() == other.port()
}
