//! `blog-watcher`: the states of blogs and the history of their checks, with the column names of both versions.

use std::collections::HashMap;
use std::path::PathBuf;

use super::source::{
    Record, Refusal, RowOutcome, SourceTable, import_table, is_no_list_of_texts, needed, needed_as, open,
    spare,
};
use super::{Options, Report, in_one_go};
use crate::blogs::store::{self, ImportedCheck, ImportedState};
use crate::db::{self, Db};
use crate::id::JobName;
use crate::parse::url::resolve_web;
use crate::phrase;
use crate::time::Timestamp;

const STATE: SourceTable = SourceTable {
    name: "blog_state",
    columns: &[
        needed("blog_id"),
        spare("etag", &[]),
        spare("last_modified", &[]),
        spare("url_fingerprint", &[]),
        spare("feed_url", &[]),
        spare("sitemap_url", &[]),
        spare("recent_entry_keys", &[]),
        needed_as("last_check_at", &["last_checked_at"]),
        spare("last_change_at", &["last_changed_at"]),
    ],
};
const HISTORY: SourceTable = SourceTable {
    name: "check_history",
    columns: &[
        needed("blog_id"),
        needed_as("checked_at", &["check_at"]),
        spare("http_status", &["status_code"]),
        spare("skipped", &[]),
        spare("changed", &[]),
        spare("url_fingerprint", &[]),
        spare("error_message", &["error"]),
    ],
};

/// Imports both tables for `job`.
pub async fn import(db: &Db, file: PathBuf, job: JobName, options: Options) -> db::Result<Report> {
    let (of, how) = (job.clone(), options.clone());
    in_one_go(db, &how, "blog-watcher", Some(&of), move |tx| {
        let source = open(&file, "blog-watcher", "blog_state")?;
        let mut report = Report::default();
        // When each blog was last read successfully; the state itself has only the last attempt.
        let mut good: HashMap<String, Timestamp> = HashMap::new();
        let history = import_table(tx, &source, &HISTORY, &options, &mut report, |tx, record, _| {
            let check = ImportedCheck {
                blog_id: blog_id(record)?,
                checked_at: record.time("checked_at")?,
                http_status: record.find_int("http_status")?,
                skipped: record.flag("skipped")?,
                changed: record.flag("changed")?,
                url_fingerprint: record.find_text("url_fingerprint")?,
                error_message: record.find_text("error_message")?.filter(|text| !text.is_empty()),
            };
            if check.error_message.is_none() && check.http_status.is_none_or(|status| status < 400) {
                let last = good.entry(check.blog_id.clone()).or_insert(check.checked_at);
                *last = (*last).max(check.checked_at);
            }
            Ok(RowOutcome::new(store::add_imported_check(tx, &check)?))
        })?;
        let states = import_table(tx, &source, &STATE, &options, &mut report, |tx, record, _| {
            let blog_id = blog_id(record)?;
            let last_check_at = record.time("last_check_at")?;
            let state = ImportedState {
                etag: record.find_text("etag")?,
                last_modified: record.find_text("last_modified")?,
                url_fingerprint: record.find_text("url_fingerprint")?,
                feed_url: address(record, "feed_url")?,
                sitemap_url: address(record, "sitemap_url")?,
                recent_entry_keys: keys(record)?,
                last_check_at,
                last_change_at: record.find_time("last_change_at")?,
                last_success_at: good.get(&blog_id).copied().unwrap_or(last_check_at).min(last_check_at),
                blog_id,
            };
            Ok(RowOutcome::new(store::add_state(tx, &job, &state)?))
        })?;
        report.tables.push(states.finish("blog_state"));
        report.tables.push(history.finish("check_history"));
        Ok(report)
    })
    .await
}

/// The ids of the blogs in the file.
pub fn list_ids(file: &std::path::Path) -> db::Result<Vec<String>> {
    let source = open(file, "blog-watcher", "blog_state")?;
    let mut ids = Vec::new();
    source.each("blog_state", &["blog_id"], |cells| {
        if let [crate::db::Raw::Text(bytes)] = cells
            && let Ok(id) = std::str::from_utf8(bytes)
        {
            // Read them as the import does.
            ids.extend(Some(id.trim().to_owned()).filter(|id| is_blog_id(id)));
        }
        Ok(())
    })?;
    Ok(ids)
}

fn blog_id(record: &Record<'_>) -> Result<String, Refusal> {
    let id = record.word("blog_id")?;
    if is_blog_id(&id) {
        Ok(id)
    } else {
        Err(Refusal(phrase!(
            "`blog_id` is not 1 to 200 printable characters",
            "`blog_id` が 1～200 文字の表示可能な文字列ではありません"
        )))
    }
}

fn is_blog_id(id: &str) -> bool {
    (1..=200).contains(&id.chars().count()) && !id.chars().any(char::is_control)
}

fn address(record: &Record<'_>, name: &str) -> Result<Option<String>, Refusal> {
    let Some(text) = record.find_text(name)?.filter(|text| !text.trim().is_empty()) else { return Ok(None) };
    match resolve_web(None, text.trim()) {
        Some(url) => Ok(Some(url.into())),
        None => {
            Err(Refusal(phrase!("`{name}` is not a web address", "`{name}` が Web アドレスではありません")))
        }
    }
}

fn keys(record: &Record<'_>) -> Result<Vec<String>, Refusal> {
    let Some(text) = record.find_text("recent_entry_keys")?.filter(|text| !text.trim().is_empty()) else {
        return Ok(Vec::new());
    };
    serde_json::from_str(&text).map_err(|_| is_no_list_of_texts("recent_entry_keys"))
}
