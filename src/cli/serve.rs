//! `serve`: the daemon. Runs jobs when they are due, sends what they queue, and reads the config anew when it changes.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::{Context, Exit, Result, log, progress};
use crate::app::{self, App};
use crate::config::Colour;
use crate::db::Open;
use crate::engine::{Job, Runner, daemon};
use crate::web;

/// How often the config file is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// How often old history is deleted.
const FORGET_EVERY: Duration = Duration::from_secs(60 * 60);

/// Options of `serve`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

pub(super) async fn run(_: &Args, context: &Context) -> Result {
    log::start(&context.global, "info", context.out.colours_messages());
    let app = context.app(Open::Create).await?;
    let runner = Runner::new(app.parts.db.clone(), progress::drawn(&context.out));
    info!("Serving {} job(s) from {}", app.jobs.len(), app.parts.db.place());
    let (jobs, list) = watch::channel(Arc::new(app.jobs.clone()));
    let sender = app.sender();
    let pages = bind_pages(context, &app).await?;
    tokio::join!(
        daemon::serve(&runner, list, &context.stop),
        sender.run(&context.stop),
        follow_config(context, &app, &jobs, &context.stop),
        forget(context, &app),
        async {
            if let Some(pages) = pages {
                pages.serve(&context.stop).await;
            }
        },
    );
    info!("Stopped; everything is saved");
    Ok(Exit::Fine)
}

/// Listens for readers of pages. A second daemon on one machine finds the usual address taken and goes on without
/// pages; an address that the config names has to be had.
async fn bind_pages(context: &Context, app: &App) -> Result<Option<web::Bound>> {
    let pages = web::Pages::new(app.parts.db.clone(), app.parts.app.language);
    match web::bind(&app.parts.web, &pages).await {
        Ok(bound) => Ok(Some(bound)),
        Err(error @ web::Error::Listen { .. }) if !context.config().await?.web.has("listen") => {
            warn!("No pages are served: {error}");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Deletes old history every hour, if the config says how much to keep.
async fn forget(context: &Context, app: &App) {
    let Ok(Some(keep)) = context.config().await.map(|config| config.store.keep_history) else { return };
    while !context.stop.is_cancelled() {
        if let Err(error) = app::prune(&app.parts.db, context.clock.now().minus(keep.into())).await {
            warn!("Old history stays for now: {error}");
        }
        tokio::select! {
            () = context.stop.cancelled() => return,
            () = tokio::time::sleep(FORGET_EVERY) => {}
        }
    }
}

/// Reads the config file anew when it changes, and keeps the last good one. What the daemon cannot change while
/// it runs (the database, the channels) needs a restart.
async fn follow_config(
    context: &Context,
    app: &App,
    jobs: &watch::Sender<Arc<Vec<Job>>>,
    stop: &CancellationToken,
) {
    let Ok(path) = context.config_path() else { return };
    let changed_at = || path.metadata().and_then(|file| file.modified()).ok();
    let mut known: Option<SystemTime> = changed_at();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        let found = changed_at();
        if found.is_none() || found == known {
            continue;
        }
        known = found;
        let reread = context.load_config().and_then(|config| Ok(App::new(&config, app.parts.db.clone())?));
        match reread {
            Ok(new) => {
                info!("The config has changed: {} job(s) now", new.jobs.len());
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
