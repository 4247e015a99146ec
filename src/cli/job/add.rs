//! `job add`: a new job from flags, checked before it is written, without touching the rest of the file.

use clap::{Arg, ArgAction};

use super::super::{Context, Error, Exit, Result, sending};
use super::edit::key_and_value;
use crate::app;
use crate::app::new_job::{AddError, NewJob};
use crate::config::value::Span;
use crate::engine::pipeline::{Flag, FlagShape};
use crate::text::nearest;

/// Options of `job add`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// What it does and its name, e.g. `blogs mine`
    #[arg(value_names = ["KIND", "NAME"], num_args = 1..=2, required = true)]
    words: Vec<String>,
    /// What it does, if only the name stands before
    #[arg(long)]
    kind: Option<String>,
    /// How often it runs, e.g. 3h
    #[arg(long, value_name = "SPAN", conflicts_with = "cron")]
    every: Option<Span>,
    /// When it runs, e.g. "0 7 * * *"
    #[arg(long)]
    cron: Option<String>,
    /// A channel that it notifies; may be repeated
    #[arg(long, value_name = "CHANNEL")]
    deliver: Vec<String>,
    /// What the first run sends, where it can be chosen: baseline (nothing), latest:N or all
    #[arg(long, value_name = "WHAT")]
    first_run: Option<String>,
    #[command(flatten)]
    own: KindFlags,
    /// Any other key, e.g. max_retries=5; the value may be any TOML
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_and_value)]
    set: Vec<(String, toml::Value)>,
}

pub(super) async fn run(args: &Args, context: &Context) -> Result {
    let (kind, name) = args.kind_and_name()?;
    let job = args.job(kind, name)?;
    let added = job.add_to(&context.config_path()?, &context.env, &context.clock).await;
    let saved = added.map_err(|error| explain(error, kind, name))?;
    let keys = job.keys().map_err(Error::usage)?;
    context.out.note(format!("Added the job `{name}`:"));
    if context.out.is_json() {
        context.out.json(&keys.iter().cloned().collect::<std::collections::BTreeMap<_, _>>())?;
    } else {
        context.out.line("[[job]]")?;
        keys.iter().try_for_each(|(key, value)| context.out.line(format!("{key} = {value}")))?;
    }
    sending::warn_without_channel(saved.find_job(name), &context.out);
    context.out.note(format!("`tsuzuki job test {name}` looks once; `tsuzuki run {name}` runs it now"));
    Ok(Exit::Fine)
}

fn explain(error: AddError, kind: &str, name: &str) -> Error {
    match error {
        AddError::Known(_) => Error::usage(error.to_string()).hint(format!(
            "choose another name, or change it with `tsuzuki job update {name} --set KEY=VALUE`"
        )),
        AddError::Value(why) => Error::usage(why),
        AddError::Edit(error) => refused(error.into(), kind),
        AddError::App(error) => refused(error.into(), kind),
        AddError::Db(error) => refused(error.into(), kind),
    }
}

/// The error of a job that would not work: its lines are those that the file would have got.
fn refused(error: Error, kind: &str) -> Error {
    let error = error.hint("nothing was written; the job would have stood at the end of the file");
    let Some(pipeline) = app::find_pipeline(kind) else { return error };
    let flags: Vec<String> =
        pipeline.flags.iter().map(|flag| format!("--{} {}", flag.name, flag.value)).collect();
    error.hint(format!("a {kind} job is made with {}, or --set KEY=VALUE", flags.join(", ")))
}

impl Args {
    fn kind_and_name(&self) -> Result<(&str, &str)> {
        let kinds: Vec<&str> = app::job_kinds().collect();
        let usage = |words: &str| {
            Error::usage(words)
                .hint(format!("write `tsuzuki job add KIND NAME`; kinds: {}", kinds.join(", ")))
        };
        let (kind, name) = match (self.words.as_slice(), &self.kind) {
            ([kind, name], None) => (kind, name),
            ([name], Some(kind)) => (kind, name),
            ([_, _], Some(_)) => return Err(usage("the kind is named twice")),
            ([word], None) if kinds.contains(&word.as_str()) => return Err(usage("the name is missing")),
            _ => return Err(usage("the kind is missing")),
        };
        match (kinds.contains(&kind.as_str()), nearest(kind, kinds.iter().copied())) {
            (true, _) => Ok((kind, name)),
            (false, Some(near)) => Err(Error::usage(format!("there is no kind of job `{kind}`"))
                .hint(format!("did you mean `{near}`?"))),
            (false, None) => Err(usage(&format!("there is no kind of job `{kind}`"))),
        }
    }

    fn job(&self, kind: &str, name: &str) -> Result<NewJob> {
        let mut own = Vec::new();
        for (owner, flag, values) in &self.own.0 {
            if *owner != kind {
                let message = format!("--{} is for {owner} jobs, this is a {kind} job", flag.name);
                return Err(Error::usage(message));
            }
            own.push((*flag, values.clone()));
        }
        Ok(NewJob {
            kind: kind.to_owned(),
            name: name.to_owned(),
            every: self.every.map(|every| every.to_string()),
            cron: self.cron.clone(),
            deliver: self.deliver.clone(),
            first_run: self.first_run.clone(),
            own,
            set: self.set.clone(),
        })
    }
}

/// The options that belong to one kind of job each, as the pipelines name them.
struct KindFlags(Vec<(&'static str, &'static Flag, Vec<String>)>);

fn list_flags() -> impl Iterator<Item = (&'static str, &'static Flag)> {
    app::PIPELINES.iter().flat_map(|of| of.flags.iter().map(|flag| (of.kind.name, flag)))
}

impl std::fmt::Debug for KindFlags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.0.iter().map(|(_, flag, values)| (flag.name, values))).finish()
    }
}

impl clap::FromArgMatches for KindFlags {
    fn from_arg_matches(matches: &clap::ArgMatches) -> Result<Self, clap::Error> {
        let given = list_flags().filter_map(|(kind, flag)| {
            Some((kind, flag, matches.get_many::<String>(flag.name)?.cloned().collect()))
        });
        Ok(Self(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &clap::ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl clap::Args for KindFlags {
    fn augment_args(command: clap::Command) -> clap::Command {
        list_flags().fold(command, |command, (kind, flag)| {
            let is_many = !matches!(flag.shape, FlagShape::Text | FlagShape::Variable);
            let action = if is_many { ArgAction::Append } else { ArgAction::Set };
            let help = format!("{kind}: {}", flag.help);
            command.arg(Arg::new(flag.name).long(flag.name).value_name(flag.value).help(help).action(action))
        })
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}
