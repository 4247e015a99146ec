//! Fetches line counts that a host did not include in its pages: after a run, commit by commit, for a limited time.

use std::ops::ControlFlow;
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio_util::sync::CancellationToken;
use tracing::info;

use super::GitSource;
use super::host::{self, Host};
use super::store::lines::{self, Missing};
use crate::db;
use crate::engine::JobEnv;
use crate::phrase::Phrase;
use crate::text::counted;

/// How many commits are requested in a batch.
const BATCH: usize = 100;
/// The time limit of one run.
const TIME: Duration = Duration::from_secs(10 * 60);
/// When counts that the host did not have are requested again.
const AGAIN_AFTER: Duration = Duration::from_secs(24 * 60 * 60);
/// Failures in a row that end it until the next run.
const MOST_FAILURES: usize = 5;

/// How far one run has come.
#[derive(Default)]
struct Asked {
    /// Rows that have their line counts now.
    filled: usize,
    /// Commits that the host said something about.
    answered: usize,
    failures_in_a_row: usize,
}

/// Asks for line counts that are missing on the host of `source`. A host that fails before it has answered anything, or
/// again and again, is left alone until the next run.
pub(super) async fn fetch_missing(
    env: &JobEnv,
    source: &GitSource,
    client: &dyn Host,
    stop: &CancellationToken,
) -> db::Result<()> {
    let began = env.clock.now();
    let before = began.minus(AGAIN_AFTER);
    let mut asked = Asked::default();
    while env.clock.now().since(began) < TIME {
        let host = source.host.clone();
        let missing = env.db.read(move |tx| lines::list_missing(tx, &host, before, BATCH)).await?;
        if missing.is_empty() {
            break;
        }
        if asked.answered == 0 && missing.len() == BATCH {
            let host = client.name();
            info!("{}: fetching missing line counts from {host}, for ten minutes at most", source.job);
        }
        if fetch_batch(env, source, client, missing, &mut asked, stop).await?.is_break() {
            break;
        }
    }
    if asked.filled > 0 {
        info!("{}: line counts of {} added", source.job, counted(asked.filled, "commit"));
    }
    Ok(())
}

async fn fetch_batch(
    env: &JobEnv,
    source: &GitSource,
    client: &dyn Host,
    missing: Vec<Missing>,
    asked: &mut Asked,
    stop: &CancellationToken,
) -> db::Result<ControlFlow<()>> {
    // In their order: what failed last time comes last.
    let mut by_commit: Vec<Vec<Missing>> = Vec::new();
    for row in missing {
        match by_commit.iter_mut().find(|rows| rows[0].is_same_commit(&row)) {
            Some(rows) => rows.push(row),
            None => by_commit.push(vec![row]),
        }
    }
    let mut answers = futures_util::stream::iter(by_commit)
        .map(|rows| async move {
            let answer = client.fetch_lines(rows[0].remote_id, &rows[0].sha, stop).await;
            (rows, answer)
        })
        .buffer_unordered(source.keys.concurrency);
    while let Some((rows, answer)) = answers.next().await {
        let now = env.clock.now();
        let counts = match answer {
            Ok(counts) => counts,
            Err(
                host::Error::Missing { .. } | host::Error::Refused { .. } | host::Error::Forbidden { .. },
            ) => None,
            Err(host::Error::Failed(why)) => {
                // One commit may always be too much for the host: it goes behind the others, and the next run asks again.
                let tried_at = now.minus(AGAIN_AFTER);
                env.db
                    .write(move |tx| rows.iter().try_for_each(|row| lines::put(tx, row, None, tried_at)))
                    .await?;
                asked.failures_in_a_row += 1;
                if asked.answered == 0 || asked.failures_in_a_row == MOST_FAILURES {
                    return Ok(leave_to_next_run(source, &why));
                }
                continue;
            }
            Err(error) => return Ok(leave_to_next_run(source, &error.phrase())),
        };
        asked.filled += counts.map_or(0, |_| rows.len());
        (asked.answered, asked.failures_in_a_row) = (asked.answered + 1, 0);
        env.db.write(move |tx| rows.iter().try_for_each(|row| lines::put(tx, row, counts, now))).await?;
    }
    Ok(ControlFlow::Continue(()))
}

fn leave_to_next_run(source: &GitSource, why: &Phrase) -> ControlFlow<()> {
    info!("{}: the missing line counts are left to the next run: {why}", source.job);
    ControlFlow::Break(())
}
