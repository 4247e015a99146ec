//! A preview of what a run would walk: fetches projects, branches and heads from the host, and stores nothing.

use std::collections::BTreeMap;

use futures_util::StreamExt as _;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::GitSource;
use super::host::{self, Host};
use super::run::decide::{self, HostJob};
use super::run::targets;
use super::store::{branches, projects};
use super::sync::{self, NotFound};
use crate::db::Db;
use crate::engine::{Failure, Preview, PreviewItem};
use crate::phrase::Phrase;

/// The most branches whose heads are fetched.
const MAX_HEADS: usize = 50;

/// A branch that a run would walk.
struct Walked {
    remote_id: i64,
    path: String,
    branch: String,
    /// The commit up to which everything is stored.
    known_head: Option<String>,
}

/// What a run of `source` would walk now.
pub(super) async fn preview(
    source: &GitSource,
    jobs_on_host: &[HostJob],
    client: &dyn Host,
    db: &Db,
) -> Result<Preview, Failure> {
    let stop = CancellationToken::new();
    let named = sync::fetch_named(source, client, &stop).await?;
    let failed = |missing: NotFound| {
        PreviewItem::failed(
            missing.what.map_or_else(|| source.host.clone(), |what| what.to_string()),
            missing.why,
        )
    };
    let mut items: Vec<PreviewItem> = named.problems.into_iter().map(failed).collect();
    let mut wanted: BTreeMap<(i64, String), String> = BTreeMap::new();
    for project in named.found {
        let default = project.default_branch.as_ref();
        let (names, problem) =
            targets::fetch_wanted_branches(source, client, project.remote_id, default, &stop).await?;
        items.extend(problem.map(|why| PreviewItem::failed(format!("{} branches", project.path), why)));
        wanted.extend(names.into_iter().map(|name| ((project.remote_id, name), project.path.clone())));
    }
    let walked = list_walked(source, jobs_on_host, db, wanted).await?;
    let mut notes: Vec<String> = Vec::new();
    if walked.is_empty() && items.is_empty() {
        let words = "a run would walk nothing: neither `projects` nor `group` brings a branch";
        notes.push(format!("{words}, and none was added with `tsuzuki branch add`"));
    }
    if let Some(more) = walked.len().checked_sub(MAX_HEADS).filter(|more| *more > 0) {
        notes.push(format!("a run would walk {more} more; their heads were not fetched"));
    }
    let previews = futures_util::stream::iter(walked.into_iter().take(MAX_HEADS))
        .map(|walked| preview_branch(walked, client, &stop))
        .buffered(source.keys.concurrency);
    items.extend(previews.collect::<Vec<_>>().await);
    Ok(Preview { items, notes: notes.into_iter().map(Phrase::from).collect() })
}

/// The branches that are configured or were collected before, with their states.
async fn list_walked(
    source: &GitSource,
    jobs_on_host: &[HostJob],
    db: &Db,
    wanted: BTreeMap<(i64, String), String>,
) -> Result<Vec<Walked>, Failure> {
    let (host, jobs_on_host, me) = (source.host.clone(), jobs_on_host.to_vec(), source.host_job());
    let walked = db
        .read(move |tx| {
            let mut wanted = wanted.clone();
            let known = projects::list(tx, Some(&host))?;
            let find = |id: i64| known.iter().find(|project| project.project_id == id);
            for known in branches::list_owned(tx, &host)? {
                if known.is_ignored || !decide::may_take(&jobs_on_host, &me, &known.owner) {
                    let remote_id = find(known.project_id).map(|project| project.remote_id);
                    wanted.remove(&(remote_id.unwrap_or(known.project_id), known.branch_name));
                }
            }
            for target in branches::list_collected(tx, &host)? {
                if let Some(project) = find(target.project_id)
                    && decide::is_fallback_job(&jobs_on_host, &me, target.job_name.as_deref())
                {
                    wanted.insert((project.remote_id, target.branch_name), project.path.clone());
                }
            }
            let mut walked = Vec::with_capacity(wanted.len());
            for ((remote_id, branch), path) in wanted {
                let project = known.iter().find(|project| project.remote_id == remote_id);
                let known_head = match project {
                    Some(project) => branches::find_state(tx, project.project_id, &branch)?.complete_head,
                    None => None,
                };
                walked.push(Walked { remote_id, path, branch, known_head });
            }
            Ok(walked)
        })
        .await?;
    Ok(walked)
}

async fn preview_branch(walked: Walked, client: &dyn Host, stop: &CancellationToken) -> PreviewItem {
    let Walked { remote_id, path, branch, known_head } = walked;
    let what = format!("{path} {branch}");
    let head = match client.fetch_head(remote_id, &branch, stop).await {
        Ok(head) => head,
        Err(host::Error::Missing { host, .. }) => {
            return PreviewItem::failed(what, format!("{host} has no such branch"));
        }
        Err(error) => return PreviewItem::failed(what, error.phrase()),
    };
    let short = |sha: &str| sha.get(..8).unwrap_or(sha).to_owned();
    let found = match &known_head {
        None => format!("new: everything up to {} would be walked", short(&head)),
        Some(known) if *known == head => format!("up to date at {}", short(&head)),
        Some(known) => format!("would be walked from {} to {}", short(known), short(&head)),
    };
    let detail = json!({ "project": path, "branch": branch, "head": head, "known_head": known_head });
    PreviewItem { detail, ..PreviewItem::fine(what, found) }
}
