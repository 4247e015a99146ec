//! Leases: one worker at a time, and a worker that stalled past its time can no longer write.
//!
//! A lease has an owner, an end, and a fence that is raised whenever the owner changes. Times are compared with the
//! database's clock ([`Tx::now`]), so that machines with different clocks agree.
//!
//! Four things are claimed: jobs, by a row in `leases`; targets of commits, chunks of blogs and messages, by columns of
//! their own rows, because a free row is found and claimed in the statement that changes it. They share [`LENGTH`],
//! [`latest_end`], [`KeepAlive`] and [`presence`]. Only messages use the boot clock, too, and have a lease as long as
//! their channel's time-out (`channel::outbox::lease`): if a live sender is taken for dead, its message is sent twice,
//! while other work that is claimed too early is only repeated and still written once.

use std::time::Duration;

use tokio_util::sync::{CancellationToken, DropGuard};

use super::presence;
use crate::db::{self, Db, FromRow, Tx};
use crate::id::Owner;
use crate::time::Timestamp;
use crate::{params, sql};

/// How long a claim lasts without being renewed.
pub const LENGTH: Duration = Duration::from_secs(60);

/// The latest end of a claim: one that ends later was made before the clock was set back.
pub fn latest_end(now: Timestamp) -> Timestamp {
    now.with_skew().plus(LENGTH)
}

/// The right to work on `name` until it expires or is released.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    name: String,
    owner: Owner,
    fence: i64,
}

/// The result of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    Taken(Lease),
    /// Another process has it.
    Held(Holder),
}

/// Who holds a lease.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, FromRow)]
pub struct Holder {
    /// The process, as `host/pid/random`.
    pub owner: String,
    pub taken_at: Timestamp,
    /// Unless it is renewed.
    pub expires_at: Timestamp,
}

impl Holder {
    fn is_alive(&self) -> bool {
        !presence::is_gone(&self.owner)
    }
}

/// Why a leased write failed.
#[derive(Debug, thiserror::Error)]
pub enum LeasedError {
    /// The lease has expired or is held by another process; nothing was written.
    #[error("the lease on {0} was lost, so nothing was written")]
    Lost(String),
    /// The database failed.
    #[error(transparent)]
    Db(#[from] db::Error),
}

/// Takes the lease on `name` if it is free, or if its holder is a process of this machine that has ended.
pub fn claim(tx: &mut Tx<'_>, name: &str, owner: &Owner, length: Duration) -> db::Result<Claim> {
    if let Some(lease) = take(tx, name, owner, length)? {
        return Ok(Claim::Taken(lease));
    }
    let Some(holder) = find_unexpired(tx, name)? else {
        // It was released between our two statements; the caller's next attempt gets it.
        let now = tx.now();
        return Ok(Claim::Held(Holder { owner: "nobody".into(), taken_at: now, expires_at: now }));
    };
    if holder.is_alive() {
        return Ok(Claim::Held(holder));
    }
    let given_back = sql!("UPDATE leases SET owner = NULL WHERE name = ?1 AND owner = ?2");
    tx.execute(given_back, params![name, holder.owner])?;
    Ok(take(tx, name, owner, length)?.map_or(Claim::Held(holder), Claim::Taken))
}

fn take(tx: &mut Tx<'_>, name: &str, owner: &Owner, length: Duration) -> db::Result<Option<Lease>> {
    let now = tx.now();
    let fence = tx.find(
        sql!(
            "INSERT INTO leases (name, owner, fence, taken_at, expires_at) VALUES (?1, ?2, 1, ?3, ?4)
             ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, fence = leases.fence + 1,
               taken_at = excluded.taken_at, expires_at = excluded.expires_at
             WHERE leases.owner IS NULL OR leases.expires_at <= excluded.taken_at OR leases.taken_at > ?5
             RETURNING fence"
        ),
        params![name, owner, now, now.plus(length), now.with_skew()],
        |row| row.get(0),
    )?;
    Ok(fence.map(|fence| Lease { name: name.to_owned(), owner: owner.clone(), fence }))
}

/// Who holds `name` now, if anybody; processes of this machine that have died do not count.
pub fn find_holder(tx: &mut Tx<'_>, name: &str) -> db::Result<Option<Holder>> {
    Ok(find_unexpired(tx, name)?.filter(Holder::is_alive))
}

fn find_unexpired(tx: &mut Tx<'_>, name: &str) -> db::Result<Option<Holder>> {
    let now = tx.now();
    tx.find(
        sql!(
            "SELECT owner, taken_at, expires_at FROM leases
             WHERE name = ?1 AND owner IS NOT NULL AND expires_at > ?2 AND taken_at <= ?3"
        ),
        params![name, now, now.with_skew()],
        FromRow::from_row,
    )
}

/// Every lease that is held now, by name, except those of processes of this machine that have died.
pub fn list_held(tx: &mut Tx<'_>) -> db::Result<Vec<(String, Holder)>> {
    let now = tx.now();
    let mut held: Vec<(String, Holder)> = tx.list(
        sql!(
            "SELECT name, owner, taken_at, expires_at FROM leases
             WHERE owner IS NOT NULL AND expires_at > ?1 AND taken_at <= ?2 ORDER BY name"
        ),
        params![now, now.with_skew()],
        |row| {
            Ok((row.get(0)?, Holder { owner: row.get(1)?, taken_at: row.get(2)?, expires_at: row.get(3)? }))
        },
    )?;
    held.retain(|(_, holder)| holder.is_alive());
    Ok(held)
}

impl Lease {
    /// The process that holds the lease.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Raised whenever the owner changes.
    pub fn fence(&self) -> i64 {
        self.fence
    }

    /// Whether we still hold it. On PostgreSQL the row is locked, so the answer holds until COMMIT.
    pub fn is_held(&self, tx: &mut Tx<'_>) -> db::Result<bool> {
        let now = tx.now();
        tx.exists(
            sql!(
                "SELECT fence FROM leases
                 WHERE name = ?1 AND owner = ?2 AND fence = ?3 AND expires_at > ?4 {for_update}"
            ),
            params![self.name, self.owner, self.fence, now],
        )
    }

    /// Extends it to `length` from now; `false` if we do not hold it any more.
    pub fn renew(&self, tx: &mut Tx<'_>, length: Duration) -> db::Result<bool> {
        let now = tx.now();
        tx.execute_one(
            sql!(
                "UPDATE leases SET expires_at = ?5, taken_at = CASE WHEN taken_at > ?4 THEN ?4 ELSE taken_at END
                 WHERE name = ?1 AND owner = ?2 AND fence = ?3 AND expires_at > ?4"
            ),
            params![self.name, self.owner, self.fence, now, now.plus(length)],
        )
    }

    /// Releases it; the fence stays.
    pub fn release(&self, tx: &mut Tx<'_>) -> db::Result<()> {
        tx.run(
            sql!("UPDATE leases SET owner = NULL WHERE name = ?1 AND owner = ?2 AND fence = ?3"),
            params![self.name, self.owner, self.fence],
        )
    }

    /// Writes only if we still hold the lease, checked in the same transaction.
    pub async fn write<T, F>(&self, db: &Db, work: F) -> Result<T, LeasedError>
    where
        T: Send + 'static,
        F: Fn(&mut Tx<'_>) -> db::Result<T> + Send + 'static,
    {
        let lease = self.clone();
        let written =
            db.write(move |tx| if lease.is_held(tx)? { work(tx).map(Some) } else { Ok(None) }).await?;
        written.ok_or_else(|| LeasedError::Lost(self.name.clone()))
    }
}

/// A lease that renews itself in the background until it is released, dropped or lost.
pub struct KeptLease {
    lease: Lease,
    alive: KeepAlive,
    db: Db,
}

impl KeptLease {
    /// Starts renewing `lease` three times per `length`; `stop` is cancelled when it is lost.
    pub fn keep(db: Db, lease: Lease, length: Duration, stop: &CancellationToken) -> Self {
        let renewed = lease.clone();
        let alive = KeepAlive::start(db.clone(), length, stop, move |tx| renewed.renew(tx, length));
        Self { lease, alive, db }
    }

    /// For leased writes.
    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Cancelled when the lease is lost, or when the work should stop.
    pub fn stop(&self) -> &CancellationToken {
        self.alive.stop()
    }

    /// Stops renewing and releases the lease.
    pub async fn release(self) -> db::Result<()> {
        let Self { lease, alive, db } = self;
        drop(alive);
        db.write(move |tx| lease.release(tx)).await
    }
}

/// Renews a claim in the background until it is dropped or the claim is lost.
pub struct KeepAlive {
    stop: CancellationToken,
    _done: DropGuard,
}

impl KeepAlive {
    /// Calls `renew` three times per `length`; `false` means that the claim is lost.
    pub fn start<F>(db: Db, length: Duration, stop: &CancellationToken, renew: F) -> Self
    where
        F: Fn(&mut Tx<'_>) -> db::Result<bool> + Clone + Send + 'static,
    {
        let (lost, done) = (stop.child_token(), CancellationToken::new());
        let kept = Self { stop: lost.clone(), _done: done.clone().drop_guard() };
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    () = done.cancelled() => return,
                    () = tokio::time::sleep(length / 3) => {}
                }
                // A database that is unreachable for a while does not mean a lost claim: the fence decides at the next
                // write.
                if let Ok(false) = db.claim(renew.clone()).await {
                    lost.cancel();
                    return;
                }
            }
        });
        kept
    }

    /// Cancelled when the claim is lost, or when the work should stop.
    pub fn stop(&self) -> &CancellationToken {
        &self.stop
    }
}
