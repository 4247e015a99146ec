//! Changes found by checks, announced or not.

use crate::blogs::decide::{Change, Code, Detail};
use crate::channel::outbox::State as MessageState;
use crate::db::{self, FromRow, Row, Tx};
use crate::id::JobName;
use crate::time::Timestamp;
use crate::{params, sql};

/// The value of `digest` for changes that are alerts for the operator and not messages to readers.
const ALERT: &str = "alert";

#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct ChangeRow {
    pub id: i64,
    pub job_name: String,
    pub blog_id: String,
    pub found_at: Timestamp,
    pub code: Code,
    /// Whether it needed approval.
    pub held: bool,
    pub detail: Detail,
    /// The subject of its messages; `None` until they are queued.
    pub digest: Option<String>,
}

/// A message about a change.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, FromRow)]
pub struct ChangeDelivery {
    /// Its number in the outbox.
    pub id: i64,
    /// The job that made it.
    #[serde(skip)]
    pub job_name: String,
    /// The channel it goes through.
    pub channel: String,
    pub state: MessageState,
}

/// Which changes to list; `None` matches all.
#[derive(Clone, Debug, Default)]
pub struct ChangeFilter {
    /// Only those of this job.
    pub job: Option<String>,
    /// Only those of this blog.
    pub blog: Option<String>,
    /// Only those with this code.
    pub code: Option<Code>,
    /// Only those with a smaller number.
    pub before: Option<i64>,
}

db::from_text!(Code = "the code of a change");

/// The columns of changes that [`read`] needs.
macro_rules! change_rows {
    () => {
        "SELECT id, job_name, blog_id, found_at, code, held, detail, digest FROM blog_changes "
    };
}
pub(super) use change_rows;

pub(super) fn read(row: &Row<'_>) -> db::Result<ChangeRow> {
    let detail: String = row.get(6)?;
    Ok(ChangeRow {
        id: row.get(0)?,
        job_name: row.get(1)?,
        blog_id: row.get(2)?,
        found_at: row.get(3)?,
        code: row.get(4)?,
        held: row.get(5)?,
        detail: serde_json::from_str(&detail).unwrap_or_default(),
        digest: row.get(7)?,
    })
}

pub(super) fn add(
    tx: &mut Tx<'_>,
    job: &JobName,
    blog_id: &str,
    change: &Change,
    found_since: Option<Timestamp>,
    now: Timestamp,
) -> db::Result<()> {
    let digest = (change.code != Code::New).then_some(ALERT);
    tx.run(
        sql!(
            "INSERT INTO blog_changes (job_name, blog_id, found_at, code, held, detail, found_since, digest)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
        ),
        params![
            job,
            blog_id,
            now,
            change.code.word(),
            change.held,
            super::text(&change.detail.to_stored()),
            found_since,
            digest
        ],
    )
}

/// The oldest unannounced changes of a job.
pub fn list_unannounced(tx: &mut Tx<'_>, job: &str, limit: usize) -> db::Result<Vec<ChangeRow>> {
    tx.list(
        sql!(concat!(change_rows!(), "WHERE job_name = ?1 AND digest IS NULL ORDER BY id LIMIT ?2")),
        params![job, limit],
        read,
    )
}

/// How many changes of a job are unannounced.
pub fn count_unannounced(tx: &mut Tx<'_>, job: &str) -> db::Result<usize> {
    let count = tx.count(
        sql!("SELECT COUNT(*) FROM blog_changes WHERE job_name = ?1 AND digest IS NULL"),
        params![job],
    )?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// The oldest of the times at which the blogs of these changes were last read before the changes were found.
pub fn find_found_since(tx: &mut Tx<'_>, ids: &[i64]) -> db::Result<Option<Timestamp>> {
    let mut oldest = Some(Timestamp::MAX);
    for id in ids {
        let since =
            tx.find(sql!("SELECT found_since FROM blog_changes WHERE id = ?1"), params![id], |row| {
                row.get::<Option<Timestamp>>(0)
            })?;
        oldest = oldest.min(since.flatten());
    }
    Ok(oldest)
}

/// Whether all of these changes are still unannounced.
pub fn are_unannounced(tx: &mut Tx<'_>, ids: &[i64]) -> db::Result<bool> {
    for id in ids {
        let marked =
            tx.count(sql!("SELECT 1 FROM blog_changes WHERE id = ?1 AND digest IS NOT NULL"), params![id])?;
        if marked == 1 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Records which messages announce a change.
pub fn mark_digest(tx: &mut Tx<'_>, id: i64, digest: &str) -> db::Result<()> {
    tx.run(sql!("UPDATE blog_changes SET digest = ?2 WHERE id = ?1 AND digest IS NULL"), params![id, digest])
}

/// The newest changes first.
pub fn list_changes(tx: &mut Tx<'_>, filter: &ChangeFilter, limit: usize) -> db::Result<Vec<ChangeRow>> {
    let text = match (&filter.blog, &filter.job) {
        (Some(_), _) => sql!(concat!(
            change_rows!(),
            "WHERE blog_id = ?2 AND (CAST(?1 AS TEXT) IS NULL OR job_name = ?1)
               AND (CAST(?3 AS TEXT) IS NULL OR code = ?3) AND id < ?5 ORDER BY id DESC LIMIT ?4"
        )),
        (None, Some(_)) => sql!(concat!(
            change_rows!(),
            "WHERE job_name = ?1 AND (CAST(?2 AS TEXT) IS NULL OR blog_id = ?2)
               AND (CAST(?3 AS TEXT) IS NULL OR code = ?3) AND id < ?5 ORDER BY id DESC LIMIT ?4"
        )),
        (None, None) => sql!(concat!(
            change_rows!(),
            "WHERE (CAST(?1 AS TEXT) IS NULL OR job_name = ?1) AND (CAST(?2 AS TEXT) IS NULL OR blog_id = ?2)
               AND (CAST(?3 AS TEXT) IS NULL OR code = ?3) AND id < ?5 ORDER BY id DESC LIMIT ?4"
        )),
    };
    let (code, before) = (filter.code.map(Code::word), filter.before.unwrap_or(i64::MAX));
    tx.list(text, params![filter.job, filter.blog, code, limit, before], read)
}

/// The change with that number.
pub fn find_change(tx: &mut Tx<'_>, id: i64) -> db::Result<Option<ChangeRow>> {
    tx.find(sql!(concat!(change_rows!(), "WHERE id = ?1")), params![id], read)
}

/// The messages of a digest.
pub fn list_deliveries_of(tx: &mut Tx<'_>, topic: &str, digest: &str) -> db::Result<Vec<ChangeDelivery>> {
    tx.list(
        sql!("SELECT id, job_name, channel, state FROM outbox WHERE topic = ?1 AND subject = ?2 ORDER BY id"),
        params![topic, digest],
        FromRow::from_row,
    )
}

/// Deletes at most `limit` announced changes about failures that are older than `before`; those about new entries are
/// kept.
pub fn prune_changes(tx: &mut Tx<'_>, before: Timestamp, limit: usize) -> db::Result<u64> {
    // `code <> 'new'` is written out to match the partial index.
    tx.execute(
        sql!(
            "DELETE FROM blog_changes WHERE id IN (
               SELECT id FROM blog_changes
               WHERE found_at < ?1 AND code <> 'new' AND digest IS NOT NULL ORDER BY found_at, id LIMIT ?2)"
        ),
        params![before, limit],
    )
}
