//! `job add`: a new job from flags, checked before it is written, without touching the rest of the file.

use super::super::kind_flags::{Jobs, KindFlags, list_names, print_added, usage};
use super::super::{Context, Error, Result, sending};
use super::edit::key_and_value;
use tsuzuki::app::new_table::NewJob;
use tsuzuki::config::value::Span;
use tsuzuki::phrase;
use tsuzuki::phrase::Phrase;

/// Options of `job add`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// Its kind and its name, e.g. `blogs mine`
    #[arg(value_names = ["KIND", "NAME"], num_args = 1..=2, required = true)]
    words: Vec<String>,
    /// Its kind, if only the name is given before
    #[arg(long)]
    kind: Option<String>,
    /// How often it runs, e.g. 3h
    #[arg(long, value_name = "DURATION", conflicts_with = "cron")]
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
    own: KindFlags<Jobs>,
    /// Any other key, e.g. max_retries=5; the value may be any TOML
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_and_value)]
    set: Vec<(String, toml::Value)>,
}

pub(super) async fn run(args: &Args, context: &Context) -> Result {
    let (kind, name) = args.kind_and_name()?;
    save(&args.job(kind, name)?, context).await
}

/// Writes a job into the config file, or returns why not; prints what it wrote.
pub(super) async fn save(job: &NewJob, context: &Context) -> Result {
    let (kind, name) = (job.kind.as_str(), job.name.as_str());
    let added = job.add_to(&context.config_path()?, &context.env, &context.clock).await;
    let saved = added.map_err(|error| {
        let if_known = phrase!(
            "choose another name, or change it with `tsuzuki job update {name} --set KEY=VALUE`",
            "別の名前にするか、`tsuzuki job update {name} --set KEY=VALUE` で変更してください"
        );
        let if_refused = phrase!(
            "nothing was written; the job would have stood at the end of the file",
            "何も書き込んでいません（ジョブはファイルの末尾に追加されるはずでした）"
        );
        KindFlags::<Jobs>::explain(error, kind, if_known, if_refused)
    })?;
    let keys = job.keys().map_err(Error::usage)?;
    context.out.note(phrase!("Added the job `{name}`:", "ジョブ `{name}` を追加しました："));
    print_added("[[job]]", &keys, &context.out)?;
    sending::warn_without_channel(saved.find_job(name), &context.out);
    context.out.done(phrase!(
        "`tsuzuki job test {name}` looks once; `tsuzuki run {name}` runs it now",
        "`tsuzuki job test {name}` で試せます。`tsuzuki run {name}` で今すぐ実行できます"
    ))
}

impl Args {
    fn kind_and_name(&self) -> Result<(&str, &str)> {
        let wrong = |words: Phrase| Error::usage(words).hint(usage::<Jobs>());
        let (kind, name) = match (self.words.as_slice(), &self.kind) {
            ([kind, name], None) => (kind, name),
            ([name], Some(kind)) => (kind, name),
            ([_, _], Some(_)) => {
                return Err(wrong(phrase!("the kind is named twice", "種類が 2 回指定されています")));
            }
            ([word], None) if list_names::<Jobs>().contains(&word.as_str()) => {
                return Err(wrong(phrase!("the name is missing", "名前が指定されていません")));
            }
            _ => return Err(wrong(phrase!("the kind is missing", "種類が指定されていません"))),
        };
        KindFlags::<Jobs>::refuse_unknown(kind)?;
        Ok((kind, name))
    }

    fn job(&self, kind: &str, name: &str) -> Result<NewJob> {
        Ok(NewJob {
            kind: kind.to_owned(),
            name: name.to_owned(),
            every: self.every.map(|every| every.to_string()),
            cron: self.cron.clone(),
            deliver: self.deliver.clone(),
            first_run: self.first_run.clone(),
            own: self.own.of(kind)?,
            set: self.set.clone(),
        })
    }
}
