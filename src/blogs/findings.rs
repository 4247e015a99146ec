//! New entries of blogs in feeds and search results.

use super::decide::Code;
use super::entry::ENTRY;
use super::events;
use super::store::{self, ChangeFilter, ChangeRow};
use crate::db::{self, Tx};
use crate::engine::finder::read_address;
use crate::engine::finding::FoundThing;
use crate::id::JobName;
use crate::ledger::Subject;

pub(super) fn list(tx: &mut Tx<'_>, job: Option<&JobName>, limit: usize) -> db::Result<Vec<FoundThing>> {
    let filter = ChangeFilter { job: job.map(ToString::to_string), ..ChangeFilter::default() };
    let changes = store::list_changes(tx, &filter, limit)?;
    let news = changes.into_iter().filter(|change| change.code == Code::New);
    Ok(news.flat_map(findings).take(limit).collect())
}

fn findings(change: ChangeRow) -> impl Iterator<Item = FoundThing> {
    let ChangeRow { blog_id, found_at, detail, .. } = change;
    detail.entries.into_iter().map(move |entry| {
        let about = match entry.url.as_deref().filter(|url| read_address(url).is_some()) {
            Some(url) => Subject::new(ENTRY, url),
            None => events::subject(&blog_id),
        };
        FoundThing {
            about: about.to_string(),
            title: entry.name().unwrap_or(&blog_id).to_owned(),
            link: entry.url,
            at: Some(entry.published_at.unwrap_or(found_at)),
            summary: entry.text,
            names: vec![blog_id.clone()],
        }
    })
}
