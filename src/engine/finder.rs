//! Finds what a name refers to, and words its events.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::pipeline::{ListNeeds, Thing, Words};
use super::view::{Line, View};
use super::{Job, Page, Pipeline};
use crate::channel::ChannelSet;
use crate::channel::outbox::Topics;
use crate::config::Config;
use crate::db::{self, Tx};
use crate::ledger::Subject;
use crate::ledger::event::{self, Event};
use crate::ledger::quota::Quota;
use crate::parse::url::Url;
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;

/// Finds things by name. Made by `app`, which knows all kinds of things.
#[derive(Clone)]
pub struct Finder {
    pub config: Arc<Config>,
    pub jobs: Vec<Job>,
    /// Kinds of things, in the order in which a bare name is tried.
    pub things: Vec<&'static Thing>,
    /// The pipelines.
    pub pipelines: &'static [&'static Pipeline],
    /// Callbacks for messages that were delivered, skipped or have failed, by topic.
    pub topics: Topics,
    /// Pages of the pipelines, in the order of the navigation.
    pub pages: Vec<&'static Page>,
    /// Functions that word events.
    pub words: Vec<Words>,
    /// What needs a person, one function for each pipeline.
    pub needs: Vec<ListNeeds>,
    pub channels: Arc<ChannelSet>,
    /// Daily limits, by provider.
    pub quotas: BTreeMap<String, Quota>,
    /// Settings that are missing before a job can work, by job.
    pub missing: BTreeMap<String, Vec<Phrase>>,
    /// Events and rows to show at most.
    pub limit: usize,
    pub now: Timestamp,
}

impl Finder {
    /// Everything that `name` may refer to; a word before a colon is taken for the kind of thing.
    pub fn find(&self, tx: &mut Tx<'_>, name: &str) -> db::Result<Vec<View>> {
        let mut views = self.find_exactly(tx, name)?;
        if views.is_empty() {
            for thing in &self.things {
                views.extend((thing.find)(self, tx, name)?);
            }
        }
        if views.is_empty() {
            views.extend(self.find_in_events(tx, &Subject::verbatim(name))?);
        }
        Ok(views)
    }

    /// Everything that matches the kind and the name of `word:name`.
    pub fn find_exactly(&self, tx: &mut Tx<'_>, name: &str) -> db::Result<Vec<View>> {
        let mut views = Vec::new();
        if let Some((word, bare)) = name.split_once(':') {
            for thing in self.things.iter().filter(|thing| thing.word == word) {
                views.extend((thing.find)(self, tx, bare)?);
            }
        }
        Ok(views)
    }

    /// The title of a thing.
    pub fn find_title(&self, tx: &mut Tx<'_>, about: &Subject) -> db::Result<Phrase> {
        let found = self.find_exactly(tx, about.as_str())?.into_iter().next();
        Ok(found.map_or_else(|| about.phrase(), |view| view.title))
    }

    /// A thing of which there are only events.
    fn find_in_events(&self, tx: &mut Tx<'_>, subject: &Subject) -> db::Result<Option<View>> {
        let events = event::list_about(tx, subject, self.limit)?;
        if events.is_empty() {
            return Ok(None);
        }
        let data = serde_json::json!({ "subject": subject, "events": events });
        let mut view = View::new("other", subject, Phrase::verbatim(subject.as_str()), data);
        self.add_events(&mut view, &events);
        Ok(Some(view))
    }

    /// The newest events about `subject`, oldest first.
    pub fn list_events(&self, tx: &mut Tx<'_>, subject: &Subject) -> db::Result<Vec<Event>> {
        event::list_about(tx, subject, self.limit)
    }

    /// Adds a section of events.
    pub fn add_events(&self, view: &mut View, events: &[Event]) {
        view.section(
            phrase!("events", "経緯"),
            events.iter().map(|event| Line::at(event.at, self.words(event))),
        );
    }

    /// An event in words, or its code if no function knows it.
    pub fn words(&self, event: &Event) -> Phrase {
        let known = self.words.iter().find_map(|words| words(event));
        known.unwrap_or_else(|| Phrase::verbatim(event.code.replace('_', " ")))
    }
}

/// Parses the address of a web page.
pub fn read_address(text: &str) -> Option<Url> {
    text.parse::<Url>().ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}
