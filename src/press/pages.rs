//! The page of press releases: the funnel with reasons, and every item with its state.

use super::events::numbered;
use super::model::{Item, Reason, Status};
use super::store::{self, ItemDelivery, ItemFilter, Standing};
use super::{KIND, view};
use crate::channel::{self, outbox};
use crate::db::{self, Tx};
use crate::engine::Finder;
use crate::engine::chart::{Chart, Figure, FunnelStep};
use crate::engine::page::{Block, Choice, Page, PageFilter, PageQuery, PageView, TableBlock, TableRow};
use crate::engine::walk::{Fit, Walk};
use crate::id::JobName;
use crate::phrase;
use crate::phrase::{Phrase, Value};
use crate::time::Timestamp;

const WALK: Walk = Walk { shown: 30, searched: 2_000 };
/// The funnel counts the newest items only: years of history would hide what happens now.
const NEWEST: usize = 2_000;

pub(super) static PAGE: Page =
    Page { slug: "press", title: || phrase!("Press", "プレス"), load, sheet: None };

fn load(finder: &Finder, tx: &mut Tx<'_>, query: &PageQuery) -> db::Result<PageView> {
    let mut page = PageView::new(phrase!("Press releases", "プレスリリース"));
    let filter = ItemQuery::of(query);
    page.filters = filter.filters(finder);
    let standings = store::count_newest(tx, filter.job, NEWEST)?;
    if standings.is_empty() {
        let text = phrase!(
            "No items yet. The first run records what the feed has, and posts nothing.",
            "記事はまだありません。初回の実行では、フィードの内容を記録するだけで投稿しません。"
        );
        page.blocks.push(Block::Empty { text, command: Some("run-due".to_owned()) });
        return Ok(page);
    }
    if filter.before.is_none() {
        page.blocks.push(Block::Charts(vec![funnel(&standings)]));
    }
    page.blocks.push(filter.find(tx, query)?);
    Ok(page)
}

/// The funnel of a job's items, for the page of the job.
pub(super) fn list_blocks(tx: &mut Tx<'_>, job: &JobName) -> db::Result<Vec<Block>> {
    let standings = store::count_newest(tx, Some(job.as_str()), NEWEST)?;
    let charts = (!standings.is_empty()).then(|| Block::Charts(vec![funnel(&standings)]));
    Ok(charts.into_iter().collect())
}

/// The filters of the page.
struct ItemQuery<'a> {
    job: Option<&'a str>,
    status: Option<Status>,
    reason: Option<Reason>,
    text: String,
    /// The item that the last page ended with: when it was checked, and its number.
    before: Option<(Timestamp, i64)>,
}

impl<'a> ItemQuery<'a> {
    fn of(query: &'a PageQuery) -> Self {
        let position = |text: &str| {
            let (checked_at, id) = text.split_once('/')?;
            Some((checked_at.parse().ok()?, id.parse().ok()?))
        };
        Self {
            job: query.find("job"),
            status: query.find("state").and_then(|status| Status::parse(status).ok()),
            reason: query.find("reason").and_then(|reason| Reason::parse(reason).ok()),
            text: query.find("text").unwrap_or_default().to_lowercase(),
            before: query.find("before").and_then(position),
        }
    }

    fn filters(&self, finder: &Finder) -> Vec<PageFilter> {
        let any = Choice::any(phrase!("any state", "すべて"));
        let states = any.chain(Status::ALL.iter().map(|of| Choice::new(of.word(), view::status_phrase(*of))));
        let reasons = Reason::ALL.iter().filter(|reason| **reason != Reason::None);
        let reasons = Choice::any(phrase!("any reason", "すべて"))
            .chain(reasons.map(|reason| Choice::new(reason.word(), reason.phrase())));
        let (state, reason) = (self.status.map(Status::word), self.reason.map(Reason::word));
        vec![
            PageFilter::job(finder, Some(KIND), self.job),
            PageFilter::one("state", phrase!("State", "状態"), states, state.unwrap_or_default()),
            PageFilter::one("reason", phrase!("Reason", "理由"), reasons, reason.unwrap_or_default()),
            PageFilter::text("text", phrase!("Text", "キーワード"), &self.text),
        ]
    }

    fn find(&self, tx: &mut Tx<'_>, query: &PageQuery) -> db::Result<Block> {
        let (items, next) = WALK.list(
            self.before,
            |before, limit| {
                let (job, status) = (self.job.map(str::to_owned), self.status);
                let filter = ItemFilter { job, status, reason: None, before: before.copied() };
                store::list(tx, &filter, limit)
            },
            |item| (item.last_checked_at, item.id),
            |item| self.fit(item),
        )?;
        let next = next.map(|(checked_at, id)| query.with("before", format!("{checked_at}/{id}")));
        if items.is_empty() && next.is_none() {
            let text = phrase!("Nothing of the sort was found.", "該当する記事はありません。");
            return Ok(Block::Empty { text, command: None });
        }
        let rows = items.iter().map(|item| row(tx, item)).collect::<db::Result<_>>()?;
        Ok(Block::Table(TableBlock {
            title: phrase!("Items", "記事"),
            columns: vec![
                phrase!("title", "タイトル"),
                phrase!("job", "ジョブ"),
                phrase!("state", "状態"),
                phrase!("published", "公開"),
                phrase!("failed attempts", "失敗回数"),
            ],
            rows,
            next,
        }))
    }

    fn fit(&self, item: &Item) -> Fit {
        let has = |text: &str| text.to_lowercase().contains(&self.text);
        let is_meant = self.reason.is_none_or(|reason| item.reason == Some(reason))
            && (self.text.is_empty()
                || has(&item.title)
                || has(&item.url)
                || item.summary.as_deref().is_some_and(has));
        is_meant.into()
    }
}

fn row(tx: &mut Tx<'_>, item: &Item) -> db::Result<TableRow> {
    let sent = store::list_deliveries(tx, &item.job_name, &item.url)?;
    Ok(TableRow {
        state: Some(view::state_of(item, &sent)),
        cells: vec![
            Value::from(&item.title),
            Value::from(&item.job_name),
            view::standing_in(tx, item)?.into(),
            item.published_at.into(),
            (item.retry_count > 0).then_some(item.retry_count).into(),
        ],
        about: Some(numbered(item.id).to_string()),
        detail: find_post(tx, item, &sent)?,
        // Finished items are retried from their own page.
        actions: if view::is_over(item) { Vec::new() } else { view::actions(item, &sent) },
        ..TableRow::default()
    })
}

/// The post as it was or will be sent, else the summary of the model.
fn find_post(tx: &mut Tx<'_>, item: &Item, sent: &[ItemDelivery]) -> db::Result<Option<(Phrase, String)>> {
    let newest = sent.iter().map(|sent| sent.id).max();
    let row = newest.map(|id| outbox::find(tx, id)).transpose()?.flatten();
    Ok(match (row, &item.summary) {
        (Some(row), _) => {
            let channel = row.channel.as_str();
            let label = phrase!("post to {channel}", "{channel} への投稿");
            Some((label, channel::as_text(&row.payload)))
        }
        (None, Some(summary)) => Some((phrase!("summary", "要約"), summary.clone())),
        (None, None) => None,
    })
}

fn funnel(standings: &[Standing]) -> Chart {
    let count = |fits: &dyn Fn(&Standing) -> bool| {
        standings.iter().filter(|standing| fits(standing)).map(|standing| standing.count).sum::<i64>()
    };
    let has_reason = |standing: &Standing| standing.reason.is_some_and(|reason| reason != Reason::None);
    let is_over = |standing: &Standing| standing.status == Status::Processed && !has_reason(standing);
    let found = count(&|_| true);
    let unscreened = count(&|standing| standing.status == Status::Unprocessed);
    let recorded = count(&|standing| is_over(standing) && !standing.has_post);
    let pending = count(&|standing| standing.status == Status::Pending);
    let posted = count(&|standing| is_over(standing) && standing.has_post);
    let stopped = standings.iter().filter(|standing| {
        standing.status == Status::Deferred || (standing.status == Status::Processed && has_reason(standing))
    });
    let mut reasons: Vec<(Phrase, i64)> = Vec::new();
    for standing in stopped {
        let why = standing.reason.unwrap_or(Reason::None).phrase();
        let line = match standing.status {
            Status::Processed => phrase!("closed: {why}", "終了：{why}"),
            _ => phrase!("put off: {why}", "延期：{why}"),
        };
        match reasons.iter_mut().find(|(known, _)| *known == line) {
            Some((_, count)) => *count += standing.count,
            None => reasons.push((line, standing.count)),
        }
    }
    let step = |name, count, dropped: Vec<(Phrase, i64)>| FunnelStep {
        name,
        count,
        dropped: dropped.into_iter().filter(|(_, count)| *count > 0).collect(),
    };
    Chart {
        title: phrase!("The newest {found item}", "新しい {found} 件"),
        about: phrase!(
            "{found} found, {posted} posted, {pending} waiting to be posted",
            "発見 {found} 件、投稿済み {posted} 件、投稿待ち {pending} 件"
        ),
        figure: Figure::Funnel(vec![
            step(
                phrase!("found", "発見"),
                found,
                vec![
                    (phrase!("recorded at the first run, or skipped", "初回の記録・対象外"), recorded),
                    (phrase!("not screened yet", "未判定"), unscreened),
                ],
            ),
            step(phrase!("screened", "判定済み"), found - unscreened - recorded, reasons),
            step(
                phrase!("worth a post", "投稿対象"),
                pending + posted,
                vec![(phrase!("waiting to be posted", "投稿待ち"), pending)],
            ),
            step(phrase!("posted", "投稿済み"), posted, Vec::new()),
        ]),
    }
}
