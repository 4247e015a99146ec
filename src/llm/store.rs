//! The SQL of cached answers, usage and the state of providers.

use super::refusal::Refusals;
use super::{PauseReason, Purpose};
use crate::db::{self, FromRow, Tx};
use crate::id::JobName;
use crate::time::Timestamp;
use crate::{params, sql};

crate::migration!(7, "llm", "../../migrations/0007_llm.sql");

/// A cached answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredAnswer {
    /// As the model gave it.
    pub answer_json: String,
    /// Input tokens.
    pub tokens_in: u64,
    /// Output tokens.
    pub tokens_out: u64,
}

/// An answer to be cached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAnswer {
    /// Content, prompt version and model, hashed.
    pub key: String,
    pub provider: String,
    pub model: String,
    pub purpose: Purpose,
    /// As the model gave it.
    pub answer_json: String,
    /// Input tokens.
    pub tokens_in: u64,
    /// Output tokens.
    pub tokens_out: u64,
    pub job_name: JobName,
}

/// Requests and tokens used on a day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub requests: i64,
    /// Tokens, including estimates of pending requests.
    pub tokens: i64,
}

/// The health of a provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Failures since its last answer.
    pub failures_in_a_row: i64,
    /// The fingerprint of the settings under which it is paused.
    pub paused_with: Option<String>,
    pub pause_reason: Option<PauseReason>,
}

/// The cached answer with that key.
pub fn find_answer(tx: &mut Tx<'_>, key: &str) -> db::Result<Option<StoredAnswer>> {
    let count = |value: i64| u64::try_from(value).unwrap_or(0);
    tx.find(
        sql!("SELECT answer_json, tokens_in, tokens_out FROM llm_answers WHERE key = ?1"),
        params![key],
        |row| {
            Ok(StoredAnswer {
                answer_json: row.get(0)?,
                tokens_in: count(row.get(1)?),
                tokens_out: count(row.get(2)?),
            })
        },
    )
}

/// Saves an answer; a newer one for the same question replaces it.
pub fn put_answer(tx: &mut Tx<'_>, answer: &NewAnswer, now: Timestamp) -> db::Result<()> {
    tx.run(
        sql!(
            "INSERT INTO llm_answers (key, provider, model, purpose, answer_json, tokens_in, tokens_out, job_name,
               created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
             ON CONFLICT (key) DO UPDATE SET answer_json = excluded.answer_json, tokens_in = excluded.tokens_in,
               tokens_out = excluded.tokens_out, created_at = excluded.created_at"
        ),
        params![
            answer.key,
            answer.provider,
            answer.model,
            answer.purpose.word(),
            answer.answer_json,
            answer.tokens_in,
            answer.tokens_out,
            answer.job_name,
            now
        ],
    )
}

/// The use of a provider by all jobs on a day.
pub fn sum_usage(tx: &mut Tx<'_>, provider: &str, date: &str) -> db::Result<Usage> {
    let found = tx.find(
        sql!(
            "SELECT CAST(COALESCE(SUM(requests), 0) AS BIGINT), CAST(COALESCE(SUM(tokens), 0) AS BIGINT)
             FROM llm_usage WHERE provider = ?1 AND date = ?2"
        ),
        params![provider, date],
        |row| Ok(Usage { requests: row.get(0)?, tokens: row.get(1)? }),
    )?;
    Ok(found.unwrap_or_default())
}

/// The use of a provider by one job on a day.
pub fn find_usage(tx: &mut Tx<'_>, provider: &str, date: &str, job: &JobName) -> db::Result<Usage> {
    let found = tx.find(
        sql!("SELECT requests, tokens FROM llm_usage WHERE provider = ?1 AND date = ?2 AND job_name = ?3"),
        params![provider, date, job],
        |row| Ok(Usage { requests: row.get(0)?, tokens: row.get(1)? }),
    )?;
    Ok(found.unwrap_or_default())
}

/// Adds to the counts; negative after an estimate that was too high.
pub fn add_usage(
    tx: &mut Tx<'_>,
    provider: &str,
    date: &str,
    job: &JobName,
    requests: i64,
    tokens: i64,
) -> db::Result<()> {
    tx.run(
        sql!(
            "INSERT INTO llm_usage (provider, date, job_name, requests, tokens) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (provider, date, job_name) DO UPDATE SET requests = llm_usage.requests + excluded.requests,
               tokens = llm_usage.tokens + excluded.tokens"
        ),
        params![provider, date, job, requests, tokens],
    )
}

/// The health of a provider; healthy if nothing is saved.
pub fn find_health(tx: &mut Tx<'_>, provider: &str) -> db::Result<Health> {
    let found = tx.find(
        sql!("SELECT failures_in_a_row, rests_with, rests_because FROM llm_health WHERE provider = ?1"),
        params![provider],
        |row| {
            let because: Option<String> = row.get(2)?;
            Ok(Health {
                failures_in_a_row: row.get(0)?,
                paused_with: row.get(1)?,
                pause_reason: because.and_then(|because| because.parse().ok()),
            })
        },
    )?;
    Ok(found.unwrap_or_default())
}

/// Saves the health of a provider: its failures, and if it is paused, under which settings and why.
pub fn put_health(
    tx: &mut Tx<'_>,
    provider: &str,
    failures_in_a_row: i64,
    paused: Option<(&str, PauseReason)>,
) -> db::Result<()> {
    tx.run(
        sql!(
            "INSERT INTO llm_health (provider, failures_in_a_row, rests_with, rests_because) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (provider) DO UPDATE SET failures_in_a_row = excluded.failures_in_a_row,
               rests_with = excluded.rests_with, rests_because = excluded.rests_because"
        ),
        params![
            provider,
            failures_in_a_row,
            paused.map(|(with, _)| with),
            paused.map(|(_, because)| because.word())
        ],
    )
}

/// The latest refusals of a provider without a stated cause.
pub(super) fn find_refusals(tx: &mut Tx<'_>, provider: &str) -> db::Result<Refusals> {
    let found =
        tx.find(sql!("SELECT refusals FROM llm_health WHERE provider = ?1"), params![provider], |row| {
            row.get::<Option<String>>(0)
        })?;
    Ok(found.flatten().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
}

pub(super) fn put_refusals(tx: &mut Tx<'_>, provider: &str, refusals: &Refusals) -> db::Result<()> {
    let text = serde_json::to_string(refusals).unwrap_or_default();
    tx.run(
        sql!(
            "INSERT INTO llm_health (provider, refusals) VALUES (?1, ?2)
             ON CONFLICT (provider) DO UPDATE SET refusals = excluded.refusals"
        ),
        params![provider, text],
    )
}

/// The use of a model over some time.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct ModelUse {
    pub provider: String,
    pub model: String,
    /// Answers that were saved.
    pub answers: i64,
    /// Input tokens.
    pub tokens_in: i64,
    /// Output tokens.
    pub tokens_out: i64,
}

/// The use of every model since a moment.
pub fn list_model_use(tx: &mut Tx<'_>, since: Timestamp) -> db::Result<Vec<ModelUse>> {
    tx.list(
        sql!(
            "SELECT provider, model, CAST(COUNT(*) AS BIGINT) AS answers, CAST(SUM(tokens_in) AS BIGINT) AS tokens_in,
               CAST(SUM(tokens_out) AS BIGINT) AS tokens_out
             FROM llm_answers WHERE created_at >= ?1 GROUP BY provider, model ORDER BY provider, model"
        ),
        params![since],
        FromRow::from_row,
    )
}
