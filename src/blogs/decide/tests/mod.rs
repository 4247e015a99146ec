//! Tables of what is remembered × what was seen → what it means: the words that they are written in.

mod news;
mod trouble;
mod when;

use super::*;
use crate::blogs::config::Probe;
use crate::blogs::model::{CheckFailure, CheckFailureKind, FoundEntry, RecentKeys};
use crate::config::value::FirstRun;
use crate::phrase::Speech;
use crate::text::Language;

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

fn now() -> Timestamp {
    "2026-01-15T00:00:00Z".parse().unwrap()
}

fn blog() -> Blog {
    blog_with("")
}

/// A blog with those keys besides id and address.
fn blog_with(keys: &str) -> Blog {
    Blog::sample("https://b.example/", keys)
}

fn rules() -> Rules {
    Rules { first_run: FirstRun::Baseline, hold_above: 50, warn_after: 3, probe: Probe::Get, digest: true }
}

fn entry(name: &str) -> FoundEntry {
    FoundEntry {
        key: format!("//b.example/{name}"),
        url_key: Some(format!("//b.example/{name}")),
        url: Some(format!("https://b.example/{name}")),
        title: Some(name.to_owned()),
        published_at: None,
        text: None,
    }
}

fn entries(names: &str) -> Vec<FoundEntry> {
    names.split_whitespace().map(entry).collect()
}

fn dated(names: &str, at: Timestamp) -> Vec<FoundEntry> {
    entries(names).into_iter().map(|entry| FoundEntry { published_at: Some(at), ..entry }).collect()
}

fn seen(names: &str) -> SeenEntries {
    let keys: HashSet<String> = entries(names).into_iter().map(|entry| entry.key).collect();
    SeenEntries { url_keys: keys.clone(), keys, ..SeenEntries::default() }
}

fn saw(detector: Detector, entries: Vec<FoundEntry>) -> Sighting {
    let total = entries.len();
    sighting(Ok(DetectorResult::Entries { detector, entries, known: Vec::new(), total, cut: None }))
}

fn sighting(outcome: Result<DetectorResult, CheckFailure>) -> Sighting {
    Sighting {
        checked_at: now(),
        http_status: Some(200),
        outcome,
        feed_search: None,
        other_feeds: Vec::new(),
        sitemap_search: None,
        moved_to: None,
        beside: None,
        still_stopped: false,
    }
}

fn trouble(kind: CheckFailureKind) -> Sighting {
    sighting(Err(CheckFailure { kind, message: "broken".into() }))
}

/// A blog that was read well an hour ago, by `detector`, and then had these.
fn after(detector: Detector, names: &str) -> State {
    let known = entries(names);
    let mut state = State {
        decided_by: Some(detector),
        last_check_at: Some(now().minus(HOUR)),
        last_success_at: Some(now().minus(HOUR)),
        last_full_read_at: Some(now().minus(HOUR)),
        settings_hash: Some(blog().settings_hash()),
        url_count: known.len(),
        ..State::default()
    };
    *state.first_read_at_mut(detector) = Some(now().minus(DAY));
    match detector {
        Detector::Feed => {
            let keys: Vec<&str> = known.iter().map(|entry| entry.key.as_str()).collect();
            state.recent_entry_keys = RecentKeys::new(&keys);
        }
        _ => state.url_fingerprint = Some(crate::blogs::detect::fingerprint(&known)),
    }
    state
}

fn announced(decision: &Decision) -> Vec<String> {
    let new = decision.changes.iter().filter(|change| change.code == Code::New);
    new.flat_map(|change| change.detail.entries.iter()).filter_map(|entry| entry.title.clone()).collect()
}

fn codes(decision: &Decision) -> Vec<String> {
    let code = |event| serde_json::to_value(event).unwrap()["code"].as_str().unwrap().to_owned();
    decision.events.iter().map(code).collect()
}

fn recorded(decision: &Decision) -> &[FoundEntry] {
    match &decision.record {
        Record::These(entries) => entries,
        Record::All => panic!("everything is recorded"),
    }
}

fn is_held(decision: &Decision) -> bool {
    decision.changes.iter().any(|change| change.held)
}
