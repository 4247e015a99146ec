//! Fetches the page that a run would begin with. The request counts against the quota; nothing else is written.

use super::ask::{Permit, reserve};
use super::collect::{CollectContext, start_index};
use super::decide::{Next, Paging};
use super::google::{self, SearchError, VolumePage};
use super::store;
use crate::db::{self, Db};
use crate::engine::preview::MAX_NAMED;
use crate::engine::{Failure, Preview, PreviewItem};
use crate::fetch::Fetcher;
use crate::id::JobName;
use crate::ledger::cursor;
use crate::phrase;
use crate::phrase::Value;
use crate::time::Timestamp;

/// Fetches the page that a run would begin with. The request counts against the quota; nothing else is written.
pub(super) async fn preview(
    plan: &CollectContext,
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
            items: vec![PreviewItem::failed(
                what,
                phrase!("a run would ask for nothing", "実行しても要求は行われません"),
            )],
            ..Preview::default()
        });
    };
    if plan.search.lacks_key() {
        return Err(Failure::Credentials(google::refused_key(google::needs_key())));
    }
    let quota = plan.quota.clone();
    let left = match db.write(move |tx| reserve(tx, &quota, now)).await? {
        Permit::Go { left } => left,
        Permit::Wait { until } => {
            let name = &plan.quota.provider;
            let why = match until {
                Some(until) => phrase!(
                    "no requests to `{name}` until {until}: its quota is used up, or it is paused",
                    "`{name}` には {until} まで問い合わせできません（クォータ切れ、または一時停止中）"
                ),
                None => phrase!(
                    "no requests to `{name}`: its quota is used up, or it is paused",
                    "`{name}` には問い合わせできません（クォータ切れ、または一時停止中）"
                ),
            };
            return Ok(Preview { items: vec![PreviewItem::failed(what, why)], ..Preview::default() });
        }
    };
    let mut notes = vec![phrase!(
        "1 request was counted against the quota `{name}`; {left} of {per_day} are left today",
        "クォータ `{name}` を 1 回分使いました（本日の残り {left}/{per_day}）",
        name = &plan.quota.provider,
        per_day = plan.quota.rule.per_day
    )];
    if start.is_none() && plan.also_newest {
        notes.push(phrase!(
            "the search is exhausted: a run would read the newest alone, this was the first page of the search again",
            "検索は枯渇しています。実行すると新しい順の 1 ページだけを読みます（これは検索の最初のページの再取得です）"
        ));
    } else if start.is_none() {
        notes.push(phrase!(
            "the search is exhausted: a run would ask nothing, this was its first page again",
            "検索は枯渇しています。実行しても要求は行われず、これは最初のページの再取得です"
        ));
    }
    let item = match plan.search.fetch(fetcher, ask, now).await {
        Ok(page) => {
            let unwanted = page.books.iter().filter(|book| !plan.wanted.fits(book)).count();
            if unwanted > 0 {
                notes.push(phrase!(
                    "{unwanted book} would not be sent: `include`, `exclude` or `earliest` leave them out",
                    "{unwanted} 件は `include`・`exclude`・`earliest` により送信の対象外です"
                ));
            }
            describe(page, ask.start_index, what, job, db).await?
        }
        Err(SearchError::Credentials(why)) => {
            return Err(Failure::Credentials(google::refused_key(why)));
        }
        Err(
            SearchError::Quota { why, .. }
            | SearchError::Passing { why, .. }
            | SearchError::Config(why)
            | SearchError::Failed(why),
        ) => PreviewItem::failed(what, why),
    };
    Ok(Preview { items: vec![item], notes })
}

async fn describe(
    page: VolumePage,
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
    let total = page.total_items.map_or_else(|| Value::from("?"), Value::from);
    let found = phrase!(
        "{returned volume} of {total} from position {start}: {books book}, {new} new to the job, {bare} without an ISBN",
        "位置 {start} から {total} 件中 {returned} 件：書籍 {books} 件、新規 {new} 件、ISBN なし {bare} 件",
        returned = page.returned,
        start = start_index,
        books = page.books.len(),
        new = new.len(),
        bare = page.without_isbn
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
