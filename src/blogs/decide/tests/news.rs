//! What is new, what is held, and what is neither.

use super::*;

#[test]
fn the_first_success_is_silent_unless_the_job_asks_for_more() {
    for (first_run, expected) in [
        (FirstRun::Baseline, vec![]),
        (FirstRun::Latest(2), vec!["a", "b"]),
        (FirstRun::All, vec!["a", "b", "c"]),
    ] {
        let rules = Rules { first_run, hold_above: 1, ..rules() };
        for detector in Detector::ALL.iter().copied() {
            let decision = decide_check(
                &blog(),
                &rules,
                &State::default(),
                &saw(detector, entries("a b c")),
                &SeenEntries::default(),
            );
            assert_eq!(announced(&decision), expected, "{first_run} {detector:?}");
            assert!(!is_held(&decision), "a first run is never held");
            assert_eq!(decision.record, Record::All);
            assert_eq!(codes(&decision)[0], "baseline");
        }
    }
    let mut mixed = entries("old new");
    mixed[0].published_at = Some(now().minus(DAY));
    mixed[1].published_at = Some(now());
    let rules = Rules { first_run: FirstRun::Latest(1), ..rules() };
    let decision = decide_check(
        &blog(),
        &rules,
        &State::default(),
        &saw(Detector::Feed, mixed),
        &SeenEntries::default(),
    );
    assert_eq!(announced(&decision), ["new"], "the latest by date, not by place");
}

#[test]
fn what_is_new_is_called_by_its_title_else_by_its_address() {
    let (titled, mut bare, mut nameless) = (entry("titled"), entry("bare"), entry("nameless"));
    bare.title = None;
    (nameless.title, nameless.url, nameless.key) = (Some(" ".into()), None, "id:g1".into());
    for (entry, name, shown) in [
        (titled, "titled", "titled"),
        (bare, "https://b.example/bare", "https://b.example/bare"),
        (nameless, "id:g1", "(untitled)"),
    ] {
        let saw = saw(Detector::Feed, vec![entry.clone(), super::entry("known")]);
        let decision = decide_check(&blog(), &rules(), &after(Detector::Feed, "known"), &saw, &seen("known"));
        let first = decision.events.iter().find_map(|event| match event {
            crate::blogs::events::BlogEvent::New { first, .. } => Some(first.clone()),
            _ => None,
        });
        assert_eq!(first, Some(vec![Some(name.to_owned())]));
        let words = Speech { language: Language::En, zone: None };
        assert_eq!(words.value(&crate::blogs::change::link(&entry)), shown);
    }
}

#[test]
fn what_moves_up_at_the_end_of_a_feed_is_not_new() {
    let day = |days: u32| now().minus(DAY * days);
    let listed = |list: &[(&str, Option<Timestamp>)]| -> Vec<FoundEntry> {
        let found = list.iter().map(|(name, at)| FoundEntry { published_at: *at, ..entry(name) });
        found.collect()
    };
    for (why, list, expected) in [
        ("one was removed", vec![("b", Some(day(3))), ("c", Some(day(4))), ("d", Some(day(5)))], vec![]),
        (
            "the feed lists more",
            vec![
                ("new", Some(now())),
                ("a", Some(day(2))),
                ("c", Some(day(4))),
                ("d", Some(day(5))),
                ("e", Some(day(6))),
            ],
            vec!["new"],
        ),
        (
            "dated back, in its place",
            vec![("a", Some(day(2))), ("x", Some(day(3))), ("c", Some(day(4)))],
            vec!["x"],
        ),
        (
            "the newest stands last",
            vec![("c", Some(day(4))), ("a", Some(day(2))), ("x", Some(now()))],
            vec!["x"],
        ),
        ("nothing tells how old it is", vec![("a", Some(day(2))), ("x", None)], vec!["x"]),
        ("nothing is dated but this one", vec![("a", None), ("x", Some(day(9)))], vec!["x"]),
        (
            "published since the first look",
            vec![("a", Some(now())), ("x", Some(now().minus(HOUR)))],
            vec!["x"],
        ),
    ] {
        let state = after(Detector::Feed, "a b c");
        let saw = saw(Detector::Feed, listed(&list));
        let decision = decide_check(&blog(), &rules(), &state, &saw, &seen("a b c"));
        assert_eq!(announced(&decision), expected, "{why}");
        let recorded: Vec<&str> = recorded(&decision).iter().filter_map(FoundEntry::name).collect();
        let unseen: Vec<&str> =
            list.iter().map(|(name, _)| *name).filter(|name| !"abc".contains(name)).collect();
        assert_eq!(recorded, unseen, "{why}: it is known from now on");
        let has_moved = codes(&decision).contains(&"moved_up".to_owned());
        assert_eq!(has_moved, expected.len() < unseen.len(), "{why}");
    }
}

#[test]
fn a_failed_first_check_is_not_the_first_success() {
    let failed = decide_check(
        &blog(),
        &rules(),
        &State::default(),
        &trouble(CheckFailureKind::Other),
        &SeenEntries::default(),
    );
    let state = failed.state.unwrap();
    let decision = decide_check(
        &blog(),
        &rules(),
        &state,
        &saw(Detector::Feed, entries("a b")),
        &SeenEntries::default(),
    );
    assert!(announced(&decision).is_empty());
}

#[test]
fn a_feed_that_starts_empty_announces_its_first_entry() {
    let first = decide_check(
        &blog(),
        &rules(),
        &State::default(),
        &saw(Detector::Feed, vec![]),
        &SeenEntries::default(),
    );
    let state = first.state.unwrap();
    assert!(first.check.error_message.is_none());
    let second =
        decide_check(&blog(), &rules(), &state, &saw(Detector::Feed, entries("a")), &SeenEntries::default());
    assert_eq!(announced(&second), ["a"]);
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
        let decision = decide_check(&blog(), &rules(), &state, &saw(detector, entries(sees)), &seen(memory));
        assert_eq!(announced(&decision).join(" "), expected, "{name}, {detector:?}");
        assert_eq!(decision.check.changed, !expected.is_empty(), "{name}, {detector:?}");
        let changed_at = decision.state.and_then(|state| state.last_change_at);
        assert_eq!(changed_at.is_some(), !expected.is_empty(), "{name}: last_change_at only on change");
    }
}

#[test]
fn a_new_guid_for_a_known_address_is_not_new_and_is_remembered() {
    let mut rewritten = entries("a b");
    for entry in &mut rewritten {
        entry.key.insert_str(0, "guid:");
    }
    let decision = decide_check(
        &blog(),
        &rules(),
        &after(Detector::Feed, "a b"),
        &saw(Detector::Feed, rewritten),
        &seen("a b"),
    );
    assert!(announced(&decision).is_empty());
    assert_eq!(recorded(&decision).len(), 2, "the new keys join the memory");
    assert_eq!(decision.state.unwrap().recent_entry_keys.list()[0], "guid://b.example/a");
}

#[test]
fn an_entry_replaces_one_that_vanished_with_its_title_and_date() {
    let at = |day: u32| Some(now().minus(DAY * day));
    let dated = |name: &str, title: Option<&str>, day: u32| FoundEntry {
        title: title.map(str::to_owned),
        published_at: at(day),
        ..entry(name)
    };
    let had = |title: &str, day: u32| (Some(title.to_owned()), at(day));
    for (what, lists, vanished, replacing) in [
        ("a corrected slug", vec![dated("x2", Some("x"), 1)], vec![had("x", 1)], 1),
        ("another date", vec![dated("x2", Some("x"), 1)], vec![had("x", 2)], 0),
        ("another title", vec![dated("x2", Some("y"), 1)], vec![had("x", 1)], 0),
        ("nothing has vanished", vec![dated("x2", Some("x"), 1)], vec![], 0),
        (
            "two in the place of one",
            vec![dated("x2", Some("x"), 1), dated("x3", Some("x"), 1)],
            vec![had("x", 1)],
            1,
        ),
        ("no titles", vec![dated("x2", None, 1)], vec![(None, at(1))], 0),
        (
            "no dates",
            vec![FoundEntry { published_at: None, ..dated("x2", Some("x"), 1) }],
            vec![(Some("x".into()), None)],
            0,
        ),
        ("one that is known", vec![dated("a", Some("x"), 1)], vec![had("x", 1)], 0),
    ] {
        assert_eq!(find_replacing(&lists, &seen("a"), vanished).len(), replacing, "{what}");
    }
    let state = after(Detector::Feed, "a b c");
    assert_eq!(
        list_vanished(&state, &saw(Detector::Feed, entries("d b"))),
        ["//b.example/a", "//b.example/c"]
    );
    assert!(list_vanished(&state, &saw(Detector::Sitemap, entries("d b"))).is_empty());
    let seen = SeenEntries { replacing: HashSet::from(["//b.example/d".to_owned()]), ..seen("a b c") };
    let decision = decide_check(&blog(), &rules(), &state, &saw(Detector::Feed, entries("e d b")), &seen);
    assert_eq!(announced(&decision), ["e"]);
    assert_eq!(codes(&decision), ["rewritten", "new"]);
    assert_eq!(recorded(&decision).len(), 2, "it is remembered under its new name");
}

#[test]
fn a_new_address_for_a_known_guid_is_not_new_and_is_remembered() {
    let mut moved = entry("a");
    moved.url_key = Some("//b.example/elsewhere".into());
    let sees = vec![moved, entry("c")];
    let decision = decide_check(
        &blog(),
        &rules(),
        &after(Detector::Feed, "b"),
        &saw(Detector::Feed, sees),
        &seen("a b"),
    );
    assert_eq!(announced(&decision), ["c"]);
    assert!(recorded(&decision).iter().any(|entry| entry.key == "//b.example/elsewhere"));
}

#[test]
fn a_new_link_is_told_when_it_was_seen_twice() {
    let first = decide_check(
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
    let second = decide_check(&blog(), &rules(), &state, &again, &seen("a b c"));
    assert_eq!(announced(&second), ["d"], "e waits in turn");
    let passing =
        decide_check(&blog(), &rules(), &state, &saw(Detector::Html, entries("a b c")), &seen("a b c"));
    assert!(announced(&passing).is_empty(), "a link that went away again was none");
    assert_eq!(passing.state.unwrap().unconfirmed, None);
    let at_once = blog_with("confirm = false");
    let decision = decide_check(
        &at_once,
        &rules(),
        &after(Detector::Html, "a b c"),
        &saw(Detector::Html, entries("d a b c")),
        &seen("a b c"),
    );
    assert_eq!(announced(&decision), ["d"]);
}

#[test]
fn too_many_at_once_are_held() {
    let rules = Rules { hold_above: 2, ..rules() };
    for (sees, held) in [("a x y", false), ("a x y z", true)] {
        let decision = decide_check(
            &blog(),
            &rules,
            &after(Detector::Feed, "a"),
            &saw(Detector::Feed, entries(sees)),
            &seen("a"),
        );
        assert_eq!(is_held(&decision), held, "{sees}");
    }
}

#[test]
fn a_list_that_was_rewritten_is_held() {
    let decision = decide_check(
        &blog(),
        &rules(),
        &after(Detector::Sitemap, "a b c d e"),
        &saw(Detector::Sitemap, entries("a v w x y z")),
        &seen("a b c d e"),
    );
    assert!(is_held(&decision));
    assert_eq!(announced(&decision).len(), 5, "it can be approved");
}

#[test]
fn a_feed_without_anything_known_raises_the_gap_alarm_or_was_rewritten() {
    let state = after(Detector::Feed, "a b c");
    let fresh = decide_check(&blog(), &rules(), &state, &saw(Detector::Feed, dated("x y", now())), &seen(""));
    assert_eq!(announced(&fresh), ["x", "y"]);
    assert!(
        codes(&fresh).iter().any(|code| code == "gap") && fresh.changes[0].detail.gap && !is_held(&fresh)
    );
    let old = dated("x y", now().minus(DAY * 300));
    let rewritten = decide_check(&blog(), &rules(), &state, &saw(Detector::Feed, old), &seen(""));
    assert!(announced(&rewritten).is_empty(), "old articles under new names are not news");
    assert!(codes(&rewritten).iter().any(|code| code == "rewritten"));
    assert_eq!(recorded(&rewritten).len(), 2);
    let undated = decide_check(&blog(), &rules(), &state, &saw(Detector::Feed, entries("x y")), &seen(""));
    assert!(is_held(&undated), "without dates a person decides");
    let single = decide_check(
        &blog(),
        &rules(),
        &after(Detector::Feed, "a"),
        &saw(Detector::Feed, entries("b")),
        &seen(""),
    );
    assert!(
        announced(&single) == ["b"] && !single.changes[0].detail.gap,
        "a feed of one entry always looks like that"
    );
}

#[test]
fn another_detector_or_other_settings_make_nothing_new() {
    let state = after(Detector::Feed, "a b");
    for detector in [Detector::Sitemap, Detector::Html] {
        let decision =
            decide_check(&blog(), &rules(), &state, &saw(detector, entries("a b c d")), &seen("a b"));
        assert!(announced(&decision).is_empty(), "{detector:?}");
        assert_eq!(recorded(&decision).len(), 2, "the others join the memory");
        assert!(codes(&decision).iter().any(|code| code == "detector_changed"));
    }
    let other = blog_with("include = ['*']");
    let mut sees = dated("x", now());
    sees.extend(dated("y", now().minus(DAY * 30)));
    sees.extend(entries("a b"));
    let decision = decide_check(&other, &rules(), &state, &saw(Detector::Feed, sees), &seen("a b"));
    assert_eq!(announced(&decision), ["x"], "only what is dated after the last check");
    assert_eq!(decision.state.unwrap().settings_hash, Some(other.settings_hash()));
}

#[test]
fn why_news_are_held_is_data_and_read_in_both_languages() {
    let japanese = Speech { language: Language::Ja, ..Speech::default() };
    for (why, stored, english, in_japanese) in [
        (
            HoldReason::TooMany { entries: 4, hold_above: 3 },
            r#"{"too_many":{"entries":4,"hold_above":3}}"#,
            "4 new entries at once, more than 3",
            "一度に新着 4 件（上限 3 件）",
        ),
        (
            HoldReason::NoDates,
            r#""no_dates""#,
            "nothing of what the feed had is left, and its entries have no dates",
            "フィードの記事がすべて入れ替わり、日付もありません",
        ),
        // As earlier versions wrote it.
        (HoldReason::Words("60 new".into()), r#""60 new""#, "60 new", "60 new"),
    ] {
        assert_eq!(serde_json::to_string(&why).unwrap(), stored);
        assert_eq!(serde_json::from_str::<HoldReason>(stored).unwrap(), why);
        assert_eq!(why.phrase(), english);
        assert_eq!(japanese.phrase(&why.phrase()), in_japanese);
    }
}
