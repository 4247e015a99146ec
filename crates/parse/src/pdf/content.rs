//! Executes the text operators of pages and forms.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::document::PdfDocument;
use super::font::Font;
use super::layout::{Glyph, TextLayout};
use super::lexer::{Lexer, PdfToken, is_space};
use super::matrix::Matrix;
use super::object::{Dict, Object, Refs, read_from};
use super::state::{Marks, Pen, State, actual_text};

/// How deep forms may be nested.
const MAX_FORMS: usize = 12;
/// How many states may be saved; further ones are only counted.
const MAX_SAVED: usize = 64;
/// The most operands of one operator.
const MAX_OPERANDS: usize = 40;
/// The most values in all operands of one operator.
const MAX_OPERAND_VALUES: usize = 100_000;
/// The most values in the resources of all open forms.
const MAX_HELD: usize = 300_000;
/// The cost of a form or a font besides its bytes.
const OVERHEAD: usize = 1000;
/// How many comparisons of glyphs or code ranges count as one step.
const COMPARED: usize = 8;
/// The most entries of all cached fonts.
const MAX_KEPT_WEIGHT: usize = 1_000_000;
/// The most entries of all fonts in memory, including saved states; beyond that no font is loaded.
const MAX_FONT_WEIGHT: usize = 2 * MAX_KEPT_WEIGHT;

/// Reads pages into a layout.
pub(super) struct ContentReader<'d, 'a> {
    document: &'d PdfDocument<'a>,
    pub(super) layout: TextLayout,
    fonts: HashMap<u32, Rc<Font>>,
    unknown: Rc<Font>,
    /// The total of all fonts in memory.
    font_weight: Rc<Cell<usize>>,
    /// Forms without text, which need not be read again.
    barren: HashSet<u32>,
    open_forms: Vec<u32>,
    /// The number of values in the resources of open forms.
    held: usize,
}

/// A content stream that is being read.
struct Run<'r> {
    resources: &'r Dict,
    /// By name; `None` for names without a font.
    fonts: HashMap<Vec<u8>, Option<Rc<Font>>>,
    forms: Option<Cow<'r, Object>>,
    state: State,
    saved: Vec<State>,
    lost: usize,
    pen: Pen,
    marks: Marks,
}

impl<'d, 'a> ContentReader<'d, 'a> {
    pub(super) fn new(document: &'d PdfDocument<'a>, limit: usize) -> Self {
        Self {
            document,
            layout: TextLayout::new(limit),
            fonts: HashMap::new(),
            unknown: Rc::new(Font::unknown(document)),
            font_weight: Rc::default(),
            barren: HashSet::new(),
            open_forms: Vec::new(),
            held: 0,
        }
    }

    /// Reads a page; `None` if the budget is used up or the text is full.
    pub(super) fn read_page(&mut self, content: &[u8], resources: &Dict) -> Option<()> {
        self.held = 0;
        let read = self.run(content, resources, &State::default());
        self.layout.end_page();
        read
    }

    fn run(&mut self, content: &[u8], resources: &Dict, state: &State) -> Option<()> {
        let mut run = Run {
            resources,
            fonts: HashMap::new(),
            forms: None,
            state: state.clone(),
            saved: Vec::new(),
            lost: 0,
            pen: Pen::default(),
            marks: Marks::default(),
        };
        let mut lexer = Lexer::new(content, 0);
        let mut operands: Vec<Object> = Vec::new();
        let mut before = 0;
        let mut values_left = MAX_OPERAND_VALUES;
        while let Some(token) = lexer.token() {
            match token {
                PdfToken::Word(word) if !matches!(word, b"true" | b"false" | b"null") => {
                    self.document.budget.spend(lexer.at - before + operands.len() + 1)?;
                    before = lexer.at;
                    if word == b"ID" {
                        skip_image(&mut lexer);
                    } else {
                        self.operate(word, &operands, &mut run)?;
                    }
                    operands.clear();
                    values_left = MAX_OPERAND_VALUES;
                    if self.layout.is_full() {
                        self.document.budget.mark_cut();
                        return None;
                    }
                }
                token => {
                    if let Some(operand) = read_from(&mut lexer, token, Refs::Absent, &mut values_left) {
                        if operands.len() == MAX_OPERANDS {
                            operands.remove(0);
                        }
                        operands.push(operand);
                    }
                }
            }
        }
        Some(())
    }

    fn operate(&mut self, operator: &[u8], operands: &[Object], run: &mut Run<'_>) -> Option<()> {
        let number = |at: usize| operands.get(at).and_then(Object::number).unwrap_or(0.0);
        let text = |at: usize| operands.get(at).and_then(Object::text).unwrap_or_default();
        match operator {
            b"q" if run.saved.len() < MAX_SAVED => run.saved.push(run.state.clone()),
            b"q" => run.lost += 1,
            b"Q" if run.lost > 0 => run.lost -= 1,
            b"Q" => run.state = run.saved.pop().unwrap_or_else(|| run.state.clone()),
            b"cm" => run.state.page = Matrix::from_operands(operands).then(&run.state.page),
            b"BT" => run.pen = Pen::default(),
            b"Tc" => run.state.character_space = number(0),
            b"Tw" => run.state.word_space = number(0),
            b"Tz" => run.state.stretch = number(0) / 100.0,
            b"TL" => run.state.leading = number(0),
            b"Ts" => run.state.rise = number(0),
            b"Tf" => {
                run.state.size = number(1);
                run.state.font =
                    operands.first().and_then(Object::name).and_then(|name| self.font(name, run));
            }
            b"Td" => run.pen.move_line(number(0), number(1)),
            b"TD" => {
                run.state.leading = -number(1);
                run.pen.move_line(number(0), number(1));
            }
            b"Tm" => run.pen.set(Matrix::from_operands(operands)),
            b"T*" => run.pen.move_line(0.0, -run.state.leading),
            b"Tj" => self.show(text(0), run),
            b"'" => {
                run.pen.move_line(0.0, -run.state.leading);
                self.show(text(0), run);
            }
            b"\"" => {
                (run.state.word_space, run.state.character_space) = (number(0), number(1));
                run.pen.move_line(0.0, -run.state.leading);
                self.show(text(2), run);
            }
            b"TJ" => {
                for part in operands.first().and_then(Object::array).unwrap_or_default() {
                    match part {
                        Object::Text(text) => self.show(text, run),
                        Object::Number(number) => run.pen.kern(*number, &run.state),
                        _ => {}
                    }
                }
            }
            b"BMC" => run.marks.open(None),
            b"BDC" => {
                let lists = self.document.value(run.resources, "Properties");
                let properties = match operands.get(1) {
                    Some(Object::Name(name)) => lists.dict().and_then(|lists| lists.find_bytes(name)),
                    other => other,
                };
                let properties = properties.map(|properties| self.document.resolve(properties));
                let actual = properties.as_ref().and_then(|properties| properties.dict()?.find("ActualText"));
                let actual = actual.map(|actual| self.document.resolve(actual));
                run.marks.open(actual.as_ref().and_then(|actual| actual.text()).map(actual_text));
            }
            b"EMC" => run.marks.close(),
            b"Do" => {
                if let Some(name) = operands.first().and_then(Object::name) {
                    self.form(name, run)?;
                }
            }
            _ => {}
        }
        Some(())
    }

    fn font(&mut self, name: &[u8], run: &mut Run<'_>) -> Option<Rc<Font>> {
        if let Some(font) = run.fonts.get(name) {
            return font.clone();
        }
        let font = self.read_font(name, run.resources);
        if run.fonts.len() < 1000 && self.font_weight.get() < MAX_KEPT_WEIGHT {
            run.fonts.insert(name.to_vec(), font.clone());
        }
        font
    }

    fn read_font(&mut self, name: &[u8], resources: &Dict) -> Option<Rc<Font>> {
        self.document.budget.spend(OVERHEAD)?;
        let fonts = self.document.value(resources, "Font");
        let found = fonts.dict().and_then(|fonts| fonts.find_bytes(name))?;
        let number = if let Object::Ref(number) = found { Some(*number) } else { None };
        if let Some(font) = number.and_then(|number| self.fonts.get(&number)) {
            return Some(Rc::clone(font));
        }
        if self.font_weight.get() >= MAX_FONT_WEIGHT {
            self.document.budget.mark_cut();
            return None;
        }
        let font = Font::read(self.document, self.document.resolve(found).dict()?);
        let font = Rc::new(font.weighed(&self.font_weight));
        if let Some(number) = number.filter(|_| self.font_weight.get() < MAX_KEPT_WEIGHT) {
            self.fonts.insert(number, Rc::clone(&font));
        }
        Some(font)
    }

    fn form(&mut self, name: &[u8], run: &mut Run<'_>) -> Option<()> {
        self.document.budget.spend(OVERHEAD)?;
        if run.forms.is_none() {
            let forms = self.document.value(run.resources, "XObject");
            self.held += weight(&forms);
            run.forms = Some(forms);
        }
        let forms = run.forms.as_ref().and_then(|forms| forms.dict());
        let Some(Object::Ref(number)) = forms.and_then(|forms| forms.find_bytes(name)).cloned() else {
            return Some(());
        };
        let is_open = self.open_forms.contains(&number) || self.open_forms.len() >= MAX_FORMS;
        if is_open || self.barren.contains(&number) {
            return Some(());
        }
        let Some(Object::Stream(stream)) = self.document.load(number) else { return Some(()) };
        if self.document.value(&stream.dict, "Subtype").name() != Some(b"Form") {
            self.barren.insert(number);
            return Some(());
        }
        let Some(content) = self.document.decode(&stream) else { return Some(()) };
        let resources = self.document.value(&stream.dict, "Resources");
        let held = self.held;
        self.held += stream.dict.weight() + weight(&resources);
        if self.held > MAX_HELD {
            self.held = held;
            self.document.budget.mark_cut();
            return Some(());
        }
        let mut state = run.state.clone();
        if let Some(matrix) = self.document.value(&stream.dict, "Matrix").array() {
            state.page = Matrix::from_operands(matrix).then(&state.page);
        }
        let before = self.layout.seen;
        self.open_forms.push(number);
        let read = self.run(&content, resources.dict().unwrap_or(run.resources), &state);
        self.open_forms.pop();
        self.held = held;
        if self.layout.seen == before {
            self.barren.insert(number);
        }
        read
    }

    fn show(&mut self, mut bytes: &[u8], run: &mut Run<'_>) {
        let font = run.state.font.clone().unwrap_or_else(|| Rc::clone(&self.unknown));
        let mut text = String::new();
        while !bytes.is_empty() && !self.layout.is_full() {
            let (code, rest) = bytes.split_at(font.code_length(bytes));
            bytes = rest;
            text.clear();
            let is_known = font.text(code, &mut text).is_some();
            let place = run.pen.advance(&run.state, &font, code, &text);
            let is_marked = run.marks.take(&mut text);
            let glyph = Glyph { text: &text, ..place };
            if is_marked || is_known {
                self.layout.place(&glyph);
            } else {
                self.layout.place_unreadable(&glyph);
            }
            let compared = std::mem::take(&mut self.layout.compared) + font.effort();
            if self.document.budget.spend(compared / COMPARED).is_none() {
                return;
            }
        }
    }
}

/// The weight of a value if it was read only for us.
#[allow(clippy::ptr_arg, reason = "it depends on the variant of the Cow")]
fn weight(value: &Cow<'_, Object>) -> usize {
    match value {
        Cow::Owned(value) => value.weight(),
        Cow::Borrowed(_) => 0,
    }
}

/// Skips the data of an inline image.
fn skip_image(lexer: &mut Lexer<'_>) {
    let data = lexer.rest();
    let is_end = |at: usize| {
        let after = &data[at + 3..data.len().min(at + 20)];
        is_space(data[at])
            && data[at + 1..].starts_with(b"EI")
            && after.first().is_none_or(|byte| is_space(*byte))
            && after.iter().all(|byte| is_space(*byte) || (0x20..0x7F).contains(byte))
    };
    let end = (0..data.len().saturating_sub(2)).find(|at| is_end(*at));
    lexer.at += end.map_or(data.len(), |at| at + 3);
}
