//! The budget of a provider: reserved before a request is sent, corrected after the answer.

use std::collections::BTreeMap;

use super::config::BudgetKeys;
use super::prompt::{Prompt, likely_output_tokens};
use super::{AskError, Content, File, PauseReason, Purpose, Unavailable, store};
use crate::config;
use crate::db::{self, Tx};
use crate::id::JobName;
use crate::ledger::quota::{Grant, Quota};
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;

/// The limits of one provider.
#[derive(Clone, Debug)]
pub struct Budget {
    /// Requests a day, counted in `api_usage`.
    pub quota: Option<Quota>,
    /// The same for models that have their own `[quota.NAME]`, by the name of the model.
    pub model_quotas: BTreeMap<String, Quota>,
    /// When the provider's day begins.
    pub day: config::Quota,
    /// Tokens a day and per job, requests per job.
    pub keys: BudgetKeys,
}

/// The reservation of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reserved {
    pub(super) date: String,
    pub(super) job: JobName,
    pub(super) tokens: i64,
}

impl Budget {
    /// Counts one request and its estimated tokens, or nothing if a limit is reached.
    ///
    /// Everything is checked before anything is counted: transactions that write are serialised.
    pub fn reserve(
        &self,
        tx: &mut Tx<'_>,
        (provider, model): (&str, &str),
        job: &JobName,
        tokens: i64,
        now: Timestamp,
    ) -> db::Result<Result<Reserved, AskError>> {
        if let Some(limit) = self.day_without(tokens) {
            let why = phrase!(
                "{tokens} tokens may be needed, more than the {limit} of a whole day",
                "{tokens} トークンが必要になる見込みで、1 日分の {limit} を超えます"
            );
            return Ok(Err(AskError::TooMuch { why }));
        }
        if let Some(obstacle) = self.find_obstacle(tx, (provider, model), job, tokens, now)? {
            return Ok(Err(AskError::Paused(obstacle)));
        }
        for quota in self.quotas_of(model) {
            if let Grant::Exhausted { resets_at } = quota.reserve(tx, 1, now)? {
                return Ok(Err(AskError::Paused(used_up(provider, quota, resets_at))));
            }
        }
        let date = self.day.date_at(now).to_string();
        store::add_usage(tx, provider, &date, job, 1, tokens)?;
        Ok(Ok(Reserved { date, job: job.clone(), tokens }))
    }

    /// Why one more request with so many tokens is not possible now, if so; counts nothing.
    pub fn find_obstacle(
        &self,
        tx: &mut Tx<'_>,
        (provider, model): (&str, &str),
        job: &JobName,
        tokens: i64,
        now: Timestamp,
    ) -> db::Result<Option<Unavailable>> {
        let until = self.day.next_day_at(now);
        let date = self.day.date_at(now).to_string();
        let refused = |why: Phrase| Ok(Some(waits(provider, why, until)));
        let day = store::sum_usage(tx, provider, &date)?;
        let own = store::find_usage(tx, provider, &date, job)?;
        let exceeds = |used: i64, more: i64, limit: Option<u64>| {
            limit.is_some_and(|limit| used.saturating_add(more) > i64::try_from(limit).unwrap_or(i64::MAX))
        };
        if exceeds(day.tokens, tokens, self.keys.tokens_per_day) {
            return refused(phrase!(
                "{used} tokens were used today, and {tokens} more may be needed",
                "本日 {used} トークンを使用済みで、さらに {tokens} トークンが必要になる見込みです",
                used = day.tokens
            ));
        }
        if exceeds(own.tokens, tokens, self.keys.tokens_per_job) {
            return refused(phrase!(
                "`{job}` has used {used} tokens today, and {tokens} more may be needed",
                "`{job}` は本日 {used} トークンを使用済みで、さらに {tokens} トークンが必要になる見込みです",
                used = own.tokens
            ));
        }
        if exceeds(own.requests, 1, self.keys.requests_per_job) {
            return refused(phrase!(
                "`{job}` has made {count} requests today",
                "`{job}` は本日 {count} 回リクエスト済みです",
                count = own.requests
            ));
        }
        for quota in self.quotas_of(model) {
            if quota.used(tx, now)? >= i64::from(quota.rule.per_day) {
                return Ok(Some(used_up(provider, quota, quota.resets_at(now))));
            }
        }
        Ok(None)
    }

    /// The tokens of a whole day, if `tokens` exceeds them.
    pub fn day_without(&self, tokens: i64) -> Option<u64> {
        let limits = [self.keys.tokens_per_day, self.keys.tokens_per_job].into_iter().flatten();
        limits.min().filter(|limit| i64::try_from(*limit).is_ok_and(|limit| limit < tokens))
    }

    fn quotas_of(&self, model: &str) -> impl Iterator<Item = &Quota> {
        self.quota.iter().chain(self.model_quotas.get(model))
    }
}

fn used_up(provider: &str, quota: &Quota, until: Timestamp) -> Unavailable {
    let name = &quota.provider;
    let why = phrase!("the quota `{name}` is used up for today", "`{name}` の本日の上限に達しました");
    waits(provider, why, until)
}

fn waits(provider: &str, why: Phrase, until: Timestamp) -> Unavailable {
    let why = phrase!("`{provider}` waits: {why}", "`{provider}` は待機中です：{why}");
    Unavailable { until, why, because: PauseReason::UsedUp }
}

/// Tokens of one page of a document, as Gemini counts them.
const TOKENS_PER_PAGE: u64 = 258;
/// Few pages are smaller: the estimate should rather be too high.
const BYTES_PER_PAGE: u64 = 8 * 1024;
/// The most pages that a provider reads.
const MAX_PAGES: u64 = 1000;

/// An upper estimate of a request's tokens: one per character, pages by size, and the whole answer.
pub(super) fn estimate(prompt: &Prompt, files: &[File], max_output: Option<u32>) -> i64 {
    let words = (prompt.system.chars().count() + prompt.text.chars().count()) as u64;
    let saved = files.iter().filter(|file| matches!(file.content, Content::Saved { .. }));
    let pages: u64 = saved.map(|file| tokens_of_file(file.bytes.unwrap_or(0))).sum();
    let read = files.iter().filter_map(|file| match &file.content {
        Content::Read { text, .. } => Some(text.chars().count() as u64),
        _ => None,
    });
    to_signed(
        words
            + pages
            + read.sum::<u64>()
            + u64::from(max_output.unwrap_or_else(|| likely_output_tokens(prompt.purpose))),
    )
}

/// The same before anything is fetched, given the sizes of the files.
pub(super) fn estimate_from_sizes(purpose: Purpose, sizes: &[u64], max_output: Option<u32>) -> i64 {
    let files: u64 = sizes.iter().map(|bytes| tokens_of_file(*bytes)).sum();
    to_signed(u64::from(max_output.unwrap_or_else(|| likely_output_tokens(purpose))) + files)
}

fn tokens_of_file(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES_PER_PAGE).clamp(1, MAX_PAGES) * TOKENS_PER_PAGE
}

fn to_signed(tokens: u64) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX)
}
