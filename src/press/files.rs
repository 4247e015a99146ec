//! Fetches the files of a page into the workspace, and checks that their content matches their extension.

use std::io::Read as _;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::Press;
use super::page::{Linked, MAX_FILES, nothing_sent};
use super::step::DownloadFailure;
use super::workspace::Workspace;
use crate::fetch::limits::Size;
use crate::fetch::{Error, Limits, Request, Response};
use crate::hash;
use crate::llm::{Content, File, Llm};
use crate::phrase;
use crate::phrase::Phrase;

/// Why there is no file to summarise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoFiles {
    /// A file could not be fetched.
    Failed(DownloadFailure),
    /// Every file is too large.
    AllTooLarge,
}

/// What to do about a file that cannot be fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// Defer the item: the file may appear later.
    PutsOff,
    /// Continue without the file.
    IsLeftOut,
}

/// Fetches the files that the model can read. The others, and all beyond the first [`MAX_FILES`], are only listed by
/// name and size.
///
/// `has_text`: whether the page has text besides its files.
pub(super) async fn fetch_all(
    press: &Press,
    llm: &Llm,
    linked: &[Linked],
    workspace: &Workspace,
    broken: Broken,
    has_text: bool,
) -> Result<Vec<File>, NoFiles> {
    let mut files = Vec::with_capacity(linked.len());
    for (number, file) in linked.iter().enumerate() {
        let media_type = media_type_of(&file.extension);
        let (bytes, content) = if number >= MAX_FILES || !llm.takes(media_type) {
            (file.bytes, Content::Named)
        } else if file.bytes.is_some_and(|bytes| bytes > press.keys.max_file.as_u64()) {
            (file.bytes, Content::TooLarge)
        } else {
            match fetch_one(press, file, media_type, &workspace.file(number)).await {
                Ok((bytes, content)) => (Some(bytes), content),
                Err(Error::TooBig { limit: Size::Body(_) | Size::Wire(_) }) => {
                    (file.bytes, Content::TooLarge)
                }
                Err(_) if broken == Broken::IsLeftOut => (file.bytes, Content::Missing),
                Err(error) => {
                    let why = phrase!(
                        "{name}: {error}",
                        "{name}：{error}",
                        name = &file.name,
                        error = error.phrase()
                    );
                    return Err(NoFiles::Failed(DownloadFailure::described_as(why, &error)));
                }
            }
        };
        files.push(File { name: file.name.clone(), bytes, content });
    }
    let tried = &files[..files.len().min(MAX_FILES)];
    let any = |wanted: fn(&Content) -> bool| tried.iter().any(|file| wanted(&file.content));
    let is_readable = any(|content| matches!(content, Content::Saved { .. } | Content::Named));
    if !tried.is_empty() && !is_readable {
        if tried.iter().all(|file| file.content == Content::TooLarge) {
            return Err(NoFiles::AllTooLarge);
        }
        if !has_text {
            let why = phrase!("no file could be fetched", "ファイルを 1 つも取得できませんでした");
            return Err(NoFiles::Failed(DownloadFailure::of_content(why)));
        }
    }
    Ok(files)
}

async fn fetch_one(
    press: &Press,
    file: &Linked,
    media_type: &'static str,
    path: &Path,
) -> Result<(u64, Content), Error> {
    let broken =
        |why: Phrase| Error::Broken { host: file.url.host_str().unwrap_or_default().to_owned(), why };
    let limits = Limits::default().with_body_bytes(press.keys.max_file.as_u64());
    let request = Request::get(file.url.clone()).allow_private(&press.allow_private).limits(limits);
    let (head, saved) = match press.env.fetcher.fetch_to_file(&request, path).await? {
        Response::Fetched(head, saved) => (head, saved),
        Response::Unchanged(_) => return Err(broken(nothing_sent())),
    };
    let says_html = head
        .content_type()
        .is_some_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with("text/html"));
    let owned = path.to_owned();
    let read = tokio::task::spawn_blocking(move || read_beginning(&owned)).await;
    let (beginning, hash) =
        read.map_err(|_| broken(phrase!("it cannot be read", "読み込めません")))?.map_err(Error::Disk)?;
    if !is_what_it_says(media_type, &beginning, says_html) {
        let why = if says_html || looks_like_html(&beginning) {
            phrase!("a web page came in place of the file", "ファイルではなく Web ページが返されました")
        } else {
            phrase!("something else came in place of the file", "ファイルではなく別のものが返されました")
        };
        return Err(broken(why));
    }
    Ok((saved.bytes, Content::Saved { path: path.to_owned(), media_type, hash }))
}

/// The first bytes of a file, and the hash of all of them.
fn read_beginning(path: &Path) -> std::io::Result<(Vec<u8>, String)> {
    let mut file = std::fs::File::open(path)?;
    let mut hasher = Sha256::new();
    let mut beginning = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            return Ok((beginning, hash::to_hex(&hasher.finalize())));
        }
        hasher.update(&buffer[..count]);
        if beginning.len() < 1024 {
            beginning.extend_from_slice(&buffer[..count.min(1024)]);
        }
    }
}

fn media_type_of(extension: &str) -> &'static str {
    match extension {
        "pdf" => "application/pdf",
        "txt" | "csv" | "tsv" | "md" => "text/plain",
        "htm" | "html" => "text/html",
        "xml" => "text/xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        _ => "application/octet-stream",
    }
}

/// Whether the first bytes match the extension: an error page is not a PDF, whatever its address says.
fn is_what_it_says(media_type: &str, beginning: &[u8], says_html: bool) -> bool {
    let has = |magic: &[u8]| beginning.starts_with(magic);
    match media_type {
        "application/pdf" => beginning[..beginning.len().min(1024)].windows(5).any(|part| part == b"%PDF-"),
        "image/png" => has(b"\x89PNG"),
        "image/jpeg" => has(b"\xff\xd8\xff"),
        "image/webp" => has(b"RIFF"),
        "text/html" => true,
        _ => !says_html && !looks_like_html(beginning),
    }
}

fn looks_like_html(beginning: &[u8]) -> bool {
    let text =
        String::from_utf8_lossy(&beginning[..beginning.len().min(256)]).trim_start().to_ascii_lowercase();
    text.starts_with("<!doctype html") || text.starts_with("<html")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_what_its_first_bytes_say() {
        for (media_type, bytes, says_html, fits) in [
            ("application/pdf", &b"%PDF-1.7\n"[..], false, true),
            ("application/pdf", b"\xef\xbb\xbf\n%PDF-1.4", true, true),
            ("application/pdf", b"<!DOCTYPE html><title>404</title>", false, false),
            ("application/pdf", b"", false, false),
            ("text/plain", b"a,b\n1,2", false, true),
            ("text/plain", b"a,b\n1,2", true, false),
            ("text/plain", b"  <HTML>", false, false),
            ("image/png", b"GIF89a", false, false),
        ] {
            assert_eq!(is_what_it_says(media_type, bytes, says_html), fits, "{media_type} {bytes:?}");
        }
    }
}
