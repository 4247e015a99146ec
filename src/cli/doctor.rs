//! `doctor`: everything that a run needs, looked at one by one, without sending or changing anything.

use serde::Serialize;

use super::{Column, Context, Error, Exit, Result};
use crate::app::App;
use crate::channel::outbox;
use crate::config::Colour;
use crate::db::Open;
use crate::ledger::pause;

/// Options of `doctor`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Ok,
    Warning,
    Error,
}

#[derive(Debug, Serialize)]
struct Finding {
    check: String,
    verdict: Verdict,
    detail: String,
}

impl Finding {
    fn new(check: &str, verdict: Verdict, detail: impl Into<String>) -> Self {
        Self { check: check.to_owned(), verdict, detail: detail.into() }
    }

    fn error(check: &str, error: &Error) -> Self {
        let words = error.plain(Colour::Never);
        let hints: String = error.hints.iter().map(|hint| format!(" ({hint})")).collect();
        Self::new(check, Verdict::Error, format!("{words}{hints}"))
    }
}

pub(super) async fn run(_: &Args, context: &Context) -> Result {
    let findings = examine(context).await;
    context.out.listing(&["check", "verdict", "detail"].map(Column::left), &findings, |finding| {
        let verdict = match finding.verdict {
            Verdict::Ok => "ok",
            Verdict::Warning => "warning",
            Verdict::Error => "error",
        };
        vec![finding.check.clone(), verdict.into(), finding.detail.clone()]
    })?;
    match findings.iter().any(|finding| finding.verdict == Verdict::Error) {
        true => Ok(Exit::Failed),
        false => Ok(Exit::Fine),
    }
}

async fn examine(context: &Context) -> Vec<Finding> {
    let mut findings = Vec::new();
    let config = match context.config().await {
        Ok(config) => config,
        Err(error) => return vec![Finding::error("config", &error)],
    };
    findings.push(Finding::new("config", Verdict::Ok, config.path.display().to_string()));
    findings.extend(
        config.warnings.iter().map(|warning| Finding::new("config", Verdict::Warning, warning.to_string())),
    );
    let secrets = config.check_secrets();
    findings.extend(secrets.iter().map(|secret| Finding::new("secrets", Verdict::Error, secret.to_string())));
    let exists = context.database_exists().await;
    match exists {
        Err(error) => findings.push(Finding::error("database", &error)),
        Ok(false) => findings.push(Finding::new(
            "database",
            Verdict::Warning,
            "not there yet; the first run creates it",
        )),
        Ok(true) => match context.app(Open::Look).await {
            Ok(app) => {
                let db = &app.parts.db;
                findings.push(Finding::new(
                    "database",
                    Verdict::Ok,
                    format!("{} at {}", db.dialect().name(), db.place()),
                ));
                findings.push(clocks(context, db).await);
                findings.extend(channels(&app).await);
            }
            Err(error) => findings.push(Finding::error("database", &error)),
        },
    }
    findings
}

/// Every channel, asked without sending anything; and what waits for one that rests or is not there any more.
async fn channels(app: &App) -> Vec<Finding> {
    let mut findings = Vec::new();
    for channel in app.parts.channels.iter() {
        for check in channel.check(&app.parts.outside).await {
            let verdict = if check.is_fine { Verdict::Ok } else { Verdict::Error };
            findings.push(Finding::new(
                &format!("channel {}: {}", channel.name, check.what),
                verdict,
                check.detail,
            ));
        }
    }
    let names = app.parts.channels.names();
    let now = app.parts.clock.now();
    let waiting =
        app.parts.db.read(move |tx| Ok((outbox::list_orphans(tx, &names)?, pause::list(tx, now)?))).await;
    match waiting {
        Ok((orphans, rests)) => {
            for (channel, count) in orphans {
                let detail = format!("{count} message(s) wait for it, but the config does not name it");
                findings.push(Finding::new(&format!("channel {channel}"), Verdict::Warning, detail));
            }
            for rest in rests {
                let Some(channel) = rest.name.strip_prefix("channel:") else { continue };
                let until =
                    rest.paused_until.map_or("its credentials change".to_owned(), |at| at.to_string());
                let detail = format!(
                    "rests until {until}: {} (`tsuzuki delivery retry --channel {channel}`)",
                    rest.reason
                );
                findings.push(Finding::new(&format!("channel {channel}"), Verdict::Warning, detail));
            }
        }
        Err(error) => findings.push(Finding::error("channels", &error.into())),
    }
    findings
}

/// A server whose clock differs much from ours makes schedules and leases confusing to read.
async fn clocks(context: &Context, db: &crate::db::Db) -> Finding {
    match db.now().await {
        Ok(there) => {
            let here = context.clock.now();
            let apart = here.since(there).max(there.since(here));
            let verdict = if apart.as_secs() > 30 { Verdict::Warning } else { Verdict::Ok };
            Finding::new(
                "clocks",
                verdict,
                format!("the database's clock is {} s away from ours", apart.as_secs()),
            )
        }
        Err(error) => Finding::error("clocks", &error.into()),
    }
}
