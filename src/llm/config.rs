//! `[llm.NAME]`: what the config file says about a model provider.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::Secret;
use crate::config::value::{ByteSize, HttpUrl, Span};

/// `[llm.NAME] kind = "gemini"`: Google's Gemini API.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GeminiConfig {
    /// The API key; it travels in a header only.
    pub api_key: Secret,
    /// The model that screens; default `"gemini-2.5-flash-lite"`.
    pub screen_model: Option<String>,
    /// The model that summarises; default `"gemini-2.5-flash"`.
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
