//! `why`: the story of one thing, from the events and the seeds' tables alone.

use super::{Context, Error, Exit, Result};
use crate::db::{self, Tx};
use crate::engine::store;
use crate::ledger::event::{self, Event};

/// Options of `why`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A URL, a blog's id, an ISBN, a run id, a branch as PROJECT/NAME, a delivery's number, or a job's name
    thing: String,
    /// At most this many events
    #[arg(long, default_value_t = 50)]
    limit: usize,
}

/// What a word on the command line may stand for, in the order in which it is sought.
const KINDS_OF_THINGS: &[&str] =
    &["item", "blog", "book", "branch", "run", "delivery", "channel", "provider", "job"];

pub(super) async fn run(args: &Args, context: &Context) -> Result {
    let (thing, limit) = (args.thing.clone(), args.limit);
    let events = context.db().await?.read(move |tx| list_events(tx, &thing, limit)).await?;
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
        .map(|(key, value)| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            format!("  {key}={}", crate::text::one_line(&value))
        })
        .collect()
}
