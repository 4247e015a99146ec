//! Parts of RSS: persons as one text, and repairs of mangled text.

use std::borrow::Cow;

use encoding_rs::WINDOWS_1252;

use super::Person;
use crate::markup::c1_as_windows_1252;

/// A person in one text: `name`, `mail`, `name (mail)`, `mail (name)` or `name <mail>`.
pub(super) fn person(text: &str) -> Person {
    if text.is_empty() {
        return Person::default();
    }
    let is_mail = |word: &str| {
        word.split_once('@').is_some_and(|(local, host)| {
            !local.is_empty() && host.contains('.') && !host.starts_with('.') && !host.contains('@')
        })
    };
    let mail = text
        .split(|c: char| {
            c.is_whitespace() || matches!(c, '(' | ')' | '<' | '>' | ',' | ';' | '"' | '[' | ']')
        })
        .map(|word| word.strip_prefix("mailto:").unwrap_or(word))
        .find(|word| is_mail(word));
    let name = match mail {
        None => text.to_owned(),
        Some(mail) => text.replacen(mail, "", 1).replace("mailto:", "").replace("()", "").replace("<>", ""),
    };
    let name =
        name.trim_matches(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | '<' | '>' | ',' | '"'));
    Person {
        name: (!name.is_empty()).then(|| name.to_owned()),
        email: mail.map(str::to_owned),
        url: None,
        text: Some(text.to_owned()),
    }
}

/// Repairs UTF-8 that was decoded as windows-1252 and encoded again; other text stays.
pub(super) fn unmangled(text: String) -> String {
    if text.is_ascii() || !text.chars().all(|c| (c as u32) < 0x2123) {
        return text;
    }
    let (bytes, _, lost) = WINDOWS_1252.encode(&text);
    if lost {
        return text;
    }
    match String::from_utf8(bytes.into_owned()) {
        Ok(repaired) => repaired,
        Err(_) => text,
    }
}

/// Removes control characters from a document, and replaces C1 controls by the windows-1252 letters that were meant.
pub(super) fn repaired(text: &str) -> Cow<'_, str> {
    let is_control = |byte: u8| byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r');
    // Check whole chunks without an early exit, so that the compiler vectorises the comparison.
    let suspect =
        |chunk: &[u8]| chunk.iter().fold(false, |found, byte| found | is_control(*byte) | (*byte == 0xc2));
    let bytes = text.as_bytes();
    let damaged = bytes.chunks(512).enumerate().any(|(index, chunk)| {
        suspect(chunk) && {
            // One byte more, because a pair may cross the border of a chunk.
            let pairs = &bytes[index * 512..bytes.len().min(index * 512 + chunk.len() + 1)];
            chunk.iter().any(|byte| is_control(*byte))
                || pairs.windows(2).any(|pair| pair[0] == 0xc2 && pair[1] < 0xa0)
        }
    });
    if !damaged {
        return Cow::Borrowed(text);
    }
    Cow::Owned(
        text.chars()
            .filter(|c| !c.is_ascii() || !is_control(*c as u8))
            .map(|c| if ('\u{80}'..='\u{9f}').contains(&c) { c1_as_windows_1252(c as u32) } else { c })
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_in_one_text() {
        for (text, name, email) in [
            ("Jane Doe", Some("Jane Doe"), None),
            ("jane@example.org", None, Some("jane@example.org")),
            ("Jane Doe (jane@example.org)", Some("Jane Doe"), Some("jane@example.org")),
            ("jane@example.org (Jane Doe)", Some("Jane Doe"), Some("jane@example.org")),
            ("Jane Doe <jane@example.org>", Some("Jane Doe"), Some("jane@example.org")),
            ("mailto:jane@example.org", None, Some("jane@example.org")),
            ("@handle", Some("@handle"), None),
        ] {
            let person = person(text);
            assert_eq!((person.name.as_deref(), person.email.as_deref()), (name, email), "{text}");
        }
    }

    #[test]
    fn mangled_text_is_repaired_and_honest_text_is_not() {
        for (text, expected) in
            [("cafÃ©", "café"), ("â€¦", "…"), ("café", "café"), ("Ångström", "Ångström"), ("日本", "日本")]
        {
            assert_eq!(unmangled(text.to_owned()), expected);
        }
    }

    #[test]
    fn controls_disappear_and_c1_becomes_letters() {
        assert_eq!(repaired("a\u{0}b\u{1b}c\td"), "abc\td");
        assert_eq!(repaired("don\u{92}t"), "don’t");
        assert!(matches!(repaired("plain £"), Cow::Borrowed(_)));
    }
}
