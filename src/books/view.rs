//! Views of books, mails and tokens.

use serde::Serialize;

use super::deliver::{SUBJECT, TOPIC};
use super::events::{self, BOOK, BookCode, TOKEN};
use super::model::{Book, Isbn13};
use super::store::{self, BookPause, BookRow, JobMail, SentDigest, TokenRow};
use super::token::Token;
use crate::channel::outbox::{self, State as MessageState};
use crate::db::{self, Tx};
use crate::engine::Finder;
use crate::engine::things::delivery;
use crate::engine::things::external::add_pause;
use crate::engine::view::{Line, State, View};
use crate::id::JobName;
use crate::ledger::Subject;
use crate::ledger::event::{self, Event};
use crate::ledger::pause::{self, Pause};
use crate::phrase;
use crate::phrase::{Phrase, Value};
use crate::time::Timestamp;

/// Everything about one book.
#[derive(Clone, Debug, Serialize)]
pub struct BookDetails {
    #[serde(flatten)]
    pub book: Book,
    /// The jobs that found it.
    pub jobs: Vec<JobMail>,
    /// When it was sent, newest first.
    pub deliveries: Vec<BookDelivery>,
    /// The messages that it is in and that are still to be sent.
    pub messages: Vec<BookMessage>,
    /// The jobs that leave it out of their digests for a while, because digests with it were refused.
    pub pauses: Vec<BookPause>,
    /// Oldest first.
    pub events: Vec<Event>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BookDelivery {
    pub job_name: JobName,
    pub delivered_at: Timestamp,
}

/// A message with a book that is on its way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BookMessage {
    pub id: i64,
    pub channel: String,
    pub state: MessageState,
    /// Why it has not been sent yet, if it was tried.
    pub why: Option<Phrase>,
}

/// How a job's mail stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MailStatus {
    pub job_name: JobName,
    pub books: i64,
    pub delivered: i64,
    /// Books that it has not delivered, including queued ones.
    pub undelivered: i64,
    /// Queued digests.
    pub on_their_way: i64,
    /// The digest that was accepted last.
    pub last: Option<SentDigest>,
}

/// Whether a token works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TokenState {
    Works,
    Expired,
    Revoked,
}

impl TokenState {
    pub fn phrase(self) -> Phrase {
        match self {
            TokenState::Works => phrase!("works", "有効"),
            TokenState::Expired => phrase!("expired", "期限切れ"),
            TokenState::Revoked => phrase!("revoked", "失効"),
        }
    }
}

/// A token in listings: enough to identify it, not enough to use it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TokenView {
    /// Its first eight characters.
    pub token: String,
    /// Whether it works.
    pub state: TokenState,
    /// The book that its prompt is about.
    pub isbn13: Isbn13,
    /// The title of the book.
    pub title: Option<String>,
    pub created_at: Timestamp,
    /// The first moment at which it is invalid.
    pub expires_at: Timestamp,
}

impl TokenView {
    fn new(row: TokenRow, now: Timestamp) -> Self {
        let state = match (row.revoked_at, row.expires_at <= now) {
            (Some(_), _) => TokenState::Revoked,
            (None, true) => TokenState::Expired,
            (None, false) => TokenState::Works,
        };
        Self {
            token: row.token.prefix().to_owned(),
            state,
            isbn13: row.isbn13,
            title: row.title,
            created_at: row.created_at,
            expires_at: row.expires_at,
        }
    }
}

/// The result of revoking a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Revoked {
    /// It is revoked.
    Done(TokenView),
    /// It was already expired or revoked.
    Before(TokenView),
    /// No token has this prefix.
    Missing,
    /// Several tokens have this prefix.
    Ambiguous,
    /// The prefix is too short or invalid.
    Malformed,
}

/// The newest books.
pub fn list(tx: &mut Tx<'_>, filter: store::BookQuery<'_>) -> db::Result<Vec<BookRow>> {
    store::list_books(tx, filter)
}

/// Everything about one book, with the newest `limit` events.
pub fn show(tx: &mut Tx<'_>, isbn13: &Isbn13, limit: usize) -> db::Result<Option<BookDetails>> {
    let Some(book) = store::find_book(tx, isbn13)? else { return Ok(None) };
    let (deliveries, now) = (store::list_deliveries_of_book(tx, isbn13)?, tx.now());
    let mut messages = Vec::new();
    for id in store::list_unsent_digests_of_book(tx, isbn13)? {
        let open = outbox::find_open(tx, TOPIC, &format!("{SUBJECT}{id}"))?;
        messages.extend(open.map(|row| BookMessage {
            id: row.id,
            channel: row.channel,
            state: row.state,
            why: row.last_error,
        }));
    }
    Ok(Some(BookDetails {
        book,
        jobs: store::list_jobs_of_book(tx, isbn13)?,
        deliveries: deliveries
            .into_iter()
            .map(|(job_name, delivered_at)| BookDelivery { job_name, delivered_at })
            .collect(),
        messages,
        pauses: store::list_pauses(tx, isbn13, now)?,
        events: event::list_about(tx, &events::book(isbn13), limit)?,
    }))
}

/// The mail status of a job.
pub fn mail_status(tx: &mut Tx<'_>, job: &JobName) -> db::Result<MailStatus> {
    Ok(MailStatus {
        job_name: job.clone(),
        books: store::count_books(tx, job)?,
        delivered: store::count_delivered(tx, job)?,
        undelivered: store::count_undelivered(tx, job)?,
        on_their_way: store::count_waiting(tx, job)?,
        last: store::list_sent_digests(tx, Some(job), 1)?.pop(),
    })
}

/// The tokens by expiry, latest first; all of them, or only valid ones.
pub fn list_tokens(tx: &mut Tx<'_>, all: bool, limit: usize, now: Timestamp) -> db::Result<Vec<TokenView>> {
    let rows = store::list_tokens(tx, (!all).then_some(now), limit)?;
    Ok(rows.into_iter().map(|row| TokenView::new(row, now)).collect())
}

/// Whether it can be a prefix of a token, and is long enough.
fn is_beginning(prefix: &str) -> bool {
    let is_hex = prefix.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_hex && (8..=32).contains(&prefix.len())
}

/// Revokes the token with the prefix `prefix`, which has at least eight characters.
pub fn revoke(tx: &mut Tx<'_>, prefix: &str, now: Timestamp) -> db::Result<Revoked> {
    if !is_beginning(prefix) {
        return Ok(Revoked::Malformed);
    }
    let mut rows = store::list_tokens_by_prefix(tx, prefix)?;
    let (Some(mut row), true) = (rows.pop(), rows.is_empty()) else {
        return Ok(if rows.is_empty() { Revoked::Missing } else { Revoked::Ambiguous });
    };
    let token: Token = row.token.clone();
    if !store::revoke_token(tx, &token, now)? {
        return Ok(Revoked::Before(TokenView::new(row, now)));
    }
    row.revoked_at = Some(now);
    let detail = serde_json::json!({ "token": token.prefix() });
    event::add(tx, None, &events::book(&row.isbn13), BookCode::TokenRevoked, &detail, now)?;
    Ok(Revoked::Done(TokenView::new(row, now)))
}

/// Resets deliveries, of one job or of all, since a moment or all; returns how many books are undelivered again.
pub fn reset_mail(
    tx: &mut Tx<'_>,
    job: Option<&JobName>,
    since: Option<Timestamp>,
    now: Timestamp,
) -> db::Result<usize> {
    let forgotten = store::reset_deliveries(tx, job, since)?;
    for (job, isbn13) in &forgotten {
        event::add(
            tx,
            Some(job),
            &events::book(isbn13),
            BookCode::DeliveryReset,
            &serde_json::Value::Null,
            now,
        )?;
    }
    Ok(forgotten.len())
}

/// Finds links to prompts by the prefix of their token.
pub(super) fn find_token(finder: &Finder, tx: &mut Tx<'_>, name: &str) -> db::Result<Vec<View>> {
    if !is_beginning(name) {
        return Ok(Vec::new());
    }
    let rows = store::list_tokens_by_prefix(tx, name)?;
    Ok(rows.into_iter().map(|row| render_token(&TokenView::new(row, finder.now))).collect())
}

fn render_token(found: &TokenView) -> View {
    let (token, isbn) = (&found.token, found.isbn13.as_str());
    let title =
        phrase!("link {token} to the prompt of book {isbn}", "書籍 {isbn} のプロンプトへのリンク {token}");
    let data = serde_json::to_value(found).unwrap_or_default();
    let mut view = View::new(TOKEN, Subject::new(TOKEN, token), title, data);
    let works = found.state == TokenState::Works;
    view.state = Some(if works { State::Ok } else { State::Disabled });
    view.fact(phrase!("state", "状態"), found.state.phrase());
    view.fact(phrase!("title", "題名"), found.title.as_deref());
    view.fact(phrase!("made", "作成"), found.created_at);
    view.fact(phrase!("ends", "期限"), found.expires_at);
    view.command(phrase!("what became of the book", "書籍の経緯"), format!("why {isbn}"));
    if works {
        view.command(phrase!("end it", "失効させる"), format!("token revoke {token}"));
    }
    view
}

pub(super) fn find(finder: &Finder, tx: &mut Tx<'_>, name: &str) -> db::Result<Vec<View>> {
    let Ok(isbn13) = name.parse() else { return Ok(Vec::new()) };
    let Some(found) = show(tx, &isbn13, finder.limit)? else { return Ok(Vec::new()) };
    let mut needed: Vec<Subject> =
        found.messages.iter().map(|message| Subject::channel(&message.channel)).collect();
    needed.dedup();
    let mut pauses = Vec::new();
    for name in &needed {
        pauses.extend(pause::find(tx, name, finder.now)?);
    }
    Ok(vec![render(finder, &found, &pauses)])
}

fn render(finder: &Finder, found: &BookDetails, pauses: &[Pause]) -> View {
    let book = &found.book;
    let title = phrase!(
        "book {isbn}: {title}",
        "書籍 {isbn}：{title}",
        isbn = book.isbn13.as_str(),
        title = &book.title
    );
    let data = serde_json::to_value(found).unwrap_or_default();
    let mut view = View::new(BOOK, events::book(&book.isbn13), title, data);
    let is_sent = found.jobs.iter().any(|job| job.delivered_at.is_some());
    view.state = Some(if is_sent { State::Ok } else { State::New });
    view.headline = Some(book.title.clone());
    let queued = BookCode::Queued.word();
    let choices = [queued, BookCode::Released.word(), BookCode::DeliveryReset.word()];
    let last = found.events.iter().rfind(|event| choices.contains(&event.code.as_str()));
    let is_chosen = last.is_some_and(|event| event.code == queued);
    let here = if is_sent { 2 } else { usize::from(is_chosen) };
    view.stages([phrase!("found", "発見"), phrase!("chosen", "選定"), phrase!("sent", "送信")], here);
    let authors: Vec<Value> = book.authors.iter().map(Value::from).collect();
    view.fact(phrase!("authors", "著者"), (!authors.is_empty()).then_some(authors));
    view.fact(phrase!("publisher", "出版社"), book.publisher.as_deref());
    view.fact(phrase!("published", "出版日"), book.published_date.as_deref());
    view.fact(phrase!("ISBN", "ISBN"), book.isbn13.as_str());
    for link in &book.links {
        view.fact(Phrase::verbatim(&link.label), Value::link(&link.url));
    }
    for pause in pauses {
        add_pause(&mut view, pause, finder);
    }
    view.fact(phrase!("description", "内容紹介"), book.description.as_deref());
    view.section(
        phrase!("jobs", "ジョブ"),
        found.jobs.iter().map(|job| {
            let (name, seen) = (&job.job_name, job.first_seen_at);
            let text = match job.delivered_at {
                Some(at) => phrase!("{name}: found {seen}, sent {at}", "{name}：{seen} に発見、{at} に送信"),
                None => {
                    phrase!("{name}: found {seen}, not sent", "{name}：{seen} に発見、未送信")
                }
            };
            match found.pauses.iter().find(|pause| pause.job_name == job.job_name) {
                Some(pause) => phrase!(
                    "{text}, in no digest before {until} ({count digest} with it refused)",
                    "{text}、{until} まで対象外（{count} 通が拒否されたため）",
                    until = pause.paused_until,
                    count = pause.refusals
                ),
                None => text,
            }
            .into()
        }),
    );
    view.section(
        phrase!("messages", "メッセージ"),
        found
            .messages
            .iter()
            .map(|message| delivery::line(message.id, &message.channel, message.state, message.why.as_ref())),
    );
    view.section(
        phrase!("deliveries", "送信履歴"),
        found.deliveries.iter().map(|sent| {
            Line::at(sent.delivered_at, phrase!("by {job}", "ジョブ {job}", job = &sent.job_name))
        }),
    );
    finder.add_events(&mut view, &found.events);
    for message in &found.messages {
        delivery::add_actions(&mut view, message.id, message.state);
    }
    view
}
