//! Pages: feeds, links, attachments and the main text of an HTML document.
//!
//! [`Html`] parses a page on demand: metadata is collected from the tags, a tree is built when links or text are
//! requested, and the search for the main text runs only without a selector.

mod head;
mod links;
mod text;
mod tidy;
mod tree;

use std::cell::OnceCell;

use dom_query::{Document, Matcher};

use self::head::Head;
use super::cut::Cut;
use super::decode;
use super::resolver::is_usable_base;
use super::url::Url;
use stdx::phrase;
use stdx::phrase::Phrase;

pub use self::head::{FeedLink, Refresh};
pub use self::links::{Attachment, PageLink};
pub use self::tree::NODE_LIMIT;

/// Bytes of a page that are read.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The output of `inspect page`.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Page {
    /// The encoding of the bytes.
    pub encoding: String,
    /// The title, on one line.
    pub title: Option<String>,
    /// The main text.
    pub text: String,
    /// The links, in order.
    pub links: Vec<PageLink>,
    /// The feeds that the page names.
    pub feeds: Vec<FeedLink>,
}

/// An invalid CSS selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadSelector {
    pub selector: String,
    pub why: String,
}

impl BadSelector {
    /// In one sentence.
    pub fn phrase(&self) -> Phrase {
        let Self { selector, why } = self;
        phrase!(
            "`{selector}` is not a CSS selector that we know: {why}",
            "`{selector}` は CSS セレクターとして解釈できません：{why}"
        )
    }
}

stdx::error_in_english!(BadSelector);

/// A page in memory. It is not `Send`: create, use and drop it between two awaits.
pub struct Html {
    encoding: String,
    text: String,
    url: Option<Url>,
    head: OnceCell<Head>,
    tree: OnceCell<(Document, Option<Cut>)>,
}

/// Collects the output of `inspect page`.
pub fn read_page(bytes: &[u8], content_type: Option<&str>, url: Option<&Url>) -> Page {
    let html = Html::read(bytes, content_type, url);
    Page {
        encoding: html.encoding.clone(),
        title: html.title().map(str::to_owned),
        text: html.main_text(None).unwrap_or_default(),
        links: html.links(None).unwrap_or_default(),
        feeds: html.feeds().to_vec(),
    }
}

/// Checks a CSS selector of the config.
pub fn check_selector(selector: &str) -> Result<(), BadSelector> {
    matcher(selector).map(|_| ())
}

impl Html {
    /// Decodes a page fetched from `url`.
    pub fn read(bytes: &[u8], content_type: Option<&str>, url: Option<&Url>) -> Html {
        let decoded = decode::decode(bytes, content_type, decode::Kind::Html);
        Html { encoding: decoded.encoding, ..Html::from_text(&decoded.text, url) }
    }

    /// A page from decoded text.
    pub fn from_text(text: &str, url: Option<&Url>) -> Html {
        Html {
            encoding: "utf-8".to_owned(),
            text: tidy::tidy(text, MAX_BYTES),
            url: url.filter(|url| is_usable_base(url)).cloned(),
            head: OnceCell::new(),
            tree: OnceCell::new(),
        }
    }

    /// The title on one line: `<title>`, or the one for social networks.
    pub fn title(&self) -> Option<&str> {
        self.head().title.as_deref()
    }

    /// The base of relative links: `<base href>`, else the address of the page.
    pub fn base(&self) -> Option<&Url> {
        self.head().base.as_ref().or(self.url.as_ref())
    }

    /// The canonical address of the page.
    pub fn canonical(&self) -> Option<&Url> {
        self.head().canonical.as_ref()
    }

    /// The refresh of the page, if any.
    pub fn refresh(&self) -> Option<&Refresh> {
        self.head().refresh.as_ref()
    }

    /// The feeds that the page links, in order, each once.
    pub fn feeds(&self) -> &[FeedLink] {
        &self.head().feeds
    }

    /// The links in the elements that match `selector`, or of the whole page, in order.
    pub fn links(&self, selector: Option<&str>) -> Result<Vec<PageLink>, BadSelector> {
        let scope = selector.map(matcher).transpose()?;
        Ok(links::links(self.tree(), self.base(), scope.as_ref()))
    }

    /// Why links may be missing from [`Html::links`].
    pub fn cut(&self) -> Option<Cut> {
        self.built().1
    }

    /// The linked files whose path ends in one of `extensions` (`pdf`, `xlsx`, …), each once, in order.
    pub fn attachments(
        &self,
        extensions: &[impl AsRef<str>],
        selector: Option<&str>,
    ) -> Result<Vec<Attachment>, BadSelector> {
        Ok(links::attachments(self.links(selector)?, extensions))
    }

    /// Whether `selector` matches elements with text, so that [`Html::main_text`] need not search.
    pub fn has_block(&self, selector: &str) -> Result<bool, BadSelector> {
        Ok(!text::of_matches(self.tree(), &matcher(selector)?).is_empty())
    }

    /// The text of the elements that match `selector`; without a selector or a match, the main text of the page.
    pub fn main_text(&self, selector: Option<&str>) -> Result<String, BadSelector> {
        if let Some(scope) = selector.map(matcher).transpose()? {
            let chosen = text::of_matches(self.tree(), &scope);
            if !chosen.is_empty() {
                return Ok(chosen);
            }
        }
        Ok(text::main(self.tree()))
    }

    fn head(&self) -> &Head {
        self.head.get_or_init(|| head::read(&self.text, self.url.as_ref()))
    }

    fn tree(&self) -> &Document {
        &self.built().0
    }

    fn built(&self) -> &(Document, Option<Cut>) {
        self.tree.get_or_init(|| tree::build(&self.text))
    }
}

fn matcher(selector: &str) -> Result<Matcher, BadSelector> {
    Matcher::new(selector).map_err(|error| BadSelector {
        selector: selector.to_owned(),
        why: in_words(&format!("{:?}", error.kind)),
    })
}

/// `Custom(EmptySelector)` as `empty selector`: the library's errors have only names.
fn in_words(name: &str) -> String {
    let inner = name.rsplit('(').next().unwrap_or(name).trim_end_matches(')');
    let mut words = String::with_capacity(inner.len() + 8);
    for c in inner.chars() {
        if c.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(c.to_ascii_lowercase());
    }
    words
}

#[cfg(test)]
mod tests;
