//! Shortens a post until it fits: the link is never cut, a summary is cut after a sentence, the rest is dropped in
//! order.

use unicode_segmentation::UnicodeSegmentation;

use super::link;
use crate::channel::count;
use crate::channel::notice::{Notice, NoticeEntry};
use crate::channel::plain::{hashtag, inert, inert_line};
use crate::channel::template::Template;
use crate::text::and_more;

/// A summary that would be cut shorter is dropped.
const SHORTEST_SUMMARY: usize = 12;

/// The limits of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PostLimits {
    /// Characters in a post, its content warning included.
    pub(crate) max_chars: usize,
    /// The length of a link.
    pub(crate) url_chars: usize,
}

impl Default for PostLimits {
    fn default() -> Self {
        Self { max_chars: 500, url_chars: count::URL_CHARS }
    }
}

/// The variables of a template. Texts are inert: only `link`, the entries' links and `hashtags` have an effect.
#[derive(Clone, Debug, serde::Serialize)]
struct View {
    headline: String,
    summary: String,
    link: String,
    entries: Vec<EntryView>,
    /// "and 3 more", or empty.
    more: String,
    hashtags: String,
    language: &'static str,
}

#[derive(Clone, Debug, serde::Serialize)]
struct EntryView {
    title: String,
    link: String,
    note: String,
}

impl From<&NoticeEntry> for EntryView {
    fn from(entry: &NoticeEntry) -> Self {
        Self {
            title: inert_line(&entry.title),
            link: entry.link.as_ref().map(link::in_post).unwrap_or_default(),
            note: entry.note.as_deref().map(inert_line).unwrap_or_default(),
        }
    }
}

/// The text of a post about `notice`; its content warning takes `taken` characters.
pub(crate) fn fit(
    template: &Template,
    notice: &Notice,
    hashtags: &[String],
    limits: PostLimits,
    taken: usize,
) -> Result<String, String> {
    let available = limits.max_chars.saturating_sub(taken);
    let mut view = View {
        headline: inert_line(&notice.headline),
        summary: inert(notice.summary.trim()),
        link: notice.link.as_ref().map(link::in_post).unwrap_or_default(),
        entries: notice.entries.iter().map(EntryView::from).collect(),
        more: String::new(),
        hashtags: join_tags(hashtags.iter().chain(&notice.tags)),
        language: notice.language.word(),
    };
    let compose = |view: &View| template.render(view).map(|text| tidy(&text));
    let fits = |view: &View| Ok::<_, String>(count::count(&compose(view)?, limits.url_chars) <= available);
    if fits(&view)? {
        return compose(&view);
    }

    let cuts = cuts(&view.summary);
    let kept = largest(cuts.len(), |kept| fits(&View { summary: cuts[kept].clone(), ..view.clone() }))?;
    view.summary = kept.map(|kept| cuts[kept].clone()).unwrap_or_default();
    if kept.is_some() {
        return compose(&view);
    }

    let entries = std::mem::take(&mut view.entries);
    let with = |kept: usize| View {
        entries: entries[..kept].to_vec(),
        more: if kept == entries.len() {
            String::new()
        } else {
            and_more(entries.len() - kept, notice.language)
        },
        ..view.clone()
    };
    // A post that lists entries needs at least one, so the headline is shortened before the last entry is dropped.
    let least = usize::from(!entries.is_empty());
    let kept = largest(entries.len() + 1, |kept| fits(&with(kept)))?.filter(|kept| *kept >= least);
    if let Some(kept) = kept {
        return compose(&with(kept));
    }

    view = View { hashtags: String::new(), ..with(least) };
    let letters: Vec<&str> = view.headline.graphemes(true).collect();
    let short = |kept: usize| {
        if kept == letters.len() {
            letters.concat()
        } else {
            format!("{}…", letters[..kept].concat().trim_end())
        }
    };
    let kept = largest(letters.len() + 1, |kept| fits(&View { headline: short(kept), ..view.clone() }))?;
    match kept {
        Some(kept) => compose(&View { headline: short(kept), ..view.clone() }),
        None => Err(format!("even without its text it is longer than {} characters", limits.max_chars)),
    }
}

/// The largest of `0..count` that fits, assuming that everything smaller fits, too.
fn largest(count: usize, fits: impl Fn(usize) -> Result<bool, String>) -> Result<Option<usize>, String> {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low.midpoint(high);
        if fits(middle)? { low = middle + 1 } else { high = middle }
    }
    Ok(low.checked_sub(1))
}

/// The shorter forms of a summary, shortest first: cut within the first sentence, then at sentence ends.
fn cuts(summary: &str) -> Vec<String> {
    let ends = sentence_ends(summary);
    let first = ends.first().map_or(summary, |end| summary[..*end].trim_end());
    let letters: Vec<&str> = first.graphemes(true).collect();
    let mut cuts: Vec<String> = (SHORTEST_SUMMARY..letters.len())
        .map(|kept| format!("{}…", letters[..kept].concat().trim_end()))
        .collect();
    cuts.extend(ends.into_iter().map(|end| summary[..end].trim_end().to_owned()));
    cuts
}

/// The ends of sentences, as byte offsets.
fn sentence_ends(text: &str) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, next)| *next);
        let is_end = match c {
            '。' | '．' | '！' | '？' | '\n' => true,
            '.' | '!' | '?' => next.is_none_or(char::is_whitespace),
            _ => false,
        };
        if is_end {
            let mut end = at + c.len_utf8();
            while let Some((at, c)) = chars.next_if(|(_, c)| "」』）)”’！？!?".contains(*c)) {
                end = at + c.len_utf8();
            }
            ends.push(end);
        }
    }
    ends
}

fn join_tags<'a>(tags: impl Iterator<Item = &'a String>) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in tags.filter_map(|tag| hashtag(tag)) {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words.iter().map(|word| format!("#{word}")).collect::<Vec<_>>().join(" ")
}

/// Removes repeated empty lines, and empty lines at both ends.
fn tidy(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut empty = 0;
    for line in text.trim().lines().map(str::trim_end) {
        empty = if line.is_empty() { empty + 1 } else { 0 };
        if empty > 1 {
            continue;
        }
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(line);
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::channel::mastodon::DEFAULT_TEMPLATE;
    use crate::text::Language;

    fn notice(headline: &str, summary: &str, link: &str) -> Notice {
        Notice {
            summary: summary.to_owned(),
            link: Some(link.parse().unwrap()),
            ..Notice::new(headline, Language::Ja)
        }
    }

    fn post(notice: &Notice, max_chars: usize) -> String {
        let template = Template::new(DEFAULT_TEMPLATE).unwrap();
        fit(&template, notice, &["報道".into()], PostLimits { max_chars, ..PostLimits::default() }, 0)
            .unwrap()
    }

    #[test]
    fn what_fits_is_left_alone() {
        assert_eq!(
            post(&notice("題名", "一文目。二文目。", "https://example.com/a"), 500),
            "題名\n\n一文目。二文目。\n\nhttps://example.com/a\n\n#報道"
        );
        let bare = Notice::new("題名", Language::Ja);
        assert_eq!(post(&bare, 500), "題名\n\n#報道");
    }

    #[test]
    fn a_long_summary_ends_with_a_sentence() {
        let summary = "短い一文目。".to_owned() + &"長".repeat(40) + "。" + &"さらに".repeat(40) + "。";
        let text = post(&notice("題名", &summary, "https://example.com/a"), 100);
        assert_eq!(
            text,
            format!("題名\n\n短い一文目。{}。\n\nhttps://example.com/a\n\n#報道", "長".repeat(40))
        );
    }

    #[test]
    fn entries_give_way_from_the_end_and_are_counted() {
        let entry = |number: u32| NoticeEntry {
            title: format!("記事{number}"),
            link: Some(format!("https://example.com/{number}").parse().unwrap()),
            date: None,
            note: None,
        };
        let notice = Notice { entries: (1..=9).map(entry).collect(), ..Notice::new("新着", Language::Ja) };
        let text = post(&notice, 120);
        assert!(text.contains("記事1 https://example.com/1\n"), "{text}");
        assert!(text.contains("ほか 6 件"), "{text}");
    }

    #[test]
    fn a_post_that_cannot_fit_is_an_error_not_a_cut_link() {
        let template = Template::new(DEFAULT_TEMPLATE).unwrap();
        let limits = PostLimits { max_chars: 20, ..PostLimits::default() };
        assert!(fit(&template, &notice("題", "", "https://example.com/a"), &[], limits, 0).is_err());
    }

    const JAPANESE: &str = "[ぁ-んァ-ヶ一-龠a-z0-9、。！？「」（）👩‍👧 \n@#:/.]{0,700}";

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn any_japanese_post_fits_with_its_link_intact(
            headline in "[ぁ-んァ-ヶ一-龠a-zA-Z0-9「」@#:/ ]{0,300}",
            summary in JAPANESE,
            path in "[a-z0-9/._~%-]{0,300}",
            max_chars in 60_usize..600,
        ) {
            let link = format!("https://www.example.go.jp/{}", path.replace('%', "%20"));
            let notice = notice(&headline, &summary, &link);
            let text = post(&notice, max_chars);
            prop_assert!(count::count(&text, 23) <= max_chars, "{text}");
            let link = link::in_post(notice.link.as_ref().unwrap());
            prop_assert_eq!(text.matches("://").count(), 1, "only our link is a link: {}", text);
            prop_assert!(text.lines().any(|line| line == link), "{}", text);
            // The rest of the summary is all of it, whole sentences, or the beginning of the first one.
            let shown = inert(notice.summary.trim());
            let cut = text.split("\n\n").skip(1).find(|part| !part.is_empty() && !part.starts_with("https://") && !part.starts_with('#'));
            if let Some(cut) = cut && cut.ends_with('…') {
                prop_assert!(sentence_ends(&shown).first().is_none_or(|end| cut.len() <= *end + '…'.len_utf8()), "{}", cut);
            }
        }
    }
}
