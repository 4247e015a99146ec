//! `doctor`: checks everything that a run needs, without sending or changing anything.

mod files;
pub(super) mod keys;

use futures_util::future::join_all;
use serde::Serialize;

use super::error::Message;
use super::table::{Tone, row};
use super::{Cell, Column, Context, Error, Exit, Result, waiting};
use tsuzuki::app::{self, App};
use tsuzuki::channel::outbox;
use tsuzuki::config::{Config, Problem};
use tsuzuki::db::{DbUrl, Open};
use tsuzuki::engine::attention;
use tsuzuki::fetch::{Check, Wanted};
use tsuzuki::id::JobName;
use tsuzuki::ledger::pause;
use tsuzuki::phrase;
use tsuzuki::phrase::Phrase;
use tsuzuki::text::Language;

/// Options of `doctor`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Leave the network out: only the config file, secrets and the database
    #[arg(long)]
    offline: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Ok,
    Warning,
    Error,
}

#[derive(Debug, Serialize)]
struct Finding {
    check: Phrase,
    verdict: Verdict,
    detail: Phrase,
    /// The exit code that an error leads to.
    #[serde(skip)]
    exit: Exit,
}

impl Finding {
    fn new(check: impl Into<Phrase>, verdict: Verdict, detail: impl Into<Phrase>) -> Self {
        let exit = if verdict == Verdict::Error { Exit::Failed } else { Exit::Fine };
        Self { check: check.into(), verdict, detail: detail.into(), exit }
    }

    fn of_credentials(check: impl Into<Phrase>, detail: impl Into<Phrase>) -> Self {
        Self { exit: Exit::Credentials, ..Self::new(check, Verdict::Error, detail) }
    }

    /// The findings of an error; each problem of a config file is a separate one.
    fn list_of(check: impl Into<Phrase>, error: &Error) -> Vec<Self> {
        let check = check.into();
        let finding = |detail: Phrase| {
            let detail = error
                .hints
                .iter()
                .fold(detail, |words, hint| phrase!("{words} ({hint})", "{words}（{hint}）"));
            Self { exit: error.exit, ..Self::new(check.clone(), Verdict::Error, detail) }
        };
        match &error.message {
            Message::Text(text) => vec![finding(text.clone())],
            Message::Problems(problems) => problems.iter().map(|problem| finding(in_line(problem))).collect(),
            Message::ClosedPipe => Vec::new(),
        }
    }
}

/// A problem of the config file in one sentence.
fn in_line(problem: &Problem) -> Phrase {
    let labelled = with_hint(&problem.message, problem.label.as_ref());
    let text = with_hint(&labelled, problem.hint.as_ref());
    match problem.line() {
        0 => text,
        line => phrase!("line {line}: {text}", "{line} 行目：{text}"),
    }
}

pub(super) async fn run(args: &Args, context: &Context) -> Result {
    let mut findings = examine(context).await;
    if !args.offline {
        findings.extend(check_services(context).await);
    }
    let columns = [
        Column::left(phrase!("check", "項目")),
        Column::left(phrase!("verdict", "判定")),
        Column::whole(phrase!("detail", "詳細")),
    ];
    context.out.listing(&columns, &findings, |finding| {
        let verdict = match finding.verdict {
            Verdict::Ok => Cell::toned(phrase!("ok", "正常"), Tone::Good),
            Verdict::Warning => Cell::toned(phrase!("warning", "警告"), Tone::Warning),
            Verdict::Error => Cell::toned(phrase!("error", "エラー"), Tone::Bad),
        };
        row![&finding.check, verdict, &finding.detail]
    })?;
    // What to fix first: without the config nothing can be checked, without credentials little.
    let order = [Exit::Config, Exit::Credentials];
    let first = order.into_iter().find(|exit| findings.iter().any(|finding| finding.exit == *exit));
    let any = findings.iter().any(|finding| finding.verdict == Verdict::Error);
    Ok(first.unwrap_or(if any { Exit::Failed } else { Exit::Fine }))
}

fn config_file() -> Phrase {
    phrase!("config", "設定")
}

fn database() -> Phrase {
    phrase!("database", "データベース")
}

fn job_of(name: &JobName) -> Phrase {
    phrase!("job {name}", "ジョブ {name}")
}

fn channel_of(name: &str) -> Phrase {
    phrase!("channel {name}", "チャンネル {name}")
}

fn llm_of(name: &str) -> Phrase {
    phrase!("llm {name}", "LLM {name}")
}

async fn examine(context: &Context) -> Vec<Finding> {
    let mut findings = Vec::new();
    let config = match context.config().await {
        Ok(config) => config,
        Err(error) => return Finding::list_of(config_file(), &error),
    };
    // Problems between tables appear only when the jobs are made.
    if let Err(error) = context.app_on_scratch().await {
        return Finding::list_of(config_file(), &error);
    }
    findings.push(Finding::new(config_file(), Verdict::Ok, config.path.display().to_string()));
    findings.extend(
        config
            .warnings
            .iter()
            .chain(app::list_warnings(config).iter())
            .map(|warning| Finding::new(config_file(), Verdict::Warning, in_line(warning))),
    );
    findings.extend(language(config));
    findings.extend(secrets(config));
    match context.place().await {
        Err(error) => {
            findings.extend(Finding::list_of(database(), &error));
            return findings;
        }
        Ok(DbUrl::File(path)) => {
            if let Err(why) = files::check_place(&path) {
                findings.push(Finding::new(database(), Verdict::Error, why));
                return findings;
            }
        }
        Ok(DbUrl::Memory | DbUrl::Server(_)) => {}
    }
    match context.database_exists().await {
        Err(error) => findings.extend(Finding::list_of(database(), &error)),
        Ok(false) => findings.push(Finding::new(
            database(),
            Verdict::Warning,
            phrase!("not there yet; the first run creates it", "まだありません（初回の実行で作成されます）"),
        )),
        Ok(true) => match context.app(Open::ReadOnly).await {
            Ok(app) => {
                let db = &app.env.db;
                findings.push(Finding::new(
                    database(),
                    Verdict::Ok,
                    phrase!(
                        "{kind} at {place}",
                        "{kind}（{place}）",
                        kind = db.dialect().name(),
                        place = db.place().to_string()
                    ),
                ));
                findings.extend(clocks(context, db).await);
                findings.extend(find_waiting(&app).await);
            }
            Err(error) => findings.extend(Finding::list_of(database(), &error)),
        },
    }
    findings
}

/// A problem with its hint.
pub(super) fn with_hint(what: &Phrase, hint: Option<&Phrase>) -> Phrase {
    match hint {
        Some(hint) => phrase!("{what}; {hint}", "{what}。{hint}"),
        None => what.clone(),
    }
}

/// Whoever tries a job in a shell reads messages in the language of its locale, which cron and systemd do not have.
fn language(config: &Config) -> Option<Finding> {
    let is_open = config.app.language.is_none() && config.app.locale != Some(Language::Ja);
    let sends = config.jobs.iter().any(|job| !job.deliver.is_empty());
    (is_open && sends).then(|| {
        let detail = phrase!(
            "`language` in [app] is not set: messages are in Japanese wherever the locale (LANG) names no language, as in cron",
            "[app] の `language` が未設定です。cron など、ロケール（LANG）に言語の指定がない環境ではメッセージは日本語になります"
        );
        Finding::new(config_file(), Verdict::Warning, detail)
    })
}

/// Missing secrets and where to get them, and recommended ones.
fn secrets(config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    for missing in config.list_missing_secrets() {
        let place = match missing.kind.as_str() {
            "" => missing.key.clone(),
            _ => format!("{}.{}", missing.owner, missing.key),
        };
        let text = with_hint(&missing.why, keys::where_to_get(&missing.kind, &missing.key).as_ref());
        let detail = phrase!("{text} (line {line})", "{text}（{line} 行目）", line = missing.line);
        findings.push(Finding::of_credentials(phrase!("secret {place}", "シークレット {place}"), detail));
    }
    let warnings = config.list_secret_warnings();
    findings.extend(
        warnings
            .iter()
            .map(|warning| Finding::new(phrase!("secrets", "シークレット"), Verdict::Warning, warning)),
    );
    for job in &config.jobs {
        if let Some(detail) = keys::better_with(&job.kind, &job.section) {
            findings.push(Finding::new(job_of(&job.name), Verdict::Warning, detail));
        }
    }
    findings
}

/// Checks all remote services concurrently, without sending, counting or changing anything.
async fn check_services(context: &Context) -> Vec<Finding> {
    // Problems of the config have been reported already.
    let Ok(app) = context.app_on_scratch().await else { return Vec::new() };
    let Ok(config) = context.config().await else { return Vec::new() };
    let missing: Vec<Phrase> = config.list_missing_secrets().into_iter().map(|secret| secret.why).collect();
    let findings = |who: &Phrase, kind: &str, checks: Vec<Check>| {
        // A missing secret has its own line, with where to get it.
        let is_told = |check: &Check| check.is_locked && missing.contains(&check.detail);
        let checks = checks.into_iter().filter(|check| !is_told(check));
        checks.map(|check| finding(who, kind, check)).collect::<Vec<_>>()
    };
    let channels = app.env.channels.iter().map(async |channel| {
        let mut checks = channel.check(&app.env.channel_env).await;
        if let Some(origin) = channel.origin() {
            let allowed = &channel.settings.allow_private;
            checks.push(app.env.fetcher.reach(Check::SERVER, &origin, allowed, Wanted::Anything).await);
        }
        findings(&channel_of(&channel.name), channel.kind(), checks)
    });
    let llms =
        app.env.llms.iter().map(async |llm| findings(&llm_of(&llm.name), llm.kind(), llm.check().await));
    let jobs = app
        .jobs
        .iter()
        .filter(|job| job.enabled)
        .map(async |job| findings(&job_of(&job.name), job.kind, job.collector.check().await));
    let (channels, llms, jobs) = tokio::join!(join_all(channels), join_all(llms), join_all(jobs));
    channels.into_iter().chain(llms).chain(jobs).flatten().collect()
}

fn finding(who: &Phrase, kind: &str, check: Check) -> Finding {
    let name = phrase!("{who}: {what}", "{who}：{what}", what = check.what.clone());
    if check.is_fine {
        let verdict = if check.is_warning { Verdict::Warning } else { Verdict::Ok };
        return Finding::new(name, verdict, check.detail);
    }
    match keys::where_to_get_after(kind, &check) {
        Some(hint) => {
            let detail = phrase!("{detail} ({hint})", "{detail}（{hint}）", detail = check.detail);
            Finding::of_credentials(name, detail)
        }
        None => Finding::new(name, Verdict::Error, check.detail),
    }
}

/// Messages that need approval, or whose channel is paused or does not exist any more.
async fn find_waiting(app: &App) -> Vec<Finding> {
    let mut findings = Vec::new();
    let names = app.env.channels.names();
    let (now, jobs) = (app.env.clock.now(), app.jobs.clone());
    let waiting = app.env.db.read(move |tx| {
        let of_people = attention::sum(attention::list_waiting(tx, now)?.values());
        let mut facts = Vec::new();
        for job in &jobs {
            let of_job = job.collector.list_facts(tx, &job.name, now)?;
            facts.extend(of_job.into_iter().map(|fact| (job.name.clone(), fact)));
        }
        Ok((outbox::list_orphans(tx, &names)?, pause::list(tx, now)?, of_people, facts))
    });
    match waiting.await {
        Ok((orphans, pauses, of_people, facts)) => {
            for (job, fact) in facts {
                let detail =
                    phrase!("{label}: {value}", "{label}：{value}", label = fact.label, value = fact.value);
                findings.push(Finding::new(job_of(&job), Verdict::Warning, detail));
            }
            for sentence in
                [waiting::held_sentence(of_people), waiting::failed_sentence(of_people)].into_iter().flatten()
            {
                findings.push(Finding::new(phrase!("messages", "メッセージ"), Verdict::Warning, sentence));
            }
            for (channel, count) in orphans {
                let detail = phrase!(
                    "the config does not name it, but {count message} wait for it",
                    "設定にありませんが、{count} 件のメッセージが残っています"
                );
                findings.push(Finding::new(channel_of(&channel), Verdict::Warning, detail));
            }
            for pause in pauses {
                let until = match pause.paused_until {
                    Some(until) => phrase!("{until}", "{until}"),
                    None => phrase!("further notice", "再開されるまで"),
                };
                let (channel, reason) = (pause.name.name_of("channel"), &pause.reason);
                let (who, detail) = match (channel, pause.name.name_of("provider")) {
                    (Some(channel), _) => (
                        channel_of(channel),
                        phrase!(
                            "paused until {until}: {reason} (`tsuzuki delivery retry --channel {channel}`)",
                            "停止中（{until}）：{reason}（`tsuzuki delivery retry --channel {channel}` で再開）"
                        ),
                    ),
                    (None, Some(provider)) => (
                        llm_of(provider),
                        phrase!("paused until {until}: {reason}", "停止中（{until}）：{reason}"),
                    ),
                    (None, None) => continue,
                };
                findings.push(Finding::new(who, Verdict::Warning, detail));
            }
        }
        Err(error) => findings.extend(Finding::list_of(phrase!("channels", "チャンネル"), &error.into())),
    }
    findings
}

/// Checks the clock of the server: a large difference makes schedules and leases confusing.
async fn clocks(context: &Context, db: &tsuzuki::db::Db) -> Vec<Finding> {
    let name = phrase!("clocks", "時計");
    match db.now().await {
        Ok(there) => {
            let here = context.clock.now();
            let apart = here.since(there).max(there.since(here));
            let verdict = if apart.as_secs() > 30 { Verdict::Warning } else { Verdict::Ok };
            let detail = phrase!(
                "the database's clock is {secs} s away from ours",
                "データベースとの時計の差：{secs} 秒",
                secs = apart.as_secs()
            );
            vec![Finding::new(name, verdict, detail)]
        }
        Err(error) => Finding::list_of(name, &error.into()),
    }
}
