//! `job cursor`: shows and resets how far a job has read.

use clap::Subcommand;

use super::super::names::refuse_unknown_if_given;
use super::super::table::row;
use super::super::{Cell, Column, Context, Error, Exit, Result};
use tsuzuki::engine::commands;
use tsuzuki::hash;
use tsuzuki::ledger::cursor::{self, Cursor};
use tsuzuki::phrase;

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Command {
    /// Show how far a job has read
    Show {
        /// The job [default: all]
        name: Option<String>,
    },
    /// Reset how far a job has read, so that it starts from the beginning
    Reset {
        /// The job
        name: String,
        /// Confirm: without it nothing is changed
        #[arg(long)]
        yes: bool,
    },
}

pub(super) async fn run(command: Command, context: &Context) -> Result {
    match command {
        Command::Show { name } => show(name, context).await,
        Command::Reset { name, yes } => reset(name, yes, context).await,
    }
}

async fn show(name: Option<String>, context: &Context) -> Result {
    let db = context.view().await?;
    refuse_unknown_if_given("job", name.as_deref(), &db, context).await?;
    let cursors = db.read(move |tx| cursor::list(tx, name.as_deref())).await?;
    let columns = [
        Column::left(phrase!("job", "ジョブ")),
        Column::left(phrase!("query set", "検索条件")),
        Column::right(phrase!("next", "次の位置")),
        Column::left(phrase!("exhausted", "枯渇")),
        Column::moment(phrase!("updated", "更新")),
    ];
    context.out.listing(&columns, &cursors, |cursor| {
        row![
            &cursor.job_name,
            hash::short(&cursor.query_set_hash),
            cursor.start_index,
            Cell::flag(cursor.is_exhausted),
            cursor.last_updated_at,
        ]
    })
}

/// A name that has left the config but still has cursors is reset, too.
async fn reset(name: String, yes: bool, context: &Context) -> Result {
    let config = context.config().await?;
    let db = context.db().await?;
    let known = db.read(|tx| cursor::list(tx, None)).await?;
    let of_job: Vec<&Cursor> = known.iter().filter(|cursor| cursor.job_name == name).collect();
    if of_job.is_empty() && config.find_job(&name).is_none() {
        let names =
            config.jobs.iter().map(|job| job.name.as_str()).chain(known.iter().map(|c| c.job_name.as_str()));
        let error = Error::usage(phrase!(
            "there is no job `{name}`, and no cursor of that name",
            "ジョブ `{name}` も、その名前の読み込み位置もありません"
        ));
        let all = phrase!(
            "`tsuzuki job cursor show` lists every cursor",
            "読み込み位置の一覧は `tsuzuki job cursor show` で確認できます"
        );
        return Err(error.hint_nearest(&name, names, all));
    }
    if !yes {
        let of_job: Vec<Cursor> = of_job.into_iter().cloned().collect();
        let what = commands::forgets(&name, &of_job);
        return Err(Error::unconfirmed(what, format_args!("job cursor reset {name}")));
    }
    let job_name = name.clone();
    let count = db.write(move |tx| cursor::reset_by_job(tx, &job_name)).await?;
    let reset = serde_json::json!({ "job_name": name, "reset_count": count });
    context.out.json_or_line(&reset, format!("Reset {count} cursor(s) for job: {name}"))?;
    Ok(Exit::Fine)
}
