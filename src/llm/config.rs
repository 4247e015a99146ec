//! `[llm.NAME]`: what the config file says about a model provider.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Writes a provider's config struct: its own keys first, then those that every provider has.
///
/// `serde(flatten)` would lose the positions of mistakes, so the shared keys are stamped into each struct.
macro_rules! provider_config {
    ($(#[$attribute:meta])* pub struct $name:ident { $($(#[$field_attribute:meta])* pub $field:ident: $type:ty,)* }) => {
        $(#[$attribute])*
        #[derive(Clone, Debug, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub(super) struct $name {
            $($(#[$field_attribute])* pub(super) $field: $type,)*
            /// The `[quota.NAME]` that requests are counted in; default: the one named as this provider, if there is one. Those to a model
            /// that has a `[quota.NAME]` of its own name are counted there, too.
            pub(super) quota: Option<String>,
            /// How many tokens and requests may be used.
            #[serde(default)]
            pub(super) budget: crate::llm::config::BudgetKeys,
            /// How freely the model words its answers, from 0 to 2; default: the model's own, which newer models want left alone.
            pub(super) temperature: Option<f64>,
            /// The most tokens of an answer, thoughts included; default: the model's own. An answer that was cut off is
            /// requested once more with four times as many.
            pub(super) max_output_tokens: Option<u32>,
            /// How much the model thinks before it answers: `"minimal"`, `"low"`, `"medium"` or `"high"`; default: the model's own.
            pub(super) thinking: Option<crate::llm::config::Thinking>,
            /// How long one answer may take; default `"2m"`.
            pub(super) timeout: Option<crate::config::value::Span>,
            /// Private addresses that this provider may be at, such as `["127.0.0.1"]`.
            #[serde(default)]
            pub(super) allow_private: Vec<String>,
        }

        impl $name {
            fn timeout(&self) -> std::time::Duration {
                self.timeout.map_or(crate::llm::config::TIMEOUT, Into::into)
            }

            fn shared(&self) -> crate::llm::config::ProviderKeys {
                crate::llm::config::ProviderKeys {
                    quota: self.quota.clone(),
                    budget: self.budget.clone(),
                    allow_private: self.allow_private.clone(),
                    tuning: crate::llm::config::Tuning {
                        temperature: self.temperature,
                        max_output_tokens: self.max_output_tokens,
                        thinking: self.thinking,
                    },
                }
            }
        }
    };
}
pub(super) use provider_config;

/// How long an answer may take unless the config says otherwise.
pub(super) const TIMEOUT: Duration = Duration::from_secs(120);

/// What every provider's table can say.
pub(super) struct ProviderKeys {
    pub(super) quota: Option<String>,
    pub(super) budget: BudgetKeys,
    pub(super) allow_private: Vec<String>,
    pub(super) tuning: Tuning,
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
