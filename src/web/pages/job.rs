//! `/job/{name}`: the state of a job, its runs, position, config table, messages and actions.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;

use super::render::{Markup, Renderer};
use super::{Visit, blocks, layout, missing, runs, unavailable};
use crate::config::Config;
use crate::engine::overview::{self, RunMark};
use crate::engine::{Job, View};
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
    /// Its config; `None` when the config does not name the job any more.
    job: Option<&'a Job>,
    /// The file and the line where its table begins, and the table without secrets.
    config: Option<(String, String)>,
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
        job: finder.jobs.iter().find(|job| job.name.as_str() == name),
        blocks: blocks::render_all(&r, &blocks, &visit.query),
        config: find_config(&finder.config, &name),
    };
    layout::respond(&pages, &finder, &visit, &name, &body)
}

fn find_config(config: &Config, name: &str) -> Option<(String, String)> {
    let at = config.find_job(name)?.section.header_problem("".into());
    let file = at.file().file_name().map(|file| file.to_string_lossy().into_owned()).unwrap_or_default();
    let text = config.masked_text();
    // Its subtables follow it; the next other table ends it.
    let is_own = |line: &&str| !line.starts_with('[') || line.trim_start_matches('[').starts_with("job.");
    let mut lines = text.lines().skip(at.line().saturating_sub(1));
    let header = lines.next()?;
    let table: Vec<&str> = std::iter::once(header).chain(lines.take_while(is_own)).collect();
    // Comments above the next table belong to that one.
    let end = table.iter().rposition(|line| !line.is_empty() && !line.starts_with('#'))?;
    Some((format!("{file}:{}", at.line()), table[..=end].join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::tests::parse;

    #[test]
    fn the_table_of_a_job_is_shown_whole_and_without_what_follows_it() {
        let own = "[[job]]\nname = \"a\"\nkind = \"blogs\" # mine\n\n# one\n[[job.blog]]\nid = \"x\"\nurl = \"https://x.example\"";
        let config = parse(&format!(
            "[web]\n{own}\n\n# another\n[[job]]\nname = \"b\"\nkind = \"blogs\"\nblog = [{{ id = \"y\", url = \"https://y.example\" }}]\n"
        ));
        assert_eq!(find_config(&config, "a"), Some(("tsuzuki.toml:2".to_owned(), own.to_owned())));
        assert_eq!(find_config(&config, "b").unwrap().0, "tsuzuki.toml:12");
        assert_eq!(find_config(&config, "c"), None);
    }
}
