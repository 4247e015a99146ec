//! Runs an action on a thing, as the buttons of the pages do.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{LanguageQuery, speech};
use crate::engine::{ActionOutcome, Deed, Verb};
use crate::ledger::Subject;
use crate::phrase::Phrase;
use crate::web::problem::{PROBLEM_JSON, Problem};
use crate::web::{Pages, act};

/// The confirmation of a destructive action.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Confirmed {
    /// `true` for what forgets something: without it the answer says what.
    #[serde(default)]
    yes: bool,
}

/// What was done.
#[derive(Serialize, ToSchema)]
pub(super) struct DoneBody {
    /// In words.
    text: String,
}

/// Runs, pauses, retries, approves … a thing
#[utoipa::path(
    post, path = "/api/v1/things/{word}/{name}/{verb}",
    params(
        ("word" = String, Path, description = "The sort of the thing"),
        ("name" = String, Path, description = "Its name"),
        ("verb" = String, Path, description = "run, pause, resume, retry, approve, skip, confirm, reset or cancel"),
        Confirmed, LanguageQuery
    ),
    responses(
        (status = 200, description = "It was done", body = DoneBody),
        (status = "default", description = "A problem", body = Problem, content_type = PROBLEM_JSON)
    )
)]
pub(super) async fn perform(
    State(pages): State<Pages>,
    headers: HeaderMap,
    Path((word, name, verb)): Path<(String, String, String)>,
    Query(Confirmed { yes }): Query<Confirmed>,
    language: Query<LanguageQuery>,
) -> Result<Json<DoneBody>, Problem> {
    let verb: Verb = verb.parse().map_err(|_| {
        let known: Vec<&str> = Verb::ALL.iter().map(|verb| verb.word()).collect();
        Problem::not_found(format!("verbs are: {}", known.join(", ")))
    })?;
    let about = Subject::new(&word, &name).to_string();
    let speech = speech(&pages, &headers, &language);
    let conflict = |why: &Phrase| Problem::new(StatusCode::CONFLICT, speech.phrase(why));
    match act::perform(&pages, &about, Deed { verb, is_confirmed: yes }).await? {
        ActionOutcome::Done(done) => Ok(Json(DoneBody { text: speech.phrase(&done) })),
        ActionOutcome::Refused(why) => Err(conflict(&why)),
        ActionOutcome::Unconfirmed(forgets) => {
            Err(Problem::new(StatusCode::CONFLICT, format!("{}; add `?yes=true`", speech.phrase(&forgets))))
        }
        ActionOutcome::Start(_) | ActionOutcome::Unknown => {
            Err(Problem::not_found(format!("there is no {word} of this name to {verb}")))
        }
    }
}
