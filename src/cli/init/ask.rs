//! `init` on a terminal: asks what to watch, where, and whom to notify; then writes the file and tests the job once.

use std::io::{BufRead as _, IsTerminal as _};
use std::path::Path;

use super::super::kind_flags::Given;
use super::super::{Context, Error, Exit, Result, channel as channels, job};
use tsuzuki::app;
use tsuzuki::app::new_table::NewTable;
use tsuzuki::channel;
use tsuzuki::config::{Flag, FlagShape};
use tsuzuki::engine::Pipeline;
use tsuzuki::llm;
use tsuzuki::phrase;
use tsuzuki::phrase::Phrase;

/// Whether questions can be answered.
pub(super) fn is_possible(context: &Context) -> bool {
    let is_wanted = !context.out.is_quiet() && !context.out.is_json();
    is_wanted && std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks all questions, and adds the answers to the file, which exists with the general part.
pub(super) async fn fill_in(context: &Context) -> Result<&'static Pipeline> {
    let pipeline = choose_pipeline(context)?;
    if pipeline.uses.llm {
        add_model(context).await?;
    }
    let mut own = ask_all(pipeline.flags, context)?;
    let deliver = add_channel(context).await?;
    while let Err(error) = job::add(pipeline.kind.name, own, deliver.as_deref(), context).await {
        context.out.error(&error);
        own = ask_all(pipeline.flags, context)?;
    }
    Ok(pipeline)
}

/// Shows what the new job would find.
pub(super) async fn test_once(pipeline: &Pipeline, path: &Path, context: &Context) -> Result {
    context.out.note(phrase!("Looking once at what it would find:", "何が見つかるか一度だけ確認します："));
    let tested = job::test_by_name(pipeline.kind.name, context).await;
    let shown = path.display().to_string();
    context.out.note(phrase!(
        "Wrote {shown}. Next: `tsuzuki doctor`, then `tsuzuki run-due` from cron or `tsuzuki serve`",
        "{shown} を作成しました。次は `tsuzuki doctor` で確認し、cron で `tsuzuki run-due`、または `tsuzuki serve` を動かします"));
    // An unreachable source may be reachable later; the file is valid.
    if let Err(error) = tested {
        context.out.error(&error);
    }
    Ok(Exit::Fine)
}

fn choose_pipeline(context: &Context) -> Result<&'static Pipeline> {
    context.out.note(phrase!("What do you want to watch?", "何を監視しますか？"));
    let choices = app::PIPELINES.iter().map(|of| (of.kind.name, (of.about)()));
    let chosen = choose(&choices.collect::<Vec<_>>(), None, context)?;
    Ok(app::PIPELINES[chosen])
}

async fn add_model(context: &Context) -> Result<()> {
    context.out.note(phrase!("Which model should be used?", "どのモデルを使いますか？"));
    let choices = llm::KINDS.iter().map(|of| (of.keys.name, (of.about)()));
    let kind = &llm::KINDS[choose(&choices.collect::<Vec<_>>(), None, context)?];
    add_table(|own| NewTable::llm(kind, own), kind.flags, context).await
}

/// Asks for a channel and writes its table; returns its name.
async fn add_channel(context: &Context) -> Result<Option<String>> {
    context.out.note(phrase!("Where should new things be sent?", "新着をどこに送りますか？"));
    let nowhere = phrase!(
        "nowhere yet; `status`, listings and pages show what is new",
        "まだ送らない（`status`、一覧、ページで確認する）"
    );
    let kinds = channel::KINDS.iter().map(|of| (of.keys.name, (of.about)()));
    let choices: Vec<(&str, Phrase)> = std::iter::once(("none", nowhere)).chain(kinds).collect();
    let chosen = choose(&choices, Some("none"), context)?;
    let Some(kind) = chosen.checked_sub(1).map(|index| &channel::KINDS[index]) else { return Ok(None) };
    let name = kind.keys.name;
    add_table(|own| NewTable::channel(kind, name, own), kind.flags, context).await?;
    Ok(Some(name.to_owned()))
}

/// Asks for the keys of a table and writes it; reports invalid answers and asks again.
async fn add_table(
    table: impl Fn(Given) -> NewTable,
    flags: &'static [Flag],
    context: &Context,
) -> Result<()> {
    while let Err(error) = channels::add_table(&table(ask_all(flags, context)?), context).await {
        context.out.error(&error);
    }
    Ok(())
}

/// Asks for every flag; optional ones may be left empty.
fn ask_all(flags: &'static [Flag], context: &Context) -> Result<Given> {
    let mut given = Given::new();
    for flag in flags {
        loop {
            let answer = ask(&question(flag), context)?;
            let values: Vec<String> = match flag.shape {
                FlagShape::List | FlagShape::Made(_) => {
                    answer.split(',').map(str::trim).map(str::to_owned).collect()
                }
                FlagShape::Text | FlagShape::Variable(_) => vec![answer],
            };
            let values: Vec<String> = values.into_iter().filter(|value| !value.is_empty()).collect();
            if let FlagShape::Made(make) = flag.shape
                && !values.is_empty()
                && let Err(why) = make(&values)
            {
                context.out.error(&Error::usage(why));
                continue;
            }
            if !values.is_empty() {
                given.push((flag, values));
            } else if flag.is_required && flag.usual().is_none() {
                context.out.note(phrase!("It cannot do without.", "これは省略できません。"));
                continue;
            }
            break;
        }
    }
    Ok(given)
}

fn question(flag: &Flag) -> Phrase {
    let mut help = (flag.help)();
    if flag.is_list() {
        help = phrase!("{help}; several with commas between them", "{help}（複数はカンマ区切り）");
    }
    match (flag.shape, flag.is_required) {
        (FlagShape::Variable(usual), true) => {
            phrase!("{help} (Enter for {usual})", "{help}（Enter で {usual}）")
        }
        (_, true) => help,
        (FlagShape::Variable(usual), false) => phrase!(
            "{help}, e.g. {usual} (Enter to leave it out)",
            "{help}（例：{usual}、省略する場合は Enter）"
        ),
        (_, false) => phrase!("{help} (Enter to leave it out)", "{help}（省略する場合は Enter）"),
    }
}

/// Asks until one of `choices` is given, by number or word; Enter selects the default, if there is one.
fn choose(choices: &[(&str, Phrase)], usual: Option<&str>, context: &Context) -> Result<usize> {
    for (index, (name, about)) in choices.iter().enumerate() {
        let number = index + 1;
        context.out.note(phrase!("  {number}) {name}: {about}", "  {number}) {name}：{about}"));
    }
    loop {
        let question = match usual {
            Some(usual) => {
                phrase!("Number or word (Enter for {usual})", "番号または名前（Enter で {usual}）")
            }
            None => phrase!("Number or word", "番号または名前"),
        };
        let answer = match (ask(&question, context)?, usual) {
            (answer, Some(usual)) if answer.is_empty() => usual.to_owned(),
            (answer, _) => answer,
        };
        let by_number = answer.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let chosen = by_number.or_else(|| find_choice(choices, &answer));
        if let Some(chosen) = chosen.filter(|chosen| *chosen < choices.len()) {
            return Ok(chosen);
        }
        context.out.note(phrase!("That is none of them.", "一覧にありません。"));
    }
}

/// The choice with this name, or else the only one whose name contains it: `mail` for `email`.
fn find_choice(choices: &[(&str, Phrase)], answer: &str) -> Option<usize> {
    let has_it = |(_, (name, _)): &(usize, &(&str, Phrase))| !answer.is_empty() && name.contains(answer);
    let alike: Vec<usize> = choices.iter().enumerate().filter(has_it).map(|(index, _)| index).collect();
    let exact = choices.iter().position(|(name, _)| *name == answer);
    exact.or_else(|| alike.first().copied().filter(|_| alike.len() == 1))
}

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
