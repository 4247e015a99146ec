//! What cannot be read: when that is told, and what follows from it.

use super::*;

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
        let decision = decide_check(&blog(), &rules(), &state, &saw(detector, entries(sees)), &seen(before));
        assert_eq!(decision.check.error_message.is_some(), fails, "{detector:?}: {before} → {sees}");
        assert!(announced(&decision).is_empty() && !decision.check.changed);
    }
    let mut state = after(Html, "a b c d e");
    for turn in 1..=3 {
        let decision =
            decide_check(&blog(), &rules(), &state, &saw(Html, entries("a b")), &seen("a b c d e"));
        assert_eq!(decision.check.error_message.is_some(), turn < 3, "turn {turn}");
        state = *decision.state.unwrap();
    }
    assert_eq!((state.url_count, state.failures_in_a_row), (2, 0));
}

#[test]
fn a_list_that_stays_short_is_believed_although_it_goes_on() {
    let mut state = after(Detector::Sitemap, "a b c d e f g");
    let mut found = Vec::new();
    for (sees, memory) in [("e f g", "a b c d e f g"), ("f g h", "a b c d e f g"), ("g h i", "a b c d e f g")]
    {
        let seen_now = saw(Detector::Sitemap, entries(sees));
        let decision = decide_check(&blog(), &rules(), &state, &seen_now, &seen(memory));
        found.push((decision.check.error_message.is_some(), announced(&decision)));
        state = *decision.state.unwrap();
    }
    let nothing = Vec::<String>::new();
    assert_eq!(found, [(true, nothing.clone()), (true, nothing), (false, vec!["h".into(), "i".into()])]);
}

#[test]
fn a_page_that_stays_another_one_is_held() {
    let mut state = after(Detector::Html, "a b c d e f g");
    let mut memory = "a b c d e f g".to_owned();
    let mut held = Vec::new();
    for _ in 0..5 {
        let wall = saw(Detector::Html, entries("cookies privacy g"));
        let decision = decide_check(&blog(), &rules(), &state, &wall, &seen(&memory));
        held.push((decision.check.changed, is_held(&decision)));
        if decision.check.changed {
            memory += " cookies privacy";
        }
        state = *decision.state.unwrap_or(Box::new(state));
    }
    let nothing = (false, false);
    assert_eq!(held, [nothing, nothing, (true, true), nothing, nothing]);
}

#[test]
fn a_feed_that_stays_empty_is_believed_and_what_comes_then_is_new() {
    let mut state = after(Detector::Feed, "a b");
    state.feed_newest_at = Some(now().minus(DAY));
    for turn in 1..=4 {
        let decision = decide_check(&blog(), &rules(), &state, &saw(Detector::Feed, vec![]), &seen("a b"));
        assert_eq!(decision.check.error_message.is_some(), turn < 3, "turn {turn}");
        assert!(decision.changes.is_empty(), "nobody is told about it");
        state = *decision.state.unwrap_or(Box::new(state));
    }
    assert_eq!(state.feed_newest_at, Some(now().minus(DAY)), "it is still known how old the feed is");
    let full = saw(Detector::Feed, entries("d c a"));
    let decision = decide_check(&blog(), &rules(), &state, &full, &seen("a b"));
    assert_eq!(announced(&decision), ["d", "c"]);
}

#[test]
fn failures_are_told_once_then_daily_then_their_end() {
    let mut state = after(Detector::Feed, "a");
    let mut announced = Vec::new();
    for hour in 0..52 {
        let mut failed = trouble(CheckFailureKind::Other);
        failed.checked_at = now().plus(HOUR * hour);
        let decision = decide_check(&blog(), &rules(), &state, &failed, &SeenEntries::default());
        announced.extend(decision.changes.iter().map(|change| (hour, change.code, change.detail.again)));
        state = *decision.state.unwrap();
        assert_eq!(state.recent_entry_keys.list().len(), 1, "what was known stays known");
    }
    assert_eq!(announced, [(2, Code::Failing, false), (26, Code::Failing, true), (50, Code::Failing, true)]);
    assert_eq!(state.failing_since, Some(now()));
    let decision = decide_check(&blog(), &rules(), &state, &saw(Detector::Feed, entries("a")), &seen("a"));
    assert_eq!(decision.changes[0].code, Code::Recovered);
    assert_eq!(decision.changes[0].detail.failures, Some(52));
    let state = decision.state.unwrap();
    assert_eq!((state.failures_in_a_row, state.warned_at, state.failing_since), (0, None, None));
    let brief = decide_check(
        &blog(),
        &rules(),
        &after(Detector::Feed, "a"),
        &trouble(CheckFailureKind::Other),
        &SeenEntries::default(),
    );
    let decision = decide_check(
        &blog(),
        &rules(),
        &brief.state.unwrap(),
        &saw(Detector::Feed, entries("a")),
        &seen("a"),
    );
    assert!(decision.changes.is_empty(), "what was never told needs no end");
}

#[test]
fn each_kind_of_trouble_has_its_consequence() {
    let mut state = after(Detector::Feed, "a");
    state.feed_url = Some("https://b.example/feed".parse().unwrap());
    let gone =
        decide_check(&blog(), &rules(), &state, &trouble(CheckFailureKind::Gone), &SeenEntries::default());
    assert!(gone.pause.is_some() && gone.changes[0].code == Code::Gone);
    let later = decide_check(
        &blog(),
        &rules(),
        &state,
        &trouble(CheckFailureKind::Later(HOUR * 3)),
        &SeenEntries::default(),
    );
    let later = later.state.unwrap();
    let until = now().plus(HOUR * 3);
    for (at, expected, what) in [
        (now().plus(HOUR * 2), Due::NotBefore(until), "it is left alone"),
        (until, Due::Now, "as long as its server asks"),
        (now().minus(HOUR), Due::Now, "a clock set back does not silence it"),
    ] {
        assert_eq!(due(&blog(), Some(&later), PauseFlag::None, at), expected, "{what}");
    }
    for turn in 1..=3 {
        assert_eq!(
            target(&blog(), &state, Detector::Feed, now()),
            Target::At(state.feed_url.clone().unwrap())
        );
        let lost = trouble(CheckFailureKind::Lost(Detector::Feed));
        state = *decide_check(&blog(), &rules(), &state, &lost, &SeenEntries::default()).state.unwrap();
        assert_eq!(state.failures_in_a_row, turn);
    }
    assert_eq!(
        target(&blog(), &state, Detector::Feed, now()),
        Target::Search,
        "after three times it is searched for"
    );
}

#[test]
fn a_document_that_decided_and_is_not_found_again_is_asked_for_until_another_decides() {
    let feed: Url = "https://b.example/feed".parse().unwrap();
    let mut state = after(Detector::Feed, "a");
    state.feed_url = Some(feed.clone());
    let searched = |outcome| Sighting { feed_search: Some(None), ..sighting(outcome) };
    let other = CheckFailure { kind: CheckFailureKind::Other, message: "broken".into() };
    let failed = searched(Err(other));
    let state = *decide_check(&blog(), &rules(), &state, &failed, &SeenEntries::default()).state.unwrap();
    assert!(is_lost(&blog(), &state, Detector::Feed));
    assert_eq!(target(&blog(), &state, Detector::Feed, now().plus(HOUR)), Target::At(feed));
    let back = decide_check(&blog(), &rules(), &state, &saw(Detector::Feed, entries("a")), &seen("a"));
    assert!(!is_lost(&blog(), &back.state.unwrap(), Detector::Feed), "it is back");
    let by_page = |state: &State, sighting: Sighting| {
        *decide_check(&blog(), &rules(), state, &sighting, &seen("a")).state.unwrap()
    };
    let state = by_page(&state, saw(Detector::Html, entries("a x")));
    assert!(is_lost(&blog(), &state, Detector::Feed), "the page decides, and the feed may be back");
    let again = saw(Detector::Html, entries("a x")).outcome;
    let state = by_page(&state, searched(again));
    assert_eq!(target(&blog(), &state, Detector::Feed, now().plus(HOUR)), Target::Nowhere);
}
