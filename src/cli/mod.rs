//! The command line: one file per noun; data goes to stdout, everything else to stderr.

mod blog;
mod book;
mod branch;
mod bulk;
mod change;
mod channel;
mod check;
mod commits;
mod complete;
mod config;
mod context;
mod db;
mod delivery;
mod demo;
mod doctor;
mod error;
mod examples;
mod export;
mod help;
mod import;
mod init;
pub(crate) mod inspect;
mod item;
mod japanese;
mod job;
mod kind_flags;
mod log;
mod mail;
mod names;
mod output;
mod post;
mod progress;
mod project;
mod quota;
mod reference;
mod run;
mod sending;
mod serve;
mod signals;
mod since;
mod status;
mod table;
mod token;
mod view;
mod waiting;
mod why;

use std::ffi::OsString;
use std::future::{Future, ready};
use std::io::{IsTerminal as _, Write};
use std::path::PathBuf;
use std::pin::Pin;

use clap::{CommandFactory, FromArgMatches as _, Parser, Subcommand, ValueEnum};

pub(crate) use context::Context;
pub(crate) use error::{Error, Exit, Result};
pub(crate) use output::Output;
use signals::Stopping;
pub(crate) use table::{Cell, Column};

use tsuzuki::config::Env;
use tsuzuki::phrase;
use tsuzuki::text::Language;

/// Watches feeds, sites, book searches and Git hosts, remembers where it left off, and sends each new thing once.
#[derive(Debug, Parser)]
#[command(name = "tsuzuki", version, propagate_version = true)]
#[command(
    after_help = "Exit codes: 0 fine · 1 failed · 2 usage · 3 partly failed, the rest is saved · 4 credentials · \
5 config · 6 another run holds the lease · 130 interrupted, saved"
)]
pub(crate) struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// Options that every command takes.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// The config file [default: $TSUZUKI_CONFIG, ./tsuzuki.toml, the XDG directory, /etc/tsuzuki]
    #[arg(short, long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print data as JSON
    #[arg(long, global = true)]
    json: bool,
    /// Print nothing when all is well
    #[arg(short, long, global = true)]
    quiet: bool,
    /// Say more about what is being done
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    verbose: bool,
    /// When to use colour
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    color: Color,
    /// How log lines look
    #[arg(long, global = true, value_enum, default_value_t, value_name = "FORMAT")]
    log_format: LogFormat,
    /// The language of what is shown [default: `language` in [app], then $LANG]
    #[arg(long, global = true, value_name = "LANG")]
    lang: Option<Language>,
    /// Run as if it were this moment, e.g. 2026-01-15T00:00:00Z
    #[arg(long, global = true, hide = true, env = "TSUZUKI_NOW", value_name = "TIME")]
    now: Option<tsuzuki::time::Timestamp>,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Color {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    Always,
    Never,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    /// For people
    #[default]
    Human,
    /// One JSON object per line
    Json,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// See all four pipelines at work against demo servers on this machine, without any setup
    Demo(demo::Args),
    /// Write a first config file; asks on a terminal
    Init(init::Args),
    /// Check the config file: what is wrong, where, and how to fix it
    Check(check::Args),
    /// Check everything that a run needs: config, secrets, database, connections
    Doctor(doctor::Args),
    /// Run every job that is due, then exit (for cron)
    RunDue(run::DueArgs),
    /// Run the named jobs now, whatever their schedule says
    Run(run::NamedArgs),
    /// Run as a daemon: jobs when they are due, deliveries as they come
    Serve(serve::Args),
    /// Show every job: when it ran, how it ended, when it runs next
    Status(status::Args),
    /// Explain what happened to an item, blog, book, branch, run, delivery or job, and what happens next
    Why(why::Args),
    /// Show what is read from a feed, sitemap, page, OPML, PDF, robots.txt or address
    Inspect(inspect::Args),
    /// List, add and change jobs
    #[command(subcommand)]
    Job(job::Command),
    /// List and show books, print their prompts
    #[command(subcommand)]
    Book(book::Command),
    /// Show, preview, test or reset mail
    #[command(subcommand)]
    Mail(mail::Command),
    /// Create, list and revoke tokens of programs and links to prompts
    #[command(subcommand)]
    Token(token::Command),
    /// List, show, retry and skip what press jobs have found
    #[command(subcommand)]
    Item(item::Command),
    /// Collect commits in runs that can be shared, interrupted and continued
    #[command(subcommand)]
    Bulk(bulk::Command),
    /// Count and list commits
    #[command(subcommand)]
    Commits(commits::Command),
    /// List projects and bring them up to date
    #[command(subcommand)]
    Project(project::Command),
    /// List, add and remove branches
    #[command(subcommand)]
    Branch(branch::Command),
    /// List, show, add, remove and pause blogs
    #[command(subcommand)]
    Blog(blog::Command),
    /// List what was new on blogs; release or discard what is held
    #[command(subcommand)]
    Change(change::Command),
    /// List outgoing messages; retry, release or discard them
    #[command(subcommand)]
    Delivery(delivery::Command),
    /// List, add and test the places that messages go to: mail, Mastodon, Slack, webhooks
    #[command(subcommand)]
    Channel(channel::Command),
    /// Show what a message would look like
    #[command(subcommand)]
    Post(post::Command),
    /// Show or reset what was used of daily quotas
    #[command(subcommand)]
    Quota(quota::Command),
    /// Import blogs from OPML or a list, and the databases of other programs
    #[command(subcommand)]
    Import(import::Command),
    /// Write items, changes, books, deliveries, messages, commits or blogs to a file
    Export(export::Args),
    /// Back up, restore, check, move and prune the database
    #[command(subcommand)]
    Db(db::Command),
    /// Show the config file, its path, and its schema
    #[command(subcommand)]
    Config(config::Command),
    /// Print a completion script for a shell
    Completions(complete::CompletionArgs),
    /// Print the manual page, or write one per command
    Man(complete::ManArgs),
    /// Print the version
    Version,
}

impl Command {
    /// Whether it has something to save when it is stopped.
    fn stopping(&self) -> Stopping {
        match self {
            Command::Demo(_)
            | Command::RunDue(_)
            | Command::Run(_)
            | Command::Bulk(_)
            | Command::Project(_)
            | Command::Import(_) => Stopping::Graceful,
            Command::Serve(_) => Stopping::Daemon,
            Command::Db(command) => command.stopping(),
            Command::Export(args) => args.stopping(),
            _ => Stopping::CutOff,
        }
    }

    /// Threads that run tasks, however many processors there are: each keeps a heap of its own, tasks mostly wait for the network,
    /// and whatever computes for long has a thread beside them.
    fn worker_threads(&self) -> usize {
        if matches!(self, Command::Serve(_) | Command::Demo(_)) { 2 } else { 1 }
    }
}

/// Runs the command line and returns the exit code.
pub(crate) fn run(args: impl IntoIterator<Item = OsString>) -> std::process::ExitCode {
    complete::answer_shell();
    let args: Vec<OsString> = args.into_iter().collect();
    let language = find_language(&args);
    let tree = tree_in(language);
    let parsed = tree.try_get_matches_from(&args).and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return refuse(&error, args.iter().any(|arg| arg == "--json"), language).into(),
    };
    let mut context = Context::new(cli.global);
    signals::listen(context.stop.clone(), context.out.clone(), cli.command.stopping());
    let threads = cli.command.worker_threads();
    let runtime =
        match tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                context.out.error(&Error::failed(phrase!(
                    "the runtime does not start: {error}",
                    "ランタイムを起動できません：{error}",
                    error = error.to_string()
                )));
                return Exit::Failed.into();
            }
        };
    let outcome = runtime.block_on(async {
        let outcome = dispatch(cli.command, &context).await;
        context.close().await;
        outcome
    });
    // Hanging name look-ups must not keep a finished program alive.
    runtime.shutdown_background();
    let exit = match outcome {
        Ok(exit) => exit,
        Err(error) => {
            context.out.error(&error);
            error.exit
        }
    };
    context.out.conclude(exit);
    exit.into()
}

/// The language of help and usage errors: that of the command line, else of the environment. No config file is read for
/// them.
fn find_language(args: &[OsString]) -> Language {
    let words = args.iter().map(|arg| arg.to_string_lossy());
    let named = words.clone().zip(words.skip(1)).find_map(|(word, next)| match word.strip_prefix("--lang") {
        Some("") => next.parse().ok(),
        _ => next.strip_prefix("--lang=")?.parse().ok(),
    });
    named.or_else(|| Env::of_process().find_language()).unwrap_or(Language::En)
}

/// Prints clap's output. Help and version are data, usage errors are not; clap distinguishes them.
fn refuse(error: &clap::Error, is_json: bool, language: Language) -> Exit {
    if !error.use_stderr() {
        print(error, language);
        return Exit::Fine;
    }
    if is_json {
        let text = error.render().to_string();
        let message = text.trim_start_matches("error: ").lines().next().unwrap_or_default().to_owned();
        #[allow(clippy::print_stderr, reason = "there is no output yet: its options could not be read")]
        {
            eprintln!(
                "{:#}",
                Error::usage(message).hint(phrase!("see `--help`", "`--help` を参照")).to_json()
            );
        }
    } else {
        print(error, language);
    }
    Exit::Usage
}

/// Writes it as clap would, with the same stream and colours. Ignores failures, because there is no other output.
fn print(error: &clap::Error, language: Language) {
    if language == Language::En {
        return drop(error.print());
    }
    let mut stream: Box<dyn Write> =
        if error.use_stderr() { Box::new(std::io::stderr()) } else { Box::new(std::io::stdout()) };
    let is_terminal =
        if error.use_stderr() { std::io::stderr().is_terminal() } else { std::io::stdout().is_terminal() };
    let rendered = if is_terminal && std::env::var_os("NO_COLOR").is_none() && !output::is_dumb() {
        error.render().ansi().to_string()
    } else {
        error.render().to_string()
    };
    let _ = stream.write_all(japanese::translate_output(error, &rendered).as_bytes());
}

/// The command as a future of one type: polled in place, each would be compiled once per kind of runtime.
fn dispatch(command: Command, context: &Context) -> Pin<Box<dyn Future<Output = Result> + '_>> {
    match command {
        Command::Demo(args) => Box::pin(async move { demo::run(&args, context).await }),
        Command::Init(args) => Box::pin(async move { init::run(&args, context).await }),
        Command::Check(args) => Box::pin(async move { check::run(&args, context).await }),
        Command::Doctor(args) => {
            Box::pin(async move { context.unless_stopped(doctor::run(&args, context)).await })
        }
        Command::RunDue(args) => Box::pin(async move { run::run_due(&args, context).await }),
        Command::Run(args) => Box::pin(async move { run::run_named(&args, context).await }),
        Command::Serve(args) => Box::pin(async move { serve::run(&args, context).await }),
        Command::Status(args) => Box::pin(async move { status::run(&args, context).await }),
        Command::Why(args) => Box::pin(async move { why::run(&args, context).await }),
        Command::Inspect(args) => {
            Box::pin(async move { context.unless_stopped(inspect::command(&args, context)).await })
        }
        Command::Job(args) => Box::pin(job::run(args, context)),
        Command::Item(args) => Box::pin(item::run(args, context)),
        Command::Bulk(args) => Box::pin(bulk::run(args, context)),
        Command::Commits(args) => Box::pin(commits::run(args, context)),
        Command::Project(args) => Box::pin(project::run(args, context)),
        Command::Branch(args) => Box::pin(branch::run(args, context)),
        Command::Book(args) => Box::pin(book::run(args, context)),
        Command::Mail(args) => Box::pin(mail::run(args, context)),
        Command::Token(args) => Box::pin(token::run(args, context)),
        Command::Blog(args) => Box::pin(blog::run(args, context)),
        Command::Change(args) => Box::pin(change::run(args, context)),
        Command::Delivery(args) => Box::pin(delivery::run(args, context)),
        Command::Channel(args) => Box::pin(channel::run(args, context)),
        Command::Post(args) => Box::pin(post::run(args, context)),
        Command::Quota(args) => Box::pin(quota::run(args, context)),
        Command::Import(args) => Box::pin(import::run(args, context)),
        Command::Export(args) => Box::pin(export::run(args, context)),
        Command::Db(args) => Box::pin(db::run(args, context)),
        Command::Config(args) => Box::pin(ready(config::run(args, context))),
        Command::Completions(args) => Box::pin(ready(complete::completions(&args, context))),
        Command::Man(args) => Box::pin(ready(complete::man(&args, context))),
        Command::Version => Box::pin(ready(print_version(context))),
    }
}

fn print_version(context: &Context) -> Result {
    let version = env!("CARGO_PKG_VERSION");
    context.out.json_or_line(&serde_json::json!({ "version": version }), format!("tsuzuki {version}"))?;
    Ok(Exit::Fine)
}

/// The command tree, for completions, manual pages and the reference.
pub(crate) fn tree() -> clap::Command {
    tree_in(Language::En)
}

/// The same in `language`.
fn tree_in(language: Language) -> clap::Command {
    help::dress(Cli::command(), language)
}
