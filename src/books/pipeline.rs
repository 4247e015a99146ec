//! The descriptor of the books pipeline.

use super::events::{BOOK, BookCode, SearchCode, TOKEN};
use super::model::GOOGLE_BOOKS;
use super::store::{BookRow, DeliveryRow};
use super::{KIND, REQUESTS_PER_DAY, config, findings, make, pages, store, topics, view};
use crate::config::{Flag, FlagShape, Kind, TableKind};
use crate::engine::Pipeline;
use crate::engine::pipeline::{Example, NOTHING_TO_REFRESH, Thing, Uses, WithoutChannel};
use crate::engine::table::{Cell, Table, TablePage};
use crate::fetch::SecretHint;
use crate::phrase;

pub static PIPELINE: Pipeline = Pipeline {
    kind: Kind::job::<config::Keys>(KIND)
        .with_check(config::check)
        .with_env(config::ENV)
        .with_quota(GOOGLE_BOOKS)
        .naming(&[("quota", TableKind::Quota)])
        .without(config::UNUSED),
    about: || {
        phrase!(
            "new books that a search of Google Books finds, by mail",
            "Google ブックスの検索で見つかった新しい本（メールで通知）"
        )
    },
    every: super::EVERY,
    make,
    topics,
    without_channel: WithoutChannel { instead: || "".into(), listing: "book ls" },
    check_jobs: |_| crate::config::Problems::default(),
    list_warnings: config::list_warnings,
    prune: &[],
    quotas: &[(GOOGLE_BOOKS, REQUESTS_PER_DAY)],
    uses: Uses { llm: false, quota_for_tests: true },
    steps: &[],
    resume: |_, _| Ok(false),
    flags: &[
        Flag::new("query", "TEXT", || phrase!("what to search for", "検索する語"))
            .writes("queries")
            .shaped(FlagShape::List)
            .required(),
        Flag::new("book-lang", "LANGUAGE", || {
            phrase!("only volumes in this language, e.g. ja", "この言語の本だけ（例：ja）")
        })
        .writes("google_books.langRestrict"),
    ],
    example: Example { en: include_str!("init/en.toml"), ja: include_str!("init/ja.toml") },
    secrets: &[SecretHint {
        key: "api_key",
        check: "",
        en: "enable the Books API at https://console.cloud.google.com/apis/library/books.googleapis.com, then make \
             a key at https://console.cloud.google.com/apis/credentials",
        ja: "https://console.cloud.google.com/apis/library/books.googleapis.com で Books API を有効にし、\
             https://console.cloud.google.com/apis/credentials で API キーを作ります",
    }],
    // `list_warnings` reports a missing key.
    lacks: |_| None,
    things: &[&Thing::new(BOOK, view::find, "book ls"), &Thing::new(TOKEN, view::find_token, "token ls")],
    tables: &[&BOOKS, &DELIVERIES],
    pages: &[&pages::PAGE],
    documents: &[],
    words: &[BookCode::words, SearchCode::words],
    list_findings: findings::list,
    list_busy: |_| Ok(Vec::new()),
    list_left: |_, _| Ok(Vec::new()),
    list_needs: |_| Ok(Vec::new()),
    refresh: NOTHING_TO_REFRESH,
};

static BOOKS: Table = Table {
    name: "books",
    about: "Books; times are when they were first found",
    columns: &[
        "isbn13",
        "title",
        "authors",
        "publisher",
        "published_date",
        "description",
        "cover_url",
        "links",
        "first_seen_at",
        "last_seen_at",
        "last_delivered_at",
    ],
    page: |tx, filter, after| {
        let span = (filter.since, filter.until);
        let rows = store::list_books_after(tx, after.0, filter.owner.as_deref(), span, filter.limit)?;
        Ok(TablePage::of(&rows, |row| row.book.isbn13.clone(), book_fields))
    },
    owner: |_, job| Some(job.to_owned()),
};

fn book_fields(row: &BookRow) -> Vec<Cell> {
    let book = &row.book;
    vec![
        Cell::word(&book.isbn13),
        Cell::text(&book.title),
        Cell::List(book.authors.clone()),
        book.publisher.as_ref().into(),
        book.published_date.as_ref().into(),
        book.description.as_ref().into(),
        book.cover_url.as_ref().into(),
        Cell::Json(serde_json::json!(book.links)),
        row.first_seen_at.into(),
        row.last_seen_at.into(),
        row.last_delivered_at.into(),
    ]
}

static DELIVERIES: Table = Table {
    name: "deliveries",
    about: "Mails about books",
    columns: &["id", "job_name", "delivered_at", "isbn13_list"],
    page: |tx, filter, after| {
        let span = (filter.since, filter.until);
        let rows =
            store::list_deliveries_after(tx, after.number(), filter.owner.as_deref(), span, filter.limit)?;
        Ok(TablePage::of(&rows, |row| row.id, delivery_fields))
    },
    owner: |_, job| Some(job.to_owned()),
};

fn delivery_fields(row: &DeliveryRow) -> Vec<Cell> {
    vec![
        Cell::Int(row.id),
        Cell::text(&row.job_name),
        row.delivered_at.into(),
        Cell::List(row.isbn13_list.clone()),
    ]
}
