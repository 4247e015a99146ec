//! Normalises dates in any script.

use super::zone;

/// Lower case, ASCII digits and hyphens, no remarks in brackets; East Asian units become separators. The second value
/// is the offset that such a local form implies.
pub(super) fn read(text: &str) -> (String, Option<i64>) {
    if text.is_ascii() && !text.contains(['(', '[']) && !text.starts_with(['R', 'r', 'H', 'h', 'S', 's']) {
        return (text.to_ascii_lowercase(), None);
    }
    let mut local = None;
    let mut out = String::with_capacity(text.len());
    let lower = text.to_lowercase();
    let text = zone::western_year(&lower);
    if text.chars().any(|c| matches!(c, '년' | '월' | '오')) {
        local = Some(9 * 3600);
    } else if text.contains('年') || text.contains('月') {
        let is_chinese = text.contains('时') || text.contains("上午") || text.contains("下午");
        local = Some(if is_chinese { 8 } else { 9 } * 3600);
    }
    let mut rest = text.as_ref();
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '（' | '(' | '[' => {
                // A remark such as (JST) or (木) is redundant; without a time before it nothing is lost.
                let close = rest.find(['）', ')', ']']).unwrap_or(rest.len());
                rest = rest[close..].trim_start_matches(['）', ')', ']']);
                out.push(' ');
            }
            '０'..='９' => out.push(char::from(b'0' + (c as u32 - '０' as u32) as u8)),
            '−' | '–' | '—' | '‐' | '‑' | '－' => out.push('-'),
            '：' => out.push(':'),
            '／' => out.push('/'),
            '＋' => out.push('+'),
            '．' => out.push('.'),
            '年' | '년' | '月' | '월' => out.push('-'),
            '時' | '时' | '시' | '点' | '點' => out.push(':'),
            '分' | '분' => out.push(':'),
            '日' | '일' | '秒' | '초' | '\u{a0}' | '\u{3000}' | '\u{202f}' => out.push(' '),
            '午' if rest.starts_with('前') => rest = meridiem(rest, &mut out, " am "),
            '午' if rest.starts_with(['後', '后']) => rest = meridiem(rest, &mut out, " pm "),
            '上' if rest.starts_with('午') => rest = meridiem(rest, &mut out, " am "),
            '下' if rest.starts_with('午') => rest = meridiem(rest, &mut out, " pm "),
            '오' if rest.starts_with('전') => rest = meridiem(rest, &mut out, " am "),
            '오' if rest.starts_with('후') => rest = meridiem(rest, &mut out, " pm "),
            _ => out.push(c),
        }
    }
    if local.is_some() {
        out = tidy_units(&out);
    }
    (out, local)
}

fn meridiem<'a>(rest: &'a str, out: &mut String, word: &str) -> &'a str {
    out.push_str(word);
    &rest[rest.chars().next().map_or(0, char::len_utf8)..]
}

/// `2004- 05- 28  01:31:` becomes `2004-05-28 01:31`: units leave extra spaces and separators.
fn tidy_units(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() && !out.ends_with(['-', ':']) {
            out.push(' ');
        }
        out.push_str(word);
    }
    let end = out.trim_end_matches([':', '-', ' ']).len();
    out.truncate(end);
    // `01:31: pm` has an extra colon; `9:` alone is an hour.
    if out
        .rsplit(' ')
        .next()
        .is_some_and(|last| last.len() <= 2 && !last.is_empty() && last.bytes().all(|b| b.is_ascii_digit()))
        && out.contains(' ')
    {
        out.push_str(":00");
    }
    out
}
