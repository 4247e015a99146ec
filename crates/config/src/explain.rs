//! Turns serde's errors about a table into advice.

use std::ops::Range;

use super::diagnostic::Problem;
use super::kind::{Kind, TableKind};
use super::reading::Misfit;
use super::schema::list_tables;
use super::section::Section;
use super::section::did_you_mean;
use super::tree::TomlTable;
use super::value::BadValue;
use stdx::phrase;
use stdx::phrase::{Phrase, Value};
use stdx::text::nearest;

/// The table that an error comes from.
pub(super) struct Explainer<'a> {
    pub(super) section: &'a Section,
    pub(super) table: &'a TomlTable,
    /// Keys that are read elsewhere.
    pub(super) taken: &'static [&'static str],
}

/// The problem for a deserialisation error, with a suggestion if possible.
pub(super) fn explain(err: &Misfit, about: &Explainer<'_>) -> Problem {
    let span = err.span().unwrap_or_else(|| about.section.span.clone());
    let problem = |message: Phrase| Problem::at(&about.section.file.source, span.clone(), message);
    let message = err.message();
    if let Some(rest) = message.strip_prefix("unknown field ") {
        let (key, known) = split_expected(rest);
        return unknown_key(problem(unknown_key_phrase(key)), key, &known, &span, about);
    }
    if let Some(rest) = message.strip_prefix("unknown variant ") {
        let (word, known) = split_expected(rest);
        let words = known.iter().map(|word| Value::from(format!("`{word}`"))).collect::<Vec<_>>();
        let problem = problem(phrase!(
            "`{word}` is not one of {words}",
            "`{word}` は指定できません（{words} のいずれか）"
        ));
        return match nearest(word, known.iter().copied()) {
            Some(near) => problem.with_label(did_you_mean(near)),
            None => problem,
        };
    }
    for prefix in ["invalid type: ", "invalid value: "] {
        if let Some((found, expected)) =
            message.strip_prefix(prefix).and_then(|rest| rest.rsplit_once(", expected "))
        {
            let text = found.strip_prefix("string ").filter(|_| expected == "a sequence");
            let hint = text.map(|text| phrase!("write [{text}]", "[{text}] と書きます"));
            let (expected, found) = (plain_expected(expected), plain_found(found));
            let problem = problem(phrase!(
                "expected {expected}, found {found}",
                "{expected}が必要ですが、{found}が書かれています"
            ));
            return match hint {
                Some(hint) => problem.with_hint(hint),
                None => problem,
            };
        }
    }
    let bad = BadValue::from_serde(message);
    let problem = problem(bad.message().clone());
    bad.hint().cloned().map_or(problem.clone(), |hint| problem.with_hint(hint))
}

/// The message for an unknown key.
pub(super) fn unknown_key_phrase(key: &str) -> Phrase {
    phrase!("unknown key `{key}`", "不明なキー `{key}`")
}

/// The problem of a missing key in the table at `span`.
pub(super) fn missing_key(section: &Section, span: &Range<usize>, key: &str) -> Problem {
    let message = phrase!("the key `{key}` is missing", "キー `{key}` がありません");
    let label = phrase!("`{key}` belongs here", "ここに `{key}` が必要です");
    Problem::at(&section.file.source, span.clone(), message).with_label(label)
}

fn unknown_key(
    problem: Problem,
    key: &str,
    known: &[&str],
    span: &Range<usize>,
    about: &Explainer<'_>,
) -> Problem {
    let outermost = about.table.find_key_span(key).is_some_and(|at| at == *span);
    let mut candidates = known.to_vec();
    if outermost {
        candidates.extend(about.taken);
    }
    if let Some(near) = nearest(key, candidates.iter().copied()) {
        return problem.with_label(did_you_mean(near));
    }
    let (place, kinds) = (about.section.place, about.section.file.kinds);
    let is_own = |kind: &&Kind| kind.place == place && kind.name == about.section.kind;
    let own = kinds.iter().find(is_own);
    if !outermost && (about.taken.contains(&key) || own.is_some_and(|own| own.has_key(key))) {
        return problem.with_hint(phrase!(
            "`{key}` belongs to the {what} itself: move it up, before any line that opens a table inside it",
            "`{key}` は{what}自体のキーです。内側の表を始める行より前に移してください",
            what = place.noun()
        ));
    }
    let others = kinds.iter().filter(|kind| kind.place == place && !is_own(kind));
    let owners: Vec<&str> = others.filter(|kind| kind.has_key(key)).map(|kind| kind.name).collect();
    if outermost && !owners.is_empty() {
        let owners = either(owners.iter().map(|owner| format!("\"{owner}\"")));
        return problem.with_hint(phrase!(
            "`{key}` belongs to kind = {owners}",
            "`{key}` は kind = {owners} のキーです"
        ));
    }
    match list_homes(key, kinds).as_slice() {
        homes if homes.is_empty() || !outermost => problem.with_hint(list_keys(&candidates)),
        homes => problem.with_hint(belongs_in(key, homes)),
    }
}

/// The tables to which a key belongs.
pub(super) fn belongs_in(key: &str, homes: &[String]) -> Phrase {
    let homes = either(homes.iter().cloned());
    phrase!("`{key}` belongs in {homes}", "`{key}` は {homes} に書きます")
}

/// A list joined with "or".
fn either(words: impl Iterator<Item = String>) -> Phrase {
    let more = |before, word: String| phrase!("{before} or {word}", "{before} または {word}");
    words.map(Phrase::verbatim).reduce(|before, word| more(before, word.to_string())).unwrap_or("".into())
}

/// The headers of at most three tables that have `key`.
pub(super) fn list_homes(key: &str, kinds: &[Kind]) -> Vec<String> {
    let mut generator = schemars::SchemaGenerator::default();
    let mut has_key = |place: &TableKind| {
        let tables = list_tables(*place, kinds, &mut generator);
        tables.iter().any(|table| table.schema["properties"].get(key).is_some())
    };
    let homes = TableKind::ALL.iter().copied().filter(|place| has_key(place));
    homes.take(3).map(|place| format!("`{}`", place.header("NAME"))).collect()
}

/// Splits serde's "`word`, expected one of `a`, `b`" into the word and what was expected.
fn split_expected(text: &str) -> (&str, Vec<&str>) {
    let word_end = text.find("`, ").map_or(text.len(), |at| at + 1);
    let known = text[word_end..].split('`').skip(1).step_by(2).collect();
    (text[..word_end].trim_matches('`'), known)
}

fn list_keys(keys: &[&str]) -> Phrase {
    match keys {
        [] => phrase!("this table takes no keys", "この表にキーはありません"),
        keys => phrase!("keys that belong here: {keys}", "ここに書けるキー：{keys}", keys = keys.join(", ")),
    }
}

/// serde's description of the expected type, in TOML's terms.
fn plain_expected(expected: &str) -> Phrase {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => phrase!("a whole number, not negative", "0 以上の整数"),
        "i8" | "i16" | "i32" | "i64" | "isize" => phrase!("a whole number", "整数"),
        "f32" | "f64" => phrase!("a number", "数値"),
        "a boolean" => phrase!("true or false", "true または false "),
        "a string" => phrase!("a text in quotes", "引用符で囲んだ文字列"),
        "a sequence" => phrase!("an array", "配列"),
        "a map" => phrase!("a table", "表"),
        other if other.starts_with("struct ") => phrase!("a table", "表"),
        other => Phrase::from_stored(other),
    }
}

/// serde's description of the found type, in TOML's terms.
fn plain_found(found: &str) -> Phrase {
    let number = |number: &str| phrase!("the number {number}", "数値 {number} ");
    match found {
        "map" => phrase!("a table", "表"),
        "sequence" => phrase!("an array", "配列"),
        found => match found.split_once(' ') {
            Some(("string", text)) => phrase!("the text {text}", "文字列 {text} "),
            Some(("integer", text)) => number(text),
            Some(("floating", text)) => number(text.trim_start_matches("point ")),
            Some(("boolean", value)) => phrase!("{value}", "{value} "),
            _ => Phrase::verbatim(found),
        },
    }
}
