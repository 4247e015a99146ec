//! `gitlab-analyzer`: projects, commits, bulk runs and their targets.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::source::{
    Record, Refusal, RowError, RowOutcome, SourceTable, import_table, is_below_zero, needed, needed_as, open,
    quote, spare,
};
use super::{Options, Report, in_one_go};
use crate::commits::author::{Emails, author_of};
use crate::commits::model::{RemoteProject, is_sha};
use crate::commits::run::{self, ImportedResult, ImportedRun, RunStatus, TargetStatus};
use crate::commits::store::import::{self as store, ImportedCommit};
use crate::db::{self, Db, Foreign, Raw, Tx};
use crate::id::{JobName, RunId};
use crate::phrase;

/// Commits written at once.
const BATCH: usize = 500;
/// The longest branch name in bytes; it is part of an index.
const MAX_BRANCH_BYTES: usize = 1000;

const PROJECTS: SourceTable = SourceTable {
    name: "projects",
    columns: &[
        needed_as("project_id", &["id"]),
        spare("name", &["project_name"]),
        spare("path", &["path_with_namespace", "project_path"]),
        spare("web_url", &[]),
        spare("default_branch", &[]),
    ],
};
const COMMITS: SourceTable = SourceTable {
    name: "commits",
    columns: &[
        needed("project_id"),
        needed("branch_name"),
        needed("sha"),
        needed("author_name"),
        needed("author_email"),
        needed("committed_date_utc"),
        needed("additions"),
        needed("deletions"),
    ],
};
const RUNS: SourceTable = SourceTable {
    name: "bulk_collection_runs",
    columns: &[
        needed("run_id"),
        needed("started_at_utc"),
        spare("completed_at_utc", &[]),
        needed("status"),
        needed("total_targets"),
        spare("completed_count", &[]),
        needed("failed_count"),
        needed("success_count"),
    ],
};
const RESULTS: SourceTable = SourceTable {
    name: "bulk_collection_results",
    columns: &[
        needed("run_id"),
        needed("project_id"),
        needed("branch_name"),
        needed("status"),
        spare("new_commits_count", &[]),
        spare("error_message", &[]),
        spare("processed_at_utc", &[]),
    ],
};

/// Where the rows are imported to.
#[derive(Clone, Debug)]
pub struct Home {
    /// The job, if the config has it.
    pub job: Option<JobName>,
    /// The GitLab host of the projects.
    pub host: String,
    /// How addresses of authors are stored.
    pub emails: Emails,
    /// Whether the config has a job for that GitLab, so that an interrupted run can be continued.
    pub can_go_on: bool,
}

/// The address of the GitLab that the file was collected from, if it contains it. Its token is not read.
pub fn find_gitlab(file: &Path) -> db::Result<Option<String>> {
    let source = Foreign::open(file)?;
    let mut found = None;
    if source.columns("connections")?.iter().any(|column| column == "base_url") {
        source.each("connections", &["base_url"], |cells| {
            if let [Raw::Text(bytes)] = cells {
                found = std::str::from_utf8(bytes).ok().map(|text| text.trim().to_owned());
            }
            Ok(())
        })?;
    }
    Ok(found)
}

/// Imports projects, runs, targets and commits.
pub async fn import(db: &Db, file: PathBuf, home: Home, options: Options) -> db::Result<Report> {
    let how = options.clone();
    in_one_go(db, &how, "gitlab-analyzer", home.job.clone().as_ref(), move |tx| {
        let source = open(&file, "gitlab-analyzer", "commits")?;
        let mut import = Import {
            source: &source,
            options: &options,
            home: &home,
            report: Report::default(),
            ours: HashMap::new(),
        };
        import.projects(tx)?;
        import.commits(tx)?;
        import.runs(tx)?;
        store::add_branches(tx)?;
        Ok(import.report)
    })
    .await
}

struct Import<'a> {
    source: &'a Foreign,
    options: &'a Options,
    home: &'a Home,
    report: Report,
    /// From GitLab's project ids to ours.
    ours: HashMap<i64, i64>,
}

/// Our id of a project; one that is only mentioned gets a row that the next run completes.
fn our_project(
    tx: &mut Tx<'_>,
    ours: &mut HashMap<i64, i64>,
    host: &str,
    record: &Record<'_>,
) -> Result<i64, RowError> {
    let remote_id = project_id(record)?;
    if let Some(known) = ours.get(&remote_id) {
        return Ok(*known);
    }
    let name = format!("project-{remote_id}");
    let remote = RemoteProject {
        remote_id,
        path: name.clone(),
        name,
        default_branch: None,
        web_url: None,
        is_empty: false,
    };
    let now = tx.now();
    let (id, _) = store::add_project(tx, host, &remote, now)?;
    ours.insert(remote_id, id);
    Ok(id)
}

impl Import<'_> {
    fn projects(&mut self, tx: &mut Tx<'_>) -> db::Result<()> {
        let (ours, host) = (&mut self.ours, &self.home.host);
        let tally =
            import_table(tx, self.source, &PROJECTS, self.options, &mut self.report, |tx, record, _| {
                let remote_id = project_id(record)?;
                let name = record
                    .find_text("name")?
                    .map(|name| name.trim().to_owned())
                    .filter(|name| !name.is_empty());
                let path = record
                    .find_text("path")?
                    .map(|path| path.trim().to_owned())
                    .filter(|path| !path.is_empty());
                let path = path.or_else(|| name.clone()).unwrap_or_else(|| format!("project-{remote_id}"));
                let remote = RemoteProject {
                    remote_id,
                    name: name.unwrap_or_else(|| path.clone()),
                    path,
                    default_branch: record.find_text("default_branch")?.filter(|name| !name.is_empty()),
                    web_url: record.find_text("web_url")?,
                    is_empty: false,
                };
                let now = tx.now();
                let (id, is_new) = store::add_project(tx, host, &remote, now)?;
                ours.insert(remote_id, id);
                Ok(RowOutcome::new(is_new))
            })?;
        self.report.tables.push(tally.finish("projects"));
        Ok(())
    }

    fn commits(&mut self, tx: &mut Tx<'_>) -> db::Result<()> {
        let (ours, home) = (&mut self.ours, self.home);
        let mut waiting: Vec<ImportedCommit> = Vec::with_capacity(BATCH);
        let mut tally =
            import_table(tx, self.source, &COMMITS, self.options, &mut self.report, |tx, record, tally| {
                let sha = record.word("sha")?.to_ascii_lowercase();
                if !is_sha(&sha) {
                    return Err(Refusal(phrase!(
                        "`sha` is not the SHA of a commit: {sha}",
                        "`sha` がコミットの SHA ではありません：{sha}",
                        sha = quote(&sha)
                    ))
                    .into());
                }
                let (name, email) = author_of(
                    record.find_text("author_name")?,
                    record.find_text("author_email")?,
                    home.emails,
                );
                let branch_name = branch(record)?;
                let committed_at = record.time("committed_date_utc")?;
                let (additions, deletions) = (record.count("additions")?, record.count("deletions")?);
                waiting.push(ImportedCommit {
                    project_id: our_project(tx, ours, &home.host, record)?,
                    branch_name,
                    sha,
                    author_name: name.into(),
                    author_email: email.into(),
                    committed_at,
                    additions,
                    deletions,
                });
                if waiting.len() == BATCH {
                    let added = store::add_commits(tx, &waiting)?;
                    (tally.added, tally.known) = (tally.added + added, tally.known + BATCH as u64 - added);
                    waiting.clear();
                }
                Ok(RowOutcome::Waiting)
            })?;
        let added = store::add_commits(tx, &waiting)?;
        tally.added += added;
        tally.known += waiting.len() as u64 - added;
        self.report.tables.push(tally.finish("commits"));
        Ok(())
    }

    fn runs(&mut self, tx: &mut Tx<'_>) -> db::Result<()> {
        let (ours, home) = (&mut self.ours, self.home);
        let job = home.job.as_ref().map(JobName::as_str);
        let mut taken: HashSet<RunId> = HashSet::new();
        let mut closed = false;
        let runs = import_table(tx, self.source, &RUNS, self.options, &mut self.report, |tx, record, _| {
            let mut run = read_run(record)?;
            let other = run::find_running(tx)?.filter(|running| running.run_id != run.run_id);
            // There can be only one running run, and a job has to continue it; otherwise import it as cancelled, for
            // `bulk resume`.
            if run.status == RunStatus::Running && (other.is_some() || !home.can_go_on) {
                closed = true;
                (run.status, run.completed_at_utc) = (RunStatus::Cancelled, Some(tx.now()));
            }
            taken.insert(run.run_id);
            Ok(RowOutcome::new(run::add_imported_run(tx, &run, job)?))
        })?;
        let results =
            import_table(tx, self.source, &RESULTS, self.options, &mut self.report, |tx, record, _| {
                let run_id = run_id(record)?;
                if !taken.contains(&run_id) {
                    return Err(Refusal(phrase!(
                        "its run is missing or was refused",
                        "対応する実行がないか、取り込めませんでした"
                    ))
                    .into());
                }
                let status = read_status(record)?;
                let new_commits_count = match (status, record.find_int("new_commits_count")?) {
                    (TargetStatus::Success, None) => {
                        return Err(Refusal(phrase!(
                            "`new_commits_count` is NULL although it succeeded",
                            "成功しているのに `new_commits_count` が NULL です"
                        ))
                        .into());
                    }
                    (_, Some(..0)) => return Err(is_below_zero("new_commits_count").into()),
                    (_, count) => count,
                };
                let error_message = record.find_text("error_message")?;
                if status == TargetStatus::Failed && error_message.is_none() {
                    return Err(Refusal(phrase!(
                        "`error_message` is NULL although it failed",
                        "失敗しているのに `error_message` が NULL です"
                    ))
                    .into());
                }
                let branch_name = branch(record)?;
                let processed_at_utc = record.find_time("processed_at_utc")?;
                let result = ImportedResult {
                    run_id,
                    project_id: our_project(tx, ours, &home.host, record)?,
                    branch_name,
                    host: home.host.clone(),
                    status,
                    new_commits_count,
                    error_message,
                    processed_at_utc,
                };
                Ok(RowOutcome::new(run::add_imported_result(tx, &result)?))
            })?;
        if closed {
            self.report.note(phrase!(
                "a run that was not ended is imported as cancelled; `tsuzuki bulk resume` continues with its targets",
                "終わっていない実行は中止扱いで取り込みます。残りは `tsuzuki bulk resume` で続けられます"
            ));
        }
        self.report.tables.push(runs.finish("bulk_collection_runs"));
        self.report.tables.push(results.finish("bulk_collection_results"));
        Ok(())
    }
}

/// Converts a run to our `completed_count`: theirs includes failures.
fn read_run(record: &Record<'_>) -> Result<ImportedRun, Refusal> {
    let word = record.word("status")?;
    let status = word.parse().map_err(|_| {
        Refusal(phrase!(
            "`status` is not one of a run: {word}",
            "`status` が実行の状態ではありません：{word}",
            word = quote(&word)
        ))
    })?;
    let run = ImportedRun {
        run_id: run_id(record)?,
        started_at_utc: record.time("started_at_utc")?,
        completed_at_utc: record.find_time("completed_at_utc")?,
        status,
        total_targets: record.count("total_targets")?,
        success_count: record.count("success_count")?,
        failed_count: record.count("failed_count")?,
    };
    if run.success_count.saturating_add(run.failed_count) > run.total_targets {
        return Err(Refusal(phrase!(
            "more targets were settled than it has",
            "完了した対象の数が総数を超えています"
        )));
    }
    match (run.status == RunStatus::Running, run.completed_at_utc.is_some()) {
        (true, true) => {
            Err(Refusal(phrase!("it is running but has ended", "実行中なのに終了日時があります")))
        }
        (false, false) => Err(Refusal(phrase!(
            "it has ended but `completed_at_utc` is NULL",
            "終了しているのに `completed_at_utc` が NULL です"
        ))),
        _ => Ok(run),
    }
}

fn read_status(record: &Record<'_>) -> Result<TargetStatus, Refusal> {
    let word = record.word("status")?;
    word.parse().map_err(|_| {
        Refusal(phrase!(
            "`status` is not one of a target: {word}",
            "`status` が対象の状態ではありません：{word}",
            word = quote(&word)
        ))
    })
}

fn run_id(record: &Record<'_>) -> Result<RunId, Refusal> {
    record
        .word("run_id")?
        .parse()
        .map_err(|_| Refusal(phrase!("`run_id` is not a UUID v4", "`run_id` が UUID v4 ではありません")))
}

fn project_id(record: &Record<'_>) -> Result<i64, Refusal> {
    match record.int("project_id")? {
        id if id > 0 => Ok(id),
        _ => Err(Refusal(phrase!("`project_id` is not above zero", "`project_id` が正の数ではありません"))),
    }
}

fn branch(record: &Record<'_>) -> Result<String, Refusal> {
    let name = record.word("branch_name")?;
    if name.len() <= MAX_BRANCH_BYTES && !name.contains(char::is_control) {
        Ok(name)
    } else {
        Err(Refusal(phrase!(
            "`branch_name` is not the name of a branch",
            "`branch_name` がブランチ名ではありません"
        )))
    }
}
