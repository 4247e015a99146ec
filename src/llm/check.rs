//! Checks whether a provider can be used (its address, our key, the names of its models) without calling a model.

use std::time::Duration;

use super::Llm;
use super::call::{CallError, Line, ProviderPause, quote};
use super::models::suggest;
use crate::fetch::Check;
use crate::phrase;
use crate::phrase::Phrase;

/// How long a provider may take to answer.
const CHECK_TIMEOUT: Duration = Duration::from_secs(15);

impl Llm {
    /// The kind in the config file.
    pub fn kind(&self) -> &'static str {
        self.kind.keys.name
    }

    /// Checks whether requests are possible; costs nothing and counts against no budget.
    pub async fn check(&self) -> Vec<Check> {
        let line = self.line();
        let mut models = vec![&self.screen_model, &self.summary_model];
        models.dedup();
        let listed = match self.provider.list_models(&line, CHECK_TIMEOUT).await {
            Ok(listed) => listed,
            // It would be the same for every model: report it once.
            Err(error) => return vec![failed(&self.screen_model, error)],
        };
        let mut checks = Vec::new();
        for model in models {
            checks.push(match &listed {
                None => Check::fine(
                    model,
                    phrase!(
                        "the provider answers and takes the key; it lists no models",
                        "応答あり、キーは有効です（モデルの一覧はありません）"
                    ),
                ),
                Some(names) if names.contains(model) => Check::fine(model, has_model()),
                Some(names) => self.check_unlisted(&line, model, names).await,
            });
        }
        checks
    }

    /// Checks whether a model exists that is not listed, and suggests others if not.
    async fn check_unlisted(&self, line: &Line<'_>, model: &str, names: &[String]) -> Check {
        match self.provider.knows(line, model, CHECK_TIMEOUT).await {
            Ok(true) => Check::fine(model, has_model()),
            Ok(false) => {
                let key = if model == self.screen_model { "screen_model" } else { "summary_model" };
                let hint = match suggest(model, names).as_slice() {
                    [] => phrase!(
                        "set `{key}` in [llm.{name}] to one that it has",
                        "[llm.{name}] の `{key}` に、あるモデルを指定してください",
                        name = &self.name
                    ),
                    [first, others @ ..] => {
                        let other = |other: &&str| {
                            phrase!(", or \"{other}\"", "、または \"{other}\"", other = quote(other))
                        };
                        let others = others
                            .iter()
                            .map(other)
                            .fold("".into(), |all: Phrase, one| phrase!("{all}{one}", "{all}{one}"));
                        phrase!(
                            "set `{key} = \"{first}\"` in [llm.{name}]{others}",
                            "[llm.{name}] に `{key} = \"{first}\"` と書いてください{others}",
                            first = quote(first),
                            name = &self.name
                        )
                    }
                };
                let detail = phrase!(
                    "the provider has no such model (hint: {hint})",
                    "このモデルはありません（ヒント：{hint}）"
                );
                Check::bad(model, detail)
            }
            Err(error) => failed(model, error),
        }
    }
}

fn has_model() -> Phrase {
    phrase!("the provider takes the key and has the model", "キーは有効で、モデルもあります")
}

fn failed(model: &str, error: CallError) -> Check {
    match error {
        CallError::ProviderPause(ProviderPause::Locked { why }) => Check::locked(model, why),
        error => Check::bad(model, words(error)),
    }
}

fn words(error: CallError) -> Phrase {
    match error {
        CallError::Unusable { why, .. } | CallError::Refused { why } => why,
        CallError::ProviderPause(pause) => pause.into_why(),
    }
}
