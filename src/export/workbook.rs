//! Rows as a workbook with one sheet, for spreadsheets: numbers stay numbers, and no text becomes a formula.

use rust_xlsxwriter::{Format, Workbook};

use super::Cell;
use crate::config::redact;

pub type NotWritten = rust_xlsxwriter::XlsxError;

/// The bytes of a workbook with one sheet: frozen headings, and the rows.
pub fn render_workbook(
    sheet_name: &str,
    columns: &[String],
    rows: impl IntoIterator<Item = Vec<Cell>>,
) -> Result<Vec<u8>, NotWritten> {
    let mut workbook = Workbook::new();
    let sheet = workbook.add_worksheet().set_name(sheet_name)?;
    let bold = Format::new().set_bold();
    for (column, heading) in (0..).zip(columns) {
        sheet.write_string_with_format(0, column, heading, &bold)?;
    }
    sheet.set_freeze_panes(1, 0)?;
    for (row, fields) in (1..).zip(rows) {
        for (column, field) in (0..).zip(fields) {
            match field {
                Cell::Null => {}
                // A cell of a sheet holds a double.
                Cell::Int(number) => drop(sheet.write_number(row, column, number as f64)?),
                Cell::Flag(flag) => drop(sheet.write_boolean(row, column, flag)?),
                Cell::Word(word) => drop(sheet.write_string(row, column, word)?),
                Cell::Text(text) => drop(sheet.write_string(row, column, redact(&text))?),
                Cell::List(items) => drop(sheet.write_string(row, column, redact(&items.join("; ")))?),
                Cell::Json(json) => drop(sheet.write_string(row, column, redact(&json.to_string()))?),
            }
        }
    }
    sheet.autofit();
    workbook.save_to_buffer()
}
