//! What a name may stand for, and what its events say.

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

/// Finds things by name. It is made by `app`, which knows all of them.
#[derive(Clone)]
pub struct Finder {
    pub config: Arc<Config>,
    pub jobs: Vec<Job>,
    /// Sorts of things, in the order in which a bare name is tried.
    pub things: Vec<&'static Thing>,
    /// The pipelines.
    pub pipelines: &'static [&'static Pipeline],
    /// What follows when a message has ended.
    pub topics: Topics,
    /// Pages of the pipelines, in the order of the navigation.
    pub pages: Vec<&'static Page>,
    /// What events say.
    pub words: Vec<Words>,
    /// What needs a person, by pipeline.
    pub needs: Vec<ListNeeds>,
    pub channels: Arc<ChannelSet>,
    /// Daily limits, by provider.
    pub quotas: BTreeMap<String, Quota>,
    /// What has to be set before a job can do its work, by job.
    pub missing: BTreeMap<String, Vec<Phrase>>,
    /// Events and rows that are shown at most.
    pub limit: usize,
    /// The present moment.
    pub now: Timestamp,
}

impl Finder {
    /// Everything that `name` may stand for; a word before a colon is taken for the sort of the thing.
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

    /// The things that a word and a name behind a colon stand for.
    pub fn find_exactly(&self, tx: &mut Tx<'_>, name: &str) -> db::Result<Vec<View>> {
        let mut views = Vec::new();
        if let Some((word, bare)) = name.split_once(':') {
            for thing in self.things.iter().filter(|thing| thing.word == word) {
                views.extend((thing.find)(self, tx, bare)?);
            }
        }
        Ok(views)
    }

    /// What a thing is called.
    pub fn find_title(&self, tx: &mut Tx<'_>, about: &Subject) -> db::Result<Phrase> {
        let found = self.find_exactly(tx, about.as_str())?.into_iter().next();
        Ok(found.map_or_else(|| about.phrase(), |view| view.title))
    }

    /// Something that only events are about.
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

    /// What an event says; its code, if nobody knows its words.
    pub fn words(&self, event: &Event) -> Phrase {
        let known = self.words.iter().find_map(|words| words(event));
        known.unwrap_or_else(|| Phrase::verbatim(event.code.replace('_', " ")))
    }
}

/// An address of a page.
pub fn read_address(text: &str) -> Option<Url> {
    text.parse::<Url>().ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}
