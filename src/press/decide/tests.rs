//! Every pair of state and event, held against the seed's document.

use super::*;

const DAY: Duration = Duration::from_secs(24 * 3600);
const NOW: &str = "2026-01-15T09:00:00.000Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn item(status: Status, retry_count: u32) -> Item {
    let at: Timestamp = "2026-01-14T00:00:00Z".parse().unwrap();
    Item {
        id: 1,
        job_name: "mic".into(),
        url: "https://ministry.example/1".into(),
        title: "t".into(),
        published_at: at,
        status,
        reason: None,
        retry_count,
        created_at: at,
        last_checked_at: at,
        not_before: None,
        deferred_since: None,
        page_hash: None,
        is_held: false,
        bypass_cache: false,
        excerpt: None,
        is_short: false,
        summary: None,
        verdict: None,
    }
}

fn limits() -> RetryLimits {
    RetryLimits { max_retries: 3, not_valuable: NotValuable::Defer, wait_for_page: 30 * DAY }
}

/// `status/reason/retry` after the event, with one failed attempt before; `-` where the event means nothing.
///
/// Section 3.3 of the document: worth → 2; posted → 3/0; not worth and not ready → 1 with 1 or 2, retry + 1;
/// downloads and APIs → 1 with 3, 4 or 5, retry + 1. Section 3.4: processed items are left alone.
const TABLE: &[(Event, [&str; 4])] = &[
    //                       unprocessed  deferred   pending    processed
    (Event::Worth, ["2/-/1", "2/-/1", "-", "-"]),
    (Event::NotWorth, ["1/1/2", "1/1/2", "-", "-"]),
    (Event::NotReady, ["1/2/2", "1/2/2", "-", "-"]),
    (Event::Unchanged, ["-", "1/-/1", "-", "-"]),
    (Event::WaitOver, ["-", "3/6/1", "-", "-"]),
    (Event::DownloadFailed, ["1/3/2", "1/3/2", "1/3/2", "-"]),
    (Event::FilesTooLarge, ["-", "-", "1/4/2", "-"]),
    (Event::ModelFailed, ["1/5/2", "1/5/2", "1/5/2", "-"]),
    (Event::Posted, ["3/0/1", "3/0/1", "3/0/1", "-"]),
    (Event::PostFailed, ["-", "-", "1/5/2", "-"]),
    (Event::Skipped, ["3/0/1", "3/0/1", "3/0/1", "-"]),
    (Event::Retried, ["0/-/0", "0/-/0", "2/-/0", "0/-/0"]),
    (Event::LimitReached, ["3/6/1", "3/6/1", "3/6/1", "-"]),
    (Event::OutOfReach, ["0/-/1", "1/-/1", "2/-/1", "-"]),
];

fn describe(transition: Option<Transition>) -> String {
    let Some(to) = transition else { return "-".to_owned() };
    let reason = to.reason.map_or("-".to_owned(), |reason| reason.code().to_string());
    format!("{}/{reason}/{}", to.status.code(), to.retry_count)
}

#[test]
fn every_state_and_event_goes_where_the_document_says() {
    for (at, (event, row)) in TABLE.iter().enumerate() {
        let event = *event;
        assert_eq!(event as usize, at, "the table has every event, in the order of declaration");
        for (status, expected) in Status::ALL.iter().copied().zip(row) {
            let to = after(&item(status, 1), event, Some(&limits()), now());
            assert_eq!(describe(to), *expected, "{status:?} and {event:?}");
            assert!(to.is_none_or(|to| to.last_checked_at == now()), "last_checked_at always moves");
        }
    }
    // A new event does not compile here before it has its row, at the end.
    match TABLE.last().unwrap().0 {
        Event::OutOfReach => {}
        Event::Worth | Event::NotWorth | Event::NotReady | Event::Unchanged | Event::WaitOver => panic!(),
        Event::DownloadFailed | Event::FilesTooLarge | Event::ModelFailed | Event::Posted => panic!(),
        Event::PostFailed | Event::Skipped | Event::Retried | Event::LimitReached => panic!(),
    }
}

#[test]
fn the_limit_closes_only_when_it_is_exceeded() {
    let events = [
        (Status::Unprocessed, Event::NotWorth),
        (Status::Deferred, Event::NotReady),
        (Status::Deferred, Event::DownloadFailed),
        (Status::Pending, Event::FilesTooLarge),
        (Status::Pending, Event::ModelFailed),
        (Status::Pending, Event::PostFailed),
    ];
    for (status, event) in events {
        let at_limit = after(&item(status, 2), event, Some(&limits()), now()).unwrap();
        assert_eq!(
            (at_limit.status, at_limit.retry_count),
            (Status::Deferred, 3),
            "{event:?} reaches the limit"
        );
        let beyond = after(&item(status, 3), event, Some(&limits()), now());
        assert_eq!(describe(beyond), "3/6/4", "{event:?} exceeds it");
        assert_eq!(
            describe(after(&item(status, u32::MAX), event, Some(&limits()), now())),
            format!("3/6/{}", u32::MAX)
        );
        let none = RetryLimits { max_retries: 0, ..limits() };
        assert_eq!(describe(after(&item(status, 0), event, Some(&none), now())), "3/6/1");
    }
}

#[test]
fn without_limits_nothing_is_closed_and_the_next_look_finds_the_item_spent() {
    for (status, event) in [
        (Status::Pending, Event::PostFailed),
        (Status::Unprocessed, Event::NotWorth),
        (Status::Deferred, Event::DownloadFailed),
    ] {
        let to = after(&item(status, 3), event, None, now()).unwrap();
        assert_eq!((to.status, to.retry_count), (Status::Deferred, 4), "{event:?}");
    }
    for (retry_count, max_retries, is_over) in [(0, 0, false), (1, 0, true), (3, 3, false), (4, 3, true)] {
        let limits = RetryLimits { max_retries, ..limits() };
        assert_eq!(
            retries_exhausted(&item(Status::Deferred, retry_count), &limits),
            is_over,
            "{retry_count} of {max_retries}"
        );
    }
}

#[test]
fn gaps_grow_and_stay_at_a_day() {
    let patient = RetryLimits { max_retries: 9, ..limits() };
    for (retries, gap) in [(0, 15 * 60), (1, 3600), (2, 6 * 3600), (3, 24 * 3600), (7, 24 * 3600)] {
        let to = after(&item(Status::Deferred, retries), Event::NotReady, Some(&patient), now()).unwrap();
        assert_eq!(to.not_before, Some(now().plus(Duration::from_secs(gap))), "after {retries}");
        assert!(Duration::from_secs(gap) < LONGEST_WAIT);
    }
}

#[test]
fn a_page_that_does_not_change_costs_no_try_while_the_reason_stays() {
    let since = now().minus(29 * DAY);
    let waiting =
        Item { reason: Some(Reason::PageNotReady), deferred_since: Some(since), ..item(Status::Deferred, 1) };
    let close = RetryLimits { not_valuable: NotValuable::Close, ..limits() };
    let not_valuable = Item { reason: Some(Reason::NotValuable), ..waiting.clone() };
    let new = Item { status: Status::Unprocessed, ..waiting.clone() };
    let later = now().plus(DAY);
    for (item, verdict, limits, at, expected) in [
        (&waiting, Event::NotReady, limits(), now(), Event::Unchanged),
        (&waiting, Event::NotReady, limits(), later, Event::WaitOver),
        (&waiting, Event::NotWorth, limits(), now(), Event::NotWorth),
        (&waiting, Event::Worth, limits(), later, Event::Worth),
        (&not_valuable, Event::NotWorth, limits(), now(), Event::Unchanged),
        (&not_valuable, Event::NotWorth, close, now(), Event::NotWorth),
        (&new, Event::NotReady, limits(), now(), Event::NotReady),
    ] {
        assert_eq!(on_unchanged(item, verdict, &limits, at), expected, "{verdict:?} of {item:?}");
    }
    for (last, next) in [(15 * 60, 3600), (3600, 6 * 3600), (6 * 3600, 24 * 3600), (24 * 3600, 24 * 3600)] {
        let put_off = waiting.last_checked_at.plus(Duration::from_secs(last));
        let waiting = Item { not_before: Some(put_off), ..waiting.clone() };
        let to = after(&waiting, Event::Unchanged, Some(&limits()), now()).unwrap();
        assert_eq!(to.not_before, Some(now().plus(Duration::from_secs(next))), "after {last}");
        assert_eq!(to.deferred_since, Some(since));
    }
    assert_eq!(after(&waiting, Event::Worth, Some(&limits()), now()).unwrap().deferred_since, None);
    assert_eq!(after(&waiting, Event::Retried, None, now()).unwrap().deferred_since, None);
}

#[test]
fn a_closed_item_whose_post_is_sent_after_all_is_posted() {
    let closed = Item { reason: Some(Reason::RetryLimitExceeded), ..item(Status::Processed, 4) };
    assert_eq!(describe(after(&closed, Event::Posted, None, now())), "3/0/4");
    let posted = Item { reason: Some(Reason::None), ..closed };
    assert_eq!(describe(after(&posted, Event::Posted, None, now())), "-");
}

#[test]
fn what_is_not_valuable_can_be_closed_at_once() {
    let strict = RetryLimits { not_valuable: NotValuable::Close, ..limits() };
    assert_eq!(
        describe(after(&item(Status::Unprocessed, 0), Event::NotWorth, Some(&strict), now())),
        "3/1/1"
    );
    assert_eq!(
        describe(after(&item(Status::Unprocessed, 0), Event::NotReady, Some(&strict), now())),
        "1/2/1"
    );
}

#[test]
fn the_numbers_are_those_of_the_document() {
    let words = ["unprocessed", "deferred", "pending", "processed"];
    for (code, word) in words.into_iter().enumerate() {
        let status = Status::parse(word).unwrap();
        assert_eq!(status.code(), i64::try_from(code).unwrap());
        assert_eq!((Status::from_code(status.code()), status.word()), (Some(status), word));
    }
    for (code, reason) in Reason::ALL.iter().copied().enumerate() {
        assert_eq!(reason.code(), i64::try_from(code).unwrap());
        assert_eq!(Reason::parse(reason.word()), Ok(reason));
    }
    assert_eq!(Reason::ALL[6], Reason::RetryLimitExceeded);
}
