//! What was found and sent, as files for other programs: read in pages along a key, written row by row.

mod format;
mod rows;

use std::io::Write;

use tokio_util::sync::CancellationToken;

pub use format::{Format, Style, Writer};
pub use rows::Field;

use crate::blogs::config::Keys as BlogKeys;
use crate::channel::outbox;
use crate::commits::store::export::{self as commits, After};
use crate::config::Config;
use crate::db::{self, Db};
use crate::parse::opml;
use crate::time::Timestamp;
use crate::{blogs, books, press};

/// Rows that are in memory at once.
const PAGE: usize = 1000;

/// What is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// What press jobs found.
    Items,
    /// What was new on blogs.
    Changes,
    /// Books.
    Books,
    /// Mails about books.
    Deliveries,
    /// Messages of the outbox.
    Messages,
    /// Commits; the addresses of their authors are never among the columns.
    Commits,
}

/// Which rows are meant.
#[derive(Clone, Debug)]
pub struct Filter {
    /// Of this job only; for commits it is the host that counts.
    pub job: Option<String>,
    /// Of this GitLab only.
    pub host: Option<String>,
    /// From then on …
    pub since: Timestamp,
    /// … and before then.
    pub until: Timestamp,
}

impl Default for Filter {
    fn default() -> Self {
        Self { job: None, host: None, since: Timestamp::MIN, until: Timestamp::MAX }
    }
}

/// Why an export ended early.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database refused.
    #[error(transparent)]
    Db(#[from] db::Error),
    /// The file or pipe cannot be written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// It was told to stop.
    #[error("the export was interrupted")]
    Stopped,
}

/// Where the next page begins.
#[derive(Clone, Debug)]
enum Next {
    Number(i64),
    Isbn(String),
    Commit(After),
}

/// Writes every row that `filter` means; answers how many there were.
pub async fn write<W: Write>(
    db: &Db,
    what: What,
    filter: &Filter,
    writer: &mut Writer<W>,
    stop: &CancellationToken,
) -> Result<u64, Error> {
    writer.begin(rows::columns(what))?;
    let mut next = Some(match what {
        What::Books => Next::Isbn(String::new()),
        What::Commits => Next::Commit(After { project_id: i64::MIN, ..After::default() }),
        What::Items | What::Changes | What::Deliveries | What::Messages => Next::Number(i64::MIN),
    });
    let mut count = 0;
    while let Some(after) = next {
        if stop.is_cancelled() {
            return Err(Error::Stopped);
        }
        let filter = filter.clone();
        let (page, then) = db.read(move |tx| list_page(tx, what, &filter, &after)).await?;
        for row in &page {
            writer.row(row)?;
        }
        count += page.len() as u64;
        next = then;
    }
    writer.end()?;
    Ok(count)
}

type Page = (Vec<Vec<Field>>, Option<Next>);

fn list_page(tx: &mut db::Tx<'_>, what: What, filter: &Filter, after: &Next) -> db::Result<Page> {
    let (job, span) = (filter.job.as_deref(), (filter.since, filter.until));
    let page = match (what, after) {
        (What::Items, Next::Number(after)) => {
            let items = press::store::list_after(tx, *after, job, span, PAGE)?;
            let last = items.last().map(|item| Next::Number(item.id));
            (items.iter().map(rows::of_item).collect(), last)
        }
        (What::Changes, Next::Number(after)) => {
            let changes = blogs::store::list_changes_after(tx, *after, job, span, PAGE)?;
            let last = changes.last().map(|change| Next::Number(change.id));
            (changes.iter().map(rows::of_change).collect(), last)
        }
        (What::Deliveries, Next::Number(after)) => {
            let deliveries = books::store::list_deliveries_after(tx, *after, job, span, PAGE)?;
            let last = deliveries.last().map(|delivery| Next::Number(delivery.id));
            (deliveries.iter().map(rows::of_delivery).collect(), last)
        }
        (What::Messages, Next::Number(after)) => {
            let messages = outbox::list_after(tx, *after, job, span, PAGE)?;
            let last = messages.last().map(|message| Next::Number(message.id));
            (messages.iter().map(rows::of_message).collect(), last)
        }
        (What::Books, Next::Isbn(after)) => {
            let books = books::store::list_books_after(tx, after, job, span, PAGE)?;
            let last = books.last().map(|row| Next::Isbn(row.book.isbn13.as_str().to_owned()));
            (books.iter().map(rows::of_book).collect(), last)
        }
        (What::Commits, Next::Commit(after)) => {
            let found = commits::list_after(tx, after, filter.host.as_deref(), span, PAGE)?;
            let last = found.last().map(|(_, after)| Next::Commit(after.clone()));
            (found.iter().map(|(commit, _)| rows::of_commit(commit)).collect(), last)
        }
        _ => (Vec::new(), None),
    };
    Ok(page)
}

/// The blogs of the config as OPML, with the feeds that were found where the config names none; answers how many have
/// no feed at all and are left out.
pub async fn render_opml(config: &Config, db: Option<&Db>, job: Option<&str>) -> db::Result<(String, usize)> {
    let found = match db {
        Some(db) => db.read(blogs::store::list_feeds).await?,
        None => Default::default(),
    };
    let mut feeds = Vec::new();
    let mut left_out = 0;
    let jobs = config.jobs.iter().filter(|of| of.kind == blogs::KIND);
    for of in jobs.filter(|of| job.is_none_or(|name| of.name.as_str() == name)) {
        let Ok(keys) = of.section.keys::<BlogKeys>() else { continue };
        for blog in &keys.blog {
            let feed = blog
                .feed
                .as_ref()
                .map(|feed| feed.as_str().to_owned())
                .or_else(|| found.get(&blog.id).cloned());
            match feed {
                None => left_out += 1,
                Some(url) => feeds.push(opml::Feed {
                    url,
                    title: Some(blog.id.clone()),
                    page: Some(blog.url.as_str().to_owned()),
                    folders: vec![of.name.as_str().into()],
                }),
            }
        }
    }
    Ok((opml::render("tsuzuki", &feeds), left_out))
}
