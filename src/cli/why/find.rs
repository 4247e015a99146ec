//! What a word on the command line may stand for, and everything that is known about it.

use serde::Serialize;

use super::job::{self, JobView};
use crate::blogs::entry::{self, EntryView};
use crate::blogs::{self as blog, view as blogs};
use crate::books::{model::Isbn13, view as books};
use crate::channel::outbox::{self, Row};
use crate::commits::model::Project;
use crate::commits::run::{self, Summary};
use crate::commits::store::branches::{self, BranchRow};
use crate::commits::store::projects;
use crate::config::Config;
use crate::db::{self, Tx};
use crate::engine::{Job, store};
use crate::id::RunId;
use crate::ledger::Subject;
use crate::ledger::event::{self, Event};
use crate::ledger::pause::{self, Pause};
use crate::ledger::subject::Kind;
use crate::parse::url::{Url, comparison_key};
use crate::press::{Item, store as items, view as press};
use crate::time::Timestamp;

/// Everything that is known about one thing.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Thing {
    Item(press::ItemView),
    Entry(Entry),
    Blog(blogs::BlogView),
    Book(books::BookView),
    Branch(WithEvents<BranchRow>),
    Project(WithEvents<Project>),
    Run(WithEvents<Summary>),
    Delivery(WithEvents<Row>),
    /// A channel or a provider.
    External(WithEvents<External>),
    Job(Box<JobView>),
    /// Something that only events tell of.
    Other(WithEvents<Named>),
}

/// A thing and what happened to it, oldest first.
#[derive(Serialize)]
pub(super) struct WithEvents<T> {
    #[serde(flatten)]
    pub(super) thing: T,
    pub(super) events: Vec<Event>,
}

/// A channel or a provider.
#[derive(Serialize)]
pub(super) struct External {
    pub(super) name: Subject,
    pub(super) paused: Option<Pause>,
}

/// An entry of a blog.
#[derive(Serialize)]
pub(super) struct Entry {
    #[serde(flatten)]
    pub(super) story: EntryView,
    /// Whether the job that found it has a channel now; `None` when the config does not name the job.
    #[serde(skip)]
    pub(super) has_channel: Option<bool>,
}

/// A thing that has nothing but a name.
#[derive(Serialize)]
pub(super) struct Named {
    pub(super) subject: Subject,
}

impl Thing {
    /// The word that means this thing and no other.
    pub(super) fn name(&self) -> String {
        match self {
            Thing::Item(story) => format!("{}:{}", Kind::Item.word(), story.item.id),
            Thing::Entry(entry) => entry.story.entry.url.clone().unwrap_or_default(),
            Thing::Blog(story) => Subject::blog(&story.blog_id).to_string(),
            Thing::Book(story) => Subject::book(&story.book.isbn13).to_string(),
            Thing::Branch(story) => branch(&story.thing).to_string(),
            Thing::Project(story) => Subject::project(&story.thing.path).to_string(),
            Thing::Run(story) => Subject::run(&story.thing.run.run_id).to_string(),
            Thing::Delivery(story) => Subject::delivery(story.thing.id).to_string(),
            Thing::External(story) => story.thing.name.to_string(),
            Thing::Job(story) => Subject::job(&story.name).to_string(),
            Thing::Other(story) => story.thing.subject.to_string(),
        }
    }
}

fn branch(row: &BranchRow) -> Subject {
    Subject::branch(&row.project, &row.branch_name)
}

/// An address of a page.
pub(super) fn read_address(text: &str) -> Option<Url> {
    text.parse::<Url>().ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

/// Where to look.
pub(super) struct Finder {
    pub(super) config: Config,
    pub(super) jobs: Vec<Job>,
    pub(super) limit: usize,
    pub(super) now: Timestamp,
}

type Find = fn(&Finder, &mut Tx<'_>, &str) -> db::Result<Vec<Thing>>;

/// The kinds of things by the word that may stand before their name.
const KINDS: &[(&str, Find)] = &[
    (Kind::Item.word(), Finder::items),
    ("entry", Finder::entries),
    (Kind::Blog.word(), Finder::blogs),
    (Kind::Book.word(), Finder::books),
    (Kind::Branch.word(), Finder::branches),
    (Kind::Project.word(), Finder::projects),
    (Kind::Run.word(), Finder::runs),
    (Kind::Delivery.word(), Finder::deliveries),
    (Kind::Channel.word(), Finder::channels),
    (Kind::Provider.word(), Finder::providers),
    (Kind::Job.word(), Finder::jobs),
];

impl Finder {
    /// Everything that `thing` may stand for; a kind before its name is taken at its word.
    pub(super) fn find(&self, tx: &mut Tx<'_>, thing: &str) -> db::Result<Vec<Thing>> {
        let mut stories = Vec::new();
        let subject = Subject::verbatim(thing);
        if let Some(number) = subject.name_of(Kind::Item).and_then(|number| number.parse().ok()) {
            let found = items::find(tx, number)?;
            stories = found.into_iter().map(|item| self.item(tx, item)).collect::<db::Result<_>>()?;
        } else if let Some((kind, name)) = thing.split_once(':')
            && let Some((_, find)) = KINDS.iter().find(|(known, _)| *known == kind)
        {
            stories = find(self, tx, name)?;
            if stories.is_empty() && kind == Kind::Project.word() {
                stories = self.branches(tx, name)?;
            }
        }
        if stories.is_empty() {
            for (_, find) in KINDS {
                stories.extend(find(self, tx, thing)?);
            }
        }
        if stories.is_empty() {
            let events = event::list_about(tx, &subject, self.limit)?;
            if !events.is_empty() {
                stories.push(Thing::Other(WithEvents { thing: Named { subject }, events }));
            }
        }
        Ok(stories)
    }

    fn told<T>(&self, tx: &mut Tx<'_>, subject: &Subject, thing: T) -> db::Result<WithEvents<T>> {
        Ok(WithEvents { thing, events: event::list_about(tx, subject, self.limit)? })
    }

    /// By address; a bare number is a delivery's, so an item's needs its kind before it.
    fn items(&self, tx: &mut Tx<'_>, name: &str) -> db::Result<Vec<Thing>> {
        let found = items::list_by_url(tx, name)?;
        found.into_iter().map(|item| self.item(tx, item)).collect()
    }

    fn item(&self, tx: &mut Tx<'_>, item: Item) -> db::Result<Thing> {
        Ok(Thing::Item(press::find_view(tx, item, self.limit)?))
    }

    fn entries(&self, tx: &mut Tx<'_>, name: &str) -> db::Result<Vec<Thing>> {
        let Some(url) = read_address(name) else { return Ok(Vec::new()) };
        let with_channel = |story: EntryView| {
            let change = story.changes.first();
            let job = change.and_then(|listed| self.config.find_job(&listed.change.job_name));
            Thing::Entry(Entry { has_channel: job.map(|job| !job.deliver.is_empty()), story })
        };
        Ok(entry::list_views(tx, &url)?.into_iter().map(with_channel).collect())
    }

    /// By id, or by an address that the config gives it.
    fn blogs(&self, tx: &mut Tx<'_>, name: &str) -> db::Result<Vec<Thing>> {
        let ids = match read_address(name) {
            Some(url) => self.list_blogs_at(&url),
            None => vec![name.to_owned()],
        };
        let mut stories = Vec::new();
        for id in ids {
            stories.extend(blogs::find_view(tx, &id, self.limit, self.now)?.map(Thing::Blog));
        }
        Ok(stories)
    }

    fn list_blogs_at(&self, url: &Url) -> Vec<String> {
        let key = comparison_key(url);
        let is_there = |blog: &blog::config::Blog| {
            let addresses = [Some(&blog.url), blog.feed.as_ref(), blog.sitemap.as_ref()];
            addresses.into_iter().flatten().any(|address| comparison_key(address) == key)
        };
        let jobs = self.config.jobs.iter().filter(|job| job.kind == blog::KIND);
        let listed = jobs.filter_map(|job| blog::config::read(job).ok()).flat_map(|(blogs, _)| blogs);
        listed.filter(is_there).map(|blog| blog.id).collect()
    }

    fn books(&self, tx: &mut Tx<'_>, name: &str) -> db::Result<Vec<Thing>> {
        let Ok(isbn13) = name.parse::<Isbn13>() else { return Ok(Vec::new()) };
        Ok(books::show(tx, &isbn13, self.limit)?.map(Thing::Book).into_iter().collect())
    }

    /// `PROJECT/BRANCH`; both may have slashes of their own.
    fn branches(&self, tx: &mut Tx<'_>, name: &str) -> db::Result<Vec<Thing>> {
        let mut found: Vec<BranchRow> = Vec::new();
        for (slash, _) in name.match_indices('/') {
            for project in projects::find_named(tx, &name[..slash])? {
                let rows = branches::list(tx, Some(project.project_id))?;
                found.extend(rows.into_iter().filter(|row| row.branch_name == name[slash + 1..]));
            }
        }
        let told = |row: BranchRow, tx: &mut Tx<'_>| Ok(Thing::Branch(self.told(tx, &branch(&row), row)?));
        found.into_iter().map(|row| told(row, tx)).collect()
    }

    fn projects(&self, tx: &mut Tx<'_>, name: &str) -> db::Result<Vec<Thing>> {
        let found = projects::find_named(tx, name)?;
        let told = |project: Project, tx: &mut Tx<'_>| {
            Ok(Thing::Project(self.told(tx, &Subject::project(&project.path), project)?))
        };
        found.into_iter().map(|project| told(project, tx)).collect()
    }

    fn runs(&self, tx: &mut Tx<'_>, name: &str) -> db::Result<Vec<Thing>> {
        let Ok(run_id) = name.parse::<RunId>() else { return Ok(Vec::new()) };
        let Some(summary) = run::find_summary(tx, &run_id)? else { return Ok(Vec::new()) };
        Ok(vec![Thing::Run(self.told(tx, &Subject::run(&run_id), summary)?)])
    }

    fn deliveries(&self, tx: &mut Tx<'_>, name: &str) -> db::Result<Vec<Thing>> {
        let Ok(id) = name.parse::<i64>() else { return Ok(Vec::new()) };
        let Some(row) = outbox::find(tx, id)? else { return Ok(Vec::new()) };
        Ok(vec![Thing::Delivery(self.told(tx, &Subject::delivery(id), row)?)])
    }

    fn channels(&self, tx: &mut Tx<'_>, name: &str) -> db::Result<Vec<Thing>> {
        let is_known = self.config.channels.iter().any(|section| section.name == name);
        self.external(tx, Subject::channel(name), is_known)
    }

    fn providers(&self, tx: &mut Tx<'_>, name: &str) -> db::Result<Vec<Thing>> {
        let is_known = self.config.llms.iter().any(|section| section.name == name)
            || self.config.quotas.contains_key(name);
        self.external(tx, Subject::provider(name), is_known)
    }

    fn external(&self, tx: &mut Tx<'_>, name: Subject, is_known: bool) -> db::Result<Vec<Thing>> {
        let paused = pause::find(tx, &name, self.now)?;
        let told = self.told(tx, &name.clone(), External { name, paused })?;
        let is_known = is_known || told.thing.paused.is_some() || !told.events.is_empty();
        Ok(if is_known { vec![Thing::External(told)] } else { Vec::new() })
    }

    fn jobs(&self, tx: &mut Tx<'_>, name: &str) -> db::Result<Vec<Thing>> {
        let job = self.jobs.iter().find(|job| job.name.as_str() == name);
        if job.is_none() && store::find_state(tx, name)?.is_none() {
            return Ok(Vec::new());
        }
        let deliver = self.config.find_job(name).map(|job| job.deliver.clone()).unwrap_or_default();
        Ok(vec![Thing::Job(Box::new(job::find_story(tx, name, job, deliver, self.limit, self.now)?))])
    }
}
