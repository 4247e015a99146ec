//! Turns what went wrong inside the HTTP client into our words, without addresses that may hold secrets.

use std::error::Error as StdError;
use std::io;

use super::body::WireTooBig;
use super::call::quote;
use super::coding::BadCoding;
use super::error::Error;
use super::guard::Denied;
use super::limits::{Limits, Size};

/// The error that `error` means for a request to `host`.
pub(super) fn from_client(error: &reqwest::Error, host: &str) -> Error {
    let host = host.to_owned();
    if let Some(denied) = find::<Denied>(error) {
        return denied.clone().into();
    }
    if let Some(tls) = find::<rustls::Error>(error) {
        return Error::BadTls { host, why: in_words(tls) };
    }
    if error.is_dns() {
        return Error::Dns { host, why: deepest(error) };
    }
    if error.is_connect() {
        let why = if error.is_timeout() { "it did not answer in time".to_owned() } else { deepest(error) };
        return Error::Connect { host, why };
    }
    if error.is_builder() {
        return Error::BadUrl { why: deepest(error) };
    }
    if let Some(http) = find::<hyper::Error>(error) {
        if http.is_parse_too_large() {
            return Error::TooBig { limit: Size::Headers(Limits::default().header_bytes) };
        }
        if http.is_incomplete_message() {
            return Error::Broken { host, why: "the connection ended too early".to_owned() };
        }
    }
    Error::Broken { host, why: deepest(error) }
}

/// The error that `error` means while a decoded body from `host` is read.
pub(super) fn from_body(error: &io::Error, host: &str) -> Error {
    if let Some(WireTooBig(limit)) = find(error) {
        return Error::TooBig { limit: Size::Wire(*limit) };
    }
    if let Some(bad) = find::<BadCoding>(error) {
        return from_coding(bad, host);
    }
    if let Some(client) = find::<reqwest::Error>(error) {
        return from_client(client, host);
    }
    let why = match error.kind() {
        io::ErrorKind::UnexpectedEof => "the compressed body ends too early".to_owned(),
        _ if is_zstd_window(error) => return Error::TooBig { limit: Size::Window },
        _ => format!("the compressed body does not decode ({})", deepest(error)),
    };
    Error::Broken { host: host.to_owned(), why }
}

/// The error that a content coding of `host` means.
pub(super) fn from_coding(bad: &BadCoding, host: &str) -> Error {
    match bad {
        BadCoding::Unknown(_) | BadCoding::Mismatch => {
            Error::Broken { host: host.to_owned(), why: bad.to_string() }
        }
        BadCoding::TooMany(limit) => Error::TooBig { limit: Size::Encodings(*limit) },
        BadCoding::Window => Error::TooBig { limit: Size::Window },
    }
}

/// The library tells it in words only.
fn is_zstd_window(error: &io::Error) -> bool {
    error.to_string().contains("too much memory")
}

/// The innermost cause in words, on one line; never an address, which may hold secrets.
pub(super) fn deepest(error: &(dyn StdError + 'static)) -> String {
    let mut last = error;
    while let Some(next) = inner(last) {
        last = next;
    }
    match last.downcast_ref::<reqwest::Error>() {
        // It would name the address; its kind says enough.
        Some(client) if client.is_timeout() => "too slow".to_owned(),
        Some(client) if client.is_builder() => "the request cannot be made".to_owned(),
        Some(_) => "the connection broke".to_owned(),
        None => in_words(last),
    }
}

fn in_words(error: &(dyn StdError + 'static)) -> String {
    let words = match error.downcast_ref::<io::Error>() {
        Some(system) if system.raw_os_error().is_some() => system.kind().to_string(),
        _ => error.to_string(),
    };
    quote(&words, 200)
}

/// The first error of type `T` among the causes of `error`.
fn find<'a, T: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = inner(error);
    }
    None
}

/// The cause of `error`; what an I/O error carries counts, although it does not call it its source.
fn inner<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a (dyn StdError + 'static)> {
    if let Some(carried) = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        return Some(carried);
    }
    error.source()
}
