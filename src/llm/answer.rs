//! What a model answered, checked: shape, length, language; and made plain before anybody sees it.

use serde::Deserialize;

use super::Wish;
use crate::text::{self, Language};

/// The longest reason that is kept, in columns.
const MAX_REASON: usize = 400;
/// Criteria and points beyond this many are dropped.
const MAX_POINTS: usize = 20;

/// What a model thinks of a page.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Verdict {
    /// The verdict.
    pub worth: Worth,
    /// Why, in one line.
    pub reason: String,
    /// The criteria that it found to apply.
    pub criteria: Vec<String>,
}

/// Whether a page is worth telling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Worth {
    /// It is.
    Worth,
    /// It is not.
    NotWorth,
    /// It is not finished yet.
    NotReady,
}

/// A summary, and the way to it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Summary {
    /// The text to post: plain, in the wanted language, not longer than wanted.
    pub text: String,
    /// What the model found important.
    pub key_points: Vec<String>,
    /// What it found its draft to lack.
    pub missing: Vec<String>,
}

#[derive(Deserialize)]
struct VerdictShape {
    verdict: Worth,
    reason: String,
    criteria: Vec<String>,
}

#[derive(Deserialize)]
struct SummaryShape {
    key_points: Vec<String>,
    #[allow(dead_code, reason = "wanted for the sake of the final text, and to see that it was written")]
    draft: String,
    missing: Vec<String>,
    #[serde(rename = "final")]
    text: String,
}

/// Reads a verdict, or says what is wrong with it.
pub(super) fn read_verdict(answer: &str) -> Result<Verdict, String> {
    let shape: VerdictShape = read_json(answer)?;
    Ok(Verdict { worth: shape.verdict, reason: line(&shape.reason), criteria: lines(&shape.criteria) })
}

/// Reads a summary, or says what is wrong with it.
///
/// Models count badly: up to twice the wanted length is cut at a sentence, more is a mistake.
pub(super) fn read_summary(answer: &str, wish: &Wish) -> Result<Summary, String> {
    let shape: SummaryShape = read_json(answer)?;
    let text = plain(&shape.text);
    if text.is_empty() {
        return Err("`final` is empty".to_owned());
    }
    let chars = text.chars().count();
    if chars > wish.max_chars * 2 {
        return Err(format!("`final` has {chars} characters, at most {} are wanted", wish.max_chars));
    }
    if !is_in_language(&text, wish.language) {
        return Err(match wish.language {
            Language::Ja => "`final` is not in Japanese".to_owned(),
            Language::En => "`final` is not in English".to_owned(),
        });
    }
    let text = cut_at_sentence(&text, wish.max_chars);
    Ok(Summary { text, key_points: lines(&shape.key_points), missing: lines(&shape.missing) })
}

/// Some models wrap their JSON in a code fence; what is inside counts.
fn read_json<T: serde::de::DeserializeOwned>(answer: &str) -> Result<T, String> {
    let trimmed = answer.trim();
    let inner = trimmed.strip_prefix("```json").or_else(|| trimmed.strip_prefix("```")).unwrap_or(trimmed);
    let inner = inner.strip_suffix("```").unwrap_or(inner).trim();
    serde_json::from_str(inner).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => "the JSON does not have the wanted shape".to_owned(),
        _ => "the answer is not JSON".to_owned(),
    })
}

fn line(text: &str) -> String {
    text::shorten(&text::one_line(&plain(text)), MAX_REASON)
}

fn lines(texts: &[String]) -> Vec<String> {
    texts.iter().take(MAX_POINTS).map(|text| line(text)).filter(|text| !text.is_empty()).collect()
}

/// `text` with nothing in it but words: no links, no mentions, no hashtags, no markup, no controls.
pub fn plain(text: &str) -> String {
    let shown: String = text.chars().filter(|c| *c == '\n' || !is_hidden(*c)).collect();
    let without_tags = remove_between(&shown, '<', '>');
    let mut paragraphs: Vec<String> = Vec::new();
    for paragraph in without_tags.split('\n') {
        let words: Vec<String> =
            unlinked(paragraph).split_whitespace().map(plain_word).filter(|word| !word.is_empty()).collect();
        let line = words.join(" ");
        let line = line.trim_start_matches(['>', '-', '*', '•']).trim().to_owned();
        if !line.is_empty() {
            paragraphs.push(line);
        }
    }
    paragraphs.join("\n")
}

/// `[words](address)` as `words`.
fn unlinked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(middle) = rest.find("](") {
        let (before, after) = rest.split_at(middle);
        let Some(end) = after.find(')') else { break };
        match before.rfind('[') {
            Some(start) => {
                out.push_str(before[..start].trim_end_matches('!'));
                out.push_str(&before[start + 1..]);
            }
            None => out.push_str(before),
        }
        rest = &after[end + 1..];
    }
    out.push_str(rest);
    out
}

/// A word without addresses, marks of markup, and what would make a mention or a hashtag of it.
fn plain_word(word: &str) -> String {
    let word = cut_address(word);
    let mut out = String::with_capacity(word.len());
    for c in word.chars() {
        match c {
            '@' | '＠' | '#' | '＃' | '`' | '*' | '<' | '>' => {}
            '_' if out.is_empty() => {}
            c => out.push(c),
        }
    }
    out.trim_end_matches('_').to_owned()
}

/// What stands before an address in a word: Japanese puts no space between the two.
fn cut_address(word: &str) -> &str {
    let lower = word.to_ascii_lowercase();
    let at = match (lower.find("://"), lower.find("www.")) {
        (Some(scheme), www) => {
            let bytes = lower.as_bytes();
            let mut start = scheme;
            while start > 0
                && (bytes[start - 1].is_ascii_alphanumeric()
                    || matches!(bytes[start - 1], b'+' | b'-' | b'.'))
            {
                start -= 1;
            }
            www.map_or(start, |www| www.min(start))
        }
        (None, Some(www)) => www,
        (None, None) => {
            return ["mailto:", "javascript:", "data:", "magnet:", "xmpp:"]
                .iter()
                .filter_map(|scheme| lower.find(scheme))
                .min()
                .map_or(word, |at| &word[..at]);
        }
    };
    &word[..at]
}

/// `text` without what looks like tags; a lone mark stays for the next step.
fn remove_between(text: &str, open: char, close: char) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(open) {
        let after = &rest[start + open.len_utf8()..];
        let is_tag = after.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '!');
        match after.find(close).filter(|_| is_tag) {
            Some(end) => {
                out.push_str(&rest[..start]);
                rest = &after[end + close.len_utf8()..];
            }
            None => {
                out.push_str(&rest[..start + open.len_utf8()]);
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// Controls, and marks that hide between letters or turn their direction.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// The beginning of `text`, whole sentences if at least half of the room can be used that way.
pub(super) fn cut_at_sentence(text: &str, max_chars: usize) -> String {
    if text.chars().count() <= max_chars {
        return text.to_owned();
    }
    let head: String = text.chars().take(max_chars).collect();
    let end = head
        .char_indices()
        .filter(|(at, c)| {
            matches!(c, '。' | '！' | '？' | '\n')
                || (matches!(c, '.' | '!' | '?') && head[at + 1..].starts_with(' '))
        })
        .map(|(at, c)| at + c.len_utf8())
        .next_back();
    match end {
        Some(end) if head[..end].chars().count() * 2 >= max_chars => head[..end].trim_end().to_owned(),
        _ => {
            let shorter: String = head.chars().take(max_chars.saturating_sub(1)).collect();
            format!("{}…", shorter.trim_end())
        }
    }
}

/// Whether a text can be in the language: Japanese has kana, English has hardly anything but Latin letters.
fn is_in_language(text: &str, language: Language) -> bool {
    let letters = text.chars().filter(|c| c.is_alphabetic()).count();
    let is_kana = |c: &char| matches!(c, '\u{3040}'..='\u{30ff}');
    let is_japanese = |c: &char| is_kana(c) || matches!(c, '\u{3400}'..='\u{9fff}' | '々');
    match language {
        Language::Ja => {
            text.chars().any(|c| is_kana(&c)) && text.chars().filter(is_japanese).count() * 3 >= letters
        }
        Language::En => {
            letters > 0 && text.chars().filter(char::is_ascii_alphabetic).count() * 10 >= letters * 8
        }
    }
}

#[cfg(test)]
mod tests;
