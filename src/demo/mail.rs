//! Parses the mails received by the demo's mail server: subject, text and HTML.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::smtp::Kept;

/// The visible parts of a mail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Letter {
    /// The recipient.
    pub to: String,
    /// As in the mail.
    pub date: String,
    pub subject: String,
    /// Its plain text.
    pub text: String,
    /// Empty if there is none.
    pub html: String,
}

/// Parses a mail as the program sends them: alternatives on one level, plain text first.
pub fn read(mail: &Kept) -> Letter {
    let (head, body) = split(&mail.data);
    let boundary = header(&head, "content-type").and_then(|value| {
        let (_, rest) = value.split_once("boundary=")?;
        Some(rest.trim_start_matches('"').split(['"', ';']).next()?.to_owned())
    });
    let part = |media_type: &str| match &boundary {
        None => decode_body(&head, body),
        Some(boundary) => body
            .split(&format!("--{boundary}"))
            .skip(1)
            .map(|part| split(part.trim_start_matches("\r\n")))
            .find(|(head, _)| header(head, "content-type").is_some_and(|value| value.starts_with(media_type)))
            .map(|(head, body)| decode_body(&head, body))
            .unwrap_or_default(),
    };
    Letter {
        to: mail.to.join(", "),
        date: header(&head, "date").unwrap_or_default(),
        subject: decode_words(&header(&head, "subject").unwrap_or_default()),
        text: part("text/plain").replace("\r\n", "\n").trim_end().to_owned(),
        html: boundary.as_ref().map(|_| part("text/html")).unwrap_or_default(),
    }
}

/// The header with unfolded lines, and the body.
fn split(text: &str) -> (String, &str) {
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
    (head.replace("\r\n ", " ").replace("\r\n\t", " "), body)
}

fn header(head: &str, name: &str) -> Option<String> {
    head.split("\r\n").find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
    })
}

fn decode_body(head: &str, body: &str) -> String {
    let bytes =
        match header(head, "content-transfer-encoding").unwrap_or_default().to_ascii_lowercase().as_str() {
            "base64" => {
                let packed: String = body.chars().filter(|c| !c.is_whitespace()).collect();
                BASE64.decode(packed).unwrap_or_default()
            }
            "quoted-printable" => decode_quoted(&body.replace("=\r\n", "")),
            _ => body.as_bytes().to_vec(),
        };
    String::from_utf8_lossy(&bytes).into_owned()
}

fn decode_quoted(text: &str) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()).filter(|_| *first == b'=') {
            Some(byte) => {
                out.push(byte);
                rest = &after[2..];
            }
            None => {
                out.push(*first);
                rest = after;
            }
        }
    }
    out
}

/// Decodes encoded words in a header; white space between two of them is ignored.
fn decode_words(text: &str) -> String {
    let mut out = String::new();
    let mut after_word = false;
    for word in text.split(' ') {
        let decoded = decode_word(word);
        let is_word = decoded.is_some();
        let are_joined = after_word && is_word;
        if !out.is_empty() && !are_joined {
            out.push(' ');
        }
        out.push_str(decoded.as_deref().unwrap_or(word));
        after_word = is_word;
    }
    out
}

fn decode_word(word: &str) -> Option<String> {
    let inner = word.strip_prefix("=?")?.strip_suffix("?=")?;
    let mut parts = inner.splitn(3, '?');
    let (charset, encoding, data) = (parts.next()?, parts.next()?, parts.next()?);
    if !charset.eq_ignore_ascii_case("utf-8") {
        return None;
    }
    let bytes = match encoding {
        "b" | "B" => BASE64.decode(data).ok()?,
        "q" | "Q" => decode_quoted(&data.replace('_', " ")),
        _ => return None,
    };
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(data: &str) -> Kept {
        Kept {
            from: "a@example.com".into(),
            to: vec!["b@example.com".into()],
            data: data.replace('\n', "\r\n"),
        }
    }

    #[test]
    fn subject_and_text_are_what_a_reader_shows() {
        let mail = kept(
            "Subject: =?utf-8?b?57aa44GN?=\n =?utf-8?b?44Gu5pys?= (5)\nDate: Thu, 15 Jan 2026 00:00:00 +0000\n\
             Content-Type: multipart/alternative; \n boundary=\"=_x\"\n\n--=_x\nContent-Type: text/plain; charset=utf-8\n\
             Content-Transfer-Encoding: quoted-printable\n\nA =E2=86=92 B =\nand more=3D\n--=_x\nContent-Type: text/html\n\n<b>no</b>\n--=_x--\n",
        );
        let letter = read(&mail);
        assert_eq!(letter.subject, "続きの本 (5)");
        assert_eq!(letter.text, "A → B and more=");
        assert_eq!(letter.html.trim(), "<b>no</b>");
        assert_eq!((letter.to.as_str(), &letter.date[..3]), ("b@example.com", "Thu"));
    }

    #[test]
    fn what_is_no_mail_is_shown_as_it_is() {
        assert_eq!(read(&kept("Subject: =?x?b?!!?=\n\nplain")).text, "plain");
        assert_eq!(read(&kept("Subject: =?x?b?!!?=\n\nplain")).subject, "=?x?b?!!?=");
        assert_eq!(read(&kept("")), Letter { to: "b@example.com".into(), ..Letter::default() });
    }
}
