//! Keeps all resolved secrets out of logs and messages.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::RwLock;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use super::secret::REDACTED;
use stdx::text::escape_html;

/// Shorter secrets are not redacted: `abc` occurs in half of all lines, and hiding it there would reveal it.
pub(super) const SHORTEST: usize = 4;
/// Shorter base64 texts are not redacted, since they occur by chance.
const SHORTEST_BASE64: usize = 6;

/// Characters that most programs do not escape in a part of an address.
const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// All texts to redact, longest first, so that a secret inside another leaves no remainder.
static NEEDLES: RwLock<Vec<String>> = RwLock::new(Vec::new());

/// Makes [`redact`] hide `secret` and its usual encodings.
pub(super) fn register(secret: &str) {
    if secret.chars().count() < SHORTEST {
        return;
    }
    let forms = list_forms(secret);
    let mut needles = NEEDLES.write().unwrap_or_else(std::sync::PoisonError::into_inner);
    for form in forms {
        if !needles.contains(&form) {
            needles.push(form);
        }
    }
    needles.sort_by_key(|needle| std::cmp::Reverse(needle.len()));
}

/// `text` with every secret replaced by `[redacted]`.
pub fn redact(text: &str) -> Cow<'_, str> {
    let needles = NEEDLES.read().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut out = Cow::Borrowed(text);
    for needle in needles.iter() {
        if out.contains(needle.as_str()) {
            out = Cow::Owned(out.replace(needle.as_str(), REDACTED));
        }
    }
    out
}

/// The forms of a secret: plain, percent-encoded, escaped for JSON, Rust and HTML, base64 at any offset.
fn list_forms(secret: &str) -> BTreeSet<String> {
    let mut forms = BTreeSet::from([secret.to_owned()]);
    let encoded = percent_encode(secret.as_bytes(), NON_ALPHANUMERIC).to_string();
    forms.insert(percent_encode(secret.as_bytes(), COMPONENT).to_string());
    forms.insert(lowercase_escapes(&percent_encode(secret.as_bytes(), COMPONENT).to_string()));
    forms.insert(lowercase_escapes(&encoded));
    forms.insert(url::form_urlencoded::byte_serialize(secret.as_bytes()).collect());
    forms.insert(encoded);
    if let Ok(mut address) = url::Url::parse("http://h") {
        if address.set_password(Some(secret)).is_ok() {
            forms.extend(address.password().map(str::to_owned));
        }
        address.set_query(Some(secret));
        forms.extend(address.query().map(str::to_owned));
        address.set_path(secret);
        forms.insert(address.path().trim_start_matches('/').to_owned());
    }
    forms.insert(secret.escape_debug().to_string());
    if let Ok(json) = serde_json::to_string(secret) {
        forms.insert(json[1..json.len() - 1].to_owned());
    }
    forms.insert(escape_html(secret));
    for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
        forms.extend((0..3).filter_map(|offset| base64_core(&engine, secret.as_bytes(), offset)));
    }
    // A PEM key is often printed line by line.
    forms.extend(secret.lines().filter(|line| line.len() >= 16).map(str::to_owned));
    forms.retain(|form| form.chars().count() >= SHORTEST);
    forms
}

/// The base64 characters that depend only on `secret`, with `offset` bytes (mod 3) before it.
///
/// This finds `user:secret` of basic authentication for any user.
fn base64_core(engine: &impl Engine, secret: &[u8], offset: usize) -> Option<String> {
    let mut padded = vec![0; offset];
    padded.extend_from_slice(secret);
    let text = engine.encode(&padded);
    let start = (offset * 8).div_ceil(6);
    let end = padded.len() * 8 / 6;
    text.get(start..end).filter(|core| core.len() >= SHORTEST_BASE64).map(str::to_owned)
}

/// `%2F` as `%2f`.
fn lowercase_escapes(encoded: &str) -> String {
    let mut out = String::with_capacity(encoded.len());
    let mut hex_digits = 0;
    for c in encoded.chars() {
        out.push(if hex_digits > 0 { c.to_ascii_lowercase() } else { c });
        hex_digits = if c == '%' { 2_usize } else { hex_digits.saturating_sub(1) };
    }
    out
}

/// A writer that redacts secrets line by line, for logs.
///
/// A line is written when it is complete, on `flush`, and at the end.
pub struct Redacting<W: Write> {
    inner: W,
    pending: Vec<u8>,
}

impl<W: Write> Redacting<W> {
    /// Hides secrets in what is written to `inner`.
    pub fn new(inner: W) -> Self {
        Self { inner, pending: Vec::new() }
    }

    fn write_pending(&mut self, length: usize) -> io::Result<()> {
        let ready: Vec<u8> = self.pending.drain(..length).collect();
        self.inner.write_all(redact(&String::from_utf8_lossy(&ready)).as_bytes())
    }
}

impl<W: Write> Write for Redacting<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pending.extend_from_slice(bytes);
        if let Some(newline) = self.pending.iter().rposition(|byte| *byte == b'\n') {
            self.write_pending(newline + 1)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_pending(self.pending.len())?;
        self.inner.flush()
    }
}

impl<W: Write> Drop for Redacting<W> {
    fn drop(&mut self) {
        // Ignore errors: a failing log is not a reason to stop.
        let _ = self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_hidden_in_every_usual_form() {
        let secret = "p\"ä/s s+&w%rd-Zq";
        register(secret);
        let json = serde_json::to_string(secret).unwrap();
        let mut address = url::Url::parse("https://example.com/x").unwrap();
        address.set_password(Some(secret)).unwrap();
        address.query_pairs_mut().append_pair("k", secret);
        let mut forms = vec![
            format!("plain {secret}"),
            format!("{secret:?}"),
            json,
            address.to_string(),
            "p%22%c3%a4%2fs%20s%2b%26w%25rd-Zq".to_owned(),
            "p%22%C3%A4%2Fs%20s%2B%26w%25rd%2DZq".to_owned(),
            escape_html(secret),
        ];
        for user in ["", "u", "me", "bob", "alice@example.com"] {
            forms.push(base64::prelude::BASE64_STANDARD.encode(format!("{user}:{secret}")));
            forms.push(base64::prelude::BASE64_URL_SAFE.encode(format!("{user}:{secret}:tail")));
        }
        for form in forms {
            let shown = redact(&form);
            assert!(shown.contains(REDACTED), "{form} was let through");
            assert!(!shown.contains("rd-Zq"), "{shown} shows the end");
        }
        assert_eq!(redact("nothing to hide"), "nothing to hide");
    }

    proptest::proptest! {
        #[test]
        fn basic_authentication_shows_no_secret_of_six_or_more(
            secret in "[!-~é]{6,40}", user in "[a-z@.]{0,9}", tail in "[!-~]{0,4}",
        ) {
            let forms = list_forms(&secret);
            for engine in [base64::prelude::BASE64_STANDARD, base64::prelude::BASE64_URL_SAFE] {
                let sent = engine.encode(format!("{user}:{secret}{tail}"));
                proptest::prop_assert!(forms.iter().any(|form| sent.contains(form.as_str())), "{}", sent);
            }
        }
    }

    #[test]
    fn a_secret_inside_another_leaves_no_remainder() {
        register("kept-inner");
        register("outer-kept-inner-outer");
        assert_eq!(redact("<outer-kept-inner-outer> <kept-inner>"), "<[redacted]> <[redacted]>");
    }

    #[test]
    fn a_short_secret_does_not_blot_out_the_log() {
        register("abc");
        assert_eq!(redact("the abc of it"), "the abc of it");
    }

    #[test]
    fn a_secret_split_over_writes_is_hidden_in_its_line() {
        register("split-secret-4711");
        let mut out = Vec::new();
        {
            let mut writer = Redacting::new(&mut out);
            writer.write_all(b"token split-sec").unwrap();
            writer.write_all(b"ret-4711 used\nand split-secret").unwrap();
            writer.write_all(b"-4711").unwrap();
        }
        assert_eq!(String::from_utf8(out).unwrap(), "token [redacted] used\nand [redacted]");
    }

    #[test]
    fn the_lines_of_a_key_are_hidden_one_by_one() {
        register("-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\n-----END KEY-----");
        assert_eq!(redact("line MIIEvQIBADANBgkqhkiG9w0B"), "line [redacted]");
    }
}
