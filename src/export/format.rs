//! Rows as CSV, TSV, JSON and JSON lines, one at a time.

use std::borrow::Cow;
use std::io::{self, Write};

use serde_json::Value as Json;

use super::Cell;
use crate::config::redact;

/// The format of exported rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated, as in RFC 4180.
    Csv,
    /// Tab-separated; tabs and line ends inside a cell become spaces.
    Tsv,
    /// One array of objects.
    Json,
    /// One object per line.
    Ndjson,
}

/// Options for spreadsheets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Do not change cells that a spreadsheet would take for a formula.
    pub raw: bool,
    /// Begin with a byte order mark, by which Excel recognises UTF-8.
    pub bom: bool,
}

/// Writes rows in one format.
pub struct RowWriter<W: Write> {
    out: W,
    format: Format,
    style: Style,
    columns: Vec<String>,
    is_first: bool,
}

impl<W: Write> RowWriter<W> {
    /// A writer on `out`.
    pub fn new(out: W, format: Format, style: Style) -> Self {
        Self { out, format, style, columns: Vec::new(), is_first: true }
    }

    /// Writes what precedes the rows.
    pub fn begin<S: AsRef<str>>(&mut self, columns: &[S]) -> io::Result<()> {
        self.columns = columns.iter().map(|name| name.as_ref().to_owned()).collect();
        match self.format {
            Format::Csv | Format::Tsv => {
                if self.style.bom {
                    self.out.write_all("\u{feff}".as_bytes())?;
                }
                let names: Vec<Cow<'_, str>> =
                    columns.iter().map(|name| Cow::Borrowed(name.as_ref())).collect();
                self.line(&names)
            }
            Format::Json => self.out.write_all(b"["),
            Format::Ndjson => Ok(()),
        }
    }

    /// Writes a row.
    pub fn row(&mut self, fields: &[Cell]) -> io::Result<()> {
        match self.format {
            Format::Csv | Format::Tsv => {
                let cells: Vec<Cow<'_, str>> = fields.iter().map(|field| self.cell(field)).collect();
                self.line(&cells)
            }
            Format::Json => {
                let before: &[u8] = if self.is_first { b"\n" } else { b",\n" };
                self.is_first = false;
                self.out.write_all(before)?;
                self.object(fields)
            }
            Format::Ndjson => {
                self.object(fields)?;
                self.out.write_all(b"\n")
            }
        }
    }

    /// Writes what follows the rows.
    pub fn end(&mut self) -> io::Result<()> {
        if self.format == Format::Json {
            self.out.write_all(if self.is_first { b"]\n" } else { b"\n]\n" })?;
        }
        self.out.flush()
    }

    /// Returns the underlying writer.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn cell<'a>(&self, field: &'a Cell) -> Cow<'a, str> {
        match field {
            Cell::Null => Cow::Borrowed(""),
            Cell::Int(number) => Cow::Owned(number.to_string()),
            Cell::Flag(flag) => Cow::Borrowed(if *flag { "1" } else { "0" }),
            Cell::Word(word) => Cow::Borrowed(word),
            Cell::Text(text) => self.guarded(redact(text)),
            Cell::List(items) => self.guarded(Cow::Owned(redact(&items.join("; ")).into_owned())),
            Cell::Json(json) => self.guarded(Cow::Owned(hidden(json).to_string())),
        }
    }

    /// Spreadsheets run text that begins like a formula, unless it is preceded by an apostrophe.
    fn guarded<'a>(&self, text: Cow<'a, str>) -> Cow<'a, str> {
        if !self.style.raw && text.starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠', '\t', '\r']) {
            Cow::Owned(format!("'{text}"))
        } else {
            text
        }
    }

    fn line(&mut self, cells: &[Cow<'_, str>]) -> io::Result<()> {
        let (separator, end): (&[u8], &[u8]) = match self.format {
            Format::Tsv => (b"\t", b"\n"),
            _ => (b",", b"\r\n"),
        };
        for (number, cell) in cells.iter().enumerate() {
            if number > 0 {
                self.out.write_all(separator)?;
            }
            let cell = match self.format {
                Format::Tsv => flat(cell, self.style.raw),
                _ => quoted(cell),
            };
            self.out.write_all(cell.as_bytes())?;
        }
        self.out.write_all(end)
    }

    fn object(&mut self, fields: &[Cell]) -> io::Result<()> {
        self.out.write_all(b"{")?;
        for (number, (name, field)) in self.columns.iter().zip(fields).enumerate() {
            let before = if number > 0 { "," } else { "" };
            write!(self.out, "{before}\"{name}\":")?;
            let value = match field {
                Cell::Null => Json::Null,
                Cell::Int(number) => Json::from(*number),
                Cell::Flag(flag) => Json::from(*flag),
                Cell::Word(text) => Json::from(text.as_str()),
                Cell::Text(text) => Json::from(redact(text)),
                Cell::List(items) => items.iter().map(|item| redact(item)).collect(),
                Cell::Json(json) => hidden(json),
            };
            serde_json::to_writer(&mut self.out, &value)?;
        }
        self.out.write_all(b"}")
    }
}

/// Redacts our secrets, which stored texts from outside may repeat.
fn hidden(json: &Json) -> Json {
    match json {
        Json::String(text) => Json::from(redact(text)),
        Json::Array(items) => items.iter().map(hidden).collect(),
        Json::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), hidden(value))).collect(),
        Json::Null | Json::Bool(_) | Json::Number(_) => json.clone(),
    }
}

fn quoted(cell: &str) -> Cow<'_, str> {
    let is_plain = !cell.contains([',', '"', '\r', '\n']) && !cell.starts_with(' ') && !cell.ends_with(' ');
    if is_plain { Cow::Borrowed(cell) } else { Cow::Owned(format!("\"{}\"", cell.replace('"', "\"\""))) }
}

/// A cell on one line. For spreadsheets a leading quotation mark begins a quoted cell, which may contain a formula or
/// swallow the next cells; so the cell is quoted, unless the text is wanted unchanged.
fn flat(cell: &str, is_raw: bool) -> Cow<'_, str> {
    let cell = if cell.contains(['\t', '\r', '\n']) {
        Cow::Owned(cell.replace("\r\n", " ").replace(['\t', '\r', '\n'], " "))
    } else {
        Cow::Borrowed(cell)
    };
    if !is_raw && cell.starts_with('"') {
        Cow::Owned(format!("\"{}\"", cell.replace('"', "\"\"")))
    } else {
        cell
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const COLUMNS: &[&str] = &["a", "b", "c"];

    fn write(format: Format, style: Style, rows: &[Vec<Cell>]) -> String {
        let mut writer = RowWriter::new(Vec::new(), format, style);
        writer.begin(COLUMNS).unwrap();
        rows.iter().for_each(|row| writer.row(row).unwrap());
        writer.end().unwrap();
        String::from_utf8(writer.into_inner()).unwrap()
    }

    fn rows() -> Vec<Vec<Cell>> {
        vec![
            vec![Cell::Int(-1), Cell::Text("=1+1, \"x\"\n".into()), Cell::Null],
            vec![Cell::Flag(true), Cell::List(vec!["甲".into(), "乙".into()]), Cell::Word("w".into())],
        ]
    }

    #[test]
    fn a_quotation_mark_does_not_smuggle_a_formula_into_a_spreadsheet() {
        let cell = Cell::Text("\"=HYPERLINK(1)\"".into());
        let row = [vec![cell, Cell::Text("5\" disk".into()), Cell::Null]];
        assert_eq!(
            write(Format::Tsv, Style::default(), &row),
            "a\tb\tc\n\"\"\"=HYPERLINK(1)\"\"\"\t5\" disk\t\n"
        );
        let raw = Style { raw: true, ..Style::default() };
        assert_eq!(write(Format::Tsv, raw, &row), "a\tb\tc\n\"=HYPERLINK(1)\"\t5\" disk\t\n");
    }

    #[test]
    fn each_format_says_the_same() {
        assert_eq!(
            write(Format::Csv, Style::default(), &rows()),
            "a,b,c\r\n-1,\"'=1+1, \"\"x\"\"\n\",\r\n1,甲; 乙,w\r\n"
        );
        assert_eq!(
            write(Format::Tsv, Style { raw: true, bom: true }, &rows()),
            "\u{feff}a\tb\tc\n-1\t=1+1, \"x\" \t\n1\t甲; 乙\tw\n"
        );
        let json = write(Format::Json, Style::default(), &rows());
        let read: Json = serde_json::from_str(&json).unwrap();
        assert_eq!(read[0]["b"], "=1+1, \"x\"\n", "JSON is no spreadsheet");
        assert_eq!(read[1], serde_json::json!({ "a": true, "b": ["甲", "乙"], "c": "w" }));
        let lines = write(Format::Ndjson, Style::default(), &rows());
        assert_eq!(
            lines.lines().map(|line| serde_json::from_str::<Json>(line).unwrap()).collect::<Vec<_>>(),
            *read.as_array().unwrap()
        );
        assert_eq!(write(Format::Json, Style::default(), &[]), "[]\n");
    }

    #[test]
    fn what_repeats_a_secret_is_exported_without_it() {
        let secret = "exp\"orted-s3cret";
        let text = "[app]\nproxy = 'exp\"orted-s3cret'\n";
        let env = crate::config::Env::of([]);
        let config = crate::config::parse(text, std::path::Path::new("t.toml"), &[], &env).unwrap();
        assert_eq!(config.app.proxy.unwrap().reveal().unwrap().expose(), secret);
        let said = format!("no such token {secret}!");
        let row = || {
            vec![
                Cell::Text(said.clone()),
                Cell::List(vec![said.clone()]),
                Cell::Json(serde_json::json!([{ "said": said }])),
            ]
        };
        for format in [Format::Csv, Format::Tsv, Format::Json, Format::Ndjson] {
            let text = write(format, Style::default(), &[row()]);
            assert!(!text.contains("s3cret") && text.matches("[redacted]!").count() == 3, "{text}");
        }
    }

    #[test]
    fn formulas_of_others_are_made_harmless() {
        for text in ["=HYPERLINK(1)", "+1", "-1", "@SUM(1)", "\tx", "\rx"] {
            let csv = write(Format::Csv, Style::default(), &[vec![Cell::Text(text.into())]]);
            let cell = csv.lines().nth(1).unwrap().trim_start_matches('"');
            assert!(cell.starts_with('\''), "{csv}");
            let raw = write(Format::Csv, Style { raw: true, bom: false }, &[vec![Cell::Text(text.into())]]);
            assert!(!raw.contains('\''), "{raw}");
        }
    }

    /// A small reader of RFC 4180, to verify the output.
    fn read_csv(text: &str) -> Vec<Vec<String>> {
        let (mut rows, mut row, mut cell) = (Vec::new(), Vec::new(), String::new());
        let mut chars = text.chars().peekable();
        let mut inside = false;
        while let Some(c) = chars.next() {
            match c {
                '"' if inside && chars.peek() == Some(&'"') => {
                    cell.push('"');
                    chars.next();
                }
                '"' => inside = !inside,
                ',' if !inside => row.push(std::mem::take(&mut cell)),
                '\r' if !inside && chars.peek() == Some(&'\n') => {
                    chars.next();
                    row.push(std::mem::take(&mut cell));
                    rows.push(std::mem::take(&mut row));
                }
                c => cell.push(c),
            }
        }
        rows
    }

    proptest! {
        #[test]
        fn any_text_survives_csv(cells in proptest::collection::vec("[ -~\t\r\nあ\u{0}]{0,12}", 3)) {
            let fields: Vec<Cell> = cells.iter().cloned().map(Cell::Text).collect();
            let csv = write(Format::Csv, Style { raw: true, bom: false }, &[fields]);
            prop_assert_eq!(&read_csv(&csv)[1], &cells);
        }
    }
}
