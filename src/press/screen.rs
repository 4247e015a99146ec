//! One screening: fetches the page of an item and gets the verdict of the model.

use serde_json::json;

use super::decide::{self, Event};
use super::model::Item;
use super::{Failure, Press, RunContext, SeenPage, Step, no_answer, page};
use crate::fail;
use crate::llm::Worth;
use crate::phrase;
use crate::phrase::Phrase;

/// Screens one item. An unchanged page with a known verdict costs only its fetch.
pub(super) async fn one(press: &Press, ctx: &RunContext, item: Item) -> Result<Step, Failure> {
    if press.llm.is_none() {
        let why =
            phrase!("no model is used (`llm = \"none\"`)", "モデルに問い合わせない設定（`llm = \"none\"`）");
        return press.finish(ctx, &item, Event::Worth, json!({ "why": why.to_stored() }), None).await;
    }
    let page = match page::fetch(press, &item).await {
        Ok(page) => page,
        Err(error) => return press.put_off(ctx, &item, error.into(), None).await,
    };
    fail::point("press.page_fetched");
    let options = press.options(&item, press.keys.screen_prompt.as_ref());
    let answer = press.llm()?.screen(&press.name, &page.document(&item), &options).await;
    let answered = match answer {
        Ok(answered) => answered,
        Err(error) => match no_answer(press, error)? {
            Ok(waiting) => return Ok(waiting),
            Err(why) => {
                let seen = SeenPage { page_hash: page.hash, verdict: None };
                let detail = json!({ "why": why.to_stored(), "step": "screen" });
                return press.finish(ctx, &item, Event::ModelFailed, detail, Some(seen)).await;
            }
        },
    };
    fail::point("press.screened");
    let verdict = answered.answer;
    let event = match verdict.worth {
        Worth::Worth => Event::Worth,
        Worth::NotWorth => Event::NotWorth,
        Worth::NotReady => Event::NotReady,
    };
    if answered.is_cached && item.page_hash.as_deref() == Some(&page.hash) {
        let event = decide::on_unchanged(&item, event, &press.limits(), ctx.now());
        if matches!(event, Event::Unchanged | Event::WaitOver) {
            let detail = json!({ "since": item.deferred_since });
            return press.finish(ctx, &item, event, detail, None).await;
        }
    }
    tracing::info!(
        item.id = item.id,
        verdict = event.code().word(),
        "Screened `{}`: {}",
        item.title,
        event.code().word()
    );
    let detail = json!({
        "why": verdict.reason,
        "criteria": verdict.criteria,
        "cached": answered.is_cached,
        "files": page.files.len(),
        "files_not_read": page.unread(),
        "content_matches_nothing": page.lacks_block.then_some(press.keys.content.as_deref()).flatten(),
        "tokens": answered.tokens_in + answered.tokens_out,
    });
    let lacks_block = page.lacks_block;
    let seen = SeenPage { page_hash: page.hash, verdict: Some(verdict.reason) };
    let step = press.finish(ctx, &item, event, detail, Some(seen)).await.map(|step| match step {
        Step::Moved(line) if lacks_block => Step::Moved(Phrase::list([line, press.block_warning(&item.url)])),
        other => other,
    });
    fail::point("press.verdict_stored");
    step
}
