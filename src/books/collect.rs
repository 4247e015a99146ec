//! Collecting: page after page from where the last run stopped, each page saved with the position after it.

use std::time::Duration;

use tracing::{info, warn};

use super::decide::{Ask, Next, PAGE_LIMIT, PageOutcome, Paging, StopReason, repeat_after};
use super::events::{self, BookCode, SearchCode};
use super::filter::BookFilter;
use super::google::{Search, SearchError, VolumePage};
use super::{lines, store};
use crate::config::value::FirstRun;
use crate::db::{self, Tx};
use crate::engine::runner::VERBATIM;
use crate::engine::{Failure, RunContext, Update};
use crate::fail;
use crate::fetch::Fetcher;
use crate::id::JobName;
use crate::ledger::quota::{Grant, Quota};
use crate::ledger::{Subject, cursor, event, pause};
use crate::llm::events::ProviderCode;
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;

/// No pause of the provider is longer: a day of the quota with 25 hours, and what clocks may differ.
const MAX_PAUSE: Duration = Duration::from_secs(25 * 60 * 60 + 10 * 60);

/// What a collecting run needs.
#[derive(Clone, Debug)]
pub struct CollectContext {
    pub search: Search,
    /// The key of its position.
    pub query_set_hash: String,
    /// How many volumes a run takes at most.
    pub max_per_run: u32,
    /// When a search that was read to its end is read again.
    pub recheck_after: Option<Duration>,
    /// What the first run tells.
    pub first_run: FirstRun,
    /// How often a request is repeated that failed in a way that passes.
    pub retries: u32,
    /// What requests count against.
    pub quota: Quota,
    /// Whether a page of the newest volumes is read beside the search.
    pub also_newest: bool,
    /// Which of the books are worth telling.
    pub wanted: BookFilter,
}

/// What a run collected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Volumes that the API returned.
    pub returned: u64,
    /// Volumes among them without a valid ISBN.
    pub without_isbn: u64,
    /// Books that this job had not found before.
    pub new: u64,
    /// Why it stopped; `None` when the search was exhausted before and nothing was asked.
    pub stop: Option<StopReason>,
    /// What went wrong.
    pub trouble: Option<Wrong>,
    /// When requests are possible again, if that is why it stopped.
    pub resumes_at: Option<Timestamp>,
}

/// What went wrong while collecting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// The key was refused.
    Credentials(Phrase),
    /// Only another config ends it.
    Config(Phrase),
    /// Anything else.
    Failed(Phrase),
}

/// The answer to asking for permission to make a request.
pub(super) enum Permit {
    /// It is counted; so many more are left.
    Go { left: u32 },
    /// Not before this moment.
    Wait { until: Option<Timestamp> },
}

/// Where a run begins, or `None` when there is nothing to collect.
pub fn start_index(
    cursor: Option<&cursor::Cursor>,
    recheck_after: Option<Duration>,
    now: Timestamp,
) -> Option<i64> {
    match cursor {
        None => Some(0),
        Some(cursor) if !cursor.is_exhausted => Some(cursor.start_index),
        Some(cursor) => recheck_after.filter(|after| cursor.last_updated_at.plus(*after) <= now).map(|_| 0),
    }
}

/// Collects until the run is full, the quota is used up, the search is exhausted or something fails.
pub async fn collect(
    plan: &CollectContext,
    fetcher: &Fetcher,
    ctx: &RunContext,
) -> Result<Collected, Failure> {
    let mut collected = Collected::default();
    let (job, key) = (ctx.job.clone(), plan.query_set_hash.clone());
    let (known, is_first) = {
        let (job, key) = (job.clone(), key.clone());
        ctx.db
            .read(move |tx| Ok((cursor::find(tx, job.as_str(), &key)?, !store::has_books(tx, &job)?)))
            .await?
    };
    // How many books the first run may tell; `None` is no limit.
    let mut announceable = match (is_first, plan.first_run) {
        (false, _) | (true, FirstRun::All) => None,
        (true, FirstRun::Baseline) => Some(0),
        (true, FirstRun::Latest(count)) => Some(u64::from(count)),
    };
    if plan.also_newest {
        collect_newest(plan, fetcher, ctx, &mut collected, &mut announceable).await?;
        if collected.trouble.is_some() {
            collected.stop = Some(StopReason::Error);
            return Ok(collected);
        }
    }
    let Some(start) = start_index(known.as_ref(), plan.recheck_after, ctx.now()) else {
        warn!(target: VERBATIM, job = %job, "{}", lines::skipped(&job, &key));
        return Ok(collected);
    };
    let mut paging = Paging::new(start, plan.max_per_run);
    let mut next = paging.first();
    let mut total_items = None;
    let mut number = 0;
    let mut failures = 0;
    ctx.progress.report(&job, Update::Total(u64::from(plan.max_per_run)));
    while let Next::Continue(ask) = next {
        ctx.check_stop()?;
        let left = match ask_permission(plan, ctx).await? {
            Permit::Go { left } => left,
            Permit::Wait { until } => {
                (paging, next) = paging.after_page(PageOutcome::OverQuota, 0);
                collected.resumes_at = until;
                save_position(ctx, &key, paging, next).await?;
                break;
            }
        };
        let answer = tokio::select! {
            () = ctx.stop.cancelled() => return Err(Failure::Interrupted),
            answer = plan.search.fetch(fetcher, ask, ctx.now()) => answer,
        };
        if let Err(SearchError::Passing { why, retry_after }) = &answer {
            failures += 1;
            if let Some(wait) = repeat_after(failures, plan.retries, left, *retry_after) {
                info!(job = %job, "Google Books: {why}; it is asked again in {} s", wait.as_secs());
                tokio::select! {
                    () = ctx.stop.cancelled() => return Err(Failure::Interrupted),
                    () = ctx.clock.wait_until(ctx.now().plus(wait)) => continue,
                }
            }
        }
        number += 1;
        failures = 0;
        fail::point("books.page_fetched");
        match answer {
            Ok(page) => {
                total_items = page.total_items;
                let line = lines::page(&job, number, ask.start_index, page.returned, total_items);
                info!(target: VERBATIM, job = %job, "{line}");
                let outcome = PageOutcome::Page { returned: page.returned, total_items };
                (paging, next) = paging.after_page(outcome, left);
                if next == Next::Stop(StopReason::Error) {
                    collected.trouble = Some(Wrong::Failed(phrase!(
                        "an empty page that does not say how many there are",
                        "件数の記載がない空のページです"
                    )));
                }
                if next == Next::Stop(StopReason::Quota) {
                    collected.resumes_at = Some(plan.quota.resets_at(ctx.now()));
                }
                collected.returned += page.returned;
                collected.without_isbn += page.without_isbn;
                ctx.progress.report(&job, Update::Done(page.returned));
                let new = save_page(ctx, page, Some((&key, paging, next)), plan, announceable).await?;
                collected.new += new;
                announceable = announceable.map(|announceable| announceable.saturating_sub(new));
                fail::point("books.page_saved");
            }
            Err(SearchError::Quota { until, why }) => {
                (paging, next) = paging.after_page(PageOutcome::OverQuota, left);
                collected.resumes_at = Some(until);
                pause_provider(ctx, &plan.quota, until, &why).await?;
                save_position(ctx, &key, paging, next).await?;
            }
            Err(trouble) => {
                if let SearchError::Passing { why, retry_after: Some(wait) } = &trouble {
                    pause_provider(ctx, &plan.quota, ctx.now().plus(*wait), why).await?;
                }
                (paging, next) = paging.after_page(PageOutcome::Failed, left);
                collected.trouble = Some(trouble.into());
                save_position(ctx, &key, paging, next).await?;
            }
        }
    }
    if let Next::Stop(reason) = next {
        let line = lines::stopped(&job, reason, &paging, total_items, &key);
        match reason {
            StopReason::Exhausted => warn!(target: VERBATIM, job = %job, "{line}"),
            _ => info!(target: VERBATIM, job = %job, "{line}"),
        }
        collected.stop = Some(reason);
    }
    Ok(collected)
}

/// Reads one page of the newest volumes: what is new stands there, however far the search has been read.
async fn collect_newest(
    plan: &CollectContext,
    fetcher: &Fetcher,
    ctx: &RunContext,
    collected: &mut Collected,
    announceable: &mut Option<u64>,
) -> Result<(), Failure> {
    let Permit::Go { .. } = ask_permission(plan, ctx).await? else { return Ok(()) };
    let ask = Ask { start_index: 0, max_results: PAGE_LIMIT };
    let search = plan.search.by_newest();
    let answer = tokio::select! {
        () = ctx.stop.cancelled() => return Err(Failure::Interrupted),
        answer = search.fetch(fetcher, ask, ctx.now()) => answer,
    };
    match answer {
        Ok(page) => {
            collected.returned += page.returned;
            collected.without_isbn += page.without_isbn;
            let new = save_page(ctx, page, None, plan, *announceable).await?;
            collected.new += new;
            *announceable = announceable.map(|announceable| announceable.saturating_sub(new));
            Ok(())
        }
        // The search asks for permission next, and hears the same.
        Err(SearchError::Quota { until, why }) => pause_provider(ctx, &plan.quota, until, &why).await,
        // The search may do better, with its repeats.
        Err(SearchError::Passing { why, .. }) => {
            info!(job = %ctx.job, "Google Books: the newest volumes could not be read: {why}");
            Ok(())
        }
        Err(trouble) => {
            collected.trouble = Some(trouble.into());
            Ok(())
        }
    }
}

impl From<SearchError> for Wrong {
    fn from(trouble: SearchError) -> Self {
        match trouble {
            SearchError::Credentials(why) => Wrong::Credentials(why),
            SearchError::Config(why) => Wrong::Config(why),
            SearchError::Failed(why) | SearchError::Passing { why, .. } | SearchError::Quota { why, .. } => {
                Wrong::Failed(why)
            }
        }
    }
}

/// Counts a request before it leaves, in a transaction of its own.
async fn ask_permission(plan: &CollectContext, ctx: &RunContext) -> Result<Permit, Failure> {
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

/// Writes the books of a page and the position after it, if it has one, together; answers how many were new to the job.
///
/// A book that was not wanted when it was found, and is now, counts as new.
async fn save_page(
    ctx: &RunContext,
    page: VolumePage,
    position: Option<(&str, Paging, Next)>,
    plan: &CollectContext,
    announceable: Option<u64>,
) -> Result<u64, Failure> {
    let (job, wanted, now) = (ctx.job.clone(), plan.wanted.clone(), ctx.now());
    let provider = Subject::provider(&plan.quota.provider);
    let position = position.map(|(key, paging, next)| (key.to_owned(), paging, next));
    ctx.write(move |tx| {
        pause::forget_ended(tx, &provider, now)?;
        let mut new = 0;
        for book in &page.books {
            store::put_book(tx, book, now)?;
            let (is_wanted, is_announceable) =
                (wanted.fits(book), announceable.is_none_or(|announceable| new < announceable));
            let is_new = store::add_job_book(tx, &job, &book.isbn13, is_announceable, now)?;
            let code = match (is_wanted, is_new) {
                (false, true) => {
                    store::mark_unwanted(tx, &job, &book.isbn13, true)?;
                    BookCode::NotWanted
                }
                (true, true) if !is_announceable => BookCode::Baseline,
                (true, true) => BookCode::Collected,
                (true, false) if store::mark_unwanted(tx, &job, &book.isbn13, false)? => BookCode::Collected,
                (_, false) => continue,
            };
            new += u64::from(is_wanted);
            let detail = serde_json::json!({ "title": book.title });
            event::add(tx, Some(&job), &events::book(&book.isbn13), code, &detail, now)?;
        }
        if let Some((key, paging, next)) = &position {
            put_position(tx, &job, key, *paging, *next, now)?;
        }
        Ok(new)
    })
    .await
}

/// Writes the position when there is no page to go with it.
async fn save_position(ctx: &RunContext, key: &str, paging: Paging, next: Next) -> Result<(), Failure> {
    let (job, key, now) = (ctx.job.clone(), key.to_owned(), ctx.now());
    ctx.write(move |tx| put_position(tx, &job, &key, paging, next, now)).await
}

fn put_position(
    tx: &mut Tx<'_>,
    job: &JobName,
    key: &str,
    paging: Paging,
    next: Next,
    now: Timestamp,
) -> db::Result<()> {
    cursor::put(tx, job.as_str(), key, paging.start_index, next.is_exhausted(), now)?;
    if next.is_exhausted() {
        let detail = serde_json::json!({ "query_set_hash": key, "start_index": paging.start_index });
        event::add(tx, Some(job), &Subject::job(job), SearchCode::Exhausted, &detail, now)?;
    }
    Ok(())
}

/// Pauses the provider, for every job that uses it.
async fn pause_provider(
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
