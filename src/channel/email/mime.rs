//! Builds a mail with the library's builder: always the same bytes for the same message.

use std::time::{Duration, UNIX_EPOCH};

use lettre::message::header::{ContentTransferEncoding, ContentType, HeaderName, HeaderValue};
use lettre::message::{Body, Mailbox, MultiPart, SinglePart};

use crate::channel::header_text::HeaderText;
use crate::channel::notice::MailBody;
use crate::text;
use crate::time::Timestamp;

/// Longer subjects are cut; mail readers show less.
const MAX_SUBJECT_COLUMNS: usize = 240;

/// The longest line of a mail without its line end: RFC 5322, 2.1.1. Servers refuse or break mails with longer lines.
pub(super) const MAX_LINE: usize = 998;

/// Whether a mail with this sender and this list header has only lines within the limit.
pub(super) fn can_carry(mailbox: &Mailbox, list: Option<&HeaderText>) -> bool {
    let body = MailBody { subject: "s".into(), text: "t".into(), html: "h".into(), list_id: None };
    let frame = Frame {
        from: mailbox,
        to: mailbox,
        reply_to: Some(mailbox),
        list_id: list,
        list_unsubscribe: list,
        key: "key",
        date: Timestamp::MIN,
    };
    build(&frame, &body).is_ok()
}

/// The headers of a mail.
pub(super) struct Frame<'a> {
    pub(super) from: &'a Mailbox,
    pub(super) to: &'a Mailbox,
    pub(super) reply_to: Option<&'a Mailbox>,
    pub(super) list_id: Option<&'a HeaderText>,
    pub(super) list_unsubscribe: Option<&'a HeaderText>,
    /// The key of the message; the Message-ID is derived from it.
    pub(super) key: &'a str,
    pub(super) date: Timestamp,
}

/// The Message-ID of the message with that key: the same for a second copy, so that mail readers show only one.
pub(super) fn message_id(key: &str, from: &Mailbox) -> String {
    format!("<{}@{}>", key.get(..40).unwrap_or(key), from.email.domain())
}

pub(super) fn build(frame: &Frame<'_>, body: &MailBody) -> Result<Vec<u8>, String> {
    let seconds = u64::try_from(frame.date.as_millis() / 1000).unwrap_or(0);
    let mut builder = lettre::Message::builder()
        .from(frame.from.clone())
        .to(frame.to.clone())
        .subject(subject(&body.subject))
        .date(UNIX_EPOCH + Duration::from_secs(seconds))
        .message_id(Some(message_id(frame.key, frame.from)));
    if let Some(reply_to) = frame.reply_to {
        builder = builder.reply_to(reply_to.clone());
    }
    // The config takes precedence over the pipeline.
    let list_id = frame.list_id.or(body.list_id.as_ref());
    for (name, value) in [
        (HeaderName::new_from_ascii_str("List-Id"), list_id.map(|id| id.as_str().to_owned())),
        (
            HeaderName::new_from_ascii_str("List-Unsubscribe"),
            frame.list_unsubscribe.map(|address| address.as_str().to_owned()),
        ),
        (HeaderName::new_from_ascii_str("Auto-Submitted"), Some("auto-generated".to_owned())),
    ] {
        if let Some(value) = value {
            builder = builder.raw_header(HeaderValue::new(name, value));
        }
    }
    let parts = MultiPart::alternative()
        .boundary(format!("=_{}", frame.key.get(..32).unwrap_or(frame.key)))
        .singlepart(part(ContentType::TEXT_PLAIN, &body.text)?)
        .singlepart(part(ContentType::TEXT_HTML, &body.html)?);
    let mail = builder.multipart(parts).map_err(|error| error.to_string())?.formatted();
    if mail.split(|byte| *byte == b'\n').any(|line| line.len() > MAX_LINE + 1) {
        Err(format!("it has a line of more than {MAX_LINE} bytes"))
    } else {
        Ok(mail)
    }
}

/// Always encode: then no line is too long, and none can look like the boundary, which begins with `=_`.
fn part(kind: ContentType, text: &str) -> Result<SinglePart, String> {
    let encoding = match Body::new(text.to_owned()).encoding() {
        ContentTransferEncoding::Base64 => ContentTransferEncoding::Base64,
        _ => ContentTransferEncoding::QuotedPrintable,
    };
    let body = Body::new_with_encoding(text.to_owned(), encoding)
        .map_err(|_| "a part of the mail cannot be encoded".to_owned())?;
    Ok(SinglePart::builder().header(kind).body(body))
}

/// Escapes what looks like an encoded word, so that the subject is shown as it was written.
fn subject(subject: &HeaderText) -> String {
    text::shorten(&subject.as_str().replace("=?", "=\u{200b}?"), MAX_SUBJECT_COLUMNS)
}
