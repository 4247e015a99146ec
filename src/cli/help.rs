//! The command tree for users: commands in groups, two examples on every page, aliases, and names to complete.

use clap::Command;

use super::{Global, complete, examples, japanese, output, table};
use tsuzuki::text::{Language, width};

/// The commands in the order in which a new user needs them.
const GROUPS: &[(&str, &[&str])] = &[
    ("Start here", &["demo", "init", "check", "doctor"]),
    ("Every day", &["status", "run-due", "run", "serve", "why"]),
    (
        "Sources",
        &["job", "blog", "change", "item", "book", "bulk", "commits", "project", "branch", "inspect"],
    ),
    ("Deliveries", &["channel", "delivery", "mail", "post"]),
    ("Data", &["export", "import", "db", "quota"]),
    ("Setup", &["config", "token", "completions", "man", "version"]),
];

const EXAMPLES: &str = "Examples";

/// The greatest width of help, also without a terminal: clap's default.
const WIDEST: usize = 100;

/// Aliases of commands, anywhere in the tree.
const ALIASES: &[(&str, &str)] = &[("ls", "list"), ("rm", "delete")];

/// Adds groups, examples and aliases, and translates the tree into `language`.
pub(super) fn dress(root: Command, language: Language) -> Command {
    let in_language = |command: Command| match language {
        Language::En => command,
        Language::Ja => japanese::translate(command),
    };
    let root = in_language(root);
    let groups = render_groups(&root, language);
    // clap's placeholder for options ignores headings.
    let alone = in_language(<Global as clap::Args>::augment_args(Command::new("tsuzuki")));
    let options = alone.help_template("{all-args}").version("").clone().render_help().to_string();
    let options = match language {
        Language::En => options,
        Language::Ja => japanese::translate_layout(&options),
    };
    let about = root.get_about().map(ToString::to_string).unwrap_or_default();
    let exit_codes = root.get_after_help().map(ToString::to_string).unwrap_or_default();
    // clap wraps only its own layout, and only at spaces.
    let (about, listed, exit_codes) =
        (wrap(&about), wrap(&format!("{groups}{}", options.trim_end())), wrap(&exit_codes));
    let template = format!("{about}\n\n{{usage-heading}} {{usage}}\n\n{listed}{{after-help}}");
    let root = dress_below(root, "", language).help_template(template);
    let examples = root.get_after_help().map(ToString::to_string).unwrap_or_default();
    root.after_help(format!("{examples}\n\n{exit_codes}"))
}

fn dress_below(command: Command, path: &str, language: Language) -> Command {
    let name = command.get_name().to_owned();
    let mut command = complete::add_names(command, path);
    if let Some(examples) = examples::find(path) {
        let lines = examples.map(|example| format!("  tsuzuki {example}"));
        command = command.after_help(format!("{}:\n{}", heading(EXAMPLES, language), lines.join("\n")));
    }
    if let Some((_, alias)) = ALIASES.iter().find(|(known, _)| *known == name) {
        command = command.visible_alias(*alias);
    }
    command.mut_subcommands(|below| {
        let path = format!("{path} {}", below.get_name()).trim_start().to_owned();
        dress_below(below, &path, language)
    })
}

/// Wraps `text` at the width of the terminal: lines continue after their label, or below a label that leaves too little
/// room.
fn wrap(text: &str) -> String {
    let room = output::terminal_size().map_or(WIDEST, |(width, _)| width.min(WIDEST));
    let lines = text.split('\n').flat_map(|line| match line.trim_start().split_once("  ") {
        Some((_, rest)) if width(line) > room && width(line) - width(rest.trim_start()) > room / 2 => {
            let above = line[..line.len() - rest.len()].trim_end().to_owned();
            let below = format!("{:10}{}", "", rest.trim_start());
            std::iter::once(above).chain(table::wrap_line(&below, room)).collect()
        }
        _ => table::wrap_line(line, room),
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn heading(english: &str, language: Language) -> String {
    let found = (language == Language::Ja).then(|| japanese::find(english)).flatten();
    found.unwrap_or_else(|| english.to_owned())
}

/// The headings that no definition of a command has.
#[cfg(test)]
pub(super) fn list_headings() -> impl Iterator<Item = &'static str> {
    GROUPS.iter().map(|(title, _)| *title).chain([EXAMPLES])
}

fn render_groups(root: &Command, language: Language) -> String {
    let mut text = String::new();
    for (title, names) in GROUPS {
        text.push_str(&format!("{}:\n", heading(title, language)));
        for command in names.iter().filter_map(|name| root.find_subcommand(name)) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            text.push_str(&format!("  {:<12} {about}\n", command.get_name()));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::tree;

    fn walk(command: &Command, path: &str, seen: &mut Vec<(String, Command)>) {
        seen.push((path.to_owned(), command.clone()));
        for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
            walk(below, format!("{path} {}", below.get_name()).trim_start(), seen);
        }
    }

    fn all() -> Vec<(String, Command)> {
        let (mut seen, mut root) = (Vec::new(), tree());
        root.build();
        walk(&root, "", &mut seen);
        seen
    }

    #[test]
    fn every_command_stands_in_one_group() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let root = tree();
        let mut known: Vec<&str> = root.get_subcommands().map(Command::get_name).collect();
        grouped.sort_unstable();
        known.sort_unstable();
        assert_eq!(grouped, known);
        let help = tree().render_help().to_string();
        for words in
            ["Start here:", "Every day:", "Deliveries:", "  status ", "Global options", "Exit codes:"]
        {
            assert!(help.contains(words), "{words}: {help}");
        }
    }

    #[test]
    fn every_page_of_help_has_two_examples_that_can_be_parsed() {
        for (path, mut command) in all() {
            let help = command.render_help().to_string();
            let examples: Vec<&str> =
                help.lines().filter_map(|line| line.strip_prefix("  tsuzuki ")).collect();
            assert_eq!(examples.len(), 2, "`{path}`: {help}");
            assert_ne!(examples[0], examples[1], "`{path}`");
            for example in examples {
                assert!(example.starts_with(&path) || path.is_empty(), "`{path}`: {example}");
                let words = shell_words(example);
                let parsed = tree().try_get_matches_from(std::iter::once("tsuzuki".to_owned()).chain(words));
                if let Err(error) = parsed {
                    assert!(!error.use_stderr(), "{example}: {error}");
                }
            }
        }
    }

    /// Splits words as a shell does, with single quotes.
    fn shell_words(text: &str) -> Vec<String> {
        let (mut words, mut is_quoted) = (vec![String::new()], false);
        for c in text.chars() {
            match c {
                '\'' => is_quoted = !is_quoted,
                ' ' if !is_quoted => words.push(String::new()),
                c => words.last_mut().unwrap().push(c),
            }
        }
        words
    }

    #[test]
    fn other_words_for_commands_work() {
        for words in ["job list", "blog delete x --yes", "branch delete a b", "delivery list", "version"] {
            let parsed = tree().try_get_matches_from(format!("tsuzuki {words}").split(' '));
            assert!(parsed.is_ok(), "{words}: {parsed:?}");
        }
    }
}
