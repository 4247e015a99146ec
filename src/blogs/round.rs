//! One round over all blogs: many checks at once, their results written in batches.
//!
//! Every process that takes part claims chunks of the list until none is left (`store::chunks`), in a few lanes. A lane
//! runs a limited number of fresh checks; one that has hung for a while no longer counts, so that unresponsive sites
//! delay no others. Results are written as soon as a batch is full or a short time has passed.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tracing::warn;

use super::config::{Blog, Rules};
use super::decide::{Decision, Due, PauseFlag};
use super::lane::{Done, Lane};
use super::model::{CheckFailure, CheckFailureKind, DetectorResult, Sighting, State};
use super::probe::Prober;
use super::report::RoundCounts;
use super::store::chunks::{self, BlogList, CHUNK, ChunkClaim, ChunkProgress};
use super::{Blogs, decide, store};
use crate::db::{self, Tx};
use crate::engine::{Failure, ShareContext, Update};
use crate::ledger::lease::{self, KeepAlive};
use crate::phrase::Phrase;
use crate::time::Timestamp;
use crate::{fail, hash};

/// The most lanes.
const LANES: usize = 4;
/// In a list longer than this, chunks are claimed two at a time: fewer commits, and still enough for every process.
const LONG_LIST: usize = 4_096;
/// How often the process that leads a round looks whether the others are done.
const POLL_EVERY: Duration = Duration::from_millis(500);

pub(super) struct Round {
    pub(super) blogs: Arc<[Blog]>,
    list: BlogList,
    rules: Rules,
    pub(super) prober: Prober,
    paused: HashMap<String, Phrase>,
    pub(super) ctx: ShareContext,
}

/// A claimed chunk with the states of its due blogs.
pub(super) struct Taken {
    pub(super) claim: ChunkClaim,
    pub(super) progress: ChunkProgress,
    pub(super) due: Vec<(usize, State)>,
    /// How many of its blogs are not due, and their counts.
    pub(super) passed: u64,
    pub(super) counts: RoundCounts,
}

/// The result of a write: the progress of the chunk, and the counts of this batch.
pub(super) struct Written {
    pub(super) claim: ChunkClaim,
    pub(super) progress: ChunkProgress,
    pub(super) counts: RoundCounts,
}

/// The list of blogs, by which processes recognise that they share it.
pub fn list_of(blogs: &[Blog]) -> BlogList {
    let parts = blogs.iter().flat_map(|blog| [blog.id.clone(), blog.settings_hash()]);
    BlogList { hash: hash::to_hex(&hash::digest_parts(parts)), count: blogs.len() }
}

/// Checks every due blog, together with the processes that join, and returns the counts of all of them.
pub async fn lead(ctx: &ShareContext, blogs: &Blogs) -> Result<RoundCounts, Failure> {
    ctx.progress.report(&ctx.job, Update::Total(blogs.blogs.len() as u64));
    loop {
        run(ctx, blogs).await?;
        let job = ctx.job.clone();
        if let Some(counts) = ctx.db.read(move |tx| chunks::find_counts(tx, &job)).await? {
            return Ok(counts);
        }
        tokio::select! {
            () = ctx.stop.cancelled() => return Err(Failure::Interrupted),
            () = tokio::time::sleep(POLL_EVERY) => {}
        }
        let job = ctx.job.clone();
        ctx.db.write(move |tx| chunks::release_gone(tx, &job)).await?;
    }
}

/// Checks the blogs of free chunks until none is left, and returns the counts of this process.
pub async fn run(ctx: &ShareContext, blogs: &Blogs) -> Result<RoundCounts, Failure> {
    let now = ctx.clock.now();
    let (job, owner) = (ctx.job.clone(), ctx.owner.clone());
    let alive = KeepAlive::start(ctx.db.clone(), lease::LENGTH, &ctx.stop, move |tx| {
        chunks::renew(tx, &job, &owner).map(|()| true)
    });
    let round = Arc::new(Round {
        paused: ctx.db.read(move |tx| store::list_paused(tx, now)).await?,
        blogs: Arc::clone(&blogs.blogs),
        list: blogs.list.clone(),
        rules: blogs.rules.clone(),
        prober: blogs.prober.clone(),
        ctx: ctx.clone(),
    });
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
    drop(alive);
    let Some(failure) = failure else { return Ok(tally) };
    let (job, owner) = (ctx.job.clone(), ctx.owner.clone());
    if let Err(error) = ctx.db.write(move |tx| chunks::release(tx, &job, owner.as_str())).await {
        warn!(job = %ctx.job, "Could not release unchecked blogs; other processes take them over within a minute: {error}");
    }
    Err(failure)
}

impl Round {
    /// Takes the next chunks that nobody has; none when all are taken.
    pub(super) fn claim(&self, tx: &mut Tx<'_>) -> db::Result<Vec<Taken>> {
        let most = if self.list.count > LONG_LIST { 2 } else { 1 };
        let mut taken = Vec::with_capacity(most);
        while taken.len() < most
            && let Some(chunk) = self.claim_chunk(tx)?
        {
            taken.push(chunk);
        }
        Ok(taken)
    }

    /// Takes a chunk that nobody has, and skips those of its blogs that are not due.
    fn claim_chunk(&self, tx: &mut Tx<'_>) -> db::Result<Option<Taken>> {
        let ShareContext { job, owner, clock, .. } = &self.ctx;
        let Some((claim, mut progress)) = chunks::claim(tx, job, &self.list, owner)? else { return Ok(None) };
        let pending = progress.pending;
        let indexes =
            (0..CHUNK).filter(|place| pending >> place & 1 == 1).map(|place| claim.number * CHUNK + place);
        let indexes: Vec<usize> = indexes.filter(|index| *index < self.blogs.len()).collect();
        let ids: Vec<&str> = indexes.iter().map(|index| self.blogs[*index].id.as_str()).collect();
        let (mut states, now) = (store::list_states(tx, &ids)?, clock.now());
        let (mut due, mut counts) = (Vec::new(), RoundCounts::default());
        for index in indexes {
            let blog = &self.blogs[index];
            let state = states.remove(&blog.id);
            match self.due(blog, state.as_ref(), now) {
                Due::Now => {
                    due.push((index, state.unwrap_or_default()));
                    continue;
                }
                Due::NotBefore(until) => counts.wait(&blog.id, until),
                Due::NotNow => {}
            }
            progress.pending &= !bit(index);
        }
        progress.counts.add(counts.clone());
        let passed = u64::from((pending ^ progress.pending).count_ones());
        if passed > 0 {
            chunks::put_progress(tx, job, owner, &claim, &progress)?;
        }
        Ok(Some(Taken { claim, progress, due, passed, counts }))
    }

    fn due(&self, blog: &Blog, state: Option<&State>, now: Timestamp) -> Due {
        let pause = if self.paused.contains_key(&blog.id) { PauseFlag::Paused } else { PauseFlag::None };
        decide::due(blog, state, pause, now)
    }

    /// Writes the results of those chunks of the batch that are still ours.
    pub(super) fn apply(
        &self,
        tx: &mut Tx<'_>,
        batch: &BTreeMap<ChunkClaim, (ChunkProgress, Vec<Done>)>,
    ) -> db::Result<Vec<Written>> {
        let ShareContext { job, owner, .. } = &self.ctx;
        let mut written = Vec::with_capacity(batch.len());
        for (claim, (progress, checks)) in batch {
            let (mut progress, mut counts) = (progress.clone(), RoundCounts::default());
            let mut decisions = Vec::with_capacity(checks.len());
            for done in checks {
                let blog = &self.blogs[done.index];
                let decision = decide_check(tx, blog, &self.rules, &done.state, &done.sighting)?;
                count(&mut counts, &blog.id, done, &decision);
                progress.pending &= !bit(done.index);
                decisions.push(decision);
            }
            progress.counts.add(counts.clone());
            if !chunks::put_progress(tx, job, owner, claim, &progress)? {
                continue;
            }
            for (Done { index, state, sighting, .. }, decision) in checks.iter().zip(&decisions) {
                let blog = &self.blogs[*index];
                store::apply(tx, job, &blog.id, decision, sighting, state.last_success_at)?;
                if self.paused.contains_key(&blog.id) && decision.pause.is_none() {
                    store::resume(tx, &blog.id, sighting.checked_at)?;
                }
                fail::point("blogs.writing");
            }
            written.push(Written { claim: *claim, progress, counts });
        }
        Ok(written)
    }
}

/// The bit of a blog in its chunk.
fn bit(index: usize) -> u64 {
    1 << (index % CHUNK)
}

fn count(counts: &mut RoundCounts, blog: &str, done: &Done, decision: &Decision) {
    let Done { state, sighting, .. } = done;
    counts.checked += 1;
    let is_read = sighting.outcome.is_ok() && decision.check.error_message.is_none();
    if state.last_success_at.is_none() && is_read && !decision.check.changed {
        counts.first += 1;
        counts.recorded += count_entries(sighting);
    }
    counts.changed += usize::from(decision.check.changed);
    counts.entries += decision.changes.iter().map(|change| change.detail.count()).sum::<usize>();
    let is_blocked = |trouble: &CheckFailure| trouble.kind == CheckFailureKind::Blocked;
    counts.blocked += usize::from(sighting.outcome.as_ref().is_err_and(is_blocked));
    if let Some(cut) = decision.check.cut {
        counts.cut(blog, cut);
    }
    if let Some(error) = &decision.check.error_message {
        counts.fail(blog, error, decision.state.as_ref().and_then(|state| state.not_before));
    }
}

/// What the check means, with the memory asked where it matters. The `state` comes without its recent keys.
pub fn decide_check(
    tx: &mut Tx<'_>,
    blog: &Blog,
    rules: &Rules,
    state: &State,
    sighting: &Sighting,
) -> db::Result<decide::Decision> {
    let mut state = Cow::Borrowed(state);
    if matches!(&sighting.outcome, Ok(DetectorResult::Entries { .. })) && state.last_success_at.is_some() {
        state.to_mut().recent_entry_keys = store::find_recent_keys(tx, &blog.id)?;
    }
    let state = &*state;
    let mut seen = match &sighting.outcome {
        Ok(DetectorResult::Entries { entries, .. }) if decide::needs_memory(state, sighting) => {
            let mut seen = store::find_seen(tx, &blog.id, entries)?;
            if entries.iter().any(|entry| !seen.knows(entry)) {
                let vanished = decide::list_vanished(state, sighting);
                let titles = store::list_titles(tx, &blog.id, &vanished)?;
                seen.replacing = decide::find_replacing(entries, &seen, titles);
            }
            seen
        }
        _ => decide::SeenEntries::default(),
    };
    if let Some(DetectorResult::Entries { entries, .. }) = &sighting.beside {
        seen.extend(store::find_seen(tx, &blog.id, entries)?);
    }
    Ok(decide::decide_check(blog, rules, state, sighting, &seen))
}

pub(super) fn count_entries(sighting: &Sighting) -> usize {
    match &sighting.outcome {
        Ok(DetectorResult::Entries { entries, .. }) => entries.len(),
        _ => 0,
    }
}
