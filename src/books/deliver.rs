//! Delivers digests: writes a digest to the outbox with its prompts and tokens, and counts it once it was accepted.

use std::sync::Arc;
use std::time::Duration;

use url::Url;

use super::events::{self, BookCode};
use super::mail;
use super::model::Book;
use super::prompt::Prompt;
use super::select::{DigestLimits, Selection, choose};
use super::store;
use super::token::{self, Token};
use crate::channel::outbox::{self, Batch, DeliveryOutcome, Provenance, Row};
use crate::channel::{
    ChannelEnv, ChannelSet, HeaderText, MailBody, News, NotRendered, Notice, NoticeEntry, Rendered,
};
use crate::config;
use crate::db::{self, Tx};
use crate::engine::{Failure, RunContext};
use crate::fail;
use crate::id::JobName;
use crate::ledger::{Subject, event};
use crate::text::Language;
use crate::time::Timestamp;

/// The topic of digests in the outbox.
pub const TOPIC: &str = "books.digest";
/// The prefix of the number of a digest in the subjects of messages.
pub(super) const SUBJECT: &str = "digest:";
/// How often the selection is repeated when it was changed in between.
const TRIES: usize = 3;

/// What delivering needs.
#[derive(Clone, Debug)]
pub struct DeliverContext {
    /// Which books a digest may have, and how many.
    pub limits: DigestLimits,
    /// The names of the channels.
    pub deliver: Vec<String>,
    pub channels: Arc<ChannelSet>,
    /// What channels need to render.
    pub channel_env: ChannelEnv,
    /// The config of the prompt pages.
    pub web: config::Web,
    /// How long the link to a prompt works.
    pub token_life: Duration,
    /// The language of mails and prompts.
    pub language: Language,
    /// How prompts are made.
    pub prompt: Prompt,
}

/// How many undelivered books are checked against the filters at once.
const WEIGHED_AT_ONCE: u32 = 500;

/// What was queued.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queued {
    /// Books that are new to the reader.
    pub new: u64,
    /// Books that are sent again.
    pub repeats: u64,
    /// Channels that could not render it, with the reason.
    pub problems: Vec<String>,
}

/// A book with what its link needs.
#[derive(Clone)]
struct LinkedBook {
    book: Book,
    prompt: String,
    token: Token,
}

/// Selects books and queues a digest of them in the outbox, one message per recipient.
///
/// While the last digest waits for its channel, books accumulate: a channel that is locked for a week has one digest to
/// send afterwards, not one of every run.
pub async fn deliver(plan: &DeliverContext, ctx: &RunContext) -> Result<Queued, Failure> {
    if plan.deliver.is_empty() {
        return Ok(Queued::default());
    }
    while leave_out_unwanted(plan, ctx).await? {
        ctx.check_stop()?;
    }
    for _ in 0..TRIES {
        ctx.check_stop()?;
        let (job, limits, now) = (ctx.job.clone(), plan.limits.clone(), ctx.now());
        let channels = plan.deliver.clone();
        let choice = ctx.db.read(move |tx| {
            let is_free = !store::has_unsent_digest(tx, &job, &channels)?;
            if is_free { choose(tx, &job, &limits, now) } else { Ok(Selection::Nothing) }
        });
        let choice = choice.await?;
        let (is_repeat, books) = match &choice {
            Selection::Nothing => return Ok(Queued::default()),
            Selection::New(books) => (false, books),
            Selection::Repeats(books) => (true, books),
        };
        let pages = make_pages(plan, books)?;
        let news = render(plan, &ctx.job, &pages, is_repeat, now);
        let (rendered, failed) = plan.channels.render(&plan.deliver, &plan.channel_env, &news).await;
        let problems = failed.iter().map(ToString::to_string).collect();
        // Nothing is lost: the next run selects the books again.
        if rendered.is_empty() {
            return Ok(Queued { problems, ..Queued::default() });
        }
        let count = books.len() as u64;
        if queue(plan, ctx, choice, pages, (rendered, failed)).await? {
            fail::point("books.digest_queued");
            let (new, repeats) = if is_repeat { (0, count) } else { (count, 0) };
            return Ok(Queued { new, repeats, problems });
        }
    }
    Ok(Queued {
        problems: vec!["the books kept changing while a digest was made".into()],
        ..Queued::default()
    })
}

/// Marks undelivered books that the filters no longer match; `true` if there may be more.
async fn leave_out_unwanted(plan: &DeliverContext, ctx: &RunContext) -> Result<bool, Failure> {
    if plan.limits.wanted.is_everything() {
        return Ok(false);
    }
    let (job, now) = (ctx.job.clone(), ctx.now());
    let mut books = ctx.db.read(move |tx| store::list_undelivered(tx, &job, WEIGHED_AT_ONCE, now)).await?;
    books.retain(|book| !plan.limits.wanted.fits(book));
    if books.is_empty() {
        return Ok(false);
    }
    let (job, now) = (ctx.job.clone(), ctx.now());
    ctx.write(move |tx| {
        for book in &books {
            if store::mark_unwanted(tx, &job, &book.isbn13, true)? {
                let detail = serde_json::json!({ "title": book.title });
                event::add(tx, Some(&job), &events::book(&book.isbn13), BookCode::NotWanted, &detail, now)?;
            }
        }
        Ok(true)
    })
    .await
}

fn make_pages(plan: &DeliverContext, books: &[Book]) -> Result<Vec<LinkedBook>, Failure> {
    let page = |book: &Book| {
        let token = Token::random()
            .map_err(|error| Failure::Failed(format!("no randomness for tokens: {error}").into()))?;
        Ok(LinkedBook { prompt: plan.prompt.render(book), book: book.clone(), token })
    };
    books.iter().map(page).collect()
}

/// The mail of a digest of `books` for `mail preview`, with invalid links.
pub fn preview(plan: &DeliverContext, job: &JobName, choice: &Selection, now: Timestamp) -> mail::Mail {
    let nowhere: Token = "0".repeat(32).parse().expect("32 hex characters");
    let is_repeat = matches!(choice, Selection::Repeats(_));
    let books =
        choice.books().iter().map(|book| (book.clone(), plan.web.prompt_url(nowhere.as_str()))).collect();
    digest(plan, job, books, is_repeat, now).render()
}

fn digest<'a>(
    plan: &DeliverContext,
    job: &'a JobName,
    books: Vec<(Book, String)>,
    is_repeat: bool,
    now: Timestamp,
) -> mail::Digest<'a> {
    let zone = &plan.limits.zone;
    mail::Digest {
        job,
        date: now.date_in(zone).to_string(),
        is_repeat,
        books,
        links_until: now.plus(plan.token_life).to_local_minute(zone),
        language: plan.language,
    }
}

/// The digest for every channel: a full mail for email channels, a short notice for the others.
fn render(
    plan: &DeliverContext,
    job: &JobName,
    pages: &[LinkedBook],
    is_repeat: bool,
    now: Timestamp,
) -> News {
    let books: Vec<(Book, String)> =
        pages.iter().map(|page| (page.book.clone(), plan.web.prompt_url(page.token.as_str()))).collect();
    let digest = digest(plan, job, books, is_repeat, now);
    let mail = digest.render();
    let entries = digest
        .books
        .iter()
        .map(|(book, prompt_url)| NoticeEntry {
            title: digest.short_title(book),
            link: Url::parse(prompt_url).ok(),
            date: None,
            note: (!book.authors.is_empty()).then(|| book.authors.join(", ")),
        })
        .collect();
    News {
        notice: Notice {
            summary: digest.introduction(),
            entries,
            ..Notice::new(digest.subject(), plan.language)
        },
        mail: Some(MailBody {
            subject: HeaderText::new(&mail.subject),
            text: mail.text,
            html: mail.html,
            list_id: list_id(job),
        }),
    }
}

/// The `List-Id`, for filters of mail readers; only ASCII names fit into the header.
fn list_id(job: &JobName) -> Option<HeaderText> {
    job.as_str().is_ascii().then(|| HeaderText::new(&format!("<{job}.books.tsuzuki.localhost>")))
}

/// Writes the digest, its prompts, its tokens and its messages together; `false` if the selection is outdated.
async fn queue(
    plan: &DeliverContext,
    ctx: &RunContext,
    choice: Selection,
    pages: Vec<LinkedBook>,
    (rendered, failed): (Vec<Rendered>, Vec<NotRendered>),
) -> Result<bool, Failure> {
    let (job, limits, now) = (ctx.job.clone(), plan.limits.clone(), ctx.now());
    let expires_at = now.plus(plan.token_life);
    ctx.write(move |tx| {
        if choose(tx, &job, &limits, now)? != choice {
            return Ok(false);
        }
        let is_repeat = matches!(choice, Selection::Repeats(_));
        let isbns = choice.books().iter().map(|book| &book.isbn13);
        let id = store::add_digest(tx, &job, isbns, is_repeat, now)?;
        for page in &pages {
            let prompt_id = store::put_prompt(tx, &page.book.isbn13, &page.prompt, now)?;
            store::add_token(tx, &page.token, prompt_id, expires_at, now)?;
            let detail = serde_json::json!({ "digest": id, "repeat": is_repeat });
            event::add(tx, Some(&job), &events::book(&page.book.isbn13), BookCode::Queued, &detail, now)?;
        }
        token::prune(tx, now)?;
        let (subject, about) = (format!("{SUBJECT}{id}"), Subject::job(&job));
        let batch = Batch {
            job: &job,
            topic: TOPIC,
            subject: &subject,
            // Marks an intended repeat, which listings show.
            generation: u32::from(is_repeat),
            hold: false,
            found: Provenance::Gradually,
            about: &about,
        };
        outbox::add_all(tx, &batch, &rendered, &failed, now)?;
        Ok(true)
    })
    .await
}

/// Records how a message of a digest ended, in the transaction that marks it.
///
/// The first acceptance, on any channel, delivers the books; later ones change nothing. After a failed or skipped
/// message the books are available again, because selection excludes only books in queued messages. Refused books are
/// paused first; otherwise a recipient who cannot be reached would be mailed at every run for ever.
pub fn on_delivered(tx: &mut Tx<'_>, row: &Row, outcome: DeliveryOutcome) -> db::Result<()> {
    let id = row.subject.strip_prefix(SUBJECT).and_then(|id| id.parse().ok());
    let Some(digest) = id.map(|id| store::find_digest(tx, id)).transpose()?.flatten() else {
        tracing::warn!(delivery = row.id, "No digest belongs to `{}`", row.subject);
        return Ok(());
    };
    let now = tx.now();
    let code = match outcome {
        DeliveryOutcome::Sent => match store::mark_delivered(tx, &digest, now)? {
            Some(_) => BookCode::Delivered,
            None => return Ok(()),
        },
        DeliveryOutcome::Failed | DeliveryOutcome::Skipped
            if digest.delivery_id.is_some() || outbox::find_open(tx, TOPIC, &row.subject)?.is_some() =>
        {
            return Ok(());
        }
        DeliveryOutcome::Failed => {
            store::mark_refused(tx, &digest, now)?;
            BookCode::Released
        }
        DeliveryOutcome::Skipped => BookCode::Released,
    };
    for isbn13 in &digest.isbns {
        let detail = serde_json::json!({ "digest": digest.id, "delivery": row.id, "channel": row.channel });
        event::add(tx, Some(&digest.job_name), &events::book(isbn13), code, &detail, now)?;
    }
    Ok(())
}
