//! Which branches a run collects: all collected before, and those that the config names.

use std::collections::{BTreeMap, BTreeSet};

use tokio_util::sync::CancellationToken;

use super::super::config::Keys;
use super::super::host::{self, Host};
use super::super::model::Project;
use super::super::pattern::{any_matches, is_pattern};
use super::super::store::branches::{self, Owned};
use super::super::store::projects;
use super::super::sync::{self, Synced};
use super::super::{GitSource, list_host_jobs};
use super::decide::{self, HostJob};
use super::worker::Findings;
use super::{Bulk, Only, Target};
use crate::db::{self, Tx};
use crate::engine::Failure;
use crate::phrase;
use crate::phrase::Phrase;

impl Bulk {
    /// The targets of all our jobs; a job whose targets cannot be determined does not stop the others.
    pub(super) async fn find_targets(&self, findings: &mut Findings) -> Result<Vec<Target>, Failure> {
        let mut wanted = BTreeSet::new();
        let mut failed = None;
        let jobs_on_host = list_host_jobs(&self.env.jobs);
        for source in &self.sources {
            match self.find_targets_of(source, &jobs_on_host).await {
                Ok((targets, problems)) => {
                    wanted.extend(targets);
                    findings.problems.extend(problems);
                }
                Err(failure @ (Failure::Credentials(_) | Failure::Config(_) | Failure::Failed(_))) => {
                    match &failure {
                        Failure::Credentials(why) => findings.refuse(&source.job, why),
                        _ => findings.problems.push(phrase!(
                            "{job}: {why}",
                            "{job}：{why}",
                            job = source.job.as_str(),
                            why = failure.phrase()
                        )),
                    }
                    failed.get_or_insert(failure);
                }
                Err(failure) => return Err(failure),
            }
        }
        if let Some(failure) = failed.filter(|_| wanted.is_empty()) {
            return Err(failure);
        }
        let Only { project, branch } = self.only.clone();
        let projects = match project.clone() {
            Some(name) => Some(self.env.db.read(move |tx| projects::find_named(tx, &name)).await?),
            None => None,
        };
        let is_meant = |target: &Target| {
            let is_of =
                |found: &Vec<Project>| found.iter().any(|project| project.project_id == target.project_id);
            projects.as_ref().is_none_or(is_of)
                && branch.as_ref().is_none_or(|name| *name == target.branch_name)
        };
        let targets: Vec<Target> = wanted.into_iter().filter(is_meant).collect();
        if targets.is_empty() && self.only != Only::default() {
            let wanted = [project, branch].into_iter().flatten().collect::<Vec<_>>().join(" ");
            findings
                .problems
                .push(phrase!("no job collects `{wanted}`", "`{wanted}` を収集するジョブはありません"));
        }
        Ok(targets)
    }

    /// The targets of one source, and a problem for each project that could not be looked up.
    async fn find_targets_of(
        &self,
        source: &GitSource,
        jobs_on_host: &[HostJob],
    ) -> Result<(Vec<Target>, Vec<Phrase>), Failure> {
        let db = &self.env.db;
        if let Some(until) = source.find_pause(db, self.env.clock.now()).await? {
            return Err(Failure::Failed(source.waiting(until)));
        }
        let client = source.client(&self.env)?;
        let found = self.fetch_targets(source, &*client, jobs_on_host).await;
        source.keep_pause(db, &*client).await?;
        found
    }

    async fn fetch_targets(
        &self,
        source: &GitSource,
        client: &dyn Host,
        jobs_on_host: &[HostJob],
    ) -> Result<(Vec<Target>, Vec<Phrase>), Failure> {
        let (db, stop, now) = (&self.env.db, &self.stop, self.env.clock.now());
        let Synced { projects, mut problems, mut is_whole } =
            sync::sync_projects(source, client, db, now, stop).await?;
        let mut named: BTreeSet<(i64, String)> = BTreeSet::new();
        for Project { project_id, remote_id, path, default_branch, .. } in &projects {
            let (branches, problem) =
                fetch_wanted_branches(source, client, *remote_id, default_branch.as_ref(), stop).await?;
            is_whole &= problem.is_none();
            problems.extend(
                problem.map(|why| phrase!("branches of `{path}`: {why}", "`{path}` のブランチ：{why}")),
            );
            named.extend(branches.into_iter().map(|branch| (*project_id, branch)));
        }
        if named.is_empty() && !projects.is_empty() && !source.keys.branches.is_empty() && is_whole {
            problems.push(phrase!(
                "`branches` and `exclude_branches` fit no branch of {count project}",
                "`branches` と `exclude_branches` に合うブランチが、{count} 件のプロジェクトのどれにもありません",
                count = projects.len()
            ));
        }
        let (jobs_on_host, me, keys) = (jobs_on_host.to_vec(), source.host_job(), source.keys.clone());
        let targets =
            db.write(move |tx| take_branches(tx, &jobs_on_host, &me, &keys, &named, is_whole)).await?;
        Ok((targets, problems))
    }
}

/// Records which branches `me` names, and returns those that it collects: named ones that no other job names, and those
/// that it has collected before and does not exclude now.
fn take_branches(
    tx: &mut Tx<'_>,
    jobs_on_host: &[HostJob],
    me: &HostJob,
    keys: &Keys,
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
            Some(known) if known.is_ignored || !decide::may_take(jobs_on_host, me, &known.owner) => {
                continue;
            }
            Some(known) if is_mine(known) && known.is_named => {}
            _ => branches::put_owner(tx, *project_id, branch, &me.job, true)?,
        }
        wanted.insert((*project_id, branch.clone()));
    }
    // A branch that we no longer name stays ours until another job names it.
    for ((project_id, branch), _) in owned
        .iter()
        .filter(|(at, known)| is_whole && is_mine(known) && known.is_named && !named.contains(*at))
    {
        branches::put_owner(tx, *project_id, branch, &me.job, false)?;
    }
    let excluded: BTreeSet<i64> = projects::list(tx, Some(&me.host))?
        .into_iter()
        .filter(|project| sync::is_excluded(keys, project))
        .map(|project| project.project_id)
        .collect();
    for target in branches::list_collected(tx, &me.host)? {
        if !decide::is_fallback_job(jobs_on_host, me, target.job_name.as_deref()) {
            continue;
        }
        let is_added =
            owned.get(&(target.project_id, target.branch_name.clone())).is_some_and(|of| of.is_added);
        let is_excluded =
            excluded.contains(&target.project_id) || any_matches(&keys.exclude_branches, &target.branch_name);
        if is_excluded && !is_added {
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

/// The configured branches of a project, and why some of them may be missing.
pub(in crate::commits) async fn fetch_wanted_branches(
    source: &GitSource,
    client: &dyn Host,
    remote_id: i64,
    default_branch: Option<&String>,
    stop: &CancellationToken,
) -> Result<(BTreeSet<String>, Option<Phrase>), host::Error> {
    let patterns = &source.keys.branches;
    let mut branches: BTreeSet<String> = patterns.iter().filter(|name| !is_pattern(name)).cloned().collect();
    if patterns.is_empty() {
        branches.extend(default_branch.cloned());
    }
    if patterns.iter().any(|pattern| is_pattern(pattern)) {
        match client.fetch_branches(remote_id, stop).await {
            Ok(all) => branches.extend(all.into_iter().filter(|name| any_matches(patterns, name))),
            // An empty repository has no branches.
            Err(host::Error::Missing { .. }) if default_branch.is_none() => {}
            Err(error @ host::Error::Missing { .. }) => return Ok((branches, Some(error.phrase()))),
            Err(error @ (host::Error::Failed(_) | host::Error::Forbidden { .. })) => {
                return Ok((branches, Some(error.phrase())));
            }
            Err(error) => return Err(error),
        }
    }
    branches.retain(|name| !any_matches(&source.keys.exclude_branches, name));
    Ok((branches, None))
}
