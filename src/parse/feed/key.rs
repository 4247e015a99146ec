//! The identity of entries: what an entry is recognised by when the feed is read again.

use std::collections::HashMap;

use super::Entry;
use crate::hash::sha256_parts;
use crate::parse::url::resolve;

/// Gives every entry its key.
///
/// A candidate counts only if no other entry of the document with another link or title has it too: some publishers
/// give all entries one guid, or one link. Entries that agree in id, link and title are one entry told twice.
pub(super) fn assign(entries: &mut [Entry]) {
    let ids: Vec<Option<String>> =
        entries.iter().map(|entry| entry.id.as_deref().map(|id| format!("id:{id}"))).collect();
    let links: Vec<Option<String>> = entries
        .iter()
        .map(|entry| entry.link.as_deref().map(|link| format!("link:{}", normal(link))))
        .collect();
    let dated: Vec<Option<String>> = entries
        .iter()
        .zip(&links)
        .map(|(entry, link)| Some(format!("{} {}", link.as_deref()?, entry.date()?)))
        .collect();
    let told = |entry: &Entry| {
        sha256_parts(&[entry.link.as_deref().unwrap_or(""), entry.title.as_deref().unwrap_or("")])
    };
    let tellings: Vec<String> = entries.iter().map(told).collect();
    let shared = [shared(&ids, &tellings), shared(&links, &tellings), shared(&dated, &tellings)];
    for (index, entry) in entries.iter_mut().enumerate() {
        let candidates = [&ids[index], &links[index], &dated[index]];
        let key = candidates
            .into_iter()
            .zip(&shared)
            .filter_map(|(candidate, shared)| {
                candidate.as_ref().filter(|key| !shared.contains_key(key.as_str()))
            })
            .next();
        entry.key = match key {
            Some(key) => key.clone(),
            None => format!("text:{}", fingerprint(entry)),
        };
    }
}

/// The candidates that stand for entries which tell different things.
fn shared<'a>(candidates: &'a [Option<String>], tellings: &'a [String]) -> HashMap<&'a str, ()> {
    let mut first: HashMap<&str, &str> = HashMap::with_capacity(candidates.len());
    let mut shared = HashMap::new();
    for (candidate, telling) in candidates.iter().zip(tellings) {
        let Some(candidate) = candidate else { continue };
        if *first.entry(candidate).or_insert(telling) != telling {
            shared.insert(candidate.as_str(), ());
        }
    }
    shared
}

fn fingerprint(entry: &Entry) -> String {
    let text = entry.summary_or_content().map_or("", |content| content.value.as_str());
    let parts = [
        entry.id.as_deref().unwrap_or(""),
        entry.link.as_deref().unwrap_or(""),
        entry.title.as_deref().unwrap_or(""),
        text,
    ];
    sha256_parts(&parts)
}

fn normal(link: &str) -> String {
    match resolve(None, link) {
        Some(url) => {
            let text = url.as_str();
            text.split_once('#').map_or(text, |(page, _)| page).to_owned()
        }
        None => link.to_owned(),
    }
}
