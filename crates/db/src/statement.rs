//! SQL texts: constants that are gathered for a test that prepares every one of them.

use std::sync::OnceLock;

use super::Dialect;

/// One SQL text for both databases. Create it with [`sql!`](crate::sql).
#[derive(Debug)]
pub struct Sql {
    text: &'static str,
    /// The number of rows that `{rows}` stands for.
    rows: usize,
    at: &'static str,
    sqlite: OnceLock<String>,
    postgres: OnceLock<String>,
}

/// Every statement of the program, gathered by the linker.
#[allow(unsafe_code, reason = "linkme gathers the statics of `sql!` from their section, nothing else")]
#[linkme::distributed_slice]
pub static STATEMENTS: [Sql];

impl Sql {
    /// Use [`sql!`](crate::sql) instead.
    #[doc(hidden)]
    pub const fn new(text: &'static str, rows: usize, at: &'static str) -> Self {
        Self { text, rows, at, sqlite: OnceLock::new(), postgres: OnceLock::new() }
    }

    /// The text for `dialect`, rendered once.
    pub fn render(&self, dialect: Dialect) -> &str {
        let made = match dialect {
            Dialect::Sqlite => &self.sqlite,
            Dialect::Postgres => &self.postgres,
        };
        made.get_or_init(|| {
            let rows = format!("{{values {}x{}}}", self.rows, self.columns());
            dialect.render(&self.text.replace("{rows}", &rows))
        })
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// How many columns an INSERT names.
    pub(super) fn columns(&self) -> usize {
        self.text.split(['(', ')']).nth(1).map_or(0, |columns| columns.split(',').count())
    }

    /// Its position in the source.
    pub fn at(&self) -> &'static str {
        self.at
    }
}

/// Creates a `&'static Sql` from a literal: `tx.execute(sql!("DELETE FROM t WHERE id = ?1"), params![id])`.
///
/// Placeholders are `?1`, `?2`, …; differences between the databases are `{markers}` of
/// [`Dialect::render`](crate::Dialect::render).
#[macro_export]
macro_rules! sql {
    ($text:expr) => {
        $crate::sql!($text, 1)
    };
    ($text:expr, $rows:literal) => {{
        #[allow(unsafe_code, reason = "linkme puts the static into a section of its own, nothing else")]
        #[linkme::distributed_slice($crate::STATEMENTS)]
        static STATEMENT: $crate::Sql = $crate::Sql::new($text, $rows, concat!(file!(), ":", line!()));
        &STATEMENT
    }};
}

/// Creates an INSERT of any number of rows for [`Tx::execute_rows`](crate::Tx::execute_rows): `sql_rows!("INSERT INTO t
/// (a, b) {rows} ON CONFLICT DO NOTHING")`.
#[macro_export]
macro_rules! sql_rows {
    ($text:expr) => {
        &[$crate::sql!($text, 100), $crate::sql!($text, 25), $crate::sql!($text, 5), $crate::sql!($text, 1)]
    };
}

/// Creates the parameter list of a statement: `params![name, 3, now]`.
#[macro_export]
macro_rules! params {
    () => { &[] as &[$crate::Value<'_>] };
    ($($value:expr),+ $(,)?) => { &[$($crate::ToValue::to_value(&$value)),+] as &[$crate::Value<'_>] };
}
