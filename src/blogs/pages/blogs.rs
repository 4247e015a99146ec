//! Each blog in one row: state, detector, last check, and a strip of its last checks.

use crate::blogs::config::{self, Blog};
use crate::blogs::events::subject;
use crate::blogs::listing::find_row;
use crate::blogs::model::Detector;
use crate::blogs::store::{self, CheckRow};
use crate::blogs::view::check_phrase;
use crate::db::{self, Tx};
use crate::engine::Finder;
use crate::engine::chart::{Chart, Figure, StripCell, StripMark};
use crate::engine::page::{Block, PageQuery, TableBlock, TableRow};
use crate::id::JobName;
use crate::phrase;
use crate::phrase::Value;
use crate::time::Timestamp;

/// Blogs that are shown at once.
const SHOWN: usize = 40;
/// The most failing blogs on the page of their job.
const FAILING_SHOWN: usize = 100;
/// Checks in a strip.
const CHECKS: usize = 30;
/// The query parameter of the position.
const AFTER: &str = "blogs_after";

/// The blogs of the config, by name; of one job or of all, or one blog.
pub(super) fn find(
    finder: &Finder,
    tx: &mut Tx<'_>,
    query: &PageQuery,
    job: Option<&str>,
    id: Option<&str>,
) -> db::Result<Option<Block>> {
    let after = query.find(AFTER).unwrap_or_default();
    let mut blogs: Vec<(&JobName, Blog)> = config::list_blogs(&finder.config)
        .filter(|(of, blog)| job.is_none_or(|job| job == of.as_str()) && blog.id.as_str() > after)
        .filter(|(_, blog)| id.is_none_or(|id| id == blog.id))
        .collect();
    blogs.sort_by(|(_, one), (_, other)| one.id.cmp(&other.id));
    let is_more = blogs.len() > SHOWN;
    blogs.truncate(SHOWN);
    let next = blogs.last().filter(|_| is_more).map(|(_, blog)| query.with(AFTER, &blog.id));
    let rows: db::Result<Vec<_>> = blogs.iter().map(|(job, blog)| row(tx, job, blog, finder.now)).collect();
    let rows = rows?;
    Ok((!rows.is_empty()).then(|| {
        Block::Table(TableBlock {
            title: phrase!("Blogs", "ブログ"),
            columns: vec![
                phrase!("blog", "ブログ"),
                phrase!("job", "ジョブ"),
                phrase!("read by", "確認方法"),
                phrase!("last check", "最終確認"),
                phrase!("last change", "最終更新"),
            ],
            rows,
            next,
        })
    }))
}

/// The blogs of a job whose last check failed, with the error.
pub(in crate::blogs) fn list_failing(
    tx: &mut Tx<'_>,
    job: &JobName,
    blogs: &[Blog],
    now: Timestamp,
) -> db::Result<Vec<Block>> {
    let mut rows = Vec::new();
    for (id, _) in store::list_failing(tx, job, FAILING_SHOWN)? {
        let Some(blog) = blogs.iter().find(|blog| blog.id == id) else { continue };
        let row = find_row(tx, job, blog, None, now)?;
        let check = store::list_checks(tx, &id, 1)?.pop();
        rows.push(TableRow {
            state: Some(row.state),
            cells: vec![
                id.as_str().into(),
                Value::link(&row.url),
                row.last_check_at.into(),
                row.failures_in_a_row.into(),
                check.as_ref().map(check_phrase).into(),
            ],
            about: Some(subject(&id).to_string()),
            ..TableRow::default()
        });
    }
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    Ok(vec![Block::Table(TableBlock {
        title: phrase!("Blogs that cannot be read", "確認できないブログ"),
        columns: vec![
            phrase!("blog", "ブログ"),
            phrase!("address", "アドレス"),
            phrase!("last check", "最終確認"),
            phrase!("failures in a row", "連続失敗"),
            phrase!("why", "理由"),
        ],
        rows,
        next: None,
    })])
}

fn row(tx: &mut Tx<'_>, job: &JobName, blog: &Blog, now: Timestamp) -> db::Result<TableRow> {
    let row = find_row(tx, job, blog, None, now)?;
    let mut checks = store::list_checks(tx, &blog.id, CHECKS)?;
    checks.reverse();
    Ok(TableRow {
        state: Some(row.state),
        cells: vec![
            blog.id.as_str().into(),
            job.as_str().into(),
            row.decided_by.map(Detector::phrase).into(),
            row.last_check_at.into(),
            row.last_change_at.into(),
        ],
        about: Some(subject(&blog.id).to_string()),
        chart: (!checks.is_empty()).then(|| strip(&checks)),
        ..TableRow::default()
    })
}

fn strip(checks: &[CheckRow]) -> Chart {
    let count = |marks: &[StripMark]| checks.iter().filter(|check| marks.contains(&mark(check))).count();
    let about = phrase!(
        "{all check}: {new} with something new, {failed} failed",
        "確認 {all} 回：新着あり {new} 回、失敗 {failed} 回",
        all = checks.len(),
        new = count(&[StripMark::New]),
        failed = count(&[StripMark::Failed])
    );
    let cell = |check: &CheckRow| StripCell {
        mark: mark(check),
        about: phrase!(
            "{at}: {said}",
            "{at}：{said}",
            at = Value::Moment(check.checked_at),
            said = check_phrase(check)
        ),
    };
    let cells = checks.iter().map(cell).collect();
    Chart { title: phrase!("Last checks", "最近の確認"), about, figure: Figure::Strip(cells) }
}

fn mark(check: &CheckRow) -> StripMark {
    match check {
        CheckRow { error_message: Some(_), .. } => StripMark::Failed,
        CheckRow { changed: true, .. } => StripMark::New,
        CheckRow { skipped: true, .. } => StripMark::Unchanged,
        _ => StripMark::Same,
    }
}
