//! The steps of a run: picks the next item, processes it and writes the transition.

use std::future::Future;
use std::time::Duration;

use serde_json::{Value as Json, json};

use super::collect::asked_wait;
use super::decide::{self, Event, Transition};
use super::model::{Item, Reason, Status};
use super::report::ReportBuilder;
use super::{Only, Press, screen, store, summarize};
use crate::engine::{Failure, RunContext, Update};
use crate::fetch;
use crate::llm::{AskError, PauseReason, Purpose, Unavailable};
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;

/// How many unchanged pages a run may check in addition to its steps.
const FREE_VISITS: u32 = 20;

/// The result of a step.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// A page, a file or an answer could not be fetched; the item is retried. The line for the report.
    Failed(Phrase),
    /// The page that the item waits for is unchanged.
    Unchanged,
    /// An item has changed its status. The line for the report.
    Moved(Phrase),
    /// Some channels could not render the message.
    NotRendered {
        line: Phrase,
        /// Which channels, and why.
        problems: Vec<Phrase>,
        /// Whether other channels have a message.
        is_queued: bool,
    },
    /// The provider is paused; no item was changed.
    Waiting {
        until: Timestamp,
        why: Phrase,
    },
    Nothing,
}

impl Press {
    pub(super) async fn take_steps(
        &self,
        ctx: &RunContext,
        only: Option<Only>,
        report: &mut ReportBuilder,
    ) -> Result<(), Failure> {
        let (mut steps, mut unchanged) = (0, 0);
        while steps < self.keys.items_per_run {
            ctx.check_stop()?;
            steps += 1;
            match self.step(ctx, only).await? {
                Step::Moved(line) => report.step_well(line),
                Step::Failed(line) => report.failed_steps.push(line),
                Step::Unchanged => {
                    unchanged += 1;
                    // It cost only one page, and waiting items must not delay new ones.
                    if unchanged <= FREE_VISITS {
                        steps -= 1;
                    }
                }
                Step::NotRendered { line, problems, is_queued } => {
                    report.lines.push(line);
                    report.problems.extend(problems);
                    report.any_step_well |= is_queued;
                }
                Step::Waiting { until, why } => {
                    report.lines.push(phrase!("waiting until {until}: {why}", "{until} まで待機：{why}"));
                    report.waiting_until = Some(until);
                    break;
                }
                Step::Nothing => break,
            }
        }
        if unchanged > 0 {
            report.well(phrase!("{unchanged page} unchanged", "変化のないページ {unchanged} 件"));
        }
        Ok(())
    }

    /// Takes one step: one summary if an item is pending, else one screening.
    async fn step(&self, ctx: &RunContext, only: Option<Only>) -> Result<Step, Failure> {
        let mut only = only;
        let mut waiting = None;
        loop {
            let (name, now) = (self.name.clone(), ctx.now());
            let picked = ctx
                .db
                .read(move |tx| {
                    if only != Some(Only::Screen)
                        && let Some(item) = store::find_pending(tx, &name, now)?
                    {
                        return Ok(Some(item));
                    }
                    if only == Some(Only::Post) { Ok(None) } else { store::find_to_screen(tx, &name, now) }
                })
                .await?;
            let Some(item) = picked else { return Ok(waiting.unwrap_or(Step::Nothing)) };
            if decide::retries_exhausted(&item, &self.limits()) {
                let detail = json!({ "last": item.reason.map(Reason::word) });
                self.finish(ctx, &item, Event::LimitReached, detail, None).await?;
                continue;
            }
            ctx.progress.report(&ctx.job, Update::Now(item.title.clone()));
            let purpose = if item.status == Status::Pending { Purpose::Summary } else { Purpose::Screen };
            // Fetch nothing while the provider is paused.
            if self.needs_model(&item)
                && let Some(obstacle) = self.llm()?.find_obstacle(&self.name, purpose, &[]).await?
            {
                let may_screen = purpose == Purpose::Summary && only.is_none();
                let step = summarize::without_model(self, ctx, &item, obstacle).await?;
                if !may_screen || !matches!(step, Step::Waiting { .. }) {
                    return Ok(waiting.unwrap_or(step));
                }
                // The screening model may have a separate limit.
                (only, waiting) = (Some(Only::Screen), Some(step));
                continue;
            }
            return match purpose {
                Purpose::Summary => until_stopped(ctx, summarize::one(self, ctx, item)).await,
                Purpose::Screen => until_stopped(ctx, screen::one(self, ctx, item)).await,
            };
        }
    }

    /// Whether the next step of an item calls a model.
    fn needs_model(&self, item: &Item) -> bool {
        self.llm.is_some() && !(item.is_short && item.status == Status::Pending)
    }

    /// Applies `event` to `item` and records it.
    pub(super) async fn finish(
        &self,
        ctx: &RunContext,
        item: &Item,
        event: Event,
        detail: Json,
        seen: Option<SeenPage>,
    ) -> Result<Step, Failure> {
        match decide::after(item, event, Some(&self.limits()), ctx.now()) {
            Some(to) => self.write_step(ctx, item, (event, to), detail, seen).await,
            None => Ok(Step::Nothing),
        }
    }

    /// Defers an item whose page or file cannot be fetched, at least for as long as its server asks.
    pub(super) async fn put_off(
        &self,
        ctx: &RunContext,
        item: &Item,
        failed: DownloadFailure,
        seen: Option<SeenPage>,
    ) -> Result<Step, Failure> {
        let is_out_of_reach = failed.is_held_back || failed.may_pass && self.is_out_of_reach(item);
        let event = if is_out_of_reach { Event::OutOfReach } else { Event::DownloadFailed };
        let detail = json!({ "why": failed.why.to_stored(), "code": failed.code });
        match decide::after(item, event, Some(&self.limits()), ctx.now()) {
            Some(to) => self.write_step(ctx, item, (event, to.not_within(failed.wait)), detail, seen).await,
            None => Ok(Step::Nothing),
        }
    }

    async fn write_step(
        &self,
        ctx: &RunContext,
        item: &Item,
        (event, to): (Event, Transition),
        detail: Json,
        seen: Option<SeenPage>,
    ) -> Result<Step, Failure> {
        let line = phrase!(
            "{event}: {title}",
            "{event}：{title}",
            event = event.code().phrase(),
            title = &item.title
        );
        let line = match (event, phrase::stored::deserialize(&detail["why"])) {
            (Event::DownloadFailed | Event::OutOfReach | Event::ModelFailed, Ok(why)) => {
                phrase!("{line} ({why})", "{line}：{why}")
            }
            _ => line,
        };
        // This failure exceeded the limit; other ends have a line of their own.
        let line = if to.reason == Some(Reason::RetryLimitExceeded) && to.retry_count > item.retry_count {
            let count = to.retry_count;
            phrase!("{line}; given up after {count failed attempt}", "{line}。{count} 回失敗したため終了")
        } else {
            line
        };
        let item = item.clone();
        let took = ctx
            .write(move |tx| {
                let took = match event {
                    Event::Unchanged => store::put(tx, &item, &to)?,
                    // Recorded once, not every 15 minutes.
                    Event::OutOfReach if item.not_before.is_some() => store::put(tx, &item, &to)?,
                    _ => store::apply(tx, &item, &to, event.code(), &detail)?,
                };
                if took && let Some(seen) = &seen {
                    store::put_verdict(tx, item.id, &seen.page_hash, seen.verdict.as_deref())?;
                }
                // For a valuable item the model is called once more, for the summary.
                if took && matches!(event, Event::NotWorth | Event::NotReady) {
                    store::mark_answered(tx, item.id)?;
                }
                if took && event == Event::NotWorth && to.status == Status::Pending {
                    store::mark_short(tx, item.id)?;
                }
                Ok(took)
            })
            .await?;
        Ok(match event {
            _ if !took => Step::Moved(overtaken()),
            Event::DownloadFailed | Event::OutOfReach | Event::ModelFailed => Step::Failed(line),
            Event::Unchanged => Step::Unchanged,
            _ => Step::Moved(line),
        })
    }
}

/// Why a page or a file of an item could not be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DownloadFailure {
    pub(super) why: Phrase,
    code: Option<&'static str>,
    /// The wait that its server asks for.
    wait: Option<Duration>,
    /// Whether it is temporary.
    may_pass: bool,
    /// Whether nothing was requested, because the host is paused.
    is_held_back: bool,
}

impl DownloadFailure {
    /// A failure of the kind of `error`, with another text.
    pub(super) fn described_as(why: Phrase, error: &fetch::Error) -> Self {
        Self {
            why,
            code: Some(error.why_code()),
            wait: asked_wait(error),
            may_pass: error.is_retryable(),
            is_held_back: error.is_held_back(),
        }
    }

    /// A failure because the content is not what was requested.
    pub(super) fn of_content(why: Phrase) -> Self {
        Self { why, code: None, wait: None, may_pass: false, is_held_back: false }
    }
}

impl From<fetch::Error> for DownloadFailure {
    fn from(error: fetch::Error) -> Self {
        Self::described_as(error.phrase(), &error)
    }
}

/// The page hash and verdict to store with a transition.
#[derive(Clone, Debug)]
pub(super) struct SeenPage {
    pub(super) page_hash: String,
    pub(super) verdict: Option<String>,
}

/// Maps a failed call of the model: the step waits, the run fails, or the item failed (with the reason).
pub(super) fn no_answer(press: &Press, error: AskError) -> Result<Result<Step, Phrase>, Failure> {
    match error {
        AskError::Paused(Unavailable { why, because: PauseReason::Locked, .. }) => Err(press.locked(&why)),
        AskError::Paused(Unavailable { why, because: PauseReason::Refused, .. }) => Err(press.refused(&why)),
        AskError::Paused(Unavailable { until, why, .. }) => Ok(Ok(Step::Waiting { until, why })),
        AskError::Rejected { why } | AskError::TooMuch { why } => Ok(Err(why)),
        AskError::Db(error) => Err(error.into()),
    }
}

/// The line when another process has changed the item first.
pub(super) fn overtaken() -> Phrase {
    phrase!("another process has changed the item meanwhile", "その間に別の処理が記事を更新しました")
}

/// Runs `work` until it is done or the run is asked to stop; unwritten results are discarded.
pub(super) async fn until_stopped<T>(
    ctx: &RunContext,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::select! {
        biased;
        () = ctx.stop.cancelled() => Err(Failure::Interrupted),
        done = work => done,
    }
}
