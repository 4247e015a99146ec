//! What a kind of model provider says of itself in its own folder; `KINDS` in the folder above lists them.

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
    /// Its name in the config file, and the struct that its table is read into.
    pub keys: Kind,
    /// What it is, in a few words for questions.
    pub about: fn() -> Phrase,
    /// What `init` asks for.
    pub flags: &'static [Flag],
    /// Where its secrets come from.
    pub secrets: &'static [SecretHint],
    /// The zone whose midnight begins a day of the provider; that of `[app]` when it has none.
    pub(super) zone: Option<&'static str>,
    /// Whether each model has limits of its own: then one that is used up keeps no other from being asked.
    pub(super) limits_each_model: bool,
    /// Reads its table.
    pub(super) open: fn(&Section) -> Result<Opened, Problems>,
}

/// A provider, and what its table says that all of them know.
pub(super) struct Opened {
    pub(super) provider: Box<dyn Provider>,
    pub(super) screen_model: String,
    pub(super) summary_model: String,
    pub(super) shared: ProviderKeys,
}

/// The other side.
#[async_trait]
pub(super) trait Provider: Send + Sync {
    /// Whether the model reads files of this type.
    fn takes(&self, media_type: &str) -> bool;

    /// The document as the model can take it.
    async fn prepare<'a>(&self, document: &'a ModelInput) -> Cow<'a, ModelInput> {
        Cow::Borrowed(document)
    }

    /// Asks once.
    async fn call(&self, line: &Line<'_>, question: &Question<'_>) -> Result<Reply, CallError>;

    /// The models that can be asked, as the provider lists them; `None` if it lists none, as some local ones do.
    async fn list_models(&self, line: &Line<'_>, within: Duration) -> Result<Option<Vec<String>>, CallError>;

    /// Whether the provider knows the model, also when it does not list it.
    async fn knows(&self, line: &Line<'_>, model: &str, within: Duration) -> Result<bool, CallError>;

    /// The key for comparing, empty when it cannot be had.
    fn key_text(&self) -> String;

    /// Where the API is.
    fn address(&self) -> &str;

    /// What else of its table changes its requests, for comparing.
    fn way_to_ask(&self) -> String {
        String::new()
    }
}
