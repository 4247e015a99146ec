//! `channel add`: a new channel from flags, checked before it is written, without touching the rest of the file.

use super::super::job::key_and_value;
use super::super::kind_flags::{Channels, KindFlags, print_added, usage};
use super::super::{Context, Error, Result};
use tsuzuki::app::new_table::NewTable;
use tsuzuki::channel::KINDS;
use tsuzuki::phrase;

/// Options of `channel add`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// What it is and its name, e.g. `slack team`; without a name it is called as its kind
    #[arg(value_names = ["KIND", "NAME"], num_args = 1..=2, required = true)]
    words: Vec<String>,
    #[command(flatten)]
    own: KindFlags<Channels>,
    /// Any other key, e.g. quiet_hours=22:00-07:00; the value may be any TOML
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_and_value)]
    set: Vec<(String, toml::Value)>,
}

pub(super) async fn run(args: &Args, context: &Context) -> Result {
    let (kind, name) = match args.words.as_slice() {
        [kind] => (kind, kind),
        [kind, name] => (kind, name),
        _ => {
            return Err(Error::usage(phrase!("the kind is missing", "種類が指定されていません"))
                .hint(usage::<Channels>()));
        }
    };
    KindFlags::<Channels>::refuse_unknown(kind)?;
    let found = KINDS.iter().find(|known| known.keys.name == kind);
    let kind = found.ok_or_else(|| {
        Error::usage(phrase!("the kind is missing", "種類が指定されていません")).hint(usage::<Channels>())
    })?;
    let own = args.own.of(kind.keys.name)?;
    let channel = NewTable { set: args.set.clone(), ..NewTable::channel(kind, name, own) };
    add_table(&channel, context).await?;
    context.out.done(phrase!(
        "Next: `tsuzuki channel test {name}`, then `tsuzuki job update JOB --set 'deliver=[\"{name}\"]'`",
        "次は `tsuzuki channel test {name}` で試し、`tsuzuki job update JOB --set 'deliver=[\"{name}\"]'` で通知先にします"))
}

/// Writes a table into the config file, or returns why not; prints what it wrote, and what is still missing.
pub(in crate::cli) async fn add_table(new: &NewTable, context: &Context) -> Result<()> {
    let (table, name) = (new.table, new.name.as_str());
    let added = new.add_to(&context.config_path()?, &context.env, &context.clock).await;
    let saved = added.map_err(|error| {
        let if_known = phrase!(
            "choose another name, or change its table in the config file",
            "別の名前を選ぶか、設定ファイルの該当する表を編集してください"
        );
        let if_refused = phrase!(
            "nothing was written; the table would have stood at the end of the file",
            "何も書き込んでいません（表はファイルの末尾に追加されます）"
        );
        KindFlags::<Channels>::explain(error, new.kind, if_known, if_refused)
    })?;
    context.out.note(phrase!("Added [{table}.{name}]:", "[{table}.{name}] を追加しました："));
    let keys = new.keys().map_err(Error::usage)?;
    print_added(&format!("[{table}.{name}]"), &keys, &context.out)?;
    for missing in saved.list_missing_secrets().iter().filter(|missing| missing.owner == name) {
        let (key, why) = (missing.key.as_str(), &missing.why);
        context.out.note(phrase!("needs setup: `{key}`: {why}", "設定不足：`{key}`：{why}"));
    }
    Ok(())
}
