//! Every kind of reply of Gemini, and its interpretation.

use super::reply::USUAL_WAIT;
use super::*;
use crate::fetch::ApiReply;
use crate::llm::call::{Repair, TokenUsage};

fn reply(body: Json) -> Result<Reply, CallError> {
    read_reply(body.to_string().as_bytes())
}

fn candidate(finish: &str, text: &str) -> Json {
    json!({ "candidates": [{ "content": { "parts": [{ "text": text }] }, "finishReason": finish }],
            "usageMetadata": { "promptTokenCount": 10, "candidatesTokenCount": 4, "thoughtsTokenCount": 6 } })
}

fn judged(status: u16, body: Json) -> CallError {
    judge(&ApiReply { status, body: body.to_string().into(), ..ApiReply::default() })
}

#[test]
fn a_finished_answer_is_read_without_its_thoughts() {
    let body = json!({ "candidates": [{ "content": { "parts": [
        { "text": "thinking", "thought": true }, { "text": "{\"a\":" }, { "text": "1}" }] }, "finishReason": "STOP" }],
        "usageMetadata": { "promptTokenCount": 10, "candidatesTokenCount": 4, "thoughtsTokenCount": 6 } });
    let reply = reply(body).unwrap();
    assert_eq!(
        reply,
        Reply { text: "{\"a\":1}".into(), usage: TokenUsage::Tokens { input: 10, output: 10 } }
    );
}

#[test]
fn an_answer_without_use_says_whether_asking_again_helps() {
    for (body, repair, word) in [
        (json!({ "promptFeedback": { "blockReason": "SAFETY" } }), Repair::None, "prompt was blocked"),
        (candidate("SAFETY", ""), Repair::None, "SAFETY"),
        (candidate("PROHIBITED_CONTENT", ""), Repair::None, "PROHIBITED_CONTENT"),
        (candidate("MAX_TOKENS", "{"), Repair::MoreRoom, "MAX_TOKENS"),
        (candidate("RECITATION", ""), Repair::Complain, "RECITATION"),
        (candidate("OTHER", ""), Repair::Complain, "OTHER"),
        (candidate("STOP", " "), Repair::Complain, "empty"),
        (json!({ "candidates": [] }), Repair::Complain, "no candidate"),
        (json!({}), Repair::Complain, "no candidate"),
    ] {
        match reply(body.clone()) {
            Err(CallError::Unusable { why, repair: found, .. }) => {
                assert_eq!(found, repair, "{body}");
                assert!(why.to_string().contains(word), "{why}");
            }
            other => panic!("{body}: {other:?}"),
        }
    }
    assert!(matches!(read_reply(b"<html>"), Err(CallError::ProviderPause(ProviderPause::Down { .. }))));
}

#[test]
fn minute_and_day_are_told_apart() {
    let quota = |id: &str| json!({ "@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{ "quotaId": id }] });
    let delay = json!({ "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.07s" });
    let error = |details: Json| json!({ "error": { "status": "RESOURCE_EXHAUSTED", "message": "m", "details": details } });
    let minute =
        judged(429, error(json!([quota("GenerateRequestsPerMinutePerProjectPerModel-FreeTier"), delay])));
    assert!(
        matches!(minute, CallError::ProviderPause(ProviderPause::Busy { after, .. }) if after == Duration::from_secs_f64(34.07))
    );
    let day = judged(
        429,
        error(json!([
            quota("GenerateRequestsPerMinutePerProject"),
            quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier"),
            delay
        ])),
    );
    assert!(matches!(day, CallError::ProviderPause(ProviderPause::UsedUp { .. })), "{day:?}");
    assert!(
        matches!(judged(429, json!({})), CallError::ProviderPause(ProviderPause::Busy { after, .. }) if after == USUAL_WAIT)
    );
}

#[test]
fn a_status_says_who_is_to_blame() {
    let error = |status: &str, message: &str| json!({ "error": { "status": status, "message": message } });
    let violation = |field: &str| {
        json!({ "error": { "status": "INVALID_ARGUMENT", "message": "m", "details": [
            { "@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [{ "field": field }] }] } })
    };
    for (status, body, blame) in [
        (401, json!({}), "locked"),
        (403, error("PERMISSION_DENIED", "no"), "locked"),
        (400, error("INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."), "locked"),
        (400, error("FAILED_PRECONDITION", "User location is not supported"), "locked"),
        (404, error("NOT_FOUND", "models/x is not found"), "refused"),
        (400, violation("generation_config"), "refused"),
        (400, violation("contents[0].parts[1]"), "either"),
        (400, error("INVALID_ARGUMENT", "Request contains an invalid argument."), "either"),
        (400, error("INVALID_ARGUMENT", "The document has no pages."), "document"),
        (413, json!({}), "document"),
        (500, error("INTERNAL", "x"), "down"),
        (503, error("UNAVAILABLE", "overloaded"), "down"),
        (302, json!({}), "down"),
    ] {
        let found = match judged(status, body.clone()) {
            CallError::Unusable { .. } => "document",
            CallError::ProviderPause(ProviderPause::Locked { .. }) => "locked",
            CallError::Refused { .. } => "either",
            CallError::ProviderPause(ProviderPause::Refused { .. }) => "refused",
            CallError::ProviderPause(ProviderPause::Down { .. }) => "down",
            CallError::ProviderPause(_) => "other",
        };
        assert_eq!(found, blame, "{status} {body}");
    }
}

#[test]
fn what_is_not_set_is_not_sent() {
    let schema = Schema(&[]);
    let bare = generation_config("gemini-flash-latest", schema, Tuning::default());
    let keys: Vec<&String> = bare.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["responseMimeType", "responseSchema"]);
    let thinking = Some(crate::llm::config::Thinking::Low);
    let tuning = Tuning { temperature: Some(1.0), max_output_tokens: Some(9000), thinking };
    let tuned = generation_config("gemini-flash-latest", schema, tuning);
    assert_eq!(
        (&tuned["temperature"], &tuned["maxOutputTokens"], &tuned["thinkingConfig"]),
        (&json!(1.0), &json!(9000), &json!({ "thinkingLevel": "low" }))
    );
    let older = generation_config("gemini-2.5-flash-lite", schema, tuning);
    assert_eq!(older["thinkingConfig"], json!({ "thinkingBudget": 1024 }), "a level is an error there");
}

#[test]
fn a_quota_that_no_day_brings_is_not_one_of_the_day() {
    let quota = |limit: &str| {
        let message =
            format!("You exceeded your current quota.\n* Quota exceeded for metric: requests, {limit}");
        let details =
            json!([{ "violations": [{ "quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier" }] }]);
        json!({ "error": { "status": "RESOURCE_EXHAUSTED", "message": message, "details": details } })
    };
    let credit = json!({ "error": { "status": "RESOURCE_EXHAUSTED", "message": "Your prepayment credits are depleted." } });
    for (body, because) in [
        (quota("limit: 0, model: gemini-3-pro\nPlease retry in 20.04s."), "refused"),
        (quota("limit: 0"), "refused"),
        (quota("limit: 20, model: gemini-3-flash"), "used up"),
        (quota("limit: 0.5"), "used up"),
        (credit, "locked"),
    ] {
        let found = match judged(429, body.clone()) {
            CallError::ProviderPause(ProviderPause::Refused { .. }) => "refused",
            CallError::ProviderPause(ProviderPause::UsedUp { .. }) => "used up",
            CallError::ProviderPause(ProviderPause::Locked { .. }) => "locked",
            other => panic!("{body}: {other:?}"),
        };
        assert_eq!(found, because, "{body}");
    }
}
