//! The SMTP dialogue, command by command: the phase in which it ends decides what that means.
//!
//! ```text
//! connect ─ TLS ─ AUTH ─ MAIL ─ RCPT ─ DATA ─ text ─ end of data ─ answer
//! └───────── not sent: try again ─────────────────┘ └── may be sent ─┘
//! ```

use lettre::Address;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{AsyncSmtpConnection, Certificate, TlsParameters};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt, Rset};
use lettre::transport::smtp::extension::{ClientId, Extension, MailParameter};

use super::{EmailConfig, Tls};
use crate::channel::error::{SendError, Sent};
use crate::channel::{Outside, Progress, Settings};
use crate::config::redact;
use crate::{fail, text};

/// The text goes out in pieces, so that a broken connection shows whether its end was reached.
const PIECE_BYTES: usize = 16 * 1024;

/// Where mail is handed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Server {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) tls: Tls,
}

/// Opens a connection that is ready to take mail.
pub(super) async fn connect(
    server: &Server,
    config: &EmailConfig,
    settings: &Settings,
    outside: &Outside,
) -> Result<AsyncSmtpConnection, SendError> {
    let Server { host, port, .. } = server;
    let addresses = outside
        .clients
        .resolve(host, *port, &settings.allow_private)
        .await
        .map_err(|error| SendError::later(error.to_string()))?;
    let hello = ClientId::default();
    let tls = match server.tls {
        Tls::None => None,
        Tls::Tls | Tls::Starttls => Some(parameters(host, config)?),
    };
    let implicit = tls.clone().filter(|_| server.tls == Tls::Tls);
    let mut connection =
        AsyncSmtpConnection::connect_tokio1(&addresses[..], Some(settings.timeout), &hello, implicit, None)
            .await
            .map_err(|error| SendError::later(format!("no connection to {host}: {}", words(&error))))?;
    if let (Tls::Starttls, Some(tls)) = (server.tls, tls) {
        if !connection.can_starttls() {
            return Err(SendError::later(format!(
                "{host} offers no STARTTLS; nothing is sent without encryption"
            )));
        }
        connection.starttls(tls, &hello).await.map_err(|error| {
            SendError::later(format!("no encrypted connection to {host}: {}", words(&error)))
        })?;
    }
    if let (Some(user), Some(password)) = (&config.user, &config.password) {
        let password = password.reveal().map_err(|missing| SendError::Locked { why: missing.to_string() })?;
        let credentials = Credentials::new(user.clone(), password.expose().to_owned());
        connection.auth(DEFAULT_MECHANISMS, &credentials).await.map_err(|error| {
            let why = format!("{host} does not let `user` in: {}", words(&error));
            match error.is_permanent() || error.is_client() {
                true => SendError::Locked { why },
                false => SendError::later(why),
            }
        })?;
    }
    Ok(connection)
}

fn parameters(host: &str, config: &EmailConfig) -> Result<TlsParameters, SendError> {
    let failed = |why: String| SendError::later(format!("no encryption: {why}"));
    let mut builder = TlsParameters::builder(host.to_owned());
    if let Some(path) = &config.ca_file {
        let pem = std::fs::read(path).map_err(|error| failed(format!("{}: {error}", path.display())))?;
        let certificate = Certificate::from_pem(&pem).map_err(|error| failed(error.to_string()))?;
        builder = builder.add_root_certificate(certificate);
    }
    builder.build_rustls().map_err(|error| failed(error.to_string()))
}

/// Hands one mail in. Answers with what is to happen, and whether the connection may be used again.
pub(super) async fn deliver(
    connection: &mut AsyncSmtpConnection,
    from: &Address,
    to: &Address,
    mail: &[u8],
    progress: &Progress,
) -> Result<Sent, (SendError, Reuse)> {
    let mut options = Vec::new();
    if !from.to_string().is_ascii() || !to.to_string().is_ascii() {
        let no = || SendError::refused("the mail server takes no addresses with such letters");
        if !connection.server_info().supports_feature(Extension::SmtpUtfEight) {
            return Err((no(), Reuse::Yes));
        }
        options.push(MailParameter::SmtpUtfEight);
    }
    // What the server thinks of our sender address it thinks of every mail, so this is not the message's fault.
    connection
        .command(Mail::new(Some(from.clone()), options))
        .await
        .map_err(|error| judge(&error, "MAIL FROM", |why| SendError::Locked { why }))?;
    if let Err(error) = connection.command(Rcpt::new(to.clone(), Vec::new())).await {
        let judged = judge(&error, "RCPT TO", |why| SendError::Refused { why });
        return Err(reset(connection, judged).await);
    }
    if !progress.may_go_on() {
        return Err((SendError::later("there was no time left to send it"), Reuse::No));
    }
    if let Err(error) = connection.command(Data).await {
        let judged = judge(&error, "DATA", |why| SendError::Refused { why });
        return Err(reset(connection, judged).await);
    }
    fail::point("email.before_text");
    // The library asks for the next piece after it has written the last one, and writes the end of data when
    // there is none: until then the server cannot have accepted anything.
    let mut pieces = mail.chunks(PIECE_BYTES);
    let text = std::iter::from_fn(|| {
        let piece = pieces.next();
        if piece.is_none() {
            progress.hand_over();
            fail::point("email.before_end");
        }
        piece
    });
    let answered = connection.message_iter(text).await;
    fail::point("email.after_end");
    match answered {
        Ok(response) => {
            let said = quote(&response.message().collect::<Vec<_>>().join(" "));
            Ok(Sent { remote_id: Some(said).filter(|said| !said.is_empty()), rest_until: None })
        }
        Err(error) if error.status().is_some() => {
            progress.take_back();
            Err(judge(&error, "the text", |why| SendError::Refused { why }))
        }
        Err(error) if progress.is_handed_over() => {
            let why = format!("no answer after the end of the text: {}", words(&error));
            Err((SendError::Unknown { why }, Reuse::No))
        }
        Err(error) => {
            Err((SendError::later(format!("the connection broke in the text: {}", words(&error))), Reuse::No))
        }
    }
}

/// Whether a connection is still good for the next mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reuse {
    Yes,
    No,
}

async fn reset(
    connection: &mut AsyncSmtpConnection,
    (error, reuse): (SendError, Reuse),
) -> (SendError, Reuse) {
    match reuse {
        Reuse::Yes if connection.command(Rset).await.is_ok() => (error, Reuse::Yes),
        _ => (error, Reuse::No),
    }
}

/// What an error before the end of the text means; `final_no` says what a permanent refusal is.
fn judge(
    error: &lettre::transport::smtp::Error,
    phase: &str,
    final_no: impl FnOnce(String) -> SendError,
) -> (SendError, Reuse) {
    let why = format!("refused at {phase}: {}", words(error));
    let Some(code) = error.status() else {
        return (SendError::later(format!("the connection broke at {phase}: {}", words(error))), Reuse::No);
    };
    let code = code.to_string();
    match code.as_str() {
        // "Authentication required" and "credentials invalid" may come at any point.
        "530" | "535" => (SendError::Locked { why }, Reuse::No),
        "421" => (SendError::later(why), Reuse::No),
        _ if error.is_permanent() => (final_no(why), Reuse::Yes),
        _ => (SendError::later(why), Reuse::Yes),
    }
}

fn words(error: &lettre::transport::smtp::Error) -> String {
    quote(&error.to_string())
}

/// What a server said, on one short line and without our secrets.
fn quote(said: &str) -> String {
    text::shorten(&redact(&text::one_line(said)), 200)
}
