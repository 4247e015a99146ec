//! The outbox: messages are saved with the decision that causes them, and sent exactly as often as promised.
//!
//! ```text
//!  add ──▶ ready ──claim──▶ sending ──accepted──▶ sent
//!  add ──▶ held   ▲           │ │ └────refused────▶ failed ──retry──▶ ready
//!           │     └─back-off──┘ └no answer, crash─▶ unknown ──resolver──▶ sent | sending | held
//!           │        add, after a restore ─────────▶┘
//!           ├─approve─▶ ready
//!           ├─confirm─▶ sent          (also from unknown)
//!           └─skip────▶ skipped
//! ```
//!
//! Claiming a message commits `sending` before it is sent, so nothing is sent if the disk cannot record it. After a
//! crash, a message in `sending` is `unknown` until the channel's resolver has checked it.

mod batch;
mod claim;
mod commands;
pub mod decide;
pub mod events;
mod lease;
mod listing;
mod memory;
mod model;
mod record;
mod report;
mod resolve;
mod restored;
mod sender;
mod store;
mod topics;
mod waiting;

pub use batch::{Batch, add_all};
pub use commands::{Answer, approve, approve_job, confirm, resume_channel, retry, skip, skip_job};
pub use decide::{OnUnknown, is_most_of, should_hold};
pub use listing::{DeliveryCount, DeliveryFilter, list, list_after, list_orphans, tally};
pub use model::{Added, Attempted, DeliveryOutcome, NewMessage, Row, State, Suspicion};
pub use report::SendReport;
pub use restored::{Provenance, notice_restore};
pub use sender::Sender;
pub use store::{add, count_in_hand, find, find_open, suspect};
pub use topics::{OnDelivered, Topics};
pub use waiting::{
    ChannelRetry, ChannelStatus, ChannelWait, WaitCause, find_wait, list_retries, list_statuses, list_waits,
    next_at,
};
