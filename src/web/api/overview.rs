//! Every job at a glance.

use axum::Json;
use axum::extract::{Query, State};
use axum::http::HeaderMap;

use super::model::{OverviewBody, QuotaBody};
use super::{LanguageQuery, finder, speech};
use crate::engine::Overview;
use crate::web::Pages;
use crate::web::problem::{PROBLEM_JSON, Problem};

/// Every job at a glance, and what needs a person
#[utoipa::path(
    get, path = "/api/v1/overview", params(LanguageQuery),
    responses(
        (status = 200, description = "Every job, what needs you, and daily limits", body = OverviewBody),
        (status = "default", description = "A problem", body = Problem, content_type = PROBLEM_JSON)
    )
)]
pub(super) async fn show(
    State(pages): State<Pages>,
    headers: HeaderMap,
    language: Query<LanguageQuery>,
) -> Result<Json<OverviewBody>, Problem> {
    let overview = find(&pages).await?;
    Ok(Json(OverviewBody::new(&overview, &speech(&pages, &headers, &language))))
}

/// What was used of daily limits
#[utoipa::path(
    get, path = "/api/v1/quotas",
    responses(
        (status = 200, description = "One for each provider with a limit", body = Vec<QuotaBody>),
        (status = "default", description = "A problem", body = Problem, content_type = PROBLEM_JSON)
    )
)]
pub(super) async fn list_quotas(State(pages): State<Pages>) -> Result<Json<Vec<QuotaBody>>, Problem> {
    Ok(Json(find(&pages).await?.quotas.iter().map(QuotaBody::new).collect()))
}

async fn find(pages: &Pages) -> Result<Overview, Problem> {
    let finder = finder(pages)?;
    Ok(pages.db.read(move |tx| Overview::find(&finder, tx)).await?)
}
