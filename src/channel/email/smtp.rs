//! The SMTP dialogue, command by command: what a failure means depends on the phase.
//!
//! ```text
//! connect ─ TLS ─ AUTH ─ MAIL ─ RCPT ─ DATA ─ text ─ end of data ─ answer
//! └───────── not sent: try again ─────────────────┘ └── may be sent ─┘
//! ```

use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use lettre::Address;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;

use super::verdict::{Phase, Reuse, broke, judge};
use super::wire::{Fault, Wire};
use super::{EmailConfig, Tls};
use crate::channel::error::{Accepted, SendError};
use crate::channel::kind::Ctx;
use crate::channel::{ChannelEnv, Progress, Settings, http};
use crate::config::{Secret, redact};
use crate::fetch::in_words;
use crate::phrase::Phrase;
use crate::{fail, id, phrase, text};

/// The text is sent in pieces, so that a broken connection shows whether the end was reached.
const PIECE_BYTES: usize = 16 * 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Server {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) tls: Tls,
}

/// A connection that is ready for mail.
pub(super) struct Connection {
    wire: Wire,
    /// The extensions that the server offers, in capitals.
    offers: Vec<String>,
    pub(super) is_encrypted: bool,
}

impl Connection {
    /// Whether the server offers this extension, with any parameters.
    fn offers(&self, name: &str) -> bool {
        self.offers.iter().any(|line| line.split(' ').next() == Some(name))
    }

    fn offers_auth(&self, mechanism: &str) -> bool {
        self.offers
            .iter()
            .filter_map(|line| line.strip_prefix("AUTH"))
            .any(|line| line.split([' ', '=']).any(|word| word == mechanism))
    }

    async fn hello(&mut self, name: &str) -> Result<(), Fault> {
        let reply = self.wire.command(&format!("EHLO {name}"), 2).await?;
        self.offers = reply.lines.into_iter().skip(1).map(|line| line.trim().to_ascii_uppercase()).collect();
        Ok(())
    }

    pub(super) async fn quit(&mut self) {
        let _ = self.wire.command("QUIT", 2).await;
    }

    async fn sign_in(&mut self, user: &str, password: &str) -> Result<(), Fault> {
        if self.offers_auth("PLAIN") {
            let secret = BASE64.encode(format!("\0{user}\0{password}"));
            self.wire.command(&format!("AUTH PLAIN {secret}"), 2).await?;
        } else {
            self.wire.command("AUTH LOGIN", 3).await?;
            self.wire.command(&BASE64.encode(user), 3).await?;
            self.wire.command(&BASE64.encode(password), 2).await?;
        }
        Ok(())
    }
}

pub(super) async fn connect(
    server: &Server,
    config: &EmailConfig,
    ctx: Ctx<'_>,
) -> Result<Connection, SendError> {
    let (Server { host, port, .. }, settings) = (server, &ctx.channel.settings);
    let password = config.password.as_ref().map(Secret::reveal).transpose();
    let password = password.map_err(|missing| SendError::locked(missing.phrase()))?;
    let addresses = ctx
        .env
        .clients
        .resolve(host, *port, &settings.allow_private)
        .await
        .map_err(|error| SendError::later(error.describe()))?;
    let no_connection = |why: Phrase| {
        SendError::later(phrase!("no connection to {host}: {why}", "{host} に接続できません：{why}"))
    };
    let (stream, hello) = open(&addresses, settings).await.map_err(no_connection)?;
    let mut connection = Connection { wire: Wire::new(stream), offers: Vec::new(), is_encrypted: false };
    if server.tls == Tls::Tls {
        connection = encrypt(connection, host, config, ctx.env).await?;
    }
    let broken = |fault: Fault| no_connection((&fault).into());
    connection.wire.reply(2).await.map_err(broken)?;
    connection.hello(&hello).await.map_err(broken)?;
    if server.tls == Tls::Starttls {
        if !connection.offers("STARTTLS") {
            return Err(unsafe_line(host, phrase!("it offers no STARTTLS", "STARTTLS に対応していません")));
        }
        connection.wire.command("STARTTLS", 2).await.map_err(|fault| match fault {
            Fault::Refused(reply) => {
                let answer = reply.to_string();
                unsafe_line(
                    host,
                    phrase!("it refuses STARTTLS: {answer}", "STARTTLS が拒否されました：{answer}"),
                )
            }
            fault => broken(fault),
        })?;
        connection = encrypt(connection, host, config, ctx.env).await?;
        // Extensions offered before TLS cannot be trusted: somebody else may have sent them.
        connection.hello(&hello).await.map_err(broken)?;
    }
    if let (Some(user), Some(password)) = (&config.user, password) {
        if !connection.offers_auth("PLAIN") && !connection.offers_auth("LOGIN") {
            return Err(SendError::locked(phrase!(
                "{host} offers no way to sign in that is known here (PLAIN, LOGIN)",
                "{host} は対応しているログイン方式（PLAIN、LOGIN）を提供していません"
            )));
        }
        connection.sign_in(user, password.expose()).await.map_err(|fault| {
            let why = phrase!(
                "{host} refuses the login (`user`, `password`): {answer}",
                "{host} が `user` のログインを拒否しました：{answer}",
                answer = Phrase::from(&fault)
            );
            match fault {
                Fault::Refused(reply) if reply.code >= 500 => SendError::Locked { why },
                _ => SendError::later(why),
            }
        })?;
    }
    Ok(connection)
}

/// Connects to the first address that answers; returns also the name for EHLO.
async fn open(addresses: &[SocketAddr], settings: &Settings) -> Result<(TcpStream, String), Phrase> {
    let mut failed = phrase!("it has no address", "アドレスが見つかりません");
    for address in addresses {
        let connecting = tokio::time::timeout(settings.timeout, TcpStream::connect(address));
        match connecting.await {
            Ok(Ok(stream)) => {
                // Commands are short and wait for their answer: delaying them would only cost time.
                stream.set_nodelay(true).map_err(|error| error.to_string())?;
                let here = stream.local_addr().map_err(|error| error.to_string())?;
                return Ok((stream, hello_name(id::host_name().as_deref(), here)));
            }
            Ok(Err(error)) => failed = in_words(&error),
            Err(_) => {
                failed = phrase!(
                    "no answer within {timeout}",
                    "{timeout}以内に応答がありません",
                    timeout = settings.timeout
                );
            }
        }
    }
    Err(failed)
}

/// The full name of this machine if it has one, else its address: RFC 5321, 4.1.4. Many servers refuse a name without a
/// domain, which most machines at home have.
fn hello_name(name: Option<&str>, here: SocketAddr) -> String {
    let is_name = |name: &&str| {
        name.len() <= 253 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte))
    };
    let is_full = |name: &&str| name.trim_matches('.').contains('.');
    match (name.filter(is_name).filter(is_full), here) {
        (Some(name), _) => name.to_owned(),
        (None, SocketAddr::V4(here)) => format!("[{}]", here.ip()),
        (None, SocketAddr::V6(here)) => format!("[IPv6:{}]", here.ip()),
    }
}

async fn encrypt(
    connection: Connection,
    host: &str,
    config: &EmailConfig,
    env: &ChannelEnv,
) -> Result<Connection, SendError> {
    let tls = env.clients.mail_tls(config.ca_file.as_deref());
    let tls = tls.map_err(|error| unsafe_line(host, error.to_string().into()))?;
    let name = ServerName::try_from(host.to_owned());
    let name = name.map_err(|_| {
        unsafe_line(host, phrase!("no certificate can have this name", "証明書に使えないホスト名です"))
    })?;
    let wire = connection.wire.encrypt(Arc::new(tls), name).await;
    let wire = wire.map_err(|fault| unsafe_line(host, (&fault).into()))?;
    Ok(Connection { wire, offers: Vec::new(), is_encrypted: true })
}

/// A failure to encrypt is not the message's fault.
fn unsafe_line(host: &str, why: Phrase) -> SendError {
    let why = phrase!(
        "no encrypted connection to {host}: {why}; nothing is sent without encryption",
        "{host} に暗号化して接続できません：{why}。暗号化なしでは送信しません"
    );
    if !super::open::is_loopback(host) {
        return SendError::Unsafe { why };
    }
    SendError::Unsafe {
        why: phrase!(
            "{why} (hint: a server on this machine needs none, `tls = \"none\"`)",
            "{why}（ヒント：このマシン上のサーバーなら `tls = \"none\"` にできます）"
        ),
    }
}

/// Why a mail could not be begun.
pub(super) enum NotBegun {
    /// The server has closed the connection, which it may do at any time: a new one will work.
    Closed(SendError),
    /// The server refused, or something else is wrong.
    Failed(SendError, Reuse),
}

/// Sends the sender and recipient, the first commands of a mail.
pub(super) async fn begin(connection: &mut Connection, from: &Address, to: &Address) -> Result<(), NotBegun> {
    let mut options = "";
    if !from.to_string().is_ascii() || !to.to_string().is_ascii() {
        if !connection.offers("SMTPUTF8") {
            let no = SendError::refused(phrase!(
                "the mail server takes no addresses with such letters",
                "メールサーバーがこの文字を含むアドレスに対応していません"
            ));
            return Err(NotBegun::Failed(no, Reuse::Yes));
        }
        options = " SMTPUTF8";
    }
    let begun = connection.wire.command(&format!("MAIL FROM:<{from}>{options}"), 2).await;
    begun.map(drop).map_err(|fault| {
        let is_closed = match &fault {
            Fault::Broken(_) => true,
            Fault::Refused(reply) => reply.code == 421,
        };
        let (error, reuse) = judge(&fault, Phase::Sender);
        if is_closed { NotBegun::Closed(error) } else { NotBegun::Failed(error, reuse) }
    })
}

/// Sends the text of the mail that was begun. Returns the outcome, and whether the connection can be reused.
pub(super) async fn deliver(
    connection: &mut Connection,
    to: &Address,
    mail: &[u8],
    progress: &Progress,
) -> Result<Accepted, (SendError, Reuse)> {
    let wire = &mut connection.wire;
    if let Err(fault) = wire.command(&format!("RCPT TO:<{to}>"), 2).await {
        return Err(reset(wire, judge(&fault, Phase::Recipient)).await);
    }
    if !progress.may_go_on() {
        return Err((SendError::later(http::out_of_time()), Reuse::No));
    }
    if let Err(fault) = wire.command("DATA", 3).await {
        return Err(reset(wire, judge(&fault, Phase::Data)).await);
    }
    fail::point("email.before_text");
    // The end of data is sent with the last piece: before that, the server cannot have accepted the mail.
    let text = as_data(mail);
    let mut pieces = text.chunks(PIECE_BYTES);
    let last = pieces.next_back().unwrap_or_default();
    let in_text = |fault: Fault| (SendError::later(broke(Phase::Text, &fault)), Reuse::No);
    for piece in pieces {
        wire.write(piece).await.map_err(in_text)?;
    }
    wire.refuse_unasked().map_err(in_text)?;
    progress.hand_over();
    fail::point("email.before_end");
    let answered = match wire.write(last).await {
        Ok(()) => wire.reply(2).await,
        Err(fault) => Err(fault),
    };
    fail::point("email.after_end");
    match answered {
        Ok(reply) => Ok(Accepted {
            remote_id: Some(reply.text()).filter(|answer| !answer.is_empty()),
            pause_until: None,
        }),
        Err(fault @ Fault::Refused(_)) => {
            progress.take_back();
            Err(judge(&fault, Phase::Text))
        }
        Err(Fault::Broken(why)) => {
            let why = phrase!(
                "no answer after the end of the text: {why}",
                "本文の送信後に応答がありません：{why}"
            );
            Err((SendError::Unknown { why }, Reuse::No))
        }
    }
}

/// Encodes a mail for DATA: CRLF at the end of every line, a dot before a leading dot, and the end of data.
fn as_data(mail: &[u8]) -> Vec<u8> {
    let mut data = Vec::with_capacity(mail.len() + mail.len() / 64 + 8);
    let mut rest = mail;
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')).unwrap_or(rest.len());
        if rest[0] == b'.' {
            data.push(b'.');
        }
        data.extend_from_slice(&rest[..end]);
        data.extend_from_slice(b"\r\n");
        let ending = if rest[end..].starts_with(b"\r\n") { 2 } else { 1 };
        rest = rest.get(end + ending..).unwrap_or_default();
    }
    data.extend_from_slice(b".\r\n");
    data
}

async fn reset(wire: &mut Wire, (error, reuse): (SendError, Reuse)) -> (SendError, Reuse) {
    match reuse {
        Reuse::Yes if wire.command("RSET", 2).await.is_ok() => (error, Reuse::Yes),
        _ => (error, Reuse::No),
    }
}

/// An answer of the server on one short line, with secrets redacted.
pub(super) fn quote(answer: &str) -> String {
    text::shorten(&redact(&text::one_line(answer)), 200)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_before_its_end() {
        for (mail, data) in [
            ("a\r\nb\r\n", "a\r\nb\r\n.\r\n"),
            ("a", "a\r\n.\r\n"),
            ("", ".\r\n"),
            (".\r\nMAIL FROM:<x>", "..\r\nMAIL FROM:<x>\r\n.\r\n"),
            ("a\n.\nb\r.\rc", "a\r\n..\r\nb\r\n..\r\nc\r\n.\r\n"),
            ("a\r\n\r\n..b\r\n", "a\r\n\r\n...b\r\n.\r\n"),
            ("a\r\r\n", "a\r\n\r\n.\r\n"),
        ] {
            assert_eq!(String::from_utf8(as_data(mail.as_bytes())).unwrap(), data, "{mail:?}");
        }
    }

    #[test]
    fn we_say_hello_with_a_name_or_an_address() {
        let (four, six) = ("192.0.2.7:5".parse().unwrap(), "[2001:db8::7]:5".parse().unwrap());
        assert_eq!(hello_name(Some("mail-1.example.com"), four), "mail-1.example.com");
        for name in [
            None,
            Some(""),
            Some("raspberrypi"),
            Some("pi."),
            Some("my_host.x"),
            Some("a b.c"),
            Some("a\r\nb"),
            Some("名前"),
        ] {
            assert_eq!(hello_name(name, four), "[192.0.2.7]");
            assert_eq!(hello_name(name, six), "[IPv6:2001:db8::7]");
        }
    }
}
