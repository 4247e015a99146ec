//! Google Books: one request for a page of volumes, and what its answer means.

use std::time::Duration;

use secrecy::SecretString;
use serde::Deserialize;
use serde_json::Value as Json;
use url::Url;

use super::config::{GoogleBooks, OrderBy, PrintType};
use super::decide::Ask;
use super::model::Book;
use super::volume;
use crate::config::value::HttpUrl;
use crate::fetch::{self, AllowPrivate, Answer, Fetcher, Limits, Manners, Request, header};
use crate::ledger::quota::Quota;
use crate::text;
use crate::time::Timestamp;

/// Where the volumes are, unless the config says otherwise.
pub const API_URL: &str = "https://www.googleapis.com/books/v1/volumes";
/// How long the provider rests when it complains without saying for how long.
const USUAL_REST: Duration = Duration::from_secs(60 * 60);
/// Columns of a provider's own words that we repeat.
const MESSAGE_COLUMNS: usize = 200;

/// The search of one job, ready to be asked page by page.
#[derive(Clone, Debug)]
pub struct Search {
    url: Url,
    key: Option<SecretString>,
    allow_private: AllowPrivate,
}

/// A page of volumes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// How many volumes it holds.
    pub returned: u64,
    /// How many the provider says there are.
    pub total_items: Option<i64>,
    /// The books among them, each once.
    pub books: Vec<Book>,
    /// Volumes that were dropped because they have no valid ISBN.
    pub without_isbn: u64,
}

/// Why a request brought no page; each is what to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The provider was asked too often: let it rest.
    Quota {
        /// Until when.
        until: Timestamp,
        /// What it said.
        why: String,
    },
    /// The key is refused: somebody has to look.
    Credentials(String),
    /// Anything else: the next run tries again.
    Failed(String),
}

impl Search {
    /// A search for any of `queries`, which are already normalised and sorted.
    pub fn new(
        queries: &[String],
        options: &GoogleBooks,
        key: Option<SecretString>,
        allow_private: AllowPrivate,
    ) -> Self {
        let mut url = volumes_url(options.api_url.as_ref().map(HttpUrl::url));
        let mut parts: Vec<&str> =
            queries.iter().map(String::as_str).filter(|query| !query.is_empty()).collect();
        parts.dedup();
        {
            let mut pairs = url.query_pairs_mut();
            pairs.append_pair("q", &parts.join(" OR "));
            for (name, value) in [
                ("printType", options.print_type.map(PrintType::word)),
                ("langRestrict", options.lang_restrict.as_deref()),
                ("orderBy", options.order_by.map(OrderBy::word)),
            ] {
                if let Some(value) = value {
                    pairs.append_pair(name, value);
                }
            }
        }
        Self { url, key, allow_private }
    }

    /// What is searched for.
    pub fn words(&self) -> String {
        self.url
            .query_pairs()
            .find(|(name, _)| name == "q")
            .map(|(_, words)| words.into_owned())
            .unwrap_or_default()
    }

    /// The address of a page, without the key.
    fn page_url(&self, ask: Ask) -> Url {
        let mut url = self.url.clone();
        url.query_pairs_mut()
            .append_pair("startIndex", &ask.start_index.to_string())
            .append_pair("maxResults", &ask.max_results.to_string());
        url
    }

    /// Asks for one page. The request must have been counted before.
    pub async fn fetch(
        &self,
        fetcher: &Fetcher,
        quota: &Quota,
        ask: Ask,
        now: Timestamp,
    ) -> Result<Page, Trouble> {
        let mut request = Request::get(self.page_url(ask))
            .accept("application/json")
            .allow_private(&self.allow_private)
            .manners(Manners::client())
            // It was counted as one request, so it is one: no redirects, no second try.
            .limits(Limits { redirects: 0, ..Limits::default() })
            .once();
        if let Some(key) = &self.key {
            request = request.secret_query("key", key);
        }
        match fetcher.fetch_api(&request).await {
            Ok(answer) => read(&answer, quota, now),
            Err(error) => Err(from_fetch(&error, now)),
        }
    }
}

/// `api_url` may be the origin, the base of the API, or the volumes themselves.
pub(super) fn volumes_url(configured: Option<&Url>) -> Url {
    let mut url = configured.cloned().unwrap_or_else(|| Url::parse(API_URL).expect("a literal address"));
    let path = url.path().trim_end_matches('/').to_owned();
    if path.is_empty() {
        url.set_path("/books/v1/volumes");
    } else if !path.ends_with("/volumes") {
        url.set_path(&format!("{path}/volumes"));
    }
    url
}

fn from_fetch(error: &fetch::Error, now: Timestamp) -> Trouble {
    match (error.status(), error.retry_after()) {
        (Some(429), Some(after)) => Trouble::Quota { until: now.plus(after), why: error.to_string() },
        _ => Trouble::Failed(error.to_string()),
    }
}

/// What an answer of the API means.
fn read(answer: &Answer, quota: &Quota, now: Timestamp) -> Result<Page, Trouble> {
    if answer.head.is_success() {
        return read_page(&answer.body).map_err(Trouble::Failed);
    }
    let status = answer.head.status;
    let complaint = Complaint::read(&answer.body);
    let why = match complaint.message.is_empty() {
        true => format!("status {status}"),
        false => format!("status {status}: {}", complaint.message),
    };
    let wait = header::retry_after(&answer.head.headers, now);
    match status {
        429 => Err(Trouble::Quota { until: rest_until(wait, &complaint, quota, now), why }),
        403 if complaint.is_quota() => {
            Err(Trouble::Quota { until: rest_until(wait, &complaint, quota, now), why })
        }
        401 => Err(Trouble::Credentials(why)),
        400 | 403 if complaint.is_credential() => Err(Trouble::Credentials(why)),
        _ => Err(Trouble::Failed(why)),
    }
}

fn rest_until(wait: Option<Duration>, complaint: &Complaint, quota: &Quota, now: Timestamp) -> Timestamp {
    match wait {
        Some(wait) => now.plus(wait),
        None if complaint.is_daily() => quota.resets_at(now),
        None => now.plus(USUAL_REST),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Volumes {
    /// Anything that is not a whole number counts as not said.
    #[serde(default)]
    total_items: Json,
    items: Option<Vec<Json>>,
}

fn read_page(body: &[u8]) -> Result<Page, String> {
    let volumes: Volumes = serde_json::from_slice(body)
        .map_err(|error| format!("the answer is not a list of volumes: {error}"))?;
    let items = volumes.items.unwrap_or_default();
    let mut page = Page {
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

/// What an error answer complains about.
#[derive(Debug, Default)]
struct Complaint {
    message: String,
    /// Every reason that it gives, in lower case.
    reasons: Vec<String>,
}

impl Complaint {
    fn read(body: &[u8]) -> Self {
        let Ok(body) = serde_json::from_slice::<Json>(body) else { return Self::default() };
        let error = &body["error"];
        let lists = [&error["errors"], &error["details"]];
        let reasons = lists
            .into_iter()
            .filter_map(Json::as_array)
            .flatten()
            .map(|entry| &entry["reason"])
            .chain([&error["status"]])
            .filter_map(Json::as_str)
            .map(str::to_ascii_lowercase)
            .collect();
        let message = text::one_line(error["message"].as_str().unwrap_or_default());
        Self { message: text::shorten(&message, MESSAGE_COLUMNS), reasons }
    }

    fn any(&self, test: impl Fn(&str) -> bool) -> bool {
        self.reasons.iter().any(|reason| test(reason))
    }

    fn is_quota(&self) -> bool {
        self.any(|reason| {
            reason.contains("limitexceeded")
                || reason.contains("quotaexceeded")
                || reason == "resource_exhausted"
        })
    }

    fn is_daily(&self) -> bool {
        self.any(|reason| reason.starts_with("dailylimit") || reason.contains("quotaexceeded"))
    }

    fn is_credential(&self) -> bool {
        const REFUSALS: [&str; 9] = [
            "keyinvalid",
            "keyexpired",
            "api_key_invalid",
            "api_key_service_blocked",
            "accessnotconfigured",
            "service_disabled",
            "iprefererblocked",
            "forbidden",
            "unauthenticated",
        ];
        self.any(|reason| REFUSALS.contains(&reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::{HeaderMap, RETRY_AFTER};
    use serde_json::json;

    fn quota() -> Quota {
        let rule = crate::config::Quota {
            per_day: 100,
            day_starts: "00:00".parse().unwrap(),
            zone: "Asia/Tokyo".parse().unwrap(),
        };
        Quota { provider: "google_books".into(), rule }
    }

    fn answer(status: u16, retry_after: Option<&str>, body: &str) -> Answer {
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
        Answer { head, body: body.to_owned().into() }
    }

    #[test]
    fn a_complaint_is_told_apart_by_what_to_do_about_it() {
        let now: Timestamp = "2026-01-15T00:00:00Z".parse().unwrap();
        let complaint = |reason: &str| {
            json!({ "error": { "code": 403, "message": "no\nmore", "errors": [{ "reason": reason }] } })
                .to_string()
        };
        let until = |at: &str| Some(at.parse::<Timestamp>().unwrap());
        for (status, wait, body, rests_until, credentials) in [
            (429, Some("120"), complaint("rateLimitExceeded"), until("2026-01-15T00:02:00Z"), false),
            (429, None, complaint("rateLimitExceeded"), until("2026-01-15T01:00:00Z"), false),
            (429, None, complaint("dailyLimitExceeded"), until("2026-01-15T15:00:00Z"), false),
            (429, None, "<html>busy</html>".to_owned(), until("2026-01-15T01:00:00Z"), false),
            (403, None, complaint("quotaExceeded"), until("2026-01-15T15:00:00Z"), false),
            (403, None, complaint("userRateLimitExceeded"), until("2026-01-15T01:00:00Z"), false),
            (403, None, complaint("unknownLocation"), None, false),
            (403, None, complaint("accessNotConfigured"), None, true),
            (400, None, complaint("API_KEY_INVALID"), None, true),
            (400, None, complaint("invalidParameter"), None, false),
            (401, None, String::new(), None, true),
            (503, Some("60"), complaint("backendError"), None, false),
            (404, None, String::new(), None, false),
        ] {
            let trouble = read(&answer(status, wait, &body), &quota(), now).unwrap_err();
            match (&trouble, rests_until, credentials) {
                (Trouble::Quota { until, .. }, Some(expected), _) => {
                    assert_eq!(*until, expected, "{status} {body}");
                }
                (Trouble::Credentials(_), None, true) | (Trouble::Failed(_), None, false) => {}
                other => panic!("{status} {body}: {other:?}"),
            }
            assert!(!format!("{trouble:?}").contains("no\\n"), "one line: {trouble:?}");
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

    #[test]
    fn several_queries_are_one_search() {
        let queries = crate::hash::normalized_queries(&["rust  book", "intitle:経営", "rust book"]);
        let options = GoogleBooks { lang_restrict: Some("ja".into()), ..GoogleBooks::default() };
        let search = Search::new(&queries, &options, None, AllowPrivate::none());
        let url = search.page_url(Ask { start_index: 40, max_results: 7 });
        let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        let expected = [
            ("q", "intitle:経営 OR rust book"),
            ("langRestrict", "ja"),
            ("startIndex", "40"),
            ("maxResults", "7"),
        ];
        assert_eq!(pairs, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn the_address_may_be_given_whole_or_in_part() {
        for (configured, expected) in [
            (None, API_URL),
            (Some("http://127.0.0.1:9"), "http://127.0.0.1:9/books/v1/volumes"),
            (Some("http://127.0.0.1:9/books/v1/"), "http://127.0.0.1:9/books/v1/volumes"),
            (Some("http://127.0.0.1:9/x/volumes"), "http://127.0.0.1:9/x/volumes"),
        ] {
            let configured = configured.map(|text| Url::parse(text).unwrap());
            assert_eq!(volumes_url(configured.as_ref()).as_str(), expected);
        }
    }
}
