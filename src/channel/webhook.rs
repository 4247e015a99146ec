//! Any program that accepts JSON over HTTP: signed as in Standard Webhooks, with a key to deduplicate by.

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit as _, Mac as _};
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use serde_json::json;
use sha2::Sha256;
use url::Url;

use super::error::{Accepted, Finding, SendError};
use super::kind::{Backend, ChannelKind, Ctx};
use super::notice::News;
use super::outbox::Row;
use super::settings::channel_config;
use super::{Check, Progress, http};
use crate::config::{Flag, Kind, Secret};
use crate::fetch::SecretHint;
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;

channel_config! {
    /// `[channel.NAME] kind = "webhook"`: posts JSON to an address.
    pub struct WebhookConfig {
        /// Where to post. Often a secret itself, so it may be `"${ENV}"`.
        pub url: Secret,
        /// Signs every message as Standard Webhooks say: `"whsec_…"` or any text.
        pub secret: Option<Secret>,
        /// Sent as `Authorization: Bearer …`, if the other side wants that.
        pub token: Option<Secret>,
    }
}

#[derive(Debug)]
struct Webhook {
    config: WebhookConfig,
}

/// Its name in `doctor`.
const SIGNATURE: Phrase = Phrase::of_words("signature", "署名");

/// Posts JSON to an address.
pub(super) const KIND: ChannelKind = ChannelKind {
    keys: Kind::channel::<WebhookConfig>("webhook"),
    about: || phrase!("JSON posted to a program of yours", "自作プログラムなどに JSON を送信"),
    flags: &[
        Flag::variable("url-env", "url", "WEBHOOK_URL", || {
            phrase!(
                "the environment variable that holds the address of the webhook",
                "Webhook の URL を入れた環境変数の名前"
            )
        })
        .required(),
        Flag::variable("secret-env", "secret", "WEBHOOK_SECRET", || {
            phrase!(
                "the environment variable that holds the secret for signatures",
                "署名用の秘密の値を入れた環境変数の名前"
            )
        }),
    ],
    promise: "at least once",
    secrets: &[
        SecretHint {
            key: "secret",
            check: "signature",
            en: "any long random text that the receiver has, too: `openssl rand -base64 32`",
            ja: "受け取る側と同じ、長くて無作為な文字列: `openssl rand -base64 32`",
        },
        SecretHint { key: "url", check: "address", en: ASK_RECEIVER.0, ja: ASK_RECEIVER.1 },
        SecretHint { key: "token", check: "token", en: ASK_RECEIVER.0, ja: ASK_RECEIVER.1 },
    ],
    key_window: None,
    answers_within: None,
    open: |section, zone| WebhookConfig::open(section, zone, |config, _| Ok(Webhook { config })),
    show: as_text,
};

/// The text of a message, line by line.
fn as_text(payload: &str) -> Option<String> {
    let message: serde_json::Value = serde_json::from_str(payload).ok()?;
    let data = &message["data"];
    let mut lines = vec![data["headline"].as_str()?.to_owned()];
    let texts = ["warning", "summary", "link"].into_iter().filter_map(|key| data[key].as_str());
    lines.extend(texts.filter(|text| !text.trim().is_empty()).map(str::to_owned));
    lines.extend(data["entries"].as_array().into_iter().flatten().map(|entry| {
        let texts = ["title", "link"].into_iter().filter_map(|key| entry[key].as_str());
        format!("- {}", texts.collect::<Vec<_>>().join(" "))
    }));
    Some(lines.join("\n"))
}

const ASK_RECEIVER: (&str, &str) =
    ("ask whoever runs the receiver", "Webhook を受け取る側の管理者に確認します");

#[async_trait]
impl Backend for Webhook {
    async fn render(&self, ctx: Ctx<'_>, news: &News) -> Result<Vec<(String, String)>, String> {
        let notice = &news.notice;
        let entries = notice.entries.iter().map(|entry| {
            json!({ "title": entry.title, "link": entry.link.as_ref().map(Url::as_str), "date": entry.date, "note": entry.note })
        });
        let payload = json!({
            "type": "notice.created",
            "timestamp": ctx.env.clock.now(),
            "data": {
                "headline": notice.headline,
                "summary": notice.summary,
                "link": notice.link.as_ref().map(Url::as_str),
                "entries": entries.collect::<Vec<_>>(),
                "tags": notice.tags,
                "warning": notice.warning,
                "language": notice.language,
            },
        });
        Ok(vec![("webhook".to_owned(), payload.to_string())])
    }

    async fn send(&self, ctx: Ctx<'_>, row: &Row, progress: &Progress) -> Result<Accepted, SendError> {
        let now = ctx.env.clock.now();
        let mut request = reqwest::Request::new(Method::POST, http::address(&self.config.url)?);
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let seconds = (now.as_millis() / 1000).to_string();
        for (name, value) in [
            ("webhook-id", row.key.as_str()),
            ("webhook-timestamp", seconds.as_str()),
            ("idempotency-key", row.key.as_str()),
        ] {
            let value = HeaderValue::from_str(value).map_err(|_| http::damaged_key())?;
            headers.insert(HeaderName::from_static(name), value);
        }
        if let Some(secret) = &self.config.secret {
            let secret = secret.reveal().map_err(|missing| SendError::locked(missing.phrase()))?;
            let signature = sign(secret.expose(), &row.key, now, &row.payload)?;
            let value = HeaderValue::from_str(&signature).map_err(|_| unusable_secret())?;
            headers.insert(HeaderName::from_static("webhook-signature"), value);
        }
        if let Some(token) = &self.config.token {
            headers.insert(reqwest::header::AUTHORIZATION, http::secret_header(token, "Bearer ")?);
        }
        *request.body_mut() = Some(row.payload.clone().into());
        let answer = http::call(ctx, request, Some(progress)).await?;
        http::judge(&answer, &phrase!("the webhook", "Webhook 送信先"))?;
        Ok(http::accepted(&answer))
    }

    async fn resolve(&self, _: Ctx<'_>, _: &Row) -> Result<Vec<String>, Finding> {
        Err(Finding::CannotTell {
            why: phrase!(
                "a webhook cannot be queried; receivers can deduplicate by idempotency key",
                "Webhook には問い合わせできません（受信側はキーで重複を判別できます）"
            ),
        })
    }

    fn credentials(&self) -> String {
        let secrets = [Some(&self.config.url), self.config.secret.as_ref(), self.config.token.as_ref()];
        secrets.into_iter().flatten().map(http::secret_text).collect::<Vec<_>>().join("\n")
    }

    fn address(&self) -> Option<Url> {
        http::address(&self.config.url).ok()
    }

    async fn check(&self, ctx: Ctx<'_>) -> Vec<Check> {
        let mut checks = vec![http::check_address(&self.config.url, ctx)];
        checks.push(match self.config.secret.as_ref().map(Secret::reveal) {
            None => Check::fine(
                SIGNATURE,
                phrase!(
                    "none: the receiver cannot verify the sender",
                    "なし：受信側は送信元を確認できません"
                ),
            ),
            Some(Err(missing)) => Check::locked(SIGNATURE, missing.phrase()),
            Some(Ok(secret)) => match signing_key(secret.expose()) {
                Ok(_) => Check::fine(SIGNATURE, "Standard Webhooks"),
                Err(error) => Check::locked(SIGNATURE, error.why()),
            },
        });
        if let Some(Err(missing)) = self.config.token.as_ref().map(Secret::reveal) {
            checks.push(Check::locked(Check::TOKEN, missing.phrase()));
        }
        checks
    }
}

/// The signature over id, time and body.
fn sign(secret: &str, id: &str, now: Timestamp, body: &str) -> Result<String, SendError> {
    let key = signing_key(secret)?;
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).map_err(|_| unusable_secret())?;
    mac.update(format!("{id}.{}.{body}", now.as_millis() / 1000).as_bytes());
    Ok(format!("v1,{}", BASE64.encode(mac.finalize().into_bytes())))
}

fn signing_key(secret: &str) -> Result<Vec<u8>, SendError> {
    match secret.strip_prefix("whsec_") {
        None => Ok(secret.as_bytes().to_vec()),
        Some(encoded) => BASE64.decode(encoded).map_err(|_| {
            SendError::locked(phrase!(
                "what follows `whsec_` in `secret` is not Base64",
                "`secret` の `whsec_` に続く部分が Base64 ではありません"
            ))
        }),
    }
}

fn unusable_secret() -> SendError {
    SendError::locked(phrase!("the signing secret cannot be used", "署名用のシークレットを使用できません"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected value was computed with Python's hmac module.
    #[test]
    fn messages_are_signed_as_standard_webhooks_say() {
        let now = Timestamp::from_millis(1_614_265_330_999);
        let signature =
            sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_1", now, r#"{"test": 2432232314}"#).unwrap();
        assert_eq!(signature, "v1,9o7UeFkn1GjVbcY4emAJruJCYqgH2EIf8u/slvVRBZI=");
        assert!(sign("whsec_%", "msg_1", now, "").is_err());
    }
}
