//! The reference page of the command line, made from the command tree itself.

use std::fmt::Write;

use super::{examples, tree};

/// Every command with its options, as Markdown.
pub(crate) fn render_reference() -> String {
    let mut page = String::from(
        "# Command line\n\nMade from the program itself; a test fails when it is out of date.\n\n\
         Data goes to stdout, everything else to stderr. `--json` works on every listing; `docs/schema/` says what is in it, and errors are\n\
         JSON then, too. `list` means `ls`, `delete` means `rm`. The examples work in the directory of `tsuzuki demo --keep DIR`.\n",
    );
    let mut root = tree();
    root.build();
    render(&root, "", &mut page);
    page
}

fn render(command: &clap::Command, above: &str, page: &mut String) {
    let name = format!("{above}{}", command.get_name());
    // Writing to a String cannot fail.
    let _ = write!(
        page,
        "\n## `{name}`\n\n{}\n",
        command.get_about().map(ToString::to_string).unwrap_or_default()
    );
    let path = name.strip_prefix("tsuzuki").unwrap_or_default().trim_start();
    if let Some(examples) = examples::find(path) {
        let _ = write!(page, "\n```sh\n{}\n```\n", examples.map(|one| format!("tsuzuki {one}")).join("\n"));
    }
    let arguments: Vec<_> = command
        .get_arguments()
        .filter(|argument| {
            !argument.is_hide_set() && !matches!(argument.get_id().as_str(), "help" | "version")
        })
        .filter(|argument| above.is_empty() || !argument.is_global_set())
        .collect();
    if !arguments.is_empty() {
        page.push_str("\n| | |\n|---|---|\n");
        for argument in arguments {
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(page, "| `{}` | {} |", shown(argument), help.replace('|', "\\|"));
        }
    }
    for subcommand in command.get_subcommands().filter(|subcommand| subcommand.get_name() != "help") {
        render(subcommand, &format!("{name} "), page);
    }
}

fn shown(argument: &clap::Arg) -> String {
    let value = argument.get_value_names().and_then(<[_]>::first).map(ToString::to_string);
    let takes_value = argument.get_action().takes_values();
    let mut text = match (argument.get_short(), argument.get_long()) {
        (Some(short), Some(long)) => format!("-{short}, --{long}"),
        (None, Some(long)) => format!("--{long}"),
        (Some(short), None) => format!("-{short}"),
        (None, None) => return value.unwrap_or_else(|| argument.get_id().to_string().to_uppercase()),
    };
    if takes_value {
        let _ = write!(text, " {}", value.unwrap_or_else(|| "VALUE".into()));
    }
    text
}
