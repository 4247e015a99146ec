//! Files for a model that takes text only: what they say, and for PDFs that say nothing, why.

use std::path::PathBuf;

use super::super::call::{CallError, Rest};
use super::super::{Content, Document, File};
use crate::parse::decode::{self, decode};
use crate::parse::pdf;
use crate::text;

/// The media type of PDFs.
pub(super) const PDF: &str = "application/pdf";
/// The most of one file that is put into a prompt, in characters.
const MAX_FILE_CHARS: usize = 40_000;
/// The most of all files together.
const MAX_CHARS: usize = 120_000;
/// The longest name of a file that is shown, in columns.
const MAX_NAME: usize = 200;

/// The document with the text of its PDFs in their place.
///
/// A file that is gone from the disk stays as it is, for [`show`] to complain about.
pub(in crate::llm) async fn read_pdfs(document: &Document) -> Document {
    let mut document = document.clone();
    for file in &mut document.files {
        if let Content::Saved { path, media_type: PDF, .. } = &file.content
            && let Some(content) = read_pdf(path.clone()).await
        {
            file.content = content;
        }
    }
    document
}

async fn read_pdf(path: PathBuf) -> Option<Content> {
    let limit = pdf::Limit { chars: MAX_FILE_CHARS, ..pdf::Limit::default() };
    let read = tokio::task::spawn_blocking(move || {
        let bytes = std::fs::read(path).ok()?;
        Some(pdf::text(&bytes, limit))
    });
    match read.await {
        Ok(Some(Ok(pdf::Text { text, is_cut, .. }))) => Some(Content::Read { text, is_cut }),
        Ok(Some(Err(why))) => Some(Content::Unreadable { why }),
        Ok(None) => None,
        // A panic would be a defect of the reader; it is not to cost the item its summary.
        Err(_) => Some(Content::Unreadable { why: pdf::Error::TooBig }),
    }
}

/// What is put into the prompt: one text per file that has one, with its name before it.
pub(super) async fn show(files: &[File]) -> Result<Vec<String>, CallError> {
    let mut left = MAX_CHARS;
    let mut all = Vec::new();
    for file in files {
        let shown: String = match &file.content {
            Content::Read { text, .. } => text.chars().take(left).collect(),
            Content::Saved { path, media_type, .. } if super::takes(media_type) => {
                let gone = |error| Rest::down(format!("a fetched file cannot be read: {error}"));
                let bytes = tokio::fs::read(path).await.map_err(gone)?;
                let decoded = decode(&bytes, None, decode::Kind::Plain);
                decoded.text.chars().take(left.min(MAX_FILE_CHARS)).collect()
            }
            _ => continue,
        };
        left -= shown.chars().count();
        if !shown.is_empty() {
            let name = text::shorten(&text::one_line(&file.name), MAX_NAME);
            all.push(format!("[{name}]\n{shown}"));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, text: String) -> File {
        File { name: name.to_owned(), bytes: None, content: Content::Read { text, is_cut: false } }
    }

    #[tokio::test]
    async fn files_are_named_and_all_of_them_together_are_limited() {
        let long = "あ".repeat(MAX_FILE_CHARS);
        let files: Vec<File> = (0..5).map(|number| read(&format!("別紙\n{number}"), long.clone())).collect();
        let shown = show(&files).await.unwrap();
        assert_eq!(shown.len(), 3);
        assert!(shown[0].starts_with("[別紙 0]\nああ"), "{}", &shown[0][..30]);
    }

    #[tokio::test]
    async fn a_pdf_is_read_or_its_silence_explained() {
        let folder = tempfile::tempdir().unwrap();
        let fixtures = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/pdf");
        let saved = |path: PathBuf| File {
            name: "別紙".to_owned(),
            bytes: None,
            content: Content::Saved { path, media_type: PDF, hash: String::new() },
        };
        let picture = folder.path().join("picture.pdf");
        std::fs::write(&picture, "%PDF-1.4\n%%EOF").unwrap();
        let files = vec![
            saved(fixtures.join("chromium.pdf")),
            saved(fixtures.join("qpdf_encrypted.pdf")),
            saved(picture),
            saved(folder.path().join("gone.pdf")),
        ];
        let document = read_pdfs(&Document { files, ..Document::default() }).await;
        let contents: Vec<&Content> = document.files.iter().map(|file| &file.content).collect();
        assert!(
            matches!(contents[0], Content::Read { text, is_cut: false } if text.contains("調査結果：48％"))
        );
        assert_eq!(*contents[1], Content::Unreadable { why: pdf::Error::Encrypted });
        assert_eq!(*contents[2], Content::Unreadable { why: pdf::Error::NoText { unreadable: 0 } });
        assert!(show(&document.files).await.is_err(), "a file that is gone is no document without text");
    }
}
