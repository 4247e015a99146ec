//! `/job/{name}`: where a job stands, its runs, its position, its table in the config, its messages, and what can be done.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use serde_json::Value as Json;

use super::render::{Markup, Renderer};
use super::{Visit, blocks, layout, missing, runs, unavailable};
use crate::config::Config;
use crate::engine::overview::{self, RunMark};
use crate::engine::{Finder, View};
use crate::ledger::Subject;
use crate::web::Pages;

#[derive(Template)]
#[template(path = "pages/job.html")]
struct JobBody<'a> {
    r: &'a Renderer,
    name: &'a str,
    view: &'a View,
    runs: &'a [RunMark],
    strip: Markup,
    blocks: Vec<Markup>,
    config: Option<Configured>,
}

/// Its table in the file, without secrets.
struct Configured {
    /// The file and the line where it begins.
    place: String,
    keys: Vec<(String, String)>,
}

/// One job.
pub(super) async fn show(State(pages): State<Pages>, Path(name): Path<String>, visit: Visit) -> Response {
    let Some(finder) = pages.finder().map(Arc::new) else { return missing(&pages, &visit) };
    let (reading, wanted) = (Arc::clone(&finder), name.clone());
    let read = pages.db.read(move |tx| {
        let Some(view) = reading.find_exactly(tx, Subject::job(&wanted).as_str())?.pop() else {
            return Ok(None);
        };
        let job = reading.jobs.iter().find(|job| job.name.as_str() == wanted);
        let blocks = match job {
            Some(job) => job.collector.list_blocks(tx, &job.name, reading.now)?,
            None => Vec::new(),
        };
        Ok(Some((view, blocks, overview::list_runs(tx, &wanted)?)))
    });
    let (view, blocks, runs) = match read.await {
        Ok(Some(read)) => read,
        Ok(None) => return missing(&pages, &visit),
        Err(error) => return unavailable(&pages, &visit, &error),
    };
    let r = visit.renderer(&finder);
    let body = JobBody {
        r: &r,
        name: &name,
        view: &view,
        strip: runs::strip(&r, &name, &runs, "strip"),
        runs: &runs,
        blocks: blocks::render_all(&r, &blocks, &visit.query),
        config: find_config(&finder, &name),
    };
    layout::respond(&pages, &finder, &visit, &name, &body)
}

fn find_config(finder: &Finder, name: &str) -> Option<Configured> {
    let config: &Config = &finder.config;
    let job = config.find_job(name)?;
    let at = job.section.header_problem("");
    let file = at.file().file_name().map(|file| file.to_string_lossy().into_owned()).unwrap_or_default();
    let keys = job.section.to_json();
    let keys =
        keys.as_object().into_iter().flatten().map(|(key, value)| (key.clone(), plain(value))).collect();
    Some(Configured { place: format!("{file}:{}", at.line()), keys })
}

/// A value as the file has it, a table in a line of its own.
fn plain(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Array(items) if items.iter().any(Json::is_object) => {
            items.iter().map(plain).collect::<Vec<_>>().join("\n")
        }
        Json::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        Json::Object(pairs) => {
            let pair = |(key, value): (&String, &Json)| format!("{key} = {}", plain(value));
            pairs.iter().map(pair).collect::<Vec<_>>().join(" · ")
        }
        value => value.to_string(),
    }
}
