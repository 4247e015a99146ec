//! Updates the projects of a job from its host.

use futures_util::StreamExt as _;
use tokio_util::sync::CancellationToken;

use super::GitSource;
use super::config::Keys;
use super::host::{self, Host, Listing};
use super::model::{Project, RemoteProject};
use super::pattern::any_matches;
use super::store::projects;
use crate::db::Db;
use crate::engine::Failure;
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;

/// The result of looking up a configured project.
enum ProjectLookup {
    Here(RemoteProject),
    Gone(Phrase),
    Trouble(Phrase),
}

/// The configured projects on the host.
#[derive(Default)]
pub(super) struct NamedProjects {
    pub(super) found: Vec<RemoteProject>,
    pub(super) problems: Vec<NotFound>,
    /// Names that are not on the host.
    gone: Vec<String>,
    /// Names whose lookup failed.
    unsure: Vec<String>,
    /// Whether it is complete: no lookup failed.
    is_whole: bool,
}

/// A configured project that could not be looked up.
pub(super) struct NotFound {
    /// Its name, unless `why` contains it.
    pub(super) what: Option<Phrase>,
    pub(super) why: Phrase,
}

impl NotFound {
    fn new(what: Phrase, why: Phrase) -> Self {
        Self { what: Some(what), why }
    }

    fn phrase(&self) -> Phrase {
        match &self.what {
            Some(what) => phrase!("{what}: {why}", "{what}：{why}", why = &self.why),
            None => self.why.clone(),
        }
    }
}

pub struct Synced {
    /// The configured projects.
    pub projects: Vec<Project>,
    /// One for each that could not be looked up.
    pub problems: Vec<Phrase>,
    /// Whether the list is complete.
    pub is_whole: bool,
}

/// Fetches the configured projects from the host.
pub(super) async fn fetch_named(
    source: &GitSource,
    client: &dyn Host,
    stop: &CancellationToken,
) -> Result<NamedProjects, host::Error> {
    let names: Vec<String> = source.keys.projects.iter().map(ToString::to_string).collect();
    let lookups: Vec<(String, Result<ProjectLookup, host::Error>)> = futures_util::stream::iter(names)
        .map(|name| async move {
            let lookups = look_up(client, &name, stop).await;
            (name, lookups)
        })
        .buffered(source.keys.concurrency)
        .collect()
        .await;
    let NamedProjects { mut found, mut problems, mut gone, mut unsure, .. } = NamedProjects::default();
    let mut is_whole = true;
    for (name, lookups) in lookups {
        match lookups? {
            ProjectLookup::Here(remote) => found.push(remote),
            ProjectLookup::Gone(why) => {
                let why = phrase!(
                    "{why}; check `projects`, or whether the token may see it",
                    "{why}。`projects` の指定とトークンの権限を確認してください"
                );
                problems.push(NotFound::new(project_phrase(&name), why));
                gone.push(name);
            }
            ProjectLookup::Trouble(why) => {
                problems.push(NotFound::new(project_phrase(&name), why));
                unsure.push(name);
            }
        }
    }
    for listing in list_listings(&source.keys) {
        let place = match listing.group {
            Some(group) => phrase!("group `{group}`", "グループ `{group}`"),
            None => phrase!("memberships", "参加しているプロジェクト"),
        };
        match client.fetch_listed(listing, stop).await {
            Ok(mut remote) => {
                let count = remote.len();
                remote.retain(|project| is_wanted(&source.keys, &project.path));
                if remote.is_empty() && count > 0 {
                    let why = phrase!(
                        "`include` and `exclude` leave out {count project}, all that there are",
                        "`include` と `exclude` により、{count} 件のプロジェクトがすべて対象外です"
                    );
                    problems.push(NotFound::new(place, why));
                }
                found.extend(remote);
            }
            Err(host::Error::Missing { .. }) => {
                let why = phrase!(
                    "{place} does not exist, or the token may not see it; check `group`",
                    "{place} は存在しないか、トークンでは参照できません。`group` の指定を確認してください"
                );
                problems.push(NotFound { what: None, why });
            }
            Err(host::Error::Failed(why)) => {
                problems.push(NotFound::new(place, why));
                is_whole = false;
            }
            Err(error @ (host::Error::Forbidden { .. } | host::Error::Refused { .. })) => {
                problems.push(NotFound::new(place, error.phrase()));
                is_whole = false;
            }
            Err(error) => return Err(error),
        }
    }
    found.sort_by_key(|project| project.remote_id);
    found.dedup_by_key(|project| project.remote_id);
    for project in found.iter().filter(|project| project.default_branch.is_none() && !project.is_empty) {
        let why = phrase!(
            "the token sees no branch of it: {hint}",
            "トークンで参照できるブランチがありません。{hint}",
            hint = client.access_hint()
        );
        problems.push(NotFound::new(project_phrase(&project.path), why));
    }
    if let Some(silence) = client.find_silence().filter(|_| found.is_empty() && gone.is_empty()) {
        return Err(silence);
    }
    is_whole &= unsure.is_empty();
    Ok(NamedProjects { found, problems, gone, unsure, is_whole })
}

fn project_phrase(name: &str) -> Phrase {
    phrase!("project `{name}`", "プロジェクト `{name}`")
}

/// The configured listings to fetch from the host.
pub(super) fn list_listings(keys: &Keys) -> impl Iterator<Item = Listing<'_>> {
    let groups = keys.group.iter().map(|group| Some(group.as_str()));
    let (archived, shared) = (keys.archived, keys.shared);
    groups.chain(keys.membership.then_some(None)).map(move |group| Listing { group, archived, shared })
}

/// Whether to collect a project that was listed and not named.
fn is_wanted(keys: &Keys, path: &str) -> bool {
    (keys.include.is_empty() || any_matches(&keys.include, path)) && !any_matches(&keys.exclude, path)
}

/// Whether `exclude` now matches a project that was collected before; projects named in `projects` are always included.
pub(super) fn is_excluded(keys: &Keys, project: &Project) -> bool {
    let is_named = keys.projects.iter().any(|name| {
        name.as_str() == project.path || name.number().is_some_and(|number| number == project.remote_id)
    });
    !is_named && any_matches(&keys.exclude, &project.path)
}

/// Updates the configured projects: added, renamed, or marked as gone; never deleted.
pub async fn sync_projects(
    source: &GitSource,
    client: &dyn Host,
    db: &Db,
    now: Timestamp,
    stop: &CancellationToken,
) -> Result<Synced, Failure> {
    let NamedProjects { found, problems, gone, unsure, is_whole } = fetch_named(source, client, stop).await?;
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
            // The lookup of these failed; use their stored rows.
            synced.extend(known.into_iter().filter(|project| named(&unsure, project)));
            synced.sort_by_key(|project| project.project_id);
            synced.dedup_by_key(|project| project.project_id);
            Ok(synced)
        })
        .await?;
    let problems = problems.iter().map(NotFound::phrase).collect();
    Ok(Synced { projects, problems, is_whole })
}

async fn look_up(
    client: &dyn Host,
    name: &str,
    stop: &CancellationToken,
) -> Result<ProjectLookup, host::Error> {
    match client.fetch_project(name, stop).await {
        Ok(remote) => Ok(ProjectLookup::Here(remote)),
        Err(host::Error::Missing { host, why }) => Ok(ProjectLookup::Gone(phrase!(
            "{host} answers 404 ({why})",
            "{host} の応答は 404 です（{why}）"
        ))),
        Err(
            error @ (host::Error::Failed(_) | host::Error::Forbidden { .. } | host::Error::Refused { .. }),
        ) => Ok(ProjectLookup::Trouble(error.phrase())),
        Err(error) => Err(error),
    }
}

/// Checks every known project of the host that the config does not name.
pub async fn sync_known(
    source: &GitSource,
    client: &dyn Host,
    db: &Db,
    now: Timestamp,
    stop: &CancellationToken,
) -> Result<Vec<Phrase>, Failure> {
    let host = source.host.clone();
    let known = db.read(move |tx| projects::list(tx, Some(&host))).await?;
    let mut problems = Vec::new();
    for project in known {
        let host = source.host.clone();
        match look_up(client, &project.remote_id.to_string(), stop).await? {
            ProjectLookup::Here(remote) => {
                db.write(move |tx| projects::put(tx, &host, &remote, now)).await?;
            }
            ProjectLookup::Gone(_) => {
                let job = source.job.clone();
                db.write(move |tx| projects::mark_removed(tx, project.project_id, &job, now)).await?;
            }
            ProjectLookup::Trouble(why) => {
                problems.push(NotFound::new(project_phrase(&project.path), why).phrase());
            }
        }
    }
    Ok(problems)
}

impl From<host::Error> for Failure {
    fn from(error: host::Error) -> Self {
        match error {
            host::Error::Stopped => Failure::Interrupted,
            host::Error::Credentials(why) => Failure::Credentials(why),
            host::Error::Config(why) => Failure::Config(why),
            error => Failure::Failed(error.phrase()),
        }
    }
}
