//! The objects of a file, found by looking for them: broken, cut and often updated files read like sound ones.

use std::borrow::Cow;
use std::collections::HashMap;

use super::Error;
use super::budget::Budget;
use super::filter::{self, Filter};
use super::lexer::{Lexer, Token, is_space};
use super::object::{Dict, Object, Refs, Stream, read};
use super::predictor::Shape;

/// The most objects that are noted.
const MAX_OBJECTS: usize = 500_000;
/// How often a value may point on.
const MAX_HOPS: usize = 8;
/// What looking up an object costs besides its bytes.
const LOOKUP: usize = 50;

/// Where an object stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In the file, after `obj`.
    File(usize),
    /// In an object stream.
    Packed { pack: usize, at: usize },
}

/// A file whose objects are known by number.
pub(super) struct Document<'a> {
    bytes: &'a [u8],
    places: HashMap<u32, Place>,
    packs: Vec<Vec<u8>>,
    root: Option<Object>,
    pub(super) budget: Budget,
}

impl<'a> Document<'a> {
    /// Looks through the whole file; the last definition of an object wins.
    pub(super) fn scan(bytes: &'a [u8], budget: Budget) -> Result<Self, Error> {
        let mut document = Self { bytes, places: HashMap::new(), packs: Vec::new(), root: None, budget };
        let mut at = 0;
        let mut open = None;
        let mut has_ends = true;
        while at < bytes.len() {
            let rest = &bytes[at..];
            match rest[0] {
                b'o' if rest.starts_with(b"obj") => {
                    if let Some(number) = number_before(bytes, at) {
                        document.note(number, Place::File(at + 3))?;
                        open = Some(at + 3);
                    }
                    at += 3;
                }
                b's' if rest.starts_with(b"stream") && follows_dict(bytes, at) => {
                    let (next, found_end) = document.pass_stream(at, open.take(), has_ends)?;
                    has_ends = found_end;
                    at = next;
                }
                b't' if rest.starts_with(b"trailer") => {
                    let mut lexer = Lexer::new(bytes, at + 7);
                    if let Some(Object::Dict(dict)) = read(&mut lexer, Refs::Read) {
                        document.note_trailer(&dict)?;
                    }
                    document.budget.spend(lexer.at - at).ok_or(Error::TooBig)?;
                    at += 7;
                }
                _ => at += 1,
            }
        }
        Ok(document)
    }

    fn note(&mut self, number: u32, place: Place) -> Result<(), Error> {
        self.places.insert(number, place);
        if self.places.len() > MAX_OBJECTS { Err(Error::TooBig) } else { Ok(()) }
    }

    fn note_trailer(&mut self, dict: &Dict) -> Result<(), Error> {
        if dict.find("Encrypt").is_some_and(|value| *value != Object::Null) {
            return Err(Error::Encrypted);
        }
        if let Some(root) = dict.find("Root") {
            self.root = Some(root.clone());
        }
        Ok(())
    }

    /// Where to look on after the keyword `stream` at `at`, and whether `endstream` may still come.
    fn pass_stream(
        &mut self,
        at: usize,
        open: Option<usize>,
        has_ends: bool,
    ) -> Result<(usize, bool), Error> {
        let from = data_start(self.bytes, at);
        let mut dict = None;
        if let Some(open) = open {
            let mut lexer = Lexer::new(self.bytes, open);
            dict = match read(&mut lexer, Refs::Read) {
                Some(Object::Dict(dict)) => Some(dict),
                _ => None,
            };
            self.budget.spend(lexer.at - open).ok_or(Error::TooBig)?;
        }
        let length = dict.as_ref().and_then(|dict| dict.find("Length")).and_then(Object::size);
        let (to, has_ends) = match end_by_length(self.bytes, from, length) {
            Some(to) => (to, has_ends),
            None if !has_ends => (self.bytes.len(), false),
            None => match find(self.bytes, from, b"endstream") {
                Some(end) => (trim_end(self.bytes, from, end), true),
                None => (self.bytes.len(), false),
            },
        };
        if let Some(dict) = dict {
            if dict.is_type("XRef") {
                self.note_trailer(&dict)?;
            } else if dict.is_type("ObjStm") {
                self.unpack(&Stream { dict, from, to })?;
            }
        }
        // Without an end nobody knows what is data: objects may follow.
        Ok((if to == self.bytes.len() { from } else { to }, has_ends))
    }

    /// Notes the objects of an object stream.
    fn unpack(&mut self, stream: &Stream) -> Result<(), Error> {
        let count = stream.dict.find("N").and_then(Object::size).unwrap_or(0);
        let first = stream.dict.find("First").and_then(Object::size).unwrap_or(0);
        let Some(decoded) = self.decode(stream) else { return Ok(()) };
        let pack = self.packs.len();
        let mut lexer = Lexer::new(&decoded, 0);
        for _ in 0..count {
            let (Some(Token::Number(number)), Some(Token::Number(offset))) = (lexer.token(), lexer.token())
            else {
                break;
            };
            if lexer.at > first || !(0.0..=f64::from(u32::MAX)).contains(&number) || offset < 0.0 {
                break;
            }
            self.note(number as u32, Place::Packed { pack, at: first.saturating_add(offset as usize) })?;
        }
        self.packs.push(decoded);
        Ok(())
    }

    /// The numbers of all objects, in order.
    pub(super) fn numbers(&self) -> Vec<u32> {
        let mut numbers: Vec<u32> = self.places.keys().copied().collect();
        numbers.sort_unstable();
        numbers
    }

    /// The catalogue.
    pub(super) fn root(&self) -> Cow<'_, Object> {
        self.root.as_ref().map_or(Cow::Owned(Object::Null), |root| self.resolve(root))
    }

    /// Reads an object, or `None` if there is none or no budget for it.
    pub(super) fn load(&self, number: u32) -> Option<Object> {
        let place = *self.places.get(&number)?;
        // Before anything is read: with nothing left, not even that.
        self.budget.spend(LOOKUP)?;
        let (bytes, at) = match place {
            Place::File(at) => (self.bytes, at),
            Place::Packed { pack, at } => (self.packs.get(pack)?.as_slice(), at),
        };
        let mut lexer = Lexer::new(bytes, at);
        let object = read(&mut lexer, Refs::Read);
        self.budget.spend(lexer.at.saturating_sub(at))?;
        match (object?, place) {
            (Object::Dict(dict), Place::File(_)) => {
                lexer.skip_space();
                if !lexer.rest().starts_with(b"stream") {
                    return Some(Object::Dict(dict));
                }
                let from = data_start(self.bytes, lexer.at);
                let length = match dict.find("Length") {
                    Some(Object::Ref(number)) => self.load_number(*number),
                    length => length.and_then(Object::size),
                };
                let to = match end_by_length(self.bytes, from, length) {
                    Some(to) => to,
                    None => {
                        let end = find(self.bytes, from, b"endstream").unwrap_or(self.bytes.len());
                        self.budget.spend(end - from)?;
                        trim_end(self.bytes, from, end)
                    }
                };
                Some(Object::Stream(Stream { dict, from, to }))
            }
            (object, _) => Some(object),
        }
    }

    fn load_number(&self, number: u32) -> Option<usize> {
        let (bytes, at) = match *self.places.get(&number)? {
            Place::File(at) => (self.bytes, at),
            Place::Packed { pack, at } => (self.packs.get(pack)?.as_slice(), at),
        };
        match Lexer::new(bytes.get(..bytes.len().min(at.saturating_add(64)))?, at).token() {
            Some(Token::Number(number)) => Object::Number(number).size(),
            _ => None,
        }
    }

    /// The value itself, wherever it stands; what stands right here may be large and is not copied.
    pub(super) fn resolve<'o>(&self, object: &'o Object) -> Cow<'o, Object> {
        let mut object = Cow::Borrowed(object);
        for _ in 0..MAX_HOPS {
            let Object::Ref(number) = *object else { return object };
            object = Cow::Owned(self.load(number).unwrap_or(Object::Null));
        }
        Cow::Owned(Object::Null)
    }

    /// The value of a key, wherever it stands; `Null` when there is none.
    pub(super) fn value<'o>(&self, dict: &'o Dict, key: &str) -> Cow<'o, Object> {
        dict.find(key).map_or(Cow::Owned(Object::Null), |value| self.resolve(value))
    }

    /// The decoded bytes of a stream, or `None` if it is a picture, unknown or beyond the budget.
    pub(super) fn decode(&self, stream: &Stream) -> Option<Vec<u8>> {
        let names = self.value(&stream.dict, "Filter");
        let parameters = self.value(&stream.dict, "DecodeParms");
        let (names, parameters) = (names.list(), parameters.list());
        let mut filters = Vec::new();
        for (number, name) in names.iter().enumerate() {
            let parameters = parameters.get(number).map(|value| self.resolve(value));
            let key = |key: &str| self.value(parameters.as_ref()?.dict()?, key).size();
            let shape = key("Predictor").filter(|predictor| *predictor > 1).map(|predictor| Shape {
                predictor,
                colors: key("Colors").unwrap_or(1),
                bits: key("BitsPerComponent").unwrap_or(8),
                columns: key("Columns").unwrap_or(1),
            });
            let early = key("EarlyChange") != Some(0);
            filters.push((Filter::by_name(self.resolve(name).name()?, early)?, shape));
        }
        let raw = self.bytes.get(stream.from..stream.to)?;
        filter::decode(raw, &filters, &self.budget).map(|decoded| decoded.bytes)
    }
}

/// The number in `N G obj`, when `obj` stands at `at`.
fn number_before(bytes: &[u8], at: usize) -> Option<u32> {
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
    std::str::from_utf8(&bytes[number..number_end]).ok()?.parse().ok()
}

/// Whether what stands before `at` closes a dictionary.
fn follows_dict(bytes: &[u8], at: usize) -> bool {
    let start = at.saturating_sub(32);
    bytes[start..at].trim_ascii_end().ends_with(b">>")
}

/// Where the data begin after the keyword `stream` at `at`.
fn data_start(bytes: &[u8], at: usize) -> usize {
    let from = (at + 6).min(bytes.len());
    match bytes[from..] {
        [b'\r', b'\n', ..] => from + 2,
        [b'\r' | b'\n', ..] => from + 1,
        [b' ', b'\r', b'\n', ..] => from + 3,
        [b' ', b'\n', ..] => from + 2,
        _ => from,
    }
}

/// The end of the data if `length` is right: `endstream` follows.
fn end_by_length(bytes: &[u8], from: usize, length: Option<usize>) -> Option<usize> {
    let to = from.checked_add(length?).filter(|to| *to <= bytes.len())?;
    let after = &bytes[to..bytes.len().min(to + 16)];
    after.trim_ascii_start().starts_with(b"endstream").then_some(to)
}

/// `to` without the line break before `endstream`.
fn trim_end(bytes: &[u8], from: usize, to: usize) -> usize {
    match &bytes[from..to] {
        [.., b'\r', b'\n'] => to - 2,
        [.., b'\r' | b'\n'] => to - 1,
        _ => to,
    }
}

/// Where `wanted` stands at or after `from`.
fn find(bytes: &[u8], from: usize, wanted: &[u8]) -> Option<usize> {
    let first = *wanted.first()?;
    let mut at = from;
    loop {
        at += bytes.get(at..)?.iter().position(|byte| *byte == first)?;
        if bytes[at..].starts_with(wanted) {
            return Some(at);
        }
        at += 1;
    }
}
