//! Turns what serde says about a table into what a person can act on.

use std::ops::Range;

use super::diagnostic::Problem;
use super::kind::{Kind, TableKind};
use super::reading::Misfit;
use super::schema::list_tables;
use super::section::Section;
use super::tree::TomlTable;
use stdx::text::nearest;

/// What is known about the table that an error comes from.
pub(super) struct Explainer<'a> {
    pub(super) section: &'a Section,
    pub(super) table: &'a TomlTable,
    /// Keys that someone else reads.
    pub(super) taken: &'static [&'static str],
}

/// The problem behind a deserialisation error, with a suggestion where one can be made.
pub(super) fn explain(err: &Misfit, about: &Explainer<'_>) -> Problem {
    let span = err.span().unwrap_or_else(|| about.section.span.clone());
    let problem = |message: String| Problem::at(&about.section.file.source, span.clone(), message);
    let (message, hint) = match err.message().split_once("\nhint: ") {
        Some((message, hint)) => (message, Some(hint)),
        None => (err.message(), None),
    };
    if let Some(rest) = message.strip_prefix("unknown field ") {
        let (key, known) = split_expected(rest);
        return unknown_key(&problem(format!("unknown key `{key}`")), key, &known, &span, about);
    }
    if let Some(rest) = message.strip_prefix("unknown variant ") {
        let (word, known) = split_expected(rest);
        let problem = problem(format!("`{word}` is not one of {}", quote_all(&known)));
        return match nearest(word, known.iter().copied()) {
            Some(near) => problem.with_label(format!("did you mean `{near}`?")),
            None => problem,
        };
    }
    for prefix in ["invalid type: ", "invalid value: "] {
        if let Some((found, expected)) =
            message.strip_prefix(prefix).and_then(|rest| rest.rsplit_once(", expected "))
        {
            let (expected, found) = (plain_expected(expected), plain_found(found));
            return problem(format!("expected {expected}, found {found}"));
        }
    }
    match hint {
        Some(hint) => problem(message.to_owned()).with_hint(hint),
        None => problem(message.to_owned()),
    }
}

/// The problem of a table at `span` that lacks a key.
pub(super) fn missing_key(section: &Section, span: &Range<usize>, key: &str) -> Problem {
    Problem::at(&section.file.source, span.clone(), format!("the key `{key}` is missing"))
        .with_label(format!("`{key}` belongs here"))
}

fn unknown_key(
    problem: &Problem,
    key: &str,
    known: &[&str],
    span: &Range<usize>,
    about: &Explainer<'_>,
) -> Problem {
    let problem = problem.clone();
    let outermost = about.table.find_key_span(key).is_some_and(|at| at == *span);
    let mut candidates = known.to_vec();
    if outermost {
        candidates.extend(about.taken);
    }
    if let Some(near) = nearest(key, candidates.iter().copied()) {
        return problem.with_label(format!("did you mean `{near}`?"));
    }
    let (place, kinds) = (about.section.place, about.section.file.kinds);
    let is_own = |kind: &&Kind| kind.place == place && kind.name == about.section.kind;
    let own = kinds.iter().find(is_own);
    if !outermost && (about.taken.contains(&key) || own.is_some_and(|own| own.has_key(key))) {
        return problem.with_hint(format!(
            "`{key}` belongs to the {} itself: move it up, before any line that opens a table inside it",
            place.noun()
        ));
    }
    let others = kinds.iter().filter(|kind| kind.place == place && !is_own(kind));
    let owners: Vec<&str> = others.filter(|kind| kind.has_key(key)).map(|kind| kind.name).collect();
    if outermost && !owners.is_empty() {
        return problem.with_hint(format!("`{key}` belongs to kind = \"{}\"", owners.join("\" or \"")));
    }
    match list_homes(key, kinds).as_slice() {
        homes if homes.is_empty() || !outermost => problem.with_hint(list_keys(&candidates)),
        homes => problem.with_hint(format!("`{key}` belongs in {}", homes.join(" or "))),
    }
}

/// The headers of the tables that have `key`, at most three.
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

fn list_keys(keys: &[&str]) -> String {
    match keys {
        [] => "this table takes no keys".to_owned(),
        keys => format!("keys that belong here: {}", keys.join(", ")),
    }
}

fn quote_all(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// serde's words for what was wanted, in TOML's words.
fn plain_expected(expected: &str) -> &str {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, not negative",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a string" => "a text in quotes",
        "a sequence" => "an array",
        "a map" => "a table",
        other => match other.strip_prefix("struct ") {
            Some(_) => "a table",
            None => other,
        },
    }
}

/// serde's words for what was found, in TOML's words.
fn plain_found(found: &str) -> String {
    match found {
        "map" => "a table".to_owned(),
        "sequence" => "an array".to_owned(),
        found => match found.split_once(' ') {
            Some(("string", text)) => format!("the text {text}"),
            Some(("integer", number)) => format!("the number {number}"),
            Some(("floating", number)) => format!("the number {}", number.trim_start_matches("point ")),
            Some(("boolean", value)) => value.to_owned(),
            _ => found.to_owned(),
        },
    }
}
