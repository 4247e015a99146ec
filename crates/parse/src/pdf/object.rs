//! Parses the values of a PDF from tokens.

use std::collections::BTreeMap;

use super::lexer::{Lexer, PdfToken};

/// The deepest nesting of values.
const MAX_DEPTH: usize = 48;
/// The most values within one.
const MAX_VALUES: usize = 150_000;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Object {
    Null,
    Bool(bool),
    Number(f64),
    Name(Vec<u8>),
    Text(Vec<u8>),
    Array(Vec<Object>),
    Dict(Dict),
    Stream(Stream),
    Ref(u32),
}

/// A dictionary.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Dict(BTreeMap<Vec<u8>, Object>);

/// A dictionary and its data: their position in the file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stream {
    pub(super) dict: Dict,
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) source: ObjectId,
}

/// The object of the file that something belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ObjectId {
    pub(super) number: u32,
    pub(super) generation: u32,
}

impl Dict {
    /// The value of a key, which may be a reference.
    pub(super) fn find(&self, key: &str) -> Option<&Object> {
        self.0.get(key.as_bytes())
    }

    pub(super) fn find_bytes(&self, key: &[u8]) -> Option<&Object> {
        self.0.get(key)
    }

    /// The same dictionary with each value changed.
    pub(super) fn map(self, change: impl Fn(Object) -> Object) -> Self {
        Self(self.0.into_iter().map(|(key, value)| (key, change(value))).collect())
    }

    /// The number of values in it.
    pub(super) fn weight(&self) -> usize {
        self.0.values().map(Object::weight).sum()
    }

    pub(super) fn is_type(&self, name: &str) -> bool {
        matches!(self.find("Type"), Some(Object::Name(found)) if found == name.as_bytes())
    }
}

impl Object {
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Object::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// A number that is a size or a count.
    pub(super) fn size(&self) -> Option<usize> {
        self.number().filter(|number| (0.0..1e15).contains(number)).map(|number| number as usize)
    }

    pub(super) fn name(&self) -> Option<&[u8]> {
        match self {
            Object::Name(name) => Some(name),
            _ => None,
        }
    }

    pub(super) fn text(&self) -> Option<&[u8]> {
        match self {
            Object::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn array(&self) -> Option<&[Object]> {
        match self {
            Object::Array(array) => Some(array),
            _ => None,
        }
    }

    /// The items of an array; a single value counts as one item.
    pub(super) fn list(&self) -> &[Object] {
        match self {
            Object::Array(array) => array,
            Object::Null => &[],
            single => std::slice::from_ref(single),
        }
    }

    /// The number of values in it, including itself.
    pub(super) fn weight(&self) -> usize {
        match self {
            Object::Array(array) => 1 + array.iter().map(Object::weight).sum::<usize>(),
            Object::Dict(dict) | Object::Stream(Stream { dict, .. }) => 1 + dict.weight(),
            _ => 1,
        }
    }

    /// A dictionary, or that of a stream.
    pub(super) fn dict(&self) -> Option<&Dict> {
        match self {
            Object::Dict(dict) => Some(dict),
            Object::Stream(stream) => Some(&stream.dict),
            _ => None,
        }
    }
}

/// Whether `7 0 R` is a reference: it is in objects, but not in content streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refs {
    Read,
    Absent,
}

/// Parses one value; `None` at a closing bracket or a keyword that is not a value, or if it is too deep or too large.
pub(super) fn read(lexer: &mut Lexer<'_>, refs: Refs) -> Option<Object> {
    let token = lexer.token()?;
    read_from(lexer, token, refs, &mut { MAX_VALUES })
}

/// Parses the value that begins with `token`; it may have as many values as `budget` allows, which is reduced by them.
pub(super) fn read_from(
    lexer: &mut Lexer<'_>,
    token: PdfToken<'_>,
    refs: Refs,
    budget: &mut usize,
) -> Option<Object> {
    value(lexer, token, refs, MAX_DEPTH, budget)
}

fn value(
    lexer: &mut Lexer<'_>,
    token: PdfToken<'_>,
    refs: Refs,
    depth: usize,
    left: &mut usize,
) -> Option<Object> {
    *left = left.checked_sub(1)?;
    let depth = depth.checked_sub(1)?;
    Some(match token {
        PdfToken::Number(number) => match (refs, reference(lexer, number)) {
            (Refs::Read, Some(reference)) => reference,
            _ => Object::Number(number),
        },
        PdfToken::Name(name) => Object::Name(name),
        PdfToken::Text(text) => Object::Text(text),
        PdfToken::ArrayOpen => {
            let mut array = Vec::new();
            loop {
                let before = lexer.at;
                let Some(token) = lexer.token() else { break };
                match token {
                    PdfToken::ArrayClose => break,
                    PdfToken::Word(word) if ends_object(word) => {
                        lexer.at = before;
                        break;
                    }
                    PdfToken::Word(word) if !is_value(word) => {}
                    PdfToken::DictClose => {}
                    token => array.push(value(lexer, token, refs, depth, left)?),
                }
            }
            Object::Array(array)
        }
        PdfToken::DictOpen => {
            let mut dict = Dict::default();
            loop {
                let before = lexer.at;
                let Some(token) = lexer.token() else { break };
                match token {
                    PdfToken::DictClose => break,
                    PdfToken::Name(key) => {
                        let before = lexer.at;
                        let Some(token) = lexer.token() else { break };
                        if token == PdfToken::DictClose {
                            break;
                        }
                        if matches!(token, PdfToken::Word(word) if !is_value(word)) {
                            lexer.at = before;
                            continue;
                        }
                        if token != PdfToken::ArrayClose {
                            dict.0.insert(key, value(lexer, token, refs, depth, left)?);
                        }
                    }
                    PdfToken::Word(word) if ends_object(word) => {
                        lexer.at = before;
                        break;
                    }
                    _ => {}
                }
            }
            Object::Dict(dict)
        }
        PdfToken::Word(b"null") => Object::Null,
        PdfToken::Word(word @ (b"true" | b"false")) => Object::Bool(word == b"true"),
        PdfToken::Word(_) | PdfToken::ArrayClose | PdfToken::DictClose => return None,
    })
}

fn is_value(word: &[u8]) -> bool {
    matches!(word, b"null" | b"true" | b"false")
}

/// Whether this keyword ends an object, even if its brackets are still open.
fn ends_object(word: &[u8]) -> bool {
    matches!(word, b"endobj" | b"endstream" | b"stream")
}

/// Parses `number G R`; otherwise reads nothing.
fn reference(lexer: &mut Lexer<'_>, number: f64) -> Option<Object> {
    let is_number = number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number);
    // Most numbers are in lists of numbers: check before copying the lexer.
    if !is_number || !lexer.rest().iter().take(3).any(u8::is_ascii_digit) {
        return None;
    }
    let mut ahead = Lexer::new(&lexer.bytes[..lexer.bytes.len().min(lexer.at + 24)], lexer.at);
    let (Some(PdfToken::Number(_)), Some(PdfToken::Word(b"R"))) = (ahead.token(), ahead.token()) else {
        return None;
    };
    lexer.at = ahead.at;
    Some(Object::Ref(number as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(text: &[u8]) -> Option<Object> {
        read(&mut Lexer::new(text, 0), Refs::Read)
    }

    #[test]
    fn values_nest_and_point() {
        let found = object(b"<< /Kids [1 0 R 2 0 R 3 4] /N null /D<</X(y)>> /E >>").unwrap();
        let dict = found.dict().unwrap();
        let kids = [Object::Ref(1), Object::Ref(2), Object::Number(3.0), Object::Number(4.0)];
        assert_eq!(dict.find("Kids").unwrap().array().unwrap(), kids);
        assert_eq!(dict.find("D").unwrap().dict().unwrap().find("X").unwrap().text(), Some(&b"y"[..]));
        assert_eq!(dict.find("N"), Some(&Object::Null));
    }

    #[test]
    fn deep_and_endless_values_are_refused() {
        assert_eq!(object(&b"[".repeat(1_000_000)), None);
        assert_eq!(object(&b"<</A".repeat(1_000_000)), None);
        assert_eq!(object(&[&b"["[..], &b"1 ".repeat(MAX_VALUES + 1)].concat()), None);
    }

    #[test]
    fn what_is_not_closed_ends_with_its_object() {
        let found = object(b"<< /A 1 /B [2 endobj 3 0 obj << /C 4 >>").unwrap();
        assert_eq!(found.dict().unwrap().find("A"), Some(&Object::Number(1.0)));
        assert_eq!(found.dict().unwrap().find("B").unwrap().array().unwrap().len(), 1);
    }
}
