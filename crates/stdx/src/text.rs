//! Text for people: width on a terminal, shortening, cleaning, and the language of messages.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::word_enum;

/// The width of `text` on a terminal in columns; full-width characters have two.
pub fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// `text` cut to at most `columns` columns, with `…` if something was cut; never inside a grapheme.
pub fn shorten(text: &str, columns: usize) -> String {
    // No character has more columns than bytes.
    if text.len() <= columns || width(text) <= columns {
        return text.to_owned();
    }
    let mut short = String::new();
    let mut used = 0;
    for grapheme in text.graphemes(true) {
        let next = width(grapheme);
        if used + next + 1 > columns {
            break;
        }
        short.push_str(grapheme);
        used += next;
    }
    if columns > 0 {
        short.push('…');
    }
    short
}

/// A number of things: `1 job`, `2 jobs`, `3 branches`, `0 entries`.
pub fn counted(count: impl std::fmt::Display, thing: &str) -> String {
    let count = count.to_string();
    if count == "1" {
        return format!("1 {thing}");
    }
    match thing.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{count} {stem}ies"),
        _ if thing.ends_with("ch") || thing.ends_with('s') => format!("{count} {thing}es"),
        _ => format!("{count} {thing}s"),
    }
}

/// One line without control characters, so that text from the network can be printed on a terminal.
pub fn one_line(text: &str) -> String {
    if is_plain_line(text) {
        return text.to_owned();
    }
    let mut line = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        let before = line.len();
        if before > 0 {
            line.push(' ');
        }
        let start = line.len();
        if word.bytes().all(|byte| byte.is_ascii_graphic()) {
            line.push_str(word);
        } else {
            line.extend(word.chars().filter(|c| !is_unprintable(*c)));
        }
        if line.len() == start {
            line.truncate(before);
        }
    }
    line
}

/// A text of several lines without control characters that affect a terminal.
pub fn printable(text: &str) -> String {
    text.chars().filter(|c| matches!(c, '\n' | '\t') || !is_unprintable(*c)).collect()
}

/// JSON with characters that affect a terminal escaped; its meaning stays the same.
pub fn printable_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        if c != '\n' && is_unprintable(c) {
            // All of them are below U+10000, and in JSON they occur only in strings.
            shown.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            shown.push(c);
        }
    }
    shown
}

/// The system's message about a file, without the path of a temporary one, which means nothing to the user.
pub fn without_path(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split_once(" at path \"").map_or(text.as_str(), |(said, _)| said).to_owned()
}

/// Escapes text for HTML, inside and outside of attributes.
pub fn escape_html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// `text` as one word of a command line that people copy into a shell: an address may hold `$(…)`, a name a space.
pub fn shell_word(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_alphanumeric() || "@%+:,./_-".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("'{}'", text.replace('\'', r"'\''")))
    }
}

/// Whether `text` is a line of printable ASCII with single spaces between words: nothing is to be done to it.
pub fn is_plain_line(text: &str) -> bool {
    let mut before = b' ';
    for byte in text.bytes() {
        if !matches!(byte, b' '..=b'~') || (byte == b' ' && before == b' ') {
            return false;
        }
        before = byte;
    }
    before != b' ' || text.is_empty()
}

/// Controls, and the marks that turn the direction of everything after them.
fn is_unprintable(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

word_enum! {
    /// The language of mails, posts, prompts and pages.
    ///
    /// Every message is a function that chooses by this, so a language that lacks a message does not compile.
    #[derive(Default, serde::Deserialize, schemars::JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum Language {
        /// Japanese, the default.
        #[default]
        Ja = "ja",
        /// English.
        En = "en",
    }
}

impl Language {
    /// Chooses one of two.
    pub fn choose<T>(self, en: T, ja: T) -> T {
        match self {
            Language::En => en,
            Language::Ja => ja,
        }
    }
}

/// The last line of a shortened list.
pub fn and_more(count: usize, language: Language) -> String {
    language.choose(format!("and {count} more"), format!("ほか {count} 件"))
}

/// A substitute for a missing title.
pub fn untitled(language: Language) -> &'static str {
    language.choose("(untitled)", "（無題）")
}

/// The entry of `known` that is most similar to `word`, if it is similar enough for a suggestion.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate))
        .filter(|(distance, candidate)| {
            *distance <= 1 + candidate.chars().count().max(word.chars().count()) / 4
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_one_and_others_are_many() {
        for (count, thing, words) in [
            (0, "job", "0 jobs"),
            (1, "job", "1 job"),
            (-1, "job", "-1 jobs"),
            (1, "new entry", "1 new entry"),
            (11, "new entry", "11 new entries"),
            (2, "day", "2 days"),
            (2, "branch", "2 branches"),
        ] {
            assert_eq!(counted(count, thing), words);
        }
    }

    #[test]
    fn what_others_wrote_is_one_word_of_a_shell() {
        for plain in ["blog:mine", "group/app", "日報", "a@b.example"] {
            assert_eq!(shell_word(plain), plain);
        }
        for (text, word) in [
            ("", "''"),
            ("a b", "'a b'"),
            ("https://a.example/?x&$(id);`id`", "'https://a.example/?x&$(id);`id`'"),
            ("it's", r"'it'\''s'"),
            ("~root", "'~root'"),
        ] {
            assert_eq!(shell_word(text), word);
        }
    }

    #[test]
    fn full_width_text_counts_double_and_is_cut_between_graphemes() {
        assert_eq!(width("続き ab"), 7);
        assert_eq!(shorten("続き", 4), "続き");
        assert_eq!(shorten("続きを読む", 6), "続き…");
        assert_eq!(shorten("e\u{301}e\u{301}e\u{301}", 2), "e\u{301}…");
        assert_eq!(shorten("abc", 0), "");
    }

    #[test]
    fn hostile_text_becomes_one_plain_line() {
        assert_eq!(one_line("a\u{1b}[31m\r\n b\u{202e}c\0"), "a[31m bc");
        for (text, line) in [("", ""), (" ", ""), ("a b", "a b"), (" a", "a"), ("a ", "a"), ("a  b", "a b")] {
            assert_eq!(one_line(text), line, "{text:?}");
            assert_eq!(is_plain_line(text), text == line, "{text:?}");
        }
        for odd in ["a\tb", "a\u{7f}", "é", "a\u{a0}b"] {
            assert!(!is_plain_line(odd), "{odd:?}");
        }
    }

    #[test]
    fn texts_and_json_keep_what_they_say_and_lose_what_a_terminal_obeys() {
        assert_eq!(printable("a\u{1b}]0;x\u{7}\n\tb\u{9b}2J\u{202e}c"), "a]0;x\n\tb2Jc");
        let value = serde_json::json!({ "t": "a\u{9b}\u{202e}\u{7f}\u{1b}\n続き" });
        let shown = printable_json(&serde_json::to_string_pretty(&value).unwrap());
        assert!(shown.contains(r"a\u009b\u202e\u007f\u001b\n続き"), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }

    #[test]
    fn a_typo_finds_its_word_and_nonsense_finds_none() {
        let known = ["queries", "max_per_run", "mail_limit"];
        assert_eq!(nearest("querys", known), Some("queries"));
        assert_eq!(nearest("max_pre_run", known), Some("max_per_run"));
        assert_eq!(nearest("colour", known), None);
    }
}
