//! The parsed file as a tree that owns its text and has the positions of keys and values.

use std::ops::Range;

use serde::de::Error as _;
use serde_json::Value as Json;
use stdx::phrase;
use stdx::phrase::Phrase;
use toml::de::DeTable;
use toml_spanner::{Arena, ArrayStyle, Item, Key, Span, Table, TableStyle, Value};

/// A value and its position.
#[derive(Clone)]
pub(super) struct TomlValue {
    pub(super) span: Range<usize>,
    pub(super) data: Data,
}

#[derive(Clone)]
pub(super) enum Data {
    Text(Box<str>),
    /// A number, boolean or date as written.
    Plain(Box<str>),
    Array(Vec<TomlValue>),
    TomlTable(TomlTable),
}

/// Keys with their positions and values, sorted by key.
///
/// A sorted list and not a map: a file may contain ten thousand small tables, and a map takes a kilobyte for each.
#[derive(Clone, Default)]
pub(super) struct TomlTable {
    entries: Vec<TomlEntry>,
}

#[derive(Clone)]
pub(super) struct TomlEntry {
    pub(super) key: Box<str>,
    pub(super) key_span: Range<usize>,
    pub(super) value: TomlValue,
}

impl TomlEntry {
    /// Whether its key is at one of these positions.
    pub(super) fn is_at(&self, spans: &[Range<usize>]) -> bool {
        spans.contains(&self.key_span)
    }
}

impl TomlValue {
    fn find_path_at(&self, key: &str, span: &Range<usize>) -> Option<String> {
        match &self.data {
            Data::Text(_) => (self.span == *span).then(|| key.to_owned()),
            Data::TomlTable(table) => table.find_path_at(span).map(|path| format!("{key}.{path}")),
            Data::Array(items) => items.iter().find_map(|item| item.find_path_at(key, span)),
            Data::Plain(_) => None,
        }
    }
}

impl TomlTable {
    /// Parses `text`, or returns all syntax errors.
    ///
    /// `toml-spanner` needs a tenth of the memory and time of `toml`, which matters with ten thousand blogs; `toml`
    /// reports errors better, so it is used for invalid files.
    pub(super) fn parse(text: &str) -> Result<Self, Vec<toml::de::Error>> {
        toml_spanner::parse(text, &Arena::new())
            .map(|parsed| Self::from_parsed(parsed.table(), text))
            .map_err(|error| match DeTable::parse_recoverable(text).1 {
                errors if errors.is_empty() => vec![toml::de::Error::custom(error)],
                errors => errors,
            })
    }

    fn from_parsed(parsed: &Table<'_>, text: &str) -> Self {
        let entry = |(key, item): &(Key<'_>, Item<'_>)| TomlEntry {
            key: key.as_str().into(),
            key_span: key.span.range(),
            value: TomlValue::from_parsed(item, text),
        };
        let mut entries: Vec<TomlEntry> = parsed.iter().map(entry).collect();
        entries.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        Self { entries }
    }

    /// The path of the text at `span`: `url`, `auth.password`.
    pub(super) fn find_path_at(&self, span: &Range<usize>) -> Option<String> {
        self.entries.iter().find_map(|entry| entry.value.find_path_at(&entry.key, span))
    }

    /// The entries with selected keys.
    pub(super) fn only(&self, wanted: impl Fn(&str) -> bool) -> Self {
        Self { entries: self.entries.iter().filter(|entry| wanted(&entry.key)).cloned().collect() }
    }

    pub(super) fn list(&self) -> &[TomlEntry] {
        &self.entries
    }

    /// All values, mutably.
    pub(super) fn list_mut(&mut self) -> impl Iterator<Item = &mut TomlValue> {
        self.entries.iter_mut().map(|entry| &mut entry.value)
    }

    fn place_of(&self, key: &str) -> Result<usize, usize> {
        self.entries.binary_search_by(|entry| (*entry.key).cmp(key))
    }

    pub(super) fn find_entry(&self, key: &str) -> Option<&TomlEntry> {
        self.place_of(key).ok().map(|place| &self.entries[place])
    }

    /// The value of a key, mutably.
    pub(super) fn find_mut(&mut self, key: &str) -> Option<&mut TomlValue> {
        self.place_of(key).ok().map(|place| &mut self.entries[place].value)
    }

    /// Sets or replaces a key.
    pub(super) fn put(&mut self, entry: TomlEntry) {
        match self.place_of(&entry.key) {
            Ok(place) => self.entries[place] = entry,
            Err(place) => self.entries.insert(place, entry),
        }
    }

    pub(super) fn find(&self, key: &str) -> Option<&TomlValue> {
        self.find_entry(key).map(|entry| &entry.value)
    }

    /// The position of a key.
    pub(super) fn find_key_span(&self, key: &str) -> Option<Range<usize>> {
        self.find_entry(key).map(|entry| entry.key_span.clone())
    }

    /// The position of the value at a path such as `deliver.0` or `blog.2.url`, or of its closest existing ancestor.
    pub(super) fn find_span(&self, path: &str) -> Option<Range<usize>> {
        let mut steps = path.split('.');
        let mut value = self.find(steps.next()?)?;
        for step in steps {
            let next = match &value.data {
                Data::TomlTable(inner) => inner.find(step),
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

    /// The table as JSON; `shown` converts the texts, given their positions.
    pub(super) fn to_json(&self, shown: &dyn Fn(&Range<usize>, &str) -> String) -> Json {
        let pair = |entry: &TomlEntry| (entry.key.to_string(), entry.value.to_json(shown));
        Json::Object(self.entries.iter().map(pair).collect())
    }

    /// Calls `take` for every text in the table, at any depth, with its position, except for entries that are
    /// `left_out`.
    pub(super) fn each_text(
        &self,
        left_out: &dyn Fn(&TomlEntry) -> bool,
        take: &mut dyn FnMut(&Range<usize>, &str),
    ) {
        let taken = self.entries.iter().filter(|entry| !left_out(entry));
        taken.for_each(|entry| entry.value.each_text(left_out, take));
    }

    /// The table at `span` inside this one.
    pub(super) fn find_table_at(&self, span: &Range<usize>) -> Option<&TomlTable> {
        self.entries.iter().find_map(|entry| entry.value.find_table_at(span))
    }

    pub(super) fn find_table(&self, key: &str) -> Option<&TomlTable> {
        self.find(key)?.as_table()
    }

    pub(super) fn find_text(&self, key: &str) -> Option<&str> {
        match &self.find(key)?.data {
            Data::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl TomlValue {
    fn from_parsed(item: &Item<'_>, text: &str) -> Self {
        let span = item.span();
        // The position of a table with a header is that of its header.
        let header = |span: Span| span.extract_header_span(text.as_bytes());
        let (span, data) = match item.value() {
            Value::String(value) => (span, Data::Text((*value).into())),
            Value::Array(items) => {
                let span = if items.style() == ArrayStyle::Header { header(span) } else { span };
                (span, Data::Array(items.iter().map(|item| Self::from_parsed(item, text)).collect()))
            }
            Value::Table(table) => {
                let span = if table.style() == TableStyle::Header { header(span) } else { span };
                (span, Data::TomlTable(TomlTable::from_parsed(table, text)))
            }
            _ => (span, Data::Plain(text.get(span.range()).unwrap_or_default().replace('_', "").into())),
        };
        Self { span: span.range(), data }
    }

    fn to_json(&self, shown: &dyn Fn(&Range<usize>, &str) -> String) -> Json {
        match &self.data {
            Data::Text(text) => Json::from(shown(&self.span, text)),
            Data::Plain(text) => serde_json::from_str(text).unwrap_or_else(|_| Json::from(&**text)),
            Data::Array(items) => items.iter().map(|item| item.to_json(shown)).collect(),
            Data::TomlTable(table) => table.to_json(shown),
        }
    }

    /// The type of this value, in TOML's terms.
    pub(super) fn type_name(&self) -> Phrase {
        match &self.data {
            Data::Text(_) => phrase!("a text", "文字列"),
            Data::Plain(_) => phrase!("a plain value", "数値や true・false など"),
            Data::Array(_) => phrase!("an array", "配列"),
            Data::TomlTable(_) => phrase!("a table", "表"),
        }
    }

    pub(super) fn as_table(&self) -> Option<&TomlTable> {
        match &self.data {
            Data::TomlTable(table) => Some(table),
            _ => None,
        }
    }

    /// The value of a key, if this is a table.
    pub(super) fn find(&self, key: &str) -> Option<&TomlValue> {
        self.as_table()?.find(key)
    }

    /// The items, if this is an array.
    pub(super) fn items(&self) -> &[TomlValue] {
        match &self.data {
            Data::Array(items) => items,
            _ => &[],
        }
    }

    fn find_table_at(&self, span: &Range<usize>) -> Option<&TomlTable> {
        match &self.data {
            Data::TomlTable(inner) if self.span == *span => Some(inner),
            Data::TomlTable(inner) => inner.find_table_at(span),
            Data::Array(items) => items.iter().find_map(|item| item.find_table_at(span)),
            Data::Text(_) | Data::Plain(_) => None,
        }
    }

    fn each_text(&self, left_out: &dyn Fn(&TomlEntry) -> bool, take: &mut dyn FnMut(&Range<usize>, &str)) {
        match &self.data {
            Data::Text(text) => take(&self.span, text),
            Data::Array(items) => items.iter().for_each(|item| item.each_text(left_out, take)),
            Data::TomlTable(inner) => inner.each_text(left_out, take),
            Data::Plain(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toml::Spanned;
    use toml::de::{DeTable, DeValue};

    /// The content of a file according to `toml`: paths, positions and texts.
    fn list_expected(path: &str, value: &Spanned<DeValue<'_>>, found: &mut Vec<String>) {
        let mut note = |text: &str| found.push(format!("{path} {:?} {text}", value.span()));
        match value.get_ref() {
            DeValue::String(text) => note(text),
            DeValue::Integer(number) => note(&number.to_string()),
            DeValue::Float(number) => note(&number.to_string()),
            DeValue::Boolean(value) => note(&value.to_string()),
            DeValue::Datetime(at) => note(&at.to_string()),
            DeValue::Array(items) => {
                note("array");
                items
                    .iter()
                    .enumerate()
                    .for_each(|(n, item)| list_expected(&format!("{path}.{n}"), item, found));
            }
            DeValue::Table(table) => {
                note("table");
                list_expected_keys(path, table, found);
            }
        }
    }

    fn list_expected_keys(path: &str, table: &DeTable<'_>, found: &mut Vec<String>) {
        for (key, value) in table.iter() {
            let path = format!("{path}.{}", key.get_ref());
            found.push(format!("{path} at {:?}", key.span()));
            list_expected(&path, value, found);
        }
    }

    fn list_parsed(path: &str, value: &TomlValue, found: &mut Vec<String>) {
        let mut note = |text: &str| found.push(format!("{path} {:?} {text}", value.span));
        match &value.data {
            Data::Text(text) | Data::Plain(text) => note(text),
            Data::Array(items) => {
                note("array");
                items
                    .iter()
                    .enumerate()
                    .for_each(|(n, item)| list_parsed(&format!("{path}.{n}"), item, found));
            }
            Data::TomlTable(table) => {
                note("table");
                list_parsed_keys(path, table, found);
            }
        }
    }

    fn list_parsed_keys(path: &str, table: &TomlTable, found: &mut Vec<String>) {
        for entry in table.list() {
            let path = format!("{path}.{}", entry.key);
            found.push(format!("{path} at {:?}", entry.key_span));
            list_parsed(&path, &entry.value, found);
        }
    }

    #[test]
    fn everything_stands_where_the_parser_of_messages_sees_it() {
        let file = r#"
a.b.c = 1
a.b."d e" = "x\u00e9"
'quoted key' = 'lit'
n = [+5, -0, 0x1F, 0b1_0, 1_000, 1.50, -1e6, inf, true, 1979-05-27T07:32:00Z, 07:32:00]
m = """
several
lines"""
[x]
w = [[], [ { q = 1, r.s = "続き" }, ], ]
[x.y.z]
k = ''
[[job]]
name = "a"  # a comment
[job.inner]
k = true
[[job.blog]]
id = "1"
[[job.blog]]
id = "2"
[[job]]
blog = [
  { id = "x", url = "https://example.com" },
]
"#;
        let (mut expected, mut parsed) = (Vec::new(), Vec::new());
        list_expected_keys("", DeTable::parse(file).unwrap().get_ref(), &mut expected);
        list_parsed_keys("", &TomlTable::parse(file).unwrap(), &mut parsed);
        expected.sort();
        parsed.sort();
        assert_eq!(expected, parsed);
    }
}
