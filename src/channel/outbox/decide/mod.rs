//! What happens to a message next: pure decisions over what was seen.

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
/// The longest pause that the other side can impose on a channel.
const MAX_PAUSE: Duration = Duration::from_secs(24 * 3600);
/// How long a channel is paused when its connection cannot be encrypted.
const UNENCRYPTED_PAUSE: Duration = Duration::from_secs(900);

/// What to do with a message that may have been sent, when the channel cannot find out.
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

/// Whether so many new things at once look like a source that rewrote itself, not like news.
pub fn should_hold(new_count: usize, hold_above: usize, past_first_run: bool) -> bool {
    past_first_run && new_count > hold_above
}

/// Fewer new things than this are no flood, whatever share of their source they are.
const SHARE_ABOVE: usize = 10;

/// Whether so much of a source is new at once that it is likelier to have rewritten itself than to have that much to tell.
pub fn is_most_of(new_count: usize, whole: usize, past_first_run: bool) -> bool {
    past_first_run && new_count > SHARE_ABOVE && new_count > whole / 2
}

/// What is written about a message after something happened to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// Where it stands now.
    pub state: State,
    /// When it may be touched again.
    pub not_before: Timestamp,
    pub attempts: u32,
    /// How many checks in a row have failed, while nobody knows whether it was sent.
    pub resolve_attempts: u32,
    /// What the other side calls it.
    pub remote_id: Option<String>,
    pub error: Option<Phrase>,
    pub pause: Option<ChannelPause>,
}

/// A pause of the whole channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelPause {
    /// Until a moment, because the other side asked for it.
    Until(Timestamp),
    /// Until a moment, because the line could not be encrypted.
    Unsafe(Timestamp),
    /// Until the credentials change or somebody says so.
    Locked,
}

/// After a send of a message ended, or failed to.
///
/// What was sent again blindly may have arrived the first time, so it does not count as certainly not sent.
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

/// After a send ended, or failed to: `attempts` counts this one.
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

/// When a message may be looked into whose attempt ended at `ended_at` without an answer: the other side may still be at it.
///
/// A look that finds nothing is followed by the next attempt at once, so the wait between attempts is here: an instance that
/// cannot post at this moment must not use up all attempts within minutes.
pub fn resolve_after(ended_at: Timestamp, attempts: u32, channel: &str, settings: &Settings) -> Timestamp {
    let between = if attempts >= 2 { back_off(attempts, channel) } else { Duration::ZERO };
    ended_at.plus(between.max(settings.timeout * 2))
}

/// No lease that is written at `now` ends later, give or take what clocks differ and other configs say: one that does
/// was written while the clock was ahead, and waiting for its end could take years.
pub fn latest_lease(settings: &Settings, now: Timestamp) -> Timestamp {
    now.plus(settings.lease()).plus(HOUR)
}

/// No wait that begins at `now` ends later, give or take the same.
pub fn latest_wait(settings: &Settings, now: Timestamp) -> Timestamp {
    now.plus(MAX_PAUSE.max(settings.timeout * 2)).plus(HOUR)
}

/// What is done about a message whose outcome is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolved {
    /// Write this; nothing is sent.
    Transition(Transition),
    /// Send it again, with the same key.
    SendAgain {
        /// Nobody knows whether it is there already: this is done once for a message.
        is_blind: bool,
    },
}

/// What the resolver's finding means.
///
/// `key_window` is how long the other side honours our key: within it, sending again is safe even when nobody
/// can tell, provided that we know when it was tried first.
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
    // A message that kills its sender every time must end somewhere, and nobody knows whether it was sent.
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
            // An attempt in the future means that the clock was ahead: how long ago it really was, nobody knows.
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
            // Looking is not sending: whatever goes wrong, it is still not known. But looks are put off and given up
            // as attempts are.
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

/// What is known of a message whose outcome is not.
#[derive(Clone, Copy, Debug)]
pub struct Unresolved<'a> {
    pub channel: &'a str,
    /// How often it was tried.
    pub attempts: u32,
    /// How many looks in a row have failed.
    pub resolve_attempts: u32,
    /// Since when it can be there.
    pub attempted: Attempted,
    /// Whether it was sent again already although nobody knew whether it was there.
    pub was_resent: bool,
    /// Why it is suspected, if it is.
    pub suspicion: Option<Suspicion>,
}

/// The wait after `attempts` failed attempts, a fifth more or less, so that not everybody who uses a server comes back at once.
///
/// The messages of a channel that failed as often wait for as long: those that failed together leave together, in their order.
pub fn back_off(attempts: u32, channel: &str) -> Duration {
    let step =
        BACK_OFF[usize::try_from(attempts.saturating_sub(1)).unwrap_or(usize::MAX).min(BACK_OFF.len() - 1)];
    let dice = channel
        .bytes()
        .chain(attempts.to_le_bytes())
        .fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    step.mul_f64(0.8 + f64::from(dice % 1000) * 0.4 / 1000.0)
}

/// What a channel has done lately, as far as its limits are concerned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// When a message last left.
    pub last_attempt_at: Option<Timestamp>,
    /// Messages that left, or may have left, on this calendar day of the channel.
    pub today: u32,
}

/// Whether a message may leave now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Yes.
    Now,
    /// Not before this moment.
    NotBefore(Timestamp, WaitReason),
}

/// Why a message has to wait for its channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// These are quiet hours.
    Quiet,
    /// The day has had its messages.
    MaxPerDay,
    /// The last message has just left.
    Pace,
}

/// Whether the channel's quiet hours, daily limit and pace let a message leave at `now`.
pub fn admit(settings: &Settings, activity: Activity, now: Timestamp) -> Admission {
    if let Some(end) = end_of_quiet(settings, now) {
        return Admission::NotBefore(end, WaitReason::Quiet);
    }
    if settings.max_per_day.is_some_and(|limit| activity.today >= limit) {
        return Admission::NotBefore(next_day(&settings.zone, now), WaitReason::MaxPerDay);
    }
    // A last attempt in the future means that the clock was set back: waiting for it could take years.
    if let Some(last) = activity.last_attempt_at.filter(|last| *last <= now)
        && now.since(last) < settings.pace
    {
        return Admission::NotBefore(last.plus(settings.pace), WaitReason::Pace);
    }
    Admission::Now
}

/// When the quiet hours that hold at `now` end; `None` outside of them.
fn end_of_quiet(settings: &Settings, now: Timestamp) -> Option<Timestamp> {
    let hours = settings.quiet_hours?;
    let local = settings.zone.to_datetime(now.to_jiff());
    if !hours.contains(local.time()) {
        return None;
    }
    let until = hours.until.time();
    let day = if local.time() < until { local.date() } else { local.date().saturating_add(1.day()) };
    let end = settings.zone.to_timestamp(day.to_datetime(until)).map_or(Timestamp::MAX, Timestamp::from);
    // When clocks are set back the end can fall behind us; a minute later all is clear.
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
