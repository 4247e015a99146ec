//! The control question: a failure that says nothing of its cause is about the document if the provider takes another one
//! that cannot be to blame.

use std::io::Write as _;

use super::budget::Reserved;
use super::call::{CallError, Question, Reply};
use super::prompt;
use super::{AskError, AskOptions, Content, File, Llm, ModelInput, Purpose};
use crate::hash;
use crate::id::JobName;

/// One page that says that it is a test.
const PDF: &[u8] = include_bytes!("control.pdf");

impl Llm {
    /// Asks about a harmless document in the same way as about one that failed. `None` if the provider takes it; otherwise
    /// what was reserved for the question, since our requests as such are refused.
    pub(super) async fn ask_control(
        &self,
        job: &JobName,
        failed: &Question<'_>,
        options: &AskOptions,
    ) -> Result<Option<Reserved>, AskError> {
        let (model, purpose) = (failed.model, failed.prompt.purpose);
        let has_file = failed.files.iter().any(|file| matches!(file.content, Content::Saved { .. }));
        // The file is deleted with `saved`, after the answer.
        let saved = has_file.then(save).flatten();
        let files = saved.iter().map(|(_, file)| file.clone()).collect();
        let document = ModelInput { title: "Test".to_owned(), text: "This is a test.".to_owned(), files };
        let prompt = match purpose {
            Purpose::Screen => prompt::screening(&document, options),
            Purpose::Summary => prompt::summary(&document, options, |media_type| self.takes(media_type)),
        };
        let question = Question {
            model,
            prompt: &prompt,
            files: &document.files,
            tuning: failed.tuning,
            complaint: None,
        };
        let reserved = self.reserve(job, &question).await?;
        match self.provider.call(&self.line(), &question).await {
            Ok(Reply { usage, .. }) | Err(CallError::Unusable { usage, .. }) => {
                self.record_usage(reserved, (purpose, ""), usage, None).await?;
                Ok(None)
            }
            Err(CallError::Refused { .. }) => Ok(Some(reserved)),
            Err(CallError::ProviderPause(pause)) => {
                Err(AskError::Paused(self.pause(reserved, model, pause).await?))
            }
        }
    }
}

/// A file to ask about; without a place for it the question has none.
fn save() -> Option<(tempfile::NamedTempFile, File)> {
    let mut saved = tempfile::NamedTempFile::new().ok()?;
    saved.write_all(PDF).ok()?;
    let content = Content::Saved {
        path: saved.path().to_owned(),
        media_type: "application/pdf",
        hash: hash::sha256_hex(PDF),
    };
    let file = File { name: "test.pdf".to_owned(), bytes: u64::try_from(PDF.len()).ok(), content };
    Some((saved, file))
}
