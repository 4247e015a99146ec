//! Names on the command line: one that neither the config nor the database knows is refused, with what was meant.

use super::{Context, Error, Result};
use crate::app::App;
use crate::blogs;
use crate::blogs::store as blog_store;
use crate::channel::outbox;
use crate::commits::store::{branches, projects};
use crate::config::Config;
use crate::db::{self, Db, Tx};
use crate::engine::store;
use crate::id::JobName;
use crate::ledger::{cursor, event, quota, subject::Kind};
use crate::press;
use crate::text::nearest;

/// What a name is the name of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    Job,
    Blog,
    Channel,
    Provider,
    Branch,
}

impl Named {
    fn word(self) -> &'static str {
        match self {
            Named::Job => "job",
            Named::Blog => "blog",
            Named::Channel => "channel",
            Named::Provider => "provider",
            Named::Branch => "branch",
        }
    }

    /// Where all of them are to be seen.
    fn listed_by(self) -> &'static str {
        match self {
            Named::Job => "`tsuzuki status --all` lists the jobs, also those that have left the config",
            Named::Blog => "`tsuzuki job show NAME` lists the blogs of a job",
            Named::Channel => "`tsuzuki delivery ls` names the channels that have messages",
            Named::Provider => "`tsuzuki quota ls` lists the providers that were used",
            Named::Branch => "`tsuzuki branch ls` lists the branches",
        }
    }
}

/// Refuses a name that nothing has: an empty answer would look like one about it. What has left the config but still
/// has rows is known.
pub(super) async fn refuse_unknown(what: Named, name: &str, db: &Db, context: &Context) -> Result<()> {
    let config = context.config().await?;
    let mut known = list_configured(what, config, db);
    if known.iter().any(|known| known == name) {
        return Ok(());
    }
    let wanted = name.to_owned();
    let (stored, has_rows) =
        db.read(move |tx| Ok((list_stored(tx, what)?, has_rows(tx, what, &wanted)?))).await?;
    if has_rows || stored.iter().any(|stored| stored == name) {
        return Ok(());
    }
    known.extend(stored);
    Err(no_such(what, name, known.iter().map(String::as_str)))
}

/// The same for an option that need not be given.
pub(super) async fn refuse_unknown_if_given(
    what: Named,
    name: Option<&str>,
    db: &Db,
    context: &Context,
) -> Result<()> {
    match name {
        Some(name) => refuse_unknown(what, name, db, context).await,
        None => Ok(()),
    }
}

/// That there is no such thing, and which of `known` may be meant.
pub(super) fn no_such<'a>(what: Named, name: &str, known: impl IntoIterator<Item = &'a str>) -> Error {
    let error = Error::usage(format!("there is no {} `{name}`", what.word()));
    match nearest(name, known) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error.hint(what.listed_by()),
    }
}

/// Every name that a person may have meant.
pub(super) async fn list_all(db: &Db, context: &Context) -> Result<Vec<String>> {
    const ALL: [Named; 5] = [Named::Job, Named::Blog, Named::Channel, Named::Provider, Named::Branch];
    let config = context.config().await?;
    let mut names: Vec<String> = ALL.iter().flat_map(|what| list_configured(*what, config, db)).collect();
    let stored = db.read(|tx| {
        let mut names = Vec::new();
        for what in ALL {
            names.extend(list_stored(tx, what)?);
        }
        names.extend(projects::list(tx, None)?.into_iter().map(|project| project.path));
        Ok(names)
    });
    names.extend(stored.await?);
    Ok(names)
}

fn list_configured(what: Named, config: &Config, db: &Db) -> Vec<String> {
    match what {
        Named::Job => config.jobs.iter().map(|job| job.name.to_string()).collect(),
        Named::Blog => list_blogs(config).map(|(_, id)| id).collect(),
        Named::Channel => config.channels.iter().map(|section| section.name.clone()).collect(),
        Named::Provider => {
            let llms = config.llms.iter().map(|section| section.name.clone());
            // A job may count against a provider that has no table of its own.
            let jobs = App::new(config, db.clone()).map(|app| app.jobs).unwrap_or_default();
            let relied_on = jobs.iter().flat_map(|job| job.collector.relies_on());
            let providers = relied_on.filter_map(|name| Some(name.name_of(Kind::Provider)?.to_owned()));
            llms.chain(config.quotas.keys().cloned()).chain(providers).collect()
        }
        Named::Branch => Vec::new(),
    }
}

/// The job that has a blog with that id.
pub(super) fn find_job_of_blog<'a>(config: &'a Config, id: &str) -> Option<&'a JobName> {
    list_blogs(config).find(|(_, blog)| blog == id).map(|(job, _)| job)
}

/// The ids of all blogs that the config names, each with its job.
fn list_blogs(config: &Config) -> impl Iterator<Item = (&JobName, String)> {
    let jobs = config.jobs.iter().filter(|job| job.kind == blogs::KIND);
    let listed = jobs.filter_map(|job| Some((&job.name, blogs::config::read(job).ok()?.0)));
    listed.flat_map(|(job, blogs)| blogs.into_iter().map(move |blog| (job, blog.id)))
}

/// Names that the database lists.
fn list_stored(tx: &mut Tx<'_>, what: Named) -> db::Result<Vec<String>> {
    Ok(match what {
        Named::Job => store::list_states(tx)?.into_iter().map(|state| state.job_name).collect(),
        Named::Blog => blog_store::list_known_blogs(tx)?.into_iter().map(|(id, ..)| id).collect(),
        Named::Branch => {
            let mut names: Vec<String> =
                branches::list(tx, None)?.into_iter().map(|row| row.branch_name).collect();
            names.sort_unstable();
            names.dedup();
            names
        }
        Named::Channel | Named::Provider => Vec::new(),
    })
}

/// Whether there is anything of that name, though no list has it.
fn has_rows(tx: &mut Tx<'_>, what: Named, name: &str) -> db::Result<bool> {
    let owned = || Some(name.to_owned());
    Ok(match what {
        Named::Job => {
            let messages = outbox::Filter { job: owned(), ..outbox::Filter::default() };
            let items = press::store::Filter { job: owned(), status: None, reason: None };
            !event::list_of_job(tx, name, 1)?.is_empty()
                || !outbox::list(tx, &messages, 1)?.is_empty()
                || !cursor::list(tx, Some(name))?.is_empty()
                || !press::store::list(tx, &items, 1)?.is_empty()
                || has_changes(tx, blog_store::Filter { job: owned(), ..blog_store::Filter::default() })?
        }
        Named::Blog => {
            has_changes(tx, blog_store::Filter { blog: owned(), ..blog_store::Filter::default() })?
        }
        Named::Channel => {
            let messages = outbox::Filter { channel: owned(), ..outbox::Filter::default() };
            !outbox::list(tx, &messages, 1)?.is_empty()
        }
        Named::Provider => !quota::list_usage(tx, Some(name), 1)?.is_empty(),
        Named::Branch => false,
    })
}

fn has_changes(tx: &mut Tx<'_>, filter: blog_store::Filter) -> db::Result<bool> {
    Ok(!blog_store::list_changes(tx, &filter, 1)?.is_empty())
}
