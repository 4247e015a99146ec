//! Chat completions as OpenAI defines them: its own service, and every compatible or local one.

pub(super) mod files;

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value as Json, json};
use url::Url;

use super::File;
use super::call::{Answer, CallError, Line, Reply, Rest, Spent, quote, secret_header};
use super::config::OpenAiConfig;
use super::prompt::Prompt;

const API: &str = "https://api.openai.com/v1";
const USUAL_WAIT: Duration = Duration::from_secs(60);

/// Whether files of this type are put into the prompt: text, and the text of PDFs.
pub(super) fn takes(media_type: &str) -> bool {
    media_type.starts_with("text/") || media_type == files::PDF
}

#[derive(Debug)]
pub(super) struct OpenAi {
    config: OpenAiConfig,
    timeout: Duration,
}

impl OpenAi {
    pub(super) fn new(config: OpenAiConfig, timeout: Duration) -> Self {
        Self { config, timeout }
    }

    /// The key for comparing, empty when it cannot be had.
    pub(super) fn key_text(&self) -> String {
        let key = self.config.api_key.as_ref().and_then(|key| key.reveal().ok());
        key.map(|key| key.expose().to_owned()).unwrap_or_default()
    }

    pub(super) fn address(&self) -> &str {
        self.config.base_url.as_ref().map_or(API, |url| url.as_str())
    }

    /// Whether the provider takes our key and knows the model; nothing is asked of it. Many compatible services list
    /// no models, so a 404 says nothing.
    pub(super) async fn look(&self, line: &Line<'_>, model: &str, within: Duration) -> Result<(), CallError> {
        let mut url = Url::parse(&format!("{}/models/", self.address().trim_end_matches('/')))
            .map_err(|error| Rest::down(format!("`base_url` does not work: {error}")))?;
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().push(model);
        }
        let mut request = line.client(&url)?.get(url);
        if let Some(key) = &self.config.api_key {
            request = request.header(reqwest::header::AUTHORIZATION, secret_header(key, "Bearer ")?);
        }
        let answer = line.send(request, within).await?;
        if answer.is_success() || matches!(answer.status, 404 | 405) { Ok(()) } else { Err(judge(&answer)) }
    }

    pub(super) async fn call(
        &self,
        line: &Line<'_>,
        model: &str,
        prompt: &Prompt,
        files: &[File],
        complaint: Option<&str>,
    ) -> Result<Reply, CallError> {
        let mut text = prompt.text.clone();
        for shown in files::show(files)? {
            text.push_str(&prompt.fenced("FILE", &shown));
        }
        let body = json!({
            "model": model,
            "messages": [
                { "role": "system", "content": prompt.system_with(complaint) },
                { "role": "user", "content": text },
            ],
            "temperature": 0.2,
            "max_tokens": prompt.max_output_tokens,
            "response_format": {
                "type": "json_schema",
                "json_schema": { "name": prompt.purpose.as_str(), "strict": true, "schema": prompt.schema },
            },
        });
        let url = Url::parse(&format!("{}/chat/completions", self.address().trim_end_matches('/')))
            .map_err(|error| Rest::down(format!("`base_url` does not work: {error}")))?;
        let mut request = line.client(&url)?.post(url).json(&body);
        if let Some(key) = &self.config.api_key {
            request = request.header(reqwest::header::AUTHORIZATION, secret_header(key, "Bearer ")?);
        }
        let answer = line.send(request, self.timeout).await?;
        if !answer.is_success() {
            return Err(judge(&answer));
        }
        read_reply(&answer.body)
    }
}

#[derive(Deserialize)]
struct Completion {
    #[serde(default)]
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Json,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Message {
    content: Option<String>,
    refusal: Option<String>,
}

fn read_reply(body: &[u8]) -> Result<Reply, CallError> {
    let completion: Completion = serde_json::from_slice(body).map_err(|_| Rest::unclear())?;
    let spent = Spent::read(&completion.usage, "prompt_tokens", &["completion_tokens"]);
    let unusable = |why: String, can_repair| Err(CallError::Unusable { why: quote(&why), spent, can_repair });
    let Some(choice) = completion.choices.into_iter().next() else {
        return unusable("the answer is empty: no choice".to_owned(), true);
    };
    if let Some(refusal) = choice.message.refusal.filter(|refusal| !refusal.is_empty()) {
        return unusable(format!("the model refused: {refusal}"), false);
    }
    match choice.finish_reason.as_deref() {
        Some("length") => return unusable("the answer was cut off (length)".to_owned(), true),
        Some("content_filter") => {
            return unusable("the answer was blocked (content_filter)".to_owned(), false);
        }
        _ => {}
    }
    match choice.message.content.filter(|text| !text.trim().is_empty()) {
        Some(text) => Ok(Reply { text, spent }),
        None => unusable("the answer is empty".to_owned(), true),
    }
}

fn judge(answer: &Answer) -> CallError {
    let body: Json = serde_json::from_slice(&answer.body).unwrap_or_default();
    let message = body["error"]["message"].as_str().or_else(|| body["error"].as_str()).unwrap_or_default();
    let code = body["error"]["code"].as_str().unwrap_or_default();
    let why = quote(&format!("status {}: {message}", answer.status));
    match answer.status {
        401 | 403 => Rest::Locked { why }.into(),
        404 => Rest::Lost { why: format!("there is no such model or API: {why}") }.into(),
        429 if code == "insufficient_quota" || message.contains("per day") => Rest::UsedUp { why }.into(),
        429 => Rest::Busy { why, after: answer.retry_after().unwrap_or(USUAL_WAIT) }.into(),
        400 | 413 | 422 => CallError::Unusable { why, spent: Spent::Nothing, can_repair: false },
        _ => Rest::Down { why, after: answer.retry_after(), may_have_counted: false }.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!((good.text.as_str(), good.spent), ("{}", Spent::Tokens { input: 7, output: 3 }));
        for (body, can_repair) in [
            (choice(json!({ "content": "{" }), "length"), true),
            (choice(json!({ "content": "" }), "stop"), true),
            (choice(json!({ "content": null, "refusal": "no" }), "stop"), false),
            (choice(json!({ "content": "x" }), "content_filter"), false),
            (json!({ "choices": [] }), true),
        ] {
            match reply(body.clone()) {
                Err(CallError::Unusable { can_repair: found, .. }) => assert_eq!(found, can_repair, "{body}"),
                other => panic!("{body}: {other:?}"),
            }
        }
        let unreadable = read_reply(b"<html>").unwrap_err();
        assert!(matches!(&unreadable, CallError::Rest(rest) if rest.may_have_counted()), "{unreadable:?}");
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
            assert_eq!(reply(body).unwrap(), Reply { text: "{}".into(), spent: Spent::Unsaid }, "{usage}");
        }
        let mut body = choice(json!({ "content": "{" }), "length");
        body.as_object_mut().unwrap().remove("usage");
        assert!(matches!(reply(body), Err(CallError::Unusable { spent: Spent::Unsaid, .. })));
        let boast = json!({ "prompt_tokens": u64::MAX, "completion_tokens": u64::MAX });
        let (input, output) = Spent::read(&boast, "prompt_tokens", &["completion_tokens"]).said();
        assert!(input == output && input < 1 << 40, "it cannot overflow a sum: {input}");
    }
}
