//! `init` on a terminal: asks what to watch, where, and whom to notify; then writes the file and looks once.

use std::io::{BufRead as _, IsTerminal as _};
use std::path::Path;

use super::super::{Context, Error, Exit, Result, job};
use crate::app;
use crate::channel;
use crate::config::ConfigFile;
use crate::engine::Pipeline;
use crate::phrase;
use crate::phrase::Phrase;
use crate::text::Language;

/// Whether somebody is there to answer.
pub(super) fn is_possible(context: &Context) -> bool {
    let is_wanted = !context.out.is_quiet() && !context.out.is_json();
    is_wanted && std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks everything, then puts it behind `base` in the file at `path`, which is there and empty but for that.
pub(super) async fn run(path: &Path, language: Language, context: &Context) -> Result {
    let pipeline = choose_pipeline(context)?;
    let mut words = vec![pipeline.kind.name.to_owned(), pipeline.kind.name.to_owned()];
    for (index, flag) in pipeline.flags.iter().enumerate() {
        let help = flag.help;
        let question = match index {
            0 => phrase!("{help}", "{help}", help),
            _ => phrase!("{help} (Enter to leave it out)", "{help}（省略する場合は Enter）", help),
        };
        let answer = ask(&question, context)?;
        if !answer.is_empty() {
            words.extend([format!("--{}", flag.name), answer]);
        }
    }
    if let Some(name) = add_channel(path, language, context)? {
        words.extend(["--deliver".to_owned(), name]);
    }
    job::add_from_words(&words, context).await?;
    context.out.note(phrase!("Looking once at what it would find:", "何が見つかるか一度だけ確認します："));
    let looked = job::test_by_name(pipeline.kind.name, context).await;
    let shown = path.display().to_string();
    context.out.note(phrase!(
        "Wrote {shown}. Next: `tsuzuki doctor`, then `tsuzuki run-due` from cron or `tsuzuki serve`",
        "{shown} を作成しました。次は `tsuzuki doctor` で確認し、cron で `tsuzuki run-due`、または `tsuzuki serve` を動かします",
        shown
    ));
    // What cannot be reached now may be reached later; the file is good.
    match looked {
        Ok(_) => Ok(Exit::Fine),
        Err(error) => {
            context.out.error(&error);
            Ok(Exit::Fine)
        }
    }
}

fn choose_pipeline(context: &Context) -> Result<&'static Pipeline> {
    context.out.note(phrase!("What do you want to watch?", "何を監視しますか？"));
    let choices: Vec<(&str, &str)> = app::PIPELINES.iter().map(|of| (of.kind.name, of.about)).collect();
    let chosen = choose(&choices, context)?;
    Ok(app::PIPELINES[chosen])
}

/// Asks for a channel and writes its table; answers its name.
fn add_channel(path: &Path, language: Language, context: &Context) -> Result<Option<String>> {
    context.out.note(phrase!("Where should new things be sent?", "新着をどこに送りますか？"));
    let nowhere = match language {
        Language::En => "nowhere yet; `status`, listings and pages show what is new",
        Language::Ja => "まだ送らない（`status`、一覧、ページで確認する）",
    };
    let kinds = channel::KINDS.iter().map(|kind| (kind.keys.name, kind.promise));
    let choices: Vec<(&str, &str)> = std::iter::once(("none", nowhere)).chain(kinds).collect();
    let Some(kind) = choose(&choices, context)?.checked_sub(1).map(|index| &channel::KINDS[index]) else {
        return Ok(None);
    };
    let name = kind.keys.name;
    let table = format!("channel.{name}");
    let mut text = format!("\n[{table}]\nkind = \"{name}\"\n");
    for (key, is_list) in list_required(name) {
        if kind.secrets.iter().any(|secret| secret.key == key) {
            let variable = format!("{name}_{key}").to_uppercase();
            context.out.note(phrase!(
                "Its `{key}` is a secret: set the environment variable {variable}",
                "`{key}` は秘密情報です。環境変数 {variable} に設定してください",
                key = &key,
                variable = &variable
            ));
            text.push_str(&format!("{key} = \"${{{variable}}}\"\n"));
            continue;
        }
        let answer = ask(&phrase!("{key} of the channel", "チャンネルの {key}", key = &key), context)?;
        let value = match is_list {
            true => toml::Value::from(answer.split(',').map(|one| one.trim().to_owned()).collect::<Vec<_>>()),
            false => toml::Value::from(answer),
        };
        text.push_str(&format!("{key} = {value}\n"));
    }
    let before = std::fs::read_to_string(path)?;
    std::fs::write(path, before + &text)?;
    // What is wrong with an answer is told now, with its place.
    ConfigFile::open(path)?.read(app::kinds(), &context.env)?;
    Ok(Some(name.to_owned()))
}

/// The keys that a channel cannot do without, and whether each is a list.
fn list_required(kind: &str) -> Vec<(String, bool)> {
    let schema = crate::config::schema(app::kinds());
    let tables = schema["properties"]["channel"]["additionalProperties"]["oneOf"].as_array();
    let is_meant = |table: &&serde_json::Value| table["properties"]["kind"]["const"] == kind;
    let Some(table) = tables.into_iter().flatten().find(is_meant) else { return Vec::new() };
    let required = table["required"].as_array().into_iter().flatten().filter_map(|key| key.as_str());
    let is_list = |key: &str| table["properties"][key]["type"] == "array";
    required.filter(|key| *key != "kind").map(|key| (key.to_owned(), is_list(key))).collect()
}

/// Asks until one of `choices` is named, by number or word.
fn choose(choices: &[(&str, &str)], context: &Context) -> Result<usize> {
    for (index, (name, about)) in choices.iter().enumerate() {
        context.out.note(format!("  {}) {name}: {about}", index + 1));
    }
    loop {
        let answer = ask(&phrase!("Number or word", "番号または名前"), context)?;
        let by_number = answer.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let chosen = by_number.or_else(|| choices.iter().position(|(name, _)| *name == answer));
        if let Some(chosen) = chosen.filter(|chosen| *chosen < choices.len()) {
            return Ok(chosen);
        }
        context.out.note(phrase!("That is none of them.", "一覧にありません。"));
    }
}

/// One answer.
fn ask(question: &Phrase, context: &Context) -> Result<String> {
    context.out.prompt(question);
    let mut line = String::new();
    match std::io::stdin().lock().read_line(&mut line)? {
        0 => Err(Error::new(
            Exit::Interrupted,
            phrase!("no answer; nothing was written", "回答がないため、何も作成しませんでした"),
        )),
        _ => Ok(line.trim().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_channel_says_what_it_cannot_do_without() {
        for kind in channel::KINDS {
            let required = list_required(kind.keys.name);
            assert!(!required.is_empty(), "{kind:?}");
        }
        let lists = |kind: &str| list_required(kind).into_iter().filter(|(_, is_list)| *is_list).count();
        assert!(channel::KINDS.iter().any(|kind| lists(kind.keys.name) > 0), "some channel takes a list");
    }
}
