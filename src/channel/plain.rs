//! Text from outside, made inert for a post: no mentions, links or tags.

use crate::parse::url::scheme_before;

/// Invisible character put between the parts of a link or a mention.
const SPLITTER: char = '\u{200b}';

/// `text` without control characters and with links, mentions and hashtags made inert; lines are kept.
pub(super) fn inert(text: &str) -> String {
    let clean: String = text
        .replace("\r\n", "\n")
        .chars()
        .filter(|c| *c == '\n' || !(c.is_control() || is_invisible(*c)))
        .collect();
    let mut out = String::with_capacity(clean.len());
    let mut before: Option<char> = None;
    let mut chars = clean.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        out.push(c);
        let next = chars.peek().map(|(_, next)| *next);
        let is_inside_word = before.is_some_and(|c| c.is_ascii_alphanumeric());
        let splits = match c {
            // To Mastodon, joiners, combining marks and variation selectors are parts of words, so any next character
            // counts.
            '@' | '＠' | '#' | '＃' => !is_inside_word && next.is_some_and(|next| !next.is_whitespace()),
            ':' => scheme_before(&clean, at).is_some(),
            _ => false,
        };
        if splits {
            out.push(SPLITTER);
        }
        before = Some(c);
    }
    out
}

/// The same on one line.
pub(super) fn inert_line(text: &str) -> String {
    inert(&crate::text::one_line(text))
}

/// A hashtag of `text` that is one word and not a number, without `#`.
pub(super) fn hashtag(text: &str) -> Option<String> {
    let word: String = text.chars().filter(|c| is_word(*c)).collect();
    word.chars().any(|c| !c.is_numeric() && c != '_').then_some(word)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Characters that hide between letters or change the direction of a line.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}' | '\u{2060}' | '\u{feff}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_mentions_and_hashtags_from_outside_are_inert() {
        for (text, shown) in [
            ("買ってね https://evil.example/x", "買ってね https:\u{200b}//evil.example/x"),
            ("hthttps://tps://evil.example", "hthttps:\u{200b}//tps:\u{200b}//evil.example"),
            ("ask @admin now", "ask @\u{200b}admin now"),
            ("@admin@evil.example", "@\u{200b}admin@evil.example"),
            ("#spam ＃スパム", "#\u{200b}spam ＃\u{200b}スパム"),
            ("a@b.example と C# と 10:30", "a@b.example と C# と 10:30"),
            (
                "#\u{fe0f}spam #\u{200d}spam ＃\u{301}spam",
                "#\u{200b}\u{fe0f}spam #\u{200b}\u{200d}spam ＃\u{200b}\u{301}spam",
            ),
            ("e\u{301}#spam @\u{200d}admin", "e\u{301}#\u{200b}spam @\u{200b}\u{200d}admin"),
            (
                "題 xmpp:a@host と XMPP:\u{fe0f}a@host",
                "題 xmpp:\u{200b}a@host と XMPP:\u{200b}\u{fe0f}a@host",
            ),
            ("# 見出し", "# 見出し"),
            ("magnet:?xt=1", "magnet:\u{200b}?xt=1"),
            ("一行目\r\n二行目\u{202e}\0", "一行目\n二行目"),
            ("@\u{200b}\u{200b}admin", "@\u{200b}admin"),
        ] {
            assert_eq!(inert(text), shown, "{text:?}");
        }
    }

    #[test]
    fn hashtags_are_words() {
        assert_eq!(hashtag("総務省 報道").as_deref(), Some("総務省報道"));
        assert_eq!(hashtag("#a-b").as_deref(), Some("ab"));
        assert_eq!(hashtag("2026"), None);
        assert_eq!(hashtag("@!"), None);
    }
}
