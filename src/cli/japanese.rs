//! Help and usage errors in Japanese: one table of texts for the command tree and for clap's own messages.

use std::collections::HashMap;
use std::sync::LazyLock;

use clap::{Arg, Command};

use super::kind_flags;
use tsuzuki::config::value::BadValue;
use tsuzuki::id::BadName;
use tsuzuki::phrase::Speech;
use tsuzuki::text::Language;
use tsuzuki::time::NotATime;
use tsuzuki::word_enum::UnknownWord;

/// English and Japanese, with a tab between them; `{}` is a value inserted by clap.
const TABLE: &str = include_str!("help.ja.tsv");
/// From this line on, the texts are clap's own.
const OF_CLAP: &str = "# clap";

pub(super) const SPEECH: Speech = Speech { language: Language::Ja, zone: None };

/// The Japanese for an English text of ours.
pub(super) fn find(english: &str) -> Option<String> {
    static TEXTS: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| ours().collect());
    TEXTS.get(english).map(|text| (*text).to_owned()).or_else(|| kind_flags::find_japanese(english))
}

fn ours() -> impl Iterator<Item = (&'static str, &'static str)> {
    TABLE.lines().take_while(|line| *line != OF_CLAP).filter_map(|line| line.split_once('\t'))
}

fn claps() -> impl Iterator<Item = (&'static str, &'static str)> {
    TABLE.lines().skip_while(|line| *line != OF_CLAP).filter_map(|line| line.split_once('\t'))
}

fn text(english: impl ToString) -> String {
    let english = english.to_string();
    find(&english).unwrap_or(english)
}

/// The tree with its texts in Japanese.
pub(super) fn translate(mut command: Command) -> Command {
    if let Some(about) = command.get_about().map(text) {
        command = command.about(about);
    }
    if let Some(about) = command.get_long_about().map(text) {
        command = command.long_about(about);
    }
    if let Some(after) = command.get_after_help().map(text) {
        command = command.after_help(after);
    }
    // clap breaks lines at spaces, which are rare in Japanese; terminals break them anywhere.
    command.term_width(0).mut_args(translate_argument).mut_subcommands(translate)
}

fn translate_argument(mut argument: Arg) -> Arg {
    if let Some(heading) = argument.get_help_heading().map(text) {
        // clap needs static headings; there are few.
        argument = argument.help_heading(&*heading.leak());
    }
    if let Some(help) = argument.get_long_help().map(text) {
        argument = argument.long_help(help);
    }
    match argument.get_help().map(text) {
        Some(help) => argument.help(help),
        None => argument,
    }
}

/// Translates clap's output into Japanese.
pub(super) fn translate_output(error: &clap::Error, written: &str) -> String {
    let mut text = written.to_owned();
    let source = std::error::Error::source(error);
    let why = source.and_then(|source| {
        let of_value = source.downcast_ref::<BadValue>().map(|error| error.message().clone());
        let of_name = || source.downcast_ref::<BadName>().map(|error| error.phrase().clone());
        let of_word = || source.downcast_ref::<UnknownWord>().map(|error| error.phrase().clone());
        let of_time = || source.downcast_ref::<NotATime>().map(NotATime::phrase);
        of_value.or_else(of_name).or_else(of_word).or_else(of_time)
    });
    if let Some(why) = why {
        text = text.replace(&why.to_string(), &SPEECH.phrase(&why));
    }
    translate_layout(&text)
}

/// Translates lines laid out by clap into Japanese.
pub(super) fn translate_layout(text: &str) -> String {
    let lines = text.split_inclusive('\n').map(|line| {
        let value = line.trim_start().strip_prefix("- ").and_then(|value| value.split_once(": "));
        match value.and_then(|(_, help)| Some((help.trim(), find(help.trim())?))) {
            Some((help, japanese)) => line.replacen(help, &japanese, 1),
            None => claps().fold(line.to_owned(), replace),
        }
    });
    lines.collect()
}

/// `line` with the first match of `english` in Japanese.
fn replace(line: String, (english, japanese): (&str, &str)) -> String {
    let mut pieces = english.split("{}");
    let Some(start) = line.find(pieces.next().unwrap_or_default()) else { return line };
    let mut at = start + english.split("{}").next().map_or(0, str::len);
    let mut values = Vec::new();
    for piece in pieces {
        let Some(length) = line[at..].find(piece) else { return line };
        values.push(&line[at..at + length]);
        at += length + piece.len();
    }
    // The Japanese often has the second value first, written as `{2}` in the table.
    let text = values.iter().enumerate().fold(japanese.to_owned(), |text, (number, value)| {
        text.replace(&format!("{{{}}}", number + 1), value).replacen("{}", value, 1)
    });
    format!("{}{text}{}", &line[..start], &line[at..])
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::cli::{help, tree, tree_in};

    /// Every text of the tree that users read.
    fn list_texts(command: &Command, texts: &mut BTreeSet<String>) {
        let own = [command.get_about(), command.get_long_about()];
        texts.extend(own.into_iter().flatten().map(ToString::to_string));
        for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
            let helps = [argument.get_help(), argument.get_long_help()];
            texts.extend(helps.into_iter().flatten().map(ToString::to_string));
            texts.extend(argument.get_help_heading().map(str::to_owned));
            let values = argument.get_possible_values();
            texts.extend(values.iter().filter_map(|value| value.get_help()).map(ToString::to_string));
        }
        command.get_subcommands().for_each(|below| list_texts(below, texts));
    }

    fn english() -> BTreeSet<String> {
        let mut texts: BTreeSet<String> = help::list_headings().map(str::to_owned).collect();
        let root = <crate::cli::Cli as clap::CommandFactory>::command();
        texts.extend(root.get_after_help().map(ToString::to_string));
        list_texts(&root, &mut texts);
        texts
    }

    #[test]
    fn every_text_of_the_help_has_japanese_and_none_is_stale() {
        let texts = english();
        assert!(texts.len() > 200, "{}", texts.len());
        let lacking: Vec<&String> = texts.iter().filter(|text| find(text).is_none()).collect();
        assert!(lacking.is_empty(), "no Japanese for {lacking:#?}");
        let stale: Vec<&str> = ours().map(|(en, _)| en).filter(|en| !texts.contains(*en)).collect();
        assert!(stale.is_empty(), "nothing says {stale:#?}");
        let repeated = ours().count() - ours().map(|(en, _)| en).collect::<BTreeSet<_>>().len();
        assert_eq!(repeated, 0, "a text stands twice in the table");
    }

    /// Sentences that are stored are found again by their English words; words without values are labels, which depend on where they stand.
    #[test]
    fn one_english_sentence_is_one_japanese_sentence() {
        let mut japanese: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for template in tsuzuki::phrase::TEMPLATES.iter().filter(|template| template.en.contains('{')) {
            japanese.entry(template.en).or_default().insert(template.ja);
        }
        assert!(japanese.len() > 500, "{} templates are linked", japanese.len());
        japanese.retain(|_, words| words.len() > 1);
        assert!(japanese.is_empty(), "{japanese:#?}");
    }

    fn said(words: &str) -> String {
        let error = tree_in(Language::Ja).try_get_matches_from(words.split(' ')).unwrap_err();
        translate_output(&error, &error.render().to_string())
    }

    /// How many English words stand in a row at most.
    fn longest_english(line: &str) -> usize {
        // What stands in backquotes is to be typed.
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        let is_word = |c: char| c.is_ascii_lowercase() || c == ' ';
        let runs = prose.split("  ").flat_map(|text| text.split(|c| !is_word(c)));
        runs.map(|run| run.split_whitespace().count()).max().unwrap_or_default()
    }

    /// Gives every option and argument of the tree these values and returns what is refused, with what is said.
    fn refuse(command: &Command, path: &str, values: &[&str], refused: &mut Vec<(String, String)>) {
        for argument in command.get_arguments().filter(|argument| argument.get_action().takes_values()) {
            for value in values {
                let words = match argument.get_long() {
                    Some(long) => format!("{path} --{long} {value}"),
                    None => format!("{path} {value}"),
                };
                let error = tree_in(Language::Ja).try_get_matches_from(words.split(' ')).err();
                let is_meant = |error: &clap::Error| {
                    matches!(
                        error.kind(),
                        clap::error::ErrorKind::ValueValidation | clap::error::ErrorKind::InvalidValue
                    )
                };
                if let Some(error) = error.filter(is_meant) {
                    refused.push((words, translate_output(&error, &error.render().to_string())));
                }
            }
        }
        for below in command.get_subcommands() {
            refuse(below, &format!("{path} {}", below.get_name()), values, refused);
        }
    }

    #[test]
    fn no_refusal_of_a_value_has_a_sentence_in_english() {
        let mut refused = Vec::new();
        refuse(&tree(), "tsuzuki", &["?!", "", "=x", "0", "99999999999999999999", "99999"], &mut refused);
        assert!(refused.len() > 100, "{}", refused.len());
        let sentences = refused.iter().flat_map(|(words, said)| said.lines().map(move |line| (words, line)));
        // What is known stands one after the other.
        let is_english = |line: &str| !line.contains("指定できる値") && longest_english(line) > 1;
        let english: Vec<_> = sentences.filter(|(_, line)| is_english(line)).collect();
        assert!(english.is_empty(), "{english:#?}");
    }

    #[test]
    fn no_page_of_help_has_a_sentence_in_english() {
        fn walk(command: &Command, path: &str, pages: &mut Vec<String>) {
            pages.push(path.to_owned());
            for below in command.get_subcommands() {
                walk(below, &format!("{path} {}", below.get_name()), pages);
            }
        }
        let mut pages = Vec::new();
        walk(&tree(), "tsuzuki", &mut pages);
        for page in pages {
            for flag in ["-h", "--help"] {
                let shown = said(&format!("{page} {flag}"));
                let is_typed = |line: &&str| line.starts_with("  tsuzuki ") || line.starts_with("使い方:");
                for line in shown.lines().filter(|line| !is_typed(line)) {
                    assert!(longest_english(line) < 3, "{page} {flag}: {line}");
                }
            }
        }
    }

    #[test]
    fn usage_errors_are_framed_in_japanese() {
        for (words, shown) in [
            ("tsuzuki nosuch", "エラー: サブコマンド 'nosuch' はありません"),
            ("tsuzuki run --nosuch", "エラー: 引数 '--nosuch' はありません"),
            ("tsuzuki job rm", "エラー: 必要な引数が指定されていません:"),
            ("tsuzuki -q -v status", "エラー: 引数 '--quiet' と '--verbose' は同時に使えません"),
            ("tsuzuki status --color x", "エラー: '--color <WHEN>' に 'x' は指定できません"),
            ("tsuzuki db prune --keep x", "`x` は期間ではありません"),
        ] {
            let text = said(words);
            assert!(text.contains(shown), "{words}: {text}");
            assert!(text.contains("使い方:") || words.contains(" x"), "{words}: {text}");
            assert!(text.contains("詳しくは '--help' を参照してください"), "{words}: {text}");
            assert!(!text.contains("error:") && !text.contains("For more"), "{words}: {text}");
        }
    }
}
