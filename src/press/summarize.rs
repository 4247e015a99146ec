//! One summary: fetches the page and its files, lets the model summarise them, and queues the post.

use serde_json::json;

use super::config::OnBudget;
use super::decide::Event;
use super::files::{self, Broken, NoFiles};
use super::model::{Item, Status};
use super::post::{self, PostText};
use super::workspace::Workspace;
use super::{Failure, Press, RunContext, SeenPage, Step, no_answer, page};
use crate::fail;
use crate::llm::{self, AskError, ModelInput, PauseReason, Purpose, Unavailable};
use crate::phrase;

/// Summarises one pending item and queues its post.
pub(super) async fn one(press: &Press, ctx: &RunContext, item: Item) -> Result<Step, Failure> {
    if item.is_short {
        let why = item.verdict.clone().unwrap_or_default();
        return post::queue(press, ctx, &item, &PostText::None { why }, None).await;
    }
    // The excerpt from the feed is enough: fetch nothing.
    if press.llm.is_none()
        && let Some(excerpt) = &item.excerpt
    {
        let text = PostText::Excerpt { text: excerpt_of(press, excerpt) };
        return post::queue(press, ctx, &item, &text, None).await;
    }
    let page = match page::fetch(press, &item).await {
        Ok(page) => page,
        Err(error) => return press.put_off(ctx, &item, error.into(), None).await,
    };
    let seen = SeenPage { page_hash: page.hash.clone(), verdict: None };
    if press.llm.is_none() {
        let text = PostText::Excerpt { text: excerpt_of(press, &page.text) };
        return post::queue(press, ctx, &item, &text, Some(seen)).await;
    }
    let llm = press.llm()?;
    let sizes: Vec<u64> = page.files.iter().map(|file| file.bytes.unwrap_or(0)).collect();
    if let Some(obstacle) = llm.find_obstacle(&press.name, Purpose::Summary, &sizes).await? {
        return without_model(press, ctx, &item, obstacle).await;
    }
    let workspace = Workspace::open().map_err(|error| {
        let error = error.to_string();
        Failure::Failed(phrase!(
            "no place for temporary files: {error}",
            "一時ファイルを作成できません：{error}"
        ))
    })?;
    // One more try after 15 minutes; the page does not wait longer for a file that stays broken.
    let broken =
        if item.retry_count > 0 || press.keys.max_retries == 0 { Broken::IsLeftOut } else { Broken::PutsOff };
    let has_text = !page.text.trim().is_empty();
    let files = match files::fetch_all(press, llm, &page.files, &workspace, broken, has_text).await {
        Ok(files) => files,
        Err(trouble) => {
            return match trouble {
                NoFiles::Failed(failed) => press.put_off(ctx, &item, failed, Some(seen)).await,
                NoFiles::AllTooLarge => {
                    let why = phrase!(
                        "every file is larger than {most}",
                        "すべてのファイルが {most} を超えています",
                        most = press.keys.max_file.to_string()
                    );
                    let detail = json!({ "why": why.to_stored() });
                    press.finish(ctx, &item, Event::FilesTooLarge, detail, Some(seen)).await
                }
            };
        }
    };
    fail::point("press.files_fetched");
    let document = ModelInput { title: item.title.clone(), text: page.text, files };
    let options = press.options(&item, press.keys.summary_prompt.as_ref());
    let answer = llm.summarize(&press.name, &document, &options).await;
    drop(workspace);
    fail::point("press.summarized");
    let text = match answer {
        Ok(answered) => PostText::Summary {
            text: answered.answer.text,
            is_cached: answered.is_cached,
            tokens: answered.tokens_in + answered.tokens_out,
        },
        Err(AskError::Paused(obstacle)) => return without_model(press, ctx, &item, obstacle).await,
        Err(AskError::TooMuch { why }) if press.keys.on_budget == OnBudget::PostWithoutSummary => {
            PostText::None { why: why.to_string() }
        }
        Err(AskError::TooMuch { why }) if !press.keys.post_rejected => {
            let detail = json!({ "why": why.to_stored() });
            return press.finish(ctx, &item, Event::FilesTooLarge, detail, Some(seen)).await;
        }
        Err(error) => match no_answer(press, error)? {
            Ok(waiting) => return Ok(waiting),
            Err(why) if press.keys.post_rejected => PostText::None { why: why.to_string() },
            Err(why) => {
                let detail = json!({ "why": why.to_stored(), "step": "summary" });
                return press.finish(ctx, &item, Event::ModelFailed, detail, Some(seen)).await;
            }
        },
    };
    post::queue(press, ctx, &item, &text, Some(seen)).await
}

/// The beginning of a text, cut at the length of a summary.
pub(super) fn excerpt_of(press: &Press, text: &str) -> String {
    let max_chars = usize::try_from(press.keys.summary_chars).unwrap_or(usize::MAX);
    llm::cut_at_sentence(&llm::plain(text), max_chars)
}

/// Handles a model that cannot be called: waits, or posts title and link if the job prefers that to waiting for a new
/// budget. A key that is still refused fails the run like the first time.
pub(super) async fn without_model(
    press: &Press,
    ctx: &RunContext,
    item: &Item,
    obstacle: Unavailable,
) -> Result<Step, Failure> {
    let Unavailable { until, why, because } = obstacle;
    let may_post = item.status == Status::Pending && press.keys.on_budget == OnBudget::PostWithoutSummary;
    match because {
        PauseReason::Locked => Err(press.locked(&why)),
        PauseReason::Refused => Err(press.refused(&why)),
        PauseReason::UsedUp if may_post => {
            post::queue(press, ctx, item, &PostText::None { why: why.to_string() }, None).await
        }
        PauseReason::UsedUp | PauseReason::Busy | PauseReason::Down => Ok(Step::Waiting { until, why }),
    }
}
