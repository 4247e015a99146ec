//! `branch`: how far each branch was collected, and which are collected.

use clap::Subcommand;

use super::bulk::read_sources;
use super::commits::find_project;
use super::table::Tone;
use super::{Cell, Column, Context, Error, Exit, Result, log};
use tsuzuki::commits::events::{self, BranchCode};
use tsuzuki::commits::host;
use tsuzuki::commits::run;
use tsuzuki::commits::store::pages::{self, BranchRef};
use tsuzuki::commits::store::{branches, forget as forgetting, projects};
use tsuzuki::db::{self, Db, Open, Tx};
use tsuzuki::ledger::event;
use tsuzuki::phrase;
use tsuzuki::phrase::Value;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List the branches, how far each is read, and whether its history is closed
    Ls {
        /// Only those of this project, by path or number
        project: Option<String>,
    },
    /// Collect a branch that the config does not name; the next run takes it up
    Add {
        /// The project, by path or the host's number
        project: String,
        /// The branch
        branch: String,
        /// The job whose host it is on [default: the first]
        #[arg(long, value_name = "NAME")]
        job: Option<String>,
    },
    /// Stop collecting a branch; its commits stay, unless --data removes them
    Rm {
        /// The project, by path or number
        project: String,
        /// The branch
        branch: String,
        /// Also delete what was collected of it; without --yes, say what that would be
        #[arg(long)]
        data: bool,
        /// Confirm: without it nothing is changed
        #[arg(long, requires = "data")]
        yes: bool,
    },
}

pub(super) async fn run(command: Command, context: &Context) -> Result {
    match command {
        Command::Ls { project } => list(project.as_deref(), context).await,
        Command::Add { project, branch, job } => add(&project, branch, job.as_deref(), context).await,
        Command::Rm { project, branch, data: false, .. } => remove(&project, branch, context).await,
        Command::Rm { project, branch, yes, .. } => forget(&project, branch, yes, context).await,
    }
}

async fn list(project: Option<&str>, context: &Context) -> Result {
    let project_id = match project {
        Some(name) => Some(find_project(name, &context.view().await?).await?),
        None => None,
    };
    let listed = context.view().await?.read(move |tx| branches::list(tx, project_id)).await?;
    let columns = [
        Column::left(phrase!("project", "プロジェクト")),
        Column::left(phrase!("branch", "ブランチ")),
        Column::right(phrase!("commits", "コミット")),
        Column::moment(phrase!("newest commit", "最新のコミット")),
        Column::left(phrase!("head", "先頭")).secondary(),
        Column::left(phrase!("closed", "欠落なし")),
        Column::right(phrase!("unreachable", "到達不能")).secondary(),
        Column::right(phrase!("no stats", "行数なし")).secondary(),
        Column::right(phrase!("unreadable", "読めない")).secondary(),
        Column::left(phrase!("state", "状態")),
    ];
    context.out.listing(&columns, &listed, |branch| {
        let state = match (branch.ignored_at, branch.deleted_at, branch.walking, &branch.complete_head) {
            (Some(_), ..) => Cell::toned(phrase!("not collected", "対象外"), Tone::Faint),
            (_, Some(_), ..) => Cell::toned(phrase!("deleted", "削除済み"), Tone::Faint),
            _ if branch.failing_since.is_some() => Cell::toned(phrase!("failing", "失敗"), Tone::Bad),
            (_, _, true, _) => Cell::toned(phrase!("being read", "取得中"), Tone::Busy),
            (_, _, _, None) => phrase!("not read yet", "未取得").into(),
            _ => Cell::toned(phrase!("complete", "取得済み"), Tone::Good),
        };
        vec![
            Cell::from(&branch.project),
            Cell::from(&branch.branch_name),
            branch.commits.into(),
            branch.last_commit_at.into(),
            branch.complete_head.as_ref().and_then(|sha| sha.get(..10)).into(),
            branch.closed.map_or_else(|| Value::Nothing.into(), Cell::flag),
            branch.unreachable.into(),
            branch.stats_missing.into(),
            branch.unreadable.into(),
            state,
        ]
    })
}

async fn add(project: &str, branch: String, job: Option<&str>, context: &Context) -> Result {
    log::start(&context.global, "warn", context.out.colours_messages());
    let app = context.app(Open::Create).await?;
    let sources = read_sources(context.config().await?, job)?;
    let Some(source) = sources.first() else {
        return Err(Error::failed(phrase!("there is no job to add it to", "追加先のジョブがありません")));
    };
    let client = source.client(&app.env)?;
    let remote = client.fetch_project(project, &context.stop).await.map_err(|error| match error {
        host::Error::Credentials(why) => Error::new(Exit::Credentials, why),
        host::Error::Missing { .. } => Error::failed(phrase!(
            "{host} has no project `{project}`",
            "{host} にプロジェクト `{project}` はありません",
            host = &source.host
        ))
        .hint(phrase!(
            "check the path, and whether the token may see it",
            "パスと、トークンの権限を確認してください"
        )),
        error => Error::failed(error.phrase()),
    })?;
    if let Err(error) = client.fetch_head(remote.remote_id, &branch, &context.stop).await {
        context.out.warn(phrase!(
            "`{path}` has no branch `{branch}` at this moment: {error}",
            "`{path}` に今はブランチ `{branch}` がありません：{error}",
            path = &remote.path,
            error = error.to_string()
        ));
    }
    let (host, path, now) = (source.host.clone(), remote.path.clone(), context.clock.now());
    let (name, job) = (branch.clone(), source.job.clone());
    app.env
        .db
        .write(move |tx| {
            let project = projects::put(tx, &host, &remote, now)?;
            branches::put_added(tx, project.project_id, &name, &job, now)?;
            let subject = events::branch(&project.path, &name);
            event::add(tx, None, &subject, BranchCode::Added, &serde_json::json!({}), now)
        })
        .await?;
    context.out.done(phrase!(
        "`{path}` {branch} is collected from the next run on; `tsuzuki bulk start` is one.",
        "`{path}` の {branch} は次の収集から対象になります（`tsuzuki bulk start` で収集できます）。"
    ))
}

async fn remove(project: &str, branch: String, context: &Context) -> Result {
    let (db, now) = (context.db().await?, context.clock.now());
    let project_id = find_project(project, db).await?;
    let name = branch.clone();
    let removed = db
        .write(move |tx| {
            let removed = branches::mark_ignored(tx, project_id, &name, now)?;
            if removed {
                let path = projects::find(tx, project_id)?.map(|project| project.path).unwrap_or_default();
                let subject = events::branch(&path, &name);
                event::add(tx, None, &subject, BranchCode::Ignored, &serde_json::json!({}), now)?;
            }
            Ok(removed)
        })
        .await?;
    if removed {
        context.out.done(phrase!(
            "`{project}` {branch} is not collected any more; its commits stay.",
            "`{project}` の {branch} の収集をやめました（コミットは残ります）。"
        ))
    } else {
        Err(Error::failed(phrase!(
            "`{project}` {branch} is not collected",
            "`{project}` の {branch} は収集の対象ではありません"
        ))
        .hint(phrase!("`tsuzuki branch ls` lists what is", "一覧は `tsuzuki branch ls` で確認できます")))
    }
}

/// Rows deleted in one transaction: few, so that other writers can go in between.
const AT_ONCE: usize = 1_000;

/// Deletes the collected data of a branch, or shows what that would be.
async fn forget(project: &str, branch: String, yes: bool, context: &Context) -> Result {
    let (db, now) = (context.db().await?, context.clock.now());
    let project_id = find_project(project, db).await?;
    let name = branch.clone();
    let found = db
        .read(move |tx| {
            let place = BranchRef { project_id, branch_name: &name };
            let is_known = branches::list(tx, Some(project_id))?.iter().any(|row| row.branch_name == name);
            Ok(if is_known { Some(forgetting::count(tx, place)?) } else { None })
        })
        .await?;
    let Some(found) = found else {
        return Err(Error::failed(phrase!(
            "`{project}` has no branch `{branch}` that was collected",
            "`{project}` に収集済みのブランチ `{branch}` はありません"
        ))
        .hint(phrase!("`tsuzuki branch ls` lists what is", "一覧は `tsuzuki branch ls` で確認できます")));
    };
    let what = phrase!(
        "{commits commit} of `{project}` {branch}, {only_here} of them on no other branch",
        "`{project}` の {branch} のコミット {commits} 件（うち {only_here} 件はほかのブランチにない）",
        commits = found.commits,
        only_here = found.only_here
    );
    if !yes {
        return Err(Error::usage(phrase!("this deletes {what}", "{what}を削除します")).hint(phrase!(
            "add `--yes` if that is what you want; statistics then no longer count them",
            "実行するには `--yes` を付けてください（以後、統計には含まれません）"
        )));
    }
    let name = branch.clone();
    let is_free = db
        .write(move |tx| {
            if is_being_read(tx, project_id, &name)? {
                return Ok(false);
            }
            branches::mark_ignored(tx, project_id, &name, now)?;
            forgetting::reset_state(tx, BranchRef { project_id, branch_name: &name })?;
            let path = projects::find(tx, project_id)?.map(|project| project.path).unwrap_or_default();
            let detail = serde_json::json!({ "commits": found.commits });
            event::add(tx, None, &events::branch(&path, &name), BranchCode::Forgotten, &detail, now)?;
            Ok(true)
        })
        .await?;
    if !is_free {
        return Err(Error::new(
            Exit::Held,
            phrase!(
                "a run is reading `{project}` {branch} right now",
                "`{project}` の {branch} は収集中です"
            ),
        )
        .hint(phrase!(
            "wait until it has ended, or end it with `tsuzuki bulk cancel`",
            "終わるまで待つか、`tsuzuki bulk cancel` で中止してください"
        )));
    }
    while delete_some(project_id, &branch, db).await? {
        if context.stop.is_cancelled() {
            context.out.note(phrase!(
                "Interrupted; the same command deletes the rest.",
                "中断しました。同じコマンドで残りを削除できます。"
            ));
            return Ok(Exit::Interrupted);
        }
    }
    context.out.done(phrase!(
        "Deleted {what}. It is not collected any more.",
        "{what}を削除しました。以後は収集しません。"
    ))
}

/// Deletes the next rows of a branch in one transaction; `false` when none were left.
async fn delete_some(project_id: i64, branch: &str, db: &Db) -> Result<bool> {
    let name = branch.to_owned();
    let deleted = db.write(move |tx| {
        let place = BranchRef { project_id, branch_name: &name };
        let deleted =
            forgetting::delete_commits(tx, place, AT_ONCE)? + pages::reset_left_out(tx, place, AT_ONCE)?;
        forgetting::reset_roots(tx, project_id)?;
        Ok(deleted)
    });
    Ok(deleted.await? > 0)
}

/// Whether a run is reading the branch.
fn is_being_read(tx: &mut Tx<'_>, project_id: i64, branch: &str) -> db::Result<bool> {
    let Some(running) = run::find_running(tx)? else { return Ok(false) };
    let leased = run::list_leased(tx, &running.run_id)?;
    Ok(leased.iter().any(|target| target.project_id == project_id && target.branch_name == branch))
}
