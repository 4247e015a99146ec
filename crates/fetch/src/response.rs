//! What a fetch brings back.

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use url::Url;

use super::header;
use super::validators::Validators;

/// What a fetch brought.
#[derive(Debug, Clone)]
pub enum Response<B = Bytes> {
    /// The version that the validators describe is still the current one; no body was read.
    Unchanged(Head),
    /// A body came.
    Fetched(Head, B),
}

/// What is known about a response besides its body.
#[derive(Debug, Clone)]
pub struct Head {
    /// The HTTP status.
    pub status: u16,
    /// Where the answer came from, after redirects.
    pub final_url: Url,
    /// Where permanent redirects alone lead, if there were any: the address to adopt in time.
    pub permanent_url: Option<Url>,
    /// All response headers.
    pub headers: HeaderMap,
    /// What to send with the next request; empty unless the answer was 200 or 304.
    pub validators: Validators,
}

/// Any answer of an API, good or bad.
#[derive(Debug, Clone)]
pub struct ApiAnswer {
    /// Status, headers and address.
    pub head: Head,
    /// The body; of an error page only the first 64 KiB.
    pub body: Bytes,
}

/// A body that was written to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// How long it is.
    pub bytes: u64,
}

impl Head {
    /// The `Content-Type` header.
    pub fn content_type(&self) -> Option<&str> {
        header::text(&self.headers, &CONTENT_TYPE)
    }

    /// Whether the status is one of success.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl<B> Response<B> {
    /// What is known besides the body.
    pub fn head(&self) -> &Head {
        match self {
            Response::Unchanged(head) | Response::Fetched(head, _) => head,
        }
    }
}
