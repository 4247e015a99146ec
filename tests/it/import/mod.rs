//! Imports from other programs: files created with the CREATE TABLE of the seed documents, on both databases.

mod hostile;
pub(crate) mod lists;
mod round_trip;
mod silence;

use std::path::{Path, PathBuf};

use tsuzuki::db::Db;
use tsuzuki::import::{Options, Report};

/// The `items` of press releases, as its document defines it.
pub(crate) const MIC_BOT: &str = "
CREATE TABLE items (id INTEGER PRIMARY KEY AUTOINCREMENT, url TEXT NOT NULL UNIQUE, title TEXT NOT NULL,
  published_at TIMESTAMP NOT NULL, status INTEGER NOT NULL, reason INTEGER, retry_count INTEGER NOT NULL,
  created_at TIMESTAMP NOT NULL, last_checked_at TIMESTAMP NOT NULL);
CREATE UNIQUE INDEX idx_items_url ON items (url);";

/// The eight tables of books.
pub(crate) const DRE: &str = "
CREATE TABLE books (isbn13 TEXT PRIMARY KEY, title TEXT NOT NULL, authors_json TEXT, publisher TEXT,
  published_date TEXT, description TEXT, cover_url TEXT, links_json TEXT, source TEXT NOT NULL,
  first_seen_at TEXT NOT NULL, last_seen_at TEXT NOT NULL, last_delivered_at TEXT);
CREATE TABLE deliveries (id INTEGER PRIMARY KEY AUTOINCREMENT, job_name TEXT NOT NULL, delivered_at TEXT NOT NULL,
  isbn13_list_json TEXT NOT NULL);
CREATE TABLE delivery_items (id INTEGER PRIMARY KEY AUTOINCREMENT, delivery_id INTEGER NOT NULL REFERENCES deliveries (id),
  job_name TEXT NOT NULL, isbn13 TEXT NOT NULL, delivered_at TEXT NOT NULL, UNIQUE (job_name, isbn13));
CREATE TABLE job_state (job_name TEXT PRIMARY KEY, last_success_at TEXT, last_run_at TEXT);
CREATE TABLE api_usage (date TEXT, provider TEXT, count INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (date, provider));
CREATE TABLE prompts (id INTEGER PRIMARY KEY AUTOINCREMENT, isbn13 TEXT NOT NULL, prompt_text TEXT NOT NULL,
  created_at TEXT NOT NULL);
CREATE TABLE prompt_tokens (token TEXT PRIMARY KEY, prompt_id INTEGER NOT NULL REFERENCES prompts (id),
  expires_at TEXT NOT NULL, created_at TEXT NOT NULL);
CREATE TABLE collect_cursor (job_name TEXT NOT NULL, query_set_hash TEXT NOT NULL, start_index INTEGER NOT NULL DEFAULT 0,
  is_exhausted INTEGER NOT NULL DEFAULT 0, last_updated_at TEXT NOT NULL DEFAULT (datetime('now')),
  PRIMARY KEY (job_name, query_set_hash));";

/// State and history of blogs.
pub(crate) const BLOG_WATCHER: &str = "
CREATE TABLE blog_state (blog_id TEXT PRIMARY KEY, etag TEXT, last_modified TEXT, url_fingerprint TEXT, feed_url TEXT,
  sitemap_url TEXT, recent_entry_keys TEXT, last_check_at TEXT NOT NULL, last_change_at TEXT);
CREATE TABLE check_history (id INTEGER PRIMARY KEY AUTOINCREMENT, blog_id TEXT NOT NULL, checked_at TEXT NOT NULL,
  http_status INTEGER, skipped INTEGER NOT NULL DEFAULT 0, changed INTEGER NOT NULL DEFAULT 0, url_fingerprint TEXT,
  error_message TEXT);";

/// Projects, commits and runs.
pub(crate) const GITLAB_ANALYZER: &str = "
CREATE TABLE projects (project_id INTEGER PRIMARY KEY, name TEXT NOT NULL, path_with_namespace TEXT NOT NULL);
CREATE TABLE commits (project_id INTEGER NOT NULL, branch_name TEXT NOT NULL, sha TEXT NOT NULL, author_name TEXT NOT NULL,
  author_email TEXT NOT NULL, committed_date_utc TEXT NOT NULL, additions INTEGER NOT NULL, deletions INTEGER NOT NULL,
  UNIQUE (project_id, branch_name, sha));
CREATE TABLE bulk_collection_runs (run_id TEXT PRIMARY KEY, started_at_utc TEXT NOT NULL, completed_at_utc TEXT,
  status TEXT NOT NULL CHECK (status IN ('running', 'completed', 'cancelled')), total_targets INTEGER NOT NULL,
  completed_count INTEGER NOT NULL DEFAULT 0, failed_count INTEGER NOT NULL DEFAULT 0, success_count INTEGER NOT NULL DEFAULT 0);
CREATE TABLE bulk_collection_results (run_id TEXT NOT NULL, project_id INTEGER NOT NULL, branch_name TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('pending', 'success', 'failed')), new_commits_count INTEGER, error_message TEXT,
  processed_at_utc TEXT, PRIMARY KEY (run_id, project_id, branch_name),
  FOREIGN KEY (run_id) REFERENCES bulk_collection_runs (run_id) ON DELETE CASCADE);";

/// A file of another program, created from SQL.
pub(crate) fn source(dir: &Path, name: &str, sql: &str) -> PathBuf {
    let path = dir.join(name);
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch(&format!("PRAGMA foreign_keys = off; BEGIN; {sql}; COMMIT")).unwrap();
    path
}

/// `found/added/known/refused` of each table.
pub(crate) fn figures(report: &Report) -> Vec<String> {
    let of = |table: &tsuzuki::import::TableReport| {
        format!("{} {}/{}/{}/{}", table.table, table.found, table.added, table.known, table.refused)
    };
    report.tables.iter().map(of).collect()
}

pub(crate) fn options() -> Options {
    Options::plain()
}

pub(crate) fn dry() -> Options {
    Options { dry_run: true, ..Options::plain() }
}

/// Everything in the database, for telling whether anything changed.
pub(crate) async fn everything(db: &Db) -> Vec<(String, u64, String)> {
    let tables = tsuzuki::db::survey(db).await.unwrap();
    tables.into_iter().map(|(name, table)| (name, table.rows, table.checksum)).collect()
}

/// Every row of a statement as text, in its order.
pub(crate) async fn rows(db: &Db, sql: &'static tsuzuki::db::Sql, width: usize) -> Vec<String> {
    db.read(move |tx| {
        tx.list(sql, tsuzuki::params![], |row| {
            let cells = (0..width).map(|column| {
                Ok(match row.get::<tsuzuki::db::Value<'static>>(column)? {
                    tsuzuki::db::Value::Null => "-".to_owned(),
                    tsuzuki::db::Value::Int(number) => number.to_string(),
                    tsuzuki::db::Value::Real(number) => number.to_string(),
                    tsuzuki::db::Value::Text(text) => text.into_owned(),
                })
            });
            Ok(cells.collect::<tsuzuki::db::Result<Vec<_>>>()?.join(" | "))
        })
    })
    .await
    .unwrap()
}
