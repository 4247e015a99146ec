//! Why a fetch failed; each variant is what the caller does next.

use std::time::Duration;

use stdx::phrase;
use stdx::phrase::Phrase;

use super::limits::{Pace, Size, span_phrase};

/// A failed fetch. Its texts are for people and contain no secrets.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// Try again later: the host asked for it, or it keeps failing.
    Later {
        host: String,
        after: Duration,
        why: Why,
        /// Whether this request was sent; if not, the host is paused because of an earlier one.
        is_sent: bool,
    },
    /// The server does not allow access.
    Refused { status: u16 },
    /// Not found (404); it may come back.
    NotFound,
    /// Removed for good (410): stop requesting it.
    Gone,
    /// Not allowed by the address guard.
    Blocked {
        /// The host or address.
        target: Phrase,
        /// The rule that forbids it.
        why: Phrase,
        /// The `allow_private` entry that would allow it, if any.
        allow: Option<String>,
    },
    /// Larger than the limit.
    TooBig { limit: Size },
    /// Slower than the limit.
    TooSlow { limit: Pace },
    /// Too many redirects.
    TooManyRedirects { limit: usize },
    /// A redirect leads back to an address of the chain.
    RedirectLoop {
        /// The host of that address.
        host: String,
    },
    /// The certificate or the TLS handshake is invalid.
    BadTls { host: String, why: Phrase },
    /// The address, or that of a redirect, is invalid or not supported.
    BadUrl { why: Phrase },
    /// The name cannot be resolved.
    Dns {
        host: String,
        /// The resolver's message.
        why: Phrase,
    },
    Connect {
        host: String,
        /// The system's message.
        why: Phrase,
    },
    /// The answer is not HTTP, ends too early, or cannot be decoded.
    Broken { host: String, why: Phrase },
    /// The local disk failed.
    Disk(std::io::Error),
    /// The HTTP client could not be created.
    Setup { why: Phrase },
}

/// Why a host is paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    Status(u16),
    /// It answered with this status and a delay (`Retry-After`).
    Asked(u16),
    /// It could not be reached, or did not answer in time.
    Unreachable,
}

impl Why {
    /// What happened at `host`. Our own back-off is not told: it is over in seconds, while these words are read for days.
    fn phrase(self, host: &str, after: Duration) -> Phrase {
        match self {
            Why::Status(status) => phrase!("HTTP {status} from {host}", "{host} の応答は HTTP {status}"),
            Why::Asked(status) => phrase!(
                "HTTP {status} from {host}, which asks to wait {span}",
                "{host} の応答：HTTP {status}（{span}待つよう求められました）",
                span = span_phrase(after)
            ),
            Why::Unreachable => phrase!("{host} could not be reached", "{host} に接続できません"),
        }
    }

    /// The error for 429 or 503 with the delay that the host asked for.
    pub(super) fn of_busy(status: u16, retry_after: Option<Duration>) -> Self {
        match retry_after {
            Some(wait) if !wait.is_zero() => Why::Asked(status),
            _ => Why::Status(status),
        }
    }
}

impl Error {
    /// Whether only a changed config helps: a retry would fail, too.
    pub fn needs_config(&self) -> bool {
        matches!(self, Error::Blocked { .. } | Error::BadUrl { .. })
    }

    /// Whether the same request may succeed later without any change.
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

    /// Whether a server may have received the request; `false` if it certainly has not.
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

    /// Whether the request was not sent at all, because its host is paused: this says nothing about its address.
    pub fn is_held_back(&self) -> bool {
        matches!(self, Error::Later { is_sent: false, .. })
    }

    /// How long to wait before the next attempt, if the host or our back-off says so.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Error::Later { after, .. } => Some(*after),
            _ => None,
        }
    }

    /// The HTTP status that caused the error, if any.
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

    /// In one sentence.
    pub fn phrase(&self) -> Phrase {
        match self {
            Error::Later { host, after, why, .. } => why.phrase(host, *after),
            Error::Refused { status } => {
                phrase!("HTTP {status}: the server refused", "サーバーに拒否されました（HTTP {status}）")
            }
            Error::NotFound => phrase!(
                "HTTP 404: the server does not know this address",
                "アドレスが見つかりません（HTTP 404）"
            ),
            Error::Gone => {
                phrase!("HTTP 410: the page is gone for good", "ページは削除されました（HTTP 410）")
            }
            Error::Blocked { target, why, .. } => {
                phrase!("{target} is refused: {why}", "{target} への接続は許可されていません：{why}")
            }
            Error::TooBig { limit } => {
                phrase!("too big: {limit}", "大きすぎます：{limit}", limit = limit.phrase())
            }
            Error::TooSlow { limit } => {
                phrase!("too slow: {limit}", "時間がかかりすぎです：{limit}", limit = limit.phrase())
            }
            Error::TooManyRedirects { limit: 0 } => phrase!(
                "it answers with a redirect, and none is followed here",
                "リダイレクトが返されましたが、ここではたどりません"
            ),
            Error::TooManyRedirects { limit } => {
                phrase!("more than {limit} redirects", "リダイレクトが {limit} 回を超えました")
            }
            Error::RedirectLoop { host } => {
                phrase!("the redirects go in a circle at {host}", "{host} でリダイレクトが循環しています")
            }
            Error::BadTls { host, why } => phrase!(
                "no trusted connection to {host}: {why}",
                "{host} と信頼できる接続を確立できません（TLS）：{why}"
            ),
            Error::BadUrl { why } => {
                phrase!("not a web address we can fetch: {why}", "取得できない Web アドレスです：{why}")
            }
            Error::Dns { host, why } => {
                phrase!("no address found for {host}: {why}", "{host} の名前解決に失敗しました（DNS）：{why}")
            }
            Error::Connect { host, why } => {
                phrase!("no connection to {host}: {why}", "{host} に接続できません：{why}")
            }
            Error::Broken { host, why } => {
                phrase!("the answer of {host} is broken: {why}", "{host} の応答が壊れています：{why}")
            }
            Error::Disk(error) => phrase!(
                "could not save what was fetched: {error}",
                "取得した内容を保存できません：{error}",
                error = error.to_string()
            ),
            Error::Setup { why } => phrase!(
                "the HTTP client could not be set up: {why}",
                "HTTP クライアントを準備できません：{why}"
            ),
        }
    }

    /// On one line, with the config entry that would allow it, if any.
    pub fn describe(&self) -> Phrase {
        match (self, self.hint()) {
            (Error::Blocked { .. }, Some(hint)) => self.with_hint(hint),
            _ => self.phrase(),
        }
    }

    /// With a hint what to do, if there is one.
    pub fn with_its_hint(&self) -> Phrase {
        self.hint().map_or_else(|| self.phrase(), |hint| self.with_hint(hint))
    }

    fn with_hint(&self, hint: Phrase) -> Phrase {
        phrase!("{error} ({hint})", "{error}（{hint}）", error = self.phrase())
    }

    /// What the user can do about it, for a `hint:` line.
    pub fn hint(&self) -> Option<Phrase> {
        match self {
            Error::Blocked { allow: Some(entry), .. } => Some(phrase!(
                "if you trust it, add `allow_private = [\"{entry}\"]` where its address stands in the config: \
                 [[job]], [channel.NAME] or [llm.NAME]",
                "信頼できる相手なら、設定ファイルでそのアドレスを書いた表（[[job]]、[channel.NAME]、[llm.NAME]）に \
                 `allow_private = [\"{entry}\"]` を追加してください"
            )),
            Error::BadTls { .. } => Some(phrase!(
                "check the address and this machine's clock; name the file of a private authority as `extra_ca` in \
                 [app], or add it to the machine's certificates",
                "アドレスとこのマシンの時計を確認してください。独自の認証局を使っている場合は、その証明書のファイルを [app] の \
                 `extra_ca` に指定するか、マシンの証明書に追加してください"
            )),
            Error::Gone => Some(phrase!(
                "remove the source, or give it its new address",
                "ソースを削除するか、新しいアドレスに変更してください"
            )),
            _ => None,
        }
    }
}

stdx::error_in_english!(Error);

#[cfg(test)]
mod tests {
    use stdx::phrase::Speech;
    use stdx::text::Language;

    use super::*;

    #[test]
    fn every_error_is_told_in_japanese_also_after_it_was_stored() {
        let (host, why) = (|| "a.example".to_owned(), || Phrase::verbatim("…"));
        let second = Duration::from_secs(1);
        let allow = Some("10.0.0.1".to_owned());
        let japanese = Speech { language: Language::Ja, zone: None };
        for error in [
            Error::Later { host: host(), after: second * 90, why: Why::Status(503), is_sent: true },
            Error::Later { host: host(), after: second * 9000, why: Why::Unreachable, is_sent: false },
            Error::Refused { status: 403 },
            Error::NotFound,
            Error::Gone,
            Error::Blocked { target: "a.example".into(), why: why(), allow },
            Error::TooBig { limit: Size::Body(16 << 20) },
            Error::TooBig { limit: Size::Ratio(100) },
            Error::TooSlow { limit: Pace::Headers(second * 30) },
            Error::TooSlow { limit: Pace::Speed(1500) },
            Error::TooManyRedirects { limit: 5 },
            Error::TooManyRedirects { limit: 0 },
            Error::RedirectLoop { host: host() },
            Error::BadTls { host: host(), why: why() },
            Error::BadUrl { why: why() },
            Error::Dns { host: host(), why: why() },
            Error::Connect { host: host(), why: why() },
            Error::Broken { host: host(), why: why() },
            Error::Disk(std::io::ErrorKind::StorageFull.into()),
            Error::Setup { why: why() },
        ] {
            for phrase in [Some(error.phrase()), error.hint(), Some(error.describe())].into_iter().flatten() {
                let shown = japanese.phrase(&Phrase::from_stored(&phrase.to_stored()));
                assert_eq!(shown, japanese.phrase(&phrase));
                assert!(!shown.is_ascii() && phrase != shown, "{shown}");
            }
        }
        let later = Error::Later { host: host(), after: second * 90, why: Why::Status(503), is_sent: true };
        assert_eq!(later.to_string(), "HTTP 503 from a.example");
        assert_eq!(japanese.phrase(&later.phrase()), "a.example の応答は HTTP 503");
    }
}
