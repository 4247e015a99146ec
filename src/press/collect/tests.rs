//! What the entries of a feed become.

use super::super::config::Future;
use super::entries::AHEAD;
use super::fetch::WHOLE_EVERY;
use super::*;
use crate::config::value::Patterns;
use crate::fetch::Validators;
use crate::parse::feed::{self, Entry};

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A link, a title and a date, as a feed tells them.
type Listed<'a> = (&'a str, &'a str, Option<&'a str>);

fn entries(listed: &[Listed<'_>]) -> Vec<Entry> {
    let items: Vec<_> = listed
        .iter()
        .map(|(url, title, date)| json!({ "url": url, "title": title, "date_published": date }))
        .collect();
    let feed = json!({ "version": "https://jsonfeed.org/version/1.1", "title": "t", "items": items });
    feed::parse(feed.to_string().as_bytes(), &feed::Context::default()).unwrap().entries
}

#[test]
fn entries_become_items_once_and_undated_ones_get_the_time_of_the_look() {
    let now = at("2026-01-15T00:00:00Z");
    let long = format!("https://a.example/{}", "x".repeat(3000));
    let entries = entries(&[
        ("https://a.example/1", "一", Some("2026-01-14T00:00:00Z")),
        ("https://a.example/1", "一", Some("2026-01-13T00:00:00Z")),
        ("https://a.example/2", "二", None),
        ("https://a.example/soon", "近", Some("2026-01-15T00:30:00Z")),
        ("javascript:alert(1)", "悪", None),
        ("", "無", None),
        ("https://a.example/3", "", None),
        (&long, "長", None),
    ]);
    let read = read_entries(&entries, Future::Ignore, Patterns::default(), now);
    let found: Vec<_> = read.items.iter().map(|item| (item.url.as_str(), item.published_at)).collect();
    assert_eq!(
        found,
        [
            ("https://a.example/1", at("2026-01-14T00:00:00Z")),
            ("https://a.example/2", now),
            ("https://a.example/soon", at("2026-01-15T00:30:00Z")),
            ("https://a.example/3", now),
        ]
    );
    assert_eq!(read.items[3].title, "https://a.example/3");
    assert_eq!((read.future, read.unusable), (0, 3));
}

#[test]
fn an_entry_of_the_future_is_handled_as_configured() {
    let (now, date) = (at("2026-01-15T00:00:00Z"), at("2026-02-01T00:00:00Z"));
    let entries = entries(&[("https://a.example/1", "先", Some("2026-02-01T00:00:00Z"))]);
    let ignored = read_entries(&entries, Future::Ignore, Patterns::default(), now);
    assert!(ignored.items.is_empty());
    assert_eq!((ignored.future, ignored.read_again_at), (1, Some(date)));
    let waiting = read_entries(&entries, Future::Wait, Patterns::default(), now);
    assert_eq!((waiting.items[0].published_at, waiting.items[0].not_before), (date, Some(date)));
    let taken = read_entries(&entries, Future::Now, Patterns::default(), now);
    assert_eq!((taken.items[0].published_at, taken.items[0].not_before), (now, None));
}

#[test]
fn a_first_look_announces_nothing_the_newest_or_all() {
    let entries = entries(&[
        ("https://a.example/1", "一", Some("2026-01-01T00:00:00Z")),
        ("https://a.example/3", "三", Some("2026-01-03T00:00:00Z")),
        ("https://a.example/2", "二", Some("2026-01-02T00:00:00Z")),
    ]);
    let announced = |first_run| {
        let mut items =
            read_entries(&entries, Future::Ignore, Patterns::default(), at("2026-01-15T00:00:00Z")).items;
        mark_baseline(&mut items, first_run);
        items.iter().map(|item| item.recorded.is_none()).collect::<Vec<_>>()
    };
    assert_eq!(announced(FirstRun::Baseline), [false, false, false]);
    assert_eq!(announced(FirstRun::Latest(2)), [false, true, true]);
    assert_eq!(announced(FirstRun::All), [true, true, true]);
}

#[test]
fn validators_are_set_aside_when_the_whole_feed_is_due() {
    let now = at("2026-01-15T00:00:00Z");
    let known = FeedState {
        validators: Validators { etag: Some("\"1\"".into()), ..Validators::default() },
        first_success_at: Some(now),
        last_read_at: Some(now),
        ..FeedState::default()
    };
    assert!(!usable_validators(&known, now).is_empty());
    assert!(usable_validators(&known, now.plus(WHOLE_EVERY)).is_empty());
    assert!(usable_validators(&known, now.minus(WHOLE_EVERY)).is_empty(), "read by a clock that was ahead");
    let again = FeedState { read_again_at: Some(now.plus(AHEAD)), ..known };
    assert!(!usable_validators(&again, now).is_empty());
    assert!(usable_validators(&again, now.plus(AHEAD)).is_empty());
}
