//! Commits: projects × branches of a Git host → resumable bulk runs → commits → statistics.
//!
//! ```text
//!  config + what was collected before
//!        │ targets                       one page, one transaction
//!        ▼                          ┌────────────────────────────────┐
//!  run: pending ──claim──▶ branch ──┤ commits, parents, walking_page │──▶ … ──last page──▶ complete_head
//!        ▲                    │     └────────────────────────────────┘            │
//!        └─ lease ends ───────┘ head pinned, `complete_head..head` listed          ▼
//!                                                                       success: rows really inserted
//! ```
//!
//! Completeness comes from the graph, never from dates: see [`history`]. How targets are shared: see [`run`].

pub mod author;
pub mod collect;
pub mod commands;
pub mod config;
mod counts;
pub mod events;
mod findings;
pub mod history;
pub mod host;
mod lines;
pub mod mailmap;
pub mod message;
pub mod model;
mod pages;
pub mod pattern;
mod pause;
pub mod people;
pub mod pipeline;
mod preview;
pub mod reach;
pub mod run;
pub mod stats;
pub mod store;
pub mod sync;
pub mod view;

use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;

use self::author::Emails;
use self::config::Keys;
use self::host::{Host, HostAccess, HostKind};
use self::run::decide::{self, HostJob, Sharing};
use self::run::{Bulk, Ended, JobFigures, RunRow, WorkedRun};
use crate::config::Problems;
use crate::config::value::HttpUrl;
use crate::db::{self, Db};
use crate::engine::{Collector, DeliveryMode, Failure, JobEnv, Plan, Preview, Report, RunContext};
use crate::fetch::{AllowPrivate, Check, Wanted};
use crate::id::JobName;
use crate::ledger::{Subject, presence};
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;

/// The kind's name in the config file.
pub const KIND: &str = "commits";
/// How often a job runs by default.
pub const EVERY: Duration = Duration::from_secs(60 * 60);
/// How often a job checks whether the run of another job has ended.
const POLL_EVERY: Duration = Duration::from_millis(500);
/// How long `doctor` waits for an answer.
const CHECK_TIMEOUT: Duration = Duration::from_secs(20);
/// Targets that `--dry-run` lists one by one.
const LISTED: usize = 50;

/// One `commits` job: a Git host, a token, and what to collect there.
pub struct GitSource {
    pub job: JobName,
    /// The name of the host in the database.
    pub host: String,
    pub address: HttpUrl,
    kind: HostKind,
    pub keys: Keys,
    /// The channels of the message about the end of a run.
    pub deliver: Vec<String>,
    pub enabled: bool,
    zone: TimeZone,
    allow_private: AllowPrivate,
}

impl GitSource {
    /// Reads a job of the config file.
    pub fn read(job: &crate::config::Job) -> Result<Self, Problems> {
        let allow_private = AllowPrivate::parse(&job.allow_private)
            .map_err(|error| job.section.problem("allow_private", error.phrase()));
        let (keys, allow_private) = Problems::both(Keys::read(job), allow_private)?;
        let zone = job.timezone.time_zone().clone();
        let (address, kind) = keys.find_host().expect("the keys are refused without one");
        let address = address.clone();
        Ok(Self {
            job: job.name.clone(),
            host: config::host_of(&address),
            address,
            kind,
            keys,
            deliver: job.deliver.clone(),
            enabled: job.enabled,
            zone,
            allow_private,
        })
    }

    /// Every `commits` job of the config, in its order.
    pub fn list(jobs: &[crate::config::Job]) -> Vec<Arc<Self>> {
        let jobs = jobs.iter().filter(|job| job.kind == KIND);
        jobs.filter_map(|job| Self::read(job).ok()).map(Arc::new).collect()
    }

    /// The job, for assigning branches and targets.
    pub fn host_job(&self) -> HostJob {
        HostJob { job: self.job.clone(), host: self.host.clone(), enabled: self.enabled }
    }

    /// Older commits are not stored.
    pub fn since(&self) -> Option<Timestamp> {
        self.keys.since.map(|since| since.moment(&self.zone))
    }

    /// A client with the job's token.
    pub fn client(&self, env: &JobEnv) -> Result<Arc<dyn Host>, Failure> {
        let token = match &self.keys.token {
            Some(token) => {
                let token = token.reveal().map_err(|error| Failure::Credentials(error.phrase()))?;
                Some(token.expose().to_owned().into())
            }
            None => None,
        };
        let access = HostAccess {
            fetcher: env.fetcher.clone(),
            clock: env.clock.clone(),
            base: self.address.clone().into(),
            token,
            token_kind: self.keys.token_kind,
            allow_private: self.allow_private.clone(),
            at_once: self.keys.concurrency,
            emails: if self.keys.hide_emails { Emails::Hidden } else { Emails::Plain },
        };
        Ok((self.kind.connect)(access))
    }
}

/// The `commits` jobs of the config, for assigning branches and targets, in order.
pub fn list_host_jobs(jobs: &[crate::config::Job]) -> Vec<HostJob> {
    GitSource::list(jobs).iter().map(|source| source.host_job()).collect()
}

/// A `commits` job, ready to run.
pub struct Commits {
    source: Arc<GitSource>,
    env: JobEnv,
}

pub fn make(job: &crate::config::Job, env: &JobEnv) -> Result<Arc<dyn Collector>, Problems> {
    Ok(Arc::new(Commits { source: Arc::new(GitSource::read(job)?), env: env.clone() }))
}

#[async_trait]
impl Collector for Commits {
    async fn run(&self, ctx: &RunContext) -> Result<Report, Failure> {
        self.collect(ctx).await
    }

    async fn check(&self) -> Vec<Check> {
        self.check_host().await
    }

    fn relies_on(&self) -> Vec<Subject> {
        vec![self.source.subject()]
    }

    async fn test(&self, db: &Db) -> Result<Preview, Failure> {
        let client = self.source.client(&self.env)?;
        preview::preview(&self.source, &list_host_jobs(&self.env.jobs), &*client, db).await
    }

    async fn plan(&self, db: &Db, _now: Timestamp) -> db::Result<Plan> {
        self.list_steps(db).await
    }
}

impl Commits {
    /// Continues the running run, or begins one; waits for a run of another job of this process.
    async fn collect(&self, ctx: &RunContext) -> Result<Report, Failure> {
        let bulk = Bulk::new(
            self.env.clone(),
            vec![Arc::clone(&self.source)],
            ctx.progress.clone(),
            ctx.stop.clone(),
        )
        .delivering(ctx.delivery);
        if let Some(until) = self.source.find_pause(&ctx.db, ctx.now()).await? {
            let summary = self.source.waiting(until);
            return Ok(Report { waiting_until: Some(until), ..Report::new(summary) });
        }
        loop {
            ctx.check_stop()?;
            let ended = match bulk.start(Some(&ctx.job), Sharing::Alone).await {
                Err(Failure::Failed(why)) => match bulk.find_pause().await? {
                    Some(until) => return Ok(Report { waiting_until: Some(until), ..Report::new(why) }),
                    None => return Err(Failure::Failed(why)),
                },
                ended => ended?,
            };
            match ended {
                Ended::Worked(outcome) => return Ok(self.report(outcome, ctx.delivery)),
                Ended::Nothing(problems) => {
                    let summary = phrase!(
                        "nothing to collect: no branches were found",
                        "収集対象のブランチがありません"
                    );
                    return Ok(Report { problems, all_failed: true, ..Report::new(summary) });
                }
                Ended::Busy(run, holder) if is_of_another_job(&run, &ctx.job) => {
                    tracing::debug!(
                        "Waiting for run {} of {}",
                        run.run_id,
                        presence::shown_owner(&holder.owner)
                    );
                    tokio::select! {
                        () = ctx.stop.cancelled() => {}
                        () = tokio::time::sleep(POLL_EVERY) => {}
                    }
                }
                Ended::Busy(run, holder) => {
                    let summary = phrase!(
                        "run {run} is already in progress ({who}, since {since})",
                        "収集 {run} はすでに実行中です（{who}、{since} から）",
                        run = run.run_id.to_string(),
                        who = presence::shown_owner(&holder.owner),
                        since = holder.taken_at
                    );
                    let waiting_until = Some(holder.expires_at);
                    return Ok(Report { waiting_until, is_held: true, ..Report::new(summary) });
                }
            }
        }
    }

    /// Checks whether the host responds, and whether the token can read the first project or the group.
    async fn check_host(&self) -> Vec<Check> {
        let GitSource { keys, address, kind, allow_private, .. } = &*self.source;
        let fetcher = &self.env.fetcher;
        let server = fetcher.reach(kind.name, address, allow_private, Wanted::Anything).await;
        let client = match self.source.client(&self.env) {
            Ok(client) if server.is_fine => client,
            Ok(_) => return vec![server],
            Err(Failure::Credentials(why)) => return vec![server, Check::locked(Check::TOKEN, why)],
            Err(failure) => return vec![server, Check::bad(Check::TOKEN, failure.phrase())],
        };
        let stop = tokio_util::sync::CancellationToken::new();
        let request = async {
            let Some(project) = keys.projects.first() else {
                let Some(listing) = sync::list_listings(keys).next() else {
                    return Ok(phrase!("no project is named", "プロジェクトの指定がありません"));
                };
                let found = client.fetch_listed(listing, &stop).await?;
                let place = listing.group.map_or_else(
                    || phrase!("your memberships", "参加しているプロジェクト"),
                    Phrase::verbatim,
                );
                return Ok(phrase!(
                    "can read {count project} of {place}",
                    "{place} の {count} 件のプロジェクトを読めます",
                    count = found.len()
                ));
            };
            let project = client.fetch_project(project.as_str(), &stop).await?;
            Ok(phrase!("can read {path}", "{path} を読めます", path = project.path))
        };
        let access = match tokio::time::timeout(CHECK_TIMEOUT, request).await {
            Ok(Ok(seen)) => Check::fine(Check::TOKEN, seen),
            Ok(Err(host::Error::Credentials(why))) => Check::locked(Check::TOKEN, why),
            Ok(Err(error)) => Check::bad(Check::TOKEN, error.phrase()),
            Err(_) => Check::bad(Check::TOKEN, phrase!("no answer in time", "時間内に応答がありません")),
        };
        vec![server, access]
    }

    fn report(&self, outcome: WorkedRun, delivery: DeliveryMode) -> Report {
        let WorkedRun { run, problems, waiting_until } = outcome;
        let row = &run.run;
        let figures = JobFigures {
            done: row.success_count,
            failed: row.failed_count,
            total: row.total_targets,
            new_commits: run.new_commits_count,
        };
        let summary = run::summarise(&row.run_id, &figures);
        let summary = if delivery == DeliveryMode::NoDeliver && row.failed_count + run.new_commits_count > 0 {
            phrase!("{summary}; not sent (--no-deliver)", "{summary}。通知なし（--no-deliver）")
        } else {
            summary
        };
        let summary = match waiting_until {
            Some(until) => {
                let waiting = self.source.waiting(until);
                phrase!("{summary}; {waiting}", "{summary}。{waiting}")
            }
            None => summary,
        };
        // Others work on the rest; the run is not ours to wait for.
        let waiting_until = waiting_until.or_else(|| (run.pending_count > 0).then(|| self.env.clock.now()));
        let all_failed = row.failed_count > 0 && row.success_count == 0 && run.new_commits_count == 0;
        let new_count = u64::try_from(run.new_commits_count).unwrap_or(0);
        Report { problems, new_count, waiting_until, all_failed, ..Report::new(summary) }
    }

    async fn list_steps(&self, db: &Db) -> db::Result<Plan> {
        let host = self.source.host.clone();
        let (running, mut collected, known) = db
            .read(move |tx| {
                Ok((
                    run::find_running(tx)?,
                    store::branches::list_collected(tx, &host)?,
                    store::projects::list(tx, Some(&host))?,
                ))
            })
            .await?;
        let jobs_on_host = list_host_jobs(&self.env.jobs);
        collected.retain(|target| {
            decide::is_fallback_job(&jobs_on_host, &self.source.host_job(), target.job_name.as_deref())
        });
        let mut steps = Vec::new();
        if let Some(run) = running {
            steps.push(phrase!(
                "continue run {run}: {pending branch} pending",
                "収集 {run} を再開：残り {pending} ブランチ",
                run = run.run_id.to_string(),
                pending = run.pending_count()
            ));
        }
        let path = |project_id: i64| {
            let project = known.iter().find(|project| project.project_id == project_id);
            project.map_or_else(|| project_id.to_string(), |project| project.path.clone())
        };
        steps.extend(collected.iter().take(LISTED).map(|target| {
            phrase!(
                "collect what is new in {project} {branch}",
                "{project} {branch} の新しいコミットを収集",
                project = path(target.project_id),
                branch = &target.branch_name
            )
        }));
        if collected.len() > LISTED {
            steps.push(phrase!(
                "… and {count more branch}",
                "… ほか {count} ブランチ",
                count = collected.len() - LISTED
            ));
        }
        let keys = &self.source.keys;
        let names = keys
            .projects
            .iter()
            .map(ToString::to_string)
            .chain(keys.group.iter().map(|g| format!("group {g}")))
            .chain(keys.membership.then(|| "memberships".to_owned()));
        let branches =
            if keys.branches.is_empty() { "default branch".to_owned() } else { keys.branches.join(", ") };
        steps.extend(names.map(|name| {
            phrase!(
                "look up {name} on {host} ({branches})",
                "{host} の {name} を確認（{branches}）",
                host = &self.source.host,
                branches = &branches
            )
        }));
        if steps.is_empty() {
            steps.push(phrase!(
                "nothing: no project, group or branch is named",
                "なし：プロジェクト・グループ・ブランチの指定がありません"
            ));
        }
        Ok(Plan { steps })
    }
}

fn is_of_another_job(run: &RunRow, job: &JobName) -> bool {
    run.job_name.as_deref().is_some_and(|name| name != job.as_str())
}
