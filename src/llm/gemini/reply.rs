//! Interprets the answers of Gemini.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value as Json;

use crate::fetch::ApiReply;
use crate::llm::call::{
    CallError, ProviderPause, Repair, Reply, TokenUsage, blocked_answer, cut_off_answer, empty_answer, quote,
    refusal, unknown_model,
};
use crate::phrase;
use crate::phrase::Phrase;

/// How long to wait after too many requests if the answer does not say.
pub(super) const USUAL_WAIT: Duration = Duration::from_secs(60);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Generated {
    #[serde(default)]
    candidates: Vec<Candidate>,
    prompt_feedback: Option<Feedback>,
    #[serde(default)]
    usage_metadata: Json,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    content: Option<ContentParts>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct ContentParts {
    #[serde(default)]
    parts: Vec<ContentPart>,
}

#[derive(Deserialize)]
struct ContentPart {
    text: Option<String>,
    #[serde(default)]
    thought: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    block_reason: Option<String>,
}

/// The text of a complete answer, or why there is none.
pub(super) fn read_reply(body: &[u8]) -> Result<Reply, CallError> {
    let generated: Generated = serde_json::from_slice(body).map_err(|_| ProviderPause::unclear())?;
    let outputs = ["candidatesTokenCount", "thoughtsTokenCount"];
    let usage = TokenUsage::read(&generated.usage_metadata, "promptTokenCount", &outputs);
    let unusable = |why: Phrase, repair| Err(CallError::Unusable { why, usage, repair });
    if let Some(reason) = generated.prompt_feedback.and_then(|feedback| feedback.block_reason) {
        return unusable(
            phrase!("the prompt was blocked ({reason})", "プロンプトがブロックされました（{reason}）"),
            Repair::None,
        );
    }
    let Some(candidate) = generated.candidates.into_iter().next() else {
        return unusable(
            phrase!("the answer is empty: no candidate", "回答が空です（候補なし）"),
            Repair::Complain,
        );
    };
    match candidate.finish_reason.as_deref() {
        Some("STOP") | None => {}
        Some("MAX_TOKENS") => {
            return unusable(cut_off_answer("MAX_TOKENS"), Repair::MoreRoom);
        }
        Some("RECITATION") => {
            return unusable(
                phrase!(
                    "the answer repeated its source word by word (RECITATION)",
                    "回答が元の文章の丸写しでした（RECITATION）"
                ),
                Repair::Complain,
            );
        }
        Some(
            reason @ ("SAFETY" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "IMAGE_SAFETY" | "LANGUAGE"),
        ) => {
            return unusable(blocked_answer(reason), Repair::None);
        }
        Some(reason) => {
            let why = phrase!(
                "the answer ended early ({reason})",
                "回答が途中で終わりました（{reason}）",
                reason = quote(reason)
            );
            return unusable(why, Repair::Complain);
        }
    }
    let text: String = candidate
        .content
        .map(|content| content.parts)
        .unwrap_or_default()
        .into_iter()
        .filter(|part| !part.thought)
        .filter_map(|part| part.text)
        .collect();
    if text.trim().is_empty() {
        return unusable(empty_answer(), Repair::Complain);
    }
    Ok(Reply { text, usage })
}

#[derive(Deserialize)]
struct Failed {
    error: Failure,
}

#[derive(Deserialize)]
struct Failure {
    #[serde(default)]
    message: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    details: Vec<Json>,
}

/// Interprets an error status.
pub(super) fn judge(answer: &ApiReply) -> CallError {
    let failed: Option<Failed> = serde_json::from_slice(&answer.body).ok();
    let failure = failed.map(|failed| failed.error);
    let message = failure.as_ref().map_or_else(|| answer.text(), |failure| failure.message.clone());
    let why = refusal(answer.status, &message);
    let details = failure.as_ref().map(|failure| failure.details.as_slice()).unwrap_or_default();
    let code = failure.as_ref().map_or("", |failure| failure.status.as_str());
    let is_bad_key = details.iter().any(|detail| detail["reason"] == "API_KEY_INVALID")
        || message.to_ascii_lowercase().contains("api key");
    match answer.status {
        401 | 403 => ProviderPause::Locked { why }.into(),
        400 if is_bad_key => ProviderPause::Locked { why }.into(),
        // No billing, or not available in this country: the same for every document.
        400 if code == "FAILED_PRECONDITION" => ProviderPause::Locked { why }.into(),
        404 => ProviderPause::Refused { why: unknown_model(why) }.into(),
        429 if has_no_credit(&message) => ProviderPause::Locked { why }.into(),
        429 if has_no_quota(&message) => ProviderPause::Refused { why }.into(),
        429 if is_about_the_day(details) => ProviderPause::UsedUp { why }.into(),
        429 => {
            let after = retry_delay(details).or(answer.retry_after).unwrap_or(USUAL_WAIT);
            ProviderPause::Busy { why, after, counts_tokens: is_about_tokens(details) }.into()
        }
        413 => CallError::Unusable { why, usage: TokenUsage::Nothing, repair: Repair::None },
        400 | 422 if is_about_a_field(details) => ProviderPause::Refused { why }.into(),
        400 | 422 if is_about_the_document(&message) => {
            CallError::Unusable { why, usage: TokenUsage::Nothing, repair: Repair::None }
        }
        400 | 422 => CallError::Refused { why },
        _ => ProviderPause::Down { why, after: answer.retry_after, may_have_counted: false }.into(),
    }
}

/// Whether fields of the request are wrong that have nothing to do with the document.
fn is_about_a_field(details: &[Json]) -> bool {
    let mut fields = details
        .iter()
        .filter_map(|detail| detail["fieldViolations"].as_array())
        .flatten()
        .filter_map(|violation| violation["field"].as_str())
        .filter(|field| !field.is_empty())
        .peekable();
    fields.peek().is_some() && fields.all(|field| !field.starts_with("contents"))
}

/// Whether the document cannot be read.
fn is_about_the_document(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    ["no pages", "unable to process input", "token count", "payload size", "mime type"]
        .iter()
        .any(|words| message.contains(words))
}

/// Whether only the owner of the account can solve it: the credit or allowance is used up.
fn has_no_credit(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    ["credits are depleted", "spending cap", "spend cap"].iter().any(|words| message.contains(words))
}

/// Whether the key has no quota for this model at all, as in the free tier for some models: waiting does not help.
fn has_no_quota(message: &str) -> bool {
    message.split("limit: 0").skip(1).any(|rest| !rest.starts_with(|c: char| c.is_ascii_digit() || c == '.'))
}

fn violations(details: &[Json]) -> impl Iterator<Item = &Json> {
    details.iter().filter_map(|detail| detail["violations"].as_array()).flatten()
}

/// Whether tokens, and not only requests, are limited.
fn is_about_tokens(details: &[Json]) -> bool {
    violations(details)
        .any(|violation| violation["quotaId"].as_str().is_some_and(|id| id.contains("TokensPer")))
}

/// Whether a daily quota, and not only one per minute, is used up.
fn is_about_the_day(details: &[Json]) -> bool {
    violations(details).any(|violation| {
        violation["quotaId"].as_str().is_some_and(|id| id.contains("PerDay"))
            || violation["quotaMetric"].as_str().is_some_and(|metric| metric.contains("per_day"))
    })
}

/// `RetryInfo.retryDelay`, such as `"34.07s"`; at least a second, at most a day.
fn retry_delay(details: &[Json]) -> Option<Duration> {
    let text = details.iter().find_map(|detail| detail["retryDelay"].as_str())?;
    let secs: f64 = text.strip_suffix('s')?.parse().ok()?;
    secs.is_finite().then(|| Duration::from_secs_f64(secs.clamp(1.0, 86_400.0)))
}
