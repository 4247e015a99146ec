//! `quota`: what was used of daily limits, and forgetting it.

use clap::Subcommand;
use serde::Serialize;

use super::names::{refuse_unknown, refuse_unknown_if_given};
use super::table::row;
use super::{Column, Context, Error, Result};
use tsuzuki::app;
use tsuzuki::ledger::{Subject, pause, quota};
use tsuzuki::phrase;
use tsuzuki::phrase::Value;
use tsuzuki::time::Timestamp;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List what was used, newest day first
    Ls {
        /// Only this provider
        provider: Option<String>,
        /// At most this many rows
        #[arg(long, default_value_t = 30)]
        limit: usize,
    },
    /// Reset what was used of a provider on one day
    Reset {
        /// The provider
        provider: String,
        /// The day, as YYYY-MM-DD [default: the provider's today]
        #[arg(long)]
        date: Option<String>,
        /// Confirm: without it nothing is changed
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Serialize)]
struct QuotaRow {
    #[serde(flatten)]
    usage: quota::QuotaUsage,
    per_day: Option<u32>,
    is_paused: bool,
    /// Without an end, until it is resumed.
    paused_until: Option<Timestamp>,
}

pub(super) async fn run(command: Command, context: &Context) -> Result {
    match command {
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
            let pause = pauses.iter().find(|pause| pause.name == provider);
            QuotaRow {
                per_day: quotas.get(&usage.provider).map(|quota| quota.rule.per_day),
                is_paused: pause.is_some(),
                paused_until: pause.and_then(|pause| pause.paused_until),
                usage,
            }
        })
        .collect();
    let columns = [
        Column::left(phrase!("date", "日付")),
        Column::left(phrase!("provider", "提供元")),
        Column::right(phrase!("used", "使用")),
        Column::right(phrase!("limit", "上限")),
        Column::moment(phrase!("paused until", "停止の期限")),
    ];
    context.out.listing(&columns, &listed, |row| {
        row![
            &row.usage.date,
            &row.usage.provider,
            row.usage.count,
            row.per_day,
            match (row.is_paused, row.paused_until) {
                (true, None) => phrase!("resumed", "再開まで").into(),
                (_, until) => Value::from(until),
            },
        ]
    })
}

async fn reset(provider: String, date: Option<String>, yes: bool, context: &Context) -> Result {
    let now = context.clock.now();
    let config = context.config().await?;
    let db = context.db().await?;
    refuse_unknown("provider", &provider, db, context).await?;
    let today = app::quotas(config).get(&provider).map_or_else(
        || now.date_in(config.app.quota_zone.time_zone()).to_string(),
        |quota| quota.rule.date_at(now).to_string(),
    );
    let date = date.unwrap_or(today);
    if !yes {
        let what = phrase!(
            "resetting forgets what `{provider}` was used on {date}",
            "`{provider}` の {date} の使用量をリセットします"
        );
        return Err(Error::unconfirmed(what, format_args!("quota reset {provider} --date {date}")));
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
    context.out.done(phrase!(
        "Reset {count request} of {provider} on {date}",
        "{provider} の {date} のリクエスト {count} 件をリセットしました",
        count = forgotten.unwrap_or(0)
    ))
}
