//! Sanitises HTML: allow-listed elements and attributes, absolute addresses.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock};

use ammonia::{Builder, UrlRelative};
use url::Url;

use super::markup::{self, Piece, Role, element, escape_into, pieces, unescape};
use super::resolver::MAX_ADDED_BYTES;

/// How deep elements may nest; deeper tags are dropped, their text stays.
pub const DEPTH_LIMIT: usize = 512;
/// How many tags a fragment may have; further tags are dropped, their text stays.
const TAG_LIMIT: usize = 50_000;
/// How many attributes a tag may have; a tag with more loses all of them.
const ATTRIBUTE_LIMIT: usize = 64;
/// How many elements the tree builder may repeat because of unclosed formatting.
const REPEAT_LIMIT: usize = 50_000;

/// How often broken markup is cleaned until it does not change any more.
const ROUNDS: usize = 6;

/// The rules for fragments without a base.
static WITHOUT_BASE: LazyLock<Builder<'static>> = LazyLock::new(|| rules(None));

/// Cleans fragments; reuses its rules for fragments with the same base.
#[derive(Default)]
pub struct Sanitizer {
    rules: Option<(Arc<Url>, Builder<'static>)>,
}

impl std::fmt::Debug for Sanitizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sanitizer").finish_non_exhaustive()
    }
}

impl Sanitizer {
    /// `html` without anything harmful, with relative addresses resolved against `base`.
    pub fn clean(&mut self, html: &str, base: Option<&Arc<Url>>) -> String {
        if !html.contains('<') {
            return escaped(&unescape(html));
        }
        let bounded = bounded(html);
        // Do not copy a long base into thousands of tags; their addresses stay relative.
        let base = base.filter(|base| base.as_str().len().saturating_mul(bounded.tags) <= MAX_ADDED_BYTES);
        let mut clean = self.clean_once(&bounded.html, base);
        if !bounded.regular {
            // Browsers may parse the cleaned result of broken markup differently, so repeat until it is stable.
            for _ in 0..ROUNDS {
                let again = self.clean_once(&clean, base);
                if again == clean {
                    return clean;
                }
                clean = again;
            }
            return escaped(&markup::text_of(&clean));
        }
        clean
    }

    fn clean_once(&mut self, html: &str, base: Option<&Arc<Url>>) -> String {
        if !html.contains('<') {
            return escaped(&unescape(html));
        }
        let Some(base) = base else { return WITHOUT_BASE.clean(html).to_string() };
        let known = self.rules.as_ref().is_some_and(|(known, _)| known == base);
        if !known {
            self.rules = Some((Arc::clone(base), rules(Some(base))));
        }
        match &self.rules {
            Some((_, rules)) => rules.clean(html).to_string(),
            None => String::new(),
        }
    }
}

/// Cleans one fragment; for several, keep a [`Sanitizer`].
pub fn clean(html: &str, base: Option<&Arc<Url>>) -> String {
    Sanitizer::default().clean(html, base)
}

/// `text` as HTML.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    escape_into(&mut out, text);
    if out.contains('\u{a0}') { out.replace('\u{a0}', "&nbsp;") } else { out }
}

fn rules(base: Option<&Arc<Url>>) -> Builder<'static> {
    let mut rules = Builder::default();
    rules.tags(markup::kept_elements().collect());
    rules.clean_content_tags(HashSet::from(["script", "style"]));
    rules.generic_attributes(HashSet::from(["lang", "title", "dir"]));
    let mut attributes: HashMap<&str, HashSet<&str>> = HashMap::new();
    for (element, names) in [
        ("a", &["href", "hreflang", "name"][..]),
        ("audio", &["src", "controls", "loop", "muted", "preload"]),
        ("bdo", &["dir"]),
        ("blockquote", &["cite"]),
        ("col", &["align", "span"]),
        ("colgroup", &["align", "span"]),
        ("data", &["value"]),
        ("del", &["cite", "datetime"]),
        ("details", &["open"]),
        ("font", &["color", "face", "size"]),
        ("hr", &["align", "size", "width"]),
        ("img", &["align", "alt", "height", "src", "srcset", "width"]),
        ("ins", &["cite", "datetime"]),
        ("ol", &["start", "reversed", "type"]),
        ("q", &["cite"]),
        ("source", &["src", "srcset", "type", "media", "sizes"]),
        ("table", &["align", "summary", "border"]),
        ("td", &["align", "colspan", "rowspan", "valign"]),
        ("th", &["align", "colspan", "rowspan", "scope", "valign"]),
        ("time", &["datetime"]),
        ("tr", &["align", "valign"]),
        ("track", &["src", "kind", "srclang", "label"]),
        ("video", &["src", "poster", "controls", "height", "width", "loop", "muted", "preload"]),
    ] {
        attributes.insert(element, names.iter().copied().collect());
    }
    rules.tag_attributes(attributes);
    rules.url_relative(match base {
        Some(base) => UrlRelative::RewriteWithBase(Url::clone(base)),
        None => UrlRelative::PassThrough,
    });
    rules
}

/// A fragment within the limits of the tree builder.
struct Bounded {
    html: String,
    /// An upper bound of the number of tags.
    tags: usize,
    /// Whether the tree builder has nothing to repair.
    regular: bool,
}

/// Restricts a fragment to the limits of the tree builder, whose time grows with depth times size.
///
/// Elements that would be dropped anyway are removed here, so that their special parsing rules do not apply. The depth
/// is overestimated: an element counts as open until an end tag certainly closes it.
fn bounded(html: &str) -> Bounded {
    let mut out = String::with_capacity(html.len());
    let mut open: Vec<(&'static str, Role)> = Vec::new();
    let (mut tags, mut formatting, mut repeated) = (0_usize, 0_usize, 0_usize);
    let mut regular = true;
    let mut after_pre = false;
    let mut pieces = pieces(html);
    while let Some(piece) = pieces.next() {
        match piece {
            Piece::Text(text) => {
                let text = if after_pre { text.trim_start_matches(['\n', '\r']) } else { text };
                push_text(&mut out, text);
                after_pre &= text.is_empty();
            }
            Piece::Open { name, attributes, count, .. } => match element(name) {
                None | Some((_, Role::Dropped)) => {}
                Some((name, Role::Raw)) => pieces.skip_raw(name),
                Some((name, role)) => {
                    tags += 1;
                    if role != Role::Formatting {
                        repeated += formatting;
                    }
                    if open.len() >= DEPTH_LIMIT || tags > TAG_LIMIT || repeated > REPEAT_LIMIT {
                        continue;
                    }
                    regular = regular && fits(&open, name);
                    if role != Role::Void {
                        open.push((name, role));
                        formatting += usize::from(role == Role::Formatting);
                    }
                    out.push('<');
                    out.push_str(name);
                    if count > 0 && count <= ATTRIBUTE_LIMIT {
                        out.push(' ');
                        out.push_str(attributes.trim_end_matches('/'));
                    }
                    out.push('>');
                    after_pre = name == "pre";
                }
            },
            Piece::Close { name, .. } => {
                let Some((name, role)) = element(name) else { continue };
                if matches!(role, Role::Void | Role::Raw | Role::Dropped) {
                    continue;
                }
                tags += 1;
                if tags > TAG_LIMIT || repeated > REPEAT_LIMIT {
                    continue;
                }
                repeated += formatting;
                regular = regular && open.last().is_some_and(|(last, _)| *last == name);
                formatting -= close(&mut open, name, role);
                out.push_str("</");
                out.push_str(name);
                out.push('>');
            }
        }
    }
    Bounded { html: out, tags: tags.min(TAG_LIMIT), regular: regular && open.is_empty() }
}

/// Whether the tree builder leaves the element in place, without closing or moving anything.
fn fits(open: &[(&'static str, Role)], name: &str) -> bool {
    let inside = |names: &[&str]| open.iter().any(|(known, _)| names.contains(known));
    let directly_in = |names: &[&str]| open.last().is_some_and(|(last, _)| names.contains(last));
    const HEADINGS: &[&str] = &["h1", "h2", "h3", "h4", "h5", "h6"];
    match name {
        "a" => !inside(&["a"]),
        "li" => directly_in(&["ul", "ol", "dir"]),
        "dd" | "dt" => directly_in(&["dl"]),
        "table" | "caption" | "col" | "colgroup" | "tbody" | "thead" | "tfoot" | "tr" | "td" | "th" => false,
        "rb" | "rp" | "rt" | "rtc" => false,
        _ if HEADINGS.contains(&name) => !inside(HEADINGS) && !inside(&["p"]),
        "address" | "article" | "aside" | "blockquote" | "center" | "details" | "dir" | "div" | "dl"
        | "figcaption" | "figure" | "footer" | "header" | "hgroup" | "hr" | "main" | "nav" | "ol" | "p"
        | "pre" | "section" | "summary" | "ul" => !inside(&["p"]),
        _ => true,
    }
}

/// Appends text: a lone `<` must not begin a tag that was not there before.
fn push_text(out: &mut String, text: &str) {
    match text.strip_prefix('<') {
        Some(rest) => {
            out.push_str("&lt;");
            out.push_str(rest);
        }
        None => out.push_str(text),
    }
}

/// Removes the elements that this end tag certainly closes; returns how many of them are formatting elements.
fn close(open: &mut Vec<(&'static str, Role)>, name: &str, role: Role) -> usize {
    let reach = open.iter().rposition(|(known, role)| *known == name || *role == Role::Boundary);
    let Some(at) = reach.filter(|at| open[*at].0 == name) else { return 0 };
    if role == Role::Formatting {
        open.remove(at);
        return 1;
    }
    let mut index = 0;
    open.retain(|(_, role)| {
        index += 1;
        index <= at || *role == Role::Formatting
    });
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> Arc<Url> {
        Arc::new(Url::parse("https://example.org/blog/").unwrap())
    }

    #[test]
    fn what_could_do_harm_is_gone_and_the_text_stays() {
        for (html, safe) in [
            ("plain", "plain"),
            ("a &amp; b &nbsp; &lt;b&gt;", "a &amp; b &nbsp; &lt;b&gt;"),
            ("<p onclick=alert(1)>x</p>", "<p>x</p>"),
            ("a<script>alert(1)</script>b", "ab"),
            ("<a href='javascript:alert(1)'>x</a>", "<a rel=\"noopener noreferrer\">x</a>"),
            ("<svg><style>*{}</style><circle/>x</svg>", "x"),
            ("<iframe src=x>y</iframe>", "y"),
            ("<b>unclosed", "<b>unclosed</b>"),
            ("1 < 2", "1 &lt; 2"),
        ] {
            assert_eq!(clean(html, None), safe, "{html}");
        }
    }

    #[test]
    fn relative_addresses_become_absolute() {
        let html = clean("<img src=a.png><a href='/x'>x</a>", Some(&base()));
        assert!(
            html.contains("https://example.org/blog/a.png") && html.contains("https://example.org/x"),
            "{html}"
        );
    }

    #[test]
    fn hostile_fragments_stay_inside_the_limits() {
        let deep = "<div>".repeat(100_000);
        assert!(clean(&deep, None).matches("<div>").count() <= DEPTH_LIMIT);
        let leaking: String = (0..20_000).map(|n| format!("<p><b title={n}></p>")).collect();
        assert!(clean(&leaking, None).len() < 20 * leaking.len());
        let scoped = "<div><table><tr><td></div>".repeat(20_000);
        clean(&scoped, None);
        let attributes: String = (0..300_000).map(|n| format!(" a{n}=1")).collect();
        assert_eq!(clean(&format!("<p{attributes}>x</p>"), None), "<p>x</p>");
    }
}
