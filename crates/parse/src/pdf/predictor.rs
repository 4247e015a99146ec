//! Undoes the predictors of Flate and LZW streams: rows stored as differences to their neighbours.

/// The most bytes of one row.
const MAX_ROW: usize = 1 << 20;

/// The layout of rows in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowLayout {
    pub(super) predictor: usize,
    pub(super) colors: usize,
    pub(super) bits: usize,
    pub(super) columns: usize,
}

/// The original bytes; `None` if the layout is invalid.
pub(super) fn undo(bytes: &[u8], shape: &RowLayout) -> Option<Vec<u8>> {
    if shape.predictor < 2 {
        return Some(bytes.to_vec());
    }
    let pixel_bits = shape.colors.checked_mul(shape.bits)?;
    let row = pixel_bits.checked_mul(shape.columns)?.div_ceil(8);
    let pixel = pixel_bits.div_ceil(8);
    if row == 0 || row > MAX_ROW || pixel == 0 {
        return None;
    }
    // A row need not be larger than the data.
    let row = row.min(bytes.len().max(1));
    match shape.predictor {
        2 if shape.bits == 8 => Some(undo_tiff(bytes, row, pixel)),
        2 => None,
        _ => Some(undo_png(bytes, row, pixel)),
    }
}

fn undo_tiff(bytes: &[u8], row: usize, pixel: usize) -> Vec<u8> {
    let mut out = bytes.to_vec();
    for row in out.chunks_mut(row) {
        for at in pixel..row.len() {
            row[at] = row[at].wrapping_add(row[at - pixel]);
        }
    }
    out
}

fn undo_png(bytes: &[u8], row: usize, pixel: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut above = vec![0; row];
    let mut current = vec![0; row];
    for line in bytes.chunks(row + 1) {
        let Some((&kind, line)) = line.split_first() else { break };
        current.fill(0);
        for (at, byte) in line.iter().enumerate() {
            let (left, corner) = match at.checked_sub(pixel) {
                Some(before) => (current[before], above[before]),
                None => (0, 0),
            };
            let guess = match kind {
                1 => left,
                2 => above[at],
                3 => ((u16::from(left) + u16::from(above[at])) / 2) as u8,
                4 => paeth(left, above[at], corner),
                _ => 0,
            };
            current[at] = byte.wrapping_add(guess);
        }
        out.extend_from_slice(&current[..line.len()]);
        std::mem::swap(&mut above, &mut current);
    }
    out
}

fn paeth(left: u8, above: u8, corner: u8) -> u8 {
    let [a, b, c] = [left, above, corner].map(i16::from);
    let (to_left, to_above, to_corner) = ((b - c).abs(), (a - c).abs(), (a + b - 2 * c).abs());
    if to_left <= to_above && to_left <= to_corner {
        left
    } else if to_above <= to_corner {
        above
    } else {
        corner
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: RowLayout = RowLayout { predictor: 12, colors: 1, bits: 8, columns: 3 };

    #[test]
    fn each_kind_of_row_comes_back() {
        let rows = [[0, 1, 2, 3], [1, 1, 1, 1], [2, 1, 1, 1], [3, 1, 1, 1], [4, 1, 1, 1]];
        let found = undo(&rows.concat(), &BYTES).unwrap();
        assert_eq!(found, [1, 2, 3, 1, 2, 3, 2, 3, 4, 2, 3, 4, 3, 4, 5]);
        let tiff = RowLayout { predictor: 2, ..BYTES };
        assert_eq!(undo(&[1, 1, 1, 5, 1], &tiff).unwrap(), [1, 2, 3, 5, 6]);
    }

    #[test]
    fn shapes_without_sense_are_refused() {
        for shape in [
            RowLayout { columns: usize::MAX, ..BYTES },
            RowLayout { columns: 0, ..BYTES },
            RowLayout { colors: usize::MAX, bits: usize::MAX, ..BYTES },
            RowLayout { predictor: 2, bits: 4, ..BYTES },
        ] {
            assert_eq!(undo(b"abcdef", &shape), None, "{shape:?}");
        }
        assert_eq!(undo(b"\x02", &BYTES).unwrap(), b"");
    }
}
