//! The descriptor of the blogs pipeline.

use super::events::{BLOG, BlogEvent, CHANGE};
use super::store::{self, ChangeRow};
use super::{KIND, change, commands, config, entry, findings, make, opml, pages, topics, view};
use crate::config::{Flag, FlagShape, Kind};
use crate::engine::Pipeline;
use crate::engine::pipeline::{Example, ExportDocument, NOTHING_TO_REFRESH, Thing, Uses, WithoutChannel};
use crate::engine::table::{Cell, Table, TablePage};
use crate::ledger::event;
use crate::phrase;

pub static PIPELINE: Pipeline = Pipeline {
    kind: Kind::job::<config::Keys>(KIND).with_check(config::check),
    about: || phrase!("what is new on blogs, feeds and pages", "ブログ・フィード・ページの更新"),
    every: super::EVERY,
    make,
    topics,
    without_channel: WithoutChannel { instead: || "".into(), listing: "change ls" },
    check_jobs: config::check_ids,
    list_warnings: |_, _| crate::config::Problems::default(),
    prune: &[store::prune_history, store::prune_stray_history, store::prune_changes],
    quotas: &[],
    uses: Uses { llm: false, quota_for_tests: false },
    steps: &[],
    resume: |_, _| Ok(false),
    flags: &[Flag::new("blog", "[ID=]URL", || {
        phrase!(
            "the address of a blog, e.g. https://example.com; its host becomes its id unless ID= stands before it",
            "ブログの URL（例：https://example.com。前に ID= を付けなければホスト名が ID になる）"
        )
    })
    .shaped(FlagShape::Made(config::from_flags))
    .required()],
    example: Example { en: include_str!("init/en.toml"), ja: include_str!("init/ja.toml") },
    secrets: &[],
    lacks: |_| None,
    things: &[
        &Thing::new(entry::ENTRY, entry::find, "change ls"),
        &Thing { act: change::act, ..Thing::new(CHANGE, change::find, "change ls") },
        &Thing {
            word: BLOG,
            find: view::find,
            list_configured: |config| config::list_blogs(config).map(|(_, blog)| blog.id.clone()).collect(),
            list_stored: |tx| Ok(store::list_known_blogs(tx)?.into_iter().map(|(id, ..)| id).collect()),
            listed_by: "blog ls",
            resume: Some("blog resume"),
            act: commands::act,
        },
    ],
    tables: &[&CHANGES],
    pages: &[&pages::PAGE],
    documents: &[ExportDocument {
        name: "opml",
        about: "The blogs of the config, as OPML",
        render: |config, db, job| Box::pin(opml::render(config, db, job)),
    }],
    words: &[event::words::<BlogEvent>],
    list_findings: findings::list,
    list_busy: |_| Ok(Vec::new()),
    list_left: |tx, config| {
        let configured = config::list_blogs(config).map(|(_, blog)| blog.id.clone()).collect();
        view::list_left(tx, &configured)
    },
    list_needs: |_| Ok(Vec::new()),
    refresh: NOTHING_TO_REFRESH,
};

static CHANGES: Table = Table {
    name: "changes",
    about: "What was new on blogs; times are when it was found",
    columns: &[
        "id", "job_name", "blog_id", "found_at", "code", "held", "detector", "count", "titles", "urls",
        "error",
    ],
    page: |tx, filter, after| {
        let span = (filter.since, filter.until);
        let rows =
            store::list_changes_after(tx, after.number(), filter.owner.as_deref(), span, filter.limit)?;
        Ok(TablePage::of(&rows, |row| row.id, fields))
    },
    owner: |_, job| Some(job.to_owned()),
};

fn fields(change: &ChangeRow) -> Vec<Cell> {
    let entries = &change.detail.entries;
    vec![
        Cell::Int(change.id),
        Cell::text(&change.job_name),
        Cell::text(&change.blog_id),
        change.found_at.into(),
        Cell::word(change.code.word()),
        Cell::Flag(change.held),
        change.detail.detector.map_or(Cell::Null, |detector| Cell::word(detector.word())),
        Cell::Int(i64::try_from(change.detail.count()).unwrap_or(i64::MAX)),
        Cell::List(entries.iter().map(|entry| entry.title.clone().unwrap_or_default()).collect()),
        Cell::List(entries.iter().map(|entry| entry.url.clone().unwrap_or_default()).collect()),
        change.detail.error.as_ref().map_or(Cell::Null, |error| Cell::text(error.to_string())),
    ]
}
