//! `[llm.NAME]`: what the config file says about a model provider.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::Secret;
use crate::config::value::{ByteSize, HttpUrl, Span};

/// `[llm.NAME] kind = "gemini"`: Google's Gemini API.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GeminiConfig {
    /// The API key; it travels in a header only.
    pub api_key: Secret,
    /// The model that screens; default `"gemini-flash-lite-latest"`.
    pub screen_model: Option<String>,
    /// The model that summarises; default `"gemini-flash-latest"`.
    pub summary_model: Option<String>,
    /// Where the API is; default `"https://generativelanguage.googleapis.com"`.
    pub base_url: Option<HttpUrl>,
    /// The `[quota.NAME]` that requests are counted in; default: the one named as this provider, if there is one.
    pub quota: Option<String>,
    /// How many tokens and requests may be used.
    #[serde(default)]
    pub budget: BudgetKeys,
    /// Files up to this size together travel inside the request, larger ones through the Files API; default `"15 MiB"`.
    pub inline_max: Option<ByteSize>,
    /// How freely the model words its answers, from 0 to 2; default: the model's own, which newer models want left alone.
    pub temperature: Option<f64>,
    /// The most tokens of an answer, thoughts included; default: the model's own. An answer that was cut off is asked for
    /// once more with four times as many.
    pub max_output_tokens: Option<u32>,
    /// How much the model thinks before it answers: `"minimal"`, `"low"`, `"medium"` or `"high"`; default: the model's own.
    pub thinking: Option<Thinking>,
    /// How long one answer may take; default `"2m"`.
    pub timeout: Option<Span>,
    /// Private addresses that this provider may be at, such as `["127.0.0.1"]`.
    #[serde(default)]
    pub allow_private: Vec<String>,
}

/// `[llm.NAME] kind = "openai"`: any service that speaks OpenAI's chat completions, local ones included.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenAiConfig {
    /// The API key; local services often need none.
    pub api_key: Option<Secret>,
    /// The model that screens.
    pub screen_model: String,
    /// The model that summarises; default: the one that screens.
    pub summary_model: Option<String>,
    /// Where the API is; default `"https://api.openai.com/v1"`.
    pub base_url: Option<HttpUrl>,
    /// The `[quota.NAME]` that requests are counted in; default: the one named as this provider, if there is one.
    pub quota: Option<String>,
    /// How many tokens and requests may be used.
    #[serde(default)]
    pub budget: BudgetKeys,
    /// How freely the model words its answers, from 0 to 2; default: the model's own, which newer models want left alone.
    pub temperature: Option<f64>,
    /// The most tokens of an answer, thoughts included; default: the model's own. An answer that was cut off is asked for
    /// once more with four times as many.
    pub max_output_tokens: Option<u32>,
    /// How much the model thinks before it answers: `"minimal"`, `"low"`, `"medium"` or `"high"`; default: the model's own.
    pub thinking: Option<Thinking>,
    /// How long one answer may take; default `"2m"`.
    pub timeout: Option<Span>,
    /// Private addresses that this provider may be at, such as `["127.0.0.1"]`.
    #[serde(default)]
    pub allow_private: Vec<String>,
}

/// `budget = { … }`: what is not set is not limited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BudgetKeys {
    /// Tokens a day, all jobs together.
    pub tokens_per_day: Option<u64>,
    /// Tokens a day for each job.
    pub tokens_per_job: Option<u64>,
    /// Requests a day for each job.
    pub requests_per_job: Option<u64>,
}

/// `thinking = "…"`: how much a model thinks before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Thinking {
    /// Hardly at all.
    Minimal,
    /// A little.
    Low,
    /// Some.
    Medium,
    /// As much as it can.
    High,
}

/// What a request says about how to answer; what is not set is not sent, since models differ in what they take.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Tuning {
    pub(super) temperature: Option<f64>,
    pub(super) max_output_tokens: Option<u32>,
    pub(super) thinking: Option<Thinking>,
}

impl Tuning {
    /// The same with more room for an answer that was cut off, if the room is ours to give.
    pub(super) fn with_more_room(self) -> Option<Self> {
        let more = self.max_output_tokens?.saturating_mul(4);
        Some(Self { max_output_tokens: Some(more), ..self })
    }
}

impl From<&GeminiConfig> for Tuning {
    fn from(keys: &GeminiConfig) -> Self {
        let GeminiConfig { temperature, max_output_tokens, thinking, .. } = *keys;
        Self { temperature, max_output_tokens, thinking }
    }
}

impl From<&OpenAiConfig> for Tuning {
    fn from(keys: &OpenAiConfig) -> Self {
        let OpenAiConfig { temperature, max_output_tokens, thinking, .. } = *keys;
        Self { temperature, max_output_tokens, thinking }
    }
}
