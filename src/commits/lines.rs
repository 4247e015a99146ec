//! Line counts that a host did not give with its pages: asked for after a run, commit by commit, some each time.

use std::collections::BTreeMap;
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

/// Commits that are asked for after one run.
const AT_MOST: usize = 200;
/// How long that may take.
const TIME: Duration = Duration::from_secs(60);
/// What the host could not say is asked for again then.
const AGAIN_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// Asks for line counts that are missing on the host of `source`; the first failure ends it until the next run.
pub(super) async fn fetch_missing(
    env: &JobEnv,
    source: &GitSource,
    client: &dyn Host,
    stop: &CancellationToken,
) -> db::Result<()> {
    let (host, now) = (source.host.clone(), env.clock.now());
    let before = now.minus(AGAIN_AFTER);
    let missing = env.db.read(move |tx| lines::list_missing(tx, &host, before, AT_MOST)).await?;
    let mut by_commit: BTreeMap<(i64, String), Vec<Missing>> = BTreeMap::new();
    for row in missing {
        by_commit.entry((row.remote_id, row.sha.clone())).or_default().push(row);
    }
    let mut filled = 0;
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
                break;
            }
        };
        filled += counts.map_or(0, |_| rows.len());
        env.db.write(move |tx| rows.iter().try_for_each(|row| lines::put(tx, row, counts, now))).await?;
        if env.clock.now().since(now) > TIME || stop.is_cancelled() {
            break;
        }
    }
    if filled > 0 {
        info!("{}: line counts of {} added", source.job, counted(filled, "commit"));
    }
    Ok(())
}
