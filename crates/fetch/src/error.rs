//! Why a fetch did not bring what was asked for; each variant is what the caller does next.

use std::time::Duration;

use super::limits::{Pace, Size, span_text};

/// A fetch that brought nothing. Texts are for people and never carry a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Come back after the span: the host asked for it, or it keeps failing.
    #[error("{host} is to be left alone for {}: {why}", span_text(*after))]
    Later {
        /// The host that is paused.
        host: String,
        /// How long to wait before the next try.
        after: Duration,
        /// What made us wait.
        why: Why,
    },
    /// The server answered and will not hand it out.
    #[error("the server refused with status {status}")]
    Refused {
        /// The HTTP status.
        status: u16,
    },
    /// The page is not there (404); it may come back.
    #[error("the server does not know this address (status 404)")]
    NotFound,
    /// The page was removed for good (410): stop asking.
    #[error("the page is gone for good (status 410)")]
    Gone,
    /// The address guard does not let us go there.
    #[error("{target} is refused: {why}")]
    Blocked {
        /// The host or address that was asked for.
        target: String,
        /// Which rule refuses it.
        why: String,
        /// The `allow_private` entry that would allow it, if one can.
        allow: Option<String>,
    },
    /// More than we take.
    #[error("too big: {limit}")]
    TooBig {
        /// The limit that was hit.
        limit: Size,
    },
    /// Slower than we wait.
    #[error("too slow: {limit}")]
    TooSlow {
        /// The limit that was hit.
        limit: Pace,
    },
    /// The chain of redirects is longer than we follow.
    #[error("more than {limit} redirects")]
    TooManyRedirects {
        /// The limit that was hit.
        limit: usize,
    },
    /// A redirect leads back to where the chain has been.
    #[error("the redirects go in a circle at {host}")]
    RedirectLoop {
        /// The host where the circle closes.
        host: String,
    },
    /// The certificate or the handshake is not acceptable.
    #[error("no trusted connection to {host}: {why}")]
    BadTls {
        /// The host we tried to reach.
        host: String,
        /// What is wrong with it.
        why: String,
    },
    /// The address, or one a redirect named, is not one we can fetch.
    #[error("not a web address we can fetch: {why}")]
    BadUrl {
        /// What is wrong with it.
        why: String,
    },
    /// The name has no address.
    #[error("no address found for {host}: {why}")]
    Dns {
        /// The name that was looked up.
        host: String,
        /// What the resolver said.
        why: String,
    },
    /// No connection could be made.
    #[error("no connection to {host}: {why}")]
    Connect {
        /// The host we tried to reach.
        host: String,
        /// What the system said.
        why: String,
    },
    /// What came is not HTTP, or ended too early, or does not decode.
    #[error("the answer of {host} is broken: {why}")]
    Broken {
        /// The host that answered.
        host: String,
        /// What is wrong with the answer.
        why: String,
    },
    /// Our own disk did not take what was fetched.
    #[error("could not save what was fetched: {0}")]
    Disk(#[source] std::io::Error),
    /// The HTTP client could not be set up.
    #[error("the HTTP client could not be set up: {why}")]
    Setup { why: String },
}

/// What made us leave a host alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// It answered with this status.
    #[error("it answered with status {0}")]
    Status(u16),
    /// It answered with this status and said itself how long to wait (`Retry-After`).
    #[error("it answered with status {0}")]
    Asked(u16),
    /// It could not be reached, or did not answer in time.
    #[error("it could not be reached")]
    Unreachable,
}

impl Why {
    /// What 429 or 503 means, with the wait that its host named.
    pub(super) fn of_busy(status: u16, retry_after: Option<Duration>) -> Self {
        match retry_after {
            Some(wait) if !wait.is_zero() => Why::Asked(status),
            _ => Why::Status(status),
        }
    }
}

impl Error {
    /// Whether only another config ends it: trying again changes nothing.
    pub fn needs_config(&self) -> bool {
        matches!(self, Error::Blocked { .. } | Error::BadUrl { .. })
    }

    /// Whether the same request may succeed later without anybody changing anything.
    pub fn is_retryable(&self) -> bool {
        match self {
            Error::Later { .. }
            | Error::TooSlow { .. }
            | Error::Dns { .. }
            | Error::Connect { .. }
            | Error::Broken { .. }
            | Error::Disk(_) => true,
            Error::Refused { .. }
            | Error::NotFound
            | Error::Gone
            | Error::Blocked { .. }
            | Error::TooBig { .. }
            | Error::TooManyRedirects { .. }
            | Error::RedirectLoop { .. }
            | Error::BadTls { .. }
            | Error::BadUrl { .. }
            | Error::Setup { .. } => false,
        }
    }

    /// Whether a server may have seen the request; `false` means that it certainly did not.
    pub fn may_have_been_received(&self) -> bool {
        match self {
            Error::Blocked { .. }
            | Error::BadTls { .. }
            | Error::BadUrl { .. }
            | Error::Dns { .. }
            | Error::Connect { .. }
            | Error::Setup { .. } => false,
            Error::Later { why, .. } => *why != Why::Unreachable,
            _ => true,
        }
    }

    /// How long to wait before the next try, when the host or our back-off says so.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Error::Later { after, .. } => Some(*after),
            _ => None,
        }
    }

    /// The HTTP status behind the error, if a status caused it.
    pub fn status(&self) -> Option<u16> {
        match self {
            Error::Refused { status }
            | Error::Later { why: Why::Status(status) | Why::Asked(status), .. } => Some(*status),
            Error::NotFound => Some(404),
            Error::Gone => Some(410),
            _ => None,
        }
    }

    /// A short stable word for events and statistics.
    pub fn why_code(&self) -> &'static str {
        match self {
            Error::Later { why: Why::Status(_) | Why::Asked(_), .. } => "host_asks_to_wait",
            Error::Later { why: Why::Unreachable, .. } => "host_paused",
            Error::Refused { .. } => "refused",
            Error::NotFound => "not_found",
            Error::Gone => "gone",
            Error::Blocked { .. } => "blocked_address",
            Error::TooBig { limit } => limit.code(),
            Error::TooSlow { limit } => limit.code(),
            Error::TooManyRedirects { .. } => "too_many_redirects",
            Error::RedirectLoop { .. } => "redirect_loop",
            Error::BadTls { .. } => "bad_tls",
            Error::BadUrl { .. } => "bad_url",
            Error::Dns { .. } => "no_such_host",
            Error::Connect { .. } => "no_connection",
            Error::Broken { .. } => "broken_answer",
            Error::Disk(_) => "disk",
            Error::Setup { .. } => "client_setup",
        }
    }

    /// What happened in one line, and what to write into the config if that is the way out.
    pub fn describe(&self) -> String {
        match (self, self.hint()) {
            (Error::Blocked { .. }, Some(hint)) => format!("{self} ({hint})"),
            _ => self.to_string(),
        }
    }

    /// What the user can do about it, as the text of a `hint:` line.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Blocked { allow: Some(entry), .. } => {
                Some(format!(
                    "if you trust it, add `allow_private = [\"{entry}\"]` where its address stands in the config: \
                     [[job]], [channel.NAME] or [llm.NAME]"
                ))
            }
            Error::BadTls { .. } => Some(
                "check the address and this machine's clock; name the file of a private authority as `extra_ca` in \
                 [app], or add it to the machine's certificates"
                    .to_owned(),
            ),
            Error::Gone => Some("remove the source, or give it its new address".to_owned()),
            _ => None,
        }
    }
}
