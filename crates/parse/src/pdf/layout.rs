//! Arranges placed glyphs in lines: a new line if the baseline moves, a space if there is a gap.

/// Larger gaps are spaces between words, relative to the size of the font.
const WORD_GAP: f64 = 0.17;
/// Larger gaps are spaces between ideographs, which are often spread to fill a line.
const WIDE_GAP: f64 = 0.8;
/// Larger movements across the line begin a new one.
const LINE_GAP: f64 = 0.55;
/// The most glyphs of a line that are kept to recognise repeated ones.
const MAX_REMEMBERED: usize = 2000;

/// A direction or a position.
pub(super) type Point = (f64, f64);

/// A glyph and its position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Glyph<'a> {
    pub(super) text: &'a str,
    pub(super) at: Point,
    /// The position of the next glyph unless the pen is moved.
    pub(super) end: Point,
    /// The direction of writing, of length 1.
    pub(super) along: Point,
    /// The upward direction of the glyph, of length 1.
    pub(super) up: Point,
    pub(super) size: f64,
}

/// The text so far.
#[derive(Debug)]
pub(super) struct TextLayout {
    pub(super) text: String,
    pub(super) unreadable: usize,
    pub(super) readable: usize,
    /// The number of glyphs, written or not.
    pub(super) seen: usize,
    /// Comparisons with kept glyphs that were not charged yet.
    pub(super) compared: usize,
    length: usize,
    limit: usize,
    last: Option<Last>,
    /// Whether single glyphs below each other form a line.
    is_column: bool,
    line: Vec<(Point, char)>,
    /// The position in `line` while it is printed again, which makes text bold.
    again: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Last {
    at: Point,
    end: Point,
    along: Point,
    size: f64,
    character: char,
}

fn minus(a: Point, b: Point) -> Point {
    (a.0 - b.0, a.1 - b.1)
}

fn dot(a: Point, b: Point) -> f64 {
    a.0 * b.0 + a.1 * b.1
}

/// Characters without spaces between them.
fn is_wide(character: char) -> bool {
    matches!(character, '\u{2E80}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{FE30}'..='\u{FE4F}'
        | '\u{FF00}'..='\u{FFEF}' | '\u{20000}'..='\u{3FFFF}')
}

/// Whether a glyph is next to the last one, in any direction.
fn is_near(last: &Last, glyph: &Glyph<'_>) -> bool {
    let size = last.size.max(glyph.size);
    [last.at, last.end].into_iter().any(|point| {
        let (x, y) = minus(glyph.at, point);
        x.hypot(y) < 1.6 * size
    })
}

impl TextLayout {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            text: String::new(),
            unreadable: 0,
            readable: 0,
            seen: 0,
            compared: 0,
            length: 0,
            limit,
            last: None,
            is_column: false,
            line: Vec::new(),
            again: None,
        }
    }

    /// Whether the limit is reached.
    pub(super) fn is_full(&self) -> bool {
        self.length >= self.limit
    }

    fn push(&mut self, character: char) {
        if !self.is_full() {
            self.text.push(character);
            self.length += 1;
        }
    }

    /// Ends the line; at most one empty line in a row is kept.
    pub(super) fn end_line(&mut self) {
        while self.text.ends_with([' ', '\u{3000}']) {
            self.text.pop();
            self.length -= 1;
        }
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.push('\n');
        }
        self.is_column = false;
        self.line.clear();
        self.again = None;
    }

    /// Ends the page with an empty line.
    pub(super) fn end_page(&mut self) {
        self.end_line();
        self.end_line();
        self.last = None;
    }

    /// Counts an unreadable glyph; several in a row leave one mark.
    pub(super) fn place_unreadable(&mut self, glyph: &Glyph<'_>) {
        self.unreadable += 1;
        self.seen += 1;
        if self.text.ends_with(char::REPLACEMENT_CHARACTER) {
            self.pass(glyph);
        } else {
            self.place(&Glyph { text: "\u{FFFD}", ..*glyph });
        }
    }

    /// Moves on without writing.
    pub(super) fn pass(&mut self, glyph: &Glyph<'_>) {
        if let Some(last) = &mut self.last {
            (last.at, last.end) = (glyph.at, glyph.end);
        }
    }

    /// Writes a glyph at its position.
    pub(super) fn place(&mut self, glyph: &Glyph<'_>) {
        self.seen += 1;
        let Some(first) = glyph.text.chars().next() else { return self.pass(glyph) };
        if self.is_repeated(glyph, first) {
            return;
        }
        if let Some(last) = self.last {
            self.separate(&last, glyph, first);
        }
        let mut character = first;
        for each in glyph.text.chars() {
            self.write(each);
            character = each;
        }
        if self.line.len() < MAX_REMEMBERED {
            self.line.push((glyph.at, first));
        }
        let Glyph { at, end, along, size, .. } = *glyph;
        self.last = Some(Last { at, end, along, size, character });
    }

    fn write(&mut self, character: char) {
        match character {
            '\u{FB00}'..='\u{FB04}' => {
                for letter in ["ff", "fi", "fl", "ffi", "ffl"][character as usize - 0xFB00].chars() {
                    self.push(letter);
                }
            }
            '\u{AD}' => self.push('-'),
            '\u{A0}' => self.push(' '),
            '\u{FEFF}' | '\u{200B}' => {}
            _ if character.is_control() => {
                if !self.text.ends_with([' ', '\n']) {
                    self.push(' ');
                }
            }
            _ => self.push(character),
        }
        if !character.is_whitespace() && character != char::REPLACEMENT_CHARACTER {
            self.readable += 1;
        }
    }

    fn separate(&mut self, last: &Last, glyph: &Glyph<'_>, first: char) {
        let size = last.size.max(glyph.size);
        let moved = minus(glyph.at, last.end);
        let along = dot(moved, glyph.along);
        let across = {
            let (x, y) = glyph.along;
            dot(moved, (-y, x)).abs()
        };
        let is_same_way = dot(last.along, glyph.along) > 0.9;
        // The condition is false for NaN, which begins a new line, too.
        let is_same_line = is_same_way && across < LINE_GAP * size && along > -1.5 * size;
        if !is_same_line {
            if self.is_below(last, glyph, first) || (!is_same_way && is_near(last, glyph)) {
                // Numbers are rotated within a column, and the column continues after them.
                self.is_column = true;
                return;
            }
            self.end_line();
            return;
        }
        let gap = if is_wide(last.character) && is_wide(first) { WIDE_GAP } else { WORD_GAP };
        if along > gap * size && !self.text.ends_with([' ', '\u{3000}', '\n']) && !first.is_whitespace() {
            self.push(' ');
        }
    }

    /// Whether single ideographs are arranged in a column.
    fn is_below(&self, last: &Last, glyph: &Glyph<'_>, first: char) -> bool {
        let moved = minus(glyph.at, last.at);
        let down = -dot(moved, glyph.up) / glyph.size;
        let aside = dot(moved, glyph.along).abs() / glyph.size;
        let is_alone = self.is_column || self.line.len() == 1;
        let are_signs = !first.is_ascii() && !last.character.is_ascii();
        is_alone && are_signs && (0.7..1.7).contains(&down) && aside < 0.6
    }

    /// Whether the same glyph is already at this position.
    fn is_repeated(&mut self, glyph: &Glyph<'_>, first: char) -> bool {
        let Some(last) = self.last else { return false };
        let near = glyph.size * 0.1;
        let is_same = |(at, character): &(Point, char)| {
            let (x, y) = minus(glyph.at, *at);
            *character == first && x.abs() < near && y.abs() < near
        };
        let found = match self.again {
            Some(next) => self.line.get(next).filter(|known| is_same(known)).map(|_| next),
            None if dot(minus(glyph.at, last.end), glyph.along) < -0.3 * glyph.size => {
                let found = self.line.iter().position(is_same);
                self.compared += found.unwrap_or(self.line.len());
                found
            }
            None => None,
        };
        self.again = found.map(|at| at + 1);
        found.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn laid_out(glyphs: &[(&str, f64, f64)]) -> String {
        let mut layout = TextLayout::new(1000);
        for (text, x, y) in glyphs {
            let end = (x + 10.0, *y);
            layout.place(&Glyph { text, at: (*x, *y), end, along: (1.0, 0.0), up: (0.0, 1.0), size: 10.0 });
        }
        layout.text
    }

    #[test]
    fn gaps_are_spaces_and_moves_are_lines() {
        assert_eq!(
            laid_out(&[("a", 0.0, 0.0), ("b", 10.0, 0.0), ("c", 23.0, 3.0), ("d", 0.0, -12.0)]),
            "ab c\nd"
        );
        assert_eq!(laid_out(&[("日", 0.0, 0.0), ("本", 14.0, 0.0), ("語", 34.0, 0.0)]), "日本 語");
        assert_eq!(laid_out(&[("a", 0.0, 0.0), ("b", f64::NAN, 0.0), ("c", f64::INFINITY, 0.0)]), "a\nb\nc");
    }

    #[test]
    fn ideographs_below_each_other_are_one_line() {
        let column = [("縦", 50.0, 0.0), ("書", 50.0, -10.0), ("き", 50.0, -20.0), ("次", 35.0, 0.0)];
        assert_eq!(laid_out(&column), "縦書き\n次");
        let lines = [("日", 0.0, 0.0), ("本", 10.0, 0.0), ("語", 0.0, -12.0), ("文", 10.0, -12.0)];
        assert_eq!(laid_out(&lines), "日本\n語文");
    }

    #[test]
    fn what_is_printed_twice_to_look_bold_is_written_once() {
        let twice = [("a", 0.0, 0.0), ("b", 10.0, 0.0), ("a", 0.3, 0.0), ("b", 10.3, 0.0), ("c", 20.3, 0.0)];
        assert_eq!(laid_out(&twice), "abc");
        assert_eq!(laid_out(&[("a", 0.0, 0.0), ("a", 10.0, 0.0), ("b", 20.0, 0.0)]), "aab");
    }

    #[test]
    fn the_limit_holds_and_empty_lines_do_not_pile_up() {
        let mut layout = TextLayout::new(3);
        let glyph = Glyph {
            text: "ﬃ",
            at: (0.0, 0.0),
            end: (1.0, 0.0),
            along: (1.0, 0.0),
            up: (0.0, 1.0),
            size: 1.0,
        };
        layout.end_page();
        layout.place(&glyph);
        layout.place(&Glyph { at: (1.0, 0.0), ..glyph });
        assert_eq!((layout.text.as_str(), layout.is_full()), ("ffi", true));
        let mut layout = TextLayout::new(100);
        layout.place(&glyph);
        (0..5).for_each(|_| layout.end_page());
        assert_eq!(layout.text, "ffi\n\n");
    }
}
