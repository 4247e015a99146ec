//! The part of Mastodon's API that we use: post, list our own posts, read the limits.

use std::time::Duration;

use reqwest::Method;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use url::Url;

use super::Status;
use super::fit::PostLimits;
use super::link;
use crate::channel::Progress;
use crate::channel::error::{Accepted, Finding, SendError};
use crate::channel::http;
use crate::channel::kind::Ctx;
use crate::config::Secret;
use crate::fetch::ApiReply;
use crate::phrase;
use crate::time::Timestamp;

/// How far our clock may have been ahead of the server's when we posted: a day and a bit, for a clock that was off by a
/// calendar day. A post that is missed is sent twice, while one page more costs nothing.
const SKEW: Duration = Duration::from_secs(25 * 3600);
/// Pages of posts to search at most.
const PAGES: usize = 10;
const PER_PAGE: usize = 40;
const WHO_AM_I: &str = "api/v1/accounts/verify_credentials";
/// How long to pause if a rate limit does not say.
const DEFAULT_PAUSE: Duration = Duration::from_secs(300);

pub(super) struct Api<'a> {
    pub(super) instance: &'a Url,
    pub(super) token: &'a Secret,
    pub(super) ctx: Ctx<'a>,
}

/// The owner of the token.
#[derive(Debug, Deserialize)]
pub(super) struct Account {
    id: String,
    pub(super) acct: String,
}

#[derive(Debug, Deserialize)]
struct Posted {
    id: String,
    #[serde(default)]
    created_at: String,
    #[serde(default)]
    content: String,
    card: Option<Card>,
}

#[derive(Debug, Deserialize)]
struct Card {
    #[serde(default)]
    url: String,
}

impl Account {
    /// Accepts only an id that is safe in a path: a number, or letters and hyphens on other servers.
    fn checked(self) -> Result<Self, SendError> {
        let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if self.id.bytes().all(is_safe) && !self.id.is_empty() {
            Ok(self)
        } else {
            Err(SendError::later(phrase!(
                "the instance names an account that makes no sense",
                "インスタンスが不正なアカウントを返しました"
            )))
        }
    }
}

impl Api<'_> {
    /// Posts a status under `key`.
    pub(super) async fn post(
        &self,
        status: &Status,
        key: &str,
        progress: &Progress,
    ) -> Result<Accepted, SendError> {
        let mut request = self.request(Method::POST, "api/v1/statuses", &[])?;
        let key = HeaderValue::from_str(key).map_err(|_| http::damaged_key())?;
        request.headers_mut().insert(HeaderName::from_static("idempotency-key"), key);
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let mut body = json!({
            "status": status.status,
            "visibility": status.visibility,
            "language": status.language,
        });
        if let Some(warning) = &status.spoiler_text {
            body["spoiler_text"] = json!(warning);
        }
        *request.body_mut() = Some(body.to_string().into());
        let answer = http::call(self.ctx, request, Some(progress)).await?;
        self.judge(&answer)?;
        // A proxy may answer with a page of its own and status 200.
        match serde_json::from_slice::<Posted>(&answer.body) {
            Ok(posted) => Ok(Accepted { remote_id: Some(posted.id), pause_until: self.spent_until(&answer) }),
            Err(_) => Err(SendError::unknown(phrase!(
                "the instance answered success, but not with a post",
                "インスタンスは成功と応答しましたが、投稿が含まれていません"
            ))),
        }
    }

    /// The posts of the account since `since` that may be `status`, newest first.
    pub(super) async fn find_own(&self, status: &Status, since: Timestamp) -> Result<Vec<String>, Finding> {
        let since = since.minus(SKEW);
        let account: Account = self.fetch_json(WHO_AM_I, &[]).await?;
        let account = account.checked().map_err(Finding::Later)?;
        let path = format!("api/v1/accounts/{}/statuses", account.id);
        let mut found = Vec::new();
        let mut max_id: Option<String> = None;
        for _ in 0..PAGES {
            let limit = PER_PAGE.to_string();
            let mut query = vec![("limit", limit.as_str()), ("exclude_reblogs", "true")];
            if let Some(max_id) = &max_id {
                query.push(("max_id", max_id));
            }
            let page: Vec<Posted> = self.fetch_json(&path, &query).await?;
            // A short page need not be the last: servers filter boosts and deleted posts after paging. A server without
            // `max_id` repeats the page.
            let is_last = page.last().is_none_or(|last| max_id.as_ref() == Some(&last.id));
            let mut is_past = false;
            for posted in &page {
                is_past = posted.created_at.parse::<Timestamp>().is_ok_and(|at| at < since);
                if !is_past && is_same(status, posted) {
                    found.push(posted.id.clone());
                }
            }
            if is_last || is_past || !found.is_empty() {
                return match (&status.link, found.is_empty()) {
                    // Without a link only the text can be compared, and servers may change it.
                    (None, true) => Err(Finding::CannotTell {
                        why: phrase!(
                            "it has no link by which it could be found",
                            "探す手がかりになるリンクがありません"
                        ),
                    }),
                    _ => Ok(found),
                };
            }
            max_id = page.last().map(|posted| posted.id.clone());
        }
        Err(Finding::CannotTell {
            why: phrase!(
                "the account has posted too much since to look through",
                "その後の投稿が多すぎて調べきれません"
            ),
        })
    }

    /// The owner of the token.
    pub(super) async fn account(&self) -> Result<Account, SendError> {
        self.get::<Account>(WHO_AM_I, &[]).await?.checked()
    }

    /// The limits of the instance, from the newer endpoint or else the older one.
    pub(super) async fn limits(&self) -> Result<PostLimits, SendError> {
        let newer = self.get::<serde_json::Value>("api/v2/instance", &[]).await;
        let instance = match newer {
            Ok(instance) => instance,
            Err(_) => self.get("api/v1/instance", &[]).await?,
        };
        let usual = PostLimits::default();
        let number = |value: &serde_json::Value| {
            value
                .as_u64()
                .and_then(|number| usize::try_from(number).ok())
                .filter(|number| (1..=1_000_000).contains(number))
        };
        let statuses = &instance["configuration"]["statuses"];
        Ok(PostLimits {
            max_chars: number(&statuses["max_characters"])
                .or_else(|| number(&instance["max_toot_chars"]))
                .unwrap_or(usual.max_chars),
            url_chars: number(&statuses["characters_reserved_per_url"]).unwrap_or(usual.url_chars),
        })
    }

    async fn get<T: DeserializeOwned>(&self, path: &str, query: &[(&str, &str)]) -> Result<T, SendError> {
        let answer = self.ask(path, query).await?;
        self.read(&answer)
    }

    /// The same for a resolver: if the token lacks permission, a person has to decide.
    async fn fetch_json<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<T, Finding> {
        let answer = self.ask(path, query).await.map_err(Finding::Later)?;
        self.read(&answer).map_err(|error| match (answer.status, error) {
            // The token may not read, and waiting does not change that.
            (403, SendError::Locked { why }) | (_, SendError::Refused { why }) => Finding::CannotTell { why },
            (_, error) => Finding::Later(error),
        })
    }

    async fn ask(&self, path: &str, query: &[(&str, &str)]) -> Result<ApiReply, SendError> {
        let request = self.request(Method::GET, path, query)?;
        http::call(self.ctx, request, None).await.map_err(nothing_sent)
    }

    fn read<T: DeserializeOwned>(&self, answer: &ApiReply) -> Result<T, SendError> {
        self.judge(answer).map_err(nothing_sent)?;
        serde_json::from_slice(&answer.body).map_err(|_| {
            SendError::later(phrase!(
                "the instance does not answer as Mastodon does",
                "インスタンスの応答が Mastodon のものではありません"
            ))
        })
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<reqwest::Request, SendError> {
        let mut url = self.instance.clone();
        url.set_path(path);
        url.set_query(None);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let mut request = reqwest::Request::new(method, url);
        request.headers_mut().insert(AUTHORIZATION, http::secret_header(self.token, "Bearer ")?);
        Ok(request)
    }

    /// A server error may come after the post was made, so the outcome is unknown.
    fn judge(&self, answer: &ApiReply) -> Result<(), SendError> {
        let name = phrase!("the instance", "インスタンス");
        let why = http::answered(answer, &name);
        match answer.status {
            429 => {
                let now = self.ctx.env.clock.now();
                let asked = answer.retry_after.or_else(|| reset(&answer.headers).map(|at| at.since(now)));
                Err(SendError::Busy { why, after: asked.unwrap_or(DEFAULT_PAUSE) })
            }
            500..=599 => Err(SendError::Unknown { why }),
            404 | 410 => Err(SendError::later(phrase!(
                "{why}; is `instance` a Mastodon server?",
                "{why}。`instance` は Mastodon サーバーですか？"
            ))),
            _ => http::judge(answer, &name),
        }
    }

    /// When the next post is allowed, if this one was the last of its rate limit window.
    fn spent_until(&self, answer: &ApiReply) -> Option<Timestamp> {
        let left = answer.headers.get("x-ratelimit-remaining")?.to_str().ok()?;
        (left.trim() == "0").then(|| reset(&answer.headers)).flatten()
    }
}

/// When the window of a rate limit ends: a timestamp, or seconds since 1970 on other servers.
fn reset(headers: &HeaderMap) -> Option<Timestamp> {
    let text = headers.get("x-ratelimit-reset")?.to_str().ok()?.trim();
    let of_seconds = || Some(Timestamp::from_millis(text.parse::<i64>().ok()?.checked_mul(1000)?));
    text.parse().ok().or_else(of_seconds)
}

/// A failed lookup is never "may have been sent".
fn nothing_sent(error: SendError) -> SendError {
    match error {
        SendError::Unknown { why } => SendError::later(why),
        other => other,
    }
}

/// Whether a post of the account is the one we sent.
fn is_same(ours: &Status, posted: &Posted) -> bool {
    let is_text = || letters(&plain_text(&posted.content)) == letters(&ours.status);
    match &ours.link {
        Some(link) => {
            let is_link = |text: &str| link::is_same(text, link);
            hrefs(&posted.content).iter().any(|href| is_link(href))
                || posted.card.as_ref().is_some_and(|card| is_link(&card.url))
                // No server makes a link of an address without a domain.
                || (ours.status.contains(link) && is_text())
        }
        None => is_text(),
    }
}

fn letters(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

fn hrefs(html: &str) -> Vec<String> {
    html.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()).map(unescape).collect()
}

fn plain_text(html: &str) -> String {
    let mut text = String::new();
    let mut rest = html;
    while let Some(open) = rest.find('<') {
        text.push_str(&rest[..open]);
        rest = rest[open..].find('>').map_or("", |close| &rest[open + close + 1..]);
    }
    text.push_str(rest);
    unescape(&text)
}

fn unescape(text: &str) -> String {
    [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&apos;", "'"), ("&amp;", "&")]
        .iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(text: &str, link: Option<&str>) -> Status {
        Status { status: text.to_owned(), link: link.map(str::to_owned), ..Status::nothing() }
    }

    fn posted(content: &str) -> Posted {
        Posted { id: "1".into(), created_at: String::new(), content: content.to_owned(), card: None }
    }

    #[test]
    fn the_end_of_a_rate_limit_is_a_moment_or_a_number() {
        let read = |text: &str| {
            let value = HeaderValue::from_str(text).unwrap();
            reset(&HeaderMap::from_iter([(HeaderName::from_static("x-ratelimit-reset"), value)]))
        };
        let wanted: Option<Timestamp> = "2026-01-15T00:05:00Z".parse().ok();
        assert!(wanted.is_some());
        for text in ["2026-01-15T00:05:00.000000Z", "2026-01-15T00:05:00Z", "1768435500"] {
            assert_eq!(read(text), wanted, "{text}");
        }
        assert_eq!(read("soon"), None);
    }

    #[test]
    fn ids_of_accounts_are_safe_in_a_path() {
        let is_good = |id: &str| Account { id: id.to_owned(), acct: String::new() }.checked().is_ok();
        assert!(["1", "01H2ABC", "018e8b9e-7c6a-7d1f-9d0b-1a2b3c4d5e6f"].into_iter().all(is_good));
        assert!(!["", "../1", "1/2", "1?x"].into_iter().any(is_good));
    }

    #[test]
    fn a_post_is_known_by_its_link() {
        let ours = status("x", Some("https://example.com/a?b=1&c=2"));
        let html = "<p>x <a href=\"https://example.com/a?b=1&amp;c=2\" rel=\"nofollow\"><span>https://</span>…</a></p>";
        assert!(is_same(&ours, &posted(html)));
        assert!(!is_same(&ours, &posted("<p><a href=\"https://example.com/a?b=1\">x</a></p>")));
        assert!(!is_same(&ours, &posted("<p>https://example.com/a?b=1&amp;c=2</p>")));
        let card = Posted { card: Some(Card { url: "https://example.com/a?b=1&c=2".into() }), ..posted("") };
        assert!(is_same(&ours, &card));
        let local = status("x http://127.0.0.1/p/1", Some("http://127.0.0.1/p/1"));
        assert!(is_same(&local, &posted("<p>x http://127.0.0.1/p/1</p>")));
        assert!(!is_same(&local, &posted("<p>y http://127.0.0.1/p/1</p>")));
    }

    #[test]
    fn a_post_without_a_link_is_known_by_its_text() {
        let ours = status("一行目 & <二>\n\n三行目", None);
        assert!(is_same(&ours, &posted("<p>一行目 &amp; &lt;二&gt;</p><p>三行目</p>")));
        assert!(!is_same(&ours, &posted("<p>一行目</p>")));
    }
}
