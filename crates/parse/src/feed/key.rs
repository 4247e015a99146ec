//! Keys of entries, by which they are recognised when the feed is fetched again.

use std::collections::{HashMap, HashSet};

use super::Entry;
use crate::url::{comparison_key, resolve};
use stdx::hash::sha256_parts;

/// Gives every entry its key: id, else link, else link and date, else title and text.
///
/// A candidate is used only if no other entry with another link or title has it, too: some publishers give all entries
/// the same guid or link. Entries with the same candidate, link and title are duplicates.
pub(super) fn assign(entries: &mut [Entry]) -> TellsApart {
    let mut keyless: Vec<usize> = (0..entries.len()).collect();
    for candidate in [by_id, by_link, by_link_and_date] {
        if keyless.is_empty() {
            return TellsApart::WithoutText;
        }
        let candidates: Vec<Option<String>> = keyless.iter().map(|at| candidate(&entries[*at])).collect();
        let shared = shared(entries, &keyless, &candidates);
        keyless = keyless
            .into_iter()
            .zip(candidates)
            .filter_map(|(at, candidate)| match candidate.filter(|key| !shared.contains(key)) {
                Some(key) => {
                    entries[at].key = key;
                    None
                }
                None => Some(at),
            })
            .collect();
    }
    let apart = if keyless.is_empty() { TellsApart::WithoutText } else { TellsApart::ByText };
    for at in keyless {
        entries[at].key = by_text(&entries[at]);
    }
    apart
}

/// What was necessary to distinguish the entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TellsApart {
    WithoutText,
    ByText,
}

/// The candidates shared by entries with different content.
fn shared(entries: &[Entry], among: &[usize], candidates: &[Option<String>]) -> HashSet<String> {
    let mut first: HashMap<&str, &Entry> = HashMap::with_capacity(candidates.len());
    let mut shared = HashSet::new();
    for (at, candidate) in among.iter().zip(candidates) {
        let (entry, Some(candidate)) = (&entries[*at], candidate) else { continue };
        let known = first.entry(candidate).or_insert(entry);
        if (&known.link, &known.title) != (&entry.link, &entry.title) {
            shared.insert(candidate.clone());
        }
    }
    shared
}

fn by_id(entry: &Entry) -> Option<String> {
    entry.id.as_deref().map(|id| format!("id:{id}"))
}

fn by_link(entry: &Entry) -> Option<String> {
    let link = entry.link.as_deref()?;
    Some(match resolve(None, link) {
        Some(url) => format!("link:{}", comparison_key(&url)),
        None => format!("link:{link}"),
    })
}

fn by_link_and_date(entry: &Entry) -> Option<String> {
    Some(format!("{} {}", by_link(entry)?, entry.date()?))
}

fn by_text(entry: &Entry) -> String {
    let text = entry.summary_or_content().map_or("", |content| content.value.as_str());
    let or_empty = |part: &Option<String>| part.clone().unwrap_or_default();
    let parts = [&or_empty(&entry.id), &or_empty(&entry.link), &or_empty(&entry.title), text];
    format!("text:{}", sha256_parts(&parts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stdx::time::Timestamp;

    fn entry(id: Option<&str>, link: Option<&str>, title: &str, at: i64) -> Entry {
        Entry {
            id: id.map(str::to_owned),
            link: link.map(str::to_owned),
            title: Some(title.to_owned()),
            published: Some(Timestamp::from_millis(at)),
            ..Entry::default()
        }
    }

    fn keys(mut entries: Vec<Entry>) -> Vec<String> {
        assign(&mut entries);
        entries.into_iter().map(|entry| entry.key).collect()
    }

    #[test]
    fn the_id_counts_first_and_the_link_in_its_normal_form_next() {
        let found = keys(vec![
            entry(Some("1"), Some("http://a.example/x"), "t", 0),
            entry(None, Some("HTTP://A.example:80/y?utm_source=z#top"), "t", 0),
        ]);
        assert_eq!(found, ["id:1", "link://a.example/y"]);
    }

    #[test]
    fn a_link_that_all_entries_share_is_told_apart_by_date_and_then_by_text() {
        let home = Some("http://a.example/");
        let found =
            keys(vec![entry(None, home, "a", 0), entry(None, home, "b", 1), entry(None, home, "c", 1)]);
        assert_eq!(found[0], "link://a.example/ 1970-01-01T00:00:00.000Z");
        assert!(found[1].starts_with("text:") && found[2].starts_with("text:") && found[1] != found[2]);
    }

    #[test]
    fn an_entry_told_twice_has_one_key() {
        let twice = entry(Some("1"), Some("http://a.example/x"), "t", 0);
        assert_eq!(keys(vec![twice.clone(), twice]), ["id:1", "id:1"]);
    }
}
