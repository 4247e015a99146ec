//! What events and pauses are about: the one place where this text is written and parsed.

use std::fmt;

use crate::db::{FromCell, ToValue, Value};
use crate::phrase;
use crate::phrase::Phrase;

/// The subject of events or pauses, stored as `WORD:NAME`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(transparent)]
pub struct Subject(String);

impl Subject {
    /// A message in the outbox.
    pub fn delivery(id: i64) -> Self {
        Self::new("delivery", id)
    }

    /// A channel, by its name.
    pub fn channel(name: &str) -> Self {
        Self::new("channel", name)
    }

    /// A provider of models or of a search.
    pub fn provider(name: &str) -> Self {
        Self::new("provider", name)
    }

    /// A job by any name, as it may no longer be in the config.
    pub fn job(name: impl AsRef<str>) -> Self {
        Self::new("job", name.as_ref())
    }

    /// An import that belongs to no job.
    pub fn import() -> Self {
        Self("import".to_owned())
    }

    /// The stored text as it is, whatever it refers to.
    pub fn verbatim(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The thing of that kind with that name.
    pub fn new(word: &str, name: impl fmt::Display) -> Self {
        Self(format!("{word}:{name}"))
    }

    /// The stored text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The word before the colon; everything if there is no colon.
    pub fn word(&self) -> &str {
        self.0.split_once(':').map_or(&self.0, |(word, _)| word)
    }

    /// Its name, if it is of that kind.
    pub fn name_of(&self, word: &str) -> Option<&str> {
        self.0.strip_prefix(word)?.strip_prefix(':')
    }

    /// Its kind and name, in words.
    pub fn phrase(&self) -> Phrase {
        match self.0.split_once(':') {
            Some((word, name)) => {
                phrase!("{word} {name}", "{word} {name}", word = Self::called(word))
            }
            None => Self::called(&self.0),
        }
    }

    /// The name of a kind of thing.
    pub fn called(word: &str) -> Phrase {
        match word {
            "job" => phrase!("job", "ジョブ"),
            "channel" => phrase!("channel", "チャンネル"),
            "provider" => phrase!("provider", "プロバイダー"),
            "delivery" => phrase!("delivery", "配信"),
            "item" => phrase!("item", "記事"),
            "blog" => phrase!("blog", "ブログ"),
            "entry" => phrase!("entry", "記事"),
            "book" => phrase!("book", "書籍"),
            "project" => phrase!("project", "プロジェクト"),
            "branch" => phrase!("branch", "ブランチ"),
            "run" => phrase!("run", "収集"),
            "commit" => phrase!("commit", "コミット"),
            "person" => phrase!("person", "メンバー"),
            "change" => phrase!("change", "変更"),
            "token" => phrase!("token", "トークン"),
            other => Phrase::verbatim(other),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl ToValue for Subject {
    fn to_value(&self) -> Value<'_> {
        self.0.to_value()
    }
}

impl FromCell for Subject {
    const WANTED: &'static str = String::WANTED;

    fn from_cell(cell: &Value<'_>) -> Option<Self> {
        String::from_cell(cell).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Existing databases contain these texts: none of them may change.
    #[test]
    fn every_subject_is_stored_as_it_always_was() {
        let job: crate::id::JobName = "総務省".parse().unwrap();
        for (subject, text, word, name) in [
            (
                Subject::new("item", "https://a.example/?q=x:y"),
                "item:https://a.example/?q=x:y",
                "item",
                Some("https://a.example/?q=x:y"),
            ),
            (Subject::delivery(12), "delivery:12", "delivery", Some("12")),
            (Subject::channel("mail"), "channel:mail", "channel", Some("mail")),
            (Subject::provider("google_books"), "provider:google_books", "provider", Some("google_books")),
            (Subject::job(&job), "job:総務省", "job", Some("総務省")),
            (Subject::import(), "import", "import", None),
            (Subject::verbatim("jobs:x"), "jobs:x", "jobs", Some("x")),
        ] {
            assert_eq!((subject.as_str(), subject.to_string().as_str()), (text, text));
            assert_eq!(serde_json::to_value(&subject).unwrap(), text);
            assert_eq!((subject.word(), subject.name_of(word)), (word, name));
            assert_eq!(subject.name_of("job").is_some(), word == "job", "{text}");
            assert_eq!(Subject::verbatim(text), subject);
        }
        assert_eq!(Subject::new("item", "https://a.example/").phrase(), "item https://a.example/");
    }
}
