//! Requests to Google Books: each is counted before it is sent, retried while the provider is down, and not made while
//! the provider is paused.

use std::time::Duration;

use tracing::info;

use super::collect::{CollectContext, Wrong};
use super::decide::{PageRequest, repeat_after};
use super::google::{Search, SearchError, VolumePage, needs_key};
use crate::db::{self, Tx};
use crate::engine::{Failure, RunContext};
use crate::fetch::Fetcher;
use crate::ledger::quota::{Grant, Quota};
use crate::ledger::{Subject, event, pause};
use crate::llm::events::ProviderCode;
use crate::phrase::Phrase;
use crate::time::Timestamp;

/// The longest pause of the provider: a day of the quota with 25 hours, and a tolerance for clocks.
const MAX_PAUSE: Duration = Duration::from_secs(25 * 60 * 60 + 10 * 60);

/// Whether a request may be made.
pub(super) enum Permit {
    /// Yes, and it is counted; `left` more are possible.
    Go { left: u32 },
    /// Not before this moment.
    Wait { until: Option<Timestamp> },
}

/// The result of requesting a page.
pub(super) enum PageAnswer {
    /// It may not be requested before this moment.
    NotNow { until: Option<Timestamp> },
    Answered {
        answer: Result<VolumePage, SearchError>,
        /// How many more requests may be made.
        left: u32,
    },
}

/// Requests a page, and retries with growing delays while the provider is down. Every request is counted before it is
/// sent.
pub(super) async fn fetch_page(
    plan: &CollectContext,
    search: &Search,
    fetcher: &Fetcher,
    ctx: &RunContext,
    request: PageRequest,
) -> Result<PageAnswer, Failure> {
    if search.lacks_key() {
        return Ok(PageAnswer::Answered { answer: Err(SearchError::Credentials(needs_key())), left: 0 });
    }
    let mut failures = 0;
    loop {
        let left = match request_permit(plan, ctx).await? {
            Permit::Go { left } => left,
            Permit::Wait { until } => return Ok(PageAnswer::NotNow { until }),
        };
        let answer = tokio::select! {
            () = ctx.stop.cancelled() => return Err(Failure::Interrupted),
            answer = search.fetch(fetcher, request, ctx.now()) => answer,
        };
        let Err(SearchError::Passing { why, retry_after }) = &answer else {
            return Ok(PageAnswer::Answered { answer, left });
        };
        failures += 1;
        let Some(wait) = repeat_after(failures, plan.retries, left, *retry_after) else {
            return Ok(PageAnswer::Answered { answer, left });
        };
        info!(job = %ctx.job, "Google Books: {why}; retrying in {} s", wait.as_secs());
        tokio::select! {
            () = ctx.stop.cancelled() => return Err(Failure::Interrupted),
            () = ctx.clock.wait_until(ctx.now().plus(wait)) => {}
        }
    }
}

/// Maps an error that ends the run, and pauses the provider if it asks for that.
pub(super) async fn give_up(ctx: &RunContext, quota: &Quota, trouble: SearchError) -> Result<Wrong, Failure> {
    if let SearchError::Passing { why, retry_after: Some(wait) } = &trouble {
        pause_provider(ctx, quota, ctx.now().plus(*wait), why).await?;
    }
    Ok(trouble.into())
}

/// Counts a request before it is sent, in a separate transaction.
async fn request_permit(plan: &CollectContext, ctx: &RunContext) -> Result<Permit, Failure> {
    let (quota, now) = (plan.quota.clone(), ctx.now());
    ctx.write(move |tx| reserve(tx, &quota, now)).await
}

/// Permission for one request, counted if it is given. Ignores a pause that ends implausibly late: the clock was wrong
/// when it was written.
pub(super) fn reserve(tx: &mut Tx<'_>, quota: &Quota, now: Timestamp) -> db::Result<Permit> {
    let name = Subject::provider(&quota.provider);
    match pause::find(tx, &name, now)? {
        Some(pause_provider)
            if pause_provider.paused_until.is_some_and(|until| until > now.plus(MAX_PAUSE)) =>
        {
            pause::reset(tx, &name)?;
        }
        Some(pause_provider) => return Ok(Permit::Wait { until: pause_provider.paused_until }),
        None => {}
    }
    Ok(match quota.reserve(tx, 1, now)? {
        Grant::Granted { left } => Permit::Go { left },
        Grant::Exhausted { resets_at } => Permit::Wait { until: Some(resets_at) },
    })
}

/// Pauses the provider, for every job that uses it.
pub(super) async fn pause_provider(
    ctx: &RunContext,
    quota: &Quota,
    until: Timestamp,
    why: &Phrase,
) -> Result<(), Failure> {
    let (job, name, why, now) = (ctx.job.clone(), Subject::provider(&quota.provider), why.clone(), ctx.now());
    ctx.write(move |tx| {
        if pause::put(tx, &name, Some(until), &why, now)? {
            let detail = serde_json::json!({ "why": why.to_stored(), "until": until });
            event::add(tx, Some(&job), &name, ProviderCode::AskedToWait, &detail, now)?;
        }
        Ok(())
    })
    .await
}
