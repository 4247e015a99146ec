//! `dre`: books and their deliveries, prompts and their links, cursors and quotas.

mod tables;

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

use serde_json::Value as Json;

use self::tables::{
    API_USAGE, BOOKS, COLLECT_CURSOR, DELIVERIES, DELIVERY_ITEMS, JOB_STATE, PROMPT_TOKENS, PROMPTS,
};
use super::source::{
    Record, Refusal, RowError, RowOutcome, SourceTable, import_table, is_empty, is_no_list_of_texts, open,
    quote,
};
use super::{Options, Report, in_one_go};
use crate::books::model::Isbn13;
use crate::books::store::{self, ImportedBook};
use crate::books::token::Token;
use crate::db::{self, Db, Foreign, Tx};
use crate::engine;
use crate::id::JobName;
use crate::ledger::cursor::{self, Cursor};
use crate::ledger::quota::{self, QuotaUsage};
use crate::phrase;
use crate::text::{one_line, printable};

/// The longest name of a provider.
const MAX_PROVIDER_CHARS: usize = 200;

/// The job name under which dre records mails with the books of several jobs.
const COMBINED: &str = "combined";

///
/// A book sent under the name `combined` counts as sent for every job, so that none of them sends it again.
///
/// `readers` are the jobs of our own config. Undelivered books go to the job `owner`; without it, to the only job that
/// the file and `jobs` have.
pub async fn import(
    db: &Db,
    file: PathBuf,
    owner: Option<JobName>,
    jobs: BTreeSet<JobName>,
    readers: BTreeSet<JobName>,
    options: Options,
) -> db::Result<Report> {
    let how = options.clone();
    in_one_go(db, &how, "dre", owner.clone().as_ref(), move |tx| {
        let source = open(&file, "dre", "books")?;
        let mut import = Import {
            source: &source,
            options: &options,
            report: Report::default(),
            jobs: RefCell::new(jobs.clone()),
        };
        import.books(tx)?;
        import.deliveries(tx)?;
        import.ledger(tx)?;
        import.prompts(tx)?;
        let readers: BTreeSet<JobName> = readers.iter().chain(&owner).cloned().collect();
        import.assign_undelivered(tx, owner.as_ref(), &readers)?;
        import.combined(tx, &jobs, &readers)?;
        Ok(import.report)
    })
    .await
}

/// A valid job name: the source's own, or the most similar one.
pub fn job_name(text: &str) -> Option<JobName> {
    let text = text.trim();
    if let Ok(name) = text.parse() {
        return Some(name);
    }
    let usable = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
    let mended: String = text.chars().map(usable).take(JobName::MAX_CHARS).collect();
    mended.trim_matches('-').parse().ok()
}

struct Import<'a> {
    source: &'a Foreign,
    options: &'a Options,
    report: Report,
    /// Every job seen so far.
    jobs: RefCell<BTreeSet<JobName>>,
}

impl Import<'_> {
    fn table(
        &mut self,
        tx: &mut Tx<'_>,
        table: &SourceTable,
        mut take: impl FnMut(&mut Tx<'_>, &Record<'_>) -> Result<RowOutcome, RowError>,
    ) -> db::Result<()> {
        let tally = import_table(tx, self.source, table, self.options, &mut self.report, |tx, record, _| {
            take(tx, record)
        })?;
        self.report.tables.push(tally.finish(table.name));
        Ok(())
    }

    fn books(&mut self, tx: &mut Tx<'_>) -> db::Result<()> {
        self.table(tx, &BOOKS, |tx, record| {
            let book = ImportedBook {
                isbn13: isbn(record)?.as_str().to_owned(),
                title: title(record)?,
                authors_json: json_list(record, "authors_json")?,
                publisher: find_line(record, "publisher")?,
                published_date: find_line(record, "published_date")?,
                description: record.find_text("description")?.map(|text| printable(&text)),
                cover_url: find_line(record, "cover_url")?,
                links_json: json_list(record, "links_json")?,
                source: find_line(record, "source")?
                    .unwrap_or_else(|| crate::books::model::GOOGLE_BOOKS.into()),
                first_seen_at: record.time("first_seen_at")?,
                last_seen_at: record.time("last_seen_at")?,
                last_delivered_at: record.find_time("last_delivered_at")?,
            };
            Ok(RowOutcome::new(store::add_book(tx, &book)?))
        })
    }

    fn deliveries(&mut self, tx: &mut Tx<'_>) -> db::Result<()> {
        // From the source's ids to ours; one for each mail, so this stays small.
        let mut ours: HashMap<i64, i64> = HashMap::new();
        let jobs = std::mem::take(&mut self.jobs);
        self.table(tx, &DELIVERIES, |tx, record| {
            let job = job_of(record, &jobs)?;
            let list = record.text("isbn13_list_json")?;
            serde_json::from_str::<Vec<String>>(&list)
                .map_err(|_| is_no_list_of_texts("isbn13_list_json"))?;
            let (id, is_new) = store::add_delivery(tx, job.as_str(), record.time("delivered_at")?, &list)?;
            ours.insert(record.int("id")?, id);
            Ok(RowOutcome::new(is_new))
        })?;
        self.table(tx, &DELIVERY_ITEMS, |tx, record| {
            let job = job_of(record, &jobs)?;
            let isbn13 = isbn(record)?;
            let at = record.time("delivered_at")?;
            let now = tx.now();
            store::mark_sent(tx, job.as_str(), isbn13.as_str(), Some(at), now)?;
            match ours.get(&record.int("delivery_id")?) {
                Some(id) => {
                    Ok(RowOutcome::new(store::add_delivery_item(tx, *id, job.as_str(), isbn13.as_str(), at)?))
                }
                None => Err(Refusal(phrase!(
                    "its delivery is missing; the book still counts as sent",
                    "対応する deliveries の行がありません（本は送信済みとして扱います）"
                ))
                .into()),
            }
        })?;
        self.jobs = jobs;
        Ok(())
    }

    /// Imports cursors and quotas.
    fn ledger(&mut self, tx: &mut Tx<'_>) -> db::Result<()> {
        let jobs = std::mem::take(&mut self.jobs);
        self.table(tx, &JOB_STATE, |tx, record| {
            let job = job_of(record, &jobs)?;
            let (success, run) = (record.find_time("last_success_at")?, record.find_time("last_run_at")?);
            Ok(RowOutcome::new(engine::store::add_state(tx, job.as_str(), success, run)?))
        })?;
        self.table(tx, &API_USAGE, |tx, record| {
            let date = record.word("date")?;
            if date.len() != 10 || date.parse::<jiff::civil::Date>().is_err() {
                return Err(Refusal(phrase!(
                    "`date` is not a day: {date}",
                    "`date` を日付として読めません：{date}",
                    date = quote(&date)
                ))
                .into());
            }
            let provider = record.word("provider")?;
            if provider.chars().count() > MAX_PROVIDER_CHARS || provider.chars().any(char::is_control) {
                return Err(Refusal(phrase!(
                    "`provider` is not 1 to {most} printable characters",
                    "`provider` が 1～{most} 文字の表示可能な文字列ではありません",
                    most = MAX_PROVIDER_CHARS
                ))
                .into());
            }
            let usage = QuotaUsage { date, provider, count: record.count("count")? };
            Ok(RowOutcome::new(quota::add_usage(tx, &usage)?))
        })?;
        self.table(tx, &COLLECT_CURSOR, |tx, record| {
            let hash = record.word("query_set_hash")?;
            if hash.len() != 64 || !hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err(Refusal(phrase!(
                    "`query_set_hash` is not a SHA-256",
                    "`query_set_hash` が SHA-256 ではありません"
                ))
                .into());
            }
            let cursor = Cursor {
                job_name: job_of(record, &jobs)?.to_string(),
                query_set_hash: hash.to_ascii_lowercase(),
                start_index: record.count("start_index")?,
                is_exhausted: record.flag("is_exhausted")?,
                last_updated_at: record.time("last_updated_at")?,
            };
            Ok(RowOutcome::new(cursor::add(tx, &cursor)?))
        })?;
        self.jobs = jobs;
        Ok(())
    }

    fn prompts(&mut self, tx: &mut Tx<'_>) -> db::Result<()> {
        let mut ours: HashMap<i64, i64> = HashMap::new();
        self.table(tx, &PROMPTS, |tx, record| {
            let isbn13 = isbn(record)?;
            let at = record.time("created_at")?;
            let text = printable(&record.word("prompt_text")?);
            let (id, is_new) = store::add_prompt(tx, isbn13.as_str(), &text, at)?;
            ours.insert(record.int("id")?, id);
            Ok(RowOutcome::new(is_new))
        })?;
        self.table(tx, &PROMPT_TOKENS, |tx, record| {
            let token: Token = record.word("token")?.to_ascii_lowercase().parse().map_err(|_| {
                Refusal(phrase!(
                    "`token` is not 32 hex characters",
                    "`token` が 16 進数 32 文字ではありません"
                ))
            })?;
            let Some(prompt) = ours.get(&record.int("prompt_id")?) else {
                return Err(
                    Refusal(phrase!("its prompt is missing", "対応するプロンプトがありません")).into()
                );
            };
            let (expires, created) = (record.time("expires_at")?, record.time("created_at")?);
            Ok(RowOutcome::new(store::add_known_token(tx, &token, *prompt, expires, created)?))
        })
    }

    /// Assigns the books without `delivery_items` to a job: as waiting, or as sent if they were sent before
    /// `delivery_items` existed.
    fn assign_undelivered(
        &mut self,
        tx: &mut Tx<'_>,
        owner: Option<&JobName>,
        readers: &BTreeSet<JobName>,
    ) -> db::Result<()> {
        let jobs = self.jobs.borrow().clone();
        let mut real = jobs.iter().filter(|job| job.as_str() != COMBINED);
        let owner = owner.or_else(|| real.next().filter(|_| real.next().is_none()));
        let all: BTreeSet<&JobName> = jobs.iter().chain(readers).collect();
        let (mut waiting, mut unassigned) = (0_u64, 0_u64);
        let mut silent = Report::default();
        import_table(tx, self.source, &BOOKS, self.options, &mut silent, |tx, record, _| {
            let isbn13 = isbn(record)?;
            let (first_seen, sent) = (record.time("first_seen_at")?, record.find_time("last_delivered_at")?);
            for job in jobs.iter().chain(owner) {
                if store::is_delivered(tx, job.as_str(), isbn13.as_str())? {
                    return Ok(RowOutcome::Known);
                }
            }
            let now = tx.now();
            match (sent, owner) {
                (Some(at), Some(owner)) => {
                    store::mark_sent(tx, owner.as_str(), isbn13.as_str(), Some(at), now)?;
                }
                // The job that sent it is unknown, so no job may send it as new.
                (Some(_), None) if !all.is_empty() => {
                    for job in &all {
                        store::mark_sent(tx, job.as_str(), isbn13.as_str(), None, now)?;
                    }
                }
                (None, Some(owner)) => {
                    waiting +=
                        u64::from(store::add_waiting(tx, owner.as_str(), isbn13.as_str(), first_seen)?);
                }
                (_, None) => unassigned += 1,
            }
            Ok(RowOutcome::Known)
        })?;
        if let (1.., Some(owner)) = (waiting, owner) {
            self.report.note(phrase!(
                "now waiting in the job `{owner}`: {waiting undelivered book}",
                "ジョブ `{owner}` で未送信の本：{waiting} 冊"
            ));
        }
        if unassigned > 0 {
            self.report.note(phrase!("of no job: {unassigned undelivered book}; name one with --job to have them sent", "どのジョブにも属さない未送信の本：{unassigned} 冊。送信するには --job でジョブを指定してください"));
        }
        Ok(())
    }
}

impl Import<'_> {
    /// Marks books sent under the name `combined` as sent by all jobs.
    fn combined(
        &mut self,
        tx: &mut Tx<'_>,
        own: &BTreeSet<JobName>,
        readers: &BTreeSet<JobName>,
    ) -> db::Result<()> {
        if own.iter().chain(readers).any(|job| job.as_str() == COMBINED) {
            return Ok(());
        }
        let all = &*self.jobs.borrow() | readers;
        let mut marked = BTreeSet::new();
        let mut silent = Report::default();
        import_table(tx, self.source, &DELIVERY_ITEMS, self.options, &mut silent, |tx, record, _| {
            let (isbn13, at, now) = (isbn(record)?, record.time("delivered_at")?, tx.now());
            if record.word("job_name")? == COMBINED {
                for job in all.iter().filter(|job| job.as_str() != COMBINED) {
                    store::mark_sent(tx, job.as_str(), isbn13.as_str(), Some(at), now)?;
                }
                marked.insert(isbn13.as_str().to_owned());
            }
            Ok(RowOutcome::Known)
        })?;
        if !marked.is_empty() {
            self.report.note(phrase!(
                "sent in combined mails, and not sent again by any job: {count book}",
                "まとめメールで送信済みのため、どのジョブからも再送しない本：{count} 冊",
                count = marked.len()
            ));
        }
        Ok(())
    }
}

fn job_of(record: &Record<'_>, jobs: &RefCell<BTreeSet<JobName>>) -> Result<JobName, Refusal> {
    let text = record.word("job_name")?;
    let name = job_name(&text).ok_or_else(|| {
        Refusal(phrase!(
            "`job_name` is not a usable name: {text}",
            "`job_name` は名前に使えません：{text}",
            text = quote(&text)
        ))
    })?;
    jobs.borrow_mut().insert(name.clone());
    Ok(name)
}

fn isbn(record: &Record<'_>) -> Result<Isbn13, Refusal> {
    record
        .word("isbn13")?
        .parse()
        .map_err(|_| Refusal(phrase!("`isbn13` is not an ISBN", "`isbn13` が ISBN ではありません")))
}

fn title(record: &Record<'_>) -> Result<String, Refusal> {
    match one_line(&record.word("title")?) {
        title if title.is_empty() => Err(is_empty("title")),
        title => Ok(title),
    }
}

/// A text on one line and without control characters: its content comes from web searches.
fn find_line(record: &Record<'_>, name: &str) -> Result<Option<String>, Refusal> {
    Ok(record.find_text(name)?.map(|text| one_line(&text)))
}

/// A JSON array as it is, or nothing; report other JSON now, since it would be read as nothing later.
fn json_list(record: &Record<'_>, name: &str) -> Result<Option<String>, Refusal> {
    let Some(text) = record.find_text(name)?.filter(|text| !text.trim().is_empty()) else { return Ok(None) };
    match serde_json::from_str::<Vec<Json>>(&text) {
        Ok(list) => {
            let cleaned: Vec<Json> = list.iter().cloned().map(cleaned).collect();
            // Keep the exact bytes of clean texts.
            Ok(Some(if cleaned == list { text } else { Json::Array(cleaned).to_string() }))
        }
        Err(_) => {
            Err(Refusal(phrase!("`{name}` is not a JSON array", "`{name}` が JSON 配列ではありません")))
        }
    }
}

/// Puts every text in it on one line.
fn cleaned(value: Json) -> Json {
    match value {
        Json::String(text) => Json::String(one_line(&text)),
        Json::Array(items) => items.into_iter().map(cleaned).collect(),
        Json::Object(fields) => fields.into_iter().map(|(key, value)| (key, cleaned(value))).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_jobs_are_kept_or_mended() {
        let name = |text: &str| job_name(text).map(|name| name.to_string());
        assert_eq!(name("ai-books").as_deref(), Some("ai-books"));
        assert_eq!(name(" AI 書籍/新刊 ").as_deref(), Some("AI-書籍-新刊"));
        assert_eq!(name("--"), None);
        assert_eq!(name(""), None);
    }
}
