//! The page of an item: fetched, decoded, its main block and the files it links to.

use reqwest::header::CONTENT_LENGTH;
use url::Url;

use super::Press;
use super::model::Item;
use crate::fetch::{self, Head, Request, Response};
use crate::hash;
use crate::llm::{Content, File, ModelInput};
use crate::parse::html::Html;
use crate::phrase;
use crate::phrase::Phrase;

/// The most files of a page that are read.
pub(super) const MAX_FILES: usize = 10;
/// The most files of a page that are listed by name.
const MAX_NAMED: usize = 100;
/// A page that forwards later than this is read itself.
const FORWARDS_WITHIN_SECS: u64 = 30;
/// The most forwards in a row that are followed.
const MAX_FORWARDS: usize = 3;
/// The most characters of a page that are kept; more never reaches a model.
const MAX_TEXT_CHARS: usize = 100_000;

/// The relevant parts of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ItemPage {
    pub(super) text: String,
    /// The linked files, in order; the first [`MAX_FILES`] are read.
    pub(super) files: Vec<Linked>,
    /// A hash of text and files.
    pub(super) hash: String,
    /// Whether `content` of the config matches nothing on this page.
    pub(super) lacks_block: bool,
}

/// A file that a page links to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Linked {
    pub(super) url: Url,
    pub(super) name: String,
    /// In lower case.
    pub(super) extension: String,
    /// From a HEAD request.
    pub(super) bytes: Option<u64>,
}

impl ItemPage {
    fn new(text: String, mut files: Vec<Linked>, lacks_block: bool) -> Self {
        files.truncate(MAX_NAMED);
        let hash = hash_of(&text, &files);
        Self { text, files, hash, lacks_block }
    }

    /// A page for a feed entry that links to a file directly.
    fn of_file(title: &str, url: Url, extension: &str, bytes: Option<u64>) -> Self {
        let file = Linked { url, name: title.to_owned(), extension: extension.to_owned(), bytes };
        Self::new(String::new(), vec![file], false)
    }

    /// The input for a model when only the names of files matter.
    pub(super) fn document(&self, item: &Item) -> ModelInput {
        let named =
            |file: &Linked| File { name: file.name.clone(), bytes: file.bytes, content: Content::Named };
        ModelInput {
            title: item.title.clone(),
            text: self.text.clone(),
            files: self.files.iter().map(named).collect(),
        }
    }

    /// The names of the files beyond the limit, which are not read.
    pub(super) fn unread(&self) -> Vec<&str> {
        self.files.iter().skip(MAX_FILES).map(|file| file.name.as_str()).collect()
    }
}

/// Fetches the page of an item and the sizes of its files.
pub(super) async fn fetch(press: &Press, item: &Item) -> Result<ItemPage, fetch::Error> {
    let url =
        Url::parse(&item.url).map_err(|error| fetch::Error::BadUrl { why: error.to_string().into() })?;
    if let Some(extension) = attached_as(&url, &press.keys.attachments) {
        match find_head(press, &url).await {
            Ok(head) if !says_html(&head) => {
                let bytes = length(&head);
                return Ok(ItemPage::of_file(&item.title, head.final_url, &extension, bytes));
            }
            // Some servers refuse HEAD.
            Err(fetch::Error::Refused { .. }) => {
                return Ok(ItemPage::of_file(&item.title, url, &extension, None));
            }
            Ok(_) | Err(_) => {}
        }
    }
    let mut page = read_at(press, &item.title, &url).await?;
    for file in page.files.iter_mut().take(MAX_FILES).filter(|file| file.bytes.is_none()) {
        // Without an answer the size stays unknown.
        file.bytes = find_head(press, &file.url).await.ok().as_ref().and_then(length);
    }
    Ok(page)
}

/// The page of an entry, for a preview; `None` when the entry is a file itself.
pub(super) async fn preview(press: &Press, address: &str) -> Result<Option<ItemPage>, fetch::Error> {
    let url = Url::parse(address).map_err(|error| fetch::Error::BadUrl { why: error.to_string().into() })?;
    match attached_as(&url, &press.keys.attachments) {
        Some(_) => Ok(None),
        None => read_at(press, address, &url).await.map(Some),
    }
}

/// Reads the page at `url`, or the one that it forwards to.
async fn read_at(press: &Press, title: &str, url: &Url) -> Result<ItemPage, fetch::Error> {
    let mut at = url.clone();
    for _ in 0..=MAX_FORWARDS {
        match read_one(press, title, &at).await? {
            PageContent::Page(page) => return Ok(page),
            PageContent::Forward(to) => at = to,
        }
    }
    Err(fetch::Error::TooManyRedirects { limit: MAX_FORWARDS })
}

async fn read_one(press: &Press, title: &str, url: &Url) -> Result<PageContent, fetch::Error> {
    let request = Request::get(url.clone()).allow_private(&press.allow_private);
    let (head, body) = match press.env.fetcher.fetch(&request).await {
        Ok(Response::Fetched(head, body)) => (head, body),
        Ok(Response::Unchanged(_)) => {
            return Err(fetch::Error::Broken { host: String::new(), why: nothing_sent() });
        }
        // A file may be larger than a page; `max_file` limits it.
        Err(error @ fetch::Error::TooBig { .. }) => match find_head(press, url).await {
            Ok(head) if says_pdf(&head) => {
                let bytes = length(&head);
                return Ok(PageContent::Page(ItemPage::of_file(title, head.final_url, "pdf", bytes)));
            }
            _ => return Err(error),
        },
        Err(error) => return Err(error),
    };
    if body.starts_with(b"%PDF-") {
        let bytes = Some(body.len() as u64);
        return Ok(PageContent::Page(ItemPage::of_file(title, head.final_url, "pdf", bytes)));
    }
    let content_type = head.content_type().map(str::to_owned);
    // Parsing a large page takes a while and would block the async threads.
    let (selector, extensions) = (press.keys.content.clone(), press.keys.attachments.clone());
    let broken =
        |why: Phrase| fetch::Error::Broken { host: url.host_str().unwrap_or_default().to_owned(), why };
    let read = tokio::task::spawn_blocking(move || {
        read(&body, content_type.as_deref(), &head.final_url, selector.as_deref(), &extensions)
    });
    read.await
        .map_err(|_| broken(phrase!("the page cannot be read", "ページを読み込めません")))?
        .map_err(broken)
}

/// The parsed content of a page.
enum PageContent {
    Page(ItemPage),
    /// It only forwards to another page.
    Forward(Url),
}

/// Text and files of a page, or why it has none. If `selector` matches nothing, both are taken from the whole page.
fn read(
    body: &[u8],
    content_type: Option<&str>,
    url: &Url,
    selector: Option<&str>,
    extensions: &[String],
) -> Result<PageContent, Phrase> {
    let html = Html::read(body, content_type, Some(url));
    let refresh = html.refresh().filter(|refresh| refresh.after_secs <= FORWARDS_WITHIN_SECS);
    if let Some(to) = refresh.and_then(|refresh| refresh.url.as_ref()).filter(|to| *to != url) {
        return Ok(PageContent::Forward(to.clone()));
    }
    let block = selector.filter(|selector| html.has_block(selector).unwrap_or(false));
    let text = html.main_text(block).unwrap_or_default();
    let text = text.chars().take(MAX_TEXT_CHARS).collect();
    let files = html.attachments(extensions, block).unwrap_or_default();
    let linked = files.into_iter().filter_map(|file| {
        let url = Url::parse(&file.href).ok()?;
        Some(Linked { url, name: file.title, extension: file.extension, bytes: None })
    });
    let page = ItemPage::new(text, linked.collect(), selector.is_some() && block.is_none());
    if page.text.trim().is_empty() && page.files.is_empty() {
        Err(phrase!(
            "the page has no text; if it is drawn by JavaScript, that is not run",
            "ページに本文がありません（JavaScript で描画されるページには対応していません）"
        ))
    } else {
        Ok(PageContent::Page(page))
    }
}

/// The error for a 304 to an unconditional request.
pub(super) fn nothing_sent() -> Phrase {
    phrase!("nothing was sent", "何も送られてきませんでした")
}

/// The extension of an address, if it is one of `extensions`.
fn attached_as(url: &Url, extensions: &[String]) -> Option<String> {
    let (_, extension) = url.path_segments()?.next_back()?.rsplit_once('.')?;
    let extension = extension.to_ascii_lowercase();
    extensions.contains(&extension).then_some(extension)
}

/// Sends a HEAD request.
async fn find_head(press: &Press, url: &Url) -> Result<Head, fetch::Error> {
    let request = Request::head(url.clone()).allow_private(&press.allow_private);
    Ok(press.env.fetcher.fetch(&request).await?.head().clone())
}

fn length(head: &Head) -> Option<u64> {
    head.headers.get(CONTENT_LENGTH)?.to_str().ok()?.trim().parse().ok()
}

fn says_html(head: &Head) -> bool {
    is_of_type(head, "text/html") || is_of_type(head, "application/xhtml+xml")
}

fn says_pdf(head: &Head) -> bool {
    is_of_type(head, "application/pdf")
}

fn is_of_type(head: &Head, media_type: &str) -> bool {
    let found = head.content_type().and_then(|found| found.split(';').next()).unwrap_or_default();
    found.trim().eq_ignore_ascii_case(media_type)
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

    const HTML: &str = "<html><head><meta charset=\"Shift_JIS\"><title>報道</title></head><body><nav>案内</nav>\
        <div id=\"contentsWrapper\"><div class=\"contentsBody\"><h1>調査①の結果</h1><p>㈱例の調査を公表します。</p>\
        <a href=\"../../main_content/000000001.pdf\">報告書（PDF）</a> <a href=\"data.xlsx\">表</a></div>\
        <div class=\"contentsMenu\"><a href=\"/main_content/000000002.pdf\">御案内</a></div></div></body></html>";

    fn read_with(selector: Option<&str>) -> ItemPage {
        let (bytes, _, _) = encoding_rs::SHIFT_JIS.encode(HTML);
        let url = Url::parse("https://ministry.example/menu_news/s-news/1.html").unwrap();
        page_of(read(&bytes, None, &url, selector, &["pdf".to_owned()]).unwrap())
    }

    fn page_of(read: PageContent) -> ItemPage {
        match read {
            PageContent::Page(page) => page,
            PageContent::Forward(to) => panic!("{to}"),
        }
    }

    #[test]
    fn a_shift_jis_page_gives_its_main_block_and_its_files() {
        let ItemPage { text, files, lacks_block, .. } = read_with(Some(".contentsBody"));
        assert!(text.contains("調査①の結果") && text.contains("㈱例") && !text.contains("案内"), "{text}");
        assert_eq!((files.len(), lacks_block), (1, false));
        assert_eq!(files[0].url.as_str(), "https://ministry.example/main_content/000000001.pdf");
        let whole = read_with(None);
        assert_eq!((whole.files.len(), whole.lacks_block), (2, false), "without a selector the page counts");
    }

    #[test]
    fn where_the_selector_matches_nothing_text_and_files_are_those_of_the_page() {
        let page = read_with(Some("#contentsBody"));
        assert!(page.lacks_block);
        assert!(page.text.contains("㈱例の調査を公表します。"), "{}", page.text);
        assert_eq!(page.files, read_with(None).files);
    }

    #[test]
    fn an_address_is_that_of_a_file_by_its_ending() {
        let found = |url: &str| attached_as(&Url::parse(url).unwrap(), &["pdf".to_owned(), "csv".to_owned()]);
        assert_eq!(found("https://a.example/main_content/000000001.PDF?x=1.html"), Some("pdf".to_owned()));
        assert_eq!(found("https://a.example/data.csv#page=2"), Some("csv".to_owned()));
        assert_eq!(found("https://a.example/pdf"), None);
        assert_eq!(found("https://a.example/a.pdf/index.html"), None);
    }
}
