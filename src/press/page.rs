//! The page of an item: fetched, decoded, its main block and the files it links to.

use reqwest::header::CONTENT_LENGTH;
use url::Url;

use super::Press;
use super::model::Item;
use crate::fetch::{self, Request, Response};
use crate::hash;
use crate::llm::{Content, Document, File};
use crate::parse::html::Html;

/// The most files of a page that are looked at.
pub(super) const MAX_FILES: usize = 10;
/// What is kept of a page in memory, in characters; more never reaches a model.
const MAX_TEXT_CHARS: usize = 100_000;

/// A page as far as it matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    /// Its main text.
    pub(super) text: String,
    /// The files it links to, in order.
    pub(super) files: Vec<Linked>,
    /// Changes when text or files change.
    pub(super) hash: String,
}

/// A file that a page links to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Linked {
    pub(super) url: Url,
    pub(super) name: String,
    /// In lower case.
    pub(super) extension: String,
    /// As the server tells without sending it.
    pub(super) bytes: Option<u64>,
}

impl Page {
    /// What a model is shown when only names of files matter.
    pub(super) fn document(&self, item: &Item) -> Document {
        let named =
            |file: &Linked| File { name: file.name.clone(), bytes: file.bytes, content: Content::Named };
        Document {
            title: item.title.clone(),
            text: self.text.clone(),
            files: self.files.iter().map(named).collect(),
        }
    }
}

/// Fetches the page of an item and asks for the sizes of its files.
pub(super) async fn fetch(press: &Press, item: &Item) -> Result<Page, fetch::Error> {
    let url = Url::parse(&item.url).map_err(|error| fetch::Error::BadUrl { why: error.to_string() })?;
    let request = Request::get(url).allow_private(&press.allow_private);
    let (head, body) = match press.parts.fetcher.fetch(&request).await? {
        Response::Fetched(head, body) => (head, body),
        Response::Unchanged(_) => {
            return Err(fetch::Error::Broken { host: String::new(), why: "nothing was sent".to_owned() });
        }
    };
    let (text, mut files) = match body.starts_with(b"%PDF-") {
        // Some feeds link to the document itself.
        true => {
            let bytes = Some(body.len() as u64);
            let linked =
                Linked { url: head.final_url, name: item.title.clone(), extension: "pdf".to_owned(), bytes };
            (String::new(), vec![linked])
        }
        false => {
            let content_type = head.content_type().map(str::to_owned);
            // Reading a large page takes a while and is no work for the threads that wait for sockets.
            let (selector, extensions) = (press.keys.content.clone(), press.keys.attachments.clone());
            tokio::task::spawn_blocking(move || {
                read(&body, content_type.as_deref(), &head.final_url, selector.as_deref(), &extensions)
            })
            .await
            .map_err(|_| fetch::Error::Broken {
                host: String::new(),
                why: "the page cannot be read".to_owned(),
            })?
        }
    };
    files.truncate(MAX_FILES);
    for file in &mut files {
        if file.bytes.is_none() {
            file.bytes = find_size(press, &file.url).await;
        }
    }
    let hash = hash_of(&text, &files);
    Ok(Page { text, files, hash })
}

fn read(
    body: &[u8],
    content_type: Option<&str>,
    url: &Url,
    selector: Option<&str>,
    extensions: &[String],
) -> (String, Vec<Linked>) {
    let html = Html::read(body, content_type, Some(url));
    let text = html.main_text(selector).unwrap_or_default();
    let text = text.chars().take(MAX_TEXT_CHARS).collect();
    let files = html.attachments(extensions, selector).unwrap_or_default();
    let linked = files.into_iter().filter_map(|file| {
        let url = Url::parse(&file.href).ok()?;
        Some(Linked { url, name: file.title, extension: file.extension, bytes: None })
    });
    (text, linked.collect())
}

/// The size of a file, if its server tells it; a failure tells nothing.
async fn find_size(press: &Press, url: &Url) -> Option<u64> {
    let request = Request::head(url.clone()).allow_private(&press.allow_private);
    let response = press.parts.fetcher.fetch(&request).await.ok()?;
    response.head().headers.get(CONTENT_LENGTH)?.to_str().ok()?.trim().parse().ok()
}

fn hash_of(text: &str, files: &[Linked]) -> String {
    let mut parts: Vec<&str> = vec![text];
    for file in files {
        parts.extend([file.url.as_str(), &file.name]);
    }
    hash::sha256_parts(&parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shift_jis_page_gives_its_main_block_and_its_files() {
        let html = "<html><head><meta charset=\"Shift_JIS\"><title>報道</title></head><body><nav>案内</nav>\
            <div id=\"contents\"><h1>調査①の結果</h1><p>㈱例の調査を公表します。</p>\
            <a href=\"/f/report.pdf\">報告書（PDF）</a> <a href=\"data.xlsx\">表</a></div>\
            <a href=\"/other.pdf\">別のPDF</a></body></html>";
        let (bytes, _, _) = encoding_rs::SHIFT_JIS.encode(html);
        let url = Url::parse("https://ministry.example/news/1.html").unwrap();
        let extensions = ["pdf".to_owned()];
        let (text, files) = read(&bytes, None, &url, Some("#contents"), &extensions);
        assert!(text.contains("調査①の結果") && text.contains("㈱例") && !text.contains("案内"), "{text}");
        assert_eq!(files.len(), 1);
        assert_eq!(files[0].url.as_str(), "https://ministry.example/f/report.pdf");
        let (_, all) = read(&bytes, None, &url, None, &extensions);
        assert_eq!(all.len(), 2, "without a selector the whole page counts");
    }
}
