//! Each blog in one row: how it is read, when it was checked, and a strip of its last checks.

use crate::blogs::config;
use crate::blogs::events::subject;
use crate::blogs::model::Detector;
use crate::blogs::store::{self, CheckRow};
use crate::blogs::view::check_phrase;
use crate::db::{self, Tx};
use crate::engine::Finder;
use crate::engine::chart::{Chart, Figure, StripCell, StripMark};
use crate::engine::page::{Block, PageQuery, TableBlock, TableRow};
use crate::engine::view::State;
use crate::ledger::pause;
use crate::phrase;
use crate::phrase::Value;

/// Blogs that are shown at once.
const SHOWN: usize = 40;
/// Checks in a strip.
const CHECKS: usize = 30;
/// The name of the position in the address.
const AFTER: &str = "blogs_after";

/// The blogs of the config, by name; of one job or of all.
pub(super) fn find(
    finder: &Finder,
    tx: &mut Tx<'_>,
    query: &PageQuery,
    job: Option<&str>,
) -> db::Result<Option<Block>> {
    let after = query.find(AFTER).unwrap_or_default();
    let mut blogs: Vec<(String, String)> = config::list_blogs(&finder.config)
        .filter(|(of, _)| job.is_none_or(|job| job == of.as_str()))
        .map(|(of, blog)| (blog.id.clone(), of.to_string()))
        .filter(|(id, _)| id.as_str() > after)
        .collect();
    blogs.sort();
    let is_more = blogs.len() > SHOWN;
    blogs.truncate(SHOWN);
    let next = blogs.last().filter(|_| is_more).map(|(id, _)| query.with(AFTER, id));
    let rows = blogs.iter().map(|(id, job)| row(finder, tx, id, job)).collect::<db::Result<Vec<_>>>()?;
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

fn row(finder: &Finder, tx: &mut Tx<'_>, id: &str, job: &str) -> db::Result<TableRow> {
    let state = store::find_state(tx, id)?;
    let mut checks = store::list_checks(tx, id, CHECKS)?;
    checks.reverse();
    let is_paused = pause::find(tx, &subject(id), finder.now)?.is_some();
    let standing = match &state {
        _ if is_paused => State::Paused,
        None => State::New,
        Some(state) if state.failures_in_a_row > 0 => State::Failing,
        Some(_) => State::Ok,
    };
    let known = state.as_ref();
    Ok(TableRow {
        state: Some(standing),
        cells: vec![
            id.into(),
            job.into(),
            known.and_then(|state| state.decided_by).map(Detector::phrase).into(),
            known.and_then(|state| state.last_check_at).into(),
            known.and_then(|state| state.last_change_at).into(),
        ],
        about: Some(subject(id).to_string()),
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
