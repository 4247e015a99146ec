//! Tells the channels of `[app] alert` what begins and what is over, through the outbox.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::causes::Changes;
use super::store::{self, Alert};
use crate::channel::outbox::{self, Batch, Provenance};
use crate::channel::{ChannelEnv, ChannelSet, News, Notice};
use crate::config::redact;
use crate::db::{self, Db};
use crate::engine::JobEnv;
use crate::id::JobName;
use crate::ledger::Subject;
use crate::phrase;
use crate::phrase::Speech;
use crate::text;

/// Whose messages these are, and the job that they are listed under.
const TOPIC: &str = "alert";
/// Columns of a notice, at most: reasons can be as long as a server likes.
const MAX_COLUMNS: usize = 400;

/// Keeps the alerts up to date and tells them. Cheap to clone.
#[derive(Clone)]
pub struct Announcer {
    db: Db,
    channels: Arc<ChannelSet>,
    channel_env: ChannelEnv,
    /// The channels that are told.
    names: Vec<String>,
    /// The jobs and channels of the config.
    configured: Arc<BTreeSet<String>>,
    speech: Speech,
}

impl Announcer {
    /// One for the channels that the config names in `alert`.
    pub fn new(env: &JobEnv) -> Self {
        let jobs = env.jobs.iter().map(|job| Subject::job(&job.name).to_string());
        let channels = env.channels.iter().map(|channel| Subject::channel(&channel.name).to_string());
        Self {
            db: env.db.clone(),
            channels: Arc::clone(&env.channels),
            channel_env: env.channel_env.clone(),
            names: env.app.alert.clone(),
            configured: Arc::new(jobs.chain(channels).collect()),
            speech: Speech {
                language: env.app.message_language(),
                zone: Some(env.app.timezone.time_zone().clone()),
            },
        }
    }

    /// Notes what is wrong now and what is over, and queues a message about each; answers how many were queued.
    pub async fn update(&self) -> db::Result<usize> {
        let configured = Arc::clone(&self.configured);
        let is_configured = move |subject: &Subject| {
            !matches!(subject.word(), "job" | "channel") || configured.contains(subject.as_str())
        };
        // Mostly nothing has changed, and a look keeps nobody from writing.
        let is_known = is_configured.clone();
        let found = self.db.read(move |tx| {
            let changes = Changes::find(tx, &is_known, tx.now())?;
            Ok((changes.is_empty(), store::list_unannounced(tx)?))
        });
        let unannounced = match found.await? {
            (true, unannounced) => unannounced,
            (false, _) => {
                let update = self.db.write(move |tx| {
                    Changes::find(tx, &is_configured, tx.now())?.apply(tx, tx.now())?;
                    store::list_unannounced(tx)
                });
                update.await?
            }
        };
        let mut queued = 0;
        if !self.names.is_empty() {
            for alert in unannounced {
                queued += self.announce(alert).await?;
            }
        }
        Ok(queued)
    }

    /// The same for those who have more important things to do: an error is logged, and the next time will do.
    pub async fn update_if_possible(&self) -> usize {
        self.update().await.unwrap_or_else(|error| {
            tracing::warn!("Alerts cannot be updated now: {error}");
            0
        })
    }

    async fn announce(&self, alert: Alert) -> db::Result<usize> {
        let about = alert.subject();
        // A channel that lets nothing leave is not the one to say so.
        let names: Vec<String> = self
            .names
            .iter()
            .filter(|name| about.name_of("channel") != Some(name.as_str()))
            .cloned()
            .collect();
        let news = News::from(Notice::new(self.headline(&alert), self.speech.language));
        let (rendered, failed) = self.channels.render(&names, &self.channel_env, &news).await;
        self.db
            .write(move |tx| {
                let now = tx.now();
                if !store::mark_announced(tx, &alert, now)? {
                    return Ok(0);
                }
                let job: JobName = TOPIC.parse().expect("a literal name");
                let word = if alert.over_at.is_some() { "over" } else { "began" };
                let batch = Batch {
                    job: &job,
                    topic: TOPIC,
                    subject: &format!("{} {word} {}", alert.cause, alert.since),
                    generation: 0,
                    hold: false,
                    found: Provenance::Since(Some(now)),
                    about: &about,
                };
                outbox::add_all(tx, &batch, &rendered, &failed, now)
            })
            .await
    }

    fn headline(&self, alert: &Alert) -> String {
        let (about, message) = (alert.subject().spoken(), &alert.message);
        let said = match alert.over_at {
            None => phrase!("tsuzuki: {about}: {message}", "tsuzuki：{about}：{message}", about, message),
            Some(_) => {
                phrase!(
                    "tsuzuki: over: {about}: {message}",
                    "tsuzuki：解消：{about}：{message}",
                    about,
                    message
                )
            }
        };
        text::shorten(&redact(&text::one_line(&self.speech.phrase(&said))), MAX_COLUMNS)
    }
}
