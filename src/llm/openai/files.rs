//! Files for a model that accepts only text: their text, or why a PDF has none.

use std::path::PathBuf;

use super::super::call::{CallError, ProviderPause};
use super::super::{Content, File, ModelInput};
use crate::parse::decode::{self, decode};
use crate::parse::pdf;
use crate::phrase;
use crate::text;

pub(super) const PDF: &str = "application/pdf";
/// The most characters of one file in a prompt.
const MAX_FILE_CHARS: usize = 40_000;
/// The most characters of all files together.
const MAX_CHARS: usize = 120_000;
/// The longest file name in a prompt, in columns.
const MAX_NAME: usize = 200;

/// Replaces PDFs and text files by their text, as much of it as fits into a prompt.
///
/// A file that is gone from the disk is kept, and [`show`] reports it.
pub(super) async fn read_files(document: &ModelInput) -> ModelInput {
    let mut document = document.clone();
    let mut left = MAX_CHARS;
    for file in &mut document.files {
        if let Content::Saved { path, media_type, .. } = &file.content
            && super::takes(media_type)
            && let Some(content) = read_file(path.clone(), *media_type == PDF).await
        {
            file.content = within(content, &mut left);
        }
    }
    document
}

async fn read_file(path: PathBuf, is_pdf: bool) -> Option<Content> {
    let limit = pdf::Limit { chars: MAX_FILE_CHARS, ..pdf::Limit::default() };
    let read = tokio::task::spawn_blocking(move || {
        let bytes = std::fs::read(path).ok()?;
        if is_pdf {
            return Some(pdf::text(&bytes, limit).map(|read| (read.text, read.is_cut)));
        }
        Some(Ok((decode(&bytes, None, decode::Kind::Plain).text, false)))
    });
    match read.await {
        Ok(Some(Ok((text, is_cut)))) => Some(Content::Read { text, is_cut }),
        Ok(Some(Err(why))) => Some(Content::Unreadable { why }),
        Ok(None) => None,
        // A panic is a bug of the PDF reader and should not cost the item its summary.
        Err(_) => Some(Content::Unreadable { why: pdf::Error::TooBig }),
    }
}

/// Cuts a text to the limits of one file and of all files; the list of files mentions the cut.
fn within(content: Content, left: &mut usize) -> Content {
    let Content::Read { text, is_cut } = content else { return content };
    let available = MAX_FILE_CHARS.min(*left);
    if available == 0 && !text.is_empty() {
        return Content::TooLarge;
    }
    let end = text.char_indices().nth(available).map(|(place, _)| place);
    let kept = end.map_or(text.as_str(), |end| &text[..end]).to_owned();
    *left -= kept.chars().count();
    Content::Read { text: kept, is_cut: is_cut || end.is_some() }
}

/// The texts for the prompt: one for each file that has text, starting with its name.
pub(super) fn show(files: &[File]) -> Result<Vec<String>, CallError> {
    let mut all = Vec::new();
    for file in files {
        match &file.content {
            Content::Read { text, .. } if !text.is_empty() => {
                let name = text::shorten(&text::one_line(&file.name), MAX_NAME);
                all.push(format!("[{name}]\n{text}"));
            }
            Content::Saved { media_type, .. } if super::takes(media_type) => {
                return Err(ProviderPause::down(phrase!(
                    "a fetched file is gone from the disk",
                    "取得したファイルがディスクからなくなりました"
                ))
                .into());
            }
            _ => {}
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn files_are_named_and_what_is_cut_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let saved = |number: usize| {
            let path = folder.path().join(format!("{number}.txt"));
            std::fs::write(&path, "あ".repeat(MAX_FILE_CHARS - 10 + number)).unwrap();
            let content = Content::Saved { path, media_type: "text/plain", hash: String::new() };
            File { name: format!("別紙\n{number}"), bytes: None, content }
        };
        let files = [0, 20, 0, 0, 0].map(saved).to_vec();
        let document = read_files(&ModelInput { files, ..ModelInput::default() }).await;
        let kept: Vec<Option<(usize, bool)>> = document
            .files
            .iter()
            .map(|file| match &file.content {
                Content::Read { text, is_cut } => Some((text.chars().count(), *is_cut)),
                Content::TooLarge => None,
                other => panic!("{other:?}"),
            })
            .collect();
        let whole = MAX_FILE_CHARS - 10;
        assert_eq!(
            kept,
            [
                Some((whole, false)),
                Some((MAX_FILE_CHARS, true)),
                Some((whole, false)),
                Some((20, true)),
                None
            ]
        );
        let shown = show(&document.files).unwrap();
        assert_eq!(shown.len(), 4);
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
            saved(fixtures.join("qpdf_password.pdf")),
            saved(picture),
            saved(folder.path().join("gone.pdf")),
        ];
        let document = read_files(&ModelInput { files, ..ModelInput::default() }).await;
        let contents: Vec<&Content> = document.files.iter().map(|file| &file.content).collect();
        assert!(
            matches!(contents[0], Content::Read { text, is_cut: false } if text.contains("調査結果：48％"))
        );
        assert_eq!(*contents[1], Content::Unreadable { why: pdf::Error::Encrypted });
        assert_eq!(*contents[2], Content::Unreadable { why: pdf::Error::NoText { unreadable: 0 } });
        assert!(show(&document.files).is_err(), "a file that is gone is no document without text");
    }
}
