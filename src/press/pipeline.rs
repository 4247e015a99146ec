//! The descriptor of the press pipeline.

use super::events::{FEED, FeedCode, ITEM, ItemCode};
use super::{Item, KIND, Keys, commands, findings, gone, make, pages, store, topics, view};
use crate::config::{Flag, Kind, TableKind};
use crate::engine::pipeline::{Example, NOTHING_TO_REFRESH, Thing, Uses, WithoutChannel};
use crate::engine::table::{Cell, Table, TablePage};
use crate::engine::{ActionOutcome, Pipeline, Verb};
use crate::ledger::Subject;
use crate::phrase;

pub static PIPELINE: Pipeline = Pipeline {
    kind: Kind::job::<Keys>(KIND).naming(&[("llm", TableKind::Llm)]),
    about: || {
        phrase!(
            "press releases of a feed, screened and summarised by a model, then posted",
            "フィードの報道発表（モデルが選別・要約して投稿）"
        )
    },
    every: super::EVERY,
    make,
    topics,
    without_channel: WithoutChannel {
        instead: || {
            phrase!(
                "it collects and screens, but summarises and posts nothing; ",
                "収集と判定だけを行い、要約も投稿もしません。"
            )
        },
        listing: "item ls",
    },
    check_jobs: |_| crate::config::Problems::default(),
    list_warnings: |_, _| crate::config::Problems::default(),
    prune: &[],
    quotas: &[],
    uses: Uses { llm: true, quota_for_tests: false },
    steps: &["collect", "screen", "post"],
    resume: gone::resume,
    flags: &[
        Flag::new("feed", "URL", || phrase!("the address of the feed", "フィードの URL")).required(),
        Flag::new("llm", "NAME", || phrase!("the [llm.NAME] to ask", "使用するモデル（[llm.NAME] の NAME）")),
    ],
    example: Example { en: include_str!("init/en.toml"), ja: include_str!("init/ja.toml") },
    secrets: &[],
    lacks: |_| None,
    things: &[
        &Thing { find: view::find_by_number, ..ITEM_AT },
        &ITEM_AT,
        &Thing {
            word: FEED,
            find: |_, _, _| Ok(Vec::new()),
            resume: Some("job resume"),
            // A feed has the name of its job, which is resumed, too.
            act: |finder, tx, name, deed| match deed.verb {
                Verb::Resume => finder.act(tx, Subject::job(name).as_str(), deed),
                _ => Ok(ActionOutcome::Unknown),
            },
            ..ITEM_AT
        },
    ],
    tables: &[&ITEMS],
    pages: &[&pages::PAGE],
    documents: &[],
    words: &[ItemCode::words, FeedCode::words],
    list_findings: findings::list,
    list_busy: |_| Ok(Vec::new()),
    list_left: |_, _| Ok(Vec::new()),
    list_needs: |_| Ok(Vec::new()),
    refresh: NOTHING_TO_REFRESH,
};

const ITEM_AT: Thing = Thing { act: commands::act, ..Thing::new(ITEM, view::find, "item ls") };

static ITEMS: Table = Table {
    name: "items",
    about: "What press jobs found; times are those of publication",
    columns: &[
        "id",
        "job_name",
        "url",
        "title",
        "published_at",
        "status",
        "reason",
        "retry_count",
        "created_at",
        "last_checked_at",
        "not_before",
        "is_held",
        "summary",
        "verdict",
    ],
    page: |tx, filter, after| {
        let span = (filter.since, filter.until);
        let rows = store::list_after(tx, after.number(), filter.owner.as_deref(), span, filter.limit)?;
        Ok(TablePage::of(&rows, |item| item.id, fields))
    },
    owner: |_, job| Some(job.to_owned()),
};

fn fields(item: &Item) -> Vec<Cell> {
    vec![
        Cell::Int(item.id),
        Cell::text(&item.job_name),
        Cell::text(&item.url),
        Cell::text(&item.title),
        item.published_at.into(),
        Cell::word(item.status.word()),
        item.reason.map_or(Cell::Null, |reason| Cell::word(reason.word())),
        Cell::Int(item.retry_count.into()),
        item.created_at.into(),
        item.last_checked_at.into(),
        item.not_before.into(),
        Cell::Flag(item.is_held),
        item.summary.as_ref().into(),
        item.verdict.as_ref().into(),
    ]
}
