//! Names on the command line: an unknown one is refused with a suggestion.

use super::{Context, Error, Result};
use tsuzuki::app;
use tsuzuki::channel::outbox;
use tsuzuki::config::Config;
use tsuzuki::db::{self, Db, Tx};
use tsuzuki::engine::pipeline::Thing;
use tsuzuki::ledger::{Subject, cursor, event, quota};
use tsuzuki::phrase;

/// Refuses an unknown name: an empty listing would look like a valid answer. Names that have left the config but still
/// have rows are known.
pub(super) async fn refuse_unknown(word: &'static str, name: &str, db: &Db, context: &Context) -> Result<()> {
    let Some(thing) = app::things().find(|thing| thing.word == word) else { return Ok(()) };
    let mut known = list_configured(thing, context.config().await?);
    if known.iter().any(|known| known == name) {
        return Ok(());
    }
    let wanted = name.to_owned();
    let (stored, has_rows) =
        db.read(move |tx| Ok(((thing.list_stored)(tx)?, has_rows(tx, thing, &wanted)?))).await?;
    if has_rows || stored.iter().any(|stored| stored == name) {
        return Ok(());
    }
    known.extend(stored);
    Err(no_such(word, name, known.iter().map(String::as_str)))
}

/// The same for an option that need not be given.
pub(super) async fn refuse_unknown_if_given(
    word: &'static str,
    name: Option<&str>,
    db: &Db,
    context: &Context,
) -> Result<()> {
    match name {
        Some(name) => refuse_unknown(word, name, db, context).await,
        None => Ok(()),
    }
}

/// The error for an unknown name, with the nearest of `known`.
pub(super) fn no_such<'a>(word: &str, name: &str, known: impl IntoIterator<Item = &'a str>) -> Error {
    let kind = Subject::called(word);
    let error = Error::usage(phrase!("there is no {kind} `{name}`", "{kind} `{name}` はありません"));
    let command = app::things().find(|thing| thing.word == word).map_or("status", |thing| thing.listed_by);
    let all = phrase!("`tsuzuki {command}` lists what there is", "`tsuzuki {command}` で一覧できます");
    error.hint_nearest(name, known, all)
}

/// Every known name, for suggestions.
pub(super) async fn list_all(db: &Db, context: &Context) -> Result<Vec<String>> {
    let config = context.config().await?;
    let mut names: Vec<String> = app::things().flat_map(|thing| list_configured(thing, config)).collect();
    let stored = db.read(|tx| {
        let mut names = Vec::new();
        for thing in app::things() {
            names.extend((thing.list_stored)(tx)?);
        }
        Ok(names)
    });
    names.extend(stored.await?);
    Ok(names)
}

/// Names in the config; a provider may have a limit without a table of its own.
fn list_configured(thing: &Thing, config: &Config) -> Vec<String> {
    let mut names = (thing.list_configured)(config);
    if thing.word == "provider" {
        names.extend(app::quotas(config).into_keys());
    }
    names
}

/// Whether any row mentions that name, though no listing has it.
fn has_rows(tx: &mut Tx<'_>, thing: &Thing, name: &str) -> db::Result<bool> {
    let owned = || Some(name.to_owned());
    Ok(match thing.word {
        "job" => {
            let messages = outbox::DeliveryFilter { job: owned(), ..outbox::DeliveryFilter::default() };
            !event::list_of_job(tx, name, 1)?.is_empty()
                || !outbox::list(tx, &messages, 1)?.is_empty()
                || !cursor::list(tx, Some(name))?.is_empty()
        }
        "channel" => {
            let messages = outbox::DeliveryFilter { channel: owned(), ..outbox::DeliveryFilter::default() };
            !outbox::list(tx, &messages, 1)?.is_empty()
        }
        "provider" => !quota::list_usage(tx, Some(name), 1)?.is_empty(),
        word => !event::list_about(tx, &tsuzuki::ledger::Subject::new(word, name), 1)?.is_empty(),
    })
}
