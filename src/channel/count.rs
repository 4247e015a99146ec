//! The length of a post as Mastodon counts it: graphemes, a fixed length for links, mentions without their server.

use unicode_segmentation::UnicodeSegmentation;

/// The length of a link unless the instance says otherwise.
pub(super) const URL_CHARS: usize = 23;

/// Schemes that Mastodon turns into links.
const SCHEMES: [&str; 9] = ["https", "http", "dat", "dweb", "ipfs", "ipns", "ssb", "gopher", "gemini"];

/// The length of `text` as the server counts it, with `url_chars` for each link.
pub(super) fn count(text: &str, url_chars: usize) -> usize {
    let mut countable = String::with_capacity(text.len());
    let mut before = None;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(length) = link_at(rest, before) {
            countable.extend(std::iter::repeat_n('x', url_chars));
            before = rest[..length].chars().next_back();
            rest = &rest[length..];
            continue;
        }
        if let Some((local, whole)) = mention_at(rest, before) {
            countable.push_str(&rest[..local]);
            before = rest[..whole].chars().next_back();
            rest = &rest[whole..];
            continue;
        }
        countable.push(c);
        before = Some(c);
        rest = &rest[c.len_utf8()..];
    }
    countable.graphemes(true).count()
}

/// The length in bytes of the link that begins here, if one does.
fn link_at(text: &str, before: Option<char>) -> Option<usize> {
    if before.is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '@' | '＠' | '$' | '#' | '＃')) {
        return None;
    }
    let scheme = SCHEMES.iter().find(|scheme| {
        text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
            && text[scheme.len()..].starts_with("://")
    })?;
    let start = scheme.len() + "://".len();
    let host = host_length(&text[start..])?;
    let mut end = start + host;
    if let Some(port) = port_length(&text[end..]) {
        end += port;
    }
    end += path_length(&text[end..]);
    end += query_length(&text[end..]);
    Some(end)
}

/// A host name has at least two labels, and the last one is a word; addresses in numbers are not linked.
fn host_length(text: &str) -> Option<usize> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let whole = &text[..text.find(|c| !is_part(c)).unwrap_or(text.len())];
    let host = whole.trim_end_matches(['.', '-', '_']);
    let (front, top) = host.rsplit_once('.')?;
    let is_word = top.starts_with("xn--") || (top.len() >= 2 && top.bytes().all(|b| b.is_ascii_alphabetic()));
    let is_sound = !front.is_empty() && front.split('.').all(|label| !label.is_empty());
    (is_word && is_sound && !text[host.len()..].starts_with('@')).then_some(host.len())
}

fn port_length(text: &str) -> Option<usize> {
    let digits = text.strip_prefix(':')?.bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0).then_some(digits + 1)
}

fn is_path_char(c: char) -> bool {
    !c.is_whitespace() && !matches!(c, '<' | '>' | '(' | ')' | '?')
}

/// A path may contain nearly anything, but not end in punctuation; parentheses only in pairs.
fn path_length(text: &str) -> usize {
    if !text.starts_with('/') {
        return 0;
    }
    let (mut at, mut end) = (1, 1);
    while let Some(c) = text[at..].chars().next() {
        if c == '(' {
            let Some(length) = balanced_length(&text[at..], 1) else { break };
            at += length;
            end = at;
        } else if is_path_char(c) {
            at += c.len_utf8();
            let ends = "!*\"'「」;:=,.$%[]~&|@".contains(c);
            if !ends {
                end = at;
            }
        } else {
            break;
        }
    }
    end
}

/// A non-empty pair of parentheses, with up to `nested` more levels inside.
fn balanced_length(text: &str, nested: u8) -> Option<usize> {
    let mut at = 1;
    loop {
        let c = text[at..].chars().next()?;
        match c {
            ')' if at > 1 => return Some(at + 1),
            '(' if nested > 0 => at += balanced_length(&text[at..], nested - 1)?,
            c if is_path_char(c) => at += c.len_utf8(),
            _ => return None,
        }
    }
}

fn query_length(text: &str) -> usize {
    if !text.starts_with('?') {
        return 0;
    }
    let is_wide = |c: char| c >= '\u{a0}';
    let (mut at, mut end) = (1, 0);
    for c in text[1..].chars() {
        let may_end = c.is_ascii_alphanumeric() || "_&=#/-".contains(c) || is_wide(c);
        if !may_end && !"!?*'();:+$%[].,~|@^".contains(c) {
            break;
        }
        at += c.len_utf8();
        if may_end {
            end = at;
        }
    }
    end
}

/// The lengths in bytes of a mention's local part and of the whole mention that begins here, if one does.
fn mention_at(text: &str, before: Option<char>) -> Option<(usize, usize)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    if before.is_some_and(|c| is_word(c) || matches!(c, '/' | '=')) {
        return None;
    }
    let name = text.strip_prefix('@')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let user = &name[..name.find(|c| !is_name(c) && c != '.' && c != '-').unwrap_or(name.len())];
    let user = user.trim_end_matches(['.', '-']);
    if user.is_empty() || !user.starts_with(is_name) {
        return None;
    }
    let local = 1 + user.len();
    let mut whole = local;
    if let Some(server) = text[local..].strip_prefix('@') {
        let server = &server[..server.find(|c| !is_word(c) && c != '.' && c != '-').unwrap_or(server.len())];
        let server = server.trim_end_matches(['.', '-']);
        if server.chars().count() >= 2 {
            whole = local + 1 + server.len();
        }
    }
    let after = &text[whole..];
    (!after.starts_with(['@', '＠']) && !after.starts_with("://")).then_some((local, whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected lengths by Mastodon's rules, which `docs/channels.md` lists.
    #[test]
    fn posts_are_counted_as_the_server_does() {
        let long_path = format!("https://example.com/{}", "a".repeat(200));
        for (text, length) in [
            ("", 0),
            ("hello", 5),
            // Full-width text counts like any other.
            ("続きを読む", 5),
            ("ﾊﾝｶｸ", 4),
            // Composed and decomposed letters are one each.
            ("が", 1),
            ("か\u{3099}", 1),
            ("e\u{301}", 1),
            // Emoji with joiners, skin tones, flags and keycaps are one each.
            ("👩‍👩‍👧‍👦", 1),
            ("👍🏽", 1),
            ("🇯🇵🇯🇵", 2),
            ("1️⃣", 1),
            ("🏴󠁧󠁢󠁥󠁮󠁧󠁿", 1),
            // Line ends count one, also when they are two characters.
            ("a\nb", 3),
            ("a\r\nb", 3),
            // Links have one price.
            ("https://example.com", 23),
            ("http://a.jp", 23),
            ("HTTPS://EXAMPLE.COM/X", 23),
            (&long_path, 23),
            ("https://example.com/a https://example.com/b", 47),
            ("https://example.com:8080/a?b=c#d", 23),
            ("https://xn--wgv71a119e.jp/", 23),
            // What follows a link is not part of it; what follows a path may be.
            ("https://example.jpです", 25),
            ("https://example.jp/ページ", 23),
            ("https://example.com/a.", 24),
            ("https://example.com/a), b", 27),
            ("(https://example.com/a)", 25),
            ("https://example.com/a_(b)", 23),
            ("https://example.com/a_(b", 25),
            ("https://example.com/?q=1.", 24),
            ("「https://example.com/a」", 25),
            // These are not links, so every character counts.
            ("example.com/abcdefghijklmnop", 28),
            ("https://localhost/a", 19),
            ("http://127.0.0.1/a", 18),
            ("xhttps://example.com", 20),
            ("https:\u{200b}//example.com", 20),
            ("ftp://example.com/aaaaaaaaaaaaaa", 32),
            // Only the front part of a mention counts.
            ("@alice", 6),
            ("@alice@example.com", 6),
            ("@alice@example.com さん", 9),
            ("hi @alice@a.example.com!", 10),
            ("mail alice@example.com", 22),
            ("https://example.com/@alice", 23),
            ("です@alice@example.com", 20),
            ("@@", 2),
        ] {
            assert_eq!(count(text, URL_CHARS), length, "{text:?}");
        }
        assert_eq!(count("see https://example.com", 30), 34, "the instance may have another price");
    }
}
