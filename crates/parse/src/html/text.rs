//! The text of a page in lines as they are shown, and the search for its main part.

use std::collections::HashSet;

use dom_query::{Document, Matcher, NodeData, NodeRef};
use dom_smoothie::{Config, Readability};

use super::tree;
use crate::markup::single_spaced;

/// In pages with more elements, the main text is not searched.
const MAX_SEARCHED_ELEMENTS: usize = 20_000;

/// From this length on an article is accepted on a page without a marked main part.
const SURE_CHARS: usize = 1000;

/// Where pages mark their main part.
const MAIN_PLACES: &str = "main, [role=main], #main, #contents, #content, #main-content, article";

/// Elements without visible text.
const UNSEEN: [&str; 14] = [
    "script", "style", "noscript", "template", "head", "title", "svg", "math", "iframe", "object", "select",
    "textarea", "button", "canvas",
];

/// Parts of a page about the site rather than its subject.
const AROUND: [&str; 5] = ["nav", "header", "footer", "aside", "form"];

/// The text of all matching elements, only the outermost ones.
pub(super) fn of_matches(tree: &Document, scope: &Matcher) -> String {
    let mut seen = HashSet::new();
    let mut writer = TextWriter::default();
    for node in tree.select_matcher(scope).nodes() {
        if node.ancestors_it(None).any(|above| seen.contains(&above.id)) {
            continue;
        }
        seen.insert(node.id);
        writer.after(2);
        writer.write(node, &[], usize::MAX);
    }
    writer.finish()
}

/// The main text: the result of the article search, unless it omits too much of the page.
pub(super) fn main(tree: &Document) -> String {
    let plain = plain(tree);
    match article(tree) {
        Some(article) if is_believable(&article, &plain) => article,
        _ => plain.text,
    }
}

/// The text without an article search.
struct Plain {
    text: String,
    /// Whether the page marks it as its main part.
    is_marked: bool,
}

/// Missing text harms a summary more than additional text: a list of releases or a front page with several articles
/// must not be reduced to its longest paragraph.
fn is_believable(article: &str, plain: &Plain) -> bool {
    let found = article.chars().count();
    let whole = plain.text.chars().count();
    if plain.is_marked { found * 5 >= whole * 4 } else { found >= SURE_CHARS || found * 3 >= whole }
}

fn article(tree: &Document) -> Option<String> {
    let config =
        Config { disable_json_ld: true, max_elements_to_parse: MAX_SEARCHED_ELEMENTS, ..Config::default() };
    // The search works on a copy, which is too expensive for a huge page.
    if tree.tree.len() > 4 * MAX_SEARCHED_ELEMENTS {
        return None;
    }
    let copy = tree.clone();
    remove_frame(&copy);
    let mut search = Readability::with_document(copy, None, Some(config)).ok()?;
    let found = search.parse().ok()?;
    let (part, _) = tree::build(&super::tidy::tidy(&found.content, usize::MAX));
    let mut writer = TextWriter::default();
    writer.write(&part.root(), &[], usize::MAX);
    Some(writer.finish()).filter(|text| !text.is_empty())
}

/// Removes navigation and the page's header and footer; those of an article are kept.
fn remove_frame(tree: &Document) {
    let Ok(frame) = Matcher::new("nav, header, footer") else { return };
    for node in tree.select_matcher(&frame).nodes() {
        let is_of_article = node
            .ancestors_it(None)
            .any(|above| ["article", "main", "section"].iter().any(|name| above.has_name(name)));
        if node.has_name("nav") || !is_of_article {
            node.remove_from_parent();
        }
    }
}

/// The text of the marked main part, else of the body without navigation and the like, else of the whole body.
fn plain(tree: &Document) -> Plain {
    let marked = Matcher::new(MAIN_PLACES).map(|scope| of_matches(tree, &scope)).unwrap_or_default();
    let Some(body) = tree.body() else { return Plain { text: marked, is_marked: false } };
    let inner = text_of(&body, &AROUND);
    if !marked.is_empty() && marked.chars().count() * 3 >= inner.chars().count() {
        return Plain { text: marked, is_marked: true };
    }
    Plain { text: if inner.is_empty() { text_of(&body, &[]) } else { inner }, is_marked: false }
}

fn text_of(node: &NodeRef<'_>, without: &[&str]) -> String {
    let mut writer = TextWriter::default();
    writer.write(node, without, usize::MAX);
    writer.finish()
}

/// The text of one element on one line, at most `max_chars` of it.
pub(super) fn line_of(node: &NodeRef<'_>, max_chars: usize) -> String {
    let mut writer = TextWriter::default();
    writer.write(node, &[], max_chars.saturating_mul(4));
    first_chars(&single_spaced(&writer.finish()), max_chars)
}

/// At most `max_chars` of a line.
pub(super) fn first_chars(line: &str, max_chars: usize) -> String {
    line.chars().take(max_chars).collect::<String>().trim_end().to_owned()
}

/// Writes text with single spaces, and line ends between blocks.
#[derive(Default)]
struct TextWriter {
    out: String,
    /// Line ends to write before the next text.
    lines: usize,
    /// A space or tab to write before the next text on the same line.
    space: Option<char>,
}

enum WriteStep<'a> {
    Enter(NodeRef<'a>),
    Leave(usize),
    Cell,
}

impl TextWriter {
    fn write(&mut self, root: &NodeRef<'_>, without: &[&str], max_bytes: usize) {
        let mut steps = vec![WriteStep::Enter(*root)];
        while let Some(step) = steps.pop() {
            if self.out.len() > max_bytes {
                return;
            }
            match step {
                WriteStep::Leave(lines) => self.after(lines),
                WriteStep::Cell => self.cell(),
                WriteStep::Enter(node) => self.enter(&node, root, without, &mut steps),
            }
        }
    }

    fn enter<'a>(
        &mut self,
        node: &NodeRef<'a>,
        root: &NodeRef<'_>,
        without: &[&str],
        steps: &mut Vec<WriteStep<'a>>,
    ) {
        let name = node.query_or(None, |inner| match &inner.data {
            NodeData::Text { contents } => {
                self.text(contents);
                None
            }
            NodeData::Element(element) => {
                let hidden = element.has_attr("hidden")
                    || element.attr("aria-hidden").is_some_and(|value| &*value == "true");
                Some((element.name.local.to_string(), hidden))
            }
            NodeData::Document | NodeData::Fragment => Some((String::new(), false)),
            _ => None,
        });
        let Some((name, hidden)) = name else { return };
        let is_root = node.id == root.id;
        if UNSEEN.contains(&&*name) || (!is_root && (hidden || without.contains(&&*name))) {
            return;
        }
        let lines = lines_around(&name);
        if name == "br" || name == "hr" {
            self.after(1);
            return;
        }
        self.before(lines);
        steps.push(WriteStep::Leave(lines));
        if name == "td" || name == "th" {
            steps.push(WriteStep::Cell);
        }
        steps.extend(node.children_it(true).map(WriteStep::Enter));
    }

    fn text(&mut self, text: &str) {
        let starts_with_gap = text.starts_with(is_space);
        let mut words = text.split(is_space).filter(|word| !word.is_empty());
        if starts_with_gap {
            self.owe_space();
        }
        let Some(first) = words.next() else { return };
        self.word(first);
        for word in words {
            self.owe_space();
            self.word(word);
        }
        if text.ends_with(is_space) {
            self.owe_space();
        }
    }

    fn word(&mut self, word: &str) {
        if !self.out.is_empty() {
            if self.lines > 0 {
                self.out.extend(std::iter::repeat_n('\n', self.lines));
            } else {
                self.out.extend(self.space);
            }
        }
        self.lines = 0;
        self.space = None;
        self.out.push_str(word);
    }

    fn owe_space(&mut self) {
        self.space.get_or_insert(' ');
    }

    fn cell(&mut self) {
        self.lines = 0;
        self.space = Some('\t');
    }

    /// Line ends before a block; the first block of a table cell stays on the line of its row.
    fn before(&mut self, lines: usize) {
        if self.space != Some('\t') {
            self.lines = self.lines.max(lines);
        }
    }

    fn after(&mut self, lines: usize) {
        if lines > 0 {
            self.lines = self.lines.max(lines);
            self.space = None;
        }
    }

    fn finish(self) -> String {
        self.out
    }
}

/// White space that HTML collapses, and no-break spaces; ideographic spaces are kept.
fn is_space(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\u{a0}'
}

/// Line ends before and after a block.
fn lines_around(name: &str) -> usize {
    match name {
        "p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "ul" | "ol" | "dl" | "table" | "blockquote"
        | "pre" | "section" | "article" | "main" | "figure" | "details" | "fieldset" | "hr" => 2,
        "div" | "li" | "tr" | "dt" | "dd" | "address" | "caption" | "figcaption" | "summary" | "header"
        | "footer" | "nav" | "aside" | "form" | "option" | "body" | "center" | "legend" => 1,
        _ => 0,
    }
}
