//! Builds the tree, with limits of depth, nodes, and the cost of one token.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use dom_query::{Document, NodeId};
use html5ever::interface::Tracer;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use html5ever::tree_builder::{TreeBuilder, TreeBuilderOpts};
use html5ever::{LocalName, TokenizerResult, local_name};

use crate::cut::Cut;

/// Elements open at once; deeper tags are dropped, their text stays.
pub(super) const MAX_DEPTH: usize = 512;

/// Additional depth for elements that usually close themselves, but not inside `svg` and `math`.
const MAX_DEPTH_ABOVE: usize = 16;

/// Nodes of one page; the rest is dropped.
pub const NODE_LIMIT: usize = 200_000;

/// Attributes of one page; after that only those of links are kept.
const MAX_ATTRIBUTES: usize = 400_000;

/// The tree of tidied HTML, and why links may be missing.
pub(super) fn build(html: &str) -> (Document, Option<Cut>) {
    let options = TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() };
    let limiter = Limiter {
        builder: TreeBuilder::new(Document::default(), options),
        held: Cell::new(0),
        left_out: RefCell::default(),
        roots_seen: Cell::new(0),
        attributes: Cell::new(0),
        cut: Cell::new(None),
    };
    let Limiter { builder, cut, .. } = tokenize(limiter, html).sink;
    builder.sink.errors.borrow_mut().clear();
    (builder.sink, cut.get())
}

/// Runs the tokenizer over `html` into `sink`.
pub(super) fn tokenize<S: TokenSink>(sink: S, html: &str) -> Tokenizer<S> {
    let tokenizer = Tokenizer::new(sink, TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(html));
    while let TokenizerResult::Script(_) | TokenizerResult::EncodingIndicator(_) = tokenizer.feed(&input) {}
    tokenizer.end();
    tokenizer
}

/// Drops tags between tokenizer and tree builder that would make the tree too deep or too large.
///
/// The builder's time for one token grows with the open elements and with the formatting elements (`b`, `font`, …) that
/// it would reopen. Both are counted exactly, by asking the builder.
struct Limiter {
    builder: TreeBuilder<NodeId, Document>,
    /// The number of these elements after the last tag.
    held: Cell<usize>,
    /// Dropped start tags, whose end tags are dropped, too.
    left_out: RefCell<HashMap<LocalName, usize>>,
    roots_seen: Cell<usize>,
    /// Attributes in the tree.
    attributes: Cell<usize>,
    /// The limit at which a link, or everything else, was dropped.
    cut: Cell<Option<Cut>>,
}

impl Limiter {
    fn admits(&self, tag: &mut Tag) -> bool {
        let mut left_out = self.left_out.borrow_mut();
        match tag.kind {
            TagKind::StartTag => {
                if matches!(tag.name, local_name!("html") | local_name!("body")) {
                    // Further ones add their attributes to the first, one by one.
                    self.roots_seen.set(self.roots_seen.get() + 1);
                    if self.roots_seen.get() > 8 {
                        tag.attrs.clear();
                    }
                }
                let closes_itself = CLOSE_THEMSELVES.contains(&&*tag.name);
                let limit = if closes_itself { MAX_DEPTH + MAX_DEPTH_ABOVE } else { MAX_DEPTH };
                if self.held.get() < limit {
                    if self.attributes.get() > MAX_ATTRIBUTES {
                        tag.attrs.retain(|attribute| attribute.name.local == local_name!("href"));
                    }
                    self.attributes.set(self.attributes.get() + tag.attrs.len());
                    return true;
                }
                *left_out.entry(tag.name.clone()).or_default() += 1;
                if tag.name == local_name!("a") {
                    self.cut.set(Some(Cut::Nesting));
                }
                false
            }
            TagKind::EndTag => match left_out.get_mut(&tag.name) {
                Some(count) if *count > 0 => {
                    *count -= 1;
                    false
                }
                _ => true,
            },
        }
    }

    fn count_held(&self) -> usize {
        let counter = Counter(Cell::new(0));
        self.builder.trace_handles(&counter);
        counter.0.get()
    }
}

/// Elements that do not stay open: they are empty, contain only text, or (`a`) close their own kind.
const CLOSE_THEMSELVES: [&str; 22] = [
    "a", "area", "base", "br", "col", "embed", "hr", "iframe", "img", "input", "link", "meta", "noembed",
    "noframes", "script", "source", "style", "textarea", "title", "track", "wbr", "xmp",
];

struct Counter(Cell<usize>);

impl Tracer for Counter {
    type Handle = NodeId;

    fn trace_handle(&self, _: &NodeId) {
        self.0.set(self.0.get() + 1);
    }
}

impl TokenSink for Limiter {
    type Handle = NodeId;

    fn process_token(&self, token: Token, line: u64) -> TokenSinkResult<NodeId> {
        let is_tag = matches!(token, Token::TagToken(_));
        let token = match token {
            Token::ParseError(_) | Token::CommentToken(_) => return TokenSinkResult::Continue,
            Token::EOFToken => token,
            _ if self.builder.sink.tree.len() >= NODE_LIMIT => {
                self.cut.set(Some(Cut::Nodes));
                return TokenSinkResult::Continue;
            }
            Token::TagToken(mut tag) => {
                if !self.admits(&mut tag) {
                    return TokenSinkResult::Continue;
                }
                Token::TagToken(tag)
            }
            other => other,
        };
        let result = self.builder.process_token(token, line);
        if is_tag {
            self.held.set(self.count_held());
            self.builder.sink.errors.borrow_mut().clear();
        }
        result
    }

    fn end(&self) {
        self.builder.end();
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.builder.adjusted_current_node_present_but_not_in_html_namespace()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::tidy::tidy;

    fn depth(document: &Document) -> usize {
        let mut deepest = 0;
        for node in document.root().descendants_it().filter(dom_query::NodeRef::is_element) {
            deepest = deepest.max(node.ancestors_it(None).count());
        }
        deepest
    }

    #[test]
    fn ordinary_pages_are_built_whole() {
        let (document, cut) = build("<title>t</title><ul><li>a<li>b</ul><table><tr><td>c</table>");
        assert_eq!(document.select("li").length(), 2);
        assert_eq!(&*document.select("td").text(), "c");
        assert_eq!(cut, None);
    }

    #[test]
    fn deep_nesting_is_cut_and_its_text_kept() {
        for tag in [
            "div",
            "b",
            "span",
            "table",
            "object",
            "svg",
            "ul><li",
            "font color=red",
            "dl><dt",
            "svg><a href=x",
            "math><br",
        ] {
            let times = if tag == "div" { 100_000 } else { 3_000 };
            let name = tag.split([' ', '>']).next().unwrap();
            let html = format!(
                "{}<p>inside</p>{}<p id=after>",
                format!("<{tag}>").repeat(times),
                format!("</{name}>").repeat(times)
            );
            let (document, cut) = build(&html);
            assert!(depth(&document) <= MAX_DEPTH + MAX_DEPTH_ABOVE, "{tag} {}", depth(&document));
            assert!(document.text().contains("inside"), "{tag}");
            assert!(document.select("#after").exists(), "{tag}");
            assert_eq!(cut, tag.contains("<a ").then_some(Cut::Nesting), "{tag}: were links left out?");
        }
    }

    #[test]
    fn formatting_that_is_opened_again_and_again_stays_bounded() {
        let html: String = (0..100_000).map(|n| format!("<p><b id={n}>x")).collect();
        let (document, _) = build(&html);
        assert!(document.tree.len() <= NODE_LIMIT + MAX_DEPTH);
    }

    #[test]
    fn a_page_that_is_too_large_says_so() {
        for (paragraphs, expected) in [(NODE_LIMIT / 2 - 10, None), (NODE_LIMIT / 2 + 1, Some(Cut::Nodes))] {
            assert_eq!(build(&"<p>x".repeat(paragraphs)).1, expected, "{paragraphs}");
        }
    }

    #[test]
    fn repeated_body_tags_add_no_endless_attributes() {
        let html: String = (0..100_000).map(|n| format!("<body a{n}=1>")).collect();
        assert!(build(&html).0.select("body").attrs().len() < 16);
    }

    #[test]
    fn a_page_of_attributes_keeps_those_of_its_links() {
        let names: String = (0..200).map(|n| format!(" a{n}")).collect();
        let (document, _) = build(&format!("{}<a class=x href=y>", format!("<p{names}>").repeat(2_100)));
        assert_eq!(document.select("p").attrs().len(), 200);
        let link = document.select("a");
        assert_eq!((link.attr("href").as_deref(), link.attr("class").as_deref()), (Some("y"), None));
    }

    #[test]
    fn what_only_looks_like_markup_is_text() {
        let (document, _) = build(&tidy(&"<".repeat(200_000), 1 << 24));
        assert_eq!(document.text().matches('<').count(), 10_000);
        assert!(document.errors.borrow().is_empty());
    }
}
