//! A look at the page that a run would begin with. The request counts as any; nothing else is written.

use super::collect::{Permit, Plan, reserve, start_index};
use super::decide::{Next, Paging};
use super::google::{self, Page, Trouble};
use super::store;
use crate::db::{self, Db};
use crate::engine::preview::MAX_NAMED;
use crate::engine::{Failure, Preview, PreviewItem};
use crate::fetch::Fetcher;
use crate::id::JobName;
use crate::ledger::cursor;
use crate::text::counted;
use crate::time::Timestamp;

/// Asks for the page that a run would begin with. The request is counted as any; nothing else is written.
pub(super) async fn preview(
    plan: &Plan,
    job: &JobName,
    fetcher: &Fetcher,
    db: &Db,
    now: Timestamp,
) -> Result<Preview, Failure> {
    let (of, key) = (job.clone(), plan.query_set_hash.clone());
    let known = db.read(move |tx| cursor::find(tx, of.as_str(), &key)).await?;
    let start = start_index(known.as_ref(), plan.recheck_after, now);
    let what = plan.search.words();
    let Next::Continue(ask) = Paging::new(start.unwrap_or(0), plan.max_per_run).first() else {
        return Ok(Preview {
            items: vec![PreviewItem::failed(what, "a run would ask for nothing")],
            ..Preview::default()
        });
    };
    let quota = plan.quota.clone();
    let left = match db.write(move |tx| reserve(tx, &quota, now)).await? {
        Permit::Go { left } => left,
        Permit::Wait { until } => {
            let until = until.map_or_else(String::new, |until| format!(" until {until}"));
            let why = format!(
                "`{}` may not be asked{until}: its quota is used up, or it is paused",
                plan.quota.provider
            );
            return Ok(Preview { items: vec![PreviewItem::failed(what, why)], ..Preview::default() });
        }
    };
    let mut notes = vec![format!(
        "1 request was counted against the quota `{}`; {left} of {} are left today",
        plan.quota.provider, plan.quota.rule.per_day
    )];
    if start.is_none() {
        notes.push(
            "the search is exhausted: a run would ask nothing, this was its first page again".to_owned(),
        );
    }
    let item = match plan.search.fetch(fetcher, ask, now).await {
        Ok(page) => look_at(page, ask.start_index, what, job, db).await?,
        Err(Trouble::Credentials(why)) => {
            return Err(Failure::Credentials(google::refused_key(&why)));
        }
        Err(Trouble::Quota { why, .. } | Trouble::Passing { why, .. } | Trouble::Failed(why)) => {
            PreviewItem::failed(what, why)
        }
    };
    Ok(Preview { items: vec![item], notes })
}

async fn look_at(
    page: Page,
    start_index: i64,
    what: String,
    job: &JobName,
    db: &Db,
) -> Result<PreviewItem, Failure> {
    let (job, isbns) = (job.clone(), page.books.iter().map(|book| book.isbn13.clone()).collect::<Vec<_>>());
    let known = db
        .read(move |tx| {
            let is_known = |isbn| store::has_book(tx, &job, isbn);
            isbns.iter().map(is_known).collect::<db::Result<Vec<bool>>>()
        })
        .await?;
    let new: Vec<_> =
        page.books.iter().zip(known).filter(|(_, known)| !known).map(|(book, _)| book).collect();
    let of_all = page.total_items.map(|total| format!(" of {total}")).unwrap_or_default();
    let found = format!(
        "{}{of_all} from position {start_index}: {}, {} new to the job, {} without an ISBN",
        counted(page.returned, "volume"),
        counted(page.books.len(), "book"),
        new.len(),
        page.without_isbn
    );
    let detail = serde_json::json!({
        "start_index": start_index,
        "returned": page.returned,
        "total_items": page.total_items,
        "without_isbn": page.without_isbn,
        "books": page.books.iter().map(|book| serde_json::json!({ "isbn13": book.isbn13, "title": book.title })).collect::<Vec<_>>(),
        "new": new.iter().map(|book| book.isbn13.to_string()).collect::<Vec<_>>(),
    });
    let first = new.iter().take(MAX_NAMED).map(|book| book.title.clone()).collect();
    Ok(PreviewItem { first, detail, ..PreviewItem::fine(what, found) })
}
