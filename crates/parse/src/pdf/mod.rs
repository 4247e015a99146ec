//! Extracts the text of a PDF, for models that cannot open one.
//!
//! ```text
//! bytes ─ document (objects by number) ─ pages ─ content (operators) ─ font (codes → characters) ─ layout (lines)
//! ```
//!
//! Files are untrusted: everything is limited (decoded bytes, objects, depth, work), a broken file is read as far as
//! possible, and nothing panics. Text is returned in the order in which it was written, line by line.

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

/// The limits of reading one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The most characters of text.
    pub chars: usize,
    /// The most bytes of all decoded streams together.
    pub decoded_bytes: usize,
    /// The most steps, roughly bytes processed.
    pub work: u64,
}

impl Default for Limit {
    fn default() -> Self {
        Self { chars: 1_000_000, decoded_bytes: 64 * 1024 * 1024, work: 150_000_000 }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PdfText {
    /// Lines as in the layout, an empty line after each page, U+FFFD for unreadable glyphs.
    pub text: String,
    pub pages: usize,
    /// The number of glyphs whose characters the file does not define.
    pub unreadable: usize,
    /// Whether a limit was reached and text may be missing.
    pub is_cut: bool,
}

/// Why there is no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The file is not a PDF.
    #[error("this is no PDF")]
    NotPdf,
    /// The file is encrypted with a password or by an unknown method.
    #[error("the PDF is encrypted and does not open without a password")]
    Encrypted,
    /// A limit was reached before any text was found.
    #[error("the PDF takes more work to read than it may")]
    TooBig,
    /// There is no readable text: only images, or glyphs without defined characters.
    #[error("the PDF has no text that can be read: {}", self.unreadable_reason())]
    NoText {
        /// The number of unreadable glyphs; if 0, the pages are images or empty.
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

/// Extracts the text of a file.
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
