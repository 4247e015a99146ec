//! `serve`: the daemon. Runs due jobs, sends queued messages, and reloads the config when it changes.

use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::{Context, Exit, Result, log, sending, signals};
use tsuzuki::app::App;
use tsuzuki::app::daemon::Shared;
use tsuzuki::config;
use tsuzuki::config::value::Span;
use tsuzuki::db::{self, Open};
use tsuzuki::engine::{Finder, Progress, Runner, daemon, store};
use tsuzuki::text::counted;
use tsuzuki::web;

/// The most events of a thing.
pub(super) const EVENTS: usize = 100;

/// Options of `serve`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

pub(super) async fn run(_: &Args, context: &Context) -> Result {
    log::start(&context.global, "info", context.out.colours_messages());
    let app = Arc::new(context.app(Open::Create).await?);
    let finders = watch::Sender::new(Arc::new(app.finder(context.config().await?, EVENTS)));
    let pages = bind_pages(context, &app, &finders).await?;
    info!("Serving {} from {}", counted(app.jobs.len(), "job"), app.env.db.place());
    let known = app.env.db.read(store::list_states).await?;
    let is_first = |job: &&config::Job| !known.iter().any(|state| state.job_name == job.name.as_str());
    let first = context.config().await?.jobs.iter().filter(is_first);
    sending::list_without_channel(first).for_each(|sentence| warn!("{sentence}"));
    report_next(context, &app).await?;
    until_stopped(context, &app, &finders, pages).await?;
    if app.env.db.is_replaced() {
        return Err(db::Error::Replaced(app.env.db.place().to_string()).into());
    }
    info!("Stopped; everything is saved");
    Ok(Exit::Fine)
}

/// Logs which job starts next, so that a waiting daemon does not look dead.
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

/// Runs jobs, sends messages and serves pages until the program is stopped.
pub(super) async fn until_stopped(
    context: &Context,
    app: &Arc<App>,
    finders: &watch::Sender<Arc<Finder>>,
    pages: Option<web::Bound>,
) -> Result<()> {
    let requests = pages.as_ref().and_then(web::Bound::take_requests);
    let reload_requested = Notify::new();
    let shared = Shared {
        finders,
        asked: &reload_requested,
        progress: pages.as_ref().map_or_else(Progress::default, web::Bound::progress),
        requests: requests.unwrap_or_else(|| daemon::starter().1),
    };
    let config = context.config_path()?;
    let reload = async || reload(context, app).await;
    let daemon = Arc::clone(app).serve(shared, &config, reload, &context.stop);
    tokio::join!(daemon, pass_on_hangups(&reload_requested, &context.stop), async {
        if let Some(pages) = pages {
            pages.serve(&context.stop).await;
        }
    });
    Ok(())
}

/// Requests a reload of the config on every SIGHUP that is not the end of a terminal.
async fn pass_on_hangups(reload_requested: &Notify, stop: &CancellationToken) {
    if signals::has_terminal() {
        return;
    }
    let Ok(mut hangups) = signal(SignalKind::hangup()) else { return };
    while stop.run_until_cancelled(hangups.recv()).await.is_some() {
        reload_requested.notify_one();
    }
}

/// Reloads the config file; an invalid one is reported, and the last valid one stays.
async fn reload(context: &Context, app: &App) -> Option<(App, Finder)> {
    let reread = context.load_config().and_then(|config| {
        let app = App::new(&config, app.env.db.clone())?;
        let finder = app.finder(&config, EVENTS);
        Ok((app, finder))
    });
    match reread {
        Ok((app, finder)) => {
            info!("Read the config again: {} now", counted(app.jobs.len(), "job"));
            if let Err(error) = report_next(context, &app).await {
                warn!("Cannot see what is due: {}", error.plain());
            }
            Some((app, finder))
        }
        Err(error) => {
            warn!("Read the config again, but it cannot be used; the old one stays: {}", error.plain());
            None
        }
    }
}

/// Binds the addresses of pages. A second daemon on one machine finds the default address in use and continues without
/// pages; a configured address must be available.
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
