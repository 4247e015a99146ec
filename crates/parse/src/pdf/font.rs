//! A font: the characters and the widths of its codes.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;

use super::cmap::{self, CMap};
use super::document::PdfDocument;
use super::encoding::{self, Base, Table, Wide};
use super::lexer::{Lexer, PdfToken};
use super::object::{Dict, Object};
use super::widths::Widths;

/// How much of a font file is searched for its encoding.
const MAX_FONT_HEAD: usize = 64 * 1024;
/// The flag of fonts with their own encoding.
const SYMBOLIC: usize = 4;

#[derive(Debug)]
pub(super) struct Font {
    coding: Coding,
    to_unicode: Option<CMap>,
    widths: Widths,
    pub(super) is_vertical: bool,
    held: Option<FontWeight>,
}

/// The share of a font in the total weight of all fonts in memory.
#[derive(Debug)]
struct FontWeight {
    weight: usize,
    total: Rc<Cell<usize>>,
}

impl Drop for FontWeight {
    fn drop(&mut self) {
        self.total.set(self.total.get().saturating_sub(self.weight));
    }
}

#[derive(Debug)]
enum Coding {
    Simple {
        table: Box<Table>,
        ligatures: HashMap<u32, String>,
    },
    Wide(Wide),
    /// The file defines how strings are split into codes, but not their characters.
    Own(CMap),
}

impl Font {
    pub(super) fn read(document: &PdfDocument<'_>, font: &Dict) -> Self {
        let to_unicode = match document.value(font, "ToUnicode").as_ref() {
            Object::Stream(stream) => document.decode(stream).map(|bytes| CMap::read(&bytes)),
            _ => None,
        };
        match document.value(font, "Subtype").name() {
            Some(b"Type0") => Self::composite(document, font, to_unicode),
            _ => Self::simple(document, font, to_unicode),
        }
    }

    /// For text with an unknown font.
    pub(super) fn unknown(document: &PdfDocument<'_>) -> Self {
        Self::simple(document, &Dict::default(), None)
    }

    fn composite(document: &PdfDocument<'_>, font: &Dict, to_unicode: Option<CMap>) -> Self {
        let fonts = document.value(font, "DescendantFonts");
        let descendant = fonts.list().first().map(|font| document.resolve(font));
        let empty = Dict::default();
        let descendant = descendant.as_ref().and_then(|font| font.dict()).unwrap_or(&empty);
        let mut is_vertical = false;
        let coding = match document.value(font, "Encoding").as_ref() {
            Object::Stream(stream) => {
                let map = document.decode(stream).map(|bytes| CMap::read(&bytes)).unwrap_or_default();
                is_vertical = map.is_vertical || document.value(&stream.dict, "WMode").size() == Some(1);
                Coding::Own(map)
            }
            Object::Name(name) => {
                let name = String::from_utf8_lossy(name).into_owned();
                let (stem, direction) = match name.as_str() {
                    "H" | "V" => ("", name.as_str()),
                    name => name.rsplit_once('-').unwrap_or((name, "")),
                };
                is_vertical = direction == "V";
                encoding::wide(stem).map_or_else(|| Coding::Own(CMap::default()), Coding::Wide)
            }
            _ => Coding::Wide(Wide::Glyphs),
        };
        let widths = match coding {
            Coding::Wide(Wide::Glyphs) | Coding::Own(_) => Widths::by_glyph(document, descendant),
            _ => Widths::square(),
        };
        Self { coding, to_unicode, widths, is_vertical, held: None }
    }

    fn simple(document: &PdfDocument<'_>, font: &Dict, to_unicode: Option<CMap>) -> Self {
        let widths = Widths::simple(document, font);
        let encoding = document.value(font, "Encoding");
        let named = match encoding.as_ref() {
            Object::Name(_) => encoding.clone(),
            Object::Dict(dict) => document.value(dict, "BaseEncoding"),
            _ => Cow::Owned(Object::Null),
        };
        let mut ligatures = HashMap::new();
        let base_font = document.value(font, "BaseFont");
        let is_symbol = base_font.name().is_some_and(|name| name.ends_with(b"Symbol"));
        let mut table = Box::new(match named.name() {
            Some(b"WinAnsiEncoding") => encoding::table(Base::WinAnsi),
            Some(b"MacRomanEncoding") => encoding::table(Base::MacRoman),
            _ if is_symbol => encoding::table(Base::Symbol),
            _ if document.value(font, "Subtype").name() == Some(b"TrueType") => {
                encoding::table(Base::WinAnsi)
            }
            _ => encoding::table(Base::Standard),
        });
        if *named == Object::Null && to_unicode.is_none() {
            read_own_encoding(document, font, &mut table);
        }
        if let Object::Dict(dict) = encoding.as_ref() {
            let differences = document.value(dict, "Differences");
            let mut code = 0_usize;
            for value in differences.array().unwrap_or_default() {
                if document.budget.spend(1).is_none() {
                    break;
                }
                match document.resolve(value).as_ref() {
                    Object::Number(number) => code = number.clamp(0.0, 256.0) as usize,
                    Object::Name(name) if code < 256 => {
                        table[code] = None;
                        ligatures.remove(&(code as u32));
                        put_glyph(name, code, &mut table, &mut ligatures);
                        code += 1;
                    }
                    _ => {}
                }
            }
        }
        Self {
            coding: Coding::Simple { table, ligatures },
            to_unicode,
            widths,
            is_vertical: false,
            held: None,
        }
    }

    /// Counts its weight in `total` until it is dropped.
    pub(super) fn weighed(mut self, total: &Rc<Cell<usize>>) -> Self {
        let weight = self.weight();
        total.set(total.get() + weight);
        self.held = Some(FontWeight { weight, total: Rc::clone(total) });
        self
    }

    /// Its approximate size in memory, in entries.
    fn weight(&self) -> usize {
        let own = match &self.coding {
            Coding::Simple { ligatures, .. } => ligatures.len(),
            Coding::Wide(_) => 0,
            Coding::Own(map) => map.len(),
        };
        self.to_unicode.as_ref().map_or(0, CMap::len) + own + self.widths.len() + 300
    }

    /// The length of the first code of `bytes`, which is not empty.
    pub(super) fn code_length(&self, bytes: &[u8]) -> usize {
        let length = match &self.coding {
            Coding::Simple { .. } => 1,
            Coding::Wide(wide) => wide.code_length(bytes),
            Coding::Own(map) => map
                .code_length(bytes)
                .or_else(|| self.to_unicode.as_ref()?.code_length(bytes))
                .or_else(|| map.usual_length())
                .unwrap_or(2),
        };
        length.clamp(1, bytes.len().max(1))
    }

    /// The most comparisons needed to find the length of a code.
    pub(super) fn effort(&self) -> usize {
        match &self.coding {
            Coding::Own(map) => map.spaces() + self.to_unicode.as_ref().map_or(0, CMap::spaces),
            _ => 0,
        }
    }

    /// Appends the text of a code to `into`; `None` if it is unknown.
    pub(super) fn text(&self, bytes: &[u8], into: &mut String) -> Option<()> {
        let code = cmap::code(bytes);
        if let Some(map) = &self.to_unicode
            && map.text(code, into).is_some()
        {
            return Some(());
        }
        match &self.coding {
            Coding::Simple { table, ligatures } => match ligatures.get(&code) {
                Some(text) => into.push_str(text),
                None => into.push((*table.get(code as usize)?)?),
            },
            Coding::Wide(wide) => wide.decode(bytes, into)?,
            Coding::Own(_) => return None,
        }
        Some(())
    }

    /// The advance of the pen, relative to the size of the font.
    pub(super) fn advance(&self, bytes: &[u8], text: &str) -> f64 {
        if self.is_vertical { 1.0 } else { self.widths.of(cmap::code(bytes), text) / 1000.0 }
    }

    /// Whether word spacing applies to this code.
    pub(super) fn is_space(&self, bytes: &[u8]) -> bool {
        bytes == b" "
    }
}

fn put_glyph(name: &[u8], code: usize, table: &mut Table, ligatures: &mut HashMap<u32, String>) {
    let Some(text) = encoding::glyph(name) else { return };
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (Some(character), None) => table[code] = Some(character),
        _ => {
            ligatures.insert(code as u32, text);
        }
    }
}

/// Type 1 fonts define their encoding in the plain-text part of the file: `dup 65 /A put`.
fn read_own_encoding(document: &PdfDocument<'_>, font: &Dict, table: &mut Table) {
    let descriptor = document.value(font, "FontDescriptor");
    let Some(descriptor) = descriptor.dict() else { return };
    let flags = document.value(descriptor, "Flags").size().unwrap_or(0);
    let file = document.value(descriptor, "FontFile");
    let Object::Stream(file) = file.as_ref() else { return };
    if flags & SYMBOLIC == 0 {
        return;
    }
    let Some(bytes) = document.decode(file) else { return };
    let mut lexer = Lexer::new(&bytes[..bytes.len().min(MAX_FONT_HEAD)], 0);
    let mut code = None;
    while let Some(token) = lexer.token() {
        match token {
            PdfToken::Word(b"eexec") => break,
            PdfToken::Word(b"dup") => {
                code = match lexer.token() {
                    Some(PdfToken::Number(code)) if (0.0..256.0).contains(&code) => Some(code as usize),
                    _ => None,
                };
            }
            PdfToken::Name(name) => {
                if let Some(code) = code.take() {
                    let text = encoding::glyph(&name);
                    table[code] = text.and_then(|text| text.chars().next());
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::budget::WorkBudget;
    use super::*;

    #[test]
    fn everything_a_font_holds_weighs_as_long_as_it_is_held() {
        let codes: String = (0..5000).map(|code| format!("<{code:04x}><0041>")).collect();
        let map = format!("beginbfchar {codes} endbfchar");
        let length = map.len();
        let file = format!(
            "%PDF-1.4 1 0 obj <</Subtype/Type0/Encoding 2 0 R/DescendantFonts[<</W[0[{}]]>>]>> endobj \
             2 0 obj <</Length {length}>>stream\n{map}\nendstream endobj",
            "5 ".repeat(100_000)
        );
        let document = PdfDocument::scan(file.as_bytes(), WorkBudget::new(1 << 30, 1 << 30)).unwrap();
        let total = Rc::new(Cell::new(0));
        let font = Font::read(&document, document.load(1).unwrap().dict().unwrap()).weighed(&total);
        assert_eq!(total.get(), 5000 + 70_000 + 300);
        drop(font);
        assert_eq!(total.get(), 0);
    }
}
