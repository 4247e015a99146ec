//! What pipelines have to tell, in no channel's words: every channel makes its own message of it, once.

use url::Url;

use super::header_text::HeaderText;
use crate::text::Language;
use crate::time::Timestamp;

/// Something to tell. Every text in it is plain: markup, links and mentions in it are shown, never obeyed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// What it is about, on one line.
    pub headline: String,
    /// A few sentences; may be empty, may come from a model.
    pub summary: String,
    /// Where to read it. The only link, besides those of the entries, that a message will contain.
    pub link: Option<Url>,
    /// The single things that are new, when there are several.
    pub entries: Vec<NoticeEntry>,
    /// Hashtags without `#`, where the channel knows such a thing.
    pub tags: Vec<String>,
    /// A content warning, where the channel knows such a thing.
    pub warning: Option<String>,
    /// The language of the words around it, and of the text itself.
    pub language: Language,
}

/// One of several things that are new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoticeEntry {
    pub title: String,
    pub link: Option<Url>,
    /// When it was published.
    pub date: Option<Timestamp>,
    /// Anything else, in one line: authors, a price, a reason.
    pub note: Option<String>,
}

impl Notice {
    /// A notice with a headline and nothing else.
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

/// A mail that a pipeline wrote itself, both parts complete.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct MailBody {
    /// The subject line.
    pub subject: HeaderText,
    /// The plain part.
    pub text: String,
    /// The HTML part; whoever wrote it has escaped what came from outside.
    pub html: String,
    /// Who the list is, for `List-Id`, unless the channel is configured with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_id: Option<HeaderText>,
}

/// What is handed to channels: a notice, and the mail to send in its place where mail is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    /// For every channel.
    pub notice: Notice,
    /// For mail only, if the pipeline writes its own.
    pub mail: Option<MailBody>,
}

impl From<Notice> for News {
    fn from(notice: Notice) -> Self {
        Self { notice, mail: None }
    }
}
