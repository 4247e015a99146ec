//! The parsed file as a tree that owns its text and knows where each key and value stands.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeArray, DeString, DeTable, DeValue};

/// A value and its place.
#[derive(Clone)]
pub(super) struct Value {
    pub(super) span: Range<usize>,
    pub(super) data: Data,
}

#[derive(Clone)]
pub(super) enum Data {
    Text(String),
    /// A number, boolean or date as it is written.
    Plain(String),
    Array(Vec<Value>),
    Table(Table),
}

/// Keys with their places and values.
#[derive(Clone, Default)]
pub(super) struct Table {
    pub(super) entries: BTreeMap<String, Entry>,
}

#[derive(Clone)]
pub(super) struct Entry {
    pub(super) key_span: Range<usize>,
    pub(super) value: Value,
}

impl Value {
    fn find_key_at(&self, key: &str, span: &Range<usize>) -> Option<String> {
        match &self.data {
            _ if self.span == *span => Some(key.to_owned()),
            Data::Table(table) => table.find_key_at(span),
            Data::Array(items) => items.iter().find_map(|item| item.find_key_at(key, span)),
            Data::Text(_) | Data::Plain(_) => None,
        }
    }
}

impl Table {
    /// The table that `parsed` is, once its text is our own.
    pub(super) fn from_parsed(parsed: &DeTable<'_>) -> Self {
        let entry = |(key, value): (&Spanned<DeString<'_>>, &Spanned<DeValue<'_>>)| {
            (key.get_ref().to_string(), Entry { key_span: key.span(), value: Value::from_parsed(value) })
        };
        Self { entries: parsed.iter().map(entry).collect() }
    }

    /// The table in the form that serde reads, borrowing from this one.
    pub(super) fn to_parsed(&self) -> DeTable<'_> {
        let mut table = DeTable::new();
        for (key, entry) in &self.entries {
            let key = Spanned::new(entry.key_span.clone(), key.as_str().into());
            table.insert(key, entry.value.to_parsed());
        }
        table
    }

    /// The key whose value stands at `span`, here or deeper.
    pub(super) fn find_key_at(&self, span: &Range<usize>) -> Option<String> {
        self.entries.iter().find_map(|(key, entry)| entry.value.find_key_at(key, span))
    }

    /// The entries whose keys are wanted.
    pub(super) fn only(&self, wanted: impl Fn(&str) -> bool) -> Self {
        let entries = self.entries.iter().filter(|(key, _)| wanted(key));
        Self { entries: entries.map(|(key, entry)| (key.clone(), entry.clone())).collect() }
    }

    /// The value of a key.
    pub(super) fn find(&self, key: &str) -> Option<&Value> {
        self.entries.get(key).map(|entry| &entry.value)
    }

    /// The place of a key.
    pub(super) fn find_key_span(&self, key: &str) -> Option<Range<usize>> {
        self.entries.get(key).map(|entry| entry.key_span.clone())
    }

    /// The place of the value at a path such as `deliver.0` or `blog.2.url`, or of what is nearest above it.
    pub(super) fn find_span(&self, path: &str) -> Option<Range<usize>> {
        let mut steps = path.split('.');
        let mut value = self.find(steps.next()?)?;
        for step in steps {
            let next = match &value.data {
                Data::Table(inner) => inner.find(step),
                Data::Array(items) => step.parse().ok().and_then(|index: usize| items.get(index)),
                Data::Text(_) | Data::Plain(_) => None,
            };
            match next {
                Some(next) => value = next,
                None => break,
            }
        }
        Some(value.span.clone())
    }

    /// Removes the entry whose key or value stands exactly at `span`; answers its key, or `[]` for an array item.
    pub(super) fn remove_at(&mut self, span: &Range<usize>) -> Option<String> {
        let hit = self.entries.iter().find(|(_, entry)| entry.key_span == *span || entry.value.span == *span);
        if let Some(key) = hit.map(|(key, _)| key.clone()) {
            self.entries.remove(&key);
            return Some(key);
        }
        self.entries.values_mut().find_map(|entry| entry.value.remove_inside(span))
    }

    /// Every text in the table, at any depth, with its place.
    pub(super) fn list_texts(&self) -> Vec<(Range<usize>, &str)> {
        let mut out = Vec::new();
        self.entries.values().for_each(|entry| entry.value.add_texts(&mut out));
        out
    }
}

impl Value {
    fn from_parsed(parsed: &Spanned<DeValue<'_>>) -> Self {
        let data = match parsed.get_ref() {
            DeValue::String(text) => Data::Text(text.to_string()),
            DeValue::Array(items) => Data::Array(items.iter().map(Value::from_parsed).collect()),
            DeValue::Table(table) => Data::Table(Table::from_parsed(table)),
            DeValue::Integer(number) => Data::Plain(number.to_string()),
            DeValue::Float(number) => Data::Plain(number.to_string()),
            DeValue::Boolean(value) => Data::Plain(value.to_string()),
            DeValue::Datetime(at) => Data::Plain(at.to_string()),
        };
        Self { span: parsed.span(), data }
    }

    fn to_parsed(&self) -> Spanned<DeValue<'_>> {
        let value = match &self.data {
            Data::Text(text) => DeValue::String(text.as_str().into()),
            Data::Plain(text) => match DeValue::parse(text) {
                Ok(value) => value.into_inner(),
                Err(_) => DeValue::String(text.as_str().into()),
            },
            Data::Array(items) => {
                let mut array = DeArray::new();
                items.iter().for_each(|item| array.push(item.to_parsed()));
                DeValue::Array(array)
            }
            Data::Table(table) => DeValue::Table(table.to_parsed()),
        };
        Spanned::new(self.span.clone(), value)
    }

    /// What this value is, in TOML's words.
    pub(super) fn type_name(&self) -> &'static str {
        match &self.data {
            Data::Text(_) => "a text",
            Data::Plain(_) => "a plain value",
            Data::Array(_) => "an array",
            Data::Table(_) => "a table",
        }
    }

    fn remove_inside(&mut self, span: &Range<usize>) -> Option<String> {
        match &mut self.data {
            Data::Table(inner) => inner.remove_at(span),
            Data::Array(items) => match items.iter().position(|item| item.span == *span) {
                Some(index) => {
                    items.remove(index);
                    Some("[]".to_owned())
                }
                None => items.iter_mut().find_map(|item| item.remove_inside(span)),
            },
            Data::Text(_) | Data::Plain(_) => None,
        }
    }

    fn add_texts<'a>(&'a self, out: &mut Vec<(Range<usize>, &'a str)>) {
        match &self.data {
            Data::Text(text) => out.push((self.span.clone(), text)),
            Data::Array(items) => items.iter().for_each(|item| item.add_texts(out)),
            Data::Table(inner) => inner.entries.values().for_each(|entry| entry.value.add_texts(out)),
            Data::Plain(_) => {}
        }
    }
}
