//! Exports of rows as files for other programs: read in pages along a key, written row by row.

mod format;
mod workbook;

use std::io::Write;

use tokio_util::sync::CancellationToken;

pub use crate::engine::Cell;
pub use format::{Format, RowWriter, Style};
pub use workbook::{NotWritten, render_workbook};

use crate::db::{self, Db};
use crate::engine::table::{After, Table, TableFilter};

/// Why an export failed or stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database failed.
    #[error(transparent)]
    Db(#[from] db::Error),
    /// The file or pipe cannot be written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// It was asked to stop.
    #[error("the export was interrupted")]
    Stopped,
}

/// Writes every row that matches `filter`; returns how many there were.
pub async fn write<W: Write>(
    db: &Db,
    table: &'static Table,
    filter: &TableFilter,
    writer: &mut RowWriter<W>,
    stop: &CancellationToken,
) -> Result<u64, Error> {
    writer.begin(table.columns)?;
    let (mut next, mut count) = (Some(String::new()), 0);
    while let Some(after) = next {
        if stop.is_cancelled() {
            return Err(Error::Stopped);
        }
        let filter = filter.clone();
        let page = db.read(move |tx| (table.page)(tx, &filter, After(&after))).await?;
        for row in &page.rows {
            writer.row(row)?;
        }
        count += page.rows.len() as u64;
        next = page.next;
    }
    writer.end()?;
    Ok(count)
}
