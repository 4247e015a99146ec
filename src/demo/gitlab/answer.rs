//! Answers of the API, as documented by GitLab.

use axum::body::Body;
use axum::http::{HeaderName, Request, Response};
use percent_encoding::percent_decode_str;
use serde_json::json;

use super::super::server::{self, answer_json};
use super::{Asked, FakeProject, UnknownRevision, World};

const DEFAULT_PER_PAGE: usize = 20;
const MOST_PER_PAGE: usize = 100;

pub(super) fn read_request(request: &Request<Body>, number: usize) -> Asked {
    let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let path = request.uri().path();
    let segments = path.trim_start_matches("/api/v4/").split('/').map(decode).collect();
    let query = url::form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes());
    let (token_by, token) = find_token(request).unzip();
    Asked { segments, query: query.into_owned().collect(), token, token_by, number }
}

impl Asked {
    fn number_of(&self, name: &str, default: usize) -> usize {
        self.parameter(name).and_then(|value| value.parse().ok()).filter(|n| *n > 0).unwrap_or(default)
    }
}

/// The token of a request, and the name of its header.
fn find_token(request: &Request<Body>) -> Option<(&'static str, String)> {
    let names = ["private-token", "job-token", "deploy-token", "authorization"];
    let (name, value) = names.into_iter().find_map(|name| Some((name, request.headers().get(name)?)))?;
    let value = value.to_str().ok()?;
    let token = if name == "authorization" { value.strip_prefix("Bearer ")? } else { value };
    Some((name, token.to_owned()))
}

pub(super) fn is_allowed(request: &Request<Body>, token: Option<&str>) -> bool {
    token.is_none_or(|token| find_token(request).is_some_and(|(_, sent)| sent == token))
}

pub(super) fn message(status: u16, text: &str) -> Response<Body> {
    answer_json(status, &json!({ "message": text }))
}

fn page_answer(headers: Vec<(&'static str, String)>, body: String) -> Response<Body> {
    let kind = ("content-type", "application/json".to_owned());
    server::answer(200, &[vec![kind], headers].concat(), body)
}

pub(super) async fn answer(world: &World, asked: &Asked) -> Response<Body> {
    let segments: Vec<&str> = asked.segments.iter().map(String::as_str).collect();
    match segments.as_slice() {
        ["groups", group, "projects"] => list_group(world, asked, group),
        ["projects"] => {
            let projects = world.lock().projects.clone();
            list_projects(asked, projects)
        }
        ["projects", name] => match find(world, name) {
            Some(project) => answer_json(200, &project_json(&project).await),
            None => message(404, "404 Project Not Found"),
        },
        ["projects", name, "repository", rest @ ..] => match find(world, name) {
            Some(project) => repository(world, asked, &project, rest).await,
            None => message(404, "404 Project Not Found"),
        },
        _ => message(404, "404 Not Found"),
    }
}

fn find(world: &World, name: &str) -> Option<FakeProject> {
    let settings = world.lock();
    settings.projects.iter().find(|project| project.path == name || project.id.to_string() == name).cloned()
}

async fn project_json(project: &FakeProject) -> serde_json::Value {
    let default_branch = project.repository.default_branch().await;
    json!({
        "id": project.id,
        "name": project.path.rsplit('/').next(),
        "path_with_namespace": project.path,
        "default_branch": default_branch,
        "empty_repo": default_branch.is_none(),
        "web_url": format!("https://gitlab.example/{}", project.path),
        "visibility": "private",
    })
}

fn list_group(world: &World, asked: &Asked, group: &str) -> Response<Body> {
    let prefix = format!("{group}/");
    let mut projects: Vec<FakeProject> = {
        let settings = world.lock();
        let is_in = |project: &&FakeProject| {
            project.path.starts_with(&prefix) || project.shared_with.as_deref() == Some(group)
        };
        settings.projects.iter().filter(is_in).cloned().collect()
    };
    if projects.is_empty() {
        return message(404, "404 Group Not Found");
    }
    if asked.parameter("with_shared") == Some("false") {
        projects.retain(|project| project.shared_with.is_none());
    }
    list_projects(asked, projects)
}

fn list_projects(asked: &Asked, mut projects: Vec<FakeProject>) -> Response<Body> {
    if asked.parameter("archived") == Some("false") {
        projects.retain(|project| !project.is_archived);
    }
    projects.sort_by_key(|project| project.id);
    let all: Vec<serde_json::Value> = projects
        .iter()
        .map(|project| {
            json!({
                "id": project.id, "path_with_namespace": project.path, "name": project.path,
                "default_branch": "main", "empty_repo": false,
            })
        })
        .collect();
    page_of(asked, all)
}

fn page_of(asked: &Asked, all: Vec<serde_json::Value>) -> Response<Body> {
    let per_page = asked.number_of("per_page", DEFAULT_PER_PAGE).min(MOST_PER_PAGE);
    let page = asked.number_of("page", 1);
    let more = all.len() > page * per_page;
    let items: Vec<_> = all.into_iter().skip((page - 1) * per_page).take(per_page).collect();
    let body = serde_json::Value::Array(items).to_string();
    page_answer(page_headers(asked, page, per_page, more), body)
}

/// No totals, as for commits; the next page in both headers.
fn page_headers(asked: &Asked, page: usize, per_page: usize, more: bool) -> Vec<(&'static str, String)> {
    let next = if more { (page + 1).to_string() } else { String::new() };
    let mut headers =
        vec![("x-page", page.to_string()), ("x-per-page", per_page.to_string()), ("x-next-page", next)];
    if more {
        let path = asked.segments.join("/");
        headers.push((
            "link",
            format!("<https://gitlab.example/api/v4/{path}?page={}>; rel=\"next\"", page + 1),
        ));
    }
    headers
}

async fn repository(world: &World, asked: &Asked, project: &FakeProject, rest: &[&str]) -> Response<Body> {
    match rest {
        ["branches"] => {
            let branches = project.repository.branches().await;
            page_of(asked, branches.iter().map(|(name, sha)| branch_json(name, sha)).collect())
        }
        ["branches", name] => match project.repository.head(name).await {
            Some(sha) => answer_json(200, &branch_json(name, &sha)),
            None => message(404, "404 Branch Not Found"),
        },
        ["commits", sha] => match project.repository.list(sha, 0, 1, true).await {
            Some((_, body)) => page_answer(Vec::new(), body[1..body.len() - 1].to_owned()),
            None => message(404, "404 Commit Not Found"),
        },
        ["commits"] => {
            let most = world.lock().most_per_page.unwrap_or(MOST_PER_PAGE);
            let per_page = asked.number_of("per_page", DEFAULT_PER_PAGE).min(most);
            let page = asked.number_of("page", 1);
            let revision = match asked.parameter("ref_name") {
                Some(revision) => revision.to_owned(),
                None => project.repository.default_branch().await.unwrap_or_default(),
            };
            let with_stats = asked.parameter("with_stats") == Some("true");
            match project.repository.list(&revision, (page - 1) * per_page, per_page, with_stats).await {
                // GitLab announces a next page whenever this one is full.
                Some((count, body)) => {
                    page_answer(page_headers(asked, page, per_page, count == per_page), body)
                }
                None if world.lock().unknown_revision == UnknownRevision::Empty => {
                    page_answer(page_headers(asked, page, per_page, false), "[]".into())
                }
                None => message(404, "404 Reference Not Found"),
            }
        }
        _ => message(404, "404 Not Found"),
    }
}

fn branch_json(name: &str, sha: &str) -> serde_json::Value {
    json!({ "name": name, "merged": false, "protected": true, "commit": { "id": sha } })
}

pub(super) async fn edited(response: Response<Body>, edit: fn(&mut serde_json::Value)) -> Response<Body> {
    let (parts, body) = response.into_parts();
    let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default();
    let mut json = serde_json::from_slice(&bytes).unwrap_or_default();
    edit(&mut json);
    let mut parts = parts;
    parts.headers.remove("content-length");
    Response::from_parts(parts, Body::from(json.to_string()))
}

/// Sets or removes headers.
pub(super) fn set_headers(response: &mut Response<Body>, headers: Vec<(&'static str, Option<String>)>) {
    for (name, value) in headers {
        let name = HeaderName::from_static(name);
        match value.and_then(|value| value.parse().ok()) {
            Some(value) => response.headers_mut().insert(name, value),
            None => response.headers_mut().remove(name),
        };
    }
}
