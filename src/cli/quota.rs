//! `quota`: the usage of daily limits, and its reset.

use std::collections::BTreeMap;

use clap::Subcommand;
use jiff::civil::Date;
use serde::Serialize;

use super::names::{refuse_unknown, refuse_unknown_if_given};
use super::since::SinceArgs;
use super::table::row;
use super::{Column, Context, Error, Result};
use tsuzuki::app;
use tsuzuki::config::Config;
use tsuzuki::ledger::quota::{self, Quota};
use tsuzuki::ledger::{Subject, pause};
use tsuzuki::phrase;
use tsuzuki::phrase::Value;
use tsuzuki::time::Timestamp;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List what was used, newest day first
    Ls {
        /// Only this provider
        provider: Option<String>,
        #[command(flatten)]
        since: SinceArgs,
        /// At most this many rows
        #[arg(long, default_value_t = 30)]
        limit: usize,
    },
    /// Reset what was used of a provider on one day, and resume it
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
    /// `None` until it is resumed.
    paused_until: Option<Timestamp>,
}

pub(super) async fn run(command: Command, context: &Context) -> Result {
    match command {
        Command::Ls { provider, since, limit } => list(provider, &since, limit, context).await,
        Command::Reset { provider, date, yes } => reset(provider, date, yes, context).await,
    }
}

async fn list(provider: Option<String>, since: &SinceArgs, limit: usize, context: &Context) -> Result {
    let config = context.config().await?;
    let quotas = app::quotas(config);
    let (now, since) = (context.clock.now(), since.find(context).await?);
    // Days are those of the provider.
    let is_meant = |usage: &quota::QuotaUsage| {
        let day = |since| day_of(&usage.provider, since, &quotas, config);
        since.is_none_or(|since| usage.date >= day(since))
    };
    let db = context.view().await?;
    refuse_unknown_if_given("provider", provider.as_deref(), &db, context).await?;
    let (usage, pauses) = db
        .read(move |tx| Ok((quota::list_usage(tx, provider.as_deref(), limit)?, pause::list(tx, now)?)))
        .await?;
    let listed: Vec<QuotaRow> = usage
        .into_iter()
        .filter(is_meant)
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
        Column::left(phrase!("provider", "プロバイダー")),
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

/// The day of `provider` that `at` belongs to.
fn day_of(provider: &str, at: Timestamp, quotas: &BTreeMap<String, Quota>, config: &Config) -> String {
    let date = match quotas.get(provider) {
        Some(quota) => quota.rule.date_at(at),
        None => at.date_in(config.app.quota_zone.time_zone()),
    };
    date.to_string()
}

async fn reset(provider: String, date: Option<String>, yes: bool, context: &Context) -> Result {
    let now = context.clock.now();
    let config = context.config().await?;
    let db = context.db().await?;
    refuse_unknown("provider", &provider, db, context).await?;
    if let Some(text) = date.as_deref().filter(|text| text.parse::<Date>().is_err()) {
        return Err(Error::usage(phrase!("`{text}` is no day", "`{text}` は日付ではありません"))
            .hint(phrase!("write it as 2026-01-15", "2026-01-15 のように指定してください")));
    }
    let date = date.unwrap_or_else(|| day_of(&provider, now, &app::quotas(config), config));
    if !yes {
        let what = phrase!(
            "resetting forgets what `{provider}` was used on {date}, and resumes it if it is paused",
            "`{provider}` の {date} の使用量をリセットし、一時停止中なら再開します"
        );
        return Err(Error::unconfirmed(what, format_args!("quota reset {provider} --date {date}")));
    }
    let (name, day) = (provider.clone(), date.clone());
    let (forgotten, resumed) = db
        .write(move |tx| {
            let of_models = format!("{name}/");
            let mut resumed = Vec::new();
            for pause in pause::list(tx, now)? {
                let paused = pause.name.name_of("provider");
                if paused.is_some_and(|paused| paused == name || paused.starts_with(&of_models)) {
                    pause::reset(tx, &pause.name)?;
                    resumed.push(pause);
                }
            }
            Ok((quota::reset_usage(tx, &name, &day)?, resumed))
        })
        .await?;
    for pause in resumed {
        context.out.note(phrase!(
            "Resumed {name}, which was paused: {why}",
            "{name} を再開しました（一時停止の理由：{why}）",
            name = pause.name.name_of("provider").unwrap_or_default(),
            why = &pause.reason
        ));
    }
    context.out.done(phrase!(
        "Reset {count request} of {provider} on {date}",
        "{provider} の {date} のリクエスト {count} 件をリセットしました",
        count = forgotten.unwrap_or(0)
    ))
}
