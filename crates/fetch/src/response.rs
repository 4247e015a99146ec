//! The result of a fetch.

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use url::Url;

use super::header;
use super::validators::Validators;

/// A successful answer.
#[derive(Debug, Clone)]
pub enum Response<B = Bytes> {
    /// Not modified since the version of the validators; no body was read.
    Unchanged(Head),
    Fetched(Head, B),
}

/// A response without its body.
#[derive(Debug, Clone)]
pub struct Head {
    pub status: u16,
    /// The address of the answer, after redirects.
    pub final_url: Url,
    /// The target of the permanent redirects at the beginning of the chain, if any: an address to adopt eventually.
    pub permanent_url: Option<Url>,
    pub headers: HeaderMap,
    /// For the next request; empty unless the status was 200 or 304.
    pub validators: Validators,
}

/// An answer of an API, successful or not.
#[derive(Debug, Clone)]
pub struct ApiAnswer {
    pub head: Head,
    /// The body; for an error status only the first 64 KiB.
    pub body: Bytes,
}

/// A body that was written to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    pub bytes: u64,
}

impl Head {
    /// The `Content-Type` header.
    pub fn content_type(&self) -> Option<&str> {
        header::text(&self.headers, &CONTENT_TYPE)
    }

    /// Whether the status is 2xx.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl<B> Response<B> {
    /// Status, headers and address, with or without a body.
    pub fn head(&self) -> &Head {
        match self {
            Response::Unchanged(head) | Response::Fetched(head, _) => head,
        }
    }
}
