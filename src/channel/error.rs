//! What a send can come to besides success; each variant is what the sender does next.

use std::time::Duration;

use crate::fetch::Check;
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;

/// A message that did not go out, as far as we know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// Try this message again: it was not sent. Costs an attempt.
    #[error("{why}")]
    Later {
        /// What went wrong.
        why: Phrase,
        /// What the other side asked for, if it did.
        after: Option<Duration>,
    },
    /// The other side asks everybody to wait: the channel is paused, and the attempt does not count.
    #[error("{why}")]
    Busy {
        /// What it said.
        why: Phrase,
        after: Duration,
    },
    /// This message will never be accepted.
    #[error("{why}")]
    Refused {
        /// What it said.
        why: Phrase,
    },
    /// Our credentials are not accepted: the channel is paused until they change. The attempt does not count.
    #[error("{why}")]
    Locked {
        /// What it said.
        why: Phrase,
    },
    /// The line to the other side cannot be encrypted: the channel is paused for a while and then tried again. The attempt
    /// does not count.
    #[error("{why}")]
    Unsafe {
        /// What stands in the way.
        why: Phrase,
    },
    /// It may have been sent.
    #[error("{why}")]
    Unknown {
        /// Where the trail ends.
        why: Phrase,
    },
}

impl SendError {
    pub(super) fn later(why: impl Into<Phrase>) -> Self {
        SendError::Later { why: why.into(), after: None }
    }

    /// What `doctor` is told when looking at `what` ended so.
    pub(super) fn check(&self, what: Phrase) -> Check {
        match self {
            SendError::Locked { why } => Check::locked(what, why),
            other => Check::bad(what, other.why()),
        }
    }

    pub(super) fn refused(why: impl Into<Phrase>) -> Self {
        SendError::Refused { why: why.into() }
    }

    pub(super) fn unknown(why: impl Into<Phrase>) -> Self {
        SendError::Unknown { why: why.into() }
    }

    pub(super) fn locked(why: impl Into<Phrase>) -> Self {
        SendError::Locked { why: why.into() }
    }

    /// What went wrong, for people.
    pub fn why(&self) -> &Phrase {
        match self {
            SendError::Later { why, .. }
            | SendError::Busy { why, .. }
            | SendError::Refused { why }
            | SendError::Locked { why }
            | SendError::Unsafe { why }
            | SendError::Unknown { why } => why,
        }
    }
}

/// What the other side calls a message that it has accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    /// Its own name for it if it gave one, else what it answered.
    pub remote_id: Option<String>,
    /// It was the last one that the other side takes before this moment.
    pub pause_until: Option<Timestamp>,
}

/// What a resolver found out about a message whose outcome is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// It is there.
    Accepted(Accepted),
    /// It is not there.
    NotSent,
    /// The channel has no way to tell.
    CannotTell { why: Phrase },
    /// Looking failed; look again later.
    Later(SendError),
}

impl Finding {
    /// What was found out, for people.
    pub(super) fn phrase(&self) -> Phrase {
        match self {
            Finding::Accepted(_) => phrase!("it is there", "届いています"),
            Finding::NotSent => phrase!("it is not there", "届いていません"),
            Finding::CannotTell { why } => why.clone(),
            Finding::Later(error) => error.why().clone(),
        }
    }
}

/// The channel was of another kind when the message was made.
pub(super) fn made_for_another_kind() -> SendError {
    SendError::refused(phrase!(
        "it was made for another kind of channel",
        "別の種類のチャンネル用に作られています"
    ))
}
