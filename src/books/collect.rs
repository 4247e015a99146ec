//! Collects page after page from where the last run stopped; each page is saved with the position after it.

use std::time::Duration;

use tracing::{info, warn};

use super::ask::{PageAnswer, fetch_page, give_up, pause_provider};
use super::decide::{Next, PAGE_LIMIT, PageOutcome, PageRequest, Paging, StopReason};
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
use crate::ledger::quota::Quota;
use crate::ledger::{Subject, cursor, event, pause};
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;

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
    /// Which books of the first run are sent.
    pub first_run: FirstRun,
    /// How often a request is retried after a temporary failure.
    pub retries: u32,
    /// The quota that requests count against.
    pub quota: Quota,
    /// Whether a page of the newest volumes is read in addition to the search.
    pub also_newest: bool,
    /// The filter for books to send.
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
    /// Why it stopped; `None` when the search was exhausted before and no request was made.
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
    /// It fails until the config changes.
    Config(Phrase),
    /// Anything else.
    Failed(Phrase),
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
        Some(cursor) => {
            let read_at = cursor.last_updated_at;
            recheck_after.filter(|after| read_at.plus(*after) <= now || read_at > now.with_skew()).map(|_| 0)
        }
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
            .read(move |tx| {
                let known = cursor::find(tx, job.as_str(), &key)?;
                // A search that was read and had no book yet has had its first run, too.
                let was_read =
                    known.as_ref().is_some_and(|known| known.is_exhausted || known.start_index > 0);
                Ok((known, !was_read && !store::has_books(tx, &job)?))
            })
            .await?
    };
    // How many books of the first run may be sent; `None` is no limit.
    let mut announceable = match (is_first, plan.first_run) {
        (false, _) | (true, FirstRun::All) => None,
        (true, FirstRun::Baseline) => Some(0),
        (true, FirstRun::Latest(count)) => Some(u64::from(count)),
    };
    if plan.also_newest {
        collect_newest(plan, fetcher, ctx, &mut collected, &mut announceable).await?;
        if collected.trouble.is_some() {
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
    ctx.progress.report(&job, Update::Total(u64::from(plan.max_per_run)));
    while let Next::Continue(ask) = next {
        ctx.check_stop()?;
        let (answer, left) = match fetch_page(plan, &plan.search, fetcher, ctx, ask).await? {
            PageAnswer::Answered { answer, left } => (answer, left),
            PageAnswer::NotNow { until } => {
                (paging, next) = paging.after_page(PageOutcome::OverQuota, 0);
                collected.resumes_at = until;
                save_position(ctx, &key, paging, next).await?;
                break;
            }
        };
        number += 1;
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
                (paging, next) = paging.after_page(PageOutcome::Failed, left);
                collected.trouble = Some(give_up(ctx, &plan.quota, trouble).await?);
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

/// Reads one page of the newest volumes, where new books appear, however far the search has been read.
async fn collect_newest(
    plan: &CollectContext,
    fetcher: &Fetcher,
    ctx: &RunContext,
    collected: &mut Collected,
    announceable: &mut Option<u64>,
) -> Result<(), Failure> {
    let ask = PageRequest { start_index: 0, max_results: PAGE_LIMIT };
    let answer = match fetch_page(plan, &plan.search.by_newest(), fetcher, ctx, ask).await? {
        PageAnswer::Answered { answer, .. } => answer,
        PageAnswer::NotNow { until } => {
            (collected.stop, collected.resumes_at) = (Some(StopReason::Quota), until);
            return Ok(());
        }
    };
    match answer {
        Ok(page) => {
            collected.returned += page.returned;
            collected.without_isbn += page.without_isbn;
            let new = save_page(ctx, page, None, plan, *announceable).await?;
            collected.new += new;
            *announceable = announceable.map(|announceable| announceable.saturating_sub(new));
        }
        // The search, if it is not exhausted, asks for permission next and gets the same answer.
        Err(SearchError::Quota { until, why }) => {
            (collected.stop, collected.resumes_at) = (Some(StopReason::Quota), Some(until));
            pause_provider(ctx, &plan.quota, until, &why).await?;
        }
        Err(trouble) => {
            collected.stop = Some(StopReason::Error);
            collected.trouble = Some(give_up(ctx, &plan.quota, trouble).await?);
        }
    }
    Ok(())
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

/// Writes the books of a page and the position after it, if it has one, together; returns how many were new to the job.
///
/// A book that was filtered out when it was found, and matches now, counts as new.
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
