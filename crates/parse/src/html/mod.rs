//! Pages: feeds, links, attachments and the main text of an HTML document.
//!
//! [`Html`] reads a page once and answers questions about it. Each answer costs only what it needs: what stands in
//! the head is found by walking over the tags, a tree is built when links or text are asked for, and the search for
//! the main text runs only when no selector names it.

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

/// Characters of a page that are read.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// Everything that `inspect page` shows.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Page {
    /// The encoding that the bytes were read with.
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

/// A CSS selector cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadSelector {
    /// The selector as it was written.
    pub selector: String,
    /// What is wrong with it.
    pub why: String,
}

impl BadSelector {
    /// What is wrong, in one sentence.
    pub fn phrase(&self) -> Phrase {
        let Self { selector, why } = self;
        phrase!(
            "`{selector}` is not a CSS selector that we know: {why}",
            "`{selector}` は CSS セレクターとして解釈できません：{why}"
        )
    }
}

stdx::error_in_english!(BadSelector);

/// A page in memory. It is not `Send`: make it, ask it and drop it between two awaits.
pub struct Html {
    encoding: String,
    text: String,
    url: Option<Url>,
    head: OnceCell<Head>,
    tree: OnceCell<(Document, Option<Cut>)>,
}

/// Reads everything that `inspect page` shows.
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

/// Whether a CSS selector from the configuration can be read.
pub fn check_selector(selector: &str) -> Result<(), BadSelector> {
    matcher(selector).map(|_| ())
}

impl Html {
    /// Decodes a page that was fetched from `url`.
    pub fn read(bytes: &[u8], content_type: Option<&str>, url: Option<&Url>) -> Html {
        let decoded = decode::decode(bytes, content_type, decode::Kind::Html);
        Html { encoding: decoded.encoding, ..Html::from_text(&decoded.text, url) }
    }

    /// A page whose text is known already.
    pub fn from_text(text: &str, url: Option<&Url>) -> Html {
        Html {
            encoding: "utf-8".to_owned(),
            text: tidy::tidy(text, MAX_BYTES),
            url: url.filter(|url| is_usable_base(url)).cloned(),
            head: OnceCell::new(),
            tree: OnceCell::new(),
        }
    }

    /// The title on one line: `<title>`, or what the page gives to social networks.
    pub fn title(&self) -> Option<&str> {
        self.head().title.as_deref()
    }

    /// The address that relative links start from: `<base href>`, else the address of the page.
    pub fn base(&self) -> Option<&Url> {
        self.head().base.as_ref().or(self.url.as_ref())
    }

    /// The address that the page calls its own.
    pub fn canonical(&self) -> Option<&Url> {
        self.head().canonical.as_ref()
    }

    /// Where the page sends its reader by itself, and when.
    pub fn refresh(&self) -> Option<&Refresh> {
        self.head().refresh.as_ref()
    }

    /// The feeds that the page names, in order, each once.
    pub fn feeds(&self) -> &[FeedLink] {
        &self.head().feeds
    }

    /// The links inside the elements that `selector` matches, or of the whole page, in order.
    pub fn links(&self, selector: Option<&str>) -> Result<Vec<PageLink>, BadSelector> {
        let scope = selector.map(matcher).transpose()?;
        Ok(links::links(self.tree(), self.base(), scope.as_ref()))
    }

    /// Why [`Html::links`] may lack some.
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

    /// Whether `selector` names a block that has text, so that [`Html::main_text`] needs not search for one.
    pub fn has_block(&self, selector: &str) -> Result<bool, BadSelector> {
        Ok(!text::of_matches(self.tree(), &matcher(selector)?).is_empty())
    }

    /// The text of the elements that `selector` matches; without a selector, or when it matches nothing, the main
    /// text of the page.
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

/// `Custom(EmptySelector)` as `empty selector`: the library's errors have names but no sentences.
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
