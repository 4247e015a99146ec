//! Finds where objects and streams begin and end in the bytes of a file.

use super::lexer::is_space;
use super::object::ObjectId;

/// The numbers in `N G obj`, for `obj` at `at`.
pub(super) fn source_before(bytes: &[u8], at: usize) -> Option<ObjectId> {
    let before = |from: usize, fits: fn(u8) -> bool| {
        let least = from.saturating_sub(12);
        (least..from).rev().take_while(|at| fits(bytes[*at])).last().unwrap_or(from)
    };
    let digits = |byte: u8| byte.is_ascii_digit();
    let generation_end = before(at, is_space);
    let generation = before(generation_end, digits);
    let number_end = before(generation, is_space);
    let number = before(number_end, digits);
    if generation == generation_end || number_end == generation || number == number_end {
        return None;
    }
    let read = |from: usize, to: usize| std::str::from_utf8(&bytes[from..to]).ok()?.parse().ok();
    Some(ObjectId {
        number: read(number, number_end)?,
        generation: read(generation, generation_end).unwrap_or(0),
    })
}

/// Whether a dictionary ends before `at`.
pub(super) fn follows_dict(bytes: &[u8], at: usize) -> bool {
    let start = at.saturating_sub(32);
    bytes[start..at].trim_ascii_end().ends_with(b">>")
}

/// The start of the data after the keyword `stream` at `at`.
pub(super) fn data_start(bytes: &[u8], at: usize) -> usize {
    let from = (at + 6).min(bytes.len());
    match bytes[from..] {
        [b'\r', b'\n', ..] => from + 2,
        [b'\r' | b'\n', ..] => from + 1,
        [b' ', b'\r', b'\n', ..] => from + 3,
        [b' ', b'\n', ..] => from + 2,
        _ => from,
    }
}

/// The end of the data by `length`, if `endstream` follows.
pub(super) fn end_by_length(bytes: &[u8], from: usize, length: Option<usize>) -> Option<usize> {
    let to = from.checked_add(length?).filter(|to| *to <= bytes.len())?;
    let after = &bytes[to..bytes.len().min(to + 16)];
    after.trim_ascii_start().starts_with(b"endstream").then_some(to)
}

/// `to` without the line break before `endstream`.
pub(super) fn trim_end(bytes: &[u8], from: usize, to: usize) -> usize {
    match &bytes[from..to] {
        [.., b'\r', b'\n'] => to - 2,
        [.., b'\r' | b'\n'] => to - 1,
        _ => to,
    }
}

/// The position of `wanted` at or after `from`.
pub(super) fn find(bytes: &[u8], from: usize, wanted: &[u8]) -> Option<usize> {
    memchr::memmem::find(bytes.get(from..)?, wanted).map(|at| from + at)
}
