//! Rows, page by page: the tables of the pipelines, and everything that happened.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use serde::Deserialize;
use utoipa::IntoParams;

use super::model::{EventBody, EventsBody, RowsBody, TableBody};
use super::{LanguageQuery, finder, speech};
use crate::app;
use crate::engine::Table;
use crate::engine::table::{After, TableFilter};
use crate::ledger::event;
use crate::time::Timestamp;
use crate::web::Pages;
use crate::web::problem::{PROBLEM_JSON, Problem};

/// Rows of an answer, unless it is asked for fewer.
const LIMIT: usize = 100;
/// Rows of an answer at most.
const MAX_LIMIT: usize = 1_000;

/// Which rows are meant.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Wanted {
    /// What `next` of the answer before said; the first rows without it.
    after: Option<String>,
    /// How many rows, 100 unless said otherwise, 1000 at most.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Of this job only.
    job: Option<String>,
    /// From this moment on, such as `2026-01-15T00:00:00Z`.
    #[param(format = DateTime)]
    since: Option<String>,
    /// Before this moment.
    #[param(format = DateTime)]
    until: Option<String>,
}

/// The tables that can be asked for
#[utoipa::path(
    get, path = "/api/v1/tables",
    responses(
        (status = 200, description = "Their names and columns", body = Vec<TableBody>),
        (status = "default", description = "A problem", body = Problem, content_type = PROBLEM_JSON)
    )
)]
pub(super) async fn list_tables() -> Json<Vec<TableBody>> {
    let body =
        |table: &Table| TableBody { name: table.name, about: table.about, columns: table.columns.to_vec() };
    Json(app::tables().map(body).collect())
}

/// Rows of one table, as `export` has them
#[utoipa::path(
    get, path = "/api/v1/tables/{name}", params(("name" = String, Path, description = "The table"), Wanted),
    responses(
        (status = 200, description = "Rows, and where the next ones begin", body = RowsBody),
        (status = "default", description = "A problem", body = Problem, content_type = PROBLEM_JSON)
    )
)]
pub(super) async fn list_rows(
    State(pages): State<Pages>,
    Path(name): Path<String>,
    Query(wanted): Query<Wanted>,
) -> Result<Json<RowsBody>, Problem> {
    let table = app::tables().find(|table| table.name == name).ok_or_else(|| {
        let known: Vec<&str> = app::tables().map(|table| table.name).collect();
        Problem::not_found(format!("tables are: {}", known.join(", ")))
    })?;
    let mut filter = TableFilter { limit: limit(wanted.limit)?, ..TableFilter::default() };
    filter.since = moment(wanted.since.as_deref())?.unwrap_or(filter.since);
    filter.until = moment(wanted.until.as_deref())?.unwrap_or(filter.until);
    if let Some(job) = wanted.job {
        let finder = finder(&pages)?;
        let owner = (table.owner)(&finder.config, &job);
        filter.owner =
            Some(owner.ok_or_else(|| {
                Problem::not_found(format!("the job `{job}` has no rows in `{}`", table.name))
            })?);
    }
    let (after, limit) = (wanted.after.unwrap_or_default(), filter.limit);
    let mut page = pages.db.read(move |tx| (table.page)(tx, &filter, After(&after))).await?;
    if page.rows.len() < limit {
        page.next = None;
    }
    Ok(Json(RowsBody::new(table.columns, page)))
}

/// What is asked for of events.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Later {
    /// What `next` of the answer before said; the oldest events without it.
    after: Option<i64>,
    /// How many events, 100 unless said otherwise, 1000 at most.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

/// Everything that happened, oldest first
#[utoipa::path(
    get, path = "/api/v1/events", params(Later, LanguageQuery),
    responses(
        (status = 200, description = "Events, and where the next ones begin", body = EventsBody),
        (status = "default", description = "A problem", body = Problem, content_type = PROBLEM_JSON)
    )
)]
pub(super) async fn list_events(
    State(pages): State<Pages>,
    headers: HeaderMap,
    Query(later): Query<Later>,
    language: Query<LanguageQuery>,
) -> Result<Json<EventsBody>, Problem> {
    let (after, limit) = (later.after.unwrap_or(0), limit(later.limit)?);
    let events = pages.db.read(move |tx| event::list_settled_after(tx, after, limit)).await?;
    let (speech, finder) = (speech(&pages, &headers, &language), pages.finder());
    let next = events.last().map_or(after, |last| last.id);
    let body = |numbered: event::Numbered| {
        let text = finder.as_ref().map(|finder| speech.phrase(&finder.words(&numbered.event)));
        EventBody::new(numbered, text.unwrap_or_default())
    };
    Ok(Json(EventsBody { events: events.into_iter().map(body).collect(), next }))
}

fn limit(wanted: Option<usize>) -> Result<usize, Problem> {
    match wanted {
        None => Ok(LIMIT),
        Some(limit @ 1..=MAX_LIMIT) => Ok(limit),
        Some(_) => Err(Problem::bad_request("`limit` is a number from 1 to 1000")),
    }
}

fn moment(text: Option<&str>) -> Result<Option<Timestamp>, Problem> {
    let parse = |text: &str| {
        text.parse().map_err(|_| Problem::bad_request("a moment is written like 2026-01-15T00:00:00Z"))
    };
    text.map(parse).transpose()
}
