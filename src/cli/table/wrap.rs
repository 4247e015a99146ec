//! Wraps lines: between words, and in Japanese by its typesetting rules.

use tsuzuki::text::{shorten, width};

/// Characters that must not begin a line in Japanese: closing brackets, punctuation and small letters.
const NEVER_FIRST: &str = "、。，．・：；！？）」』】］｝〉》ー…々ぁぃぅぇぉっゃゅょァィゥェォッャュョ";
/// Characters that must not end one.
const NEVER_LAST: &str = "（「『【［｛〈《";

/// Wraps a line of prose to at most `room` columns: continuation lines are indented to the text after the label.
/// Commands, addresses and paths stay whole, because people copy them.
pub(in crate::cli) fn wrap_line(line: &str, room: usize) -> Vec<String> {
    let text = line.trim_start();
    if width(line) <= room || text.starts_with("tsuzuki ") {
        return vec![line.to_owned()];
    }
    let indent = line.len() - text.len();
    let gap = ["  ", "\u{3000}"].into_iter().filter_map(|gap| text.find(gap)).min().unwrap_or(0);
    let behind = indent + text.len() - text[gap..].trim_start().len();
    // A label that leaves too little room is treated as text.
    let (label, text) = line.split_at(if width(&line[..behind]) > room / 2 { indent } else { behind });
    let is_copied = |word: &str| word.contains("://") || (word.is_ascii() && word.contains('/'));
    let pieces = wrap_but(text, room - width(label), is_copied);
    let lines = pieces.iter().enumerate().map(|(number, piece)| match number {
        0 => format!("{label}{piece}"),
        _ => format!("{}{piece}", " ".repeat(width(label))),
    });
    lines.collect()
}

/// Wraps `text` to at most `room` columns, between words if possible.
pub(super) fn wrap(text: &str, room: usize) -> Vec<String> {
    wrap_but(text, room, |_| false)
}

/// The same; words for which `is_whole` is true are not cut, even if they are longer.
fn wrap_but(text: &str, room: usize, is_whole: impl Fn(&str) -> bool) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for word in text.split_inclusive([' ', '、', '。', '：']) {
        let mut rest = word;
        if width(pieces.last().expect("never empty")) + width(word.trim_end()) > room {
            pieces.push(String::new());
        }
        while width(rest.trim_end()) > room && !is_whole(rest) {
            let cut = shorten(rest, room);
            let end = find_break(rest, cut.trim_end_matches('…').len());
            // A grapheme wider than the room gets a line of its own.
            if end == 0 {
                break;
            }
            pieces.last_mut().expect("never empty").push_str(&rest[..end]);
            rest = &rest[end..];
            pieces.push(String::new());
        }
        pieces.last_mut().expect("never empty").push_str(rest);
    }
    pieces.iter().map(|piece| piece.trim_end().to_owned()).filter(|piece| !piece.is_empty()).collect()
}

/// The last position up to `end` where `text` may break; `end` itself if there is none.
fn find_break(text: &str, end: usize) -> usize {
    let may_break = |at: &usize| {
        let before = text[..*at].chars().next_back();
        let after = text[*at..].chars().next();
        !before.is_some_and(|c| NEVER_LAST.contains(c)) && !after.is_some_and(|c| NEVER_FIRST.contains(c))
    };
    (1..=end).rev().filter(|at| text.is_char_boundary(*at)).find(may_break).unwrap_or(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_wrapped_between_words_and_inside_of_those_that_are_too_long() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefghij k", 4), ["abc", "def", "ghij", "k"]);
        assert_eq!(wrap("日本語の文", 5), ["日本", "語の", "文"]);
    }

    #[test]
    fn what_people_copy_stays_whole_in_prose() {
        let path = "/var/lib/tsuzuki/tsuzuki.db";
        assert_eq!(wrap_line(&format!("no file {path} here"), 12), ["no file", path, "here"]);
        assert_eq!(wrap_line("the-longest-word-of-all", 12), ["the-longest", "-word-of-all"]);
    }

    #[test]
    fn a_line_of_japanese_begins_with_no_small_letter_and_ends_with_no_opening_bracket() {
        assert_eq!(wrap("デモ用サーバーを使う", 10), ["デモ用", "サーバー", "を使う"]);
        assert_eq!(wrap("いまの状態（完了）", 13), ["いまの状態", "（完了）"]);
        assert_eq!(wrap("ーーーーー", 5), ["ーー", "ーー", "ー"], "where nothing else is left");
    }
}
