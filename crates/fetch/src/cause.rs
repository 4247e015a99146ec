//! Converts errors of the HTTP client into our own, without addresses, which may contain secrets.

use std::error::Error as StdError;
use std::io;

use rustls::CertificateError;
use stdx::phrase;
use stdx::phrase::Phrase;

use super::body::WireTooBig;
use super::call::quote;
use super::coding::BadCoding;
use super::error::Error;
use super::guard::Denied;
use super::limits::{Limits, Size};

/// Converts an error of a request to `host`.
pub(super) fn from_client(error: &reqwest::Error, host: &str) -> Error {
    let host = host.to_owned();
    if let Some(denied) = find::<Denied>(error) {
        return denied.clone().into();
    }
    if let Some(tls) = find::<rustls::Error>(error) {
        return Error::BadTls { host, why: tls_in_words(tls) };
    }
    if error.is_dns() {
        return Error::Dns { host, why: deepest(error) };
    }
    if error.is_connect() {
        let why = if error.is_timeout() {
            phrase!("it did not answer in time", "時間内に応答がありません")
        } else {
            deepest(error)
        };
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
            return Error::Broken {
                host,
                why: phrase!("the connection ended too early", "接続が途中で切れました"),
            };
        }
    }
    Error::Broken { host, why: deepest(error) }
}

/// Converts an error while reading a decoded body from `host`.
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
        io::ErrorKind::UnexpectedEof => {
            phrase!("the compressed body ends too early", "圧縮された本文が途中で終わっています")
        }
        _ if is_zstd_window(error) => return Error::TooBig { limit: Size::Window },
        _ => phrase!(
            "the compressed body does not decode ({why})",
            "圧縮された本文を展開できません（{why}）",
            why = deepest(error)
        ),
    };
    Error::Broken { host: host.to_owned(), why }
}

/// Converts an error in a content coding of `host`.
pub(super) fn from_coding(bad: &BadCoding, host: &str) -> Error {
    match bad {
        BadCoding::Unknown(_) | BadCoding::Mismatch => {
            Error::Broken { host: host.to_owned(), why: bad.phrase() }
        }
        BadCoding::TooMany(limit) => Error::TooBig { limit: Size::Encodings(*limit) },
        BadCoding::Window => Error::TooBig { limit: Size::Window },
    }
}

/// The library reports it only as text.
fn is_zstd_window(error: &io::Error) -> bool {
    error.to_string().contains("too much memory")
}

/// The innermost cause in words, on one line; never an address, which may contain secrets.
pub(super) fn deepest(error: &(dyn StdError + 'static)) -> Phrase {
    let mut last = error;
    while let Some(next) = inner(last) {
        last = next;
    }
    match last.downcast_ref::<reqwest::Error>() {
        // Its text contains the address; the kind is enough.
        Some(client) if client.is_timeout() => phrase!("too slow", "時間がかかりすぎです"),
        Some(client) if client.is_builder() => {
            phrase!("the request cannot be made", "リクエストを作れません")
        }
        Some(_) => phrase!("the connection broke", "接続が切れました"),
        None => in_words(last),
    }
}

/// An error of the system or a library in words. The frequent ones are translated; others keep their own text.
pub fn in_words(error: &(dyn StdError + 'static)) -> Phrase {
    let words = match error.downcast_ref::<io::Error>() {
        Some(system) if system.raw_os_error().is_some() => system.kind().to_string(),
        _ => error.to_string(),
    };
    match words.as_str() {
        "connection refused" => phrase!("connection refused", "接続を拒否されました"),
        "connection reset" => phrase!("connection reset", "接続が切断されました"),
        "timed out" => phrase!("timed out", "タイムアウトしました"),
        "host unreachable" => phrase!("host unreachable", "ホストに到達できません"),
        "network unreachable" => phrase!("network unreachable", "ネットワークに到達できません"),
        "unexpected end of file" => phrase!("unexpected end of file", "途中で終わっています"),
        words if words.contains("Name or service not known") => {
            phrase!("{words}", "名前が見つかりません（{words}）")
        }
        words if words.contains("Temporary failure in name resolution") => {
            phrase!("{words}", "名前が見つかりません（{words}）")
        }
        words => Phrase::verbatim(quote(words, 200)),
    }
}

/// What is wrong with a handshake; the library's own word stays, because people search for it.
fn tls_in_words(error: &rustls::Error) -> Phrase {
    let rustls::Error::InvalidCertificate(certificate) = error else { return in_words(error) };
    let words = certificate.to_string();
    match certificate {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            phrase!("its certificate has expired", "証明書の有効期限が切れています")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            phrase!("its certificate is not valid yet", "証明書の有効期間がまだ始まっていません")
        }
        CertificateError::UnknownIssuer => phrase!(
            "its certificate comes from an authority that is not trusted here ({words})",
            "証明書の発行元はこのマシンで信頼されていません（{words}）"
        ),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => phrase!(
            "its certificate is for another name ({words})",
            "証明書の名前が一致しません（{words}）",
            words = quote(&words, 200)
        ),
        _ if words.contains("CaUsedAsEndEntity") => {
            phrase!("its certificate is self-signed", "自己署名証明書です")
        }
        _ => in_words(error),
    }
}

/// The first error of type `T` in the chain of causes of `error`.
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

/// The cause of `error`, including the inner error of an I/O error, which is not its `source`.
fn inner<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a (dyn StdError + 'static)> {
    if let Some(carried) = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        return Some(carried);
    }
    error.source()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::OtherError;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("CaUsedAsEndEntity")]
    struct CaUsedAsEndEntity;

    #[test]
    fn a_certificate_is_refused_in_words_of_ours() {
        let own = CertificateError::Other(OtherError(Arc::new(CaUsedAsEndEntity)));
        for (why, words) in [
            (own, "its certificate is self-signed"),
            (CertificateError::Expired, "its certificate has expired"),
            (CertificateError::NotValidYet, "its certificate is not valid yet"),
            (CertificateError::BadSignature, "invalid peer certificate: BadSignature"),
        ] {
            assert_eq!(tls_in_words(&rustls::Error::InvalidCertificate(why)).to_string(), words);
        }
    }
}
