//! `project`: lists known projects and updates them.

use clap::Subcommand;

use super::bulk::read_sources;
use super::table::row;
use super::{Column, Context, Exit, Result, log};
use tsuzuki::commits::store::projects;
use tsuzuki::commits::sync;
use tsuzuki::db::Open;
use tsuzuki::phrase;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List every project that was ever seen; those that are gone are marked
    Ls,
    /// Ask the host for the configured and known projects: names, default branches, what is gone
    Sync {
        /// Only the projects of this job
        #[arg(long, value_name = "NAME")]
        job: Option<String>,
    },
}

pub(super) async fn run(command: Command, context: &Context) -> Result {
    match command {
        Command::Ls => list(context).await,
        Command::Sync { job } => sync(job.as_deref(), context).await,
    }
}

async fn list(context: &Context) -> Result {
    let projects = context.view().await?.read(|tx| projects::list(tx, None)).await?;
    let columns = [
        Column::right(phrase!("number", "番号")),
        Column::left(phrase!("project", "プロジェクト")),
        Column::left(phrase!("host", "ホスト")).secondary(),
        Column::left(phrase!("default branch", "既定のブランチ")),
        Column::moment(phrase!("gone since", "削除")),
    ];
    context.out.listing(&columns, &projects, |project| {
        row![
            project.project_id,
            &project.path,
            &project.host,
            project.default_branch.as_deref(),
            project.removed_at,
        ]
    })
}

async fn sync(job: Option<&str>, context: &Context) -> Result {
    log::start(&context.global, "warn", context.out.colours_messages());
    let app = context.app(Open::Create).await?;
    let mut problems = Vec::new();
    for source in read_sources(context.config().await?, job)? {
        let client = source.client(&app.env)?;
        let (db, now) = (&app.env.db, context.clock.now());
        problems.extend(sync::sync_known(&source, &*client, db, now, &context.stop).await?);
        let synced = sync::sync_projects(&source, &*client, db, now, &context.stop).await?;
        problems.extend(synced.problems);
        context.out.note(phrase!(
            "{job}: {count project} of {host}",
            "{job}：{host} のプロジェクト {count} 件",
            job = source.job.to_string(),
            count = synced.projects.len(),
            host = &source.host
        ));
    }
    for problem in &problems {
        context.out.warn(problem);
    }
    Ok(if problems.is_empty() { Exit::Fine } else { Exit::Partly })
}
