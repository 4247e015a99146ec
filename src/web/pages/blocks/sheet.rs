//! Numbers that can be copied into a spreadsheet and downloaded.

use askama::Template;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};

use super::BlockContext;
use crate::engine::page::Sheet;
use crate::engine::table::Cell;
use crate::export::{self, Format, RowWriter, Style};
use crate::phrase::{Phrase, Speech};
use crate::web::pages::render::Renderer;

#[derive(Template)]
#[template(path = "pages/blocks/sheet.html")]
pub(super) struct SheetPart<'a> {
    r: &'a Renderer,
    sheet: &'a Sheet,
    tsv: String,
    csv_href: String,
    xlsx_href: String,
}

impl<'a> SheetPart<'a> {
    pub(super) fn new(context: &BlockContext<'a>, sheet: &'a Sheet) -> Self {
        let href = |format: &str| context.query.with("format", format);
        Self {
            r: context.r,
            sheet,
            tsv: write(sheet, Format::Tsv, Style::default(), &context.r.speech),
            csv_href: href("csv"),
            xlsx_href: href("xlsx"),
        }
    }

    fn cell(&self, field: &Cell) -> String {
        match field {
            Cell::Int(number) => self.r.count(number),
            Cell::Word(text) | Cell::Text(text) => text.clone(),
            Cell::Null => self.r.say("total", "合計").to_owned(),
            Cell::Flag(_) | Cell::List(_) | Cell::Json(_) => String::new(),
        }
    }
}

fn columns(sheet: &Sheet, speech: &Speech) -> Vec<String> {
    sheet.columns.iter().map(|column: &Phrase| speech.phrase(column)).collect()
}

fn write(sheet: &Sheet, format: Format, style: Style, speech: &Speech) -> String {
    let mut writer = RowWriter::new(Vec::new(), format, style);
    let written = writer
        .begin(&columns(sheet, speech))
        .and_then(|()| sheet.rows.iter().try_for_each(|row| writer.row(row)))
        .and_then(|()| writer.end());
    // Writing into memory cannot fail, and the content is UTF-8.
    written.ok().and_then(|()| String::from_utf8(writer.into_inner()).ok()).unwrap_or_default()
}

/// The sheet as a file; nothing if there is no such format.
pub(in crate::web::pages) fn download(sheet: &Sheet, format: &str, speech: &Speech) -> Option<Response> {
    let (media_type, bytes) = match format {
        "csv" => {
            // Excel needs the BOM to detect UTF-8.
            let style = Style { bom: true, ..Style::default() };
            ("text/csv; charset=utf-8", write(sheet, Format::Csv, style, speech).into_bytes())
        }
        "tsv" => (
            "text/tab-separated-values; charset=utf-8",
            write(sheet, Format::Tsv, Style::default(), speech).into_bytes(),
        ),
        "xlsx" => {
            let rows = sheet.rows.iter().cloned();
            let workbook = export::render_workbook(sheet.name, &columns(sheet, speech), rows);
            let bytes =
                workbook.inspect_err(|error| tracing::error!("A workbook cannot be written: {error}"));
            ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", bytes.ok()?)
        }
        _ => return None,
    };
    let name = format!("attachment; filename=\"{}.{format}\"", sheet.name);
    Some(([(CONTENT_TYPE, media_type.to_owned()), (CONTENT_DISPOSITION, name)], bytes).into_response())
}
