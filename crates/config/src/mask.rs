//! Masks literal secrets in a config text, so that its lines can be shown.

/// Suffixes of keys whose values are secrets.
const SECRET_WORDS: [&str; 9] =
    ["secret", "password", "passwd", "passphrase", "token", "credentials", "key", "webhook", "webhook_url"];

/// Like [`blot_secrets_of`], for a text with unknown keys.
pub(super) fn blot_secrets(text: &str) -> String {
    blot_secrets_of(text, &[])
}

/// Replaces by `*`: the values of `secret_keys` and of keys that sound secret, and passwords in addresses.
///
/// It uses only the text, because it must also work for a file that is not valid TOML. No byte is moved. References
/// such as `${NAME}` are kept: they are not secret, and the reader needs them.
pub(super) fn blot_secrets_of(text: &str, secret_keys: &[String]) -> String {
    let mut out = text.as_bytes().to_vec();
    // Line by line, so that each line is scanned once, however long the text is.
    let (mut start, mut is_plain, mut is_secret) = (0, false, false);
    for line in text.split_inclusive('\n') {
        let header = line.trim_start();
        if header.starts_with('[') {
            is_plain = is_plain_header(header);
            is_secret = header.split(']').next().is_some_and(|name| names_secret(name, secret_keys));
        }
        for (at, _) in line.match_indices('=') {
            if is_secret || is_secret_key(&line[..at], is_plain, secret_keys) {
                blot_value(text, start + at + 1, &mut out);
            }
        }
        start += line.len();
    }
    for (at, _) in text.match_indices("://") {
        blot_password(text, at + 3, &mut out);
    }
    String::from_utf8(out).unwrap_or_else(|_| text.chars().map(|c| if c == '\n' { c } else { '*' }).collect())
}

/// Whether the key before a `=` is that of a secret.
fn is_secret_key(before: &str, is_plain: bool, secret_keys: &[String]) -> bool {
    let key = before.trim_end().trim_end_matches(['"', '\'']);
    let start = key
        .char_indices()
        .rev()
        .find(|(_, c)| !(c.is_alphanumeric() || matches!(c, '_' | '-')))
        .map_or(0, |(at, c)| at + c.len_utf8());
    let key = &key[start..];
    let plain = key.to_lowercase().replace('-', "_");
    // A channel's `url` is a secret; that of a blog or the database must stay visible.
    if key == "url" && is_plain {
        return false;
    }
    let whole = before.rsplit(['{', ',']).next().unwrap_or(before);
    names_secret(key, secret_keys)
        || names_secret(whole, secret_keys)
        || SECRET_WORDS.iter().any(|word| plain.ends_with(word))
}

/// Whether a part of a dotted name is a key of secrets: then everything below it is secret.
fn names_secret(name: &str, secret_keys: &[String]) -> bool {
    let mut parts = name.split('.').map(|part| part.trim().trim_matches(['[', '"', '\'']));
    parts.any(|part| secret_keys.iter().any(|one| one == part))
}

/// Whether a header begins a table whose addresses contain no secrets except passwords.
fn is_plain_header(header: &str) -> bool {
    ["[[job]]", "[[job.", "[store]"].iter().any(|plain| header.starts_with(plain))
}

/// Masks the value that starts at or after `at`; in an array or a table, every value.
fn blot_value(text: &str, at: usize, out: &mut [u8]) {
    let mut at = at;
    let mut depth = 0_usize;
    loop {
        let rest = &text[at..];
        at += rest.len() - rest.trim_start_matches([' ', '\t']).len();
        match text[at..].chars().next() {
            None => return,
            Some('[' | '{') => {
                depth += 1;
                at += 1;
            }
            Some(']' | '}') if depth > 0 => {
                depth -= 1;
                at += 1;
            }
            Some(',' | '\n' | '\r' | '=') if depth > 0 => at += 1,
            Some(_) => at = blot_one(text, at, out),
        }
        if depth == 0 {
            return;
        }
    }
}

/// Masks a string in any of TOML's quotes, or a bare word; returns its end.
fn blot_one(text: &str, start: usize, out: &mut [u8]) -> usize {
    let rest = &text[start..];
    let (open, close): (usize, &str) = if rest.starts_with("\"\"\"") {
        (3, "\"\"\"")
    } else if rest.starts_with("'''") {
        (3, "'''")
    } else if rest.starts_with('"') {
        (1, "\"")
    } else if rest.starts_with('\'') {
        (1, "'")
    } else {
        let end = rest.find([',', '}', ']', '=', '#', '\r', '\n']).unwrap_or(rest.len());
        let word = rest[..end].trim_end();
        if word != "true" && word != "false" {
            blot(&mut out[start..start + word.len()]);
        }
        // A comment inside an array would not end by itself.
        return if rest.starts_with('#') {
            start + rest.find('\n').unwrap_or(rest.len())
        } else {
            start + end
        };
    };
    let from = start + open;
    let end = find_close(&text[from..], close).map(|length| from + length);
    let end = end.unwrap_or_else(|| match open {
        3 => text.len(),
        _ => from + text[from..].find('\n').unwrap_or(text.len() - from),
    });
    blot_between_references(text, from, end, out);
    (end + open).min(text.len())
}

/// The length of the string up to its closing quotes, considering backslashes where they escape.
fn find_close(text: &str, close: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        if escaped {
            escaped = false;
        } else if c == '\\' && close.starts_with('"') {
            escaped = true;
        } else if text[at..].starts_with(close) {
            return Some(at);
        } else if c == '\n' && close.len() == 1 {
            return None;
        }
    }
    None
}

/// Masks the password of `user:password@host` at `at`.
fn blot_password(text: &str, at: usize, out: &mut [u8]) {
    let end = text[at..].find(['"', '\'', '\n', ' ', '/', '?']).map_or(text.len(), |length| at + length);
    let authority = &text[at..end];
    if let Some(host) = authority.rfind('@')
        && let Some(colon) = authority[..host].find(':')
    {
        blot_between_references(text, at + colon + 1, at + host, out);
    }
}

fn blot_between_references(text: &str, from: usize, to: usize, out: &mut [u8]) {
    let mut at = from;
    while let Some(open) = text[at..to].find("${") {
        let Some(close) = text[at + open..to].find('}') else { break };
        blot(&mut out[at..at + open]);
        at += open + close + 1;
    }
    blot(&mut out[at..to]);
}

fn blot(bytes: &mut [u8]) {
    for byte in bytes.iter_mut().filter(|byte| !matches!(**byte, b'\n' | b'\r')) {
        *byte = b'*';
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_are_known_to_be_secret_are_blotted_too() {
        assert_eq!(blot_secrets_of("login = \"abc\"", &["login".to_owned()]), "login = \"***\"");
    }

    #[test]
    fn what_stands_below_a_key_that_holds_secrets_is_blotted_however_it_is_written() {
        for text in [
            "headers = { \"X-Api\" = \"abc\" }",
            "headers.X-Api = \"abc\"",
            "headers.\"X-Api\" = \"abc\" # why",
            "blog = [{ id = \"b\", headers.X-Api = \"abc\" }]",
            "[job.blog.headers]\nX-Api = \"abc\"\n'Other' = 'abc'",
            "[ job . blog . \"headers\" ]\nX-Api = \"abc\"",
        ] {
            let shown = blot_secrets_of(text, &["headers".to_owned()]);
            assert!(!shown.contains("abc"), "{shown}");
        }
        let after = "[job.blog.headers]\n[[job]]\nname = \"abc\"";
        assert_eq!(blot_secrets_of(after, &["headers".to_owned()]), after);
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic_or_move(text in "(token|a)? ?=? ?[\\[{\"'#=,}\\]\\\\\né://:@ ]{0,24}") {
            proptest::prop_assert_eq!(blot_secrets(&text).len(), text.len());
        }
    }

    #[test]
    fn the_address_of_a_blog_is_shown_and_that_of_a_channel_is_not() {
        let keys = ["url".to_owned()];
        for (text, is_shown) in [
            ("[[job]]\nblog = [\n  { id = \"a\", url = \"https://b\" }]", true),
            ("[[job]]\nname = \"x\"\n[[job.blog]]\nurl = \"https://b\"", true),
            ("[store]\nurl = \"sqlite:tsuzuki.db\"", true),
            ("[store]\nurl = \"postgres://a:b@c/d\"", false),
            ("[store]\nurl = \"postgres://a@c/d?password=b\"", false),
            ("[channel.a]\nurl = \"https://b\"", false),
            ("[[job]]\nname = \"x\"\n[channel.a]\nurl = \"https://b\"", false),
            ("url = \"https://b\"", false),
        ] {
            assert_eq!(blot_secrets_of(text, &keys) == text, is_shown, "{text}");
        }
    }

    #[test]
    fn literal_secrets_are_blotted_and_references_are_kept() {
        for (text, shown) in [
            ("api_key = \"sk-1\"", "api_key = \"****\""),
            ("api_key = \"${KEY}\"", "api_key = \"${KEY}\""),
            ("access-token='a\"b' # c", "access-token='***' # c"),
            ("x = { token = \"a\\\"b\", url = \"u\" }", "x = { token = \"****\", url = \"u\" }"),
            ("\"api_key\" = 12345 # why", "\"api_key\" = ***** # why"),
            ("password = \"\"\"a\nb\"\"\"", "password = \"\"\"*\n*\"\"\""),
            ("password = \"open\nnext = 1", "password = \"****\nnext = 1"),
            ("url = \"postgres://u:pw@h/db\"", "url = \"postgres://u:**@h/db\""),
            ("url = \"postgres://u:${PW}@h/db\"", "url = \"postgres://u:${PW}@h/db\""),
            ("url = \"https://example.com/a:b@c\"", "url = \"https://example.com/a:b@c\""),
            ("feed = \"https://example.com/\"", "feed = \"https://example.com/\""),
            ("secret = \"続き\"", "secret = \"******\""),
            ("secret =", "secret ="),
            ("tokens = 500", "tokens = 500"),
            ("token = [\"a\", # b\n 'c']\nd = 1", "token = [\"*\", # b\n '*']\nd = 1"),
            ("token = { x = \"ab\" }\nd = \"e\"", "token = { * = \"**\" }\nd = \"e\""),
            ("token = [\"abc\nd = \"e\"", "token = [\"***\n* = \"*\""),
            ("token = true", "token = true"),
            ("webhook = \"https://hooks.example/T/B\"", "webhook = \"*************************\""),
        ] {
            assert_eq!(blot_secrets(text), shown);
            assert_eq!(blot_secrets(text).len(), text.len());
        }
    }
}
