//! Which branches a run collects: everything collected before, and what the config names.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::StreamExt as _;
use tokio_util::sync::CancellationToken;

use super::Source;
use super::gitlab::{self, Client};
use super::jobs_on_host::{self, HostJob};
use super::model::{Project, RemoteProject};
use super::store::branches::{self, Owned};
use super::store::projects;
use crate::db::{self, Db, Tx};
use crate::engine::run::Target;
use crate::time::Timestamp;

/// The targets of one source, and what could not be found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// What to collect.
    pub targets: Vec<Target>,
    /// One line for each project that could not be looked up.
    pub problems: Vec<String>,
}

/// Why targets could not be found at all.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// GitLab did not answer as needed.
    #[error(transparent)]
    Gitlab(#[from] gitlab::Error),
    /// The database refused.
    #[error(transparent)]
    Db(#[from] db::Error),
}

/// A project of the config, and what became of it.
enum Looked {
    Here(RemoteProject),
    Gone(String),
    Trouble(String),
}

/// The projects that the config names, as GitLab has them.
#[derive(Default)]
pub(super) struct Named {
    pub(super) found: Vec<RemoteProject>,
    pub(super) problems: Vec<NotFound>,
    /// Names that GitLab does not know.
    gone: Vec<String>,
    /// Names that GitLab had trouble with.
    unsure: Vec<String>,
    /// Whether that is all there is: GitLab had no trouble with any of it.
    is_whole: bool,
}

/// Something of the config that could not be looked up.
pub(super) struct NotFound {
    /// What, unless `why` says it.
    pub(super) what: Option<String>,
    /// Why not.
    pub(super) why: String,
}

impl NotFound {
    fn new(what: String, why: String) -> Self {
        Self { what: Some(what), why }
    }
}

impl std::fmt::Display for NotFound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.what {
            Some(what) => write!(f, "{what}: {}", self.why),
            None => f.write_str(&self.why),
        }
    }
}

/// The projects of a job, brought up to date.
pub struct Synced {
    /// Those that the config names.
    pub projects: Vec<Project>,
    /// One line for each that could not be looked up.
    pub problems: Vec<String>,
    /// Whether the config names no others.
    pub is_whole: bool,
}

/// Asks GitLab for the projects that the config names.
pub(super) async fn fetch_named(
    source: &Source,
    client: &Client,
    stop: &CancellationToken,
) -> Result<Named, gitlab::Error> {
    let names: Vec<String> = source.keys.projects.iter().map(ToString::to_string).collect();
    let looked: Vec<(String, Result<Looked, gitlab::Error>)> = futures_util::stream::iter(names)
        .map(|name| async move {
            let looked = look_up(client, &name, stop).await;
            (name, looked)
        })
        .buffered(source.keys.concurrency)
        .collect()
        .await;
    let Named { mut found, mut problems, mut gone, mut unsure, .. } = Named::default();
    let mut is_whole = true;
    for (name, looked) in looked {
        match looked? {
            Looked::Here(remote) => found.push(remote),
            Looked::Gone(why) => {
                let why = format!("{why}; check `projects`, or whether the token may see it");
                problems.push(NotFound::new(format!("project `{name}`"), why));
                gone.push(name);
            }
            Looked::Trouble(why) => {
                problems.push(NotFound::new(format!("project `{name}`"), why));
                unsure.push(name);
            }
        }
    }
    if let Some(group) = &source.keys.group {
        match client.fetch_group(group.as_str(), stop).await {
            Ok(remote) => found.extend(remote),
            Err(gitlab::Error::Missing(_)) => {
                let why =
                    format!("group `{group}` does not exist, or the token may not see it; check `group`");
                problems.push(NotFound { what: None, why });
            }
            Err(gitlab::Error::Failed(why) | gitlab::Error::Forbidden(why)) => {
                problems.push(NotFound::new(format!("group `{group}`"), why));
                is_whole = false;
            }
            Err(error) => return Err(error),
        }
    }
    if let Some(silence) = client.find_silence().filter(|_| found.is_empty() && gone.is_empty()) {
        return Err(silence);
    }
    is_whole &= unsure.is_empty();
    Ok(Named { found, problems, gone, unsure, is_whole })
}

/// Brings the projects that the config names up to date: added, renamed, or marked as gone; never deleted.
pub async fn sync_projects(
    source: &Source,
    client: &Client,
    db: &Db,
    now: Timestamp,
    stop: &CancellationToken,
) -> Result<Synced, Error> {
    let Named { found, problems, gone, unsure, is_whole } = fetch_named(source, client, stop).await?;
    let (host, job) = (source.host.clone(), source.job.clone());
    let projects = db
        .write(move |tx| {
            let known = projects::list(tx, Some(&host))?;
            let named = |names: &[String], project: &Project| {
                names.iter().any(|name| *name == project.path || *name == project.remote_id.to_string())
            };
            for project in known.iter().filter(|project| named(&gone, project)) {
                projects::mark_removed(tx, project.project_id, &job, now)?;
            }
            let mut synced = Vec::with_capacity(found.len());
            for remote in &found {
                synced.push(projects::put(tx, &host, remote, now)?);
            }
            // GitLab had trouble with these; what is known of them is good enough.
            synced.extend(known.into_iter().filter(|project| named(&unsure, project)));
            synced.sort_by_key(|project| project.project_id);
            synced.dedup_by_key(|project| project.project_id);
            Ok(synced)
        })
        .await?;
    let problems = problems.iter().map(NotFound::to_string).collect();
    Ok(Synced { projects, problems, is_whole })
}

async fn look_up(client: &Client, name: &str, stop: &CancellationToken) -> Result<Looked, gitlab::Error> {
    match client.fetch_project(name, stop).await {
        Ok(remote) => Ok(Looked::Here(remote)),
        Err(gitlab::Error::Missing(why)) => Ok(Looked::Gone(format!("GitLab answers 404 ({why})"))),
        Err(
            error @ (gitlab::Error::Failed(_) | gitlab::Error::Forbidden(_) | gitlab::Error::Refused { .. }),
        ) => Ok(Looked::Trouble(error.to_string())),
        Err(error) => Err(error),
    }
}

/// Looks again at every project of the host that is known but that the config does not name.
pub async fn sync_known(
    source: &Source,
    client: &Client,
    db: &Db,
    now: Timestamp,
    stop: &CancellationToken,
) -> Result<Vec<String>, Error> {
    let host = source.host.clone();
    let known = db.read(move |tx| projects::list(tx, Some(&host))).await?;
    let mut problems = Vec::new();
    for project in known {
        let host = source.host.clone();
        match look_up(client, &project.remote_id.to_string(), stop).await? {
            Looked::Here(remote) => {
                db.write(move |tx| projects::put(tx, &host, &remote, now)).await?;
            }
            Looked::Gone(_) => {
                let job = source.job.clone();
                db.write(move |tx| projects::mark_removed(tx, project.project_id, &job, now)).await?;
            }
            Looked::Trouble(why) => problems.push(format!("project `{}`: {why}", project.path)),
        }
    }
    Ok(problems)
}

/// The targets of a run of `source`, one of `jobs_on_host`.
pub async fn find_targets(
    source: &Source,
    jobs_on_host: &[HostJob],
    client: &Client,
    db: &Db,
    now: Timestamp,
    stop: &CancellationToken,
) -> Result<Found, Error> {
    let Synced { projects, mut problems, mut is_whole } =
        sync_projects(source, client, db, now, stop).await?;
    let mut named: BTreeSet<(i64, String)> = BTreeSet::new();
    for Project { project_id, remote_id, path, default_branch, .. } in &projects {
        let (branches, problem) =
            fetch_wanted_branches(source, client, *remote_id, default_branch.as_ref(), stop).await?;
        is_whole &= problem.is_none();
        problems.extend(problem.map(|why| format!("branches of `{path}`: {why}")));
        named.extend(branches.into_iter().map(|branch| (*project_id, branch)));
    }
    let (jobs_on_host, me) = (jobs_on_host.to_vec(), source.host_job());
    let targets = db.write(move |tx| take_branches(tx, &jobs_on_host, &me, &named, is_whole)).await?;
    Ok(Found { targets, problems })
}

/// Notes which branches `me` names, and answers those that it collects: of the named ones what no other job wants, and
/// what it has collected before.
fn take_branches(
    tx: &mut Tx<'_>,
    jobs_on_host: &[HostJob],
    me: &HostJob,
    named: &BTreeSet<(i64, String)>,
    is_whole: bool,
) -> db::Result<Vec<Target>> {
    let owned: BTreeMap<(i64, String), Owned> = branches::list_owned(tx, &me.host)?
        .into_iter()
        .map(|owned| ((owned.project_id, owned.branch_name.clone()), owned))
        .collect();
    let is_mine = |owned: &Owned| owned.owner.job.as_deref() == Some(me.job.as_str());
    let mut wanted = BTreeSet::new();
    for (project_id, branch) in named {
        let known = owned.get(&(*project_id, branch.clone()));
        match known {
            Some(known) if known.is_ignored || !jobs_on_host::may_take(jobs_on_host, me, &known.owner) => {
                continue;
            }
            Some(known) if is_mine(known) && known.is_named => {}
            _ => branches::put_owner(tx, *project_id, branch, &me.job, true)?,
        }
        wanted.insert((*project_id, branch.clone()));
    }
    // What we no longer name stays ours until another job names it.
    for ((project_id, branch), _) in owned
        .iter()
        .filter(|(at, known)| is_whole && is_mine(known) && known.is_named && !named.contains(*at))
    {
        branches::put_owner(tx, *project_id, branch, &me.job, false)?;
    }
    for target in branches::list_collected(tx, &me.host)? {
        if !jobs_on_host::is_fallback_job(jobs_on_host, me, target.job_name.as_deref()) {
            continue;
        }
        if target.job_name.as_deref() != Some(me.job.as_str()) {
            branches::put_owner(tx, target.project_id, &target.branch_name, &me.job, false)?;
        }
        wanted.insert((target.project_id, target.branch_name));
    }
    let target = |(project_id, branch_name)| Target {
        project_id,
        branch_name,
        host: me.host.clone(),
        job_name: Some(me.job.to_string()),
    };
    Ok(wanted.into_iter().map(target).collect())
}

/// The branches of a project that the config names, and why some of them may be missing.
pub(super) async fn fetch_wanted_branches(
    source: &Source,
    client: &Client,
    remote_id: i64,
    default_branch: Option<&String>,
    stop: &CancellationToken,
) -> Result<(BTreeSet<String>, Option<String>), gitlab::Error> {
    let patterns = &source.keys.branches;
    let mut branches: BTreeSet<String> = patterns.iter().filter(|name| !is_pattern(name)).cloned().collect();
    if patterns.is_empty() {
        branches.extend(default_branch.cloned());
    }
    if patterns.iter().any(|pattern| is_pattern(pattern)) {
        match client.fetch_branches(remote_id, stop).await {
            Ok(all) => branches
                .extend(all.into_iter().filter(|name| patterns.iter().any(|pattern| matches(pattern, name)))),
            // An empty or disabled repository has no branches.
            Err(gitlab::Error::Missing(_)) => {}
            Err(error @ (gitlab::Error::Failed(_) | gitlab::Error::Forbidden(_))) => {
                return Ok((branches, Some(error.to_string())));
            }
            Err(error) => return Err(error),
        }
    }
    Ok((branches, None))
}

fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?'])
}

/// Whether `name` fits `pattern`, in which `*` stands for any text and `?` for one character.
pub fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut in_name) = (0, 0);
    let mut star = None;
    while in_name < name.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, in_name));
                at += 1;
            }
            Some('?') => {
                at += 1;
                in_name += 1;
            }
            Some(c) if *c == name[in_name] => {
                at += 1;
                in_name += 1;
            }
            _ => match star {
                // Let the last star take one character more.
                Some((star_at, taken)) => {
                    star = Some((star_at, taken + 1));
                    at = star_at + 1;
                    in_name = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, expected) in [
            ("main", "main", true),
            ("main", "mainline", false),
            ("release/*", "release/1.2", true),
            ("release/*", "release", false),
            ("*", "feature/x", true),
            ("v?.*-rc", "v1.20-rc", true),
            ("v?.*-rc", "v1.20-rc1", false),
            ("*a*b", "xxaxxb", true),
            ("*a*b", "xxaxxbc", false),
            ("", "x", false),
            ("機能/*", "機能/検索", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn a_hostile_pattern_ends() {
        assert!(!matches(&"*a".repeat(60), &"a".repeat(59)));
    }
}
