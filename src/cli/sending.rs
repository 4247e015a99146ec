//! Sending beside the jobs: what one of them has queued does not wait for the slowest.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::{Exit, Output};
use crate::app::{self, App};
use crate::channel::outbox::{ChannelWait, SendReport, Sender, WaitCause, list_waits};
use crate::config;
use crate::db;
use crate::phrase;
use crate::time::Timestamp;

/// How far the jobs are.
#[derive(Default)]
pub(super) struct Jobs {
    /// Told whenever one ends.
    pub(super) ended: Notify,
    /// Cancelled when all have ended.
    pub(super) done: CancellationToken,
}

/// What several passes over the outbox did together.
#[derive(Debug, Default)]
pub(super) struct Sent {
    sent: u64,
    unknown: u64,
    pub(super) failed: u64,
    /// Messages that turned out to need a person.
    pub(super) held: u64,
    /// Channels that let nothing leave although messages wait for them.
    waits: Vec<ChannelWait>,
    /// When the run began: what has come to wait since is news.
    began_at: Option<Timestamp>,
    orphans: BTreeSet<String>,
    /// When the next of those that wait may leave.
    next_at: Option<Timestamp>,
}

impl From<SendReport> for Sent {
    fn from(pass: SendReport) -> Self {
        let mut sent = Self::default();
        sent.add(pass);
        sent
    }
}

impl Sent {
    pub(super) fn add(&mut self, pass: SendReport) {
        self.sent += pass.sent;
        self.unknown += pass.unknown;
        self.failed += pass.failed;
        self.held += pass.held;
        self.orphans.extend(pass.orphans);
        self.next_at = pass.next_at;
    }

    /// Adds why channels keep what they have, at the end of a run that began at `began_at`.
    pub(super) async fn with_waits(mut self, app: &App, began_at: Timestamp) -> db::Result<Self> {
        let (now, channels) = (app.env.clock.now(), Arc::clone(&app.env.channels));
        self.waits = app.env.db.read(move |tx| list_waits(tx, &channels, now)).await?;
        self.began_at = Some(began_at);
        Ok(self)
    }

    /// Says what was sent, and what keeps the rest.
    pub(super) fn tell(&self, out: &Output) {
        if self.sent > 0 {
            out.note(phrase!("sent {count message}", "{count} 件を送信しました", count = self.sent));
        }
        if self.unknown > 0 {
            out.warn(phrase!(
                "{count message} may or may not have been sent: the next run checks it",
                "{count} 件は送信済みか不明です。次回の実行で確認します",
                count = self.unknown
            ));
        }
        if let Some(at) = self.next_at.filter(|at| self.waits.iter().all(|wait| wait.until != Some(*at))) {
            out.note(phrase!(
                "messages wait; the next leaves at {at}, or later",
                "送信待ちのメッセージがあります。次の送信は {at} 以降です",
                at
            ));
        }
        for wait in &self.waits {
            let said = wait.sentence();
            let sentence = match wait.until {
                None => phrase!(
                    "{said} (see `tsuzuki doctor`)",
                    "{said}（`tsuzuki doctor` で確認できます）",
                    said
                ),
                Some(_) => said,
            };
            // Also with `-q`: a lock every time, because the exit code is not 0; all others once.
            match wait.cause == WaitCause::Locked || self.began_at.is_some_and(|then| wait.is_new_since(then))
            {
                true => out.warn(sentence),
                false => out.note(sentence),
            }
        }
        for channel in &self.orphans {
            out.warn(phrase!(
                "messages wait for channel `{channel}`, which the config does not name",
                "設定にないチャンネル `{channel}` 宛のメッセージが残っています",
                channel
            ));
        }
    }

    /// The exit code of a command whose jobs ended with `exit`.
    pub(super) fn judge(&self, exit: Exit) -> Exit {
        match exit {
            Exit::Fine if self.waits.iter().any(|wait| wait.cause == WaitCause::Locked) => Exit::Credentials,
            Exit::Fine if self.failed > 0 => Exit::Partly,
            exit => exit,
        }
    }
}

/// What to say of jobs that notify nobody: how to see what they bring.
pub(super) fn list_without_channel<'a>(
    jobs: impl IntoIterator<Item = &'a config::Job>,
) -> impl Iterator<Item = String> {
    jobs.into_iter().filter_map(app::warn_without_channel).map(|warning| {
        let hint = warning.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
        format!("{}{hint}", warning.message)
    })
}

/// Says it, unless the user wants quiet.
pub(super) fn warn_without_channel<'a>(jobs: impl IntoIterator<Item = &'a config::Job>, out: &Output) {
    list_without_channel(jobs).filter(|_| !out.is_quiet()).for_each(|sentence| out.warn(sentence));
}

/// Sends what is due: at once, whenever a job ends, and when all have ended.
pub(super) async fn send_beside(jobs: &Jobs, sender: &Sender, stop: &CancellationToken) -> db::Result<Sent> {
    let mut sent = Sent::default();
    while !stop.is_cancelled() {
        let is_last = jobs.done.is_cancelled();
        match sender.send_due(stop).await {
            Ok(pass) => sent.add(pass),
            Err(error) if is_last => return Err(error),
            Err(error) => warn!("The outbox cannot be worked on now: {error}"),
        }
        if is_last {
            break;
        }
        tokio::select! {
            () = jobs.ended.notified() => {}
            () = jobs.done.cancelled() => {}
        }
    }
    Ok(sent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_change_the_exit_code_only_of_jobs_that_went_well() {
        let well = Sent { sent: 3, unknown: 1, ..Sent::default() };
        let failed = Sent { sent: 3, failed: 1, ..Sent::default() };
        let wait = |cause| ChannelWait {
            channel: "hook".to_owned(),
            cause,
            until: None,
            since: None,
            why: "401".into(),
            messages: 1,
        };
        let locked = Sent { failed: 1, waits: vec![wait(WaitCause::Locked)], ..Sent::default() };
        let full = Sent { waits: vec![wait(WaitCause::MaxPerDay)], ..Sent::default() };
        for (sent, jobs, together) in [
            (&well, Exit::Fine, Exit::Fine),
            (&failed, Exit::Fine, Exit::Partly),
            (&locked, Exit::Fine, Exit::Credentials),
            (&full, Exit::Fine, Exit::Fine),
            (&locked, Exit::Failed, Exit::Failed),
            (&failed, Exit::Interrupted, Exit::Interrupted),
        ] {
            assert_eq!(sent.judge(jobs), together, "{sent:?} {jobs:?}");
        }
    }
}
