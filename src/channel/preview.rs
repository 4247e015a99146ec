//! Previews of messages, and test messages that belong to no job.

use std::time::Duration;

use super::error::{Accepted, SendError};
use super::notice::{News, Notice};
use super::outbox::{Row, State};
use super::{Channel, ChannelEnv, KINDS, NotRendered, Progress, Rendered};
use crate::hash;
use crate::id::JobName;
use crate::phrase;
use crate::text::Language;

/// A preview of a message.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Preview {
    pub channel: String,
    pub recipient: String,
    /// The message in readable form, as far as text can show it.
    pub text: String,
    /// Its length in the channel's own measure, if it has one.
    pub length: Option<usize>,
    /// The longest allowed.
    pub limit: Option<usize>,
}

impl Channel {
    /// Renders `news` without sending it.
    pub async fn preview(&self, channel_env: &ChannelEnv, news: &News) -> Result<Vec<Preview>, NotRendered> {
        let mut previews = Vec::new();
        for rendered in self.render(channel_env, news).await? {
            let measure = self.backend.measure(self.ctx(channel_env), &rendered.payload).await;
            previews.push(Preview {
                channel: rendered.channel,
                recipient: rendered.recipient,
                text: as_text(&rendered.payload),
                length: measure.map(|(length, _)| length),
                limit: measure.map(|(_, limit)| limit),
            });
        }
        Ok(previews)
    }

    /// Sends a test message at once, bypassing the outbox, to `to` or to every recipient of the channel; returns the
    /// result for each.
    pub async fn send_test(
        &self,
        channel_env: &ChannelEnv,
        language: Language,
        to: Option<&str>,
    ) -> Result<Vec<(String, Result<Accepted, SendError>)>, NotRendered> {
        let mut messages = self.render(channel_env, &News::from(test_notice(language))).await?;
        if let Some(to) = to {
            messages.truncate(1);
            messages.iter_mut().for_each(|message| message.recipient = to.to_owned());
        }
        let mut outcomes = Vec::new();
        for Rendered { recipient, payload, .. } in messages {
            let row = test_row(self, &recipient, &self.backend.soften(payload), channel_env);
            let progress = Progress::unlimited();
            let sending = self.send(channel_env, &row, &progress);
            let outcome = match tokio::time::timeout(self.settings.timeout + Duration::from_secs(1), sending)
                .await
            {
                Ok(outcome) => outcome,
                Err(_) => Err(SendError::unknown(phrase!("no answer in time", "時間内に応答がありません"))),
            };
            outcomes.push((recipient, outcome));
        }
        self.close().await;
        Ok(outcomes)
    }
}

fn test_notice(language: Language) -> Notice {
    let (headline, summary) = match language {
        Language::En => {
            ("Test message from tsuzuki", "If you can read this, the channel is set up correctly.")
        }
        Language::Ja => {
            ("tsuzuki からのテストメッセージ", "このメッセージが読めれば、通知先の設定は正しくできています。")
        }
    };
    Notice { summary: summary.to_owned(), ..Notice::new(headline, language) }
}

/// A message that is not in the outbox.
fn test_row(channel: &Channel, recipient: &str, payload: &str, channel_env: &ChannelEnv) -> Row {
    let now = channel_env.clock.now();
    let job_name: JobName = "test".parse().expect("`test` is a name");
    Row {
        id: 0,
        key: hash::sha256_parts(&[&channel.name, recipient, &now.to_string()]),
        job_name,
        channel: channel.name.clone(),
        recipient: recipient.to_owned(),
        topic: "test".to_owned(),
        subject: "test".to_owned(),
        generation: 0,
        payload: payload.to_owned(),
        state: State::Sending,
        created_at: now,
        not_before: now,
        attempts: 1,
        resolve_attempts: 0,
        first_attempt_at: Some(now),
        last_attempt_at: Some(now),
        resent_at: None,
        settled_at: None,
        lease_fence: 0,
        lease_until: None,
        lease_uptime: None,
        suspicion: None,
        suspect_since: None,
        remote_id: None,
        last_error: None,
    }
}

/// A rendered message in readable form: the text of mails and posts, everything else as indented JSON.
pub fn as_text(payload: &str) -> String {
    if let Some(text) = KINDS.iter().find_map(|kind| (kind.show)(payload)) {
        return text;
    }
    let json = serde_json::from_str::<serde_json::Value>(payload);
    json.and_then(|json| serde_json::to_string_pretty(&json)).unwrap_or_else(|_| payload.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mails_and_posts_are_shown_by_what_they_say_and_the_rest_as_json() {
        for (payload, expected) in [
            (
                r#"{"subject":"Books","text":"Two books\n\n- a\n","html":"<p>Two</p>"}"#,
                "Subject: Books\n\nTwo books\n\n- a",
            ),
            (
                r#"{"status":"News https://a.example/","visibility":"unlisted","language":"ja"}"#,
                "News https://a.example/",
            ),
            (
                r#"{"status":"News","visibility":"unlisted","language":"ja","spoiler_text":"War"}"#,
                "[War]\nNews",
            ),
            (r#"{"text":"*News*"}"#, "{\n  \"text\": \"*News*\"\n}"),
            ("broken", "broken"),
        ] {
            assert_eq!(as_text(payload), expected);
        }
    }
}
