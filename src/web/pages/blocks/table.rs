//! Renders tables, and progress with its parts as a table.

use askama::Template;

use super::BlockContext;
use crate::engine::page::{ProgressBlock, TableBlock, TableRow};
use crate::phrase::Value;
use crate::web::chart;
use crate::web::pages::render::{Markup, Renderer};

#[derive(Template)]
#[template(path = "pages/blocks/table.html")]
pub(super) struct TablePart<'a> {
    r: &'a Renderer,
    table: &'a TableBlock,
    rows: RowsPart<'a>,
}

impl<'a> TablePart<'a> {
    pub(super) fn new(context: &BlockContext<'a>, index: usize, table: &'a TableBlock) -> Self {
        Self { r: context.r, table, rows: RowsPart::new(context, index, table) }
    }
}

#[derive(Template)]
#[template(path = "pages/blocks/rows.html")]
struct RowsPart<'a> {
    r: &'a Renderer,
    table: &'a TableBlock,
    rows: Vec<RowPart<'a>>,
    has_charts: bool,
    has_actions: bool,
}

struct RowPart<'a> {
    row: &'a TableRow,
    chart: Option<String>,
    actions: Markup,
}

impl<'a> RowsPart<'a> {
    fn new(context: &BlockContext<'a>, index: usize, table: &'a TableBlock) -> Self {
        let row = |(number, row): (usize, &'a TableRow)| RowPart {
            row,
            chart: row
                .chart
                .as_ref()
                .map(|drawn| chart::draw(drawn, &format!("c{index}-{number}"), &context.r.speech).svg),
            actions: context.actions(&row.actions),
        };
        let rows: Vec<RowPart<'a>> = table.rows.iter().enumerate().map(row).collect();
        let has_charts = rows.iter().any(|row| row.chart.is_some());
        let has_actions = rows.iter().any(|row| !row.actions.as_str().is_empty());
        Self { r: context.r, table, rows, has_charts, has_actions }
    }

    /// How many cells a row has.
    fn width(&self) -> usize {
        self.table.columns.len() + usize::from(self.has_charts) + usize::from(self.has_actions)
    }

    /// The heading of a column, for narrow layouts that show it in each cell.
    fn label(&self, column: &usize) -> String {
        self.table.columns.get(*column).map(|heading| self.r.plain(heading)).unwrap_or_default()
    }

    /// Whether a column holds numbers.
    fn is_numeric(&self, column: &usize) -> bool {
        self.table.rows.iter().filter_map(|row| row.cells.get(*column)).any(Self::is_number)
    }

    /// Whether a cell holds a number, which is right-aligned.
    fn is_number(value: &Value) -> bool {
        matches!(value, Value::Count(_) | Value::Bytes(_))
    }
}

#[derive(Template)]
#[template(path = "pages/blocks/progress.html")]
pub(super) struct ProgressPart<'a> {
    r: &'a Renderer,
    progress: &'a ProgressBlock,
    actions: Markup,
    parts: RowsPart<'a>,
}

impl<'a> ProgressPart<'a> {
    pub(super) fn new(context: &BlockContext<'a>, index: usize, progress: &'a ProgressBlock) -> Self {
        Self {
            r: context.r,
            progress,
            actions: context.actions(&progress.actions),
            parts: RowsPart::new(context, index, &progress.parts),
        }
    }
}
