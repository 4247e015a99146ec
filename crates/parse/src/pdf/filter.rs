//! Decodes streams up to a size limit.

use flate2::{Decompress, FlushDecompress, Status};
use weezl::decode::Decoder;
use weezl::{BitOrder, LzwStatus};

use super::budget::WorkBudget;
use super::lexer::is_space;
use super::predictor::{self, RowLayout};

/// The most filters on one stream.
const MAX_FILTERS: usize = 6;
/// The cost of one pass besides the bytes.
const OVERHEAD: usize = 500;

/// One step of decoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filter {
    Flate,
    Lzw { early: bool },
    Hex,
    Base85,
    RunLength,
}

impl Filter {
    /// The filter of that name; `None` for images, encryption and unknown ones.
    pub(super) fn by_name(name: &[u8], early: bool) -> Option<Self> {
        Some(match name {
            b"FlateDecode" | b"Fl" => Filter::Flate,
            b"LZWDecode" | b"LZW" => Filter::Lzw { early },
            b"ASCIIHexDecode" | b"AHx" => Filter::Hex,
            b"ASCII85Decode" | b"A85" => Filter::Base85,
            b"RunLengthDecode" | b"RL" => Filter::RunLength,
            _ => return None,
        })
    }
}

/// A decoded stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Decoded {
    pub(super) bytes: Vec<u8>,
    /// Whether it was cut at the limit.
    pub(super) is_cut: bool,
}

/// Applies `filters` in order, each followed by its predictor, if any.
///
/// Every pass costs budget, even if it fails.
pub(super) fn decode(
    raw: &[u8],
    filters: &[(Filter, Option<RowLayout>)],
    budget: &WorkBudget,
) -> Option<Decoded> {
    let limit = budget.stream_limit();
    if limit == 0 {
        budget.mark_cut();
        return None;
    }
    if filters.len() > MAX_FILTERS {
        return None;
    }
    let mut decoded = Decoded { bytes: Vec::new(), is_cut: false };
    for (number, (filter, shape)) in filters.iter().enumerate() {
        let input = if number == 0 { raw } else { &decoded.bytes };
        let (bytes, is_cut) = match filter {
            Filter::Flate => inflate(input, limit, budget)?,
            Filter::Lzw { early } => paid(input, budget, |input| unlzw(input, *early, limit))?,
            Filter::Hex => paid(input, budget, |input| unhex(input, limit))?,
            Filter::Base85 => paid(input, budget, |input| base85(input, limit))?,
            Filter::RunLength => paid(input, budget, |input| run_length(input, limit))?,
        };
        let bytes = match shape {
            Some(shape) => {
                budget.spend(bytes.len())?;
                predictor::undo(&bytes, shape)?
            }
            None => bytes,
        };
        decoded = Decoded { bytes, is_cut: decoded.is_cut || is_cut };
    }
    if filters.is_empty() {
        decoded.bytes.extend_from_slice(&raw[..raw.len().min(limit)]);
        decoded.is_cut = raw.len() > limit;
        budget.decoded(decoded.bytes.len() + decoded.bytes.len() / 8)?;
    }
    if decoded.is_cut {
        budget.mark_cut();
    }
    Some(decoded)
}

/// A pass over `input`, charged by its input and output.
fn paid(
    input: &[u8],
    budget: &WorkBudget,
    pass: impl FnOnce(&[u8]) -> (Vec<u8>, bool),
) -> Option<(Vec<u8>, bool)> {
    budget.spend(OVERHEAD)?;
    let found = pass(input);
    budget.decoded(found.0.len() + input.len() / 8)?;
    Some(found)
}

/// Inflates as much as possible: broken or truncated data is decoded up to the error.
fn inflate(input: &[u8], limit: usize, budget: &WorkBudget) -> Option<(Vec<u8>, bool)> {
    let zlib = paid(input, budget, |input| inflate_as(input, true, limit))?;
    if !zlib.0.is_empty() {
        return Some(zlib);
    }
    // The header may be missing or wrong, and the data valid.
    let bare = paid(input, budget, |input| inflate_as(input, false, limit))?;
    if !bare.0.is_empty() {
        return Some(bare);
    }
    paid(input.get(2..).unwrap_or_default(), budget, |input| inflate_as(input, false, limit))
}

fn inflate_as(input: &[u8], has_header: bool, limit: usize) -> (Vec<u8>, bool) {
    let mut state = Decompress::new(has_header);
    let mut out: Vec<u8> = Vec::new();
    let mut buffer = vec![0; 32 * 1024];
    loop {
        let (read, written) = (state.total_in(), state.total_out());
        let rest = usize::try_from(read).ok().and_then(|read| input.get(read..)).unwrap_or_default();
        let status = state.decompress(rest, &mut buffer, FlushDecompress::None);
        let count = usize::try_from(state.total_out() - written).unwrap_or(0).min(buffer.len());
        let fits = count.min(limit - out.len());
        out.extend_from_slice(&buffer[..fits]);
        if fits < count {
            return (out, true);
        }
        let is_stuck = count == 0 && state.total_in() == read;
        if is_stuck || !matches!(status, Ok(Status::Ok | Status::BufError)) {
            return (out, false);
        }
    }
}

/// `early`: codes grow one code earlier than necessary, as most writers do. Broken data is decoded up to the error.
fn unlzw(mut input: &[u8], early: bool, limit: usize) -> (Vec<u8>, bool) {
    let mut decoder =
        if early { Decoder::with_tiff_size_switch(BitOrder::Msb, 8) } else { Decoder::new(BitOrder::Msb, 8) };
    let mut out = Vec::new();
    let mut buffer = vec![0; 32 * 1024];
    loop {
        let step = decoder.decode_bytes(input, &mut buffer);
        input = &input[step.consumed_in..];
        let fits = step.consumed_out.min(limit - out.len());
        out.extend_from_slice(&buffer[..fits]);
        if fits < step.consumed_out {
            return (out, true);
        }
        if !matches!(step.status, Ok(LzwStatus::Ok)) {
            return (out, false);
        }
    }
}

fn unhex(input: &[u8], limit: usize) -> (Vec<u8>, bool) {
    let mut digits = input
        .iter()
        .take_while(|byte| **byte != b'>')
        .filter_map(|byte| (*byte as char).to_digit(16).map(|digit| digit as u8));
    let mut out = Vec::new();
    while let Some(high) = digits.next() {
        if out.len() == limit {
            return (out, true);
        }
        out.push(high << 4 | digits.next().unwrap_or(0));
    }
    (out, false)
}

fn base85(input: &[u8], limit: usize) -> (Vec<u8>, bool) {
    let mut out = Vec::new();
    let mut group = [b'u' - b'!'; 5];
    let mut count = 0;
    let input = input.strip_prefix(b"<~").unwrap_or(input);
    for byte in input.iter().copied().filter(|byte| !is_space(*byte)) {
        match byte {
            b'z' if count == 0 => out.extend_from_slice(&[0; 4]),
            b'!'..=b'u' => {
                group[count] = byte - b'!';
                count += 1;
                if count == 5 {
                    out.extend_from_slice(&word85(&group));
                    count = 0;
                }
            }
            _ => break,
        }
        if out.len() > limit {
            out.truncate(limit);
            return (out, true);
        }
    }
    if count > 1 {
        group[count..].fill(b'u' - b'!');
        out.extend_from_slice(&word85(&group)[..count - 1]);
    }
    let is_cut = out.len() > limit;
    out.truncate(limit);
    (out, is_cut)
}

fn word85(group: &[u8; 5]) -> [u8; 4] {
    group
        .iter()
        .fold(0_u32, |word, digit| word.wrapping_mul(85).wrapping_add(u32::from(*digit)))
        .to_be_bytes()
}

fn run_length(mut input: &[u8], limit: usize) -> (Vec<u8>, bool) {
    let mut out = Vec::new();
    while let Some((&length, rest)) = input.split_first() {
        let length = usize::from(length);
        match length {
            0..128 => {
                let count = (length + 1).min(rest.len());
                out.extend_from_slice(&rest[..count]);
                input = &rest[count..];
            }
            128 => break,
            _ => {
                let Some((&byte, rest)) = rest.split_first() else { break };
                out.resize(out.len() + 257 - length, byte);
                input = rest;
            }
        }
        if out.len() > limit {
            out.truncate(limit);
            return (out, true);
        }
    }
    (out, false)
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, ZlibEncoder};
    use proptest::prelude::*;
    use weezl::encode::Encoder;

    use super::*;

    pub(crate) fn lzw(data: &[u8], early: bool) -> Vec<u8> {
        let mut encoder = if early {
            Encoder::with_tiff_size_switch(BitOrder::Msb, 8)
        } else {
            Encoder::new(BitOrder::Msb, 8)
        };
        encoder.encode(data).unwrap()
    }

    fn through(filter: Filter, raw: &[u8]) -> Vec<u8> {
        decode(raw, &[(filter, None)], &budget_of(1 << 20)).unwrap().bytes
    }

    fn budget_of(bytes: usize) -> WorkBudget {
        WorkBudget::new(u64::MAX, bytes)
    }

    fn zlib(data: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn written_out_filters_decode() {
        assert_eq!(through(Filter::Hex, b"48 65 6C 6c 6F 2>zz"), b"Hello ");
        assert_eq!(through(Filter::Base85, b"<~87cURD]i,\"Ebo80~>"), b"Hello World!");
        assert_eq!(through(Filter::Base85, b"z87cUR~>"), b"\0\0\0\0Hell");
        assert_eq!(through(Filter::RunLength, &[2, b'a', b'b', b'c', 254, b'x', 128, 9]), b"abcxxx");
    }

    #[test]
    fn lzw_decodes_whatever_the_moment_of_growing_and_survives_a_cut() {
        // An example of the specification.
        let encoded = [0x80, 0x0B, 0x60, 0x50, 0x22, 0x0C, 0x0C, 0x85, 0x01];
        assert_eq!(through(Filter::Lzw { early: true }, &encoded), b"-----A---B");
        let data: Vec<u8> = (0..60_000_u32).map(|n| (n * n / 97 % 23) as u8).collect();
        for early in [true, false] {
            let filter = Filter::Lzw { early };
            let encoded = lzw(&data, early);
            assert!(through(filter, &encoded) == data, "early: {early}");
            let cut = through(filter, &encoded[..encoded.len() / 2]);
            assert!(cut.len() > data.len() / 3 && data.starts_with(&cut), "early: {early}");
            let mut broken = encoded.clone();
            broken[encoded.len() / 2..].fill(0xFF);
            let found = through(filter, &broken);
            assert!(found.len() > data.len() / 3, "early: {early}");
        }
    }

    #[test]
    fn deflate_survives_a_wrong_header_and_a_cut() {
        let data: Vec<u8> = (0..20_000_u32).flat_map(|n| (n * n).to_le_bytes()).collect();
        let whole = zlib(&data);
        assert_eq!(through(Filter::Flate, &whole), data);
        let cut = through(Filter::Flate, &whole[..whole.len() / 2]);
        assert!(cut.len() > data.len() / 3 && data.starts_with(&cut));
        let mut wrong = whole.clone();
        wrong[0] = 0;
        assert_eq!(through(Filter::Flate, &wrong), data);
        let mut bare = DeflateEncoder::new(Vec::new(), Compression::fast());
        bare.write_all(&data).unwrap();
        assert_eq!(through(Filter::Flate, &bare.finish().unwrap()), data);
    }

    #[test]
    fn no_filter_gives_more_than_there_is_room_for() {
        let bomb = zlib(&zlib(&vec![0; 50_000_000]));
        assert!(bomb.len() < 1000, "{}", bomb.len());
        let twice = [(Filter::Flate, None), (Filter::Flate, None)];
        let found = decode(&bomb, &twice, &budget_of(100_000)).unwrap();
        assert_eq!((found.bytes.len(), found.is_cut), (100_000, true));
        for (filter, raw) in [
            (Filter::Lzw { early: true }, lzw(&[0; 1000], true)),
            (Filter::Hex, b"00".repeat(1000)),
            (Filter::Base85, b"z".repeat(1000)),
            (Filter::RunLength, [129, 0].repeat(1000)),
        ] {
            let found = decode(&raw, &[(filter, None)], &budget_of(100)).unwrap();
            assert_eq!((found.bytes.len(), found.is_cut), (100, true), "{filter:?}");
        }
        assert_eq!(decode(b"", &[(Filter::Hex, None); 7], &budget_of(100)), None);
    }

    #[test]
    fn what_leads_to_nothing_is_paid_for_too() {
        let senseless = RowLayout { predictor: 12, colors: 1, bits: 8, columns: 0 };
        let zeros = zlib(&vec![0; 1_000_000]);
        let ends_at_once = zlib(&zlib(&[b'>'; 1_000_000]));
        let twice = [(Filter::Flate, None), (Filter::Flate, None), (Filter::Hex, None)];
        for (raw, filters) in [(zeros, &[(Filter::Flate, Some(senseless))][..]), (ends_at_once, &twice)] {
            let budget = WorkBudget::new(100_000_000, 10_000_000);
            let found = decode(&raw, filters, &budget).map_or(0, |found| found.bytes.len());
            assert_eq!(found, 0);
            assert!(budget.stream_limit() < 9_001_000, "{filters:?}: {}", budget.stream_limit());
        }
        // Broken from its first byte on: three attempts.
        let budget = WorkBudget::new(100_000_000, 10_000_000);
        decode(&[0xFF; 800_000], &[(Filter::Flate, None)], &budget).unwrap();
        assert!(budget.stream_limit() < 9_701_000, "{}", budget.stream_limit());
    }

    proptest! {
        #[test]
        fn any_bytes_decode_to_something_within_bounds(raw: Vec<u8>, most in 1_usize..300) {
            for filter in [Filter::Flate, Filter::Lzw { early: true }, Filter::Lzw { early: false }, Filter::Hex, Filter::Base85, Filter::RunLength] {
                let found = decode(&raw, &[(filter, None)], &budget_of(most)).unwrap();
                prop_assert!(found.bytes.len() <= most, "{:?}", filter);
            }
        }
    }
}
