//! Authors of commits as stored: printable, never without a name, with addresses plain or as a fingerprint.

use crate::hash::sha256_hex;
use crate::text::one_line;

/// The placeholder for an author without a name.
const NAMELESS: &str = "(no name)";
/// The longest name or title that is stored, in characters.
const STORED_CHARS: usize = 200;

/// How addresses are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emails {
    /// As they are.
    Plain,
    /// As a fingerprint.
    Hidden,
}

/// An author as stored: printable, never without a name; without an address, the name takes its place.
pub fn author_of(name: Option<String>, email: Option<String>, emails: Emails) -> (Box<str>, Box<str>) {
    let name = name_of(name);
    let email = email.map(|email| plain(email.trim())).filter(|email| !email.is_empty());
    let email = match (email, emails) {
        (None, _) => name.clone(),
        (Some(email), Emails::Plain) => email.into(),
        // An address that another program has already hidden stays unchanged.
        (Some(email), Emails::Hidden) if email.starts_with("sha256:") => email.into(),
        (Some(email), Emails::Hidden) => fingerprint(&email).into(),
    };
    (name, email)
}

fn name_of(name: Option<String>) -> Box<str> {
    let name = title_of(name);
    if name.is_empty() { NAMELESS.into() } else { name }
}

/// One printable line, truncated to the stored length.
pub fn title_of(text: Option<String>) -> Box<str> {
    let text = plain(&text.unwrap_or_default());
    match text.char_indices().nth(STORED_CHARS) {
        Some((end, _)) => text[..end].into(),
        None => text.into(),
    }
}

/// Printable, on one line; most names are already.
fn plain(text: &str) -> String {
    let clean = text.bytes().all(|b| matches!(b, b' '..=b'~')) && !text.contains("  ") && text.trim() == text;
    if clean { text.to_owned() } else { one_line(text) }
}

/// The key of the person behind a stored address: the fingerprint, however the address is stored.
pub fn email_key(email: &str) -> String {
    if email.starts_with("sha256:") { email.to_owned() } else { fingerprint(email) }
}

/// The fingerprint of an address: the same for every spelling of it.
pub fn fingerprint(email: &str) -> String {
    format!("sha256:{}", sha256_hex(email.to_lowercase()))
}
