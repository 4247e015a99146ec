//! Renders views on a terminal: a title, facts, sections and commands.

use super::{Context, Result};
use tsuzuki::engine::View;
use tsuzuki::engine::view::Stage;
use tsuzuki::ledger::Subject;
use tsuzuki::phrase::{Phrase, Speech};
use tsuzuki::text::{one_line, width};

/// The most events of `NOUN show`.
const EVENTS: usize = 100;
/// The least width of the labels of facts.
const LABELS: usize = 16;

/// Prints views for people, or as JSON.
pub(super) async fn print_all(views: &[View], context: &Context) -> Result<()> {
    if context.out.is_json() {
        let data = views.iter().map(|view| serde_json::json!({ view.kind: view.data }));
        return context.out.json(&data.collect::<Vec<_>>());
    }
    let speech = context.speech().await?;
    views.iter().flat_map(|view| render(view, &speech)).try_for_each(|line| context.out.prose(line))
}

/// Prints the one thing of that name, as `NOUN show` does; `false` if there is none.
pub(super) async fn show(subject: &Subject, context: &Context) -> Result<bool> {
    let app = context.read_only_app().await?;
    let (finder, name) = (app.finder(context.config().await?, EVENTS), subject.to_string());
    let views = app.env.db.read(move |tx| finder.find_exactly(tx, &name)).await?;
    let Some(view) = views.first() else { return Ok(false) };
    if context.out.is_json() {
        context.out.json(&view.data)?;
    } else {
        render(view, &context.speech().await?).iter().try_for_each(|line| context.out.prose(line))?;
        if let Some((_, text)) = &view.text {
            context.out.line("")?;
            context.out.line(text)?;
        }
    }
    Ok(true)
}

/// A view as lines.
pub(super) fn render(view: &View, speech: &Speech) -> Vec<String> {
    let mut lines = vec![one_line(&match view.state {
        Some(state) => format!("{} {}", state.mark(), speech.phrase(&view.title)),
        None => speech.phrase(&view.title),
    })];
    if !view.stages.is_empty() {
        let stage = |stage: &Stage| format!("{} {}", stage.state.mark(), speech.phrase(&stage.name));
        lines.push(format!("  {}", view.stages.iter().map(stage).collect::<Vec<_>>().join(" → ")));
    }
    let widest =
        view.facts.iter().map(|fact| width(&speech.phrase(&fact.label)) + 2).max().unwrap_or(0).max(LABELS);
    for fact in &view.facts {
        let (label, value) = (speech.phrase(&fact.label), speech.value(&fact.value));
        let gap = " ".repeat(widest - width(&label));
        lines.push(format!("  {label}{gap}{}", one_line(&value)));
    }
    for section in &view.sections {
        lines.push(format!("  {}", speech.phrase(&section.title)));
        lines.extend(section.lines.iter().map(|line| match line.at {
            Some(at) => format!("    {}  {}", speech.moment(at), one_line(&speech.phrase(&line.text))),
            None => format!("    {}", one_line(&speech.phrase(&line.text))),
        }));
    }
    if !view.actions.is_empty() {
        lines.push(format!("  {}", speech.choose("you can", "できること")));
        let command = |label: &Phrase, command: &str| {
            format!("    tsuzuki {}  # {}", one_line(command), one_line(&speech.phrase(label)))
        };
        lines.extend(view.actions.iter().map(|action| command(&action.label, &action.command)));
    }
    lines
}
