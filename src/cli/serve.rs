//! `serve`: the daemon. Runs jobs when they are due, sends what they queue, and reads the config anew when it changes.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::{Context, Exit, Result, log, progress};
use crate::app::App;
use crate::config::Colour;
use crate::db::Open;
use crate::engine::{Job, Runner, daemon};

/// How often the config file is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(5);

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
    tokio::join!(
        daemon::serve(&runner, list, &context.stop),
        sender.run(&context.stop),
        follow_config(context, &app, &jobs, &context.stop),
    );
    info!("Stopped; everything is saved");
    Ok(Exit::Fine)
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
