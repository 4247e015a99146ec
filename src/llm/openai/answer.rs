//! Interprets the answers of OpenAI-compatible services.

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
/// Error codes that blame the document.
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
    content: Option<MessageContent>,
    refusal: Option<String>,
}

/// Most services send text, some a list of parts including thoughts.
#[derive(Deserialize)]
#[serde(untagged)]
enum MessageContent {
    Text(String),
    List(Vec<Json>),
}

impl MessageContent {
    fn text(self) -> String {
        match self {
            MessageContent::Text(text) => text,
            MessageContent::List(parts) => parts
                .iter()
                .filter(|part| part["type"] == "text")
                .filter_map(|part| part["text"].as_str())
                .collect(),
        }
    }
}

/// The text of an answer, or why there is none that can be used.
pub(super) fn read_reply(reply: &ApiReply) -> Result<Reply, CallError> {
    // Services that forward requests may answer with status 200 and an error in the body.
    if let Ok(Failed { error }) = serde_json::from_slice(&reply.body)
        && error.is_object()
    {
        let status = error["code"].as_u64().and_then(|code| code.try_into().ok()).unwrap_or(500);
        return Err(judge(&ApiReply { status, ..reply.clone() }));
    }
    read_completion(&reply.body)
}

#[derive(Deserialize)]
struct Failed {
    error: Json,
}

fn read_completion(body: &[u8]) -> Result<Reply, CallError> {
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
                "the model refused: {message}",
                "モデルが回答を拒否しました：{message}",
                message = quote(&refusal)
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
    match choice.message.content.map(MessageContent::text).filter(|text| !text.trim().is_empty()) {
        Some(text) => Ok(Reply { text, usage }),
        None => unusable(empty_answer(), Repair::Complain),
    }
}

/// Interprets an error status.
pub(super) fn judge(answer: &ApiReply) -> CallError {
    let body: Json = serde_json::from_slice(&answer.body).unwrap_or_default();
    // In the form of OpenAI first, then those of local servers and proxies.
    let places = [&body["error"]["message"], &body["error"], &body["message"], &body["detail"]];
    let message = places.into_iter().find_map(Json::as_str).map_or_else(|| answer.text(), str::to_owned);
    let message = message.as_str();
    let code = body["error"]["code"].as_str().unwrap_or_default();
    let param = body["error"]["param"].as_str().unwrap_or_default();
    let why = refusal(answer.status, message);
    match answer.status {
        // 402: the credit is used up.
        401..=403 => ProviderPause::Locked { why }.into(),
        404 => ProviderPause::Refused { why: unknown_model(why) }.into(),
        // The same; waiting for the next day does not help.
        429 if code == "insufficient_quota" => ProviderPause::Locked { why }.into(),
        429 if message.contains("per day") => ProviderPause::UsedUp { why }.into(),
        // This request alone exceeds a limit per minute, so it always would.
        429 if message.starts_with("Request too large") => {
            CallError::Unusable { why, usage: TokenUsage::Nothing, repair: Repair::None }
        }
        429 => {
            let after = answer.retry_after.unwrap_or(USUAL_WAIT);
            ProviderPause::Busy { why, after, counts_tokens: message.contains("tokens per min") }.into()
        }
        413 => CallError::Unusable { why, usage: TokenUsage::Nothing, repair: Repair::None },
        400 | 422
            if ABOUT_THE_DOCUMENT.contains(&code)
                || ["context length", "context size"].iter().any(|words| message.contains(words)) =>
        {
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
        read_body(body.to_string())
    }

    fn read_body(body: String) -> Result<Reply, CallError> {
        read_reply(&ApiReply { status: 200, body: body.into(), ..ApiReply::default() })
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
        let unreadable = read_body("<html>".to_owned()).unwrap_err();
        assert!(
            matches!(&unreadable, CallError::ProviderPause(pause) if pause.may_have_counted()),
            "{unreadable:?}"
        );
    }

    #[test]
    fn what_other_services_make_of_the_api_is_read() {
        let parts = json!([{ "type": "thinking", "thinking": [{ "type": "text", "text": "hm" }] },
                           { "type": "text", "text": "{\"a\":" }, { "type": "text", "text": "1}" }]);
        assert_eq!(reply(choice(json!({ "content": parts }), "stop")).unwrap().text, "{\"a\":1}");
        let passed_on =
            json!({ "id": "x", "choices": [], "error": { "code": 429, "message": "upstream is busy" } });
        assert!(matches!(reply(passed_on), Err(CallError::ProviderPause(ProviderPause::Busy { .. }))));
        let mut null = choice(json!({ "content": "{}" }), "stop");
        null["error"] = json!(null);
        assert_eq!(reply(null).unwrap().text, "{}");
        let judged = |status, body: &str| {
            judge(&ApiReply { status, body: body.to_owned().into(), ..ApiReply::default() })
        };
        for (status, body, message) in [
            (400, r#"{"object":"error","message":"no such field","code":400}"#, "HTTP 400: no such field"),
            (422, r#"{"detail":"bad body"}"#, "HTTP 422: bad body"),
            (502, "Bad gateway", "HTTP 502: Bad gateway"),
        ] {
            match judged(status, body) {
                CallError::Refused { why } | CallError::ProviderPause(ProviderPause::Down { why, .. }) => {
                    assert_eq!(why.to_string(), message);
                }
                other => panic!("{other:?}"),
            }
        }
        for (status, body) in [
            (
                429,
                r#"{"error":{"message":"Request too large for m in organization o on tokens per min (TPM): Limit 30000, Requested 45000.","code":"rate_limit_exceeded"}}"#,
            ),
            (
                400,
                r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}"#,
            ),
        ] {
            assert!(matches!(judged(status, body), CallError::Unusable { .. }), "{body}");
        }
        let spent = r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#;
        for (status, body) in [(402, "{}"), (429, spent)] {
            let judged = judged(status, body);
            assert!(matches!(judged, CallError::ProviderPause(ProviderPause::Locked { .. })), "{judged:?}");
        }
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
                Reply { text: "{}".into(), usage: TokenUsage::Unreported },
                "{usage}"
            );
        }
        let mut body = choice(json!({ "content": "{" }), "length");
        body.as_object_mut().unwrap().remove("usage");
        assert!(matches!(reply(body), Err(CallError::Unusable { usage: TokenUsage::Unreported, .. })));
        let boast = json!({ "prompt_tokens": u64::MAX, "completion_tokens": u64::MAX });
        let (input, output) = TokenUsage::read(&boast, "prompt_tokens", &["completion_tokens"]).counts();
        assert!(input == output && input < 1 << 40, "it cannot overflow a sum: {input}");
    }
}
