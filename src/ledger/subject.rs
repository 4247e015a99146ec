//! What events and rests are about: the one place where that text is made and read.

use std::fmt;

use crate::db::{Cell, FromCell, ToValue, Value};
use crate::id::RunId;

/// A thing that events tell of or that rests, as it is stored: `KIND:NAME`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(transparent)]
pub struct Subject(String);

/// What sort of thing a subject is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A press release, by its address.
    Item,
    /// A blog, by its id.
    Blog,
    /// A book, by its ISBN.
    Book,
    /// A branch, by its project's path and its own name.
    Branch,
    /// A project, by its path.
    Project,
    /// A bulk run, by its id.
    Run,
    /// A message in the outbox, by its number.
    Delivery,
    /// A channel, by its name.
    Channel,
    /// Whoever is asked and counts: a model or a search, by its name.
    Provider,
    /// A job, by its name.
    Job,
    /// The feed of a press job, by the name of the job.
    Feed,
}

impl Kind {
    /// Every kind there is.
    pub const ALL: [Self; 11] = [
        Self::Item,
        Self::Blog,
        Self::Book,
        Self::Branch,
        Self::Project,
        Self::Run,
        Self::Delivery,
        Self::Channel,
        Self::Provider,
        Self::Job,
        Self::Feed,
    ];

    /// The word before the name.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Item => "item",
            Self::Blog => "blog",
            Self::Book => "book",
            Self::Branch => "branch",
            Self::Project => "project",
            Self::Run => "run",
            Self::Delivery => "delivery",
            Self::Channel => "channel",
            Self::Provider => "provider",
            Self::Job => "job",
            Self::Feed => "feed",
        }
    }
}

impl Subject {
    /// A press release.
    pub fn item(url: &str) -> Self {
        Self::of(Kind::Item, url)
    }

    /// A blog.
    pub fn blog(blog_id: &str) -> Self {
        Self::of(Kind::Blog, blog_id)
    }

    /// A book.
    pub fn book(isbn13: impl fmt::Display) -> Self {
        Self::of(Kind::Book, isbn13)
    }

    /// A branch; both names may have slashes.
    pub fn branch(project: &str, branch_name: &str) -> Self {
        Self::of(Kind::Branch, format_args!("{project}/{branch_name}"))
    }

    /// A project.
    pub fn project(path: &str) -> Self {
        Self::of(Kind::Project, path)
    }

    /// A bulk run.
    pub fn run(run_id: &RunId) -> Self {
        Self::of(Kind::Run, run_id)
    }

    /// A message in the outbox.
    pub fn delivery(id: i64) -> Self {
        Self::of(Kind::Delivery, id)
    }

    /// A channel.
    pub fn channel(name: &str) -> Self {
        Self::of(Kind::Channel, name)
    }

    /// A provider.
    pub fn provider(name: &str) -> Self {
        Self::of(Kind::Provider, name)
    }

    /// A job; the config may have forgotten it, so any name will do.
    pub fn job(name: impl AsRef<str>) -> Self {
        Self::of(Kind::Job, name.as_ref())
    }

    /// The feed of a press job.
    pub fn feed(job: impl AsRef<str>) -> Self {
        Self::of(Kind::Feed, job.as_ref())
    }

    /// An import that belongs to no job.
    pub fn import() -> Self {
        Self("import".to_owned())
    }

    /// What is written so, whatever it may be.
    pub fn verbatim(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    fn of(kind: Kind, name: impl fmt::Display) -> Self {
        Self(format!("{}:{name}", kind.word()))
    }

    /// The text as it is stored.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What sort of thing it is, if it is one of ours.
    pub fn kind(&self) -> Option<Kind> {
        let (word, _) = self.0.split_once(':')?;
        Kind::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// Its name, if it is a thing of that kind.
    pub fn name_of(&self, kind: Kind) -> Option<&str> {
        self.0.strip_prefix(kind.word())?.strip_prefix(':')
    }

    /// For people: the kind and the name as two words.
    pub fn spoken(&self) -> String {
        self.0.replacen(':', " ", 1)
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

    fn from_cell(cell: &Cell<'_>) -> Option<Self> {
        String::from_cell(cell).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Databases in the field hold these texts: none of them may change.
    #[test]
    fn every_subject_is_stored_as_it_always_was() {
        let run_id: RunId = "550e8400-e29b-41d4-a716-446655440000".parse().unwrap();
        let job: crate::id::JobName = "総務省".parse().unwrap();
        for (subject, text, kind, name) in [
            (
                Subject::item("https://a.example/?q=x:y"),
                "item:https://a.example/?q=x:y",
                Some(Kind::Item),
                "https://a.example/?q=x:y",
            ),
            (Subject::blog("a-blog"), "blog:a-blog", Some(Kind::Blog), "a-blog"),
            (Subject::book("9784000000239"), "book:9784000000239", Some(Kind::Book), "9784000000239"),
            (
                Subject::branch("team/app", "release/1.0"),
                "branch:team/app/release/1.0",
                Some(Kind::Branch),
                "team/app/release/1.0",
            ),
            (Subject::project("team/app"), "project:team/app", Some(Kind::Project), "team/app"),
            (
                Subject::run(&run_id),
                "run:550e8400-e29b-41d4-a716-446655440000",
                Some(Kind::Run),
                "550e8400-e29b-41d4-a716-446655440000",
            ),
            (Subject::delivery(12), "delivery:12", Some(Kind::Delivery), "12"),
            (Subject::channel("mail"), "channel:mail", Some(Kind::Channel), "mail"),
            (
                Subject::provider("google_books"),
                "provider:google_books",
                Some(Kind::Provider),
                "google_books",
            ),
            (Subject::job(&job), "job:総務省", Some(Kind::Job), "総務省"),
            (Subject::feed(&job), "feed:総務省", Some(Kind::Feed), "総務省"),
            (Subject::import(), "import", None, ""),
            (Subject::verbatim("jobs:x"), "jobs:x", None, ""),
        ] {
            assert_eq!((subject.as_str(), subject.to_string().as_str()), (text, text));
            assert_eq!(serde_json::to_value(&subject).unwrap(), text);
            assert_eq!(subject.kind(), kind, "{text}");
            for other in Kind::ALL {
                let expected = (Some(other) == kind).then_some(name);
                assert_eq!(subject.name_of(other), expected, "{text} as {other:?}");
            }
            assert_eq!(Subject::verbatim(text), subject);
        }
        assert_eq!(Subject::item("https://a.example/").spoken(), "item https://a.example/");
    }
}
