//! Fetches line counts that a host did not include in its pages: after a run, commit by commit, for a limited time.

use std::collections::BTreeMap;
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
use crate::text::counted;

/// How many commits are requested in a batch.
const BATCH: usize = 100;
/// The time limit of one run.
const TIME: Duration = Duration::from_secs(10 * 60);
/// When counts that the host did not have are requested again.
const AGAIN_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// Fetches missing line counts from the host of `source`; the first failure ends it until the next run.
pub(super) async fn fetch_missing(
    env: &JobEnv,
    source: &GitSource,
    client: &dyn Host,
    stop: &CancellationToken,
) -> db::Result<()> {
    let began = env.clock.now();
    let before = began.minus(AGAIN_AFTER);
    let mut filled = 0;
    while env.clock.now().since(began) < TIME {
        let host = source.host.clone();
        let missing = env.db.read(move |tx| lines::list_missing(tx, &host, before, BATCH)).await?;
        if missing.is_empty() {
            break;
        }
        if filled == 0 && missing.len() == BATCH {
            let host = client.name();
            info!("{}: fetching missing line counts from {host}, for ten minutes at most", source.job);
        }
        if fetch_batch(env, source, client, missing, &mut filled, stop).await?.is_break() {
            break;
        }
    }
    if filled > 0 {
        info!("{}: line counts of {} added", source.job, counted(filled, "commit"));
    }
    Ok(())
}

async fn fetch_batch(
    env: &JobEnv,
    source: &GitSource,
    client: &dyn Host,
    missing: Vec<Missing>,
    filled: &mut usize,
    stop: &CancellationToken,
) -> db::Result<ControlFlow<()>> {
    let mut by_commit: BTreeMap<(i64, String), Vec<Missing>> = BTreeMap::new();
    for row in missing {
        by_commit.entry((row.remote_id, row.sha.clone())).or_default().push(row);
    }
    let mut answers = futures_util::stream::iter(by_commit)
        .map(
            |((remote_id, sha), rows)| async move { (rows, client.fetch_lines(remote_id, &sha, stop).await) },
        )
        .buffer_unordered(source.keys.concurrency);
    while let Some((rows, answer)) = answers.next().await {
        let counts = match answer {
            Ok(counts) => counts,
            Err(
                host::Error::Missing { .. } | host::Error::Refused { .. } | host::Error::Forbidden { .. },
            ) => None,
            Err(error) => {
                info!("{}: the missing line counts are left to the next run: {error}", source.job);
                return Ok(ControlFlow::Break(()));
            }
        };
        *filled += counts.map_or(0, |_| rows.len());
        let now = env.clock.now();
        env.db.write(move |tx| rows.iter().try_for_each(|row| lines::put(tx, row, counts, now))).await?;
    }
    Ok(ControlFlow::Continue(()))
}
