//! Shell completion, including names of jobs, blogs and channels, and manual pages. Both are made from the command
//! tree.

use std::path::PathBuf;

use clap::{Command, ValueEnum};
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::{Bash, CompleteEnv, Elvish, EnvCompleter, Fish, Powershell, Zsh};

use super::kind_flags::{self, Channels, Jobs};
use super::reference::render_reference;
use super::{Context, Error, Exit, Result, tree};
use tsuzuki::app;
use tsuzuki::config::{self, Env};
use tsuzuki::phrase;

/// The variable by which a shell requests completions from the program.
const VARIABLE: &str = "TSUZUKI_COMPLETE";

/// Options of `completions`.
#[derive(Debug, clap::Args)]
pub(super) struct CompletionArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
}

/// Options of `man`.
#[derive(Debug, clap::Args)]
pub(super) struct ManArgs {
    /// Write one page per command into this directory instead
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Print all commands as one page of Markdown instead
    #[arg(long, conflicts_with = "dir")]
    markdown: bool,
}

/// Answers a completion request of a shell and ends the program; otherwise does nothing.
pub(super) fn answer_shell() {
    CompleteEnv::with_factory(tree).var(VARIABLE).complete();
}

pub(super) fn completions(args: &CompletionArgs, context: &Context) -> Result {
    let shell: &dyn EnvCompleter = match args.shell {
        Shell::Bash => &Bash,
        Shell::Elvish => &Elvish,
        Shell::Fish => &Fish,
        Shell::Powershell => &Powershell,
        Shell::Zsh => &Zsh,
    };
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, "tsuzuki", "tsuzuki", "tsuzuki", &mut script)?;
    context.out.raw(&script)?;
    Ok(Exit::Fine)
}

pub(super) fn man(args: &ManArgs, context: &Context) -> Result {
    match &args.dir {
        None if args.markdown => context.out.raw(render_reference().as_bytes())?,
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(tree()).render(&mut page)?;
            context.out.raw(&page)?;
        }
        Some(dir) => {
            std::fs::create_dir_all(dir)
                .map_err(|error| Error::failed(format!("{}: {error}", dir.display())))?;
            clap_mangen::generate_to(tree(), dir)?;
            context.out.note(phrase!(
                "Wrote the manual pages to {dir}",
                "マニュアルページを {dir} に書き出しました"
            ));
        }
    }
    Ok(Exit::Fine)
}

/// Adds completion of the names in the config to the arguments.
pub(super) fn add_names(command: Command, path: &str) -> Command {
    let noun = path.split(' ').next().unwrap_or_default();
    let ids: Vec<String> = command.get_arguments().map(|argument| argument.get_id().to_string()).collect();
    ids.into_iter().fold(command, |command, id| {
        let kinds: Option<fn() -> Vec<&'static str>> = match (path, id.as_str()) {
            ("job add", "words" | "kind") | ("run-due", "kind") => Some(kind_flags::list_names::<Jobs>),
            ("channel add", "words") => Some(kind_flags::list_names::<Channels>),
            _ => None,
        };
        if let Some(kinds) = kinds {
            let candidates = move || kinds().into_iter().map(CompletionCandidate::new).collect();
            return command.mut_arg(id, |argument| argument.add(ArgValueCandidates::new(candidates)));
        }
        let words: &[&str] = match (noun, id.as_str()) {
            (_, "job") => &["job"],
            (_, "channel" | "deliver") => &["channel"],
            (_, "blog") if noun != "job" => &["blog"],
            ("job" | "run" | "status", "name" | "names") if path != "job add" => &["job"],
            ("blog", "id") if path != "blog add" => &["blog"],
            ("channel", "name") => &["channel"],
            (_, "provider") => &["provider"],
            ("why", "thing") => &["job", "blog", "channel", "provider"],
            _ => return command,
        };
        command.mut_arg(id, |argument| argument.add(ArgValueCandidates::new(move || list_names(words))))
    })
}

/// The config file in the command line to be completed.
fn find_named_config() -> Option<PathBuf> {
    let words: Vec<String> = std::env::args().skip_while(|word| word != "--").collect();
    let named = words.windows(2).find(|pair| matches!(pair[0].as_str(), "-c" | "--config"));
    named.map(|pair| PathBuf::from(&pair[1]))
}

/// The names of these sorts in the config; none if it cannot be read.
fn list_names(words: &[&str]) -> Vec<CompletionCandidate> {
    let env = Env::of_process();
    let config = config::find_path(find_named_config().as_deref(), &env)
        .and_then(|path| config::load(&path, app::kinds(), &env).ok());
    let things = app::things().filter(|thing| words.contains(&thing.word));
    let names = things.flat_map(|thing| config.as_ref().map(thing.list_configured).unwrap_or_default());
    names.map(CompletionCandidate::new).collect()
}
