//! A feed that is gone for good (410): it is paused until a person or another address resumes it, and is announced once.

use serde_json::json;

use super::events::{self, FeedCode};
use super::{Failure, Press, RunContext, store};
use crate::channel::outbox::{self, Batch, Provenance};
use crate::channel::{News, Notice};
use crate::db::{self, Tx};
use crate::engine::{Delivery, JobEnv};
use crate::id::JobName;
use crate::ledger::{Subject, event, pause};
use crate::phrase;
use crate::phrase::Phrase;
use crate::text::Language;
use crate::time::Timestamp;

/// Whose messages these are.
const TOPIC: &str = "press.feed";

/// What is said about a feed that is gone.
pub(super) fn words(job: &JobName) -> Phrase {
    phrase!(
        "it is gone for good (410) and is paused: `tsuzuki job resume {job}` or another `feed` resumes it",
        "フィードが消滅したため（410）一時停止中です。`tsuzuki job resume {job}` か、別の `feed` の設定で再開します",
        job
    )
}

/// Whether the feed is paused now. One with another address than the one that is gone does not.
pub(super) async fn rests(press: &Press, ctx: &RunContext) -> Result<bool, Failure> {
    let (job, feed, now) = (press.name.clone(), press.keys.feed.url().to_string(), ctx.now());
    let (is_gone, is_paused) = ctx
        .db
        .read(move |tx| {
            let is_gone = store::find_gone(tx, &job, &feed)?.is_some();
            Ok((is_gone, pause::find(tx, &events::feed(&job), now)?.is_some()))
        })
        .await?;
    if is_paused && !is_gone {
        let (job, feed, now) = (press.name.clone(), press.keys.feed.url().to_string(), ctx.now());
        ctx.write(move |tx| {
            pause::reset(tx, &events::feed(&job))?;
            let detail = json!({ "feed": feed });
            event::add(tx, Some(&job), &Subject::job(&job), FeedCode::Changed, &detail, now)
        })
        .await?;
    }
    Ok(is_gone)
}

/// Pauses the feed.
pub(super) async fn rest(press: &Press, ctx: &RunContext) -> Result<(), Failure> {
    let (job, feed, now) = (press.name.clone(), press.keys.feed.url().to_string(), ctx.now());
    ctx.write(move |tx| {
        store::mark_gone(tx, &job, &feed, now)?;
        let why = phrase!("{feed} is gone for good (410)", "{feed} は消滅しました（410）", feed = &feed);
        pause::put(tx, &events::feed(&job), None, &why, now)?;
        event::add(tx, Some(&job), &Subject::job(&job), FeedCode::Gone, &json!({ "feed": feed }), now)
    })
    .await
}

/// Tells the channels that the feed is gone, unless that was done; answers what could not be made a message.
pub(super) async fn tell(press: &Press, ctx: &RunContext) -> Result<Vec<Phrase>, Failure> {
    let (job, feed) = (press.name.clone(), press.keys.feed.url().to_string());
    let gone = ctx.db.read(move |tx| store::find_gone(tx, &job, &feed)).await?;
    let Some(gone_at) = gone.filter(|gone| !gone.is_announced).map(|gone| gone.gone_at) else {
        return Ok(Vec::new());
    };
    if ctx.delivery == Delivery::NoDeliver || press.deliver.is_empty() {
        return Ok(Vec::new());
    }
    let JobEnv { channels, channel_env, app, .. } = &press.env;
    let news = News::from(notice(press, app.message_language()));
    let (rendered, failed) = channels.render(&press.deliver, channel_env, &news).await;
    let problems = failed.iter().map(|failed| Phrase::verbatim(failed.to_string())).collect();
    let (job, feed, now) = (press.name.clone(), press.keys.feed.url().to_string(), ctx.now());
    ctx.write(move |tx| {
        if !store::mark_gone_announced(tx, &job, &feed, gone_at, now)? {
            return Ok(());
        }
        let (subject, about) = (format!("gone:{gone_at}"), Subject::job(&job));
        let batch = Batch {
            job: &job,
            topic: TOPIC,
            subject: &subject,
            generation: 0,
            hold: false,
            found: Provenance::Since(store::find_last_success(tx, &job, &feed)?),
            about: &about,
        };
        outbox::add_all(tx, &batch, &rendered, &failed, now).map(drop)
    })
    .await?;
    Ok(problems)
}

fn notice(press: &Press, language: Language) -> Notice {
    let job = &press.name;
    let headline = match language {
        Language::Ja => format!("{job}: フィードが削除されました（410）。読み込みを停止しました"),
        Language::En => format!("{job}: the feed is gone for good (410) and no longer read"),
    };
    Notice { link: Some(press.keys.feed.url().clone()), ..Notice::new(headline, language) }
}

/// Has the feed of a job read again; `false` if it was not paused.
pub fn resume(tx: &mut Tx<'_>, job: &JobName) -> db::Result<bool> {
    let was_gone = store::reset_gone(tx, job)? > 0;
    Ok(pause::reset(tx, &events::feed(job))? || was_gone)
}

/// A feed that is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone {
    /// When it said so.
    pub gone_at: Timestamp,
    /// Whether the channels of its job were told.
    pub is_announced: bool,
}
