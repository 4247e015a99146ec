//! Gemini: generateContent with structured output, small files inside the request, larger ones through the Files API.

use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use url::Url;

use super::Content;
use super::call::{CallError, Line, ProviderPause, Question, Reply, bad_base_url, secret_header};
use super::config::{Thinking, Tuning, provider_config};
use super::provider::{Opened, Provider, ProviderKind};
use super::schema::Schema;
use crate::config::value::{ByteSize, HttpUrl};
use crate::config::{Flag, Kind, Problems, Secret, Section, TableKind};
use crate::fetch::SecretHint;
use crate::phrase;

mod files;
mod reply;

use reply::{judge, read_reply};

const API: &str = "https://generativelanguage.googleapis.com";
/// The header of the key, which is never part of an address.
const KEY_HEADER: &str = "x-goog-api-key";
/// Size of the files that are sent within a request.
const INLINE_MAX: u64 = 15 * 1024 * 1024;
/// Pages of the list of models to read at most.
const MAX_MODEL_PAGES: usize = 20;

fn takes(media_type: &str) -> bool {
    media_type == "application/pdf" || media_type.starts_with("text/") || media_type.starts_with("image/")
}

/// Google's Gemini.
pub(super) const KIND: ProviderKind = ProviderKind {
    keys: Kind::llm::<GeminiConfig>("gemini").naming(&[("quota", TableKind::Quota)]),
    about: || phrase!("Google's Gemini", "Google の Gemini"),
    flags: &[Flag::variable("api-key-env", "api_key", "GEMINI_API_KEY", || {
        phrase!("the environment variable that holds the API key", "API キーを入れた環境変数の名前")
    })
    .required()],
    secrets: &[SecretHint {
        key: "api_key",
        check: "",
        en: "make a key at https://aistudio.google.com/apikey",
        ja: "https://aistudio.google.com/apikey で API キーを作ります",
    }],
    zone: Some("America/Los_Angeles"),
    limits_each_model: true,
    open,
};

provider_config! {
    /// `[llm.NAME] kind = "gemini"`: Google's Gemini API.
    pub struct GeminiConfig {
        /// The API key; it travels in a header only.
        pub api_key: Secret,
        /// The model that screens; default `"gemini-flash-lite-latest"`.
        pub screen_model: Option<String>,
        /// The model that summarises; default `"gemini-flash-latest"`.
        pub summary_model: Option<String>,
        /// Where the API is; default `"https://generativelanguage.googleapis.com"`.
        pub base_url: Option<HttpUrl>,
        /// Files up to this size together travel inside the request, larger ones through the Files API; default `"15 MiB"`.
        pub inline_max: Option<ByteSize>,
    }
}

struct Gemini {
    config: GeminiConfig,
}

fn open(section: &Section) -> Result<Opened, Problems> {
    let config: GeminiConfig = section.keys().cloned()?;
    let model = |key: &str, wanted: &Option<String>, usual: &str| {
        let model = wanted.as_deref().unwrap_or(usual);
        if model.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_')) {
            Ok(model.to_owned())
        } else {
            let message =
                phrase!("`{model}` is not the name of a model", "`{model}` はモデルの名前ではありません");
            Err(Problems::from(section.problem(key, message)))
        }
    };
    Ok(Opened {
        screen_model: model("screen_model", &config.screen_model, "gemini-flash-lite-latest")?,
        summary_model: model("summary_model", &config.summary_model, "gemini-flash-latest")?,
        shared: config.shared(),
        provider: Box::new(Gemini { config }),
    })
}

#[async_trait]
impl Provider for Gemini {
    fn takes(&self, media_type: &str) -> bool {
        takes(media_type)
    }

    fn key_text(&self) -> String {
        self.config.api_key.reveal().map(|key| key.expose().to_owned()).unwrap_or_default()
    }

    fn address(&self) -> &str {
        self.config.base_url.as_ref().map_or(API, |url| url.as_str())
    }

    async fn list_models(&self, line: &Line<'_>, within: Duration) -> Result<Option<Vec<String>>, CallError> {
        let mut names = Vec::new();
        let mut page: Option<String> = None;
        for _ in 0..MAX_MODEL_PAGES {
            let mut url = self.url("v1beta/models?pageSize=1000")?;
            if let Some(token) = &page {
                url.query_pairs_mut().append_pair("pageToken", token);
            }
            let request = line.client(&url)?.get(url).header(KEY_HEADER, self.key()?);
            let answer = line.ask(request, within, judge).await?;
            let listed: ModelList =
                serde_json::from_slice(&answer.body).map_err(|_| ProviderPause::unclear())?;
            names.extend(listed.models.into_iter().filter(Model::answers).map(Model::into_name));
            page = listed.next_page_token.filter(|token| !token.is_empty());
            if page.is_none() {
                break;
            }
        }
        Ok(Some(names))
    }

    async fn knows(&self, line: &Line<'_>, model: &str, within: Duration) -> Result<bool, CallError> {
        let url = self.url(&format!("v1beta/models/{model}"))?;
        let request = line.client(&url)?.get(url).header(KEY_HEADER, self.key()?);
        let answer = line.send(request, within).await?;
        match answer.status {
            404 => Ok(false),
            _ if answer.is_success() => Ok(true),
            _ => Err(judge(&answer)),
        }
    }

    async fn call(&self, line: &Line<'_>, question: &Question<'_>) -> Result<Reply, CallError> {
        let Question { prompt, files, .. } = *question;
        let inline_max = self.config.inline_max.map_or(INLINE_MAX, ByteSize::as_u64);
        let saved = || {
            files.iter().filter(
                |file| matches!(&file.content, Content::Saved { media_type, .. } if takes(media_type)),
            )
        };
        let is_inline = saved().map(|file| file.bytes.unwrap_or(0)).sum::<u64>() <= inline_max;
        let mut uploaded = Vec::new();
        let mut parts = vec![json!({ "text": prompt.text })];
        let outcome = async {
            for file in saved() {
                let Content::Saved { path, media_type, .. } = &file.content else { continue };
                if is_inline {
                    let bytes = tokio::fs::read(path).await.map_err(|error| lost(&error))?;
                    parts.push(
                        json!({ "inlineData": { "mimeType": media_type, "data": BASE64.encode(bytes) } }),
                    );
                } else {
                    let upload = self.upload(line, path, media_type).await?;
                    parts.push(
                        json!({ "fileData": { "mimeType": media_type, "fileUri": upload.uri.clone() } }),
                    );
                    uploaded.push(upload);
                }
            }
            self.generate(line, question, parts).await
        }
        .await;
        for upload in uploaded {
            self.delete(line, &upload).await;
        }
        outcome
    }
}

impl Gemini {
    async fn generate(
        &self,
        line: &Line<'_>,
        question: &Question<'_>,
        parts: Vec<Json>,
    ) -> Result<Reply, CallError> {
        let Question { model, prompt, tuning, complaint, .. } = *question;
        let body = json!({
            "systemInstruction": { "parts": [{ "text": prompt.system_with(complaint) }] },
            "contents": [{ "role": "user", "parts": parts }],
            "generationConfig": generation_config(model, prompt.schema, tuning),
        });
        let url = self.url(&format!("v1beta/models/{model}:generateContent"))?;
        let request = line.client(&url)?.post(url).header(KEY_HEADER, self.key()?).json(&body);
        let answer = line.ask(request, self.config.timeout(), judge).await?;
        read_reply(&answer.body)
    }

    fn key(&self) -> Result<reqwest::header::HeaderValue, CallError> {
        secret_header(&self.config.api_key, "")
    }

    fn url(&self, path: &str) -> Result<Url, CallError> {
        Url::parse(&format!("{}/{path}", self.address().trim_end_matches('/')))
            .map_err(|error| bad_base_url(&error))
    }
}

fn lost(error: &std::io::Error) -> CallError {
    ProviderPause::down(phrase!(
        "a fetched file cannot be read: {error}",
        "取得したファイルを読み込めません：{error}",
        error = error.to_string()
    ))
    .into()
}

/// The form of the answer. Options that are not set are left to the model: newer models answer badly at other
/// temperatures than their own.
fn generation_config(model: &str, schema: Schema, tuning: Tuning) -> Json {
    let mut config = json!({
        "responseMimeType": "application/json",
        "responseSchema": schema.to_gemini(),
    });
    if let Some(temperature) = tuning.temperature {
        config["temperature"] = json!(temperature);
    }
    if let Some(tokens) = tuning.max_output_tokens {
        config["maxOutputTokens"] = json!(tokens);
    }
    if let Some(thinking) = tuning.thinking {
        config["thinkingConfig"] = if model.starts_with("gemini-2") {
            json!({ "thinkingBudget": thinking_budget(thinking) })
        } else {
            json!({ "thinkingLevel": thinking })
        };
    }
    config
}

/// The tokens of a thinking level, for older models without levels: values that all of them accept.
fn thinking_budget(thinking: Thinking) -> u32 {
    match thinking {
        Thinking::Minimal => 512,
        Thinking::Low => 1024,
        Thinking::Medium => 8192,
        Thinking::High => 24_576,
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ModelList {
    #[serde(default)]
    models: Vec<Model>,
    next_page_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Model {
    name: String,
    #[serde(default)]
    supported_generation_methods: Vec<String>,
}

impl Model {
    fn answers(&self) -> bool {
        self.supported_generation_methods.iter().any(|method| method == "generateContent")
    }

    fn into_name(self) -> String {
        self.name.strip_prefix("models/").map(str::to_owned).unwrap_or(self.name)
    }
}

#[cfg(test)]
mod tests;
