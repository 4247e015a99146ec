//! Google Books: one request for a page of volumes.

mod answer;

use secrecy::SecretString;
use url::Url;

pub use self::answer::{SearchError, VolumePage, key_hint, needs_key, refused_key};
use self::answer::{from_fetch, read};
use super::config::{EbookFilter, GoogleBooks, OrderBy, PrintType};
use super::decide::PageRequest;
use crate::fetch::{AllowPrivate, Fetcher, Limits, Manners, Request};
use crate::time::Timestamp;

/// Where the volumes are, unless the config says otherwise.
pub const API_URL: &str = "https://www.googleapis.com/books/v1/volumes";
/// The fields that we need; Google omits the others.
const FIELDS: &str = "totalItems,items(volumeInfo(title,subtitle,authors,publisher,publishedDate,description,\
     industryIdentifiers,imageLinks,infoLink,previewLink,canonicalVolumeLink))";

/// The search of one job.
#[derive(Clone, Debug)]
pub struct Search {
    url: Url,
    key: Option<SecretString>,
    allow_private: AllowPrivate,
}
impl Search {
    /// A search for any of `queries`, which are already normalised and sorted.
    pub fn new(
        queries: &[String],
        options: &GoogleBooks,
        key: Option<SecretString>,
        allow_private: AllowPrivate,
    ) -> Self {
        let mut url = volumes_url(options.api_url.as_deref());
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
                ("filter", options.filter.map(EbookFilter::word)),
                ("country", options.country.as_deref()),
                ("fields", Some(FIELDS)),
            ] {
                if let Some(value) = value {
                    pairs.append_pair(name, value);
                }
            }
        }
        Self { url, key, allow_private }
    }

    /// The same search with the newest volumes first.
    pub fn by_newest(&self) -> Self {
        let mut url = self.url.clone();
        let kept: Vec<(String, String)> =
            url.query_pairs().into_owned().filter(|(name, _)| name != "orderBy").collect();
        url.query_pairs_mut().clear().extend_pairs(kept).append_pair("orderBy", OrderBy::Newest.word());
        Self { url, ..self.clone() }
    }

    /// What is searched for.
    pub fn words(&self) -> String {
        self.url
            .query_pairs()
            .find(|(name, _)| name == "q")
            .map(|(_, words)| words.into_owned())
            .unwrap_or_default()
    }

    /// Whether it would request Google without a key, which Google refuses.
    pub fn lacks_key(&self) -> bool {
        self.key.is_none() && is_google(&self.url)
    }

    /// The address of a page, without the key.
    fn page_url(&self, ask: PageRequest) -> Url {
        let mut url = self.url.clone();
        url.query_pairs_mut()
            .append_pair("startIndex", &ask.start_index.to_string())
            .append_pair("maxResults", &ask.max_results.to_string());
        url
    }

    /// Requests one page. The request must have been counted before.
    pub async fn fetch(
        &self,
        fetcher: &Fetcher,
        ask: PageRequest,
        now: Timestamp,
    ) -> Result<VolumePage, SearchError> {
        let mut request = Request::get(self.page_url(ask))
            .accept("application/json")
            .allow_private(&self.allow_private)
            .manners(Manners::client())
            // It was counted as one request, so no redirects and no retry.
            .limits(Limits { redirects: 0, ..fetcher.limits().clone() })
            .once();
        if let Some(key) = &self.key {
            request = request.secret_query("key", key);
        }
        match fetcher.fetch_api(&request).await {
            Ok(answer) => read(&answer, self.key.is_some(), now),
            Err(error) => Err(from_fetch(&error, now)),
        }
    }
}

/// Whether that is Google itself; another service at `api_url` may need no key.
pub(super) fn is_google(url: &Url) -> bool {
    url.host_str().is_some_and(|host| host == "googleapis.com" || host.ends_with(".googleapis.com"))
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
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_queries_are_one_search() {
        let queries = crate::hash::normalized_queries(&["rust  book", "intitle:経営", "rust book"]);
        let options = GoogleBooks {
            lang_restrict: Some("ja".into()),
            country: Some("JP".into()),
            filter: Some(EbookFilter::PaidEbooks),
            ..GoogleBooks::default()
        };
        let search = Search::new(&queries, &options, None, AllowPrivate::none());
        let url = search.page_url(PageRequest { start_index: 40, max_results: 7 });
        let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        let expected = [
            ("q", "intitle:経営 OR rust book"),
            ("langRestrict", "ja"),
            ("filter", "paid-ebooks"),
            ("country", "JP"),
            ("fields", FIELDS),
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
