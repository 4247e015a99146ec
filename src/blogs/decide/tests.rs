//! Tables of what is remembered × what was seen → what it means.

use super::*;
use crate::blogs::config::Probe;
use crate::blogs::model::{Known, Patterns, RecentKeys, Trouble, TroubleKind};
use crate::config::value::FirstRun;
use crate::fetch::AllowPrivate;

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

fn now() -> Timestamp {
    "2026-01-15T00:00:00Z".parse().unwrap()
}

fn blog() -> Blog {
    Blog {
        id: "b".into(),
        url: "https://b.example/".parse().unwrap(),
        detect: Detector::ALL.to_vec(),
        feed: None,
        sitemap: None,
        selector: None,
        patterns: Patterns::default(),
        every: None,
        confirm: true,
        allow_private: AllowPrivate::none(),
        settings_hash: String::new(),
    }
    .hashed()
}

impl Blog {
    fn hashed(self) -> Self {
        Self { settings_hash: self.hash_settings(), ..self }
    }
}

fn rules() -> Rules {
    Rules { first_run: FirstRun::Baseline, hold_above: 50, warn_after: 3, probe: Probe::Get }
}

fn entry(name: &str) -> Found {
    Found {
        key: format!("//b.example/{name}"),
        url_key: Some(format!("//b.example/{name}")),
        url: Some(format!("https://b.example/{name}")),
        title: Some(name.to_owned()),
        published_at: None,
    }
}

fn entries(names: &str) -> Vec<Found> {
    names.split_whitespace().map(entry).collect()
}

fn dated(names: &str, at: Timestamp) -> Vec<Found> {
    entries(names).into_iter().map(|entry| Found { published_at: Some(at), ..entry }).collect()
}

fn seen(names: &str) -> Seen {
    let keys: HashSet<String> = entries(names).into_iter().map(|entry| entry.key).collect();
    Seen { url_keys: keys.clone(), keys, ..Seen::default() }
}

fn saw(detector: Detector, entries: Vec<Found>) -> Sighting {
    let total = entries.len();
    sighting(Ok(Reading::Entries { detector, entries, known: Vec::new(), total }))
}

fn sighting(outcome: Result<Reading, Trouble>) -> Sighting {
    Sighting {
        checked_at: now(),
        http_status: Some(200),
        outcome,
        feed_search: None,
        sitemap_search: None,
        moved_to: None,
    }
}

fn trouble(kind: TroubleKind) -> Sighting {
    sighting(Err(Trouble { kind, message: "broken".into() }))
}

/// A blog that was read well an hour ago, by `detector`, and then had these.
fn after(detector: Detector, names: &str) -> State {
    let known = entries(names);
    let mut state = State {
        decided_by: Some(detector),
        last_check_at: Some(now().minus(HOUR)),
        last_success_at: Some(now().minus(HOUR)),
        last_full_read_at: Some(now().minus(HOUR)),
        settings_hash: Some(blog().settings_hash),
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

fn told(settled: &Settled) -> Vec<String> {
    let new = settled.changes.iter().filter(|change| change.code == Code::New);
    new.flat_map(|change| change.detail.entries.iter()).filter_map(|entry| entry.title.clone()).collect()
}

fn codes(settled: &Settled) -> Vec<&'static str> {
    settled.events.iter().map(|(code, _)| *code).collect()
}

fn recorded(settled: &Settled) -> &[Found] {
    match &settled.record {
        Record::These(entries) => entries,
        Record::All => panic!("everything is recorded"),
    }
}

fn is_held(settled: &Settled) -> bool {
    settled.changes.iter().any(|change| change.held)
}

#[test]
fn the_first_success_is_silent_unless_the_job_asks_for_more() {
    for (first_run, expected) in [
        (FirstRun::Baseline, vec![]),
        (FirstRun::Latest(2), vec!["a", "b"]),
        (FirstRun::All, vec!["a", "b", "c"]),
    ] {
        let rules = Rules { first_run, hold_above: 1, ..rules() };
        for detector in Detector::ALL {
            let settled = settle(
                &blog(),
                &rules,
                &State::default(),
                &saw(detector, entries("a b c")),
                &Seen::default(),
            );
            assert_eq!(told(&settled), expected, "{first_run} {detector:?}");
            assert!(!is_held(&settled), "a first run is never held");
            assert_eq!(settled.record, Record::All);
            assert_eq!(codes(&settled)[0], "baseline");
        }
    }
    let mut mixed = entries("old new");
    mixed[0].published_at = Some(now().minus(DAY));
    mixed[1].published_at = Some(now());
    let rules = Rules { first_run: FirstRun::Latest(1), ..rules() };
    let settled = settle(&blog(), &rules, &State::default(), &saw(Detector::Feed, mixed), &Seen::default());
    assert_eq!(told(&settled), ["new"], "the latest by date, not by place");
}

#[test]
fn a_failed_first_check_is_not_the_first_success() {
    let failed = settle(&blog(), &rules(), &State::default(), &trouble(TroubleKind::Other), &Seen::default());
    let state = failed.state.unwrap();
    let settled = settle(&blog(), &rules(), &state, &saw(Detector::Feed, entries("a b")), &Seen::default());
    assert!(told(&settled).is_empty());
}

#[test]
fn a_feed_that_starts_empty_announces_its_first_entry() {
    let first = settle(&blog(), &rules(), &State::default(), &saw(Detector::Feed, vec![]), &Seen::default());
    let state = first.state.unwrap();
    assert!(first.check.error_message.is_none());
    let second = settle(&blog(), &rules(), &state, &saw(Detector::Feed, entries("a")), &Seen::default());
    assert_eq!(told(&second), ["a"]);
    assert!(second.check.changed);
}

/// What is remembered, what was seen, what is in the long memory → what is told.
#[test]
fn only_what_was_never_seen_is_new() {
    use Detector::{Feed, Html, Sitemap};
    for (name, detector, before, sees, memory, expected) in [
        ("the same", Feed, "a b c", "a b c", "a b c", ""),
        ("one more", Feed, "a b c", "d a b c", "a b c", "d"),
        ("another order", Feed, "a b c", "c b a", "a b c", ""),
        ("one less", Feed, "a b c", "a c", "a b c", ""),
        ("an old one returns", Feed, "a b c", "z a b c", "a b c z", ""),
        ("the same", Sitemap, "a b c", "a b c", "a b c", ""),
        ("one more", Sitemap, "a b c", "a b c d", "a b c", "d"),
        ("another order", Sitemap, "a b c", "c b a", "a b c", ""),
        ("one less", Sitemap, "a b c", "a c", "a b c", ""),
        ("one more waits", Html, "a b c", "d a b c", "a b c", ""),
        ("an old one returns", Html, "a b c", "z a b c", "a b c z", ""),
    ] {
        let state = after(detector, before);
        let settled = settle(&blog(), &rules(), &state, &saw(detector, entries(sees)), &seen(memory));
        assert_eq!(told(&settled).join(" "), expected, "{name}, {detector:?}");
        assert_eq!(settled.check.changed, !expected.is_empty(), "{name}, {detector:?}");
        let changed_at = settled.state.and_then(|state| state.last_change_at);
        assert_eq!(changed_at.is_some(), !expected.is_empty(), "{name}: last_change_at only on change");
    }
}

#[test]
fn a_new_guid_for_a_known_address_is_not_new_and_is_remembered() {
    let mut rewritten = entries("a b");
    for entry in &mut rewritten {
        entry.key.insert_str(0, "guid:");
    }
    let settled = settle(
        &blog(),
        &rules(),
        &after(Detector::Feed, "a b"),
        &saw(Detector::Feed, rewritten),
        &seen("a b"),
    );
    assert!(told(&settled).is_empty());
    assert_eq!(recorded(&settled).len(), 2, "the new keys join the memory");
    assert_eq!(settled.state.unwrap().recent_entry_keys.list()[0], "guid://b.example/a");
}

#[test]
fn a_new_address_for_a_known_guid_is_not_new_and_is_remembered() {
    let mut moved = entry("a");
    moved.url_key = Some("//b.example/elsewhere".into());
    let sees = vec![moved, entry("c")];
    let settled =
        settle(&blog(), &rules(), &after(Detector::Feed, "b"), &saw(Detector::Feed, sees), &seen("a b"));
    assert_eq!(told(&settled), ["c"]);
    assert!(recorded(&settled).iter().any(|entry| entry.key == "//b.example/elsewhere"));
}

#[test]
fn a_new_link_is_told_when_it_was_seen_twice() {
    let first = settle(
        &blog(),
        &rules(),
        &after(Detector::Html, "a b c"),
        &saw(Detector::Html, entries("d a b c")),
        &seen("a b c"),
    );
    let state = *first.state.clone().unwrap();
    assert_eq!(state.unconfirmed, Some(Unconfirmed::Links(vec!["//b.example/d".into()])));
    assert!(recorded(&first).is_empty(), "what waits is not in the memory yet");
    assert!(!may_skip(&blog(), &state, Detector::Html, now()), "the next check must read the page");
    let again = saw(Detector::Html, entries("e d a b c"));
    assert!(needs_memory(&state, &again));
    let second = settle(&blog(), &rules(), &state, &again, &seen("a b c"));
    assert_eq!(told(&second), ["d"], "e waits in turn");
    let passing = settle(&blog(), &rules(), &state, &saw(Detector::Html, entries("a b c")), &seen("a b c"));
    assert!(told(&passing).is_empty(), "a link that went away again was none");
    assert_eq!(passing.state.unwrap().unconfirmed, None);
    let at_once = Blog { confirm: false, ..blog() };
    let settled = settle(
        &at_once,
        &rules(),
        &after(Detector::Html, "a b c"),
        &saw(Detector::Html, entries("d a b c")),
        &seen("a b c"),
    );
    assert_eq!(told(&settled), ["d"]);
}

#[test]
fn too_many_at_once_are_held() {
    let rules = Rules { hold_above: 2, ..rules() };
    for (sees, held) in [("a x y", false), ("a x y z", true)] {
        let settled = settle(
            &blog(),
            &rules,
            &after(Detector::Feed, "a"),
            &saw(Detector::Feed, entries(sees)),
            &seen("a"),
        );
        assert_eq!(is_held(&settled), held, "{sees}");
    }
}

#[test]
fn a_list_that_was_rewritten_is_held() {
    let settled = settle(
        &blog(),
        &rules(),
        &after(Detector::Sitemap, "a b c d e"),
        &saw(Detector::Sitemap, entries("a v w x y z")),
        &seen("a b c d e"),
    );
    assert!(is_held(&settled));
    assert_eq!(told(&settled).len(), 5, "it can be approved");
}

#[test]
fn an_empty_or_shrunken_list_is_an_error_until_it_lasts() {
    use Detector::{Feed, Html, Sitemap};
    for (detector, before, sees, fails) in [
        (Feed, "a b c", "", true),
        (Feed, "", "", false),
        (Feed, "a b c d e f", "a", false),
        (Sitemap, "a b c", "", true),
        (Sitemap, "", "", true),
        (Sitemap, "a b c d", "a b", false),
        (Sitemap, "a b c d e", "a b", true),
        (Html, "a b c", "", true),
        (Html, "", "", true),
        (Html, "a b c d e", "a b", true),
        (Html, "a b c", "a", false),
    ] {
        let state = after(detector, before);
        let settled = settle(&blog(), &rules(), &state, &saw(detector, entries(sees)), &seen(before));
        assert_eq!(settled.check.error_message.is_some(), fails, "{detector:?}: {before} → {sees}");
        assert!(told(&settled).is_empty() && !settled.check.changed);
    }
    let mut state = after(Html, "a b c d e");
    for turn in 1..=3 {
        let settled = settle(&blog(), &rules(), &state, &saw(Html, entries("a b")), &seen("a b c d e"));
        assert_eq!(settled.check.error_message.is_some(), turn < 3, "turn {turn}");
        state = *settled.state.unwrap();
    }
    assert_eq!((state.url_count, state.failures_in_a_row), (2, 0));
}

#[test]
fn a_feed_without_anything_known_raises_the_gap_alarm_or_was_rewritten() {
    let state = after(Detector::Feed, "a b c");
    let fresh = settle(&blog(), &rules(), &state, &saw(Detector::Feed, dated("x y", now())), &seen(""));
    assert_eq!(told(&fresh), ["x", "y"]);
    assert!(codes(&fresh).contains(&"gap") && fresh.changes[0].detail.gap && !is_held(&fresh));
    let old = dated("x y", now().minus(DAY * 300));
    let rewritten = settle(&blog(), &rules(), &state, &saw(Detector::Feed, old), &seen(""));
    assert!(told(&rewritten).is_empty(), "old articles under new names are not news");
    assert!(codes(&rewritten).contains(&"rewritten"));
    assert_eq!(recorded(&rewritten).len(), 2);
    let undated = settle(&blog(), &rules(), &state, &saw(Detector::Feed, entries("x y")), &seen(""));
    assert!(is_held(&undated), "without dates a person decides");
    let single =
        settle(&blog(), &rules(), &after(Detector::Feed, "a"), &saw(Detector::Feed, entries("b")), &seen(""));
    assert!(
        told(&single) == ["b"] && !single.changes[0].detail.gap,
        "a feed of one entry always looks like that"
    );
}

#[test]
fn another_detector_or_other_settings_make_nothing_new() {
    let state = after(Detector::Feed, "a b");
    for detector in [Detector::Sitemap, Detector::Html] {
        let settled = settle(&blog(), &rules(), &state, &saw(detector, entries("a b c d")), &seen("a b"));
        assert!(told(&settled).is_empty(), "{detector:?}");
        assert_eq!(recorded(&settled).len(), 2, "the others join the memory");
        assert!(codes(&settled).contains(&"detector_changed"));
    }
    let other = Blog { patterns: Patterns { include: vec!["*".into()], exclude: vec![] }, ..blog() }.hashed();
    let mut sees = dated("x", now());
    sees.extend(dated("y", now().minus(DAY * 30)));
    sees.extend(entries("a b"));
    let settled = settle(&other, &rules(), &state, &saw(Detector::Feed, sees), &seen("a b"));
    assert_eq!(told(&settled), ["x"], "only what is dated after the last check");
    assert_eq!(settled.state.unwrap().settings_hash, Some(other.settings_hash));
}

#[test]
fn unchanged_only_moves_the_time() {
    let known = Known {
        detector: Detector::Feed,
        url: "https://b.example/feed".parse().unwrap(),
        etag: Some("\"1\"".into()),
        last_modified: None,
        lastmod: None,
    };
    let state = State { known: vec![known.clone()], ..after(Detector::Feed, "a") };
    let same = Reading::Unchanged { detector: Detector::Feed, known: vec![known.clone()] };
    let settled = settle(&blog(), &rules(), &state, &sighting(Ok(same)), &Seen::default());
    assert!(settled.state.is_none() && settled.check.skipped && settled.events.is_empty());
    let renewed = Known { etag: Some("\"2\"".into()), ..known };
    let other = Reading::Unchanged { detector: Detector::Feed, known: vec![renewed.clone()] };
    let settled = settle(&blog(), &rules(), &state, &sighting(Ok(other)), &Seen::default());
    assert_eq!(settled.state.unwrap().known, [renewed]);
}

#[test]
fn failures_are_told_once_then_daily_then_their_end() {
    let mut state = after(Detector::Feed, "a");
    let mut told = Vec::new();
    for hour in 0..52 {
        let mut failed = trouble(TroubleKind::Other);
        failed.checked_at = now().plus(HOUR * hour);
        let settled = settle(&blog(), &rules(), &state, &failed, &Seen::default());
        told.extend(settled.changes.iter().map(|change| (hour, change.code, change.detail.again)));
        state = *settled.state.unwrap();
        assert_eq!(state.recent_entry_keys.list().len(), 1, "what was known stays known");
    }
    assert_eq!(told, [(2, Code::Failing, false), (26, Code::Failing, true), (50, Code::Failing, true)]);
    assert_eq!(state.failing_since, Some(now()));
    let settled = settle(&blog(), &rules(), &state, &saw(Detector::Feed, entries("a")), &seen("a"));
    assert_eq!(settled.changes[0].code, Code::Recovered);
    assert_eq!(settled.changes[0].detail.failures, Some(52));
    let state = settled.state.unwrap();
    assert_eq!((state.failures_in_a_row, state.warned_at, state.failing_since), (0, None, None));
    let brief = settle(
        &blog(),
        &rules(),
        &after(Detector::Feed, "a"),
        &trouble(TroubleKind::Other),
        &Seen::default(),
    );
    let settled =
        settle(&blog(), &rules(), &brief.state.unwrap(), &saw(Detector::Feed, entries("a")), &seen("a"));
    assert!(settled.changes.is_empty(), "what was never told needs no end");
}

#[test]
fn each_kind_of_trouble_has_its_consequence() {
    let mut state = after(Detector::Feed, "a");
    state.feed_url = Some("https://b.example/feed".parse().unwrap());
    let gone = settle(&blog(), &rules(), &state, &trouble(TroubleKind::Gone), &Seen::default());
    assert!(gone.pause.is_some() && gone.changes[0].code == Code::Gone);
    let later = settle(&blog(), &rules(), &state, &trouble(TroubleKind::Later(HOUR * 3)), &Seen::default());
    let later = later.state.unwrap();
    assert!(!is_due(&blog(), Some(&later), Rest::None, now().plus(HOUR * 2)));
    assert!(is_due(&blog(), Some(&later), Rest::None, now().plus(HOUR * 3)));
    assert!(
        is_due(&blog(), Some(&later), Rest::None, now().minus(HOUR)),
        "a clock set back does not silence it"
    );
    for turn in 1..=3 {
        assert_eq!(
            target(&blog(), &state, Detector::Feed, now()),
            Target::At(state.feed_url.clone().unwrap())
        );
        let lost = trouble(TroubleKind::Lost(Detector::Feed));
        state = *settle(&blog(), &rules(), &state, &lost, &Seen::default()).state.unwrap();
        assert_eq!(state.failures_in_a_row, turn);
    }
    assert_eq!(
        target(&blog(), &state, Detector::Feed, now()),
        Target::Search,
        "after three times it is searched for"
    );
}

#[test]
fn searches_are_remembered_for_a_week() {
    let state = State::default();
    assert_eq!(target(&blog(), &state, Detector::Feed, now()), Target::Search);
    let mut nothing = saw(Detector::Html, entries("a b"));
    (nothing.feed_search, nothing.sitemap_search) = (Some(None), Some(None));
    let state = *settle(&blog(), &rules(), &state, &nothing, &Seen::default()).state.unwrap();
    assert_eq!((&state.feed_url, &state.sitemap_url), (&None, &None));
    for (later, expected) in [(DAY * 6, Target::Nowhere), (DAY * 7, Target::Search)] {
        for detector in [Detector::Feed, Detector::Sitemap] {
            assert_eq!(target(&blog(), &state, detector, now().plus(later)), expected, "{detector:?}");
        }
    }
    let named = Blog { feed: Some("https://b.example/f".parse().unwrap()), ..blog() }.hashed();
    assert!(matches!(target(&named, &state, Detector::Feed, now()), Target::At(url) if url.path() == "/f"));
    let mut found = saw(Detector::Feed, entries("a"));
    found.feed_search = Some(Some("https://b.example/feed".parse().unwrap()));
    let state = *settle(&blog(), &rules(), &state, &found, &seen("a")).state.unwrap();
    assert_eq!(state.next_feed_discovery_at, None);
    assert!(matches!(target(&blog(), &state, Detector::Feed, now().plus(DAY * 99)), Target::At(_)));
    let renamed = Blog { url: "https://new.example/".parse().unwrap(), ..blog() }.hashed();
    assert_eq!(
        target(&renamed, &state, Detector::Feed, now()),
        Target::Search,
        "a new address is searched anew"
    );
    let secure = Blog { url: "http://b.example/".parse().unwrap(), ..blog() }.hashed();
    assert!(
        matches!(target(&secure, &state, Detector::Feed, now()), Target::At(_)),
        "http and https are one"
    );
}

#[test]
fn a_permanent_redirect_is_believed_the_third_time() {
    let to: Url = "https://b.example/new".parse().unwrap();
    let mut state = after(Detector::Feed, "a");
    state.feed_url = Some("https://b.example/old".parse().unwrap());
    for turn in 1..=3 {
        let mut moved = saw(Detector::Feed, entries("a"));
        moved.moved_to = Some(to.clone());
        let settled = settle(&blog(), &rules(), &state, &moved, &seen("a"));
        assert_eq!(codes(&settled).contains(&"moved"), turn == 3);
        state = *settled.state.unwrap();
        assert_eq!(state.feed_url.as_ref() == Some(&to), turn == 3, "turn {turn}");
    }
    state.feed_url = Some("https://b.example/old".parse().unwrap());
    (state.moved_to, state.moved_count) = (Some(to.clone()), 2);
    let settled = settle(&blog(), &rules(), &state, &trouble(TroubleKind::Other), &Seen::default());
    assert_eq!(settled.state.unwrap().moved_count, 2, "a failure says nothing about it");
    let settled = settle(&blog(), &rules(), &state, &saw(Detector::Feed, entries("a")), &seen("a"));
    assert_eq!(settled.state.unwrap().moved_count, 0, "an answer without redirect takes it back");
}

#[test]
fn everything_is_read_once_a_week_and_blogs_may_be_checked_less_often() {
    let state = after(Detector::Feed, "a");
    assert!(may_skip(&blog(), &state, Detector::Feed, now()));
    assert!(!may_skip(&blog(), &state, Detector::Html, now()), "another document has other validators");
    assert!(!may_skip(&blog(), &state, Detector::Feed, now().plus(DAY * 7)));
    let daily = Blog { every: crate::config::value::Span::from_secs(24 * 3600), ..blog() };
    assert!(is_due(&daily, None, Rest::None, now()));
    assert!(!is_due(&daily, Some(&state), Rest::None, now()));
    assert!(is_due(&daily, Some(&state), Rest::None, now().plus(DAY - HOUR)));
    assert!(
        is_due(&daily, Some(&state), Rest::None, now().plus(DAY - HOUR - Duration::from_secs(60))),
        "a run is never on the dot"
    );
}

#[test]
fn a_blog_that_rests_is_left_alone_until_its_settings_change() {
    let known = |hash: &str| State { settings_hash: Some(hash.to_owned()), ..State::default() };
    let (same, other) = (known(&blog().settings_hash), known("of other settings"));
    for (state, rest, due) in [
        (None, Rest::None, true),
        (Some(&same), Rest::None, true),
        (Some(&same), Rest::Paused, false),
        (Some(&other), Rest::Paused, true),
        (None, Rest::Paused, true),
    ] {
        assert_eq!(is_due(&blog(), state, rest, now()), due, "{rest:?}");
    }
}
