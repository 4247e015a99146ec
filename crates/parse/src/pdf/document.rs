//! The objects of a file, found by scanning it: broken, truncated and often updated files work like valid ones.

use std::borrow::Cow;
use std::collections::HashMap;

use super::Error;
use super::budget::WorkBudget;
use super::crypt::Crypt;
use super::filter::{self, Filter};
use super::lexer::{Lexer, PdfToken};
use super::marks::{data_start, end_by_length, find, follows_dict, source_before, trim_end};
use super::object::{Dict, Object, Refs, Stream, read};
use super::predictor::RowLayout;

/// The most objects of a file.
const MAX_OBJECTS: usize = 500_000;
/// How many references in a row are followed.
const MAX_HOPS: usize = 8;
/// The cost of loading an object besides its bytes.
const LOOKUP: usize = 50;

/// The position of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In the file, after `obj`.
    File(usize),
    /// In an object stream.
    Packed { pack: usize, at: usize },
}

/// A file whose objects are indexed by number.
pub(super) struct PdfDocument<'a> {
    bytes: &'a [u8],
    places: HashMap<u32, Place>,
    packs: Vec<Pack>,
    root: Option<Object>,
    encrypt: Option<Object>,
    id: Option<Object>,
    crypt: Option<Crypt>,
    pub(super) budget: WorkBudget,
}

/// A decoded object stream.
struct Pack {
    bytes: Vec<u8>,
    /// Its position in the file.
    at: usize,
}

impl<'a> PdfDocument<'a> {
    /// Scans the whole file; the last definition of an object wins.
    pub(super) fn scan(bytes: &'a [u8], budget: WorkBudget) -> Result<Self, Error> {
        let mut document = Self {
            bytes,
            places: HashMap::new(),
            packs: Vec::new(),
            root: None,
            encrypt: None,
            id: None,
            crypt: None,
            budget,
        };
        let mut packs = Vec::new();
        let mut at = 0;
        let mut open = None;
        let mut has_ends = true;
        while at < bytes.len() {
            let rest = &bytes[at..];
            match rest[0] {
                b'o' if rest.starts_with(b"obj") => {
                    if let Some(source) = source_before(bytes, at) {
                        document.note(source.number, Place::File(at + 3))?;
                        open = Some(at + 3);
                    }
                    at += 3;
                }
                b's' if rest.starts_with(b"stream") && follows_dict(bytes, at) => {
                    let (next, found_end) = document.pass_stream(at, open.take(), has_ends, &mut packs)?;
                    has_ends = found_end;
                    at = next;
                }
                b't' if rest.starts_with(b"trailer") => {
                    let mut lexer = Lexer::new(bytes, at + 7);
                    if let Some(Object::Dict(dict)) = read(&mut lexer, Refs::Read) {
                        document.note_trailer(&dict);
                    }
                    document.budget.spend(lexer.at - at).ok_or(Error::TooBig)?;
                    at += 7;
                }
                _ => at += 1,
            }
        }
        // The encryption is known only after the end of the file was read.
        document.decide_crypt()?;
        for at in packs {
            document.unpack(at)?;
        }
        Ok(document)
    }

    /// Finds the key of an encrypted file.
    fn decide_crypt(&mut self) -> Result<(), Error> {
        let Some(encrypt) = &self.encrypt else { return Ok(()) };
        let id = self.id.as_ref().map(|id| self.resolve(id));
        let id = id.as_ref().and_then(|id| id.list().first()).map(|id| self.resolve(id));
        let id = id.as_ref().and_then(|id| id.text()).unwrap_or_default();
        let encrypt = self.resolve(encrypt);
        let crypt = encrypt.dict().and_then(|dict| Crypt::open(self, dict, id));
        self.crypt = Some(crypt.ok_or(Error::Encrypted)?);
        Ok(())
    }

    /// Records the position of an object, unless a later definition is known.
    fn note(&mut self, number: u32, place: Place) -> Result<(), Error> {
        let position = |place: &Place| match place {
            Place::File(at) => *at,
            Place::Packed { pack, .. } => self.packs.get(*pack).map_or(0, |pack| pack.at),
        };
        if self.places.get(&number).is_none_or(|known| position(known) <= position(&place)) {
            self.places.insert(number, place);
        }
        if self.places.len() > MAX_OBJECTS { Err(Error::TooBig) } else { Ok(()) }
    }

    fn note_trailer(&mut self, dict: &Dict) {
        if let Some(encrypt) = dict.find("Encrypt").filter(|value| **value != Object::Null) {
            self.encrypt = Some(encrypt.clone());
        }
        if let Some(id) = dict.find("ID") {
            self.id = Some(id.clone());
        }
        if let Some(root) = dict.find("Root") {
            self.root = Some(root.clone());
        }
    }

    /// Where to continue after the keyword `stream` at `at`, and whether there may be another `endstream`.
    fn pass_stream(
        &mut self,
        at: usize,
        open: Option<usize>,
        has_ends: bool,
        packs: &mut Vec<usize>,
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
        if let (Some(dict), Some(open)) = (dict, open) {
            if dict.is_type("XRef") {
                self.note_trailer(&dict);
            } else if dict.is_type("ObjStm") {
                packs.push(open);
            }
        }
        // Without `endstream` the length of the data is unknown, and objects may follow.
        Ok((if to == self.bytes.len() { from } else { to }, has_ends))
    }

    /// Records the objects of the object stream after `obj` at `at`.
    fn unpack(&mut self, at: usize) -> Result<(), Error> {
        let Some(Object::Stream(stream)) = self.load_from(Place::File(at)) else { return Ok(()) };
        let count = stream.dict.find("N").and_then(Object::size).unwrap_or(0);
        let first = stream.dict.find("First").and_then(Object::size).unwrap_or(0);
        let Some(bytes) = self.decode(&stream) else { return Ok(()) };
        let pack = self.packs.len();
        self.packs.push(Pack { bytes: Vec::new(), at });
        let mut lexer = Lexer::new(&bytes, 0);
        for _ in 0..count {
            let (Some(PdfToken::Number(number)), Some(PdfToken::Number(offset))) =
                (lexer.token(), lexer.token())
            else {
                break;
            };
            if lexer.at > first || !(0.0..=f64::from(u32::MAX)).contains(&number) || offset < 0.0 {
                break;
            }
            self.note(number as u32, Place::Packed { pack, at: first.saturating_add(offset as usize) })?;
        }
        self.packs[pack].bytes = bytes;
        Ok(())
    }

    /// The numbers of all objects, sorted.
    pub(super) fn numbers(&self) -> Vec<u32> {
        let mut numbers: Vec<u32> = self.places.keys().copied().collect();
        numbers.sort_unstable();
        numbers
    }

    /// The catalogue.
    pub(super) fn root(&self) -> Cow<'_, Object> {
        self.root.as_ref().map_or(Cow::Owned(Object::Null), |root| self.resolve(root))
    }

    /// Loads an object; `None` if there is none or no budget left.
    pub(super) fn load(&self, number: u32) -> Option<Object> {
        self.load_from(*self.places.get(&number)?)
    }

    fn load_from(&self, place: Place) -> Option<Object> {
        // Check the budget before reading anything.
        self.budget.spend(LOOKUP)?;
        let (bytes, at) = self.bytes_at(place)?;
        let mut lexer = Lexer::new(bytes, at);
        let object = read(&mut lexer, Refs::Read)?;
        self.budget.spend(lexer.at.saturating_sub(at))?;
        // An object stream was decrypted as a whole.
        let Place::File(_) = place else { return Some(object) };
        let source = source_before(self.bytes, at.saturating_sub(3))?;
        let object = match &self.crypt {
            Some(crypt) => crypt.strings(object, source, &self.budget),
            None => object,
        };
        match object {
            Object::Dict(dict) => {
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
                Some(Object::Stream(Stream { dict, from, to, source }))
            }
            object => Some(object),
        }
    }

    fn bytes_at(&self, place: Place) -> Option<(&[u8], usize)> {
        Some(match place {
            Place::File(at) => (self.bytes, at),
            Place::Packed { pack, at } => (self.packs.get(pack)?.bytes.as_slice(), at),
        })
    }

    fn load_number(&self, number: u32) -> Option<usize> {
        let (bytes, at) = self.bytes_at(*self.places.get(&number)?)?;
        match Lexer::new(bytes.get(..bytes.len().min(at.saturating_add(64)))?, at).token() {
            Some(PdfToken::Number(number)) => Object::Number(number).size(),
            _ => None,
        }
    }

    /// The value, following references; a direct value may be large and is not copied.
    pub(super) fn resolve<'o>(&self, object: &'o Object) -> Cow<'o, Object> {
        let mut object = Cow::Borrowed(object);
        for _ in 0..MAX_HOPS {
            let Object::Ref(number) = *object else { return object };
            object = Cow::Owned(self.load(number).unwrap_or(Object::Null));
        }
        Cow::Owned(Object::Null)
    }

    /// The value of a key, following references; `Null` if there is none.
    pub(super) fn value<'o>(&self, dict: &'o Dict, key: &str) -> Cow<'o, Object> {
        dict.find(key).map_or(Cow::Owned(Object::Null), |value| self.resolve(value))
    }

    /// The decoded bytes of a stream; `None` if it is an image, unknown or exceeds the budget.
    pub(super) fn decode(&self, stream: &Stream) -> Option<Vec<u8>> {
        let names = self.value(&stream.dict, "Filter");
        let parameters = self.value(&stream.dict, "DecodeParms");
        let (names, parameters) = (names.list(), parameters.list());
        let mut filters = Vec::new();
        for (number, name) in names.iter().enumerate() {
            let parameters = parameters.get(number).map(|value| self.resolve(value));
            let key = |key: &str| self.value(parameters.as_ref()?.dict()?, key).size();
            let shape = key("Predictor").filter(|predictor| *predictor > 1).map(|predictor| RowLayout {
                predictor,
                colors: key("Colors").unwrap_or(1),
                bits: key("BitsPerComponent").unwrap_or(8),
                columns: key("Columns").unwrap_or(1),
            });
            let early = key("EarlyChange") != Some(0);
            filters.push((Filter::by_name(self.resolve(name).name()?, early)?, shape));
        }
        let mut raw = Cow::Borrowed(self.bytes.get(stream.from..stream.to)?);
        if let Some(crypt) = &self.crypt {
            self.budget.spend(raw.len())?;
            raw = Cow::Owned(crypt.stream(&raw, stream.source));
        }
        filter::decode(&raw, &filters, &self.budget).map(|decoded| decoded.bytes)
    }
}
