//! The state that operators of a page change: graphics state, pen, and marked content with replacement text.

use std::rc::Rc;

use super::font::Font;
use super::layout::Glyph;
use super::matrix::Matrix;

/// How deep marked content may be nested; deeper levels are only counted.
const MAX_MARKS: usize = 64;
/// The longest replacement text of a mark, in characters.
const MAX_ACTUAL: usize = 1000;

/// The state that is saved and restored.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) page: Matrix,
    pub(super) font: Option<Rc<Font>>,
    pub(super) size: f64,
    pub(super) character_space: f64,
    pub(super) word_space: f64,
    pub(super) stretch: f64,
    pub(super) leading: f64,
    pub(super) rise: f64,
}

impl Default for State {
    fn default() -> Self {
        Self {
            page: Matrix::default(),
            font: None,
            size: 1.0,
            character_space: 0.0,
            word_space: 0.0,
            stretch: 1.0,
            leading: 0.0,
            rise: 0.0,
        }
    }
}

/// The position of the next text.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pen {
    text: Matrix,
    line: Matrix,
}

impl Pen {
    pub(super) fn set(&mut self, matrix: Matrix) {
        (self.text, self.line) = (matrix, matrix);
    }

    /// Moves to a line that begins at `x`, `y` relative to the beginning of this one.
    pub(super) fn move_line(&mut self, x: f64, y: f64) {
        self.set(Matrix::shift(x, y).then(&self.line));
    }

    /// Moves against the direction of writing, by thousandths of the font size.
    pub(super) fn kern(&mut self, thousandths: f64, state: &State) {
        let amount = -thousandths / 1000.0 * state.size;
        let is_vertical = state.font.as_ref().is_some_and(|font| font.is_vertical);
        // In vertical writing the sign is reversed.
        let (x, y) = if is_vertical { (0.0, amount) } else { (amount * state.stretch, 0.0) };
        self.text = Matrix::shift(x, y).then(&self.text);
    }

    /// Writes one code at the pen's position and advances the pen.
    pub(super) fn advance(&mut self, state: &State, font: &Font, code: &[u8], text: &str) -> Glyph<'static> {
        let matrix = self.text.then(&state.page);
        let (right, up, scale) = matrix.axes();
        let mut amount = font.advance(code, text) * state.size + state.character_space;
        if font.is_space(code) {
            amount += state.word_space;
        }
        let (x, y) = if font.is_vertical { (0.0, -amount) } else { (amount * state.stretch, 0.0) };
        let at = matrix.place((0.0, state.rise));
        let end = matrix.place((x, y + state.rise));
        self.text = Matrix::shift(x, y).then(&self.text);
        let size = (state.size * scale).abs();
        let size = if size > 0.0 && size.is_finite() { size } else { 1.0 };
        // A negative size turns the glyphs around.
        let sign = if state.size < 0.0 { -1.0 } else { 1.0 };
        let turn = |(x, y): (f64, f64), sign: f64| (x * sign, y * sign);
        let (along, up) = if font.is_vertical {
            (turn(up, -sign), turn(right, sign))
        } else {
            (turn(right, sign), turn(up, sign))
        };
        Glyph { text: "", at, end, along, up, size }
    }
}

/// The open marks.
#[derive(Debug, Default)]
pub(super) struct Marks {
    open: Vec<Option<String>>,
    lost: usize,
}

impl Marks {
    /// Opens a mark, optionally with the text of the glyphs within it.
    pub(super) fn open(&mut self, actual: Option<String>) {
        if self.open.len() < MAX_MARKS {
            self.open.push(actual);
        } else {
            self.lost += 1;
        }
    }

    pub(super) fn close(&mut self) {
        if self.lost > 0 {
            self.lost -= 1;
        } else {
            self.open.pop();
        }
    }

    /// Replaces the first glyph by the text of the outermost mark, and the others by nothing.
    pub(super) fn take(&mut self, text: &mut String) -> bool {
        let Some(actual) = self.open.iter_mut().flatten().next() else { return false };
        *text = std::mem::take(actual);
        true
    }
}

/// A text string: UTF-16 or UTF-8 with a byte order mark, else Latin.
pub(super) fn actual_text(bytes: &[u8]) -> String {
    // No character has more than four bytes, and neither has the byte order mark.
    let bytes = &bytes[..bytes.len().min(4 * MAX_ACTUAL + 4)];
    let text = match bytes {
        [0xFE, 0xFF, ..] => encoding_rs::UTF_16BE.decode(bytes).0,
        [0xFF, 0xFE, ..] => encoding_rs::UTF_16LE.decode(bytes).0,
        [0xEF, 0xBB, 0xBF, ..] => encoding_rs::UTF_8.decode(bytes).0,
        _ => encoding_rs::WINDOWS_1252.decode_without_bom_handling(bytes).0,
    };
    text.chars().take(MAX_ACTUAL).collect()
}
