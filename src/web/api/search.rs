//! One search for everything.

use axum::Json;
use axum::extract::{Query, State};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::finder;
use crate::engine::finding::{FoundThing, SearchWords};
use crate::web::Pages;
use crate::web::problem::{PROBLEM_JSON, Problem};

/// What is looked for.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Sought {
    /// Words that all have to be there, as parts of words or as a whole.
    #[param(pattern = r"\S")]
    q: String,
}

/// Something that has all of the words.
#[derive(Serialize, ToSchema)]
pub(super) struct HitBody {
    /// The word and the name, as `why` takes them.
    name: String,
    title: String,
    /// Where it is, out there.
    link: Option<String>,
    /// When it was published, or found.
    #[schema(format = DateTime)]
    at: Option<String>,
}

impl From<FoundThing> for HitBody {
    fn from(finding: FoundThing) -> Self {
        let FoundThing { about: name, title, link, at, .. } = finding;
        Self { name, title, link, at: at.map(|at| at.to_string()) }
    }
}

/// What has all of the words, among the newest 5000 of each sort
#[utoipa::path(
    get, path = "/api/v1/search", params(Sought),
    responses(
        (status = 200, description = "What was found, by sort, the newest first", body = Vec<HitBody>),
        (status = "default", description = "A problem", body = Problem, content_type = PROBLEM_JSON)
    )
)]
pub(super) async fn find(
    State(pages): State<Pages>,
    Query(Sought { q }): Query<Sought>,
) -> Result<Json<Vec<HitBody>>, Problem> {
    let finder = finder(&pages)?;
    let words = SearchWords::new(&q).ok_or_else(|| Problem::bad_request("`q` has no words"))?;
    let hits = pages.db.read(move |tx| finder.search(tx, &words)).await?;
    Ok(Json(hits.into_iter().map(HitBody::from).collect()))
}
