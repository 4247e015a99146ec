//! `job test`: fetches once what a job watches, and shows what a run would find.

use super::super::view::render;
use super::super::{Context, Error, Exit, Result};
use super::no_such_job;
use tsuzuki::app;
use tsuzuki::db::Open;
use tsuzuki::engine::Preview;
use tsuzuki::engine::preview::Asking;
use tsuzuki::phrase;
use tsuzuki::phrase::Speech;
use tsuzuki::text::{one_line, shorten, width};

/// The widest name for the alignment.
const WIDEST: usize = 40;

pub(super) async fn run(name: &str, context: &Context) -> Result {
    let config = context.config().await?;
    let kind = config.find_job(name).map(|job| job.kind.as_str()).ok_or_else(|| no_such_job(name, config))?;
    let is_counted = app::find_pipeline(kind).is_some_and(|pipeline| pipeline.uses.quota_for_tests);
    let app = if is_counted { context.app(Open::Create).await? } else { context.read_only_app().await? };
    let job = app.jobs.iter().find(|job| job.name.as_str() == name);
    let preview = job.ok_or_else(|| no_such_job(name, config))?.collector.test(&app.env.db).await?;
    if context.out.is_json() {
        context.out.json(&preview)?;
    } else {
        print(&preview, &context.speech().await?, context)?;
    }
    let failed = preview.items.iter().filter(|item| item.error.is_some()).count();
    Ok(match (failed, preview.items.len()) {
        (0, _) => Exit::Fine,
        (failed, items) if failed == items => Exit::Failed,
        (failed, items) => {
            context.out.warn(phrase!(
                "{failed} of {count check} failed",
                "{count} 件の確認のうち {failed} 件が失敗しました",
                count = items
            ));
            Exit::Partly
        }
    })
}

pub(super) async fn run_item(name: &str, url: &str, asking: Asking, context: &Context) -> Result {
    let config = context.config().await?;
    config.find_job(name).ok_or_else(|| no_such_job(name, config))?;
    let app = match asking {
        Asking::Ask => context.app(Open::Create).await?,
        Asking::No => context.read_only_app().await?,
    };
    let job = app.jobs.iter().find(|job| job.name.as_str() == name);
    let job = job.ok_or_else(|| no_such_job(name, config))?;
    let Some(view) = job.collector.test_item(&app.env.db, url, asking).await? else {
        return Err(Error::usage(phrase!(
            "a {kind} job has no items that could be shown one by one",
            "{kind} ジョブには、1 件ずつ表示できる記事がありません",
            kind = job.kind.to_string()
        ))
        .hint(phrase!(
            "`tsuzuki job test {name}` shows what it would find",
            "`tsuzuki job test {name}` で、何が見つかるかを表示できます"
        )));
    };
    if context.out.is_json() {
        context.out.json(&view.data)?;
    } else {
        render(&view, &context.speech().await?).iter().try_for_each(|line| context.out.prose(line))?;
    }
    Ok(Exit::Fine)
}

fn print(preview: &Preview, speech: &Speech, context: &Context) -> Result<()> {
    let names: Vec<String> =
        preview.items.iter().map(|item| shorten(&one_line(&item.what), WIDEST)).collect();
    let widest = names.iter().map(|name| width(name)).max().unwrap_or(0);
    for (item, name) in preview.items.iter().zip(&names) {
        let gap = " ".repeat(widest - width(name));
        let found = match &item.error {
            Some(error) => speech.phrase(&phrase!("failed: {error}", "失敗：{error}")),
            None => speech.phrase(&item.found),
        };
        context.out.prose(format!("{name}{gap}  {}", one_line(&found)))?;
        for first in &item.first {
            context.out.prose(format!("  - {}", one_line(first)))?;
        }
    }
    preview.notes.iter().for_each(|note| context.out.note(phrase!("note: {note}", "注：{note}")));
    Ok(())
}
