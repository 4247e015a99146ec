//! Fetches a feed with its stored validators.

use std::time::Duration;

use super::super::Press;
use super::super::store::FeedState;
use crate::fail;
use crate::fetch::error::Why;
use crate::fetch::{Error, Head, Request, Response, Validators};
use crate::parse::Cut;
use crate::parse::feed::{self, Entry};
use crate::parse::url::Url;
use crate::phrase::Phrase;
use crate::time::Timestamp;

/// The whole feed is read at least this often, whatever its validators say.
pub(super) const WHOLE_EVERY: Duration = Duration::from_secs(7 * 24 * 3600);
/// The longest wait that a server can ask for.
pub(super) const MAX_PAUSE: Duration = Duration::from_secs(24 * 3600);
const ACCEPT: &str = "application/rss+xml, application/rdf+xml, application/atom+xml, application/feed+json, \
                      application/xml;q=0.9, text/xml;q=0.9, */*;q=0.5";

/// The result of fetching a feed.
pub(in crate::press) enum Fetched {
    Unchanged(FeedAnswer),
    Gone,
    /// Nothing is at the address, with the reason.
    NotFound(Phrase),
    /// A temporary failure: the wait that the server asks for, if it does, and the reason.
    Later(Option<Duration>, Phrase),
    Feed(FeedAnswer, Vec<Entry>),
    /// Fails until the config changes, with the reason.
    Blocked(Phrase),
}

/// The answer of the server besides the feed.
pub(in crate::press) struct FeedAnswer {
    pub(in crate::press) validators: Validators,
    /// The end of permanent redirects.
    pub(in crate::press) moved_to: Option<Url>,
    /// The part that exceeds a limit.
    pub(in crate::press) cut: Option<Cut>,
}

impl From<Head> for FeedAnswer {
    fn from(head: Head) -> Self {
        Self { validators: head.validators, moved_to: head.permanent_url, cut: None }
    }
}

/// Fetches the feed at `url`.
pub(in crate::press) async fn fetch_feed(
    press: &Press,
    url: &Url,
    validators: &Validators,
) -> Result<Fetched, Phrase> {
    let request =
        Request::get(url.clone()).accept(ACCEPT).validators(validators).allow_private(&press.allow_private);
    let (head, body) = match press.env.fetcher.fetch(&request).await {
        Ok(Response::Unchanged(head)) => return Ok(Fetched::Unchanged(head.into())),
        Ok(Response::Fetched(head, body)) => (head, body),
        Err(Error::Gone) => return Ok(Fetched::Gone),
        Err(error @ Error::NotFound) => return Ok(Fetched::NotFound(error.describe())),
        Err(error) if error.is_retryable() => {
            return Ok(Fetched::Later(asked_wait(&error), error.describe()));
        }
        Err(error) if error.needs_config() => return Ok(Fetched::Blocked(error.describe())),
        Err(error) => return Err(error.describe()),
    };
    fail::point("press.feed_fetched");
    let context = feed::Context {
        url: Some(head.final_url.clone()),
        content_type: head.content_type().map(str::to_owned),
        zone: Some(press.env.app.timezone.time_zone().clone()),
        ..feed::Context::default()
    };
    let feed = feed::parse(&body, &context).map_err(|refused| refused.to_string())?;
    Ok(Fetched::Feed(FeedAnswer { cut: feed.cut, ..head.into() }, feed.entries))
}

/// The wait that a server asks for, if it does.
pub(in crate::press) fn asked_wait(error: &Error) -> Option<Duration> {
    match error {
        Error::Later { after, why: Why::Asked(_), .. } => Some(*after),
        _ => None,
    }
}

/// Until when the server asked us to wait, if that is not over. Ignores an implausibly late end, which a wrong clock
/// wrote.
pub(super) fn left_alone_until(known: &FeedState, now: Timestamp) -> Option<Timestamp> {
    known.not_before.filter(|until| now < *until && *until <= now.plus(MAX_PAUSE))
}

/// The validators to send; none when a full fetch is due.
pub(super) fn usable_validators(known: &FeedState, now: Timestamp) -> Validators {
    let is_due = known.last_read_at.is_none_or(|read| read > now || now.since(read) >= WHOLE_EVERY)
        || known.read_again_at.is_some_and(|again| again <= now);
    if is_due { Validators::default() } else { known.validators.clone() }
}
