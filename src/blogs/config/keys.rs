//! The keys of a `blogs` job.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::blogs::model::Detector;
use crate::config::Secret;
use crate::config::value::{BadValue, HttpUrl, Pattern, Span, checked as checked_value};
use crate::parse::html;
use crate::phrase;

/// The default number of failures in a row before a warning.
const WARN_AFTER: u32 = 3;

/// The keys of a `blogs` job.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Keys {
    /// The blogs, each with an `id` that never changes and a `url`.
    pub blog: Vec<Arc<BlogKeys>>,
    /// How a check asks whether anything changed: "get" (one conditional request) or "head" (HEAD first, then GET).
    #[serde(default)]
    pub probe: Probe,
    /// After how many failures in a row the operator is alerted that a blog cannot be read.
    #[serde(default = "warn_after", deserialize_with = "read_warn_after")]
    pub warn_after: u32,
    /// Whether a run sends all new entries in one message; `false` sends one message for each entry.
    #[serde(default = "yes")]
    pub digest: bool,
    /// With `digest = false`: what a message says besides title and link, `"none"`, `"summary"` or `"content"`.
    #[serde(default)]
    pub text: EntryText,
}

/// One blog. There may be ten thousand, most of them with two or three of these keys: what is rarely set takes little room.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BlogKeys {
    /// The name under which its state is kept; another name starts from the beginning.
    pub id: String,
    /// Its page. Feed and sitemap are found from here.
    pub url: HttpUrl,
    /// The detectors to use, in this order: "feed", "sitemap", "html". Default: all three.
    #[serde(default, deserialize_with = "read_detect")]
    pub detect: Option<Box<[Detector]>>,
    /// Its feed, when it is not to be searched for.
    pub feed: Option<HttpUrl>,
    /// Its sitemap, when it is not to be searched for.
    pub sitemap: Option<HttpUrl>,
    /// A CSS selector: only links inside the elements it matches count. For "html" only.
    #[serde(default, deserialize_with = "read_selector")]
    pub selector: Option<Box<str>>,
    /// Only entries that match one of these count: a word in title or text, `/…/` for a regular expression over title, text and
    /// address, or an address with `*` (with a leading `/` its path).
    #[serde(default)]
    pub include: Box<[Pattern]>,
    /// Entries that match one of these do not count.
    #[serde(default)]
    pub exclude: Box<[Pattern]>,
    /// What messages and lists call it. Default: its id.
    pub title: Option<Box<str>>,
    /// The folder it is in, for OPML; `/` separates nested folders. Default: the name of the job.
    pub folder: Option<Box<str>>,
    /// Hashtags for messages about it, without `#`.
    #[serde(default)]
    pub tags: Box<[String]>,
    /// The channels that get its new entries. Default: those of the job.
    pub deliver: Option<Box<[String]>>,
    /// Proves who you are by user and password (HTTP Basic), to its own servers only.
    pub login: Option<Box<LoginKeys>>,
    /// Headers to send, such as `Authorization`, to its own servers only.
    #[serde(default)]
    pub headers: BTreeMap<String, Secret>,
    /// The `Cookie` header to send, to its own servers only.
    pub cookies: Option<Box<Secret>>,
    /// Check it less often than the job runs.
    pub every: Option<Span>,
    /// Whether a new link on a page must be seen in two checks before it is sent. Default: true, for "html" only.
    pub confirm: Option<bool>,
    /// Private addresses that this blog may be reached at, besides those of the job.
    #[serde(default)]
    pub allow_private: Box<[String]>,
}

/// User and password.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoginKeys {
    /// The user.
    pub user: String,
    /// The password.
    pub password: Secret,
}

/// What a message about one entry says besides its title.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EntryText {
    /// Nothing.
    None,
    /// Its short text, or the full one when there is no other.
    #[default]
    Summary,
    /// Its full text, or the short one when there is no other.
    Content,
}

/// How a check asks whether anything changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Probe {
    /// One conditional GET.
    #[default]
    Get,
    /// HEAD first.
    Head,
}

fn yes() -> bool {
    true
}

fn warn_after() -> u32 {
    WARN_AFTER
}

fn read_warn_after<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    checked_value(deserializer, |times| {
        let bad = || {
            BadValue::new(phrase!(
                "a warning needs at least one failure",
                "警告には 1 回以上の失敗が必要です"
            ))
        };
        (*times > 0).then_some(()).ok_or_else(bad)
    })
}

fn read_detect<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Box<[Detector]>>, D::Error> {
    checked_value(deserializer, |detect: &Option<Box<[_]>>| match detect.as_deref() {
        Some([]) => Err(BadValue::new(phrase!(
            "at least one of feed, sitemap and html is needed",
            "feed、sitemap、html のうち 1 つ以上が必要です"
        ))),
        _ => Ok(()),
    })
}

/// Parses a supported CSS selector.
fn read_selector<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Box<str>>, D::Error> {
    checked_value(deserializer, |selector: &Option<Box<str>>| {
        let checked = selector.as_deref().map_or(Ok(()), html::check_selector);
        checked.map_err(|bad| BadValue::new(bad.phrase()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_thousand_blogs_take_three_megabytes_of_keys() {
        assert!(size_of::<BlogKeys>() <= 280, "{}", size_of::<BlogKeys>());
    }
}
