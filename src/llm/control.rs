//! The control question: a failure without a stated cause is the document's fault if the provider accepts another,
//! harmless document.

use std::io::Write as _;

use super::budget::Reserved;
use super::call::{CallError, Question, Reply};
use super::prompt;
use super::{AskError, AskOptions, Content, File, Llm, ModelInput, Purpose};
use crate::hash;
use crate::id::JobName;

/// A page with the text of a test.
const PDF: &[u8] = include_bytes!("control.pdf");

impl Llm {
    /// Sends the failed question again with a harmless document. `None` if the provider accepts it; otherwise the
    /// reservation of the question, since the provider rejects our requests as such.
    pub(super) async fn ask_control(
        &self,
        job: &JobName,
        failed: &Question<'_>,
        options: &AskOptions,
    ) -> Result<Option<Reserved>, AskError> {
        let (model, purpose) = (failed.model, failed.prompt.purpose);
        let has_file = failed.files.iter().any(|file| matches!(file.content, Content::Saved { .. }));
        // `saved` deletes the file when it is dropped, after the answer.
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

/// A file for the control question; `None` if it cannot be saved.
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
