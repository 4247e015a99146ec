//! Whether a provider can be asked: its address, our key and the names of its models, without asking a model anything.

use std::time::Duration;

use super::call::{CallError, Line, Rest};
use super::{Llm, Provider};
use crate::fetch::Check;

/// How long a provider has to answer.
const PATIENCE: Duration = Duration::from_secs(15);

impl Llm {
    /// The kind, as in the config file.
    pub fn kind(&self) -> &'static str {
        match &self.provider {
            Provider::Gemini(_) => "gemini",
            Provider::OpenAi(_) => "openai",
        }
    }

    /// Looks whether questions could be asked; costs nothing and counts against no budget.
    pub async fn check(&self) -> Vec<Check> {
        let line = Line { clients: &self.clients, allow_private: &self.allow_private, clock: &self.clock };
        let mut models = vec![&self.screen_model, &self.summary_model];
        models.dedup();
        let mut checks = Vec::new();
        for model in models {
            let looked = match &self.provider {
                Provider::Gemini(gemini) => gemini.look(&line, model, PATIENCE).await,
                Provider::OpenAi(openai) => openai.look(&line, model, PATIENCE).await,
            };
            let check = match looked {
                Ok(()) => Check::fine(model, "the provider answers and takes the key"),
                Err(CallError::Rest(Rest::Locked { why })) => Check::locked(model, why),
                Err(error) => Check::bad(model, words(error)),
            };
            let is_locked = check.is_locked;
            checks.push(check);
            // The same key is refused for the next model as well.
            if is_locked {
                break;
            }
        }
        checks
    }
}

fn words(error: CallError) -> String {
    match error {
        CallError::Unusable { why, .. } => why,
        CallError::Rest(
            Rest::Busy { why, .. }
            | Rest::UsedUp { why }
            | Rest::Down { why, .. }
            | Rest::Locked { why }
            | Rest::Lost { why },
        ) => why,
    }
}
