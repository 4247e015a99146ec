//! Slack: an incoming webhook. Texts are put in fields in which Slack applies no markup.

use async_trait::async_trait;
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use serde_json::{Value, json};
use url::Url;

use super::error::{Accepted, Finding, SendError};
use super::kind::{Backend, ChannelKind, Ctx};
use super::notice::{News, Notice, NoticeEntry};
use super::outbox::Row;
use super::settings::channel_config;
use super::{Check, Progress, http};
use crate::config::{Flag, Kind, Secret};
use crate::fetch::SecretHint;
use crate::phrase;
use crate::text::{self, and_more};

/// Slack's limits, in characters and blocks.
const MAX_HEADER: usize = 150;
const MAX_SECTION: usize = 3000;
const MAX_FALLBACK: usize = 4000;
const MAX_ENTRIES: usize = 40;
const MAX_TITLE: usize = 300;

channel_config! {
    /// `[channel.NAME] kind = "slack"`: posts to a Slack channel through an incoming webhook.
    pub struct SlackConfig {
        /// The address of the incoming webhook. It is a secret: whoever has it can post.
        pub url: Secret,
    }
}

#[derive(Debug)]
struct Slack {
    config: SlackConfig,
}

/// Posts to a Slack channel.
pub(super) const KIND: ChannelKind = ChannelKind {
    keys: Kind::channel::<SlackConfig>("slack"),
    about: || phrase!("messages in a Slack channel", "Slack のチャンネルに投稿"),
    flags: &[Flag::variable("url-env", "url", "SLACK_WEBHOOK_URL", || {
        phrase!(
            "the environment variable that holds the address of the webhook",
            "Webhook の URL を入れた環境変数の名前"
        )
    })
    .required()],
    promise: "at least once",
    secrets: &[SecretHint {
        key: "url",
        check: "",
        en: "at https://api.slack.com/apps: your app, Incoming Webhooks, Add New Webhook to Workspace; the whole \
             address is the secret",
        ja: "https://api.slack.com/apps で自分のアプリを開き、Incoming Webhooks の Add New Webhook to Workspace で作ります。\
             アドレス全体が秘密の値です",
    }],
    key_window: None,
    answers_within: None,
    open: |section, zone| SlackConfig::open(section, zone, |config, _| Ok(Slack { config })),
    show: as_text,
};

#[async_trait]
impl Backend for Slack {
    async fn render(&self, _: Ctx<'_>, news: &News) -> Result<Vec<(String, String)>, String> {
        Ok(vec![("webhook".to_owned(), message(&news.notice).to_string())])
    }

    async fn send(&self, ctx: Ctx<'_>, row: &Row, progress: &Progress) -> Result<Accepted, SendError> {
        let mut request = reqwest::Request::new(Method::POST, http::address(&self.config.url)?);
        request
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static("application/json; charset=utf-8"));
        *request.body_mut() = Some(row.payload.clone().into());
        let answer = http::call(ctx, request, Some(progress)).await?;
        let slack = phrase!("Slack", "Slack サーバー");
        // The webhook was revoked or its channel archived: every other message would fail, too.
        if matches!(answer.status, 404 | 410) {
            return Err(SendError::Locked { why: http::answered(&answer, &slack) });
        }
        http::judge(&answer, &slack)?;
        Ok(http::accepted(&answer))
    }

    async fn resolve(&self, _: Ctx<'_>, _: &Row) -> Result<Vec<String>, Finding> {
        Err(Finding::CannotTell {
            why: phrase!(
                "an incoming webhook cannot report what it has posted",
                "Incoming Webhook には投稿済みかどうかを問い合わせできません"
            ),
        })
    }

    fn credentials(&self) -> String {
        http::secret_text(&self.config.url)
    }

    fn address(&self) -> Option<Url> {
        http::address(&self.config.url).ok()
    }

    async fn check(&self, ctx: Ctx<'_>) -> Vec<Check> {
        vec![http::check_address(&self.config.url, ctx)]
    }
}

/// The message: blocks for the window, a fallback text for notifications.
fn message(notice: &Notice) -> Value {
    let headline = text::one_line(&notice.headline);
    let mut blocks = Vec::new();
    if !headline.is_empty() {
        blocks.push(json!({ "type": "header", "text": plain(&cut(&headline, MAX_HEADER)) }));
    }
    if let Some(warning) = &notice.warning {
        blocks.push(
            json!({ "type": "context", "elements": [plain(&cut(&text::one_line(warning), MAX_TITLE))] }),
        );
    }
    let summary = text::printable(notice.summary.trim());
    if !summary.is_empty() {
        blocks.push(json!({ "type": "section", "text": plain(&cut(&summary, MAX_SECTION)) }));
    }
    let mut lines: Vec<Value> = Vec::new();
    if let Some(link) = &notice.link {
        lines.push(rich_line(&[rich_link(link, link.as_str())]));
    }
    if !notice.entries.is_empty() {
        let items: Vec<Value> = notice.entries.iter().take(MAX_ENTRIES).map(item).collect();
        lines.push(json!({ "type": "rich_text_list", "style": "bullet", "elements": items }));
        if let Some(left) = notice.entries.len().checked_sub(MAX_ENTRIES).filter(|left| *left > 0) {
            lines.push(rich_line(&[rich_text(&and_more(left, notice.language))]));
        }
    }
    if !lines.is_empty() {
        blocks.push(json!({ "type": "rich_text", "elements": lines }));
    }
    json!({
        "text": cut(&escape(&fallback(notice, &headline)), MAX_FALLBACK),
        "mrkdwn": false,
        "link_names": false,
        "unfurl_links": false,
        "unfurl_media": false,
        "blocks": blocks,
    })
}

/// The visible text of a message, line by line.
fn as_text(payload: &str) -> Option<String> {
    let message: Value = serde_json::from_str(payload).ok()?;
    let blocks = message["blocks"].as_array()?;
    let mut lines = Vec::new();
    for block in blocks {
        lines.extend(block["text"]["text"].as_str().map(str::to_owned));
        for element in block["elements"].as_array().into_iter().flatten() {
            match element["type"].as_str() {
                Some("rich_text_list") => {
                    let items = element["elements"].as_array().into_iter().flatten();
                    lines.extend(items.map(|item| format!("- {}", line_as_text(item))));
                }
                Some("rich_text_section") => lines.push(line_as_text(element)),
                _ => lines.extend(element["text"].as_str().map(str::to_owned)),
            }
        }
    }
    Some(lines.join("\n"))
}

fn line_as_text(section: &Value) -> String {
    let parts = section["elements"].as_array().into_iter().flatten().map(|part| {
        let text = part["text"].as_str().unwrap_or_default();
        match part["url"].as_str() {
            Some(url) if url != text => format!("{text} {url}"),
            _ => text.to_owned(),
        }
    });
    parts.collect()
}

fn fallback(notice: &Notice, headline: &str) -> String {
    let link = notice.link.as_ref().map(Url::as_str).unwrap_or_default();
    format!("{headline} {link}").trim().to_owned()
}

fn item(entry: &NoticeEntry) -> Value {
    let title = cut(&text::one_line(&entry.title), MAX_TITLE);
    let mut parts = vec![match &entry.link {
        Some(link) => rich_link(link, if title.is_empty() { link.as_str() } else { &title }),
        None => rich_text(if title.is_empty() { "-" } else { &title }),
    }];
    if let Some(note) = entry.note.as_deref().map(text::one_line).filter(|note| !note.is_empty()) {
        parts.push(rich_text(&format!(" ({})", cut(&note, MAX_TITLE))));
    }
    rich_line(&parts)
}

fn plain(text: &str) -> Value {
    json!({ "type": "plain_text", "text": text, "emoji": false })
}

fn rich_line(elements: &[Value]) -> Value {
    json!({ "type": "rich_text_section", "elements": elements })
}

fn rich_text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn rich_link(link: &Url, text: &str) -> Value {
    match link.scheme() {
        "http" | "https" => json!({ "type": "link", "url": link.as_str(), "text": text }),
        _ => rich_text(text),
    }
}

/// Escapes the three characters that begin markup in Slack, so that there is neither link nor mention.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// At most `max` characters, ending in `…` if something was cut; never within an escape.
fn cut(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(max - 1).collect();
    if let Some(at) = short.rfind('&')
        && !short[at..].contains(';')
        && text[at..].chars().take(6).any(|c| c == ';')
    {
        short.truncate(at);
    }
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Language;

    #[test]
    fn titles_mention_nobody_and_link_nowhere() {
        let notice = Notice {
            summary: "<!channel> <https://evil.example|click> *bold* @here\u{202e}\u{0}".into(),
            link: Some("https://example.com/a?b=1&c=2".parse().unwrap()),
            entries: vec![NoticeEntry {
                title: "<@U123> <!here>".into(),
                link: Some("javascript:alert(1)".parse().unwrap()),
                date: None,
                note: None,
            }],
            ..Notice::new("<!everyone> & co", Language::En)
        };
        let message = message(&notice);
        let text = message["text"].as_str().unwrap();
        assert_eq!(text, "&lt;!everyone&gt; &amp; co https://example.com/a?b=1&amp;c=2");
        // All other texts are in fields without markup.
        let kinds = message.to_string();
        assert!(!kinds.contains(['\u{202e}', '\u{0}']) && !kinds.contains("u0000"), "{kinds}");
        assert!(!kinds.contains("\"mrkdwn\",") && !kinds.contains("\"type\":\"mrkdwn\""), "{kinds}");
        assert!(!kinds.contains("\"url\":\"javascript"), "{kinds}");
        assert!(!kinds.contains("\"type\":\"user\"") && !kinds.contains("broadcast"), "{kinds}");
        assert_eq!(
            as_text(&kinds).unwrap(),
            "<!everyone> & co\n<!channel> <https://evil.example|click> *bold* @here\n\
             https://example.com/a?b=1&c=2\n- <@U123> <!here>"
        );
    }

    #[test]
    fn long_messages_are_cut_to_what_slack_takes() {
        let entry = NoticeEntry { title: "題".repeat(1000), link: None, date: None, note: None };
        let notice = Notice {
            summary: "長".repeat(10_000),
            entries: vec![entry; 100],
            ..Notice::new("見出し".repeat(100), Language::Ja)
        };
        let message = message(&notice);
        let length = |value: &Value| value.as_str().unwrap().chars().count();
        assert_eq!(length(&message["blocks"][0]["text"]["text"]), MAX_HEADER);
        assert_eq!(length(&message["blocks"][1]["text"]["text"]), MAX_SECTION);
        assert!(length(&message["text"]) <= MAX_FALLBACK);
        assert_eq!(message["blocks"][2]["elements"][0]["elements"].as_array().unwrap().len(), MAX_ENTRIES);
        assert_eq!(message["blocks"][2]["elements"][1]["elements"][0]["text"], "ほか 60 件");
        assert!(message["blocks"].as_array().unwrap().len() <= 50);
    }

    #[test]
    fn an_escape_is_never_cut_in_half() {
        assert_eq!(cut("abc&amp;d", 6), "abc…");
        assert_eq!(cut("abc & de", 6), "abc &…");
    }
}
