//! When a blog is checked, where it is looked for, and what may be skipped.

use super::*;
use crate::blogs::model::KnownDocument;

#[test]
fn unchanged_only_moves_the_time() {
    let known = KnownDocument {
        detector: Detector::Feed,
        url: "https://b.example/feed".parse().unwrap(),
        etag: Some("\"1\"".into()),
        last_modified: None,
        lastmod: None,
    };
    let state = State { known: vec![known.clone()], ..after(Detector::Feed, "a") };
    let same = DetectorResult::Unchanged { detector: Detector::Feed, known: vec![known.clone()] };
    let decision = decide_check(&blog(), &rules(), &state, &sighting(Ok(same)), &SeenEntries::default());
    assert!(decision.state.is_none() && decision.check.skipped && decision.events.is_empty());
    let renewed = KnownDocument { etag: Some("\"2\"".into()), ..known };
    let other = DetectorResult::Unchanged { detector: Detector::Feed, known: vec![renewed.clone()] };
    let decision = decide_check(&blog(), &rules(), &state, &sighting(Ok(other)), &SeenEntries::default());
    assert_eq!(decision.state.unwrap().known, [renewed]);
}

#[test]
fn searches_are_remembered_for_a_week() {
    let state = State::default();
    assert_eq!(target(&blog(), &state, Detector::Feed, now()), Target::Search);
    let mut nothing = saw(Detector::Html, entries("a b"));
    (nothing.feed_search, nothing.sitemap_search) = (Some(None), Some(None));
    let state = *decide_check(&blog(), &rules(), &state, &nothing, &SeenEntries::default()).state.unwrap();
    assert_eq!((&state.feed_url, &state.sitemap_url), (&None, &None));
    for (later, expected) in [(DAY * 6, Target::Nowhere), (DAY * 7, Target::Search)] {
        for detector in [Detector::Feed, Detector::Sitemap] {
            assert_eq!(target(&blog(), &state, detector, now().plus(later)), expected, "{detector:?}");
        }
    }
    let named = blog_with("feed = 'https://b.example/f'");
    assert!(matches!(target(&named, &state, Detector::Feed, now()), Target::At(url) if url.path() == "/f"));
    let mut found = saw(Detector::Feed, entries("a"));
    found.feed_search = Some(Some("https://b.example/feed".parse().unwrap()));
    let state = *decide_check(&blog(), &rules(), &state, &found, &seen("a")).state.unwrap();
    assert_eq!(state.next_feed_discovery_at, None);
    assert!(matches!(target(&blog(), &state, Detector::Feed, now().plus(DAY * 99)), Target::At(_)));
    let renamed = Blog::sample("https://new.example/", "");
    assert_eq!(
        target(&renamed, &state, Detector::Feed, now()),
        Target::Search,
        "a new address is searched anew"
    );
    let secure = Blog::sample("http://b.example/", "");
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
        let decision = decide_check(&blog(), &rules(), &state, &moved, &seen("a"));
        assert_eq!(codes(&decision).iter().any(|code| code == "moved"), turn == 3);
        state = *decision.state.unwrap();
        assert_eq!(state.feed_url.as_ref() == Some(&to), turn == 3, "turn {turn}");
    }
    state.feed_url = Some("https://b.example/old".parse().unwrap());
    state.moved = Moved { to: Some(to.clone()), count: 2 };
    let decision =
        decide_check(&blog(), &rules(), &state, &trouble(CheckFailureKind::Other), &SeenEntries::default());
    assert_eq!(decision.state.unwrap().moved.count, 2, "a failure says nothing about it");
    let decision = decide_check(&blog(), &rules(), &state, &saw(Detector::Feed, entries("a")), &seen("a"));
    assert_eq!(decision.state.unwrap().moved.count, 0, "an answer without redirect takes it back");
}

#[test]
fn everything_is_read_once_a_week_and_blogs_may_be_checked_less_often() {
    let state = after(Detector::Feed, "a");
    assert!(may_skip(&blog(), &state, Detector::Feed, now()));
    assert!(!may_skip(&blog(), &state, Detector::Html, now()), "another document has other validators");
    assert!(!may_skip(&blog(), &state, Detector::Feed, now().plus(DAY * 7)));
    let daily = blog_with("every = '24h'");
    assert_eq!(due(&daily, None, PauseFlag::None, now()), Due::Now);
    assert_eq!(due(&daily, Some(&state), PauseFlag::None, now()), Due::NotNow);
    assert_eq!(due(&daily, Some(&state), PauseFlag::None, now().plus(DAY - HOUR)), Due::Now);
    assert_eq!(
        due(&daily, Some(&state), PauseFlag::None, now().plus(DAY - HOUR - Duration::from_secs(60))),
        Due::Now,
        "a run is never on the dot"
    );
}

#[test]
fn a_blog_that_rests_is_left_alone_until_its_settings_change() {
    let known = |hash: &str| State { settings_hash: Some(hash.to_owned()), ..State::default() };
    let (same, other) = (known(&blog().settings_hash()), known("of other settings"));
    for (state, pause, expected) in [
        (None, PauseFlag::None, Due::Now),
        (Some(&same), PauseFlag::None, Due::Now),
        (Some(&same), PauseFlag::Paused, Due::NotNow),
        (Some(&other), PauseFlag::Paused, Due::Now),
        (None, PauseFlag::Paused, Due::NotNow),
    ] {
        assert_eq!(due(&blog(), state, pause, now()), expected, "{pause:?}");
    }
}
