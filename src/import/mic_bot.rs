//! `mic-bot`: the items of a bot that posts press releases.

use std::path::PathBuf;

use super::source::{
    Refusal, RowOutcome, SourceColumn, SourceTable, import_table, needed, open, quote, spare,
};
use super::{Options, Report, in_one_go};
use crate::db::{self, Db};
use crate::id::JobName;
use crate::phrase;
use crate::press::model::{Reason, Status};
use crate::press::store::{self, ImportedItem};
use crate::press::{item_title, item_url};

const COLUMNS: &[SourceColumn] = &[
    needed("url"),
    needed("title"),
    needed("published_at"),
    needed("status"),
    spare("reason", &[]),
    needed("retry_count"),
    needed("created_at"),
    needed("last_checked_at"),
];
const ITEMS: SourceTable = SourceTable { name: "items", columns: COLUMNS };

/// Imports `items` for `job`, whose feed is `feed` if the config has it.
pub async fn import(
    db: &Db,
    file: PathBuf,
    job: JobName,
    feed: Option<String>,
    options: Options,
) -> db::Result<Report> {
    let (of, how) = (job.clone(), options.clone());
    in_one_go(db, &how, "mic-bot", Some(&of), move |tx| {
        let source = open(&file, "mic-bot", "items")?;
        let mut report = Report::default();
        let tally = import_table(tx, &source, &ITEMS, &options, &mut report, |tx, record, _| {
            let link = record.word("url")?;
            let url = item_url(&link).ok_or_else(|| {
                Refusal(phrase!(
                    "`url` is not a web address: {link}",
                    "`url` が Web アドレスではありません：{link}",
                    link = quote(&link)
                ))
            })?;
            let status = Status::from_code(record.int("status")?).ok_or_else(|| {
                Refusal(phrase!("`status` is not 0, 1, 2 or 3", "`status` が 0～3 ではありません"))
            })?;
            let reason = match record.find_int("reason")? {
                None => None,
                Some(code) => Some(Reason::from_code(code).ok_or_else(|| {
                    Refusal(phrase!("`reason` is not 0 to 6", "`reason` が 0～6 ではありません"))
                })?),
            };
            let item = ImportedItem {
                title: item_title(&record.text("title")?, &url),
                url,
                published_at: record.time("published_at")?,
                status,
                reason,
                retry_count: i64::from(
                    u32::try_from(record.count("retry_count")?).map_err(|_| {
                        Refusal(phrase!("`retry_count` is too large", "`retry_count` が大きすぎます"))
                    })?,
                ),
                created_at: record.time("created_at")?,
                last_checked_at: record.time("last_checked_at")?,
            };
            Ok(RowOutcome::new(store::add_imported(tx, &job, &item)?))
        })?;
        report.tables.push(tally.finish("items"));
        match (&feed, store::find_first_created(tx, &job)?) {
            (Some(feed), Some(first)) => {
                if store::add_feed(tx, &job, feed, first)? {
                    report.note(phrase!("entries that are new in {feed} since then will be taken as news", "それ以降に {feed} に加わった記事は、新着として扱います"));
                }
            }
            (None, _) => report.note(phrase!(
                "the config has no press job `{job}`: add it and import again, otherwise its first run records what appeared meanwhile without posting it",
                "設定に press ジョブ `{job}` がありません。追加してからもう一度取り込んでください。そのまま実行すると、その間に出た記事は初回の記録だけで投稿されません",
                job = &job
            )),
            (Some(_), None) => {}
        }
        Ok(report)
    })
    .await
}
