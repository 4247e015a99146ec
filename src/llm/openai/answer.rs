//! What an answer of an OpenAI-compatible service means.

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

const USUAL_WAIT: Duration = Duration::from_secs(60);
/// Error codes that blame what was asked about.
const ABOUT_THE_DOCUMENT: [&str; 5] = [
    "context_length_exceeded",
    "string_above_max_length",
    "content_policy_violation",
    "content_filter",
    "invalid_prompt",
];

#[derive(Deserialize)]
struct Completion {
    #[serde(default)]
    choices: Vec<CompletionChoice>,
    #[serde(default)]
    usage: Json,
}

#[derive(Deserialize)]
struct CompletionChoice {
    message: CompletionMessage,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct CompletionMessage {
    content: Option<String>,
    refusal: Option<String>,
}

/// The text of an answer, or why there is none that can be used.
pub(super) fn read_reply(body: &[u8]) -> Result<Reply, CallError> {
    let completion: Completion = serde_json::from_slice(body).map_err(|_| ProviderPause::unclear())?;
    let usage = TokenUsage::read(&completion.usage, "prompt_tokens", &["completion_tokens"]);
    let unusable = |why: Phrase, repair| Err(CallError::Unusable { why, usage, repair });
    let Some(choice) = completion.choices.into_iter().next() else {
        return unusable(
            phrase!("the answer is empty: no choice", "回答が空です（候補なし）"),
            Repair::Complain,
        );
    };
    if let Some(refusal) = choice.message.refusal.filter(|refusal| !refusal.is_empty()) {
        return unusable(
            phrase!(
                "the model refused: {said}",
                "モデルが回答を拒否しました：{said}",
                said = quote(&refusal)
            ),
            Repair::None,
        );
    }
    match choice.finish_reason.as_deref() {
        Some("length") => return unusable(cut_off_answer("length"), Repair::MoreRoom),
        Some("content_filter") => {
            return unusable(blocked_answer("content_filter"), Repair::None);
        }
        _ => {}
    }
    match choice.message.content.filter(|text| !text.trim().is_empty()) {
        Some(text) => Ok(Reply { text, usage }),
        None => unusable(empty_answer(), Repair::Complain),
    }
}

/// What a refused request means.
pub(super) fn judge(answer: &ApiReply) -> CallError {
    let body: Json = serde_json::from_slice(&answer.body).unwrap_or_default();
    let message = body["error"]["message"].as_str().or_else(|| body["error"].as_str()).unwrap_or_default();
    let code = body["error"]["code"].as_str().unwrap_or_default();
    let param = body["error"]["param"].as_str().unwrap_or_default();
    let why = refusal(answer.status, message);
    match answer.status {
        401 | 403 => ProviderPause::Locked { why }.into(),
        404 => ProviderPause::Refused { why: unknown_model(why) }.into(),
        429 if code == "insufficient_quota" || message.contains("per day") => {
            ProviderPause::UsedUp { why }.into()
        }
        429 => ProviderPause::Busy { why, after: answer.retry_after.unwrap_or(USUAL_WAIT) }.into(),
        413 => CallError::Unusable { why, usage: TokenUsage::Nothing, repair: Repair::None },
        400 | 422 if ABOUT_THE_DOCUMENT.contains(&code) || message.contains("context length") => {
            CallError::Unusable { why, usage: TokenUsage::Nothing, repair: Repair::None }
        }
        400 | 422 if !param.is_empty() && !param.starts_with("messages") => {
            ProviderPause::Refused { why }.into()
        }
        400 | 422 if code == "model_not_found" => ProviderPause::Refused { why }.into(),
        400 | 422 => CallError::Refused { why },
        _ => ProviderPause::Down { why, after: answer.retry_after, may_have_counted: false }.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn reply(body: Json) -> Result<Reply, CallError> {
        read_reply(body.to_string().as_bytes())
    }

    fn choice(message: Json, finish: &str) -> Json {
        json!({ "choices": [{ "message": message, "finish_reason": finish }],
                "usage": { "prompt_tokens": 7, "completion_tokens": 3 } })
    }

    #[test]
    fn a_finished_answer_is_read_and_others_say_why_not() {
        let good = reply(choice(json!({ "content": "{}" }), "stop")).unwrap();
        assert_eq!((good.text.as_str(), good.usage), ("{}", TokenUsage::Tokens { input: 7, output: 3 }));
        for (body, repair) in [
            (choice(json!({ "content": "{" }), "length"), Repair::MoreRoom),
            (choice(json!({ "content": "" }), "stop"), Repair::Complain),
            (choice(json!({ "content": null, "refusal": "no" }), "stop"), Repair::None),
            (choice(json!({ "content": "x" }), "content_filter"), Repair::None),
            (json!({ "choices": [] }), Repair::Complain),
        ] {
            match reply(body.clone()) {
                Err(CallError::Unusable { repair: found, .. }) => assert_eq!(found, repair, "{body}"),
                other => panic!("{body}: {other:?}"),
            }
        }
        let unreadable = read_reply(b"<html>").unwrap_err();
        assert!(
            matches!(&unreadable, CallError::ProviderPause(pause) if pause.may_have_counted()),
            "{unreadable:?}"
        );
    }

    #[test]
    fn a_refusal_says_whether_the_request_or_the_document_is_wrong() {
        let error =
            |code: Json, param: Json| json!({ "error": { "message": "m", "code": code, "param": param } });
        for (status, body, blame) in [
            (400, error(json!("unsupported_parameter"), json!("temperature")), "request"),
            (400, error(json!(null), json!("response_format.json_schema")), "request"),
            (400, error(json!("model_not_found"), json!(null)), "request"),
            (404, error(json!("model_not_found"), json!(null)), "request"),
            (400, error(json!("context_length_exceeded"), json!("messages")), "document"),
            (413, json!({}), "document"),
            (400, error(json!(null), json!(null)), "either"),
            (422, json!({ "detail": [] }), "either"),
        ] {
            let body = body.to_string();
            let reply = ApiReply { status, body: body.clone().into(), ..ApiReply::default() };
            let found = match judge(&reply) {
                CallError::ProviderPause(ProviderPause::Refused { .. }) => "request",
                CallError::Unusable { .. } => "document",
                CallError::Refused { .. } => "either",
                CallError::ProviderPause(_) => "rest",
            };
            assert_eq!(found, blame, "{status} {body}");
        }
    }

    #[test]
    fn an_answer_that_does_not_say_its_cost_is_good_all_the_same() {
        for usage in [
            json!(null),
            json!({}),
            json!([]),
            json!("none"),
            json!({ "prompt_tokens": null, "completion_tokens": "9" }),
            json!({ "prompt_tokens": 0, "completion_tokens": 0 }),
        ] {
            let mut body = choice(json!({ "content": "{}" }), "stop");
            body["usage"] = usage.clone();
            assert_eq!(
                reply(body).unwrap(),
                Reply { text: "{}".into(), usage: TokenUsage::Unsaid },
                "{usage}"
            );
        }
        let mut body = choice(json!({ "content": "{" }), "length");
        body.as_object_mut().unwrap().remove("usage");
        assert!(matches!(reply(body), Err(CallError::Unusable { usage: TokenUsage::Unsaid, .. })));
        let boast = json!({ "prompt_tokens": u64::MAX, "completion_tokens": u64::MAX });
        let (input, output) = TokenUsage::read(&boast, "prompt_tokens", &["completion_tokens"]).said();
        assert!(input == output && input < 1 << 40, "it cannot overflow a sum: {input}");
    }
}
