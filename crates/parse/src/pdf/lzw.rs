//! LZW as PDF writes it: codes of 9 to 12 bits, the highest bit first.

const CLEAR: usize = 256;
const END: usize = 257;
const CODES: usize = 4096;

/// Decodes at most `room` bytes, and says whether there were more.
///
/// `early`: codes grow one code earlier than they must, as most writers do.
pub(super) fn decode(input: &[u8], early: bool, room: usize) -> (Vec<u8>, bool) {
    // An entry is the place of its text in what was written: the text of the code before, and one byte more.
    let mut entries: Vec<(usize, usize)> = Vec::with_capacity(CODES);
    let mut out: Vec<u8> = Vec::new();
    let mut last: Option<(usize, usize)> = None;
    let mut bits = Bits { input, at: 0 };
    let mut width = 9;
    while let Some(code) = bits.take(width) {
        match code {
            CLEAR => {
                entries.clear();
                last = None;
                width = 9;
                continue;
            }
            END => break,
            _ => {}
        }
        let from = out.len();
        let length = match code.checked_sub(258) {
            None => {
                out.push(code as u8);
                1
            }
            Some(number) if number < entries.len() => copy(&mut out, entries[number], room),
            // The code that is being defined right now: the last text and its first byte.
            Some(number) => match last {
                Some((start, length)) if number == entries.len() => copy(&mut out, (start, length + 1), room),
                _ => break,
            },
        };
        if out.len() > room {
            out.truncate(room);
            return (out, true);
        }
        if let Some((start, length)) = last
            && entries.len() < CODES - 258
        {
            entries.push((start, length + 1));
        }
        last = Some((from, length));
        width = match 258 + entries.len() + usize::from(last.is_some()) - usize::from(!early) {
            0..512 => 9,
            512..1024 => 10,
            1024..2048 => 11,
            _ => 12,
        };
    }
    (out, false)
}

/// Appends a part of what was written, which may reach into what is being appended.
fn copy(out: &mut Vec<u8>, (start, length): (usize, usize), room: usize) -> usize {
    for at in start..start + length {
        if out.len() > room {
            break;
        }
        let byte = out.get(at).copied().unwrap_or(0);
        out.push(byte);
    }
    length
}

struct Bits<'a> {
    input: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn take(&mut self, width: usize) -> Option<usize> {
        if self.at + width > self.input.len() * 8 {
            return None;
        }
        let mut code = 0;
        for bit in self.at..self.at + width {
            code = code << 1 | usize::from(self.input[bit / 8] >> (7 - bit % 8) & 1);
        }
        self.at += width;
        Some(code)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::HashMap;

    use super::*;

    /// The encoder that the decoder is held against.
    pub(crate) fn encode(data: &[u8], early: bool) -> Vec<u8> {
        let mut out = Vec::new();
        let (mut held, mut count) = (0_u64, 0);
        let mut put = |code: usize, width: usize, is_last: bool| {
            held = held << width | code as u64;
            count += width;
            while count >= 8 {
                out.push((held >> (count - 8)) as u8);
                count -= 8;
            }
            if is_last && count > 0 {
                out.push((held << (8 - count)) as u8);
            }
        };
        let mut table: HashMap<Vec<u8>, usize> = HashMap::new();
        let (mut next, mut width) = (258, 9);
        put(CLEAR, width, false);
        let mut text: Vec<u8> = Vec::new();
        let code_of = |table: &HashMap<Vec<u8>, usize>, text: &[u8]| match text {
            [byte] => usize::from(*byte),
            _ => table[text],
        };
        for byte in data {
            let longer = [&text[..], &[*byte]].concat();
            if longer.len() == 1 || table.contains_key(&longer) {
                text = longer;
                continue;
            }
            put(code_of(&table, &text), width, false);
            table.insert(longer, next);
            next += 1;
            let grows_at = next + usize::from(early);
            width = if grows_at > 2048 {
                12
            } else if grows_at > 1024 {
                11
            } else if grows_at > 512 {
                10
            } else {
                9
            };
            if next == CODES - 1 {
                put(CLEAR, width, false);
                table.clear();
                (next, width) = (258, 9);
            }
            text = vec![*byte];
        }
        if !text.is_empty() {
            put(code_of(&table, &text), width, false);
            next += 1;
            let grows_at = next + usize::from(early);
            width = if grows_at > 2048 {
                12
            } else if grows_at > 1024 {
                11
            } else if grows_at > 512 {
                10
            } else {
                9
            };
        }
        put(END, width, true);
        out
    }

    #[test]
    fn the_example_of_the_specification_decodes() {
        let encoded = [0x80, 0x0B, 0x60, 0x50, 0x22, 0x0C, 0x0C, 0x85, 0x01];
        assert_eq!(decode(&encoded, true, 100).0, [45, 45, 45, 45, 45, 65, 45, 45, 45, 66]);
    }

    #[test]
    fn long_texts_come_back_whatever_the_moment_of_growing() {
        let data: Vec<u8> = (0..60_000_u32).map(|n| (n * n / 97 % 23) as u8).collect();
        for early in [true, false] {
            let encoded = encode(&data, early);
            assert!(decode(&encoded, early, 1 << 20).0 == data, "early: {early}");
        }
        let cut = decode(&encode(&data, true), true, 1000);
        assert_eq!((cut.0.len(), cut.1), (1000, true));
    }
}
