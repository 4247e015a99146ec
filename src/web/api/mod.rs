//! `/api/v1`: the content of the pages, for programs. It is independent of pipelines: it uses their descriptors.

mod act;
mod model;
mod overview;
mod rows;
mod search;
mod things;

use axum::Json;
use axum::extract::Query;
use axum::http::HeaderMap;
use serde::Deserialize;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::{IntoParams, Modify, OpenApi};

use super::problem::{PROBLEM_JSON, Problem};
use super::route::{Access, Route};
use super::{Pages, language};
use crate::engine::Finder;
use crate::phrase::Speech;
use crate::text::Language;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/overview", Access::Read, overview::show),
        Route::get("/api/v1/quotas", Access::Read, overview::list_quotas),
        Route::get("/api/v1/things", Access::Read, things::find),
        Route::get("/api/v1/things/{word}/{name}", Access::Read, things::show),
        Route::act("/api/v1/things/{word}/{name}/{verb}", act::perform),
        Route::get("/api/v1/search", Access::Read, search::find),
        Route::get("/api/v1/tables", Access::Read, rows::list_tables),
        Route::get("/api/v1/tables/{name}", Access::Read, rows::list_rows),
        Route::get("/api/v1/events", Access::Read, rows::list_events),
        Route::get("/api/v1/openapi.json", Access::Read, show_document),
    ]
}

/// The OpenAPI document, made from the handlers and their types.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "tsuzuki",
        description = "What tsuzuki has found, decided and sent. Log in with `Authorization: Bearer TOKEN`; \
                       `tsuzuki token create` makes one. Sentences are in the language of `lang` or `Accept-Language`."
    ),
    // Without login no credentials are needed.
    security(("token" = []), ()),
    modifiers(&Token),
    paths(
        overview::show,
        overview::list_quotas,
        things::find,
        things::show,
        act::perform,
        search::find,
        rows::list_tables,
        rows::list_rows,
        rows::list_events,
        show_document
    )
)]
struct Document;

/// How programs log in.
struct Token;

impl Modify for Token {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        document.components.get_or_insert_default().add_security_scheme("token", bearer);
    }
}

/// This description
#[utoipa::path(
    get, path = "/api/v1/openapi.json",
    responses(
        (status = 200, description = "An OpenAPI document", body = serde_json::Value),
        (status = "default", description = "A problem", body = Problem, content_type = PROBLEM_JSON)
    )
)]
async fn show_document() -> Json<utoipa::openapi::OpenApi> {
    Json(Document::openapi())
}

/// In which language sentences are.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct LanguageQuery {
    /// `en` or `ja`; else as `Accept-Language` says.
    lang: Option<String>,
}

/// The finder of things; a process without config has none.
fn finder(pages: &Pages) -> Result<Finder, Problem> {
    pages.finder().ok_or_else(|| Problem::not_found("nothing is watched here"))
}

/// The language of the response; moments in sentences are in the zone of the config.
fn speech(pages: &Pages, headers: &HeaderMap, Query(query): &Query<LanguageQuery>) -> Speech {
    let language = match query.lang.as_deref() {
        Some("en") => Language::En,
        Some("ja") => Language::Ja,
        _ => language::choose(headers, pages.language),
    };
    let zone = pages.finder().map(|finder| finder.config.app.timezone.time_zone().clone());
    Speech { language, zone }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;
    use crate::engine::events::RunEvent;
    use crate::engine::{RunOutcome, store};
    use crate::ledger::{Subject, event};
    use crate::phrase;
    use crate::web::tests::{AUTH, Answer, Site};
    use crate::web::token::Scope;

    const JOB: &str =
        "[[job]]\nname = \"feeds\"\nkind = \"blogs\"\nblog = [{ id = \"a\", url = \"https://a.example\" }]\n";

    /// A job that has run three times.
    async fn site(auth: &str) -> Site {
        let site = Site::serve(&format!("{auth}{JOB}")).await;
        for count in 1..=3 {
            let now = site.clock.now();
            let ended = site.pages.db.write(move |tx| {
                let said = phrase!("{count entry}", "{count} 件");
                store::mark_begun(tx, "feeds", now)?;
                store::mark_ended(tx, "feeds", RunOutcome::Success, &said, None, now)?;
                let run =
                    RunEvent { code: RunOutcome::Success, message: said, began_at: Some(now), new_count: 0 };
                event::record(tx, Some(&"feeds".parse().unwrap()), &Subject::job("feeds"), &run, now)
            });
            ended.await.unwrap();
        }
        site
    }

    fn json(answer: &Answer) -> Value {
        serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{error}: {}", answer.body))
    }

    #[tokio::test]
    async fn programs_see_what_pages_show_in_their_language() {
        let site = site("").await;
        let overview = json(&site.get("/api/v1/overview?lang=en", &[]).await);
        assert_eq!(
            (&overview["jobs"][0]["job_name"], &overview["jobs"][0]["state"]),
            (&"feeds".into(), &"ok".into())
        );
        assert_eq!(
            (&overview["jobs"][0]["message"], &overview["jobs"][0]["standing"]),
            (&"3 entries".into(), &"OK".into())
        );
        let overview = json(&site.get("/api/v1/overview", &["Accept-Language: ja"]).await);
        assert_eq!(
            (&overview["jobs"][0]["message"], &overview["jobs"][0]["standing"]),
            (&"3 件".into(), &"正常".into())
        );
        assert_eq!(overview["jobs"][0]["runs"][0]["message"], "1 件");
        let job = json(&site.get("/api/v1/things/job/feeds?lang=en", &[]).await);
        assert_eq!(
            (&job["kind"], &job["name"], &job["state"]),
            (&"job".into(), &"job:feeds".into(), &"ok".into())
        );
        let last = job["facts"].as_array().unwrap().iter().find(|fact| fact["label"] == "last run").unwrap();
        assert!(last["value"]["moment"].as_str().unwrap().starts_with("2026-01-15T00:02:11"), "{last}");
        let found = json(&site.get("/api/v1/things?name=feeds", &[]).await);
        assert_eq!(found[0]["name"], "job:feeds");
        assert_eq!(json(&site.get("/api/v1/quotas", &[]).await), serde_json::json!([]));
        let document = json(&site.get("/api/v1/openapi.json", &[]).await);
        assert!(document["openapi"].as_str().unwrap().starts_with("3."), "{document}");
        let refused = site.ask("PUT", "/api/v1/overview", &[], "").await;
        assert_eq!((refused.status, refused.header("allow")), (405, Some("GET,HEAD")));
        assert_eq!(json(&refused)["detail"], "`Allow` names the methods of this address");
    }

    #[tokio::test]
    async fn rows_come_page_by_page_and_every_table_can_be_asked_for() {
        let site = site("").await;
        let (mut next, mut seen) = (0, Vec::new());
        loop {
            let page = json(&site.get(&format!("/api/v1/events?limit=2&after={next}&lang=en"), &[]).await);
            let events = page["events"].as_array().unwrap().clone();
            if events.is_empty() {
                break;
            }
            seen.extend(events.iter().map(|event| event["text"].as_str().unwrap().to_owned()));
            next = page["next"].as_i64().unwrap();
        }
        assert_eq!(seen, ["success: 1 entry", "success: 2 entries", "success: 3 entries"]);
        let tables = json(&site.get("/api/v1/tables", &[]).await);
        let tables = tables.as_array().unwrap();
        assert_eq!(tables.len(), crate::app::tables().count());
        for table in tables {
            let name = table["name"].as_str().unwrap();
            let rows = json(
                &site.get(&format!("/api/v1/tables/{name}?limit=5&since=2026-01-01T00:00:00Z"), &[]).await,
            );
            assert_eq!(
                (&rows["columns"], &rows["rows"], &rows["next"]),
                (&table["columns"], &serde_json::json!([]), &Value::Null)
            );
        }
    }

    #[tokio::test]
    async fn refusals_are_problem_details_whoever_refuses() {
        let site = site(AUTH).await;
        let token = format!("Authorization: Bearer {}", site.token("t", Scope::Read).await);
        for (path, headers, status, detail) in [
            ("/api/v1/overview", &[][..], 401, "log in"),
            ("/api/v1/nothing", &[&*token], 404, "not found"),
            ("/api/v1/things/cat/x", &[&*token], 404, "things are: "),
            ("/api/v1/things/job/x", &[&*token], 404, "no job has this name"),
            ("/api/v1/tables/x", &[&*token], 404, "tables are: "),
            ("/api/v1/tables/messages?limit=0", &[&*token], 400, "from 1 to 1000"),
            ("/api/v1/tables/messages?limit=x", &[&*token], 400, "limit"),
            ("/api/v1/tables/messages?since=x", &[&*token], 400, "a moment is written"),
            ("/api/v1/things", &[&*token], 400, "name"),
        ] {
            let answer = site.get(path, headers).await;
            assert_eq!(
                (answer.status, answer.header("content-type")),
                (status, Some("application/problem+json")),
                "{path}"
            );
            let problem = json(&answer);
            assert_eq!(problem["status"], status);
            assert!(problem["detail"].as_str().unwrap().contains(detail), "{path}: {problem}");
        }
        assert!(site.get("/api/v1/overview", &[]).await.header("www-authenticate").is_some());
    }

    #[tokio::test]
    async fn numbers_and_badges_say_where_jobs_stand() {
        let site = site("").await;
        site.get("/metrics", &[]).await;
        let now = site.clock.now();
        let ended = site.pages.db.write(move |tx| {
            let run =
                RunEvent { code: RunOutcome::Failed, message: "x".into(), began_at: None, new_count: 0 };
            event::record(tx, None, &Subject::job("feeds"), &run, now)
        });
        ended.await.unwrap();
        let metrics = site.get("/metrics", &[]).await;
        assert!(metrics.header("content-type").unwrap().starts_with("application/openmetrics-text"));
        for line in [
            "tsuzuki_jobs{state=\"ok\"} 1",
            "tsuzuki_jobs{state=\"failing\"} 0",
            "tsuzuki_runs_total{job=\"feeds\",outcome=\"success\"} 0",
            "tsuzuki_job_failures_in_a_row{job=\"feeds\"} 0",
            "tsuzuki_job_last_success_timestamp_seconds{job=\"feeds\"} 1768435331",
            "tsuzuki_runs_total{job=\"feeds\",outcome=\"failed\"} 1",
            "tsuzuki_http_request_seconds_count{route=\"/metrics\",status=\"200\"} 1",
        ] {
            assert!(metrics.body.contains(&format!("{line}\n")), "{line}\n{}", metrics.body);
        }
        assert!(metrics.body.ends_with("# EOF\n"));
        for _ in 0..3 {
            site.get("/made/up", &[]).await;
        }
        let metrics = site.get("/metrics", &[]).await.body;
        assert!(metrics.contains("route=\"other\"") && !metrics.contains("made"), "{metrics}");
        let badge = site.get("/badge/feeds.svg", &["Accept-Language: en"]).await;
        assert!(
            badge.status == 200 && badge.body.contains("feeds") && badge.body.contains("● OK"),
            "{}",
            badge.body
        );
        for missing in ["/badge/feeds", "/badge/x.svg"] {
            assert_eq!(site.get(missing, &[]).await.status, 404, "{missing}");
        }
    }

    #[test]
    fn the_description_has_exactly_the_routes_there_are() {
        let routes: BTreeSet<String> =
            routes().iter().map(|route| format!("{} {}", route.method, route.path)).collect();
        let document = serde_json::to_value(Document::openapi()).unwrap();
        let paths = document["paths"].as_object().unwrap();
        let described: BTreeSet<String> = paths
            .iter()
            .flat_map(|(path, item)| {
                let methods = item.as_object().unwrap().keys();
                methods.map(move |method| format!("{} {path}", method.to_uppercase()))
            })
            .collect();
        assert_eq!(described, routes);
    }

    #[test]
    fn the_description_is_one_that_generators_of_clients_take() {
        let document = serde_json::to_value(Document::openapi()).unwrap();
        let operations = document["paths"].as_object().unwrap().values().flat_map(|item| {
            item.as_object().unwrap().values().map(|operation| operation["responses"].as_object().unwrap())
        });
        for responses in operations {
            for (status, response) in responses {
                assert!(response["description"].as_str().is_some_and(|text| !text.is_empty()), "{response}");
                let media_type = if status == "200" { "application/json" } else { PROBLEM_JSON };
                let content = response["content"].as_object().unwrap_or_else(|| panic!("{response}"));
                assert_eq!(content.keys().collect::<Vec<_>>(), [media_type], "{status}");
            }
            assert!(responses.contains_key("default"), "{responses:?}");
        }
        for (path, item) in document["paths"].as_object().unwrap() {
            let operations = item.as_object().unwrap().values();
            let parameters = operations.flat_map(|operation| operation["parameters"].as_array()).flatten();
            for parameter in parameters {
                let name = parameter["name"].as_str().unwrap();
                let place = if path.contains(&format!("{{{name}}}")) { "path" } else { "query" };
                assert_eq!(parameter["in"], place, "{path} {name}");
                assert_eq!(
                    parameter["required"],
                    place == "path" || ["q", "name"].contains(&name),
                    "{path} {name}"
                );
            }
        }
        let schemas = &document["components"]["schemas"];
        let jobs = &schemas["OverviewBody"]["properties"]["jobs"]["items"]["$ref"];
        assert_eq!(jobs, "#/components/schemas/JobBody");
        let next_run = &schemas["JobBody"]["properties"]["next_run_at"];
        assert_eq!((&next_run["type"][0], &next_run["format"]), (&"string".into(), &"date-time".into()));
        assert_eq!(document["components"]["securitySchemes"]["token"]["scheme"], "bearer");
        let find = |path: &str, name: &str| {
            let parameters = document["paths"][path]["get"]["parameters"].as_array().unwrap();
            parameters.iter().find(|parameter| parameter["name"] == name).unwrap()["schema"].clone()
        };
        assert_eq!(find("/api/v1/search", "q")["pattern"], "\\S");
        assert_eq!(find("/api/v1/tables/{name}", "since")["format"], "date-time");
        let limit = find("/api/v1/events", "limit");
        assert_eq!((&limit["minimum"], &limit["maximum"]), (&1.into(), &1000.into()));
    }
}
