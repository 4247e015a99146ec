//! The daemon: runs due jobs, sends messages, announces alerts, prunes history and reloads a changed config.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use super::App;
use crate::channel::outbox::Sender;
use crate::db::Db;
use crate::engine::daemon::{self, StartRequests};
use crate::engine::{Finder, Progress, Runner};
use crate::time::Clock;

/// How often to check whether the config file or the database file has changed.
const POLL_EVERY: Duration = Duration::from_secs(5);
/// How often to update alerts.
const ANNOUNCE_EVERY: Duration = Duration::from_secs(60);
/// How often to delete old history.
const PRUNE_EVERY: Duration = Duration::from_secs(60 * 60);

/// How often to refresh the precomputed data of pages.
const REFRESH_EVERY: Duration = Duration::from_secs(10);

/// What a daemon shares with the web server.
pub struct Shared<'a> {
    pub finders: &'a watch::Sender<Arc<Finder>>,
    pub progress: Progress,
    pub requests: StartRequests,
    /// Requests a reload of the config even if the file has not changed, as files that it names may have.
    pub asked: &'a Notify,
}

impl App {
    /// Runs jobs and sends messages until `stop` is cancelled, or the database is removed or replaced.
    ///
    /// `reload` is called when the file at `config` has changed or a reload is requested; `None` keeps the present
    /// config. Jobs and channels are replaced at once; the database and the addresses of pages only by a restart.
    pub async fn serve(
        self: Arc<Self>,
        shared: Shared<'_>,
        config: &Path,
        reload: impl AsyncFn() -> Option<(App, Finder)>,
        stop: &CancellationToken,
    ) {
        let Shared { finders, progress, requests, asked } = shared;
        let (db, clock) = (self.env.db.clone(), self.env.clock.clone());
        let runner = Runner::new(db.clone(), progress);
        let (jobs, list) = watch::channel(Arc::new(self.jobs.clone()));
        let (apps, current) = watch::channel(self);
        let follow = async {
            let changed_at = || config.metadata().and_then(|file| file.modified()).ok();
            let mut known: Option<SystemTime> = changed_at();
            while !stop.is_cancelled() {
                let is_asked = tokio::select! {
                    _ = pause(POLL_EVERY, stop) => false,
                    () = asked.notified() => true,
                };
                let found = changed_at();
                if !is_asked && (stop.is_cancelled() || found.is_none() || found == known) {
                    continue;
                }
                known = found;
                if let Some((app, finder)) = reload().await {
                    finders.send_replace(Arc::new(finder));
                    jobs.send_replace(Arc::new(app.jobs.clone()));
                    apps.send_replace(Arc::new(app));
                }
            }
        };
        tokio::join!(
            daemon::serve(&runner, list, requests, stop),
            announce(current.clone(), stop),
            prune(current.clone(), stop),
            send(current, stop),
            stop_when_replaced(&db, stop),
            refresh(finders, &db, &clock, stop),
            follow,
        );
    }
}

/// Waits; returns `false` if it was stopped.
async fn pause(time: Duration, stop: &CancellationToken) -> bool {
    tokio::select! {
        () = stop.cancelled() => false,
        () = tokio::time::sleep(time) => true,
    }
}

/// Stops everything when the database file is removed or replaced: anything found or sent afterwards would not be
/// recorded.
async fn stop_when_replaced(db: &Db, stop: &CancellationToken) {
    loop {
        if db.is_replaced() {
            error!("{} was removed or replaced; nothing more is run or sent", db.place());
            stop.cancel();
        }
        if !pause(POLL_EVERY, stop).await {
            return;
        }
    }
}

async fn prune(app: watch::Receiver<Arc<App>>, stop: &CancellationToken) {
    loop {
        let current = Arc::clone(&app.borrow());
        if let Err(error) = current.prune().await {
            warn!("Cannot delete old history yet: {error}");
        }
        if !pause(PRUNE_EVERY, stop).await {
            return;
        }
    }
}

/// Refreshes the precomputed data of pages, with the current config.
async fn refresh(finders: &watch::Sender<Arc<Finder>>, db: &Db, clock: &Clock, stop: &CancellationToken) {
    loop {
        let finder = Arc::clone(&finders.borrow());
        for pipeline in finder.pipelines {
            if let Err(error) = (pipeline.refresh)(&finder.config, db, clock).await {
                warn!("Cannot refresh the counts of pages yet: {error}");
            }
        }
        if !pause(REFRESH_EVERY, stop).await {
            return;
        }
    }
}

async fn announce(app: watch::Receiver<Arc<App>>, stop: &CancellationToken) {
    loop {
        let announcer = app.borrow().announcer();
        announcer.update_if_possible().await;
        if !pause(ANNOUNCE_EVERY, stop).await {
            return;
        }
    }
}

/// Sends queued messages. After a reload a new sender takes over at once; the old one claims no more messages, but
/// completes those it is sending, since aborting them would send them twice.
async fn send(mut app: watch::Receiver<Arc<App>>, stop: &CancellationToken) {
    let run = async |sender: Sender, term: CancellationToken| sender.run(&term, stop).await;
    let mut sending = FuturesUnordered::new();
    while !stop.is_cancelled() {
        let term = stop.child_token();
        let sender = app.borrow_and_update().sender();
        sending.push(run(sender, term.clone()));
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                _ = app.changed() => break,
                Some(()) = sending.next() => {}
            }
        }
        term.cancel();
    }
    while sending.next().await.is_some() {}
}
