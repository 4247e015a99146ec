//! Edits of jobs in the config file, which keep comments and refuse invalid results.

use super::super::{Context, Error, Result};
use tsuzuki::app;
use tsuzuki::config::value::BadValue;
use tsuzuki::config::{ConfigFile, EditError, read_value};
use tsuzuki::phrase;

/// Options of `job update`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct UpdateArgs {
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

pub(in crate::cli) fn key_and_value(text: &str) -> Result<(String, toml::Value), BadValue> {
    let bad = || BadValue::new(phrase!("write KEY=VALUE", "KEY=VALUE の形で書きます"));
    let (key, value) = text.split_once('=').ok_or_else(bad)?;
    match key.trim() {
        "" => Err(BadValue::new(phrase!("the key is missing", "キーがありません"))),
        key => Ok((key.to_owned(), read_value(value.trim()))),
    }
}

pub(super) fn update(args: &UpdateArgs, context: &Context) -> Result {
    if args.set.is_empty() && args.unset.is_empty() {
        return Err(Error::usage(phrase!("nothing to change", "変更するものがありません")).hint(phrase!(
            "name a key: --set KEY=VALUE or --unset KEY",
            "--set KEY=VALUE または --unset KEY でキーを指定してください"
        )));
    }
    if args.set.iter().any(|(key, value)| key == "name" && value.as_str() != Some(&args.name)) {
        return Err(Error::usage(phrase!(
            "`{name}` cannot be renamed: its history is stored under its name, and everything would be sent again",
            "`{name}` の名前は変更できません：履歴は名前ごとに記録されているため、すべて再送されてしまいます",
            name = &args.name
        ))
        .hint(phrase!(
            "`tsuzuki job add` adds a job of another name, which starts from the beginning",
            "別の名前のジョブは `tsuzuki job add` で追加できます（最初から始まります）"
        )));
    }
    edit_file(context, |file| {
        args.set.iter().try_for_each(|(key, value)| file.document.set(&args.name, key, value))?;
        args.unset.iter().try_for_each(|key| file.document.unset(&args.name, key))
    })?;
    context.out.done(phrase!("Updated the job `{name}`", "ジョブ `{name}` を更新しました", name = &args.name))
}

pub(super) fn switch(name: &str, switch: Switch, context: &Context) -> Result {
    let on = switch == Switch::On;
    edit_file(context, |file| file.document.set(name, "enabled", &toml::Value::from(on)))?;
    context.out.done(if on {
        phrase!("Enabled the job `{name}`", "ジョブ `{name}` を有効にしました")
    } else {
        phrase!("Disabled the job `{name}`", "ジョブ `{name}` を無効にしました")
    })
}

pub(super) fn remove(name: &str, yes: bool, context: &Context) -> Result {
    if !yes {
        let what = phrase!(
            "removing `{name}` takes it out of the config file; its rows stay in the database",
            "`{name}` を設定ファイルから削除します（データはデータベースに残ります）"
        );
        return Err(Error::unconfirmed(what, format_args!("job rm {name}")));
    }
    edit_file(context, |file| file.document.remove_job(name))?;
    context.out.done(phrase!(
        "Removed the job `{name}` from the config file",
        "ジョブ `{name}` を設定ファイルから削除しました"
    ))
}

/// Changes the config file, which is checked before it is saved.
pub(in crate::cli) fn edit_file(
    context: &Context,
    change: impl FnOnce(&mut ConfigFile) -> Result<(), EditError>,
) -> Result<()> {
    let mut file = ConfigFile::open(&context.config_path()?)?;
    change(&mut file)?;
    file.save(app::kinds(), &context.env)?;
    Ok(())
}

impl From<EditError> for Error {
    fn from(error: EditError) -> Self {
        match error {
            EditError::Problems(problems) => problems.into(),
            EditError::NoSuchJob(_) | EditError::NoSuchKey { .. } => Error::usage(error.phrase()).hint(
                phrase!("`tsuzuki job ls` lists the jobs", "ジョブの一覧は `tsuzuki job ls` で確認できます"),
            ),
            error => Error::failed(error.phrase()),
        }
    }
}
