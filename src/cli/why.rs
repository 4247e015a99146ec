//! `why`: the story of one thing, from the events and the seeds' tables alone.

use serde_json::Value as Json;

use super::{Context, Error, Exit, Result};
use crate::app;
use crate::db::{self, Tx};
use crate::engine::store;
use crate::ledger::event::{self, Event};

/// Options of `why`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A URL, an item as item:NUMBER, a blog's id, an ISBN, a run id, a branch as PROJECT/NAME, a delivery's number, or a job's name
    thing: String,
    /// At most this many events
    #[arg(long, default_value_t = 50)]
    limit: usize,
}

/// What a word on the command line may stand for, in the order in which it is sought.
const KINDS_OF_THINGS: &[&str] =
    &["item", "blog", "book", "project", "branch", "run", "delivery", "channel", "provider", "job"];

pub(super) async fn run(args: &Args, context: &Context) -> Result {
    let (thing, limit, now) = (args.thing.clone(), args.limit, context.clock.now());
    let (stories, events) = context
        .db()
        .await?
        .read(move |tx| {
            // A story brings the events of its subject along.
            let stories = app::list_stories(tx, &thing, limit, now)?;
            let events = if stories.is_empty() { list_events(tx, &thing, limit)? } else { Vec::new() };
            Ok((stories, events))
        })
        .await?;
    if !stories.is_empty() {
        match context.out.is_json() {
            true => context.out.json(&stories)?,
            false => stories.iter().try_for_each(|story| tell(context, story, 0))?,
        }
        return Ok(Exit::Fine);
    }
    if events.is_empty() {
        return Err(Error::failed(format!("nothing is known about `{}`", args.thing))
            .hint("an unchanged check leaves no event; `tsuzuki status` shows when jobs last ran"));
    }
    if context.out.is_json() {
        context.out.json(&events)?;
        return Ok(Exit::Fine);
    }
    let zone = context.config().await?.app.timezone.time_zone().clone();
    let mut subject = "";
    for event in &events {
        if event.subject != subject {
            subject = &event.subject;
            context.out.line(crate::text::one_line(subject))?;
        }
        context.out.line(format!("  {}  {}{}", event.at.to_local_minute(&zone), event.code, told(event)))?;
    }
    Ok(Exit::Fine)
}

/// A story as an indented outline; what is empty is left out.
fn tell(context: &Context, story: &Json, depth: usize) -> Result<()> {
    let indent = "  ".repeat(depth);
    match story {
        Json::Object(fields) => {
            fields.iter().filter(|(_, value)| !is_empty(value)).try_for_each(|(key, value)| {
                if value.is_object() || value.is_array() {
                    context.out.line(format!("{indent}{key}:"))?;
                    return tell(context, value, depth + 1);
                }
                context.out.line(format!("{indent}{key}: {}", plain(value)))
            })
        }
        Json::Array(items) => items.iter().try_for_each(|item| {
            let Json::Object(fields) = item else {
                return context.out.line(format!("{indent}- {}", plain(item)));
            };
            let shown: Vec<String> = fields
                .iter()
                .filter(|(_, value)| !is_empty(value))
                .map(|(key, value)| format!("{key}={}", plain(value)))
                .collect();
            context.out.line(format!("{indent}- {}", shown.join(" ")))
        }),
        value => context.out.line(format!("{indent}{}", plain(value))),
    }
}

fn is_empty(value: &Json) -> bool {
    match value {
        Json::Null => true,
        Json::Array(items) => items.is_empty(),
        Json::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

fn plain(value: &Json) -> String {
    crate::text::one_line(&value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

/// Everything about whatever `thing` stands for; a subject with its prefix is taken at its word.
fn list_events(tx: &mut Tx<'_>, thing: &str, limit: usize) -> db::Result<Vec<Event>> {
    let mut events = event::list_about(tx, thing, limit)?;
    for kind in KINDS_OF_THINGS {
        events.extend(event::list_about(tx, &format!("{kind}:{thing}"), limit)?);
    }
    if let Some(state) = store::find_state(tx, thing)?
        && let (Some(at), Some(outcome)) = (state.last_run_at, state.last_outcome)
    {
        events.push(Event {
            at,
            job_name: Some(thing.to_owned()),
            subject: format!("job:{thing}"),
            code: format!("last run: {outcome}"),
            detail: serde_json::json!({ "message": state.last_message }),
        });
    }
    Ok(events)
}

/// The detail of an event as `key=value`, values in full.
fn told(event: &Event) -> String {
    let Some(detail) = event.detail.as_object() else { return String::new() };
    detail
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(key, value)| format!("  {key}={}", plain(value)))
        .collect()
}
