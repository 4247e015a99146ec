//! The message about new entries.

use super::config::Blog;
use super::decide::Detail;
use super::model::FoundEntry;
use super::store::ChangeRow;
use crate::channel::{Notice, NoticeEntry};
use crate::parse::url::Url;
use crate::text::{Language, and_more, counted, untitled};

/// The most entries that one message lists; it counts the others.
const MAX_NAMED: usize = 200;

/// The notice that lists the new entries of `changes`, grouped by blog in the order of `changes`.
///
/// `find` returns a blog of the config.
pub fn news<'a>(
    changes: &'a [ChangeRow],
    find: impl Fn(&str) -> Option<&'a Blog>,
    language: Language,
) -> Notice {
    let blogs = count_blogs(changes);
    let title = |id: &'a str| find(id).map_or(id, |blog| blog.name());
    let all: Vec<(&str, &FoundEntry)> = changes
        .iter()
        .flat_map(|change| change.detail.entries.iter().map(|entry| (title(&change.blog_id), entry)))
        .collect();
    let total: usize = changes.iter().map(|change| change.detail.count()).sum();
    let headline = match (all.as_slice(), changes) {
        ([(blog, entry)], _) if total == 1 => format!("{blog}: {}", name_of(entry, language)),
        (_, [only, ..]) if blogs == 1 => headline_of_one(title(&only.blog_id), total, language),
        _ => headline_of_many(total, blogs, language),
    };
    let mut notice = Notice::new(headline, language);
    if let [(_, entry)] = all.as_slice() {
        notice.link = link_of(entry);
    }
    notice.entries = all
        .iter()
        .take(MAX_NAMED)
        .map(|(blog, entry)| NoticeEntry {
            title: name_of(entry, language),
            link: link_of(entry),
            date: entry.published_at,
            note: (blogs > 1).then(|| (*blog).to_owned()),
        })
        .collect();
    for blog in changes.iter().filter_map(|change| find(&change.blog_id)) {
        notice
            .tags
            .extend(blog.tags.iter().filter(|tag| !notice.tags.contains(tag)).cloned().collect::<Vec<_>>());
    }
    let texts = all.iter().filter_map(|(_, entry)| entry.text.clone()).filter(|_| all.len() == 1);
    let remarks = changes.iter().filter_map(|change| remark(change, language));
    let mut remarks: Vec<String> = texts.chain(remarks).collect();
    if total > notice.entries.len() {
        remarks.push(and_more(total - notice.entries.len(), language));
    }
    notice.summary = remarks.join("\n");
    notice
}

fn count_blogs(changes: &[ChangeRow]) -> usize {
    let ids: std::collections::HashSet<&str> = changes.iter().map(|change| change.blog_id.as_str()).collect();
    ids.len()
}

fn headline_of_one(blog: &str, count: usize, language: Language) -> String {
    format!("{blog}: {}", language.choose(counted(count, "new entry"), format!("新着 {count} 件")))
}

fn headline_of_many(count: usize, blogs: usize, language: Language) -> String {
    match language {
        Language::Ja => format!("新着 {count} 件（{blogs} ブログ）"),
        Language::En => format!("{} on {}", counted(count, "new entry"), counted(blogs, "blog")),
    }
}

/// A remark about the change besides its entries.
fn remark(change: &ChangeRow, language: Language) -> Option<String> {
    let blog = &change.blog_id;
    match (&change.detail, language) {
        (Detail { gap: true, .. }, Language::Ja) => {
            Some(format!("{blog}: 前回の記事がフィードに残っていません。見逃した記事があるかもしれません。"))
        }
        (Detail { gap: true, .. }, Language::En) => Some(format!(
            "{blog}: none of the entries known before is left in the feed, so some may have been missed."
        )),
        _ => None,
    }
}

fn link_of(entry: &FoundEntry) -> Option<Url> {
    entry.url.as_deref().and_then(|url| url.parse().ok())
}

/// The title, or a name derived from the address.
fn name_of(entry: &FoundEntry, language: Language) -> String {
    if let Some(title) = entry.title.as_ref().filter(|title| !title.is_empty()) {
        return title.clone();
    }
    let from_address = link_of(entry).and_then(|url| {
        let last = url.path_segments()?.rfind(|segment| !segment.is_empty())?.to_owned();
        let decoded = percent_encoding::percent_decode_str(&last).decode_utf8_lossy().into_owned();
        let stem = decoded.rsplit_once('.').map_or(decoded.as_str(), |(stem, _)| stem);
        let words = crate::text::one_line(&stem.replace(['-', '_'], " "));
        (!words.is_empty()).then_some(words)
    });
    from_address.unwrap_or_else(|| untitled(language).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blogs::decide::Code;

    fn entry(title: Option<&str>, url: &str) -> FoundEntry {
        FoundEntry {
            key: url.into(),
            url_key: None,
            url: Some(url.into()),
            title: title.map(str::to_owned),
            published_at: None,
            text: None,
        }
    }

    fn change(blog: &str, detail: Detail) -> ChangeRow {
        ChangeRow {
            id: 1,
            job_name: "j".into(),
            blog_id: blog.into(),
            found_at: crate::time::Timestamp::MIN,
            code: Code::New,
            held: false,
            detail,
            digest: None,
        }
    }

    fn new(blog: &str, entries: Vec<FoundEntry>) -> ChangeRow {
        change(blog, Detail { entries, ..Detail::default() })
    }

    #[test]
    fn one_entry_is_the_headline_and_several_are_counted() {
        let one = [new("a", vec![entry(Some("Hello"), "https://a.example/hello")])];
        let notice = news(&one, |_| None, Language::En);
        assert_eq!(notice.headline, "a: Hello");
        assert_eq!(notice.link.unwrap().as_str(), "https://a.example/hello");
        let two = [new(
            "a",
            vec![entry(Some("x"), "https://a.example/x"), entry(Some("y"), "https://a.example/y")],
        )];
        assert_eq!(news(&two, |_| None, Language::En).headline, "a: 2 new entries");
        assert_eq!(news(&two, |_| None, Language::Ja).headline, "a: 新着 2 件");
        let both = [two[0].clone(), new("b", vec![entry(None, "https://b.example/my-first_post.html")])];
        let notice = news(&both, |_| None, Language::Ja);
        assert_eq!(notice.headline, "新着 3 件（2 ブログ）");
        assert_eq!(notice.entries[2].title, "my first post", "an address names what has no title");
        assert_eq!(notice.entries[2].note.as_deref(), Some("b"));
    }

    #[test]
    fn a_long_list_says_how_many_more_there_are() {
        let entries = (0..250).map(|n| entry(Some("t"), &format!("https://a.example/{n}"))).collect();
        let notice = news(&[new("a", entries)], |_| None, Language::En);
        assert_eq!((notice.entries.len(), notice.summary.as_str()), (200, "and 50 more"));
    }
}
