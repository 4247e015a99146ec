//! One round over all blogs: many checks at once, their results written in batches.
//!
//! A few lanes share the list. A lane keeps so many fresh checks under way; one that has hung for a while no longer
//! counts, so that silent sites delay no others. Results are written as soon as a batch is full or a moment has passed.

use std::collections::{HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::config::{Blog, Rules};
use super::decide::{Due, PauseFlag};
use super::model::{CheckFailure, CheckFailureKind, DetectorResult, Sighting, State};
use super::probe::Prober;
use super::report::RoundCounts;
use super::{decide, store};
use crate::db::{self, Db, Tx};
use crate::engine::{Failure, Progress, RunContext, Update};
use crate::fail;
use crate::id::JobName;
use crate::ledger::lease::Lease;
use crate::phrase::Phrase;
use crate::time::{Clock, Timestamp};

/// Lanes, at most.
const LANES: usize = 4;
/// Fresh checks under way in all lanes.
const FRESH: usize = 96;
/// Checks under way in all lanes, hanging ones included.
const FLYING: usize = 1_000;
/// After this long a check counts as hanging.
const HANGING_AFTER: Duration = Duration::from_secs(1);
/// How often hanging checks are counted and waiting results written.
const POLL_EVERY: Duration = Duration::from_millis(250);
/// Results, and entries in them, that are written at once.
const BATCH: usize = 128;
const BATCH_ENTRIES: usize = 2_000;
/// States that are read at once.
const CHUNK: usize = 64;

struct Round {
    blogs: Arc<[Blog]>,
    rules: Rules,
    prober: Prober,
    paused: HashMap<String, Phrase>,
    next: AtomicUsize,
    job: JobName,
    db: Db,
    lease: Lease,
    clock: Clock,
    stop: CancellationToken,
    progress: Progress,
}

struct Done {
    index: usize,
    state: State,
    sighting: Sighting,
}

/// Checks every blog that is due.
pub async fn run(
    ctx: &RunContext,
    blogs: Arc<[Blog]>,
    rules: &Rules,
    prober: &Prober,
) -> Result<RoundCounts, Failure> {
    let now = ctx.now();
    let round = Arc::new(Round {
        paused: ctx.db.read(move |tx| store::list_paused(tx, now)).await?,
        blogs,
        rules: rules.clone(),
        prober: prober.clone(),
        next: AtomicUsize::new(0),
        job: ctx.job.clone(),
        db: ctx.db.clone(),
        lease: ctx.lease.clone(),
        clock: ctx.clock.clone(),
        stop: ctx.stop.clone(),
        progress: ctx.progress.clone(),
    });
    round.progress.report(&round.job, Update::Total(round.blogs.len() as u64));
    let lanes = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get).min(LANES);
    let mut running = JoinSet::new();
    for _ in 0..lanes {
        running.spawn(Lane::new(Arc::clone(&round), lanes).run());
    }
    let mut tally = RoundCounts::default();
    let mut failure = None;
    while let Some(ended) = running.join_next().await {
        match ended {
            Ok(Ok(done)) => tally.add(done),
            Ok(Err(error)) => failure = failure.or(Some(error)),
            Err(crash) => {
                failure = failure.or(Some(Failure::Failed(format!("a lane crashed: {crash}").into())));
            }
        }
    }
    failure.map_or(Ok(tally), Err)
}

struct Lane {
    round: Arc<Round>,
    lanes: usize,
    waiting: VecDeque<(usize, State)>,
    flying: FuturesUnordered<BoxFuture<'static, Done>>,
    started: HashMap<usize, Instant>,
    hanging: usize,
    done: Vec<Done>,
    entries: usize,
    tally: RoundCounts,
}

impl Lane {
    fn new(round: Arc<Round>, lanes: usize) -> Self {
        Self {
            round,
            lanes,
            waiting: VecDeque::new(),
            flying: FuturesUnordered::new(),
            started: HashMap::new(),
            hanging: 0,
            done: Vec::new(),
            entries: 0,
            tally: RoundCounts::default(),
        }
    }

    async fn run(mut self) -> Result<RoundCounts, Failure> {
        let stop = self.round.stop.clone();
        let mut beat = tokio::time::interval(POLL_EVERY);
        beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            self.start_checks().await?;
            if self.flying.is_empty() {
                self.write().await?;
                return Ok(self.tally);
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => {
                    self.write().await?;
                    return Err(Failure::Interrupted);
                }
                Some(done) = self.flying.next() => {
                    self.started.remove(&done.index);
                    self.entries += count_entries(&done.sighting);
                    self.done.push(done);
                    if self.done.len() >= BATCH || self.entries >= BATCH_ENTRIES {
                        self.write().await?;
                    }
                }
                _ = beat.tick() => {
                    self.write().await?;
                    let is_hanging = |start: &&Instant| start.elapsed() >= HANGING_AFTER;
                    self.hanging = self.started.values().filter(is_hanging).count();
                }
            }
        }
    }

    /// Starts checks until enough fresh ones are under way.
    async fn start_checks(&mut self) -> Result<(), Failure> {
        let limit = (FRESH / self.lanes + self.hanging).min(FLYING / self.lanes);
        while self.flying.len() < limit {
            let Some((index, state)) = self.next_blog().await? else { return Ok(()) };
            let round = Arc::clone(&self.round);
            self.started.insert(index, Instant::now());
            self.flying.push(Box::pin(async move {
                let now = round.clock.now();
                // A reader that fails on one document must not cost the other blogs their checks.
                let check = AssertUnwindSafe(async {
                    fail::point("blogs.checking");
                    round.prober.check(&round.blogs[index], &state, now).await
                });
                let sighting = check.catch_unwind().await.unwrap_or_else(|_| crashed(now));
                Done { index, state, sighting }
            }));
        }
        Ok(())
    }

    /// The next blog that is due, with what is remembered about it.
    async fn next_blog(&mut self) -> Result<Option<(usize, State)>, Failure> {
        loop {
            if let Some(next) = self.waiting.pop_front() {
                return Ok(Some(next));
            }
            let round = &self.round;
            let first = round.next.fetch_add(CHUNK, Ordering::Relaxed);
            let chunk = first..round.blogs.len().min(first.saturating_add(CHUNK));
            if chunk.is_empty() {
                return Ok(None);
            }
            let (blogs, now) = (Arc::clone(&round.blogs), round.clock.now());
            let range = chunk.clone();
            let states = round
                .db
                .read(move |tx| {
                    blogs[range.clone()].iter().map(|blog| store::find_state(tx, &blog.id)).collect()
                })
                .await?;
            let states: Vec<Option<State>> = states;
            for (index, state) in chunk.zip(states) {
                match round.due(index, state.as_ref(), now) {
                    Due::Now => {
                        self.waiting.push_back((index, state.unwrap_or_default()));
                        continue;
                    }
                    Due::NotBefore(until) => self.tally.wait(&round.blogs[index].id, until),
                    Due::NotNow => {}
                }
                round.progress.report(&round.job, Update::Done(1));
            }
        }
    }

    /// Writes what was seen, all of it or nothing.
    async fn write(&mut self) -> Result<(), Failure> {
        if self.done.is_empty() {
            return Ok(());
        }
        self.entries = 0;
        let batch = std::mem::take(&mut self.done);
        let (count, round) = (batch.len() as u64, Arc::clone(&self.round));
        fail::point("blogs.seen");
        let tally = self.round.lease.write(&self.round.db, move |tx| round.apply(tx, &batch)).await?;
        fail::point("blogs.written");
        self.tally.add(tally);
        self.round.progress.report(&self.round.job, Update::Done(count));
        Ok(())
    }
}

impl Round {
    fn due(&self, index: usize, state: Option<&State>, now: Timestamp) -> Due {
        let blog = &self.blogs[index];
        let pause = if self.paused.contains_key(&blog.id) { PauseFlag::Paused } else { PauseFlag::None };
        decide::due(blog, state, pause, now)
    }

    fn apply(&self, tx: &mut Tx<'_>, batch: &[Done]) -> db::Result<RoundCounts> {
        let mut tally = RoundCounts::default();
        for Done { index, state, sighting } in batch {
            let blog = &self.blogs[*index];
            let decision = decide_check(tx, blog, &self.rules, state, sighting)?;
            store::apply(tx, &self.job, &blog.id, &decision, sighting, state.last_success_at)?;
            if self.paused.contains_key(&blog.id) && decision.pause.is_none() {
                store::resume(tx, &blog.id, sighting.checked_at)?;
            }
            fail::point("blogs.writing");
            tally.checked += 1;
            let is_read = sighting.outcome.is_ok() && decision.check.error_message.is_none();
            if state.last_success_at.is_none() && is_read && !decision.check.changed {
                tally.first += 1;
                tally.recorded += count_entries(sighting);
            }
            tally.changed += usize::from(decision.check.changed);
            tally.entries += decision.changes.iter().map(|change| change.detail.count()).sum::<usize>();
            let is_blocked = |trouble: &CheckFailure| trouble.kind == CheckFailureKind::Blocked;
            tally.blocked += usize::from(sighting.outcome.as_ref().is_err_and(is_blocked));
            if let Some(cut) = decision.check.cut {
                tally.cut(&blog.id, cut);
            }
            if let Some(error) = &decision.check.error_message {
                tally.fail(&blog.id, error, decision.state.as_ref().and_then(|state| state.not_before));
            }
        }
        Ok(tally)
    }
}

/// What the check means, with the memory asked where it matters.
pub fn decide_check(
    tx: &mut Tx<'_>,
    blog: &Blog,
    rules: &Rules,
    state: &State,
    sighting: &Sighting,
) -> db::Result<decide::Decision> {
    let mut seen = match &sighting.outcome {
        Ok(DetectorResult::Entries { entries, .. }) if decide::needs_memory(state, sighting) => {
            store::find_seen(tx, &blog.id, entries)?
        }
        _ => decide::SeenEntries::default(),
    };
    if let Some(DetectorResult::Entries { entries, .. }) = &sighting.beside {
        seen.extend(store::find_seen(tx, &blog.id, entries)?);
    }
    Ok(decide::decide_check(blog, rules, state, sighting, &seen))
}

/// What a check saw that ended in a panic.
fn crashed(now: Timestamp) -> Sighting {
    let message = "the reader crashed: a defect of tsuzuki; please report the document".to_owned();
    Sighting {
        checked_at: now,
        http_status: None,
        outcome: Err(CheckFailure { kind: CheckFailureKind::Other, message }),
        feed_search: None,
        other_feeds: Vec::new(),
        sitemap_search: None,
        moved_to: None,
        beside: None,
        still_stopped: false,
    }
}

fn count_entries(sighting: &Sighting) -> usize {
    match &sighting.outcome {
        Ok(DetectorResult::Entries { entries, .. }) => entries.len(),
        _ => 0,
    }
}
