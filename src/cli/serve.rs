//! `serve`: the daemon. Runs jobs when they are due, sends what they queue, and reads the config anew when it changes.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::{Context, Exit, Result, log, sending};
use crate::app::{self, App};
use crate::channel::outbox::Sender;
use crate::config::value::Span;
use crate::config::{self, Colour};
use crate::db::{self, Db, Open};
use crate::engine::alert::Announcer;
use crate::engine::{Finder, Job, Progress, Runner, daemon, store};
use crate::text::counted;
use crate::web;

/// How often the config file, and the place of the database, is looked at.
const POLL_EVERY: Duration = Duration::from_secs(5);

/// How often alerts are brought up to date.
const ANNOUNCE_EVERY: Duration = Duration::from_secs(60);

/// Events that a thing is shown with at most.
pub(super) const EVENTS: usize = 100;

/// How often old history is deleted.
const FORGET_EVERY: Duration = Duration::from_secs(60 * 60);

/// Options of `serve`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

pub(super) async fn run(_: &Args, context: &Context) -> Result {
    log::start(&context.global, "info", context.out.colours_messages());
    let app = context.app(Open::Create).await?;
    let finders = watch::Sender::new(Arc::new(app.finder(context.config().await?, EVENTS)));
    let pages = bind_pages(context, &app, &finders).await?;
    info!("Serving {} from {}", counted(app.jobs.len(), "job"), app.env.db.place());
    let known = app.env.db.read(store::list_states).await?;
    let is_first = |job: &&config::Job| !known.iter().any(|state| state.job_name == job.name.as_str());
    let first = context.config().await?.jobs.iter().filter(is_first);
    sending::list_without_channel(first).for_each(|sentence| warn!("{sentence}"));
    report_next(context, &app).await?;
    until_stopped(context, &app, &finders, pages).await;
    if app.env.db.is_replaced() {
        return Err(db::Error::Replaced(app.env.db.place().to_string()).into());
    }
    info!("Stopped; everything is saved");
    Ok(Exit::Fine)
}

/// Says which job starts next, so that a daemon that waits does not look dead.
async fn report_next(context: &Context, app: &App) -> Result<()> {
    let runner = Runner::new(app.env.db.clone(), Progress::default());
    let now = context.clock.now();
    match daemon::find_next(&runner, &app.jobs).await? {
        Some((at, job)) => {
            let wait = Span::from_secs(at.since(now).as_secs());
            let wait = wait.map_or_else(|| "now".to_owned(), |wait| format!("in {wait}"));
            info!("Next is {job}, {wait}: {}", context.speech().await?.moment(at));
        }
        None => info!("No job starts by itself: all are disabled or paused, or there is none"),
    }
    Ok(())
}

/// Runs jobs, sends and shows pages until the program is told to stop.
pub(super) async fn until_stopped(
    context: &Context,
    app: &App,
    finders: &watch::Sender<Arc<Finder>>,
    pages: Option<web::Bound>,
) {
    let progress = pages.as_ref().map_or_else(Progress::default, web::Bound::progress);
    let runner = Runner::new(app.env.db.clone(), progress);
    let asked = pages.as_ref().and_then(web::Bound::take_requests);
    let requests = asked.unwrap_or_else(|| daemon::starter().1);
    let (jobs, list) = watch::channel(Arc::new(app.jobs.clone()));
    let (senders, sender) = watch::channel((app.sender(), app.announcer()));
    tokio::join!(
        daemon::serve(&runner, list, requests, &context.stop),
        announce(sender.clone(), &context.stop),
        send(sender, &context.stop),
        follow_config(context, app, &jobs, &senders, finders),
        forget(context, app),
        watch_place(context, &app.env.db),
        async {
            if let Some(pages) = pages {
                pages.serve(&context.stop).await;
            }
        },
    );
}

/// Listens for readers of pages. A second daemon on one machine finds the usual address taken and goes on without
/// pages; an address that the config names has to be had.
async fn bind_pages(
    context: &Context,
    app: &App,
    finders: &watch::Sender<Arc<Finder>>,
) -> Result<Option<web::Bound>> {
    let pages = web::Pages::new(app.env.db.clone(), app.env.app.message_language());
    let pages = pages.with_dashboard(finders.subscribe()).with_env(context.env.clone());
    match web::bind(&app.env.web, &pages).await {
        Ok(bound) => Ok(Some(bound)),
        Err(error @ web::Error::Listen { .. }) if !context.config().await?.web.has("listen") => {
            warn!("No pages are served: {error}");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Stops everything when the file of the database was removed or replaced: whatever is found or sent from then on would
/// be forgotten.
async fn watch_place(context: &Context, db: &Db) {
    while !context.stop.is_cancelled() {
        if db.is_replaced() {
            error!("{} was removed or replaced; nothing more is run or sent", db.place());
            context.stop.cancel();
        }
        tokio::select! {
            () = context.stop.cancelled() => return,
            () = tokio::time::sleep(POLL_EVERY) => {}
        }
    }
}

/// Deletes old history every hour, if the config of that hour says how much to keep.
async fn forget(context: &Context, app: &App) {
    while !context.stop.is_cancelled() {
        // A file that cannot be read now is told where it is followed.
        let keep = context.load_config().ok().and_then(|config| config.store.keep_history);
        if let Some(keep) = keep
            && let Err(error) = app::prune(&app.env.db, context.clock.now().minus(keep.into())).await
        {
            warn!("Old history stays for now: {error}");
        }
        tokio::select! {
            () = context.stop.cancelled() => return,
            () = tokio::time::sleep(FORGET_EVERY) => {}
        }
    }
}

/// Sends what is queued, and tells the operator what is wrong, by the config that is in use.
type Outgoing = (Sender, Announcer);

/// Looks every minute whether there is something that the operator has to know.
async fn announce(outgoing: watch::Receiver<Outgoing>, stop: &CancellationToken) {
    while !stop.is_cancelled() {
        let announcer = outgoing.borrow().1.clone();
        announcer.update_if_possible().await;
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(ANNOUNCE_EVERY) => {}
        }
    }
}

/// Sends what is queued. A sender with other channels takes over at once; the one before it takes no more, and ends the
/// messages under way in their own time: cutting them off would send them twice.
async fn send(mut senders: watch::Receiver<Outgoing>, stop: &CancellationToken) {
    let run = async |sender: Sender, turn: CancellationToken| sender.run(&turn, stop).await;
    let mut sending = FuturesUnordered::new();
    while !stop.is_cancelled() {
        let turn = stop.child_token();
        let sender = senders.borrow_and_update().0.clone();
        sending.push(run(sender, turn.clone()));
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                _ = senders.changed() => break,
                Some(()) = sending.next() => {}
            }
        }
        turn.cancel();
    }
    while sending.next().await.is_some() {}
}

/// Reads the config file anew when it changes, and keeps the last good one. Jobs and channels change at once; the
/// database and the addresses of pages stay until a restart.
async fn follow_config(
    context: &Context,
    app: &App,
    jobs: &watch::Sender<Arc<Vec<Job>>>,
    senders: &watch::Sender<Outgoing>,
    finders: &watch::Sender<Arc<Finder>>,
) {
    let Ok(path) = context.config_path() else { return };
    let changed_at = || path.metadata().and_then(|file| file.modified()).ok();
    let mut known: Option<SystemTime> = changed_at();
    loop {
        tokio::select! {
            () = context.stop.cancelled() => return,
            () = tokio::time::sleep(POLL_EVERY) => {}
        }
        let found = changed_at();
        if found.is_none() || found == known {
            continue;
        }
        known = found;
        let reread = context.load_config().and_then(|config| {
            let app = App::new(&config, app.env.db.clone())?;
            Ok((config, app))
        });
        match reread {
            Ok((config, new)) => {
                info!("The config has changed: {} now", counted(new.jobs.len(), "job"));
                if let Err(error) = report_next(context, &new).await {
                    warn!("Cannot see what is due: {}", error.plain(Colour::Never));
                }
                finders.send_replace(Arc::new(new.finder(&config, EVENTS)));
                senders.send_replace((new.sender(), new.announcer()));
                jobs.send_replace(Arc::new(new.jobs));
            }
            Err(error) => {
                warn!(
                    "The config has changed but cannot be used; the old one stays: {}",
                    error.plain(Colour::Never)
                );
            }
        }
    }
}
