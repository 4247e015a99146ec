//! Tables of decisions about messages.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn now() -> Timestamp {
    "2026-01-15T00:00:00Z".parse().unwrap()
}

fn settings() -> Settings {
    Settings { max_attempts: 3, ..Settings::default() }
}

fn later() -> SendError {
    SendError::later("down")
}

#[test]
fn what_a_send_comes_to_decides_what_happens_next() {
    let busy = SendError::Busy { why: "slow down".into(), after: SECOND * 90 };
    let asked = SendError::Later { why: "later".into(), after: Some(HOUR * 5) };
    let locked = SendError::Locked { why: "401".into() };
    for (attempts, result, state, counted, wait) in [
        (1, Ok(Accepted::default()), State::Sent, 1, Some(Duration::ZERO)),
        (1, Err(SendError::refused("no")), State::Failed, 1, Some(Duration::ZERO)),
        (1, Err(later()), State::Ready, 1, None),
        (2, Err(later()), State::Ready, 2, None),
        (3, Err(later()), State::Failed, 3, Some(Duration::ZERO)),
        (1, Err(asked), State::Ready, 1, Some(HOUR * 5)),
        (3, Err(busy), State::Ready, 2, Some(SECOND * 90)),
        (3, Err(locked), State::Ready, 2, Some(Duration::ZERO)),
        (1, Err(SendError::unknown("?")), State::Unknown, 1, Some(SECOND * 60)),
        (9, Err(SendError::unknown("?")), State::Unknown, 9, Some(back_off(9, "key"))),
        (3, Err(SendError::Unsafe { why: "no STARTTLS".into() }), State::Ready, 2, Some(UNENCRYPTED_PAUSE)),
    ] {
        let step = after_send(attempts, "key", &result, &settings(), now());
        assert_eq!((step.state, step.attempts), (state, counted), "{attempts} {result:?}");
        if let Some(wait) = wait {
            assert_eq!(step.not_before.since(now()), wait, "{attempts} {result:?}");
        }
    }
}

#[test]
fn the_whole_channel_rests_only_when_it_was_asked_to_or_is_locked_out() {
    let pause = |result: Result<Accepted, SendError>| after_send(1, "key", &result, &settings(), now()).pause;
    assert_eq!(pause(Err(SendError::Locked { why: "".into() })), Some(ChannelPause::Locked));
    let busy = |after| pause(Err(SendError::Busy { why: "".into(), after }));
    assert_eq!(busy(SECOND * 5), Some(ChannelPause::Until(now().plus(SECOND * 5))));
    assert_eq!(
        busy(HOUR * 1000),
        Some(ChannelPause::Until(now().plus(MAX_PAUSE))),
        "nobody puts us off for weeks"
    );
    assert_eq!(busy(Duration::ZERO), Some(ChannelPause::Until(now().plus(SECOND))));
    assert_eq!(pause(Err(later())), None);
    let spent = Accepted { remote_id: None, pause_until: Some(now().plus(HOUR)) };
    assert_eq!(pause(Ok(spent)), Some(ChannelPause::Until(now().plus(HOUR))));
}

#[test]
fn waits_grow_and_differ_a_little() {
    let mut last = Duration::ZERO;
    for attempts in 1..=8 {
        let wait = back_off(attempts, "some key");
        let step = BACK_OFF[usize::try_from(attempts - 1).unwrap().min(BACK_OFF.len() - 1)];
        assert!(wait >= step.mul_f64(0.8) && wait <= step.mul_f64(1.2), "{attempts}: {wait:?}");
        assert!(attempts > BACK_OFF.len() as u32 || wait > last, "{attempts}: {wait:?} after {last:?}");
        last = wait;
    }
    assert_eq!(back_off(3, "a"), back_off(3, "a"));
    assert_ne!(back_off(3, "a"), back_off(3, "b"));
}

fn unresolved(attempts: u32, ago: Duration, suspicion: Option<Suspicion>) -> Unresolved<'static> {
    let attempted = Attempted { since: now().minus(ago), is_certain: suspicion.is_none() };
    Unresolved { channel: "key", attempts, resolve_attempts: 0, attempted, was_resent: false, suspicion }
}

#[test]
fn a_resolver_that_cannot_tell_leads_to_a_repeat_only_where_that_is_safe_or_wanted() {
    let cannot = || Finding::CannotTell { why: "no".into() };
    let hour = Some(HOUR);
    let (resend, hold) = (OnUnknown::Resend, OnUnknown::Hold);
    for (finding, ago, suspicion, window, on_unknown, again) in [
        // Not there: send it, whatever the config says.
        (Finding::NotSent, HOUR * 9, None, hour, resend, true),
        (Finding::NotSent, HOUR * 9, Some(Suspicion::Restored), hour, hold, true),
        // Mastodon: the key is honoured for an hour; later a person decides.
        (cannot(), HOUR / 2, None, hour, resend, true),
        (cannot(), HOUR / 2, None, hour, hold, true),
        (cannot(), HOUR * 2, None, hour, resend, false),
        (cannot(), HOUR / 2, Some(Suspicion::Retold), hour, resend, false),
        (cannot(), HOUR / 2, Some(Suspicion::Restored), hour, resend, false),
        // Mail, Slack, webhooks: as configured, but never blindly after a restore.
        (cannot(), HOUR * 9, None, None, resend, true),
        (cannot(), HOUR * 9, None, None, hold, false),
        (cannot(), HOUR * 9, Some(Suspicion::Retold), None, resend, true),
        (cannot(), HOUR * 9, Some(Suspicion::Restored), None, resend, false),
        (cannot(), HOUR * 9, Some(Suspicion::Reopened), None, resend, false),
    ] {
        let settings = Settings { on_unknown, ..settings() };
        let resolved = after_resolving(&unresolved(1, ago, suspicion), &finding, window, &settings, now());
        let what = format!("{finding:?} {ago:?} {suspicion:?} {window:?} {on_unknown:?}");
        match resolved {
            Resolved::SendAgain { .. } => assert!(again, "{what}"),
            Resolved::Transition(step) => {
                assert!(!again, "{what}");
                assert_eq!(step.state, State::Held, "{what}");
            }
        }
    }
}

#[test]
fn a_message_is_sent_again_blindly_once_and_then_left_to_a_person() {
    let cannot = Finding::CannotTell { why: "no".into() };
    for (finding, was_resent, window, again) in [
        (&cannot, false, None, Some(true)),
        (&cannot, true, None, None),
        // It cannot arrive twice if it is not there or the key is still honoured.
        (&Finding::NotSent, true, None, Some(false)),
        (&cannot, true, Some(HOUR * 9), Some(false)),
    ] {
        let message = Unresolved { was_resent, ..unresolved(1, HOUR, None) };
        let what = format!("{finding:?} {was_resent} {window:?}");
        match after_resolving(&message, finding, window, &settings(), now()) {
            Resolved::SendAgain { is_blind } => assert_eq!(Some(is_blind), again, "{what}"),
            Resolved::Transition(step) => {
                assert_eq!((step.state, again), (State::Held, None), "{what}");
                assert!(step.error.unwrap().to_string().contains("it was sent again"), "{what}");
            }
        }
    }
}

/// The clock was ahead when the attempt was recorded: it may have been hours ago.
#[test]
fn a_key_covers_nothing_that_was_tried_in_the_future() {
    let cannot = Finding::CannotTell { why: "no".into() };
    for (since, is_covered) in [
        (now(), true),
        (now().minus(HOUR - SECOND), true),
        (now().minus(HOUR), false),
        (now().plus(SECOND), false),
        (now().plus(HOUR * 5), false),
        (now().plus(HOUR * 24 * 365), false),
    ] {
        let attempted = Attempted { since, is_certain: true };
        let message = Unresolved { attempted, ..unresolved(1, HOUR, None) };
        match after_resolving(&message, &cannot, Some(HOUR), &settings(), now()) {
            Resolved::SendAgain { is_blind } => assert!(is_covered && !is_blind, "{since}"),
            Resolved::Transition(step) => {
                assert_eq!((step.state, is_covered), (State::Held, false), "{since}");
            }
        }
    }
}

#[test]
fn a_message_that_kills_its_senders_ends_with_a_person() {
    let resolved = after_resolving(&unresolved(3, HOUR, None), &Finding::NotSent, None, &settings(), now());
    assert!(matches!(resolved, Resolved::Transition(Transition { state: State::Held, .. })), "{resolved:?}");
}

#[test]
fn a_post_that_is_not_there_is_sent_at_once_and_looked_for_later_each_time() {
    let settings = Settings { max_attempts: 8, ..Settings::default() };
    for attempts in 0..=9 {
        let message = unresolved(attempts, HOUR, None);
        let resolved = after_resolving(&message, &Finding::NotSent, Some(HOUR), &settings, now());
        match (attempts, resolved) {
            (0..=7, Resolved::SendAgain { is_blind: false }) => {
                let wait = resolve_after(now(), attempts, "key", &settings).since(now());
                let between = if attempts < 2 { Duration::ZERO } else { back_off(attempts, "key") };
                assert_eq!(wait, between.max(settings.timeout * 2));
            }
            (8 | 9, Resolved::Transition(step)) => assert_eq!(step.state, State::Held),
            (_, other) => panic!("{attempts}: {other:?}"),
        }
    }
}

#[test]
fn failed_looks_are_put_off_longer_each_time_and_end_with_a_person() {
    let unknown = SendError::unknown("cut");
    let locked = SendError::Locked { why: "".into() };
    let busy = SendError::Busy { why: "".into(), after: MINUTE };
    let resolve = |resolve_attempts, error: &SendError| {
        let message = Unresolved { resolve_attempts, ..unresolved(1, HOUR, None) };
        match after_resolving(&message, &Finding::Later(error.clone()), None, &settings(), now()) {
            Resolved::Transition(step) => {
                assert_eq!(step.attempts, 1, "looking is not an attempt");
                step
            }
            Resolved::SendAgain { .. } => panic!("sent without looking"),
        }
    };
    for (resolve_attempts, error, state, counted, wait) in [
        (0, &later(), State::Unknown, 1, Some(back_off(1, "key"))),
        (1, &later(), State::Unknown, 2, Some(back_off(2, "key"))),
        (2, &later(), State::Held, 0, None),
        (0, &unknown, State::Unknown, 1, Some(back_off(1, "key"))),
        (2, &unknown, State::Held, 0, None),
        // A paused channel does not count as an attempt.
        (2, &locked, State::Unknown, 2, Some(Duration::ZERO)),
        (2, &busy, State::Unknown, 2, Some(MINUTE)),
    ] {
        let step = resolve(resolve_attempts, error);
        assert_eq!((step.state, step.resolve_attempts), (state, counted), "{resolve_attempts} {error:?}");
        if let Some(wait) = wait {
            assert_eq!(step.not_before.since(now()), wait, "{resolve_attempts} {error:?}");
        }
    }
    assert_eq!(resolve(0, &locked).pause, Some(ChannelPause::Locked));
    let why = resolve(2, &later()).error.unwrap();
    assert_eq!(why, "it may have been sent already: looking failed 3 times: down");
}

#[test]
fn no_lease_and_no_wait_of_ours_looks_as_if_the_clock_had_been_ahead() {
    for timeout in [SECOND, SECOND * 30, HOUR * 40] {
        let settings = Settings { timeout, ..settings() };
        assert!(latest_lease(&settings, now()) > now().plus(settings.lease()));
        let busy = SendError::Busy { why: "".into(), after: HOUR * 1000 };
        let asked = SendError::Later { why: "".into(), after: Some(HOUR * 1000) };
        for (attempts, error) in [(1, busy), (1, asked), (2, later()), (9, SendError::unknown("?"))] {
            let step = after_send(attempts, "key", &Err(error), &settings, now());
            assert!(step.not_before < latest_wait(&settings, now()), "{timeout:?}");
        }
        for attempts in 1..=20 {
            assert!(now().plus(back_off(attempts, "key")) < latest_wait(&settings, now()));
        }
        assert_eq!(resolve_after(now(), 1, "key", &settings).since(now()), timeout * 2);
        assert!(resolve_after(now(), 1, "key", &settings) < latest_wait(&settings, now()));
    }
}

#[test]
fn quiet_hours_daily_limit_and_pace_hold_in_the_channels_zone() {
    let tokyo = Settings {
        zone: TimeZone::get("Asia/Tokyo").unwrap(),
        quiet_hours: Some("22:00-07:00".parse().unwrap()),
        max_per_day: Some(2),
        pace: MINUTE,
        ..settings()
    };
    let at = |text: &str| text.parse::<Timestamp>().unwrap();
    let active = |last: Option<&str>, today| Activity { last_attempt_at: last.map(at), today };
    for (time, activity, expected) in [
        // 12:00 in Tokyo.
        ("2026-01-15T03:00:00Z", active(None, 0), None),
        (
            "2026-01-15T03:00:00Z",
            active(Some("2026-01-15T02:59:30Z"), 1),
            Some(("2026-01-15T03:00:30.000Z", WaitReason::Pace)),
        ),
        ("2026-01-15T03:00:00Z", active(Some("2026-01-15T02:59:00Z"), 1), None),
        // The clock was set back: do not wait for a moment that may be years away.
        ("2026-01-15T03:00:00Z", active(Some("2027-01-15T02:59:30Z"), 1), None),
        // The day is full until midnight in Tokyo.
        ("2026-01-15T03:00:00Z", active(None, 2), Some(("2026-01-15T15:00:00.000Z", WaitReason::MaxPerDay))),
        // 22:00, 00:30 and 06:59 are quiet, 07:00 is not.
        ("2026-01-15T13:00:00Z", active(None, 0), Some(("2026-01-15T22:00:00.000Z", WaitReason::Quiet))),
        ("2026-01-15T15:30:00Z", active(None, 0), Some(("2026-01-15T22:00:00.000Z", WaitReason::Quiet))),
        ("2026-01-15T21:59:30Z", active(None, 0), Some(("2026-01-15T22:00:30.000Z", WaitReason::Quiet))),
        ("2026-01-15T22:00:00Z", active(None, 0), None),
    ] {
        match (admit(&tokyo, activity, at(time)), expected) {
            (Admission::Now, None) => {}
            (Admission::NotBefore(until, why), Some((expected, because))) => {
                assert_eq!((until.to_string().as_str(), why), (expected, because), "{time}");
            }
            (turn, expected) => panic!("{time} {activity:?}: {turn:?}, not {expected:?}"),
        }
    }
}

#[test]
fn a_flood_is_held_only_after_the_first_run() {
    assert!(should_hold(51, 50, true));
    assert!(!should_hold(50, 50, true));
    assert!(!should_hold(5000, 50, false));
    assert!(should_hold(1, 0, true));
    for (new, whole, is_flood) in
        [(11, 21, true), (11, 22, false), (10, 10, false), (11, 11, true), (12, 23, true)]
    {
        assert_eq!(is_most_of(new, whole, true), is_flood, "{new} of {whole}");
        assert!(!is_most_of(new, whole, false));
    }
}
