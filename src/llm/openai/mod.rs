//! Chat completions as OpenAI defines them: its own service, and every compatible or local one.

mod files;

use std::borrow::Cow;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use url::Url;

use super::ModelInput;
use super::call::{
    CallError, Line, ProviderPause, Question, Repair, Reply, TokenUsage, bad_base_url, blocked_answer,
    cut_off_answer, empty_answer, quote, refusal, secret_header, unknown_model,
};
use super::config::{Thinking, provider_config};
use super::provider::{Opened, Provider, ProviderKind};
use super::schema::Schema;
use crate::config::value::HttpUrl;
use crate::config::{Flag, FlagShape, Kind, Problems, Secret, Section, TableKind};
use crate::fetch::{ApiReply, SecretHint};
use crate::phrase;
use crate::phrase::Phrase;

const API: &str = "https://api.openai.com/v1";
const USUAL_WAIT: Duration = Duration::from_secs(60);
/// Error codes that blame what was asked about.
const ABOUT_THE_DOCUMENT: [&str; 5] = [
    "context_length_exceeded",
    "string_above_max_length",
    "content_policy_violation",
    "content_filter",
    "invalid_prompt",
];

/// Whether files of this type are put into the prompt: text, and the text of PDFs.
fn takes(media_type: &str) -> bool {
    media_type.starts_with("text/") || media_type == files::PDF
}

/// OpenAI and everybody who speaks as it does.
pub(super) const KIND: ProviderKind = ProviderKind {
    keys: Kind::llm::<OpenAiConfig>("openai").naming(&[("quota", TableKind::Quota)]),
    about: || {
        phrase!(
            "OpenAI, or any service that speaks its API, local ones included",
            "OpenAI または互換 API（ローカルも可）"
        )
    },
    flags: &[
        Flag {
            name: "screen-model",
            value: "MODEL",
            help: || phrase!("the model", "モデルの名前"),
            key: "screen_model",
            shape: FlagShape::Text,
            is_required: true,
        },
        Flag {
            name: "base-url",
            value: "URL",
            help: || {
                phrase!("the address of the API, if it is not OpenAI's", "API の URL（OpenAI 以外の場合）")
            },
            key: "base_url",
            shape: FlagShape::Text,
            is_required: false,
        },
        Flag {
            name: "api-key-env",
            value: "VARIABLE",
            help: || {
                phrase!("the environment variable that holds the API key", "API キーを入れた環境変数の名前")
            },
            key: "api_key",
            shape: FlagShape::Variable("OPENAI_API_KEY"),
            is_required: false,
        },
    ],
    secrets: &[SecretHint {
        key: "api_key",
        check: "",
        en: "make a key at https://platform.openai.com/api-keys, or where the service of `base_url` is run",
        ja: "https://platform.openai.com/api-keys か、`base_url` のサービスの管理画面で API キーを作ります",
    }],
    zone: None,
    limits_each_model: false,
    open,
};

provider_config! {
    /// `[llm.NAME] kind = "openai"`: any service that speaks OpenAI's chat completions, local ones included.
    pub struct OpenAiConfig {
        /// The API key; local services often need none.
        pub api_key: Option<Secret>,
        /// The model that screens.
        pub screen_model: String,
        /// The model that summarises; default: the one that screens.
        pub summary_model: Option<String>,
        /// Where the API is; default `"https://api.openai.com/v1"`.
        pub base_url: Option<HttpUrl>,
    }
}

struct OpenAi {
    config: OpenAiConfig,
}

fn open(section: &Section) -> Result<Opened, Problems> {
    let config: OpenAiConfig = section.keys().cloned()?;
    let screen_model = config.screen_model.clone();
    Ok(Opened {
        summary_model: config.summary_model.clone().unwrap_or_else(|| screen_model.clone()),
        screen_model,
        shared: config.shared(),
        provider: Box::new(OpenAi { config }),
    })
}

#[async_trait]
impl Provider for OpenAi {
    fn takes(&self, media_type: &str) -> bool {
        takes(media_type)
    }

    async fn prepare<'a>(&self, document: &'a ModelInput) -> Cow<'a, ModelInput> {
        Cow::Owned(files::read_files(document).await)
    }

    fn key_text(&self) -> String {
        let key = self.config.api_key.as_ref().and_then(|key| key.reveal().ok());
        key.map(|key| key.expose().to_owned()).unwrap_or_default()
    }

    fn address(&self) -> &str {
        self.config.base_url.as_ref().map_or(API, |url| url.as_str())
    }

    async fn list_models(&self, line: &Line<'_>, within: Duration) -> Result<Option<Vec<String>>, CallError> {
        let url = self.url("models")?;
        let answer = line.send(self.signed(line.client(&url)?.get(url))?, within).await?;
        match answer.status {
            404 | 405 => Ok(None),
            _ if answer.is_success() => {
                let listed: Option<ModelList> = serde_json::from_slice(&answer.body).ok();
                Ok(listed.map(|listed| listed.data.into_iter().map(|model| model.id).collect()))
            }
            _ => Err(judge(&answer)),
        }
    }

    async fn knows(&self, line: &Line<'_>, model: &str, within: Duration) -> Result<bool, CallError> {
        let mut url = self.url("models/")?;
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().push(model);
        }
        let answer = line.send(self.signed(line.client(&url)?.get(url))?, within).await?;
        match answer.status {
            404 | 405 => Ok(false),
            _ if answer.is_success() => Ok(true),
            _ => Err(judge(&answer)),
        }
    }

    async fn call(&self, line: &Line<'_>, question: &Question<'_>) -> Result<Reply, CallError> {
        let Question { model, prompt, files, tuning, complaint } = *question;
        let mut text = prompt.text.clone();
        for shown in files::show(files)? {
            text.push_str(&prompt.fenced("FILE", &shown));
        }
        let body = Body {
            model,
            messages: [
                json!({ "role": "system", "content": prompt.system_with(complaint) }),
                json!({ "role": "user", "content": text }),
            ],
            temperature: tuning.temperature,
            max_completion_tokens: tuning.max_output_tokens,
            reasoning_effort: tuning.thinking,
            response_format: ResponseFormat {
                kind: "json_schema",
                json_schema: NamedSchema {
                    name: prompt.purpose.as_str(),
                    strict: true,
                    schema: prompt.schema,
                },
            },
        };
        let url = self.url("chat/completions")?;
        let request = self.signed(line.client(&url)?.post(url).json(&body))?;
        let answer = line.ask(request, self.config.timeout(), judge).await?;
        read_reply(&answer.body)
    }
}

impl OpenAi {
    fn url(&self, path: &str) -> Result<Url, CallError> {
        Url::parse(&format!("{}/{path}", self.address().trim_end_matches('/')))
            .map_err(|error| bad_base_url(&error))
    }

    fn signed(&self, request: reqwest::RequestBuilder) -> Result<reqwest::RequestBuilder, CallError> {
        Ok(match &self.config.api_key {
            Some(key) => request.header(reqwest::header::AUTHORIZATION, secret_header(key, "Bearer ")?),
            None => request,
        })
    }
}

/// A question. A struct and no map, so that the fields of the schema leave in their order.
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: [Json; 2],
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<Thinking>,
    response_format: ResponseFormat,
}

#[derive(Serialize)]
struct ResponseFormat {
    #[serde(rename = "type")]
    kind: &'static str,
    json_schema: NamedSchema,
}

#[derive(Serialize)]
struct NamedSchema {
    name: &'static str,
    strict: bool,
    schema: Schema,
}

#[derive(Deserialize)]
struct ModelList {
    data: Vec<Model>,
}

#[derive(Deserialize)]
struct Model {
    id: String,
}

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

fn read_reply(body: &[u8]) -> Result<Reply, CallError> {
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

fn judge(answer: &ApiReply) -> CallError {
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
