//! One summary: the page and its files, what the model makes of them, and the post that comes of it.

use serde_json::json;

use super::config::OnBudget;
use super::decide::Event;
use super::files::{self, Trouble};
use super::model::Item;
use super::post::{self, Text};
use super::workspace::Workspace;
use super::{Failure, Press, Seen, Step, Turn, no_answer, page};
use crate::fail;
use crate::llm::{AskError, Document};

/// Summarises one pending item and queues its post.
pub(super) async fn one(press: &Press, turn: &Turn, item: Item) -> Result<Step, Failure> {
    let page = match page::fetch(press, &item).await {
        Ok(page) => page,
        Err(error) => {
            let detail = json!({ "why": error.to_string(), "code": error.why_code() });
            return press.finish(turn, &item, Event::DownloadFailed, detail, None).await;
        }
    };
    let seen = Seen { page_hash: page.hash.clone(), verdict: None };
    let llm = press.llm()?;
    // Known in advance, so that nothing is fetched for a provider that cannot be asked.
    if press.keys.on_budget == OnBudget::Wait
        && let Some(until) = llm.resting_until().await?
    {
        return Ok(Step::Waiting { until, why: format!("`{}` rests", llm.name) });
    }
    let workspace = Workspace::open()
        .map_err(|error| Failure::Failed(format!("no place for temporary files: {error}")))?;
    let is_last_try = item.retry_count >= press.keys.max_retries;
    let files = match files::fetch_all(press, llm, &page.files, &workspace, is_last_try).await {
        Ok(files) => files,
        Err(trouble) => {
            let (event, why) = match trouble {
                Trouble::Failed(why) => (Event::DownloadFailed, why),
                Trouble::AllTooLarge => {
                    (Event::FilesTooLarge, format!("every file is larger than {}", press.keys.max_file))
                }
            };
            return press.finish(turn, &item, event, json!({ "why": why }), Some(seen)).await;
        }
    };
    fail::point("press.files_fetched");
    let document = Document { title: item.title.clone(), text: page.text, files };
    let wish = press.wish(press.keys.summary_prompt.as_ref());
    let asked = llm.summarize(&press.name, &document, &wish).await;
    drop(workspace);
    fail::point("press.summarized");
    let text = match asked {
        Ok(answered) => Text::Summary {
            text: answered.answer.text,
            is_cached: answered.is_cached,
            tokens: answered.tokens_in + answered.tokens_out,
        },
        Err(AskError::Resting { is_budget: true, why, .. })
            if press.keys.on_budget == OnBudget::PostWithoutSummary =>
        {
            Text::None { why }
        }
        Err(error) => match no_answer(error)? {
            Ok(waiting) => return Ok(waiting),
            Err(why) if press.keys.post_rejected => Text::None { why },
            Err(why) => {
                let detail = json!({ "why": why, "step": "summary" });
                return press.finish(turn, &item, Event::ModelFailed, detail, Some(seen)).await;
            }
        },
    };
    post::queue(press, turn, &item, &text, seen).await
}
