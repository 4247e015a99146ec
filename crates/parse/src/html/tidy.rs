//! Removes what would slow down or mislead the HTML parser: comments, scripts and huge tags; everything else stays.
//!
//! The HTML parser compares every attribute of a tag with all others, so a tag with 300,000 attributes would take
//! minutes. Cutting such tags requires finding the begin of tags, which depends on the content of comments, scripts and
//! titles; so those are emptied in the same pass. The rest means the same to the parser, whatever elements are around
//! it. One pass, linear in the text.

use super::tree::NODE_LIMIT;

/// Attributes of one tag to keep.
const MAX_ATTRIBUTES: usize = 256;

/// The most `<` that begin no tag; each is a token of its own for the parser.
const MAX_STRAY: usize = 10_000;

/// Tags to process. The tree has half as many elements, so a page with only tags ends here.
const MAX_TAGS: usize = 2 * NODE_LIMIT;

/// Replaces a comment: without it, the text on both sides could form a tag.
const EMPTY_COMMENT: &str = "<!---->";

/// Elements whose text is markup or code and not visible.
const UNSEEN: [&str; 6] = ["script", "style", "xmp", "iframe", "noembed", "noframes"];

/// Bytes of such a plain text to keep.
const MAX_PLAIN: usize = 64 * 1024;

/// Elements with plain text, in which tags are not recognised.
const PLAIN: [&str; 2] = ["title", "textarea"];

/// The tidied text of a page, at most about `max_bytes` of it.
pub(super) fn tidy(html: &str, max_bytes: usize) -> String {
    let mut out = String::with_capacity(html.len().min(max_bytes));
    let mut rest = html;
    let (mut stray, mut tags) = (0, 0);
    while let Some(at) = memchr(b'<', rest) {
        if out.len() + at >= max_bytes || tags >= MAX_TAGS {
            break;
        }
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        tags += 1;
        rest = match rest.as_bytes().get(1) {
            Some(b'!') if rest.starts_with("<!--") => after_comment(&mut out, rest),
            Some(b'!') if starts_with_ignoring_case(&rest[2..], "doctype") => {
                let end = memchr(b'>', rest).map_or(rest.len(), |end| end + 1);
                out.push_str(&rest[..end]);
                &rest[end..]
            }
            Some(b'!' | b'?') => after_bogus_comment(&mut out, rest),
            Some(b'/') if rest.as_bytes().get(2).is_some_and(u8::is_ascii_alphabetic) => {
                let tag = scan_tag(rest, 2);
                push_tag(&mut out, rest, &tag);
                &rest[tag.end..]
            }
            Some(b'/') => after_bogus_comment(&mut out, rest),
            Some(letter) if letter.is_ascii_alphabetic() => after_start_tag(&mut out, rest),
            _ => {
                stray += 1;
                out.push(if stray <= MAX_STRAY { '<' } else { ' ' });
                &rest[1..]
            }
        };
    }
    let left = max_bytes.saturating_sub(out.len());
    let end = if rest.len() <= left { rest.len() } else { rest.floor_char_boundary(left) };
    // After an early end, `rest` may contain markup that was not checked.
    out.push_str(rest[..end].split('<').next().unwrap_or_default());
    out
}

fn memchr(byte: u8, text: &str) -> Option<usize> {
    text.as_bytes().iter().position(|candidate| *candidate == byte)
}

fn after_comment<'a>(out: &mut String, rest: &'a str) -> &'a str {
    out.push_str(EMPTY_COMMENT);
    let body = &rest[4..];
    for abrupt in [">", "->"] {
        if let Some(after) = body.strip_prefix(abrupt) {
            return after;
        }
    }
    let mut from = 0;
    while let Some(at) = body[from..].find("--").map(|at| from + at) {
        let after = &body[at + 2..];
        if let Some(after) = after.strip_prefix('>').or_else(|| after.strip_prefix("!>")) {
            return after;
        }
        from = at + 1;
    }
    ""
}

fn after_bogus_comment<'a>(out: &mut String, rest: &'a str) -> &'a str {
    out.push_str(EMPTY_COMMENT);
    memchr(b'>', rest).map_or("", |end| &rest[end + 1..])
}

fn after_start_tag<'a>(out: &mut String, rest: &'a str) -> &'a str {
    let tag = scan_tag(rest, 1);
    push_tag(out, rest, &tag);
    let after = &rest[tag.end..];
    let name = &rest[1..tag.name_end];
    let is_one_of = |names: &[&str]| names.iter().any(|known| name.eq_ignore_ascii_case(known));
    if !tag.is_complete || !(is_one_of(&UNSEEN) || is_one_of(&PLAIN)) {
        return after;
    }
    let end = find_end_tag(after, name);
    if is_one_of(&PLAIN) {
        let shown = &after[..after.floor_char_boundary(end.min(MAX_PLAIN))];
        for (at, piece) in shown.split('<').enumerate() {
            out.push_str(if at == 0 { "" } else { "&lt;" });
            out.push_str(piece);
        }
    }
    &after[end..]
}

/// The position of `</name` with a valid end, or the end of the text.
fn find_end_tag(text: &str, name: &str) -> usize {
    let mut from = 0;
    while let Some(at) = text[from..].find("</").map(|at| from + at) {
        let after = &text[at + 2..];
        let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>');
        if starts_with_ignoring_case(after, name) && after.as_bytes().get(name.len()).is_some_and(ends) {
            return at;
        }
        from = at + 2;
    }
    text.len()
}

fn starts_with_ignoring_case(text: &str, start: &str) -> bool {
    text.as_bytes().get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start.as_bytes()))
}

/// The extent of the tag at the start of a text.
struct TagExtent {
    name_end: usize,
    /// Where the attributes exceed the limit.
    cut: Option<usize>,
    end: usize,
    is_complete: bool,
}

/// Scans a tag like the HTML tokenizer: quotes count only after an equals sign.
fn scan_tag(text: &str, name_start: usize) -> TagExtent {
    let bytes = text.as_bytes();
    let skip = |from: usize, stop: &dyn Fn(u8) -> bool| {
        bytes[from..].iter().position(|byte| stop(*byte)).map_or(bytes.len(), |at| from + at)
    };
    let is_gap = |byte: u8| byte.is_ascii_whitespace() || byte == b'/';
    let name_end = skip(name_start, &|byte| is_gap(byte) || byte == b'>');
    let mut tag = TagExtent { name_end, cut: None, end: bytes.len(), is_complete: false };
    let mut at = name_end;
    let mut attributes = 0;
    loop {
        at = skip(at, &|byte| !is_gap(byte));
        match bytes.get(at) {
            None => return tag,
            Some(b'>') => {
                tag.end = at + 1;
                tag.is_complete = true;
                return tag;
            }
            Some(_) => {}
        }
        attributes += 1;
        if attributes > MAX_ATTRIBUTES && tag.cut.is_none() {
            tag.cut = Some(at);
        }
        // An equals sign at the start belongs to the name.
        at = skip(at + 1, &|byte| is_gap(byte) || matches!(byte, b'>' | b'='));
        let value = skip(at, &|byte| !byte.is_ascii_whitespace());
        if bytes.get(value) != Some(&b'=') {
            continue;
        }
        at = skip(value + 1, &|byte| !byte.is_ascii_whitespace());
        at = match bytes.get(at) {
            Some(&quote @ (b'"' | b'\'')) => (skip(at + 1, &|byte| byte == quote) + 1).min(bytes.len()),
            Some(b'>') | None => at,
            Some(_) => skip(at, &|byte| byte.is_ascii_whitespace() || byte == b'>'),
        };
    }
}

fn push_tag(out: &mut String, text: &str, tag: &TagExtent) {
    match tag.cut {
        _ if !tag.is_complete => {}
        Some(cut) => {
            out.push_str(&text[..cut]);
            out.push('>');
        }
        None => out.push_str(&text[..tag.end]),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tidied(html: &str) -> String {
        tidy(html, 1 << 20)
    }

    #[test]
    fn ordinary_markup_stays_as_written() {
        for html in [
            "<!DOCTYPE html><html lang=ja><p class='a>b' data-x=\"<i>\">1 < 2 &amp; 3<br/></p></html>",
            "<a href=/x/>text</a\n>",
            "a <3 b",
            "日本<b>語</b>",
            "",
        ] {
            assert_eq!(tidied(html), html);
        }
    }

    #[test]
    fn comments_and_code_are_emptied_and_plain_text_is_escaped() {
        for (html, expected) in [
            ("a<!-- <b> -->c", "a<!---->c"),
            ("a<!-->c", "a<!---->c"),
            ("a<!-- x --!>c", "a<!---->c"),
            ("a<!-- no end <p>", "a<!---->"),
            ("<<!-- -->a>", "<<!---->a>"),
            ("<?php echo 1 ?>x", "<!---->x"),
            ("<![CDATA[<a title=\"]]>x", "<!---->x"),
            ("</3>x</>y", "<!---->x<!---->y"),
            ("<SCRIPT async>if (a<b) \"</scripty\"</Script >x", "<SCRIPT async></Script >x"),
            ("<title>a <b> & c</title>x", "<title>a &lt;b> & c</title>x"),
            ("<style>a{}", "<style>"),
        ] {
            assert_eq!(tidied(html), expected, "{html}");
        }
    }

    #[test]
    fn endless_tags_are_cut_and_unfinished_ones_dropped() {
        let many: String = (0..300_000).map(|n| format!(" a{n}=\">\"")).collect();
        let out = tidied(&format!("<div{many}>text</div>"));
        assert!(
            out.starts_with("<div a0=\">\" a1") && out.ends_with(" a255=\">\" >text</div>"),
            "{}",
            out.len()
        );
        assert_eq!(tidied("text<a href='x"), "text");
        assert_eq!(tidied("<p>text<a href='x' "), "<p>text");
    }

    #[test]
    fn a_long_page_is_cut_at_the_limit_between_characters() {
        assert_eq!(tidy("ああああ", 7), "ああ");
        assert_eq!(tidy("abc<p>def<p>ghi", 8), "abc<p>de");
        assert_eq!(tidy(&"<".repeat(50_000_000), 1000).len(), 1000);
        assert_eq!(tidy(&"<b>".repeat(5_000_000), 1 << 24).len(), 3 * MAX_TAGS);
        assert!(tidied(&"<title>".repeat(100_000)).len() < 3 * MAX_PLAIN);
    }

    proptest! {
        #[test]
        fn any_text_is_tidied_and_tidy_text_stays(html in "([<>!/\"'= a-]|<!--|-->|<a |</a|title|script|]]>|日|\\PC){0,60}") {
            let once = tidied(&html);
            prop_assert_eq!(tidied(&once), once);
        }
    }
}
