//! What is asked of every reader of strangers' documents: no panic, no hang, and these few truths.
//!
//! `scripts/fuzz` grows documents for each of them; `tests/it/fuzzing.rs` tries those that are kept in `fuzz/corpus`.

use std::collections::BTreeMap;
use std::path::Path;

use tsuzuki::config::{self, Env};
use tsuzuki::fetch::AllowPrivate;
use tsuzuki::fetch::guard::{self, Ruling};
use tsuzuki::parse::feed::date;
use tsuzuki::parse::feed::inspect::shown;
use tsuzuki::parse::url::{Url, comparison_key, normalize, resolve};
use tsuzuki::parse::{feed, html, opml, pdf, robots, sitemap};

/// A reader by its name.
pub(crate) type Target = (&'static str, fn(&[u8]));

/// Those that can be reached from outside; the others are doors that only `--cfg fuzzing` opens.
pub(crate) const TARGETS: [Target; 10] = [
    ("config", read_config),
    ("date", read_date),
    ("feed", read_feed),
    ("guard", ask_guard),
    ("html", read_page),
    ("opml", read_opml),
    ("pdf", read_pdf),
    ("robots", read_robots),
    ("sitemap", read_sitemap),
    ("url", read_url),
];

/// A config file is read, or refused with a problem that can be shown.
pub(crate) fn read_config(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let env = Env::of([("HOME", "/nowhere")]);
    if let Err(problems) = config::parse(text, Path::new("tsuzuki.toml"), tsuzuki::app::kinds(), &env) {
        assert!(!problems.to_string().is_empty());
    }
}

/// A date that is read is written and read back the same.
pub(crate) fn read_date(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Some(at) = date::parse(&text) {
        assert_eq!(date::parse(&at.to_string()), Some(at));
    }
}

/// A feed has no more entries than allowed, each with a key, and can be shown.
pub(crate) fn read_feed(bytes: &[u8]) {
    let context = feed::Context { url: "https://example.org/feed".parse().ok(), ..feed::Context::default() };
    let Ok(feed) = feed::parse(bytes, &context) else { return };
    assert!(feed.entries.len() <= feed::ENTRY_LIMIT);
    assert!(feed.entries.iter().all(|entry| !entry.key().is_empty()));
    shown(&feed);
}

/// The guard lets nobody reach this machine, however its address is written.
pub(crate) fn ask_guard(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let local = ["127.0.0.1", "::1", "10.0.0.1"].map(|address| address.parse().expect("an address"));
    let resolve: BTreeMap<_, _> = [("example.com".to_owned(), local.to_vec())].into();
    let opinion = guard::opinion(&text, &resolve, &AllowPrivate::none());
    let url = Url::parse(text.trim()).ok();
    let is_ours = match url.as_ref().and_then(Url::host) {
        Some(url::Host::Domain(name)) => name.trim_end_matches('.') == "example.com",
        Some(url::Host::Ipv4(address)) => {
            address.is_loopback() || address.is_private() || address.is_link_local()
        }
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => true,
    };
    assert!(!is_ours || opinion.verdict == Ruling::Deny, "{text:?}: {}", opinion.why);
}

/// A second look at a page finds the same.
pub(crate) fn read_page(bytes: &[u8]) {
    let url = Url::parse("https://example.com/dir/page").ok();
    assert_eq!(html::read_page(bytes, None, url.as_ref()), html::read_page(bytes, None, url.as_ref()));
}

/// A list of feeds that we write is one that we read, with as many feeds.
pub(crate) fn read_opml(bytes: &[u8]) {
    let Ok(list) = opml::parse(bytes, None) else { return };
    let again = opml::parse(opml::render("", &list.feeds).as_bytes(), None).expect("ours is OPML");
    assert_eq!(again.feeds.len(), list.feeds.len());
}

/// A PDF is read within its limits or refused by name.
pub(crate) fn read_pdf(bytes: &[u8]) {
    let limit = pdf::Limit { chars: 1000, decoded_bytes: 1 << 20, work: 5_000_000 };
    if let Ok(found) = pdf::text(bytes, limit) {
        assert!(!found.text.is_empty() && found.text.chars().count() <= limit.chars);
    }
}

/// Whatever robots.txt says, it may be read itself.
pub(crate) fn read_robots(bytes: &[u8]) {
    let rules = robots::parse(bytes);
    assert!(rules.allows("tsuzuki", "https://example.com/robots.txt"));
    for path in ["/", "/a/b?c=d", "/%E3%81%82"] {
        rules.allows("tsuzuki", &format!("https://example.com{path}"));
    }
    rules.crawl_delay("tsuzuki");
}

/// A sitemap, compressed or not, has no more addresses than allowed.
pub(crate) fn read_sitemap(bytes: &[u8]) {
    let limits = sitemap::SitemapLimits {
        max_urls: 100,
        max_decoded_bytes: 1 << 20,
        ..sitemap::SitemapLimits::default()
    };
    let base = Url::parse("https://example.com/sitemap.xml").ok();
    if let Ok(found) = sitemap::parse(bytes, None, base.as_ref(), &limits) {
        assert!(found.urls.len() <= limits.max_urls);
    }
}

/// The normal form of an address, with and without a base on the line before it, is stable, and so is its key.
pub(crate) fn read_url(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (base, link) = text.split_once('\n').unwrap_or(("", &text));
    let Some(url) = resolve(resolve(None, base).as_ref(), link) else { return };
    let once = normalize(&url);
    if let Ok(again) = Url::parse(&once) {
        assert_eq!(normalize(&again), once);
        assert_eq!(comparison_key(&again), comparison_key(&url));
    }
}
