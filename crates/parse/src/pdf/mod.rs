//! The text of a PDF, for readers that cannot open one.
//!
//! ```text
//! bytes ─ document (objects by number) ─ pages ─ content (operators) ─ font (codes → characters) ─ layout (lines)
//! ```
//!
//! Files come from the open web: everything is counted (decoded bytes, objects, depth, work), a broken file gives what
//! can be read of it, and nothing panics. Text comes in the order in which it was written, line by line as it was set.

mod budget;
mod cmap;
mod content;
mod crypt;
mod document;
mod encoding;
mod filter;
mod font;
mod layout;
mod lexer;
mod marks;
mod matrix;
mod object;
mod pages;
mod predictor;
mod state;
#[cfg(test)]
mod tests;
mod widths;

use budget::WorkBudget;
use content::ContentReader;
use document::PdfDocument;

/// What reading one file may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The most characters of text.
    pub chars: usize,
    /// The most bytes that all streams together may decode to.
    pub decoded_bytes: usize,
    /// The most steps, roughly bytes that are looked at.
    pub work: u64,
}

impl Default for Limit {
    fn default() -> Self {
        Self { chars: 1_000_000, decoded_bytes: 64 * 1024 * 1024, work: 150_000_000 }
    }
}

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PdfText {
    /// The text: lines as they were set, an empty line after each page, U+FFFD where glyphs cannot be read.
    pub text: String,
    /// How many pages the file has.
    pub pages: usize,
    /// How many glyphs could not be read, because the file does not say what they stand for.
    pub unreadable: usize,
    /// Whether a limit was met and there may be more.
    pub is_cut: bool,
}

/// Why there is no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The file is something else.
    #[error("this is no PDF")]
    NotPdf,
    /// The file is encrypted and asks for a password, or for a way of opening it that we do not know.
    #[error("the PDF is encrypted and does not open without a password")]
    Encrypted,
    /// The limits were met before any text was found.
    #[error("the PDF takes more work to read than it may")]
    TooBig,
    /// Nothing can be read: pictures only, or glyphs that are not explained.
    #[error("the PDF has no text that can be read: {}", self.unreadable_reason())]
    NoText {
        /// How many glyphs could not be read; without any, the pages are pictures or empty.
        unreadable: usize,
    },
}

impl Error {
    fn unreadable_reason(&self) -> &'static str {
        match self {
            Error::NoText { unreadable: 0 } => "its pages are pictures or empty",
            _ => "its fonts do not say which characters they show",
        }
    }
}

/// Reads the text of a file.
pub fn text(bytes: &[u8], limit: Limit) -> Result<PdfText, Error> {
    if !bytes[..bytes.len().min(1024)].windows(5).any(|part| part == b"%PDF-") {
        return Err(Error::NotPdf);
    }
    let document = PdfDocument::scan(bytes, WorkBudget::new(limit.work, limit.decoded_bytes))?;
    let pages = pages::list(&document);
    let mut reader = ContentReader::new(&document, limit.chars);
    let mut shared = pages::LastResources::default();
    for page in &pages {
        let (content, resources) = page.read(&document, &mut shared);
        if reader.read_page(&content, &resources).is_none() {
            break;
        }
    }
    let is_cut = document.budget.is_cut();
    let layout = reader.layout;
    if layout.readable == 0 {
        let unreadable = layout.unreadable;
        return Err(if is_cut && unreadable == 0 { Error::TooBig } else { Error::NoText { unreadable } });
    }
    let text = layout.text.trim_end().to_owned();
    Ok(PdfText { text, pages: pages.len(), unreadable: layout.unreadable, is_cut })
}
