//! The options of `job add` and `channel add` that belong to one kind of job or channel, from their descriptors.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use clap::{Arg, ArgAction};

use super::{Error, Output, Result};
use tsuzuki::app;
use tsuzuki::app::new_table::AddError;
use tsuzuki::channel;
use tsuzuki::config::{EditError, Flag};
use tsuzuki::ledger::Subject;
use tsuzuki::phrase;
use tsuzuki::phrase::Phrase;

/// Flags with their values.
pub(super) type Given = Vec<(&'static Flag, Vec<String>)>;

/// Something with kinds, each with its own flags.
pub(super) trait Kinds {
    const WHAT: &'static str;

    /// The kinds by name.
    fn list() -> Vec<(&'static str, &'static [Flag])>;
}

/// Jobs.
#[derive(Debug)]
pub(super) enum Jobs {}

/// Channels.
#[derive(Debug)]
pub(super) enum Channels {}

impl Kinds for Jobs {
    const WHAT: &'static str = "job";

    fn list() -> Vec<(&'static str, &'static [Flag])> {
        app::PIPELINES.iter().map(|of| (of.kind.name, of.flags)).collect()
    }
}

impl Kinds for Channels {
    const WHAT: &'static str = "channel";

    fn list() -> Vec<(&'static str, &'static [Flag])> {
        channel::KINDS.iter().map(|of| (of.keys.name, of.flags)).collect()
    }
}

/// The values of the flags of all kinds, by name.
#[derive(Debug)]
pub(super) struct KindFlags<K>(Vec<(String, Vec<String>)>, PhantomData<K>);

impl<K: Kinds> KindFlags<K> {
    /// The values of the flags of `kind`; a flag of another kind is an error.
    pub(super) fn of(&self, kind: &str) -> Result<Given> {
        let (kinds, mut given) = (K::list(), Given::new());
        let own = kinds.iter().find(|(known, _)| *known == kind).map_or(&[][..], |(_, flags)| *flags);
        for (name, values) in &self.0 {
            let Some(flag) = own.iter().find(|flag| flag.name == name) else {
                let owners = kinds.iter().filter(|(_, flags)| flags.iter().any(|flag| flag.name == name));
                let owners = owners.map(|(owner, _)| *owner).collect::<Vec<_>>().join(" and ");
                let what = Subject::called(K::WHAT);
                return Err(Error::usage(phrase!(
                    "--{name} is for {owners} {what}s, this is a {kind} {what}",
                    "--{name} は {owners} 用です（これは {kind} の{what}です）"
                )));
            };
            given.push((flag, values.clone()));
        }
        Ok(given)
    }

    /// Refuses an unknown kind, with a suggestion.
    pub(super) fn refuse_unknown(kind: &str) -> Result<()> {
        let (what, kinds) = (Subject::called(K::WHAT), list_names::<K>());
        if kinds.contains(&kind) {
            return Ok(());
        }
        let error = Error::usage(phrase!(
            "there is no kind of {what} `{kind}`",
            "{what}の種類 `{kind}` はありません"
        ));
        Err(error.hint_nearest(kind, kinds, usage::<K>()))
    }

    /// The error when one of `kind` was not added, with hints for a taken name and for an invalid one.
    pub(super) fn explain(error: AddError, kind: &str, if_known: Phrase, if_refused: Phrase) -> Error {
        let refused: Error = match error {
            AddError::Known { .. } => return Error::usage(error.phrase()).hint(if_known),
            AddError::Value(why) => return Error::usage(why),
            // No flag makes a file writable.
            AddError::Edit(error @ EditError::File { .. }) => return error.into(),
            AddError::Edit(error) => error.into(),
            AddError::App(error) => error.into(),
            AddError::Db(error) => error.into(),
        };
        Self::hint(kind).into_iter().fold(refused.hint(if_refused), Error::hint)
    }

    /// The hint with the required flags of a kind.
    fn hint(kind: &str) -> Option<Phrase> {
        let (_, flags) = K::list().into_iter().find(|(known, _)| *known == kind)?;
        let flags: Vec<String> = flags.iter().map(|flag| format!("--{} {}", flag.name, flag.value)).collect();
        Some(phrase!(
            "flags of this kind of {what} ({kind}): {flags}, --set KEY=VALUE",
            "この種類の{what}（{kind}）のオプション：{flags}, --set KEY=VALUE",
            what = Subject::called(K::WHAT),
            flags = flags.join(", ")
        ))
    }
}

/// Prints the keys of a table that was added.
pub(super) fn print_added(header: &str, keys: &[(String, toml::Value)], out: &Output) -> Result<()> {
    if out.is_json() {
        return out.json(&keys.iter().cloned().collect::<BTreeMap<_, _>>());
    }
    out.line(header)?;
    keys.iter().try_for_each(|(key, value)| out.line(format!("{key} = {value}")))
}

pub(super) fn list_names<K: Kinds>() -> Vec<&'static str> {
    K::list().iter().map(|(name, _)| *name).collect()
}

/// The Japanese for the help of kinds and their options, by the English.
pub(super) fn find_japanese(help: &str) -> Option<String> {
    let mut abouts = app::PIPELINES.iter().map(|of| (of.about)());
    if let Some(about) = abouts.find(|about| *about == help) {
        return Some(super::japanese::SPEECH.phrase(&about));
    }
    let (kinds, english) = help.split_once(": ")?;
    let all = [Jobs::list(), Channels::list()].concat();
    let flag = all.iter().flat_map(|(_, flags)| *flags).find(|flag| help_of(flag) == english)?;
    Some(format!("{kinds}：{}", super::japanese::SPEECH.phrase(&help_of(flag))))
}

/// The usage of `add`.
pub(super) fn usage<K: Kinds>() -> Phrase {
    phrase!(
        "write `tsuzuki {what} add KIND NAME`; kinds: {kinds}",
        "`tsuzuki {what} add KIND NAME` と書きます（種類：{kinds}）",
        what = K::WHAT,
        kinds = list_names::<K>().join(", ")
    )
}

/// The help of a flag.
fn help_of(flag: &Flag) -> Phrase {
    let help = (flag.help)();
    if flag.is_list() {
        phrase!("{help}; may be repeated", "{help}（繰り返し指定可）")
    } else {
        help
    }
}

impl<K: Kinds> clap::FromArgMatches for KindFlags<K> {
    fn from_arg_matches(matches: &clap::ArgMatches) -> Result<Self, clap::Error> {
        let mut given: Vec<(String, Vec<String>)> = Vec::new();
        for flag in K::list().iter().flat_map(|(_, flags)| *flags) {
            if let Some(values) = matches.get_many::<String>(flag.name)
                && !given.iter().any(|(name, _)| name == flag.name)
            {
                given.push((flag.name.to_owned(), values.cloned().collect()));
            }
        }
        Ok(Self(given, PhantomData))
    }

    fn update_from_arg_matches(&mut self, matches: &clap::ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<K: Kinds> clap::Args for KindFlags<K> {
    fn augment_args(command: clap::Command) -> clap::Command {
        // A flag of several kinds is one option.
        let mut options: Vec<(&'static Flag, Vec<&'static str>)> = Vec::new();
        for (kind, flags) in K::list() {
            for flag in flags {
                match options.iter_mut().find(|(known, _)| known.name == flag.name) {
                    Some((_, kinds)) => kinds.push(kind),
                    None => options.push((flag, vec![kind])),
                }
            }
        }
        options.into_iter().fold(command, |command, (flag, kinds)| {
            let action = if flag.is_list() { ArgAction::Append } else { ArgAction::Set };
            let help = format!("{}: {}", kinds.join(", "), help_of(flag));
            command.arg(Arg::new(flag.name).long(flag.name).value_name(flag.value).help(help).action(action))
        })
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}
