//! Sends alerts to the channels of `[app] alert`, through the outbox: one message when a problem begins, one when it
//! ends.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::causes::Changes;
use super::store::{self, Alert};
use crate::channel::outbox::{self, Batch, Provenance};
use crate::channel::{ChannelEnv, ChannelSet, News, Notice, NoticeEntry};
use crate::config::redact;
use crate::db::{self, Db};
use crate::engine::JobEnv;
use crate::id::JobName;
use crate::ledger::Subject;
use crate::phrase;
use crate::phrase::Speech;
use crate::text;

/// Topic of the messages, and the job under which they are listed.
const TOPIC: &str = "alert";
/// Alerts of one kind that are sent one by one; more are grouped into one message.
const MAX_SINGLE: usize = 3;
/// Alerts listed in one message.
const MAX_NAMED: usize = 50;
/// Width of a headline: reasons can be as long as a server likes.
const MAX_COLUMNS: usize = 400;

/// Keeps the alerts up to date and announces them. Cheap to clone.
#[derive(Clone)]
pub struct Announcer {
    db: Db,
    channels: Arc<ChannelSet>,
    channel_env: ChannelEnv,
    /// Channels that receive alerts.
    names: Vec<String>,
    /// Jobs and channels that are in the config.
    configured: Arc<BTreeSet<String>>,
    speech: Speech,
}

impl Announcer {
    /// Announces to the channels of `alert` in the config.
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

    /// Records problems that began or ended and queues a message about each; returns the number of messages.
    pub async fn update(&self) -> db::Result<usize> {
        let configured = Arc::clone(&self.configured);
        let is_configured = move |subject: &Subject| {
            !matches!(subject.word(), "job" | "channel") || configured.contains(subject.as_str())
        };
        // Usually nothing has changed, and a read does not block writers.
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
            for alerts in group(unannounced) {
                queued += self.announce(alerts).await?;
            }
        }
        Ok(queued)
    }

    /// The same for callers that must not fail because of alerts: logs an error and leaves the work to the next call.
    pub async fn update_if_possible(&self) -> usize {
        self.update().await.unwrap_or_else(|error| {
            tracing::warn!("Alerts cannot be updated now: {error}");
            0
        })
    }

    async fn announce(&self, alerts: Vec<Alert>) -> db::Result<usize> {
        let [first, rest @ ..] = alerts.as_slice() else { return Ok(0) };
        let about = first.subject();
        // Do not announce over the channel that is failing.
        let names: Vec<String> = self
            .names
            .iter()
            .filter(|name| about.name_of("channel") != Some(name.as_str()))
            .cloned()
            .collect();
        let mut notice = Notice::new(self.headline(first, rest.len()), self.speech.language);
        if !rest.is_empty() {
            let entry =
                |alert| NoticeEntry { title: self.headline(alert, 0), link: None, date: None, note: None };
            notice.entries = alerts.iter().take(MAX_NAMED).map(entry).collect();
        }
        let (rendered, failed) = self.channels.render(&names, &self.channel_env, &News::from(notice)).await;
        self.db
            .write(move |tx| {
                let now = tx.now();
                let mut announced = None;
                for alert in &alerts {
                    if store::mark_announced(tx, alert, now)? {
                        announced = announced.or(Some(alert));
                    }
                }
                // Another process announced it first.
                let Some(alert) = announced else { return Ok(0) };
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

    /// The text of an alert; `more` is the number of other alerts of its kind in the same message.
    fn headline(&self, alert: &Alert, more: usize) -> String {
        let (about, message) = (alert.subject().phrase(), &alert.message);
        let message = match more {
            0 => message.clone(),
            more => phrase!("{message} (and {more} more)", "{message}（ほか {more} 件）"),
        };
        let text = match alert.over_at {
            None => phrase!("tsuzuki: {about}: {message}", "tsuzuki：{about}：{message}"),
            Some(_) => {
                phrase!("tsuzuki: over: {about}: {message}", "tsuzuki：解消：{about}：{message}")
            }
        };
        text::shorten(&redact(&text::one_line(&self.speech.phrase(&text))), MAX_COLUMNS)
    }
}

/// Groups alerts into messages: one each, or one for many of a kind, as when the network is down and a hundred blogs
/// fail.
fn group(alerts: Vec<Alert>) -> Vec<Vec<Alert>> {
    let mut groups: Vec<Vec<Alert>> = Vec::new();
    for alert in alerts {
        let key = |alert: &Alert| {
            (
                alert.kind().map(super::AlertKind::word),
                alert.subject().word().to_owned(),
                alert.over_at.is_some(),
            )
        };
        let is_channel = alert.subject().name_of("channel").is_some();
        match groups.iter_mut().find(|group| !is_channel && key(&group[0]) == key(&alert)) {
            Some(group) => group.push(alert),
            None => groups.push(vec![alert]),
        }
    }
    let (single, many): (Vec<_>, Vec<_>) = groups.into_iter().partition(|group| group.len() <= MAX_SINGLE);
    single.into_iter().flatten().map(|alert| vec![alert]).chain(many).collect()
}
