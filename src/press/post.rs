//! The post of an item: rendered once, queued with the summary in one transaction, and the reaction to its outcome.

use serde_json::json;
use url::Url;

use super::decide::{self, Event};
use super::events::{self, ItemCode};
use super::model::{Item, Status};
use super::overtaken;
use super::{Failure, Press, RunContext, SeenPage, Step, TOPIC, store};
use crate::channel::NotRendered;
use crate::channel::outbox::{self, Batch, DeliveryOutcome, Provenance, Row};
use crate::channel::{News, Notice, Template};
use crate::db::{self, Tx};
use crate::engine::JobEnv;
use crate::fail;
use crate::llm;
use crate::phrase;
use crate::phrase::Phrase;
use crate::text;

/// The text of a post besides title and link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PostText {
    Summary {
        text: String,
        is_cached: bool,
        tokens: u64,
    },
    /// An excerpt from the feed or the page: the job uses no model.
    Excerpt {
        text: String,
    },
    /// None, with the reason.
    None {
        why: String,
    },
}

/// The text between headline and link.
const DEFAULT_TEMPLATE: &str = "{{ summary }}";

/// Checks a template of the config.
pub(super) fn check_template(template: &str) -> Result<(), Phrase> {
    Template::new(template)?;
    fill(template, "title", "summary", "2026-01-15").map(drop).map_err(|error| Template::wrong(&error))
}

fn fill(template: &str, title: &str, summary: &str, published: &str) -> Result<String, String> {
    let values = json!({ "title": title, "summary": summary, "published": published });
    let template = Template::new(template).map_err(|why| why.to_string())?;
    template.render(&values).map(|text| text.trim().to_owned())
}

pub(super) fn notice(press: &Press, item: &Item, body: &PostText) -> Result<Notice, String> {
    let summary = match body {
        PostText::Summary { text, .. } | PostText::Excerpt { text } => text.as_str(),
        PostText::None { .. } => "",
    };
    let title = text::one_line(&item.title);
    let published = item.published_at.date_in(press.env.app.timezone.time_zone()).to_string();
    let template = press.keys.post.as_deref().unwrap_or(DEFAULT_TEMPLATE);
    Ok(Notice {
        summary: fill(template, &title, &llm::plain(summary), &published)?,
        link: Url::parse(&item.url).ok(),
        tags: press.keys.tags.clone(),
        ..Notice::new(title, press.env.app.message_language())
    })
}

/// Renders the post for every channel and queues it together with the summary.
///
/// The item stays pending until the first channel has accepted its post.
pub(super) async fn queue(
    press: &Press,
    ctx: &RunContext,
    item: &Item,
    text: &PostText,
    seen: Option<SeenPage>,
) -> Result<Step, Failure> {
    let (rendered, failed) = match notice(press, item, text) {
        Ok(notice) => {
            let JobEnv { channels, channel_env, .. } = &press.env;
            channels.render(&press.deliver, channel_env, &News::from(notice)).await
        }
        Err(why) => {
            return press.finish(ctx, item, Event::PostFailed, json!({ "why": why }), seen).await;
        }
    };
    // No channel: the item stays pending. Runs of such a job do not get here.
    if rendered.is_empty() && failed.is_empty() {
        return Ok(Step::Nothing);
    }
    let problem = |error: &NotRendered| {
        phrase!("{title}: {error}", "{title}：{error}", title = &item.title, error = error.to_string())
    };
    let problems: Vec<Phrase> = failed.iter().map(problem).collect();
    if rendered.is_empty() && !failed.is_empty() {
        let why: Vec<String> = failed.iter().map(ToString::to_string).collect();
        let detail = json!({ "why": why.join("; ") });
        return Ok(match press.finish(ctx, item, Event::PostFailed, detail, seen).await? {
            Step::Moved(line) => Step::NotRendered { line, problems, is_queued: false },
            other => other,
        });
    }
    fail::point("press.rendered");
    let (summary, detail) = match text {
        PostText::Summary { text, is_cached, tokens } => {
            (Some(text.clone()), json!({ "cached": is_cached, "tokens": tokens, "messages": rendered.len() }))
        }
        PostText::Excerpt { text } => (Some(text.clone()), json!({ "messages": rendered.len() })),
        PostText::None { why } => (None, json!({ "without_summary": why, "messages": rendered.len() })),
    };
    let (job, item, now) = (press.name.clone(), item.clone(), ctx.now());
    let line = ctx
        .write(move |tx| {
            if !store::put_summary(tx, &item, summary.as_deref(), now)? {
                return Ok(overtaken());
            }
            if let Some(seen) = &seen {
                store::put_verdict(tx, item.id, &seen.page_hash, None)?;
            }
            let line = |code: ItemCode| {
                phrase!("{code}: {title}", "{code}：{title}", code = code.phrase(), title = &item.title)
            };
            let about = events::item(&item.url);
            let batch = Batch {
                job: &job,
                topic: TOPIC,
                subject: &item.url,
                generation: 0,
                hold: item.is_held,
                found: Provenance::Since(store::find_found_since(tx, item.id)?),
                about: &about,
            };
            if outbox::add_all(tx, &batch, &rendered, &failed, now)? > 0 {
                store::note(tx, &item, ItemCode::Queued, &detail, now)?;
                return Ok(line(ItemCode::Queued));
            }
            // Nothing to send: every message was sent or skipped before.
            let messages = store::find_messages(tx, &item.job_name, &item.url, 0)?;
            let code = if messages.any_sent { ItemCode::AlreadyPosted } else { ItemCode::AlreadySkipped };
            if !messages.any_open
                && let Some(to) = decide::after(&item, Event::Posted, None, now)
            {
                store::apply(tx, &item, &to, code, &detail)?;
            }
            Ok(line(code))
        })
        .await?;
    fail::point("press.queued");
    Ok(if problems.is_empty() {
        Step::Moved(line)
    } else {
        Step::NotRendered { line, problems, is_queued: true }
    })
}

/// Updates an item when one of its messages has ended; runs in the transaction that marks the outcome.
///
/// The first acceptance closes the item in any status: a user may send a post that had failed. A failure defers it only
/// when no other channel has accepted or may still accept it. The retry limit depends on the config and is applied when
/// the item is processed next.
pub(super) fn on_delivered(tx: &mut Tx<'_>, row: &Row, outcome: DeliveryOutcome) -> db::Result<()> {
    let Some(item) = store::find_by_url(tx, row.job_name.as_str(), &row.subject)? else { return Ok(()) };
    if item.status != Status::Pending && outcome != DeliveryOutcome::Sent {
        return Ok(());
    }
    let others = store::find_messages(tx, row.job_name.as_str(), &row.subject, row.id)?;
    let event = match outcome {
        DeliveryOutcome::Sent => Event::Posted,
        DeliveryOutcome::Failed | DeliveryOutcome::Skipped if others.any_open || others.any_sent => {
            return Ok(());
        }
        DeliveryOutcome::Failed => Event::PostFailed,
        DeliveryOutcome::Skipped => Event::Skipped,
    };
    let Some(to) = decide::after(&item, event, None, tx.now()) else { return Ok(()) };
    let why = row.last_error.clone().or_else(|| row.found_there());
    let detail = json!({ "channel": row.channel, "delivery": row.id, "why": why.map(|why| why.to_stored()) });
    store::apply(tx, &item, &to, event.code(), &detail).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_see_title_summary_and_date_and_nothing_else() {
        assert_eq!(
            fill("{{ title }}（{{ published }}）\n{{ summary }}", "題", "要約", "2026-01-15").unwrap(),
            "題（2026-01-15）\n要約"
        );
        assert_eq!(fill(DEFAULT_TEMPLATE, "題", "", "2026-01-15").unwrap(), "");
        assert_eq!(fill("{{ summary }}", "t", "{{ title }}", "").unwrap(), "{{ title }}");
        assert!(check_template("{{ secret }}").is_err());
        assert!(check_template("{{ title").is_err());
        assert!(check_template("{{ title }}\n{{ nothing }}").unwrap_err().to_string().contains("in line 2"));
        assert!(check_template("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}").is_err());
        assert!(check_template(&" ".repeat(20_000)).unwrap_err().to_string().contains("16 KiB"));
        assert!(check_template("{% include '/etc/passwd' %}").is_err());
    }
}
