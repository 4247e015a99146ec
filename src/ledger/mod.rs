//! Durable bookkeeping that all pipelines share: leases, quotas, cursors, pauses, events.

pub mod cursor;
pub mod event;
pub mod lease;
pub mod pause;
pub mod presence;
pub mod quota;
pub mod subject;

pub use subject::Subject;

crate::migration!(5, "ledger", "../../migrations/0005_ledger.sql");
