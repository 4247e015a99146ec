//! Syntax errors of a file that is not TOML.

use stdx::phrase;
use stdx::phrase::Phrase;

use crate::diagnostic::{ConfigSource, Problem, Problems};

/// The most syntax errors to process: a file that is not TOML has one in every line.
const MOST_SYNTAX_ERRORS: usize = 100;

pub(super) fn list_errors(source: &ConfigSource, errors: &[toml::de::Error]) -> Problems {
    let mut problems = errors.iter().map(|err| syntax_error(source, err)).collect::<Problems>().in_order();
    // Counting lines scans the text before the error.
    problems.truncate(MOST_SYNTAX_ERRORS);
    // One mistake often causes more errors in the same line and the next ones; the first few are enough.
    problems.keep_first_of_each_line();
    problems.truncate(5);
    problems
}

fn syntax_error(source: &ConfigSource, err: &toml::de::Error) -> Problem {
    let text = source.text();
    let span = err.span().unwrap_or(0..0);
    let rest = text.get(span.start..).unwrap_or_default();
    let at_line_end = rest.is_empty() || rest.starts_with(['\r', '\n']);
    if at_line_end && (err.message().contains("basic string") || err.message().contains("literal string")) {
        return Problem::at(
            source,
            span.start..span.start,
            phrase!(
                "a text in quotes is not closed in its line",
                "引用符で囲んだ文字列がその行で閉じていません"
            ),
        )
        .with_label(phrase!("the closing quote is missing", "閉じる引用符がありません"));
    }
    Problem::at(source, if at_line_end { span.start..span.start } else { span }, not_toml(err))
}

/// The parser's message in our words.
pub(crate) fn not_toml(err: &toml::de::Error) -> Phrase {
    phrase!("{why}", "TOML の書式の誤り：{why}", why = err.message())
}
