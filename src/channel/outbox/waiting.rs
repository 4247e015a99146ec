//! Why the messages of a channel wait, and until when: its lock, its pause, its quiet hours, its daily limit, or attempts
//! that failed.

use std::collections::BTreeMap;

use super::decide::{self, Admission, WaitReason};
use super::listing;
use super::memory;
use super::model::{Row, State};
use crate::channel::{Channel, ChannelSet};
use crate::db::{self, Tx};
use crate::ledger::{Subject, pause};
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;

/// Why a channel cannot send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitCause {
    /// Its credentials are missing or were rejected.
    Locked,
    /// The server asked for it, or the connection is not secure.
    Paused,
    Quiet,
    /// The daily limit is reached.
    MaxPerDay,
    /// The config does not name it.
    Missing,
}

/// A channel that cannot send, and how many messages wait for it.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct ChannelWait {
    pub channel: String,
    pub cause: WaitCause,
    /// `None`: until its credentials change.
    pub until: Option<Timestamp>,
    /// `None` for daily waits from the config.
    pub since: Option<Timestamp>,
    /// The cause in words.
    pub why: Phrase,
    pub messages: i64,
}

impl ChannelWait {
    /// That it is paused, until when and why.
    pub fn phrase(&self) -> Phrase {
        let Self { why, messages, .. } = self;
        match self.until {
            None if self.cause == WaitCause::Missing => {
                phrase!("{why}; {messages message} waiting", "{why}（送信待ち {messages} 件）")
            }
            None => phrase!("paused: {why}", "一時停止中：{why}"),
            Some(until) => phrase!(
                "paused until {until}: {why}; {messages message} waiting",
                "{until} まで一時停止中：{why}（送信待ち {messages} 件）"
            ),
        }
    }

    /// The same with the name of the channel.
    pub fn sentence(&self) -> Phrase {
        let (channel, status) = (self.channel.as_str(), self.phrase());
        if self.cause == WaitCause::Missing {
            return phrase!("channel {channel}: {status}", "チャンネル {channel}：{status}");
        }
        phrase!("channel {channel} is {status}", "チャンネル {channel}：{status}")
    }

    /// Whether it began at or after `then`. Quiet hours are not reported.
    pub fn is_new_since(&self, then: Timestamp) -> bool {
        self.since.is_some_and(|since| since >= then)
    }
}

/// So many failed attempts are no accident.
const ATTEMPTS: u32 = 3;

/// A channel that takes messages but could not send some of them, and tries again.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct ChannelRetry {
    pub channel: String,
    pub messages: i64,
    /// How often the one that is tried next was tried.
    pub attempts: u32,
    pub next_at: Timestamp,
    /// What went wrong with it.
    pub why: Phrase,
}

impl ChannelRetry {
    /// What could not be sent, why, and when it is tried again.
    pub fn phrase(&self) -> Phrase {
        let Self { messages, next_at, why, .. } = self;
        phrase!(
            "{messages message} not sent yet: {why}; next attempt {next_at}",
            "まだ送信できていないメッセージ {messages} 件：{why}（次の送信：{next_at}）"
        )
    }

    /// Whether somebody should look at it.
    pub fn is_failing(&self) -> bool {
        self.attempts >= ATTEMPTS
    }
}

/// The status of a channel.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct ChannelStatus {
    pub channel: String,
    pub kind: &'static str,
    /// Why it cannot send, if so.
    pub wait: Option<ChannelWait>,
    /// What it could not send yet, while nothing keeps it.
    pub retry: Option<ChannelRetry>,
    /// Messages to be sent.
    pub messages: i64,
    pub last_sent_at: Option<Timestamp>,
}

/// The status of every channel, in the order of the file.
pub fn list_statuses(
    tx: &mut Tx<'_>,
    channels: &ChannelSet,
    now: Timestamp,
) -> db::Result<Vec<ChannelStatus>> {
    let waiting = count_waiting(tx)?;
    let mut statuses = Vec::new();
    for channel in channels.iter() {
        let messages = waiting.get(&channel.name).copied().unwrap_or(0);
        let wait = find_wait_of(tx, channel, messages, now)?;
        let retry = if wait.is_none() { listing::find_retry(tx, &channel.name)? } else { None };
        statuses.push(ChannelStatus {
            channel: channel.name.clone(),
            kind: channel.kind(),
            wait,
            retry,
            messages,
            last_sent_at: listing::find_last_sent(tx, &channel.name)?,
        });
    }
    Ok(statuses)
}

/// The number of messages to be sent, for each channel that has any.
fn count_waiting(tx: &mut Tx<'_>) -> db::Result<BTreeMap<String, i64>> {
    let mut waiting: BTreeMap<String, i64> = BTreeMap::new();
    for tally in listing::tally(tx)? {
        if matches!(tally.state, State::Ready | State::Sending | State::Unknown) {
            *waiting.entry(tally.channel).or_default() += tally.count;
        }
    }
    Ok(waiting)
}

/// The channels that let nothing leave at `now` although messages wait for them, those that are no longer in the config last.
pub fn list_waits(tx: &mut Tx<'_>, channels: &ChannelSet, now: Timestamp) -> db::Result<Vec<ChannelWait>> {
    let waiting = count_waiting(tx)?;
    let mut waits = Vec::new();
    for channel in channels.iter() {
        if let Some(messages) = waiting.get(&channel.name) {
            waits.extend(find_wait_of(tx, channel, *messages, now)?);
        }
    }
    let names = channels.names();
    waits.extend(waiting.into_iter().filter(|(channel, _)| !names.contains(channel)).map(
        |(channel, messages)| {
            let why = phrase!("the config does not name it", "設定にありません");
            ChannelWait { channel, cause: WaitCause::Missing, until: None, since: None, why, messages }
        },
    ));
    Ok(waits)
}

/// The channels that nothing keeps and that could not send some of their messages yet.
pub fn list_retries(
    tx: &mut Tx<'_>,
    channels: &ChannelSet,
    waits: &[ChannelWait],
) -> db::Result<Vec<ChannelRetry>> {
    let mut retries = Vec::new();
    for channel in channels.iter().filter(|channel| waits.iter().all(|wait| wait.channel != channel.name)) {
        retries.extend(listing::find_retry(tx, &channel.name)?);
    }
    Ok(retries)
}

/// Why the channel of a waiting message cannot send, if so.
pub fn find_wait<'a>(row: &Row, waits: &'a [ChannelWait]) -> Option<&'a ChannelWait> {
    let is_to_leave = matches!(row.state, State::Ready | State::Unknown);
    waits.iter().find(|wait| is_to_leave && wait.channel == row.channel)
}

/// When a message may be sent; `None` if it needs a person.
pub fn next_at(row: &Row, wait: Option<&ChannelWait>) -> Option<Timestamp> {
    let waits = matches!(row.state, State::Ready | State::Unknown);
    let until = wait.map_or(Some(row.not_before), |wait| wait.until);
    until.filter(|_| waits).map(|until| until.max(row.not_before))
}

/// As a sender would decide it, without claiming anything.
fn find_wait_of(
    tx: &mut Tx<'_>,
    channel: &Channel,
    messages: i64,
    now: Timestamp,
) -> db::Result<Option<ChannelWait>> {
    let (name, settings) = (&channel.name, &channel.settings);
    let wait =
        |cause, until, since, why| ChannelWait { channel: name.clone(), cause, until, since, why, messages };
    let memory = memory::find_memory(tx, name)?;
    let pause = pause::find(tx, &Subject::channel(name), now)?;
    let is_over = memory.locked_with.as_ref().is_some_and(|with| *with != channel.credentials_fingerprint());
    if let Some(pause) = pause.filter(|pause| !is_over && !memory::is_mistimed(pause, settings, now)) {
        let cause = if pause.paused_until.is_none() { WaitCause::Locked } else { WaitCause::Paused };
        return Ok(Some(wait(cause, pause.paused_until, Some(pause.paused_at), pause.reason)));
    }
    let activity = memory::activity(tx, name, &memory, settings)?;
    let Admission::NotBefore(until, reason) = decide::admit(settings, activity, now) else {
        return Ok(None);
    };
    Ok(match reason {
        WaitReason::Quiet => {
            Some(wait(WaitCause::Quiet, Some(until), None, phrase!("quiet hours", "送信しない時間帯")))
        }
        WaitReason::MaxPerDay => {
            let count = activity.today;
            let why = phrase!(
                "{count message} sent today (`max_per_day`)",
                "本日の上限（`max_per_day`）の {count} 件を送信済み"
            );
            Some(wait(WaitCause::MaxPerDay, Some(until), activity.last_attempt_at, why))
        }
        WaitReason::Pace => None,
    })
}
