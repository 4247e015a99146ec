//! `quota`: what was used of daily limits, and forgetting it.

use clap::Subcommand;
use serde::Serialize;

use super::names::{refuse_unknown, refuse_unknown_if_given};
use super::{Column, Context, Error, Exit, Result};
use crate::app;
use crate::ledger::{Subject, pause, quota};
use crate::text::counted;

/// Options of `quota`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List what was used, newest day first
    Ls {
        /// Only this provider
        provider: Option<String>,
        /// At most this many rows
        #[arg(long, default_value_t = 30)]
        limit: usize,
    },
    /// Forget what was used of a provider on one day
    Reset {
        /// The provider
        provider: String,
        /// The day, as YYYY-MM-DD [default: the provider's today]
        #[arg(long)]
        date: Option<String>,
        /// Do it
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Serialize)]
struct QuotaRow {
    #[serde(flatten)]
    usage: quota::QuotaUsage,
    per_day: Option<u32>,
    paused_until: Option<String>,
}

pub(super) async fn run(args: Args, context: &Context) -> Result {
    match args.command {
        Command::Ls { provider, limit } => list(provider, limit, context).await,
        Command::Reset { provider, date, yes } => reset(provider, date, yes, context).await,
    }
}

async fn list(provider: Option<String>, limit: usize, context: &Context) -> Result {
    let quotas = app::quotas(context.config().await?);
    let now = context.clock.now();
    let db = context.view().await?;
    refuse_unknown_if_given("provider", provider.as_deref(), &db, context).await?;
    let (usage, pauses) = db
        .read(move |tx| Ok((quota::list_usage(tx, provider.as_deref(), limit)?, pause::list(tx, now)?)))
        .await?;
    let listed: Vec<QuotaRow> = usage
        .into_iter()
        .map(|usage| {
            let provider = Subject::provider(&usage.provider);
            let rest = pauses.iter().find(|pause| pause.name == provider);
            QuotaRow {
                per_day: quotas.get(&usage.provider).map(|quota| quota.rule.per_day),
                paused_until: rest
                    .map(|rest| rest.paused_until.map_or("resumed".into(), |at| at.to_string())),
                usage,
            }
        })
        .collect();
    let times = context.times().await?;
    let columns = [
        Column::left("date"),
        Column::left("provider"),
        Column::right("used"),
        Column::right("limit"),
        Column::left("paused until"),
    ];
    context.out.listing(&columns, &listed, |row| {
        vec![
            row.usage.date.clone(),
            row.usage.provider.clone(),
            row.usage.count.to_string(),
            row.per_day.map_or("-".into(), |limit| limit.to_string()),
            row.paused_until.as_deref().map_or_else(|| "-".to_owned(), |until| times.told(until)),
        ]
    })?;
    Ok(Exit::Fine)
}

async fn reset(provider: String, date: Option<String>, yes: bool, context: &Context) -> Result {
    let now = context.clock.now();
    let config = context.config().await?;
    let db = context.db().await?;
    refuse_unknown("provider", &provider, db, context).await?;
    let today = app::quotas(config).get(&provider).map_or_else(
        || now.date_in(config.app.timezone.time_zone()).to_string(),
        |quota| quota.rule.date_at(now).to_string(),
    );
    let date = date.unwrap_or(today);
    if !yes {
        return Err(Error::usage(format!("resetting forgets what `{provider}` was used on {date}")).hint(
            format!("run `tsuzuki quota reset {provider} --date {date} --yes` if that is what you want"),
        ));
    }
    let (name, day) = (provider.clone(), date.clone());
    let forgotten = db
        .write(move |tx| {
            let of_models = format!("{name}/");
            for pause in pause::list(tx, now)? {
                let paused = pause.name.name_of("provider");
                if paused.is_some_and(|paused| paused == name || paused.starts_with(&of_models)) {
                    pause::reset(tx, &pause.name)?;
                }
            }
            quota::reset_usage(tx, &name, &day)
        })
        .await?;
    let requests = counted(forgotten.unwrap_or(0), "request");
    context.out.note(format!("Reset {requests} of {provider} on {date}"));
    Ok(Exit::Fine)
}
