//! Mail: at least once, one message per recipient. A second copy is sent only if the server's answer to the end of the
//! text was not recorded, never a third, and always with the same Message-ID.

mod config;
mod env;
mod mime;
mod open;
mod smtp;
mod verdict;
mod wire;
mod words;

#[cfg(fuzzing)]
pub use wire::fuzz_replies;

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use lettre::Address;
use lettre::message::Mailbox;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::error::{Accepted, Finding, SendError};
use super::header_text::HeaderText;
use super::http;
use super::kind::{Backend, ChannelKind, Ctx};
use super::notice::{MailBody, News};
use super::outbox::Row;
use super::{Check, Progress};
use crate::config::Kind;
use crate::fail;
use crate::fetch::SecretHint;
use crate::phrase;
use config::FLAGS;
pub use config::{EmailConfig, Tls};
use env::ENV;
use smtp::{Connection, NotBegun, Server};
use verdict::Reuse;

/// The name of the kind, used by imports and `mail test`.
pub const NAME: &str = "email";

/// Sends mails to recipients.
pub(super) const KIND: ChannelKind = ChannelKind {
    keys: Kind::channel::<EmailConfig>(NAME).with_env(ENV),
    about: || phrase!("mail to one or more people", "メールを送信"),
    flags: FLAGS,
    promise: "at least once",
    secrets: &[SecretHint {
        key: "password",
        check: "",
        en: "the password of the mailbox or, where sign-in has a second step, an app password: for Gmail at \
             https://myaccount.google.com/apppasswords",
        ja: "メールボックスのパスワード。2 段階認証を使う場合はアプリ パスワード（Gmail では \
             https://myaccount.google.com/apppasswords）",
    }],
    key_window: None,
    // The server may take so long to answer the end of the text: RFC 5321, 4.5.3.2.6. Giving up earlier causes copies.
    answers_within: Some(Duration::from_secs(600)),
    open: |section, zone| EmailConfig::open(section, zone, Email::new),
    show: |payload| {
        let mail: MailBody = serde_json::from_str(payload).ok()?;
        Some(format!("Subject: {}\n\n{}", mail.subject, mail.text.trim_end()))
    },
};

/// An idle connection is closed after this time.
const KEEP_OPEN: Duration = Duration::from_secs(20);

#[derive(Debug)]
struct Email {
    config: EmailConfig,
    transport: Transport,
    from: Mailbox,
    to: Vec<Mailbox>,
    reply_to: Option<Mailbox>,
    list_id: Option<HeaderText>,
    list_unsubscribe: Option<HeaderText>,
}

/// A connection kept for the next mail, and since when it has been idle.
type Open = (Box<Connection>, Instant);

enum Transport {
    Smtp(Server, Mutex<Option<Open>>),
    File(PathBuf),
    /// Stored nowhere: for trying things out.
    Memory,
}

impl std::fmt::Debug for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Transport::Smtp(server, _) => f.debug_tuple("Smtp").field(server).finish(),
            Transport::File(path) => f.debug_tuple("File").field(path).finish(),
            Transport::Memory => f.write_str("Memory"),
        }
    }
}

impl Email {
    fn build(&self, row: &Row, to: &Address) -> Result<Vec<u8>, SendError> {
        let body: MailBody =
            serde_json::from_str(&row.payload).map_err(|_| super::error::made_for_another_kind())?;
        let named = self.to.iter().find(|mailbox| mailbox.email == *to).cloned();
        let frame = mime::Frame {
            from: &self.from,
            to: &named.unwrap_or_else(|| Mailbox::new(None, to.clone())),
            reply_to: self.reply_to.as_ref(),
            list_id: self.list_id.as_ref(),
            list_unsubscribe: self.list_unsubscribe.as_ref(),
            key: &row.key,
            date: row.created_at,
        };
        mime::build(&frame, &body).map_err(|why| {
            SendError::refused(phrase!(
                "no mail can be made of it: {why}",
                "メールを組み立てられません：{why}"
            ))
        })
    }

    async fn send_over_smtp(
        &self,
        server: &Server,
        kept: Option<Box<Connection>>,
        ctx: Ctx<'_>,
        to: &Address,
        mail: &[u8],
        progress: &Progress,
    ) -> Result<Accepted, SendError> {
        let connect = || smtp::connect(server, &self.config, ctx);
        let from = &self.from.email;
        let is_kept = kept.is_some();
        let mut connection = match kept {
            Some(connection) => connection,
            None => Box::new(connect().await?),
        };
        let mut begun = smtp::begin(&mut connection, from, to).await;
        if is_kept && matches!(begun, Err(NotBegun::Closed(_))) {
            // The server closed it between two mails; reconnecting does not count as an attempt.
            *connection = connect().await?;
            begun = smtp::begin(&mut connection, from, to).await;
        }
        fail::point("email.connected");
        let result = match begun {
            Ok(()) => smtp::deliver(&mut connection, to, mail, progress).await,
            Err(NotBegun::Closed(error)) => Err((error, Reuse::No)),
            Err(NotBegun::Failed(error, reuse)) => Err((error, reuse)),
        };
        match result {
            Ok(sent) => {
                self.keep(connection);
                Ok(sent)
            }
            Err((error, reuse)) => {
                if reuse == Reuse::Yes {
                    self.keep(connection);
                }
                Err(error)
            }
        }
    }

    fn keep(&self, connection: Box<Connection>) {
        if let Transport::Smtp(_, kept) = &self.transport {
            *kept.lock() = Some((connection, Instant::now()));
        }
    }
}

#[async_trait]
impl Backend for Email {
    async fn render(&self, ctx: Ctx<'_>, news: &News) -> Result<Vec<(String, String)>, String> {
        let body =
            news.mail.clone().unwrap_or_else(|| words::write(&news.notice, &ctx.channel.settings.zone));
        let payload = serde_json::to_string(&body).map_err(|error| error.to_string())?;
        Ok(self.to.iter().map(|to| (to.email.to_string(), payload.clone())).collect())
    }

    async fn send(&self, ctx: Ctx<'_>, row: &Row, progress: &Progress) -> Result<Accepted, SendError> {
        let to: Address = row.recipient.parse().map_err(|_| {
            SendError::refused(phrase!(
                "the recipient is not a mail address",
                "宛先がメールアドレスではありません"
            ))
        })?;
        let mail = self.build(row, &to)?;
        match &self.transport {
            Transport::Smtp(server, kept) => {
                let kept = take_fresh(kept);
                self.send_over_smtp(server, kept, ctx, &to, &mail, progress).await
            }
            Transport::File(directory) => write_file(directory, &row.key, &mail)
                .map(|path| Accepted { remote_id: Some(path.display().to_string()), pause_until: None }),
            Transport::Memory => Ok(Accepted::default()),
        }
    }

    async fn resolve(&self, _: Ctx<'_>, row: &Row) -> Result<Vec<String>, Finding> {
        match &self.transport {
            Transport::File(directory) => {
                let path = directory.join(file_name(&row.key));
                Ok(path.exists().then(|| path.display().to_string()).into_iter().collect())
            }
            _ => Err(Finding::CannotTell {
                why: phrase!(
                    "a mail server cannot report what it has accepted",
                    "メールサーバーには受け付けたかどうかを問い合わせできません"
                ),
            }),
        }
    }

    async fn check(&self, ctx: Ctx<'_>) -> Vec<Check> {
        match &self.transport {
            Transport::Smtp(server, _) => {
                let connecting = smtp::connect(server, &self.config, ctx);
                let what = format!("{}:{}", server.host, server.port);
                match tokio::time::timeout(ctx.channel.settings.timeout, connecting).await {
                    Ok(Ok(mut connection)) => {
                        let _ = tokio::time::timeout(Duration::from_secs(2), connection.quit()).await;
                        let how = if connection.is_encrypted {
                            phrase!("encrypted", "暗号化あり")
                        } else {
                            phrase!("not encrypted", "暗号化なし")
                        };
                        let who = if self.config.user.is_some() {
                            phrase!("signed in", "ログイン済み")
                        } else {
                            phrase!("without signing in", "ログインなし")
                        };
                        let detail = phrase!(
                            "{what} takes mail, {how}, {who}",
                            "{what} はメールを受け付けます（{how}、{who}）"
                        );
                        vec![Check::fine(Check::SERVER, detail)]
                    }
                    Ok(Err(error)) => vec![error.check(Check::SERVER)],
                    Err(_) => vec![Check::bad(
                        Check::SERVER,
                        phrase!("{what} does not answer in time", "{what} から時間内に応答がありません"),
                    )],
                }
            }
            Transport::File(directory) if directory.exists() && !directory.is_dir() => {
                let path = directory.display().to_string();
                vec![Check::bad(
                    Check::SERVER,
                    phrase!("{path} is not a directory", "{path} はディレクトリではありません"),
                )]
            }
            Transport::File(directory) => {
                let path = directory.display().to_string();
                vec![Check::fine(
                    Check::SERVER,
                    phrase!("mails are written to {path}", "メールを {path} に書き出します"),
                )]
            }
            Transport::Memory => {
                let detail = phrase!(
                    "mails are kept in memory and forgotten",
                    "メールはメモリに置かれ、終了時に失われます"
                );
                vec![Check::fine(Check::SERVER, detail)]
            }
        }
    }

    fn credentials(&self) -> String {
        let password = self.config.password.as_ref().map(http::secret_text).unwrap_or_default();
        let EmailConfig { smtp, user, from, .. } = &self.config;
        let tls = match &self.transport {
            Transport::Smtp(server, _) => format!("{:?}", server.tls),
            _ => String::new(),
        };
        [smtp.as_str(), user.as_deref().unwrap_or_default(), from, &password, &tls].join("\n")
    }

    async fn close(&self) {
        if let Transport::Smtp(_, kept) = &self.transport
            && let Some(mut connection) = take_fresh(kept)
        {
            let _ = tokio::time::timeout(Duration::from_secs(2), connection.quit()).await;
        }
    }
}

fn take_fresh(kept: &Mutex<Option<Open>>) -> Option<Box<Connection>> {
    let taken = kept.lock().take();
    taken.filter(|(_, since)| since.elapsed() < KEEP_OPEN).map(|(connection, _)| connection)
}

fn file_name(key: &str) -> String {
    format!("{}.eml", key.get(..40).unwrap_or(key))
}

/// Writes the mail atomically, to a file named by its key.
fn write_file(directory: &Path, key: &str, mail: &[u8]) -> Result<PathBuf, SendError> {
    let failed = |error: std::io::Error| SendError::later(format!("{}: {error}", directory.display()));
    std::fs::create_dir_all(directory).map_err(failed)?;
    let path = directory.join(file_name(key));
    let mut file = tempfile::NamedTempFile::new_in(directory).map_err(failed)?;
    std::io::Write::write_all(&mut file, mail).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist(&path).map_err(|error| failed(error.error))?;
    Ok(path)
}
