//! Chat completions as defined by OpenAI: its own service, and compatible or local ones.

mod answer;
mod files;

use std::borrow::Cow;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use url::Url;

use self::answer::{judge, read_reply};
use super::ModelInput;
use super::call::{CallError, Line, Question, Reply, bad_base_url, secret_header};
use super::config::{Thinking, provider_config};
use super::provider::{Opened, Provider, ProviderKind};
use super::schema::Schema;
use crate::config::value::HttpUrl;
use crate::config::{Flag, Kind, Problems, Secret, Section, TableKind};
use crate::fetch::SecretHint;
use crate::phrase;

const API: &str = "https://api.openai.com/v1";

/// Whether files of this type can be put into the prompt: text, and the text of PDFs.
fn takes(media_type: &str) -> bool {
    media_type.starts_with("text/") || media_type == files::PDF
}

/// OpenAI and compatible services.
pub(super) const KIND: ProviderKind = ProviderKind {
    keys: Kind::llm::<OpenAiConfig>("openai").naming(&[("quota", TableKind::Quota)]),
    about: || {
        phrase!(
            "OpenAI, or any service that speaks its API, local ones included",
            "OpenAI または互換 API（ローカルも可）"
        )
    },
    flags: &[
        Flag::new("screen-model", "MODEL", || phrase!("the model", "モデルの名前"))
            .writes("screen_model")
            .required(),
        Flag::new("base-url", "URL", || {
            phrase!("the address of the API, if it is not OpenAI's", "API の URL（OpenAI 以外の場合）")
        })
        .writes("base_url"),
        Flag::variable("api-key-env", "api_key", "OPENAI_API_KEY", || {
            phrase!("the environment variable that holds the API key", "API キーを入れた環境変数の名前")
        }),
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
        /// Whether it takes a JSON schema for its answers (`response_format`); default `true`. With `false` the schema is put into
        /// the instructions, for services that refuse it.
        pub json_schema: Option<bool>,
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

    fn request_settings(&self) -> String {
        format!("{:?}", self.config.json_schema)
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
        let mut system = prompt.system_with(complaint);
        let response_format = if self.config.json_schema == Some(false) {
            let schema = serde_json::to_string(&prompt.schema).unwrap_or_default();
            system = format!("{system}\n\nJSON Schema: {schema}");
            ResponseFormat { kind: "json_object", json_schema: None }
        } else {
            let schema = NamedSchema { name: prompt.purpose.word(), strict: true, schema: prompt.schema };
            ResponseFormat { kind: "json_schema", json_schema: Some(schema) }
        };
        let body = Body {
            model,
            messages: [
                json!({ "role": "system", "content": system }),
                json!({ "role": "user", "content": text }),
            ],
            temperature: tuning.temperature,
            max_completion_tokens: tuning.max_output_tokens,
            reasoning_effort: tuning.thinking,
            response_format,
        };
        let url = self.url("chat/completions")?;
        let request = self.signed(line.client(&url)?.post(url).json(&body))?;
        let answer = line.ask(request, self.config.timeout(), judge).await?;
        read_reply(&answer)
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

/// A request. A struct rather than a map, so that the fields of the schema keep their order.
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
    #[serde(skip_serializing_if = "Option::is_none")]
    json_schema: Option<NamedSchema>,
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
