//! Things that have a name: what `why` shows.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use serde::Deserialize;
use utoipa::IntoParams;

use super::model::ThingBody;
use super::{LanguageQuery, finder, speech};
use crate::ledger::Subject;
use crate::web::Pages;
use crate::web::problem::{PROBLEM_JSON, Problem};

/// What is looked for.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Named {
    /// A name, an address, a number; with or without the sort of the thing before a colon.
    name: String,
}

/// Everything that a name may stand for
#[utoipa::path(
    get, path = "/api/v1/things", params(Named, LanguageQuery),
    responses(
        (status = 200, description = "Things; none when nothing has this name", body = Vec<ThingBody>),
        (status = "default", description = "A problem", body = Problem, content_type = PROBLEM_JSON)
    )
)]
pub(super) async fn find(
    State(pages): State<Pages>,
    headers: HeaderMap,
    Query(Named { name }): Query<Named>,
    language: Query<LanguageQuery>,
) -> Result<Json<Vec<ThingBody>>, Problem> {
    let finder = finder(&pages)?;
    let views = pages.db.read(move |tx| finder.find(tx, &name)).await?;
    let speech = speech(&pages, &headers, &language);
    Ok(Json(views.iter().map(|view| ThingBody::new(view, &speech)).collect()))
}

/// One thing: a job, a delivery, or what a pipeline works on
#[utoipa::path(
    get, path = "/api/v1/things/{word}/{name}",
    params(("word" = String, Path, description = "The sort of the thing"), ("name" = String, Path, description = "Its name"), LanguageQuery),
    responses(
        (status = 200, description = "The thing", body = ThingBody),
        (status = "default", description = "A problem", body = Problem, content_type = PROBLEM_JSON)
    )
)]
pub(super) async fn show(
    State(pages): State<Pages>,
    headers: HeaderMap,
    Path((word, name)): Path<(String, String)>,
    language: Query<LanguageQuery>,
) -> Result<Json<ThingBody>, Problem> {
    let finder = finder(&pages)?;
    if !finder.things.iter().any(|thing| thing.word == word) {
        let mut known: Vec<&str> = finder.things.iter().map(|thing| thing.word).collect();
        known.dedup();
        return Err(Problem::not_found(format!("things are: {}", known.join(", "))));
    }
    let subject = Subject::new(&word, &name).to_string();
    let views = pages.db.read(move |tx| finder.find_exactly(tx, &subject)).await?;
    let view = views.first().ok_or_else(|| Problem::not_found(format!("no {word} has this name")))?;
    Ok(Json(ThingBody::new(view, &speech(&pages, &headers, &language))))
}
