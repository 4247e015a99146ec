//! A feed that answers 410 is paused until a user or another address resumes it. Its pause is an alert.

use serde_json::json;

use super::events::{self, FeedCode};
use super::{Failure, Press, RunContext, store};
use crate::db::{self, Tx};
use crate::id::JobName;
use crate::ledger::{Subject, event, pause};
use crate::parse::url::Url;
use crate::phrase;
use crate::phrase::Phrase;

pub(super) fn words(job: &JobName) -> Phrase {
    phrase!(
        "it is gone for good (410) and is paused: `tsuzuki job resume {job}` or another `feed` resumes it",
        "フィードが消滅したため（410）一時停止中です。`tsuzuki job resume {job}` か、別の `feed` の設定で再開します"
    )
}

/// Whether a feed is gone.
pub(super) async fn is_paused(press: &Press, ctx: &RunContext, feed: &Url) -> Result<bool, Failure> {
    let (job, feed) = (press.name.clone(), feed.to_string());
    Ok(ctx.db.read(move |tx| store::is_gone(tx, &job, &feed)).await?)
}

/// Ends the pause when none of the configured feeds is gone: the config has other addresses now.
pub(super) async fn resume_if_moved(press: &Press, ctx: &RunContext) -> Result<(), Failure> {
    let (job, now) = (press.name.clone(), ctx.now());
    let feeds: Vec<String> = press.feeds().map(Url::to_string).collect();
    let urls = feeds.clone();
    let is_over = ctx
        .db
        .read(move |tx| {
            for feed in &urls {
                if store::is_gone(tx, &job, feed)? {
                    return Ok(false);
                }
            }
            Ok(pause::find(tx, &events::feed(&job), now)?.is_some())
        })
        .await?;
    if !is_over {
        return Ok(());
    }
    let job = press.name.clone();
    ctx.write(move |tx| {
        pause::reset(tx, &events::feed(&job))?;
        let detail = json!({ "feed": feeds });
        event::add(tx, Some(&job), &Subject::job(&job), FeedCode::Changed, &detail, now)
    })
    .await
}

pub(super) async fn pause(press: &Press, ctx: &RunContext, feed: &Url) -> Result<(), Failure> {
    let (job, feed, now) = (press.name.clone(), feed.to_string(), ctx.now());
    ctx.write(move |tx| {
        store::mark_gone(tx, &job, &feed, now)?;
        let why = phrase!("{feed} is gone for good (410)", "{feed} は消滅しました（410）", feed = &feed);
        pause::put(tx, &events::feed(&job), None, &why, now)?;
        event::add(tx, Some(&job), &Subject::job(&job), FeedCode::Gone, &json!({ "feed": feed }), now)
    })
    .await
}

/// Resumes the feed of a job; `false` if it was not paused.
pub fn resume(tx: &mut Tx<'_>, job: &JobName) -> db::Result<bool> {
    let was_gone = store::reset_gone(tx, job)? > 0;
    Ok(pause::reset(tx, &events::feed(job))? || was_gone)
}
