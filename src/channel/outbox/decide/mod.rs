//! Decides what happens to a message next. Pure.

use std::time::Duration;

use jiff::ToSpan as _;
use jiff::tz::TimeZone;

use super::model::{Attempted, Row, State, Suspicion};
use crate::channel::error::{Accepted, Finding, SendError};
use crate::channel::settings::Settings;
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// How long to wait after the first, second, … failed attempt; the last one repeats.
const BACK_OFF: [Duration; 7] = [
    MINUTE,
    Duration::from_secs(300),
    Duration::from_secs(900),
    HOUR,
    Duration::from_secs(3 * 3600),
    Duration::from_secs(6 * 3600),
    Duration::from_secs(12 * 3600),
];
/// The longest pause that a server can impose on a channel.
const MAX_PAUSE: Duration = Duration::from_secs(24 * 3600);
/// How long a channel is paused if its connection cannot be encrypted.
const UNENCRYPTED_PAUSE: Duration = Duration::from_secs(900);

/// What to do with a message that may have been sent if the channel cannot find out.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum OnUnknown {
    /// Send it again: at worst it arrives twice.
    #[default]
    Resend,
    /// Leave it to a person: at worst it arrives late.
    Hold,
}

/// Whether so many new things at once look like a source that was rewritten, not like news.
pub fn should_hold(new_count: usize, hold_above: usize, past_first_run: bool) -> bool {
    past_first_run && new_count > hold_above
}

/// A number of new things that is normal, whatever their share of the source.
const SHARE_ABOVE: usize = 10;

/// Whether so much of a source is new at once that the source has probably been rewritten.
pub fn is_most_of(new_count: usize, whole: usize, past_first_run: bool) -> bool {
    past_first_run && new_count > SHARE_ABOVE && new_count > whole / 2
}

/// The changes to a message after something happened to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    pub state: State,
    /// When it may be claimed again.
    pub not_before: Timestamp,
    pub attempts: u32,
    /// How many checks in a row have failed while its outcome is unknown.
    pub resolve_attempts: u32,
    /// Its id on the server.
    pub remote_id: Option<String>,
    pub error: Option<Phrase>,
    pub pause: Option<ChannelPause>,
}

/// A pause of the whole channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelPause {
    /// Until a moment, because the server asked for it.
    Until(Timestamp),
    /// Until a moment, because the connection could not be encrypted.
    Unsafe(Timestamp),
    /// Until the credentials change or a person resumes it.
    Locked,
}

/// After an attempt to send a message.
///
/// A blind resend that failed may still have arrived the first time, so it does not count as not sent.
pub fn after_attempt(
    row: &Row,
    result: &Result<Accepted, SendError>,
    settings: &Settings,
    now: Timestamp,
) -> Transition {
    match after_send(row.attempts, &row.channel, result, settings, now) {
        failed @ Transition { state: State::Failed, .. } if row.resent_at.is_some() => {
            let error = failed.error.as_ref().map(|why| {
                may_have_been_sent(&phrase!(
                    "the second attempt failed: {why}",
                    "2 回目の送信も失敗しました：{why}"
                ))
            });
            Transition { state: State::Held, error, ..failed }
        }
        step => step,
    }
}

/// After a send: `attempts` counts this one.
fn after_send(
    attempts: u32,
    channel: &str,
    result: &Result<Accepted, SendError>,
    settings: &Settings,
    now: Timestamp,
) -> Transition {
    let step = |state, not_before| Transition {
        state,
        not_before,
        attempts,
        resolve_attempts: 0,
        remote_id: None,
        error: result.as_ref().err().map(|error| error.why().clone()),
        pause: None,
    };
    match result {
        Ok(sent) => Transition {
            remote_id: sent.remote_id.clone(),
            pause: sent
                .pause_until
                .filter(|until| *until > now)
                .map(|until| ChannelPause::Until(until.min(now.plus(MAX_PAUSE)))),
            ..step(State::Sent, now)
        },
        Err(SendError::Refused { .. }) => step(State::Failed, now),
        Err(SendError::Later { .. }) if attempts >= settings.max_attempts => step(State::Failed, now),
        Err(SendError::Later { after, .. }) => {
            let asked = after.unwrap_or_default().min(MAX_PAUSE);
            step(State::Ready, now.plus(back_off(attempts, channel).max(asked)))
        }
        Err(SendError::Busy { after, .. }) => {
            let until = now.plus((*after).clamp(Duration::from_secs(1), MAX_PAUSE));
            Transition {
                attempts: attempts.saturating_sub(1),
                pause: Some(ChannelPause::Until(until)),
                ..step(State::Ready, until)
            }
        }
        Err(SendError::Locked { .. }) => Transition {
            attempts: attempts.saturating_sub(1),
            pause: Some(ChannelPause::Locked),
            ..step(State::Ready, now)
        },
        Err(SendError::Unsafe { .. }) => {
            let until = now.plus(UNENCRYPTED_PAUSE);
            Transition {
                attempts: attempts.saturating_sub(1),
                pause: Some(ChannelPause::Unsafe(until)),
                ..step(State::Ready, until)
            }
        }
        Err(SendError::Unknown { .. }) => {
            step(State::Unknown, resolve_after(now, attempts, channel, settings))
        }
    }
}

/// When to check a message whose attempt ended at `ended_at` without an answer: the server may still be processing it.
///
/// The delay between attempts applies here, because a check that finds nothing is followed by the next attempt at once:
/// a server that is down must not use up all attempts within minutes.
pub fn resolve_after(ended_at: Timestamp, attempts: u32, channel: &str, settings: &Settings) -> Timestamp {
    let between = if attempts >= 2 { back_off(attempts, channel) } else { Duration::ZERO };
    ended_at.plus(between.max(settings.timeout * 2))
}

/// The latest end of a lease written at `now`, with a margin for clocks and configs that differ. A later end was
/// written while the clock was ahead, and waiting for it could take years.
pub fn latest_lease(settings: &Settings, now: Timestamp) -> Timestamp {
    now.plus(settings.lease()).plus(HOUR)
}

/// The latest end of a wait that begins at `now`, with the same margin.
pub fn latest_wait(settings: &Settings, now: Timestamp) -> Timestamp {
    now.plus(MAX_PAUSE.max(settings.timeout * 2)).plus(HOUR)
}

/// What to do with a message whose outcome is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolved {
    /// Write this; send nothing.
    Transition(Transition),
    /// Send it again, with the same key.
    SendAgain {
        /// Whether it may have arrived already: done only once for a message.
        is_blind: bool,
    },
}

/// What to do after a resolver's finding.
///
/// `key_window` is how long the server deduplicates by our key: within it, sending again is safe in any case, provided
/// that the time of the first attempt is known.
pub fn after_resolving(
    message: &Unresolved<'_>,
    finding: &Finding,
    key_window: Option<Duration>,
    settings: &Settings,
    now: Timestamp,
) -> Resolved {
    let end = |state, remote_id, error| {
        Resolved::Transition(Transition {
            state,
            not_before: now,
            attempts: message.attempts,
            resolve_attempts: 0,
            remote_id,
            error,
            pause: None,
        })
    };
    let hold = |why: &Phrase| end(State::Held, None, Some(may_have_been_sent(why)));
    // A message that kills its sender every time must end somewhere, and its outcome is unknown.
    let again = |is_blind, why: &Phrase| {
        if message.attempts >= settings.max_attempts {
            hold(&phrase!(
                "{count attempt} ended without an answer; {why}",
                "{count} 回送信しても応答がありませんでした。{why}",
                count = message.attempts
            ))
        } else {
            Resolved::SendAgain { is_blind }
        }
    };
    match finding {
        Finding::Accepted(sent) => end(State::Sent, sent.remote_id.clone(), None),
        Finding::NotSent => again(false, &finding.phrase()),
        Finding::CannotTell { why } => {
            let Attempted { since, is_certain } = message.attempted;
            // If the attempt is in the future, the clock was ahead and the real time is unknown.
            let covered =
                key_window.is_some_and(|window| is_certain && since <= now && now.since(since) < window);
            match (message.suspicion, settings.on_unknown) {
                _ if covered => again(false, why),
                (Some(Suspicion::Restored | Suspicion::Reopened), _) | (_, OnUnknown::Hold) => hold(why),
                _ if key_window.is_some() => hold(why),
                _ if message.was_resent => hold(&phrase!(
                    "it was sent again, and no answer came either time; {why}",
                    "再送しましたが、2 回とも応答がありませんでした。{why}"
                )),
                _ => again(true, why),
            }
        }
        Finding::Later(error) => {
            // A failed check says nothing about the outcome. It is retried with the same back-off and limit as a send.
            let resolve_attempts = message.resolve_attempts.saturating_add(1);
            let error = match error.clone() {
                SendError::Unknown { why } => SendError::later(why),
                error => error,
            };
            match after_send(resolve_attempts, message.channel, &Err(error), settings, now) {
                failed @ Transition { state: State::Failed, .. } => hold(&phrase!(
                    "looking failed {count time}: {why}",
                    "確認に {count} 回失敗しました：{why}",
                    count = resolve_attempts,
                    why = failed.error
                )),
                later => Resolved::Transition(Transition {
                    state: State::Unknown,
                    attempts: message.attempts,
                    resolve_attempts: later.attempts,
                    ..later
                }),
            }
        }
    }
}

fn may_have_been_sent(why: &Phrase) -> Phrase {
    phrase!("it may have been sent already: {why}", "送信済みの可能性があります：{why}")
}

/// A message whose outcome is unknown.
#[derive(Clone, Copy, Debug)]
pub struct Unresolved<'a> {
    pub channel: &'a str,
    /// How often it was sent.
    pub attempts: u32,
    /// How many checks in a row have failed.
    pub resolve_attempts: u32,
    /// Since when it may have arrived.
    pub attempted: Attempted,
    /// Whether it was resent blindly already.
    pub was_resent: bool,
    /// Why it is suspected, if it is.
    pub suspicion: Option<Suspicion>,
}

/// The wait after `attempts` failed attempts, varied by a fifth, so that not all users of a server come back at once.
///
/// Messages of a channel with the same number of failures wait equally long, so that they stay in order.
pub fn back_off(attempts: u32, channel: &str) -> Duration {
    let step =
        BACK_OFF[usize::try_from(attempts.saturating_sub(1)).unwrap_or(usize::MAX).min(BACK_OFF.len() - 1)];
    let dice = channel
        .bytes()
        .chain(attempts.to_le_bytes())
        .fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    step.mul_f64(0.8 + f64::from(dice % 1000) * 0.4 / 1000.0)
}

/// The recent activity of a channel, as far as its limits are concerned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// When it last sent a message.
    pub last_attempt_at: Option<Timestamp>,
    /// Messages that were or may have been sent on this calendar day of the channel.
    pub today: u32,
}

/// Whether a message may be sent now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    Now,
    NotBefore(Timestamp, WaitReason),
}

/// Why a message has to wait for its channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitReason {
    Quiet,
    /// The daily limit is reached.
    MaxPerDay,
    /// The last message was sent a moment ago.
    Pace,
}

/// Whether the channel's quiet hours, daily limit and pace allow a message at `now`.
pub fn admit(settings: &Settings, activity: Activity, now: Timestamp) -> Admission {
    if let Some(end) = end_of_quiet(settings, now) {
        return Admission::NotBefore(end, WaitReason::Quiet);
    }
    if settings.max_per_day.is_some_and(|limit| activity.today >= limit) {
        return Admission::NotBefore(next_day(&settings.zone, now), WaitReason::MaxPerDay);
    }
    // If the last attempt is in the future, the clock was set back: waiting for it could take years.
    if let Some(last) = activity.last_attempt_at.filter(|last| *last <= now)
        && now.since(last) < settings.pace
    {
        return Admission::NotBefore(last.plus(settings.pace), WaitReason::Pace);
    }
    Admission::Now
}

/// When the present quiet hours end; `None` outside of them.
fn end_of_quiet(settings: &Settings, now: Timestamp) -> Option<Timestamp> {
    let hours = settings.quiet_hours?;
    let local = settings.zone.to_datetime(now.to_jiff());
    if !hours.contains(local.time()) {
        return None;
    }
    let until = hours.until.time();
    let day = if local.time() < until { local.date() } else { local.date().saturating_add(1.day()) };
    let end = settings.zone.to_timestamp(day.to_datetime(until)).map_or(Timestamp::MAX, Timestamp::from);
    // When clocks are set back, the end can be in the past; check again in a minute.
    Some(end.max(now.plus(MINUTE)))
}

/// The first moment of the calendar day of `now` in `zone`.
pub fn day_start(zone: &TimeZone, now: Timestamp) -> Timestamp {
    let midnight = now.date_in(zone).to_datetime(jiff::civil::Time::midnight());
    zone.to_timestamp(midnight).map_or(now, Timestamp::from)
}

/// The first moment of the next calendar day in `zone`.
pub fn next_day(zone: &TimeZone, now: Timestamp) -> Timestamp {
    let tomorrow = now.date_in(zone).saturating_add(1.day()).to_datetime(jiff::civil::Time::midnight());
    zone.to_timestamp(tomorrow).map_or_else(|_| now.plus(HOUR * 24), Timestamp::from)
}

#[cfg(test)]
mod tests;
