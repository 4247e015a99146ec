//! The message at the end of a run, sent once: how many commits are new, and what failed.

use serde_json::json;

use super::GitSource;
use super::events::{self, RunCode};
use super::run::{self, Summary, TargetStatus};
use super::store::projects;
use crate::channel::outbox::{self, Batch, Provenance};
use crate::channel::{NotRendered, Notice, NoticeEntry, Rendered};
use crate::db;
use crate::engine::JobEnv;
use crate::id::{JobName, RunId};
use crate::ledger::event;
use crate::phrase;
use crate::phrase::{Phrase, Speech};
use crate::text::{Language, and_more};
use crate::time::Timestamp;

/// The topic of these messages in the outbox.
pub const TOPIC: &str = "commits";
/// The most failures that a message lists.
const MAX_NAMED: usize = 50;

/// The notice about a run that has ended.
pub fn render_notice(summary: &Summary, failed: &[(String, Phrase)], language: Language) -> Notice {
    let (good, bad) = (summary.run.success_count, summary.run.failed_count);
    let new = summary.new_commits_count;
    let headline = match language {
        Language::Ja => format!("コミット収集: 新規 {new} 件（成功 {good} ブランチ、失敗 {bad}）"),
        Language::En => format!("Commits: {new} new ({good} branches up to date, {bad} failed)"),
    };
    let mut notice = Notice::new(headline, language);
    let speech = Speech { language, ..Speech::default() };
    notice.entries = failed
        .iter()
        .take(MAX_NAMED)
        .map(|(branch, why)| NoticeEntry {
            title: branch.clone(),
            link: None,
            date: None,
            note: Some(speech.phrase(why)),
        })
        .collect();
    if failed.len() > MAX_NAMED {
        let more = and_more(failed.len() - MAX_NAMED, language);
        notice.summary = match language {
            Language::Ja => more,
            Language::En => format!("… {more}"),
        };
    }
    notice
}

/// The messages of one job's channels, and the errors of those that could not render.
type Made = (JobName, Vec<Rendered>, Vec<NotRendered>);

/// Queues messages for all completed runs that are not announced yet, no matter which process ended them; returns
/// problems.
pub async fn notify_ended(env: &JobEnv) -> db::Result<Vec<Phrase>> {
    let mut problems = Vec::new();
    for (run_id, owner) in env.db.read(run::list_unannounced).await? {
        problems.extend(enqueue_end(env, run_id, owner.as_deref()).await?);
    }
    Ok(problems)
}

/// Queues the notice about a completed run for the channels of its job, or of all jobs, unless that was done before.
///
/// A run without new commits and without new failures is marked as announced without a message. A run of a job that
/// this config does not have is left to a process that has it.
async fn enqueue_end(env: &JobEnv, run_id: RunId, owner: Option<&str>) -> db::Result<Vec<Phrase>> {
    let mut listeners = GitSource::list(&env.jobs);
    listeners.retain(|source| owner.is_none_or(|job| job == source.job.as_str()));
    if listeners.is_empty() {
        return Ok(Vec::new());
    }
    let Some((summary, failed)) = env.db.read(move |tx| find_unannounced(tx, run_id)).await? else {
        return Ok(Vec::new());
    };
    let is_news = summary.new_commits_count > 0 || !failed.is_empty();
    let news = render_notice(&summary, &failed, env.app.message_language()).into();
    let (mut made, mut problems): (Vec<Made>, _) = (Vec::new(), Vec::new());
    for source in listeners.iter().filter(|_| is_news) {
        let (rendered, failed) = env.channels.render(&source.deliver, &env.channel_env, &news).await;
        let job = &source.job;
        problems.extend(failed.iter().map(|error| {
            phrase!(
                "{job}: nobody is notified of the end of run {run}: {why}",
                "{job}：収集 {run} の終了を通知できません：{why}",
                job = job.as_str(),
                run = run_id.to_string(),
                why = error.to_string()
            )
        }));
        made.push((job.clone(), rendered, failed));
    }
    let now = env.clock.now();
    let is_ours = env.db.write(move |tx| add_messages(tx, run_id, &made, now)).await?;
    Ok(if is_ours { problems } else { Vec::new() })
}

type Unannounced = Option<(Summary, Vec<(String, Phrase)>)>;

fn find_unannounced(tx: &mut db::Tx<'_>, run_id: RunId) -> db::Result<Unannounced> {
    let Some(summary) = run::find_summary(tx, &run_id)? else { return Ok(None) };
    let mut failed = Vec::new();
    for target in run::list_results(tx, &run_id)? {
        if target.status != TargetStatus::Failed {
            break;
        }
        if target.is_known_failure {
            continue;
        }
        let path = projects::find(tx, target.project_id)?.map(|project| project.path).unwrap_or_default();
        failed.push((
            format!("{path} {}", target.branch_name),
            target.error_message.unwrap_or_else(|| "".into()),
        ));
    }
    Ok(Some((summary, failed)))
}

/// `false` when another process has announced it meanwhile.
fn add_messages(tx: &mut db::Tx<'_>, run_id: RunId, made: &[Made], now: Timestamp) -> db::Result<bool> {
    if !run::mark_announced(tx, &run_id)? {
        return Ok(false);
    }
    let about = events::run(&run_id);
    let found = Provenance::Since(run::find_last_completed(tx, &run_id)?);
    for (job, rendered, failed) in made {
        let batch = Batch {
            job,
            topic: TOPIC,
            subject: about.as_str(),
            generation: 0,
            hold: false,
            found,
            about: &about,
        };
        outbox::add_all(tx, &batch, rendered, failed, now)?;
        if !rendered.is_empty() {
            event::add(
                tx,
                Some(job),
                &about,
                RunCode::Announced,
                &json!({ "messages": rendered.len() }),
                now,
            )?;
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commits::run::{RunRow, RunState, RunStatus};

    #[test]
    fn the_notice_gives_the_figures_in_both_languages() {
        let run = RunRow {
            run_id: RunId::random(),
            started_at_utc: Timestamp::MIN,
            completed_at_utc: None,
            status: RunStatus::Completed,
            total_targets: 3,
            completed_count: 2,
            failed_count: 1,
            success_count: 2,
            job_name: None,
        };
        let summary = Summary {
            run,
            state: RunState::Completed,
            workers: Vec::new(),
            pending_count: 0,
            new_commits_count: 41,
        };
        let failed = [("team/app main".to_owned(), Phrase::from("gone"))];
        let english = render_notice(&summary, &failed, Language::En);
        assert_eq!(english.headline, "Commits: 41 new (2 branches up to date, 1 failed)");
        assert_eq!(english.entries[0].note.as_deref(), Some("gone"));
        assert!(render_notice(&summary, &failed, Language::Ja).headline.contains("41"));
    }
}
