//! Parses a table as far as possible: problems are reported and skipped, and the rest is parsed.

use std::cell::{Cell, RefCell};
use std::ops::Range;

use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::de::value::MapAccessDeserializer;

use super::SecretUse;
use super::diagnostic::{Problem, Problems};
use super::explain::{Explainer, explain, missing_key};
use super::reading::{Misfit, Pairs, Reading, SeenSecret};
use super::section::Section;
use super::tree::TomlTable;
use stdx::phrase;

/// The most problems of one table: each requires parsing it again.
const MOST_PROBLEMS: usize = 100;

/// The result of parsing a table.
pub(super) struct Lenient<T> {
    /// The value without the wrong parts; `None` if a required part is wrong.
    pub(super) value: Option<T>,
    /// Whether a list in the value lacks an item, so that the indexes of later ones have changed.
    pub(super) is_shifted: bool,
    pub(super) secrets: Vec<SecretUse>,
    pub(super) problems: Problems,
}

/// Parses the keys of `table`, which is that of `section`, except for those in `taken`.
pub(super) fn read_lenient<T: DeserializeOwned + JsonSchema>(
    section: &Section,
    table: &TomlTable,
    taken: &'static [&'static str],
) -> Lenient<T> {
    let about = Explainer { section, table, taken };
    let mut problems = Problems::default();
    let mut skipped: Vec<Range<usize>> = Vec::new();
    loop {
        let reading = Reading {
            context: &section.file.secret_context,
            skipped: &skipped,
            secrets: RefCell::default(),
            is_shifted: Cell::new(false),
        };
        let outcome = T::deserialize(MapAccessDeserializer::new(Pairs::new(table, taken, &reading)));
        let (seen, is_shifted) = (reading.secrets.into_inner(), reading.is_shifted.get());
        let (value, skip) = match outcome {
            Ok(value) => (Some(value), None),
            Err(misfit) => {
                problems.extend(list_problems::<T>(&misfit, &about));
                (None, misfit.skip())
            }
        };
        let is_full = problems.len() >= MOST_PROBLEMS;
        if is_full {
            let more = section.header_problem(phrase!(
                "there may be more problems in this table",
                "この表にはほかにも問題があるかもしれません"
            ));
            problems.push(
                more.with_hint(phrase!("they show once these are mended", "これらを直すと表示されます")),
            );
        }
        match skip.filter(|_| !is_full) {
            Some(skip) => skipped.push(skip),
            None => {
                problems.extend(list_stray_references(&about, &list_file_keys::<T>(), &seen, &skipped));
                let secrets = section.list_secret_uses(table, seen);
                return Lenient { value, is_shifted, secrets, problems: problems.in_order() };
            }
        }
    }
}

/// The problems of a misfit: all missing keys of its table, or the one wrong value.
fn list_problems<T: JsonSchema>(misfit: &Misfit, about: &Explainer<'_>) -> Vec<Problem> {
    let Some(of) = misfit.lacking() else { return vec![explain(misfit, about)] };
    let span = misfit.span().unwrap_or_else(|| about.section.span.clone());
    let mut generator = SchemaGenerator::default();
    let outermost = T::json_schema(&mut generator).to_value();
    let (schema, table) = match of {
        None => (Some(&outermost), Some(about.table)),
        Some(name) => (generator.definitions().get(name), about.table.find_table_at(&span)),
    };
    let required = schema.and_then(|schema| schema["required"].as_array()).into_iter().flatten();
    let has = |key: &str| table.is_some_and(|table| table.find(key).is_some());
    // A key that is present but wrong has been reported already.
    let missing = required.filter_map(|key| key.as_str()).filter(|key| !has(key));
    missing.map(|key| missing_key(about.section, &span, key)).collect()
}

/// Keys of files, which may be written as `${file:path}`: they have `x-file` in the schema.
fn list_file_keys<T: JsonSchema>() -> Vec<String> {
    let schema = T::json_schema(&mut SchemaGenerator::default()).to_value();
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties.filter(|(_, property)| property["x-file"] == true).map(|(key, _)| key.clone()).collect()
}

/// References in keys that are not secrets. They are not replaced, so report them instead of using `${NAME}` literally.
fn list_stray_references(
    about: &Explainer<'_>,
    files: &[String],
    secrets: &[SeenSecret],
    skipped: &[Range<usize>],
) -> Vec<Problem> {
    let mut stray = Vec::new();
    about.table.each_text(
        &|entry| {
            let key = &*entry.key;
            about.taken.contains(&key) || files.iter().any(|file| file == key) || entry.is_at(skipped)
        },
        &mut |span, text| {
            let is_known = skipped.contains(span) || secrets.iter().any(|seen| seen.span == *span);
            if !is_known && super::lookup::has_reference(text) {
                let message = phrase!(
                    "{reference} is filled in only where a secret belongs",
                    "{reference} は秘密情報のキーでだけ置き換えられます",
                    reference = "`${…}`"
                );
                let problem = Problem::at(&about.section.file.source, span.clone(), message);
                stray.push(problem.with_hint(phrase!(
                    "write the value itself; it is no secret",
                    "秘密情報ではないので、値をそのまま書いてください"
                )));
            }
        },
    );
    stray
}
