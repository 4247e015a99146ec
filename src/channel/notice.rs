//! News in a form that is independent of channels; every channel renders its own message from it.

use url::Url;

use super::header_text::HeaderText;
use crate::text::Language;
use crate::time::Timestamp;

/// Something to announce. All texts are plain: markup, links and mentions in them have no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// What it is about, on one line.
    pub headline: String,
    /// A few sentences; may be empty or come from a model.
    pub summary: String,
    /// The only link in the message, besides those of the entries.
    pub link: Option<Url>,
    /// The single new things, if there are several.
    pub entries: Vec<NoticeEntry>,
    /// Hashtags without `#`, for channels that have them.
    pub tags: Vec<String>,
    /// A content warning, for channels that have one.
    pub warning: Option<String>,
    /// The language of the text and of the words around it.
    pub language: Language,
}

/// One of several new things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoticeEntry {
    pub title: String,
    pub link: Option<Url>,
    pub date: Option<Timestamp>,
    /// Further details on one line: authors, a price, a reason.
    pub note: Option<String>,
}

impl Notice {
    /// A notice with only a headline.
    pub fn new(headline: impl Into<String>, language: Language) -> Self {
        Self {
            headline: headline.into(),
            summary: String::new(),
            link: None,
            entries: Vec::new(),
            tags: Vec::new(),
            warning: None,
            language,
        }
    }
}

/// A mail written by the pipeline itself, with both parts.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct MailBody {
    pub subject: HeaderText,
    pub text: String,
    /// The HTML part; the pipeline has escaped text from outside.
    pub html: String,
    /// The list for `List-Id`, unless the channel has one in its config.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_id: Option<HeaderText>,
}

/// What a pipeline passes to channels: a notice, and optionally its own mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    pub notice: Notice,
    /// For mail channels, in place of the notice.
    pub mail: Option<MailBody>,
}

impl From<Notice> for News {
    fn from(notice: Notice) -> Self {
        Self { notice, mail: None }
    }
}
