//! The descriptor of a kind of model provider; `KINDS` in the parent module lists them.

use std::borrow::Cow;
use std::time::Duration;

use async_trait::async_trait;

use super::ModelInput;
use super::call::{CallError, Line, Question, Reply};
use super::config::ProviderKeys;
use crate::config::{Flag, Kind, Problems, Section};
use crate::fetch::SecretHint;
use crate::phrase::Phrase;

/// A kind of model provider.
pub struct ProviderKind {
    /// Its name in the config file, and the struct of its table.
    pub keys: Kind,
    /// What it is, in a few words for questions.
    pub about: fn() -> Phrase,
    /// What `init` asks for.
    pub flags: &'static [Flag],
    /// Where its secrets come from.
    pub secrets: &'static [SecretHint],
    /// The zone in which the provider's day begins; that of `[app]` if `None`.
    pub(super) zone: Option<&'static str>,
    /// Whether each model has its own limits: if one is used up, others can still be called.
    pub(super) limits_each_model: bool,
    /// Opens a provider from its table.
    pub(super) open: fn(&Section) -> Result<Opened, Problems>,
}

/// A provider, and the settings that all kinds have.
pub(super) struct Opened {
    pub(super) provider: Box<dyn Provider>,
    pub(super) screen_model: String,
    pub(super) summary_model: String,
    pub(super) shared: ProviderKeys,
}

/// The service of a provider.
#[async_trait]
pub(super) trait Provider: Send + Sync {
    /// Whether the model reads files of this type.
    fn takes(&self, media_type: &str) -> bool;

    /// Converts the document into what the model accepts.
    async fn prepare<'a>(&self, document: &'a ModelInput) -> Cow<'a, ModelInput> {
        Cow::Borrowed(document)
    }

    /// Calls the model once.
    async fn call(&self, line: &Line<'_>, question: &Question<'_>) -> Result<Reply, CallError>;

    /// The available models; `None` if the service cannot list them, as some local ones.
    async fn list_models(&self, line: &Line<'_>, within: Duration) -> Result<Option<Vec<String>>, CallError>;

    /// Whether the provider has the model, also if it does not list it.
    async fn knows(&self, line: &Line<'_>, model: &str, within: Duration) -> Result<bool, CallError>;

    /// The key for comparing; empty if it is unavailable.
    fn key_text(&self) -> String;

    /// The address of the API.
    fn address(&self) -> &str;

    /// Other settings that change its requests, for comparing.
    fn request_settings(&self) -> String {
        String::new()
    }
}
