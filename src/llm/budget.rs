//! What may be asked of a provider: reserved before a request leaves, corrected after its answer.

use super::config::BudgetKeys;
use super::prompt::Prompt;
use super::{Content, File, store};
use crate::config;
use crate::db::{self, Tx};
use crate::id::JobName;
use crate::ledger::quota::{Grant, Quota};
use crate::time::Timestamp;

/// The limits of one provider.
#[derive(Clone, Debug)]
pub struct Budget {
    /// Requests a day, counted in `api_usage`.
    pub quota: Option<Quota>,
    /// When the provider's day begins.
    pub day: config::Quota,
    /// Tokens a day and per job, requests per job.
    pub keys: BudgetKeys,
}

/// What was reserved for one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reserved {
    pub(super) date: String,
    pub(super) job: JobName,
    pub(super) tokens: i64,
}

/// The budget does not allow the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// When it will.
    pub until: Timestamp,
    /// What is used up.
    pub why: String,
}

impl Budget {
    /// Counts one request and its estimated tokens, or nothing at all.
    ///
    /// Everything is checked before anything is counted: the transaction is serialised with all others.
    pub fn reserve(
        &self,
        tx: &mut Tx<'_>,
        provider: &str,
        job: &JobName,
        tokens: i64,
        now: Timestamp,
    ) -> db::Result<Result<Reserved, Refused>> {
        let until = self.day.next_day_at(now);
        let date = self.day.date_at(now).to_string();
        let refused = |why: String| Ok(Err(Refused { until, why: format!("`{provider}` waits: {why}") }));
        let day = store::sum_usage(tx, provider, &date)?;
        let own = store::find_usage(tx, provider, &date, job)?;
        let exceeds = |used: i64, more: i64, limit: Option<u64>| {
            limit.is_some_and(|limit| used.saturating_add(more) > i64::try_from(limit).unwrap_or(i64::MAX))
        };
        if exceeds(day.tokens, tokens, self.keys.tokens_per_day) {
            return refused(format!(
                "{} tokens were used today, this would take up to {tokens} more",
                day.tokens
            ));
        }
        if exceeds(own.tokens, tokens, self.keys.tokens_per_job) {
            return refused(format!(
                "`{job}` has used {} tokens today, this would take up to {tokens} more",
                own.tokens
            ));
        }
        if exceeds(own.requests, 1, self.keys.requests_per_job) {
            return refused(format!("`{job}` has made {} requests today", own.requests));
        }
        if let Some(quota) = &self.quota
            && let Grant::Exhausted { .. } = quota.reserve(tx, 1, now)?
        {
            return refused(format!("the quota `{}` is used up for today", quota.provider));
        }
        store::add_usage(tx, provider, &date, job, 1, tokens)?;
        Ok(Ok(Reserved { date, job: job.clone(), tokens }))
    }
}

/// Tokens of one page of a document, as Gemini counts them.
const TOKENS_PER_PAGE: u64 = 258;
/// A page that takes fewer bytes is rare: the estimate is to be on the safe side.
const BYTES_PER_PAGE: u64 = 8 * 1024;
/// The most pages that a provider reads.
const MAX_PAGES: u64 = 1000;

/// The most tokens that a request is likely to take: one per character, pages by size, and the whole answer.
pub(super) fn estimate(prompt: &Prompt, files: &[File]) -> i64 {
    let words = (prompt.system.chars().count() + prompt.text.chars().count()) as u64;
    let pages: u64 = files
        .iter()
        .filter(|file| matches!(file.content, Content::Saved { .. }))
        .map(|file| file.bytes.unwrap_or(0).div_ceil(BYTES_PER_PAGE).clamp(1, MAX_PAGES))
        .sum();
    let tokens = words + pages * TOKENS_PER_PAGE + u64::from(prompt.max_output_tokens);
    i64::try_from(tokens).unwrap_or(i64::MAX)
}
