//! What needs a person, most urgent first.

use super::action::{Action, Verb};
use super::alert::{Alert, AlertKind};
use super::attention::Waiting;
use super::commands;
use super::overview::{JobOverview, QuotaUse};
use super::view::State;
use crate::channel::outbox::{ChannelRetry, ChannelWait, WaitCause};
use crate::ledger::Subject;
use crate::phrase;
use crate::phrase::Phrase;
use crate::text::shell_word;

/// Alerts of one kind about one kind of thing that are listed one by one.
const MAX_ALIKE: usize = 5;

/// Something that needs a person.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    /// Its urgency.
    pub state: State,
    pub about: Subject,
    pub text: Phrase,
    /// The command that shows more, without the name of the program.
    pub command: String,
    pub actions: Vec<Action>,
}

/// The first alerts of each kind and subject kind, and how many more the last of them represents: of a thousand blogs,
/// many are silent.
fn shorten<'a>(alerts: &[&'a Alert]) -> Vec<(&'a Alert, usize)> {
    let mut shown: Vec<(&Alert, usize)> = Vec::new();
    for alert in alerts {
        let is_like = |(other, _): &&mut (&Alert, usize)| {
            other.kind() == alert.kind() && other.subject().word() == alert.subject().word()
        };
        let mut like: Vec<_> = shown.iter_mut().filter(is_like).collect();
        match like.len() {
            MAX_ALIKE => like[MAX_ALIKE - 1].1 += 1,
            _ => shown.push((alert, 0)),
        }
    }
    shown
}

/// What needs a person, most urgent first.
pub(super) fn list_notices(
    jobs: &[JobOverview],
    (waits, retries): (&[ChannelWait], &[ChannelRetry]),
    alerts: &[Alert],
    quotas: &[QuotaUse],
) -> Vec<Notice> {
    let notice = |state, about, text, command: &str, actions| Notice {
        state,
        about,
        text,
        command: command.to_owned(),
        actions,
    };
    let failing = jobs.iter().filter(|job| job.standing.state == State::Failing).map(|job| {
        let how = job.standing.phrase();
        let text = match &job.message {
            Some(message) => phrase!("{how}: {message}", "{how}：{message}"),
            None => how,
        };
        let actions = vec![commands::run_action(&job.job)];
        notice(State::Failing, Subject::job(&job.job), text, &format!("why job:{}", job.job), actions)
    });
    let failed = jobs.iter().filter_map(|job| {
        let text = Waiting { held: 0, failed: job.messages_failed }.failed_phrase()?;
        let command = format!("delivery ls --state failed --job {}", job.job);
        let about = Subject::job(&job.job);
        let label = phrase!("send again what failed", "失敗した分を再送する");
        let retry = Action::new(Verb::Retry, &about, label, "delivery retry ID");
        Some(notice(State::Failing, about, text, &command, vec![retry]))
    });
    let channels = |is_locked: bool| {
        let waits = waits.iter().filter(move |wait| (wait.cause == WaitCause::Locked) == is_locked);
        waits.map(move |wait| {
            let listing = format!("delivery ls --channel {}", wait.channel);
            let is_missing = wait.cause == WaitCause::Missing;
            let state = if is_locked || is_missing { State::Setup } else { State::Waiting };
            let command = if is_locked { "doctor" } else { listing.as_str() };
            let (about, name) = (Subject::channel(&wait.channel), &wait.channel);
            let resume = Action::new(
                Verb::Resume,
                &about,
                phrase!("resume {name}", "{name} を再開する"),
                format!("delivery retry --channel {name}"),
            );
            let actions = if is_missing { Vec::new() } else { vec![resume] };
            notice(state, about, wait.phrase(), command, actions)
        })
    };
    let retried = |is_failing: bool| {
        retries.iter().filter(move |retry| retry.is_failing() == is_failing).map(move |retry| {
            let state = if is_failing { State::Failing } else { State::Waiting };
            let (about, command) =
                (Subject::channel(&retry.channel), format!("delivery ls --channel {}", retry.channel));
            notice(state, about, retry.phrase(), &command, Vec::new())
        })
    };
    // Failing jobs, held messages and paused channels have notices of their own already.
    let is_other = |alert: &&Alert| match alert.kind() {
        Some(AlertKind::Paused) => alert.subject().name_of("channel").is_none(),
        kind => kind == Some(AlertKind::Silent),
    };
    let others: Vec<&Alert> = alerts.iter().filter(is_other).collect();
    let sources = shorten(&others).into_iter().map(|(alert, more)| {
        let about = alert.subject();
        let (message, command) = (&alert.message, format!("why {}", shell_word(about.as_str())));
        let text = match more {
            0 => message.clone(),
            more => phrase!("{message} (and {more} more)", "{message}（ほか {more} 件）"),
        };
        notice(State::Paused, about, text, &command, Vec::new())
    });
    // A secret may be missing in many jobs; the notice of the channel that needs it is enough.
    let is_listed = |why: &Phrase| waits.iter().any(|wait| wait.why == *why);
    let mut missing: Vec<(&Phrase, &str)> = jobs
        .iter()
        .flat_map(|job| job.needs_setup.iter().map(|why| (why, job.job.as_str())))
        .filter(|(why, _)| !is_listed(why))
        .collect();
    missing.sort_by_cached_key(|(why, job)| (why.to_string(), *job));
    missing.dedup_by_key(|(why, _)| *why);
    let setup = missing.into_iter().map(|(why, job)| {
        let text = phrase!("needs setup: {why}", "設定不足：{why}");
        notice(State::Setup, Subject::job(job), text, "doctor", Vec::new())
    });
    let held = jobs.iter().filter_map(|job| {
        let text = Waiting { held: job.messages_held, failed: 0 }.held_phrase()?;
        let command = format!("delivery ls --state held --job {}", job.job);
        let actions = commands::held_actions(&job.job).into();
        Some(notice(State::Approval, Subject::job(&job.job), text, &command, actions))
    });
    let used_up = quotas.iter().filter(|quota| quota.used >= i64::from(quota.per_day)).map(|quota| {
        let text = phrase!(
            "{used} of {per_day} requests used today; resets {at}",
            "本日の要求 {used}/{per_day} 件（{at} にリセット）",
            used = quota.used,
            per_day = quota.per_day,
            at = quota.resets_at
        );
        notice(State::Quota, Subject::provider(&quota.provider), text, "quota ls", Vec::new())
    });
    let done =
        jobs.iter().filter(|job| job.standing.state == State::Done && job.standing.needs_you).map(|job| {
            notice(
                State::Done,
                Subject::job(&job.job),
                job.standing.phrase(),
                &format!("job cursor show {}", job.job),
                vec![commands::reset_action(&job.job)],
            )
        });
    let worst = failing.chain(failed).chain(retried(true)).chain(channels(true)).chain(setup).chain(sources);
    worst.chain(held).chain(channels(false)).chain(retried(false)).chain(used_up).chain(done).collect()
}
