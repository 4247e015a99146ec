//! A lane of a round: keeps so many checks under way, claims the next chunks in time, and writes the results.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{self, BoxFuture, FutureExt as _};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::time::Instant;

use super::model::{CheckFailure, CheckFailureKind, Sighting, State};
use super::report::RoundCounts;
use super::round::{Round, Taken, Written, count_entries};
use super::store::chunks::{ChunkClaim, ChunkProgress};
use crate::engine::{Failure, Update};
use crate::fail;
use crate::phrase;
use crate::time::Timestamp;

/// The most fresh checks at once in all lanes.
const FRESH: usize = 96;
/// The most checks at once in all lanes, including hanging ones.
const FLYING: usize = 1_000;
/// After this long a check counts as hanging.
const HANGING_AFTER: Duration = Duration::from_secs(1);
/// How often hanging checks are counted and waiting results written.
const POLL_EVERY: Duration = Duration::from_millis(250);
/// Results, and entries in them, that are written at the latest.
const BATCH: usize = 256;
const BATCH_ENTRIES: usize = 2_000;
/// A lane that has fewer blogs than this waiting claims its next chunks, while enough checks are under way.
const CLAIM_BELOW: usize = 16;

/// A finished check with its claim.
pub(super) struct Done {
    claim: ChunkClaim,
    pub(super) index: usize,
    pub(super) state: State,
    pub(super) sighting: Sighting,
}

pub(super) struct Lane {
    round: Arc<Round>,
    lanes: usize,
    /// Whether no chunk is left to be claimed.
    is_exhausted: bool,
    /// Our chunks with their progress.
    chunks: HashMap<ChunkClaim, ChunkProgress>,
    waiting: VecDeque<(ChunkClaim, usize, State)>,
    flying: FuturesUnordered<BoxFuture<'static, Done>>,
    started: HashMap<usize, Instant>,
    hanging: usize,
    done: Vec<Done>,
    entries: usize,
    tally: RoundCounts,
}

impl Lane {
    pub(super) fn new(round: Arc<Round>, lanes: usize) -> Self {
        Self {
            round,
            lanes,
            is_exhausted: false,
            chunks: HashMap::new(),
            waiting: VecDeque::new(),
            flying: FuturesUnordered::new(),
            started: HashMap::new(),
            hanging: 0,
            done: Vec::new(),
            entries: 0,
            tally: RoundCounts::default(),
        }
    }

    pub(super) async fn run(mut self) -> Result<RoundCounts, Failure> {
        let stop = self.round.ctx.stop.clone();
        let mut beat = tokio::time::interval(POLL_EVERY);
        beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            self.start_checks();
            if self.waiting.len() < CLAIM_BELOW && !self.is_exhausted && !stop.is_cancelled() {
                self.claim().await?;
                continue;
            }
            if self.flying.is_empty() && self.is_exhausted {
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

    /// Starts checks until enough fresh ones are running.
    fn start_checks(&mut self) {
        let limit = (FRESH / self.lanes + self.hanging).min(FLYING / self.lanes);
        while self.flying.len() < limit {
            let Some((claim, index, state)) = self.waiting.pop_front() else { return };
            let round = Arc::clone(&self.round);
            self.started.insert(index, Instant::now());
            self.flying.push(Box::pin(async move {
                let now = round.ctx.clock.now();
                // A parser that panics on one document must not affect the checks of other blogs.
                let check = AssertUnwindSafe(async {
                    fail::point("blogs.checking");
                    round.prober.check(&round.blogs[index], &state, now).await
                });
                let sighting = check.catch_unwind().await.unwrap_or_else(|_| crashed(now));
                Done { claim, index, state, sighting }
            }));
        }
    }

    /// Claims the next chunks and writes the results so far; together, because on SQLite both then share a commit.
    async fn claim(&mut self) -> Result<(), Failure> {
        let (round, db) = (Arc::clone(&self.round), self.round.ctx.db.clone());
        let claiming = db.claim(move |tx| round.claim(tx));
        let (taken, written) = future::join(claiming, self.write()).await;
        written?;
        let taken = taken?;
        self.is_exhausted = taken.is_empty();
        for Taken { claim, progress, due, passed, counts } in taken {
            if progress.pending != 0 {
                self.chunks.insert(claim, progress);
            }
            self.waiting.extend(due.into_iter().map(|(index, state)| (claim, index, state)));
            self.tally.add(counts);
            self.round.ctx.progress.report(&self.round.ctx.job, Update::Done(passed));
        }
        Ok(())
    }

    /// Writes the results of chunks that are still ours; the others belong to the process that has taken them.
    async fn write(&mut self) -> Result<(), Failure> {
        if self.done.is_empty() {
            return Ok(());
        }
        self.entries = 0;
        let mut batch: BTreeMap<ChunkClaim, (ChunkProgress, Vec<Done>)> = BTreeMap::new();
        for done in std::mem::take(&mut self.done) {
            // One whose chunk was lost is dropped.
            if let Some(progress) = self.chunks.get(&done.claim) {
                batch.entry(done.claim).or_insert_with(|| (progress.clone(), Vec::new())).1.push(done);
            }
        }
        let claims: Vec<ChunkClaim> = batch.keys().copied().collect();
        let round = Arc::clone(&self.round);
        fail::point("blogs.seen");
        let written = self.round.ctx.db.write(move |tx| round.apply(tx, &batch)).await?;
        fail::point("blogs.written");
        for claim in claims {
            self.chunks.remove(&claim);
        }
        for Written { claim, progress, counts } in written {
            self.round.ctx.progress.report(&self.round.ctx.job, Update::Done(counts.checked as u64));
            self.tally.add(counts);
            if progress.pending != 0 {
                self.chunks.insert(claim, progress);
            }
        }
        // Another process that took one of our chunks checks its blogs.
        self.waiting.retain(|(claim, ..)| self.chunks.contains_key(claim));
        Ok(())
    }
}

/// What a check saw that ended in a panic.
fn crashed(now: Timestamp) -> Sighting {
    let message = phrase!(
        "the reader crashed: a defect of tsuzuki; please report the document",
        "読み込み処理が異常終了しました（tsuzuki の不具合です。この文書とともに報告してください）"
    );
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
