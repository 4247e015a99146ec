//! The report and exit code of what a pass sent.

use std::collections::BTreeMap;

use super::{Exit, Output};
use tsuzuki::app::{self, PassReport, Sent};
use tsuzuki::channel::outbox::WaitCause;
use tsuzuki::config;
use tsuzuki::engine::Finished;
use tsuzuki::phrase;
use tsuzuki::phrase::Phrase;

/// Prints what was sent, and why the rest waits.
pub(super) fn report(sent: &Sent, out: &Output) {
    if sent.sent > 0 {
        out.note(phrase!("sent {count message}", "{count} 件を送信しました", count = sent.sent));
    }
    if sent.unknown > 0 {
        out.warn(phrase!(
            "{count message} may or may not have been sent: the next run checks it",
            "{count} 件は送信済みか不明です。次回の実行で確認します",
            count = sent.unknown
        ));
    }
    if let Some(at) = sent.next_at.filter(|at| sent.waits.iter().all(|wait| wait.until != Some(*at))) {
        out.note(phrase!(
            "messages wait; the next leaves at {at}, or later",
            "送信待ちのメッセージがあります。次の送信は {at} 以降です"
        ));
    }
    for wait in &sent.waits {
        let said = wait.sentence();
        let sentence = match wait.until {
            None => {
                phrase!("{said} (see `tsuzuki doctor`)", "{said}（`tsuzuki doctor` で確認できます）")
            }
            Some(_) => said,
        };
        // Also with `-q`: a lock every time, because the exit code is not 0; other causes once.
        let is_new = sent.began_at.is_some_and(|then| wait.is_new_since(then));
        if wait.cause == WaitCause::Locked || is_new { out.warn(sentence) } else { out.note(sentence) }
    }
    for channel in &sent.orphans {
        out.warn(phrase!(
            "messages wait for channel `{channel}`, which the config does not name",
            "設定にないチャンネル `{channel}` 宛のメッセージが残っています"
        ));
    }
}

/// The exit code of a command whose jobs ended with `exit`.
pub(super) fn exit_code(sent: &Sent, exit: Exit) -> Exit {
    match exit {
        Exit::Fine if sent.is_locked() => Exit::Credentials,
        Exit::Fine if sent.failed > 0 => Exit::Partly,
        exit => exit,
    }
}

/// The messages about jobs without a channel: how to see their results.
pub(super) fn list_without_channel<'a>(
    jobs: impl IntoIterator<Item = &'a config::Job>,
) -> impl Iterator<Item = Phrase> {
    jobs.into_iter()
        .filter_map(app::warn_without_channel)
        .map(|warning| super::doctor::with_hint(&warning.message, warning.hint.as_ref()))
}

/// Prints them, unless `-q` is set.
pub(super) fn warn_without_channel<'a>(jobs: impl IntoIterator<Item = &'a config::Job>, out: &Output) {
    list_without_channel(jobs).filter(|_| !out.is_quiet()).for_each(|sentence| out.warn(sentence));
}

/// Warns of missing secrets that jobs will need later, each once; jobs have reported their own failures themselves.
pub(super) fn warn_of_missing(missing: &BTreeMap<String, Vec<Phrase>>, pass: &PassReport, out: &Output) {
    let mut said: Vec<&Phrase> = pass.sent.waits.iter().map(|wait| &wait.why).collect();
    for (job, finished) in &pass.finished {
        let Finished::Ran(report) = finished else { continue };
        for why in missing.get(job.as_str()).into_iter().flatten() {
            let names_it = |said: &Phrase| said.to_string().contains(&why.to_string());
            if said.contains(&why) || report.problems.iter().any(names_it) || names_it(&report.summary) {
                continue;
            }
            said.push(why);
            if !out.is_quiet() {
                out.warn(phrase!(
                    "job `{job}` needs setup: {why} (see `tsuzuki doctor`)",
                    "ジョブ `{job}` は設定不足です：{why}（`tsuzuki doctor` で確認できます）"
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tsuzuki::channel::outbox::ChannelWait;

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
            assert_eq!(exit_code(sent, jobs), together, "{sent:?} {jobs:?}");
        }
    }
}
