//! Changes of jobs in the config file, which keep comments and refuse what would not be valid.

use super::super::{Context, Error, Exit, Result};
use crate::app;
use crate::config::value::Span;
use crate::config::{ConfigFile, EditError, read_value};

/// Options of `job add`.
#[derive(Debug, clap::Args)]
pub(super) struct AddArgs {
    /// Its name
    name: String,
    /// What it does
    #[arg(long)]
    kind: String,
    /// How often it runs, e.g. 3h
    #[arg(long, value_name = "SPAN")]
    every: Option<Span>,
    /// A key of its kind, e.g. feed=https://example.com/feed; the value may be any TOML
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_and_value)]
    set: Vec<(String, toml::Value)>,
}

/// Options of `job update`.
#[derive(Debug, clap::Args)]
pub(super) struct UpdateArgs {
    /// The job
    name: String,
    /// A key and its new value; the value may be any TOML
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_and_value)]
    set: Vec<(String, toml::Value)>,
    /// A key to remove
    #[arg(long, value_name = "KEY")]
    unset: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Switch {
    On,
    Off,
}

fn key_and_value(text: &str) -> Result<(String, toml::Value), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE")?;
    match key.trim() {
        "" => Err("the key is missing".into()),
        key => Ok((key.to_owned(), read_value(value.trim()))),
    }
}

pub(super) fn add(args: &AddArgs, context: &Context) -> Result {
    let mut keys = vec![
        ("name", toml::Value::from(args.name.as_str())),
        ("kind", toml::Value::from(args.kind.as_str())),
    ];
    if let Some(every) = &args.every {
        keys.push(("every", toml::Value::from(every.to_string())));
    }
    keys.extend(args.set.iter().map(|(key, value)| (key.as_str(), value.clone())));
    edit(context, |file| file.document.add_job(&keys))?;
    context.out.note(format!("Added the job `{}`", args.name));
    Ok(Exit::Fine)
}

pub(super) fn update(args: &UpdateArgs, context: &Context) -> Result {
    if args.set.is_empty() && args.unset.is_empty() {
        return Err(Error::usage("nothing to change").hint("name a key: --set KEY=VALUE or --unset KEY"));
    }
    edit(context, |file| {
        args.set.iter().try_for_each(|(key, value)| file.document.set(&args.name, key, value))?;
        args.unset.iter().try_for_each(|key| file.document.unset(&args.name, key))
    })?;
    context.out.note(format!("Updated the job `{}`", args.name));
    Ok(Exit::Fine)
}

pub(super) fn switch(name: &str, switch: Switch, context: &Context) -> Result {
    let on = switch == Switch::On;
    edit(context, |file| file.document.set(name, "enabled", &toml::Value::from(on)))?;
    context.out.note(format!("{} the job `{name}`", if on { "Enabled" } else { "Disabled" }));
    Ok(Exit::Fine)
}

pub(super) fn remove(name: &str, yes: bool, context: &Context) -> Result {
    if !yes {
        return Err(Error::usage(format!(
            "removing `{name}` takes it out of the config file; its rows stay in the database"
        ))
        .hint(format!("run `tsuzuki job rm {name} --yes` if that is what you want")));
    }
    edit(context, |file| file.document.remove_job(name))?;
    context.out.note(format!("Removed the job `{name}` from the config file"));
    Ok(Exit::Fine)
}

fn edit(context: &Context, change: impl FnOnce(&mut ConfigFile) -> Result<(), EditError>) -> Result<()> {
    let mut file = ConfigFile::open(&context.config_path()?)?;
    change(&mut file)?;
    file.save(app::kinds(), &context.env)?;
    Ok(())
}

impl From<EditError> for Error {
    fn from(error: EditError) -> Self {
        match error {
            EditError::Problems(problems) => problems.into(),
            EditError::NoSuchJob(_) | EditError::NoSuchKey { .. } => {
                Error::usage(error.to_string()).hint("`tsuzuki job ls` lists the jobs")
            }
            error => Error::failed(error.to_string()),
        }
    }
}
