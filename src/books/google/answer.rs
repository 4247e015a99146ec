//! Interprets an answer of Google Books: a page of volumes, or what to do next.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value as Json;

use super::super::complaint::Complaint;
use super::super::model::Book;
use super::super::volume;
use crate::fetch::{self, ApiAnswer, header};
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;

/// A page of volumes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumePage {
    pub returned: u64,
    /// The total number that the provider reports.
    pub total_items: Option<i64>,
    /// The books among them, each once.
    pub books: Vec<Book>,
    /// Volumes that were dropped because they have no valid ISBN.
    pub without_isbn: u64,
}

/// Why a request failed; each variant is what to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchError {
    /// A limit of the provider was reached: pause it.
    Quota { until: Timestamp, why: Phrase },
    /// The key is refused: the user has to act.
    Credentials(Phrase),
    /// A temporary failure: retry the same request.
    Passing {
        why: Phrase,
        /// The wait that it asks for.
        retry_after: Option<Duration>,
    },
    /// The address or the search itself is refused, until the config changes.
    Config(Phrase),
    /// Anything else: the next run retries.
    Failed(Phrase),
}

pub(super) fn from_fetch(error: &fetch::Error, now: Timestamp) -> SearchError {
    match (error.status(), error.retry_after()) {
        (Some(429), Some(after)) => SearchError::Quota { until: now.plus(after), why: error.phrase() },
        (Some(500..=599), retry_after) => SearchError::Passing { why: error.phrase(), retry_after },
        _ if matches!(error, fetch::Error::TooSlow { .. }) => {
            SearchError::Passing { why: error.phrase(), retry_after: None }
        }
        _ if error.needs_config() => SearchError::Config(error.describe()),
        _ => SearchError::Failed(error.phrase()),
    }
}

/// The error for a request without a key: Google's quota for these is 0.
pub fn needs_key() -> Phrase {
    phrase!(
        "Google Books needs an API key: without one it allows no requests",
        "Google ブックスには API キーが必要です。キーなしのリクエストは許可されません"
    )
}

/// The hint for it.
pub fn key_hint() -> Phrase {
    phrase!(
        "enable the Books API at https://console.cloud.google.com/apis/library/books.googleapis.com, make \
         a key at https://console.cloud.google.com/apis/credentials, and set `api_key` in `google_books` or \
         GOOGLE_BOOKS_API_KEY",
        "https://console.cloud.google.com/apis/library/books.googleapis.com で Books API を有効にし、\
         https://console.cloud.google.com/apis/credentials でキーを作り、`google_books` の `api_key` か \
         GOOGLE_BOOKS_API_KEY に設定してください"
    )
}

/// The error for a missing or refused key.
pub fn refused_key(why: Phrase) -> Phrase {
    if why == needs_key() {
        with_hint(why, key_hint())
    } else {
        phrase!("Google Books refuses the key: {why}", "Google ブックスにキーを拒否されました：{why}")
    }
}

fn with_hint(why: Phrase, hint: Phrase) -> Phrase {
    phrase!("{why} (hint: {hint})", "{why}（ヒント：{hint}）")
}

pub(super) fn read(answer: &ApiAnswer, has_key: bool, now: Timestamp) -> Result<VolumePage, SearchError> {
    if answer.head.is_success() {
        return read_page(&answer.body).map_err(SearchError::Failed);
    }
    let status = answer.head.status;
    let complaint = Complaint::read(&answer.body);
    let why = match complaint.message.as_str() {
        "" => phrase!("HTTP {status}", "HTTP {status}"),
        said => phrase!("HTTP {status}: {said}", "HTTP {status}：{said}"),
    };
    let wait = header::retry_after(&answer.head.headers, now).or(complaint.retry_delay);
    match status {
        // A quota of 0 does not grow by waiting: the user has to act.
        429 | 403 if complaint.allows_nothing && !has_key => Err(SearchError::Credentials(needs_key())),
        429 | 403 if complaint.allows_nothing => {
            let hint = phrase!(
                "the quota of your project is 0; enable the Books API for it or raise the quota in the Google \
                 Cloud console",
                "プロジェクトの割り当てが 0 です。Google Cloud コンソールで Books API を有効にするか、割り当てを増やしてください"
            );
            Err(SearchError::Credentials(with_hint(why, hint)))
        }
        status if status == 429 || complaint.is_quota() && [400, 403].contains(&status) => {
            let why = if has_key { why } else { with_hint(why, key_hint()) };
            Err(SearchError::Quota { until: complaint.paused_until(wait, now), why })
        }
        403 if complaint.is_place_unknown() => {
            let hint = phrase!(
                "set `country` in `google_books`, e.g. \"JP\"",
                "`google_books` に `country`（例：\"JP\"）を設定してください"
            );
            Err(SearchError::Config(with_hint(why, hint)))
        }
        401 => Err(SearchError::Credentials(why)),
        400 | 403 if complaint.is_credential() => Err(SearchError::Credentials(why)),
        400 => {
            let hint = phrase!(
                "check `queries` and `google_books`",
                "`queries` と `google_books` を確認してください"
            );
            Err(SearchError::Config(with_hint(why, hint)))
        }
        500..=599 => Err(SearchError::Passing { why, retry_after: wait }),
        _ => Err(SearchError::Failed(why)),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Volumes {
    /// Anything but a whole number counts as missing.
    #[serde(default)]
    total_items: Json,
    items: Option<Vec<Json>>,
}

fn read_page(body: &[u8]) -> Result<VolumePage, Phrase> {
    let volumes: Volumes = serde_json::from_slice(body).map_err(|error| {
        phrase!(
            "the answer is not a list of volumes: {error}",
            "応答が書籍の一覧ではありません：{error}",
            error = error.to_string()
        )
    })?;
    let items = volumes.items.unwrap_or_default();
    let mut page = VolumePage {
        returned: items.len() as u64,
        total_items: volumes.total_items.as_i64().filter(|total| *total >= 0),
        books: Vec::new(),
        without_isbn: 0,
    };
    for item in &items {
        match volume::read(item) {
            None => page.without_isbn += 1,
            Some(book) if page.books.iter().any(|known| known.isbn13 == book.isbn13) => {}
            Some(book) => page.books.push(book),
        }
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::super::API_URL;
    use super::*;
    use reqwest::header::{HeaderMap, RETRY_AFTER};
    use serde_json::json;
    use url::Url;

    fn answer(status: u16, retry_after: Option<&str>, body: &str) -> ApiAnswer {
        let mut headers = HeaderMap::new();
        if let Some(value) = retry_after {
            headers.insert(RETRY_AFTER, value.parse().unwrap());
        }
        let head = fetch::Head {
            status,
            final_url: Url::parse(API_URL).unwrap(),
            permanent_url: None,
            headers,
            validators: fetch::Validators::default(),
        };
        ApiAnswer { head, body: body.to_owned().into() }
    }

    #[test]
    fn a_complaint_is_told_apart_by_what_to_do_about_it() {
        let now: Timestamp = "2026-01-15T00:00:00Z".parse().unwrap();
        let complaint = |reason: &str| {
            json!({ "error": { "code": 403, "message": "no\nmore", "errors": [{ "reason": reason }] } })
                .to_string()
        };
        let until = |at: &str| Some(at.parse::<Timestamp>().unwrap());
        for (status, wait, body, paused_until, credentials) in [
            (429, Some("120"), complaint("rateLimitExceeded"), until("2026-01-15T00:02:00Z"), false),
            (429, None, complaint("rateLimitExceeded"), until("2026-01-15T01:00:00Z"), false),
            (429, None, complaint("dailyLimitExceeded"), until("2026-01-15T08:00:00Z"), false),
            (429, None, "<html>busy</html>".to_owned(), until("2026-01-15T01:00:00Z"), false),
            (403, None, complaint("quotaExceeded"), until("2026-01-15T08:00:00Z"), false),
            (403, None, complaint("userRateLimitExceeded"), until("2026-01-15T01:00:00Z"), false),
            (400, None, complaint("dailyLimitExceeded"), until("2026-01-15T08:00:00Z"), false),
            (403, None, complaint("unknownLocation"), None, false),
            (403, None, complaint("insufficientPermissions"), None, false),
            (403, None, complaint("accessNotConfigured"), None, true),
            (403, None, complaint("API_KEY_IP_ADDRESS_BLOCKED"), None, true),
            (403, None, complaint("API_KEY_HTTP_REFERRER_BLOCKED"), None, true),
            (400, None, complaint("API_KEY_INVALID"), None, true),
            (400, None, complaint("invalidParameter"), None, false),
            (401, None, String::new(), None, true),
            (503, Some("60"), complaint("backendFailed"), None, false),
            (500, None, String::new(), None, false),
            (404, None, String::new(), None, false),
        ] {
            let trouble = read(&answer(status, wait, &body), true, now).unwrap_err();
            match (&trouble, paused_until, credentials) {
                (SearchError::Quota { until, .. }, Some(expected), _) => {
                    assert_eq!(*until, expected, "{status} {body}");
                }
                (SearchError::Passing { retry_after, .. }, None, false) => {
                    assert_eq!((status >= 500, retry_after.is_some()), (true, wait.is_some()), "{status}");
                }
                (SearchError::Credentials(_), None, true) => {}
                (SearchError::Config(_), None, false) => {
                    assert!(status == 400 || body.contains("unknownLocation"), "{status} {body}");
                }
                (SearchError::Failed(_), None, false) => assert!([403, 404].contains(&status), "{status}"),
                other => panic!("{status} {body}: {other:?}"),
            }
            assert!(!format!("{trouble:?}").contains("no\\n"), "one line: {trouble:?}");
        }
    }

    #[test]
    fn a_limit_is_told_by_the_metadata_of_the_error() {
        let now: Timestamp = "2026-07-15T00:00:00Z".parse().unwrap();
        let quota = |unit: &str, value: &str, delay: Option<&str>| {
            let info = json!({
                "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "RATE_LIMIT_EXCEEDED",
                "metadata": { "quota_unit": unit, "quota_limit_value": value },
            });
            let retry = json!({ "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay });
            let errors = json!([{ "domain": "global", "reason": "rateLimitExceeded" }]);
            json!({ "error": { "code": 429, "message": "m", "errors": errors, "details": [info, retry] } })
                .to_string()
        };
        let until = |text: &str| text.parse::<Timestamp>().unwrap();
        for (wait, body, expected) in [
            // Midnight in California, in summer; a short Retry-After does not bring the day back.
            (None, quota("1/d/{project}", "1000", None), until("2026-07-15T07:00:00Z")),
            (Some("5"), quota("1/d/{project}", "1000", None), until("2026-07-15T07:00:00Z")),
            (None, quota("1/min/{project}/{user}", "100", None), until("2026-07-15T00:01:00Z")),
            (Some("20"), quota("1/min/{project}", "100", None), until("2026-07-15T00:00:20Z")),
            (None, quota("1/min/{project}", "100", Some("7.5s")), until("2026-07-15T00:00:07.500Z")),
        ] {
            match read(&answer(429, wait, &body), true, now) {
                Err(SearchError::Quota { until, .. }) => assert_eq!(until, expected, "{body}"),
                other => panic!("{body}: {other:?}"),
            }
        }
        let nothing = answer(429, None, &quota("1/d/{project}", "0", None));
        assert_eq!(read(&nothing, false, now), Err(SearchError::Credentials(needs_key())));
        match read(&nothing, true, now) {
            Err(SearchError::Credentials(why)) => {
                assert!(why.to_string().contains("quota of your project is 0"), "{why}");
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_no_list_of_volumes_is_refused() {
        for body in
            ["", "<html></html>", "[]", "null", "{\"items\": 3}", "{\"items\": [", "{\"totalItems\": 3} x"]
        {
            assert!(read_page(body.as_bytes()).is_err(), "{body}");
        }
        for (body, returned, total) in [
            ("{}", 0, None),
            ("{\"totalItems\": \"many\"}", 0, None),
            ("{\"totalItems\": -1, \"items\": []}", 0, None),
            ("{\"totalItems\": 1.5, \"items\": [null, 7, {\"volumeInfo\": []}]}", 3, None),
            ("{\"totalItems\": 0, \"items\": null}", 0, Some(0)),
        ] {
            let page = read_page(body.as_bytes()).unwrap();
            assert_eq!(
                (page.returned, page.total_items, page.without_isbn),
                (returned, total, returned),
                "{body}"
            );
        }
    }
}
