//! Authors of commits as they are stored: printable, never nameless, their addresses plain or as a fingerprint.

use crate::hash::sha256_hex;
use crate::text::one_line;

/// What stands in for an author without a name.
const NAMELESS: &str = "(no name)";
/// The longest name that is stored, in characters.
const NAME_CHARS: usize = 200;

/// How addresses are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emails {
    /// As they are.
    Plain,
    /// As a fingerprint.
    Hidden,
}

/// An author as we store one: printable, never nameless, with the name where there is no address.
pub fn author_of(name: Option<String>, email: Option<String>, emails: Emails) -> (Box<str>, Box<str>) {
    let name = name_of(name);
    let email = email.map(|email| plain(email.trim())).filter(|email| !email.is_empty());
    let email = match (email, emails) {
        (None, _) => name.clone(),
        (Some(email), Emails::Plain) => email.into(),
        // What another program has hidden already stays as it is.
        (Some(email), Emails::Hidden) if email.starts_with("sha256:") => email.into(),
        (Some(email), Emails::Hidden) => fingerprint(&email).into(),
    };
    (name, email)
}

fn name_of(name: Option<String>) -> Box<str> {
    let name = plain(&name.unwrap_or_default());
    match name.char_indices().nth(NAME_CHARS) {
        _ if name.is_empty() => NAMELESS.into(),
        Some((end, _)) => name[..end].into(),
        None => name.into(),
    }
}

/// Printable, on one line; most names are already.
fn plain(text: &str) -> String {
    let clean = text.bytes().all(|b| matches!(b, b' '..=b'~')) && !text.contains("  ") && text.trim() == text;
    if clean { text.to_owned() } else { one_line(text) }
}

/// What stands for an address that is not to be stored: the same for every spelling of it.
pub fn fingerprint(email: &str) -> String {
    format!("sha256:{}", sha256_hex(email.to_lowercase()))
}
