//! Why a send failed; each variant is what the sender does next.

use std::time::Duration;

use crate::fetch::Check;
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;

/// A message that was not sent, as far as is known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// Not sent; try this message again. Counts as an attempt.
    #[error("{why}")]
    Later {
        why: Phrase,
        /// The delay that the server asked for.
        after: Option<Duration>,
    },
    /// The server asks for a pause of the whole channel. The attempt does not count.
    #[error("{why}")]
    Busy { why: Phrase, after: Duration },
    /// This message will never be accepted.
    #[error("{why}")]
    Refused { why: Phrase },
    /// The credentials are rejected: the channel is paused until they change. The attempt does not count.
    #[error("{why}")]
    Locked { why: Phrase },
    /// The connection cannot be encrypted: the channel is paused for a while. The attempt does not count.
    #[error("{why}")]
    Unsafe { why: Phrase },
    /// It may have been sent.
    #[error("{why}")]
    Unknown { why: Phrase },
}

impl SendError {
    pub(super) fn later(why: impl Into<Phrase>) -> Self {
        SendError::Later { why: why.into(), after: None }
    }

    /// The result of the `doctor` check of `what` that ended so.
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

    /// The reason in words.
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

/// The server's record of a message that it has accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    /// Its id there if it has one, else the answer.
    pub remote_id: Option<String>,
    /// The server accepts no more messages before this moment.
    pub pause_until: Option<Timestamp>,
}

/// What a resolver found out about a message whose outcome is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// It was delivered.
    Accepted(Accepted),
    /// It was not delivered.
    NotSent,
    /// The channel has no way to find out.
    CannotTell { why: Phrase },
    /// The check failed; try again later.
    Later(SendError),
}

impl Finding {
    /// In words.
    pub(super) fn phrase(&self) -> Phrase {
        match self {
            Finding::Accepted(_) => phrase!("it is there", "届いています"),
            Finding::NotSent => phrase!("it is not there", "届いていません"),
            Finding::CannotTell { why } => why.clone(),
            Finding::Later(error) => error.why().clone(),
        }
    }
}

/// The channel was of another kind when the message was rendered.
pub(super) fn made_for_another_kind() -> SendError {
    SendError::refused(phrase!(
        "it was made for another kind of channel",
        "別の種類のチャンネル用に作られています"
    ))
}
