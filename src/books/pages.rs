//! The page of books: covers, delivery states and prompts.

use super::KIND;
use super::events::book as subject;
use super::model::Isbn13;
use super::store::{self, BookRow, Place};
use super::view::MailStatus;
use crate::db::{self, Tx};
use crate::engine::Finder;
use crate::engine::chart::{Chart, Figure, FunnelStep};
use crate::engine::page::{Block, Card, Cards, Choice, Page, PageFilter, PageQuery, PageView};
use crate::engine::view::{Fact, State};
use crate::engine::walk::{Fit, Walk};
use crate::id::JobName;
use crate::ledger::cursor::Cursor;
use crate::phrase;
use crate::phrase::Value;

const WALK: Walk = Walk { shown: 40, searched: 2_000 };

pub(super) static PAGE: Page =
    Page { slug: "books", title: || phrase!("Books", "書籍"), load, sheet: None };

fn load(finder: &Finder, tx: &mut Tx<'_>, query: &PageQuery) -> db::Result<PageView> {
    let mut page = PageView::new(phrase!("Books", "書籍"));
    let filter = GridQuery::of(query);
    page.filters = filter.filters(finder);
    let (rows, next) = WALK.list(
        filter.after.clone(),
        |after, limit| {
            store::list_books_behind(tx, after, filter.job.as_ref(), filter.sent == Sent::No, limit)
        },
        |row| Place { first_seen_at: row.seen_at, isbn13: row.row.book.isbn13.clone() },
        |row| filter.fit(&row.row),
    )?;
    let next = next.map(|place| query.with("after", format!("{}/{}", place.first_seen_at, place.isbn13)));
    if rows.is_empty() && next.is_none() {
        page.blocks.push(filter.nothing());
        return Ok(page);
    }
    let cards = rows.iter().map(|row| card(tx, &row.row)).collect::<db::Result<_>>()?;
    page.blocks.push(Block::Cards(Cards { title: filter.title(), cards, next }));
    Ok(page)
}

/// For the page of a job: how far its search was read, and how many of its books were sent.
pub(super) fn list_blocks(mail: &MailStatus, cursor: Option<&Cursor>) -> Vec<Block> {
    let fact = |label, value: Value| Fact { label, value };
    let mut facts = Vec::new();
    if let Some(Cursor { start_index: position, is_exhausted, query_set_hash, last_updated_at, .. }) = cursor
    {
        let read = if *is_exhausted {
            phrase!("{position}, all collected", "{position}（全件取得済み）")
        } else {
            phrase!("{position}", "{position}")
        };
        let hash = query_set_hash.get(..16).unwrap_or(query_set_hash);
        facts.push(fact(phrase!("position", "取得位置"), read.into()));
        facts.push(fact(phrase!("moved", "更新"), (*last_updated_at).into()));
        facts.push(fact(phrase!("query set", "検索条件"), hash.into()));
    }
    let last = mail.last.as_ref().map(|last| last.delivered_at);
    facts.extend(last.map(|at| fact(phrase!("last digest", "最後のダイジェスト"), at.into())));
    let waiting = mail.undelivered;
    let steps = vec![
        FunnelStep {
            name: phrase!("found", "発見"),
            count: mail.books,
            dropped: vec![(phrase!("not sent yet", "未送信"), waiting)],
        },
        FunnelStep { name: phrase!("sent", "送信済み"), count: mail.delivered, dropped: Vec::new() },
    ];
    let funnel = Chart {
        title: phrase!("From found to sent", "発見から送信まで"),
        about: phrase!(
            "{books book} found, {sent} sent",
            "{books} 冊を発見、{sent} 冊を送信",
            books = mail.books,
            sent = mail.delivered
        ),
        figure: Figure::Funnel(steps),
    };
    vec![Block::Facts { title: phrase!("Books", "書籍"), facts, charts: vec![funnel] }]
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sent {
    Any,
    Yes,
    No,
}

/// The filters of the page.
struct GridQuery {
    job: Option<JobName>,
    sent: Sent,
    text: String,
    after: Option<Place>,
}

impl GridQuery {
    fn of(query: &PageQuery) -> Self {
        let place = |text: &str| {
            let (first_seen_at, isbn13) = text.split_once('/')?;
            Some(Place { first_seen_at: first_seen_at.parse().ok()?, isbn13: isbn13.parse().ok()? })
        };
        Self {
            job: query.parse("job"),
            sent: match query.find("sent") {
                Some("yes") => Sent::Yes,
                Some("no") => Sent::No,
                _ => Sent::Any,
            },
            text: query.find("text").unwrap_or_default().to_lowercase(),
            after: query.find("after").and_then(place),
        }
    }

    fn filters(&self, finder: &Finder) -> Vec<PageFilter> {
        let sent = match self.sent {
            Sent::Any => "",
            Sent::Yes => "yes",
            Sent::No => "no",
        };
        let choices = [
            Choice::new("", phrase!("all", "すべて")),
            Choice::new("no", phrase!("not sent yet", "未送信")),
            Choice::new("yes", phrase!("sent", "送信済み")),
        ];
        vec![
            PageFilter::job(finder, Some(KIND), self.job.as_ref().map(JobName::as_str)),
            PageFilter::one("sent", phrase!("Sent", "送信"), choices, sent).as_tabs(),
            PageFilter::text("text", phrase!("Title, author or ISBN", "書名・著者・ISBN"), &self.text),
        ]
    }

    fn fit(&self, row: &BookRow) -> Fit {
        let book = &row.book;
        let has = |text: &str| text.to_lowercase().contains(&self.text);
        let is_sent = row.last_delivered_at.is_some();
        let is_meant = (self.sent != Sent::Yes || is_sent)
            && (self.text.is_empty()
                || has(&book.title)
                || has(book.isbn13.as_str())
                || book.publisher.as_deref().is_some_and(has)
                || book.authors.iter().any(|author| has(author)));
        is_meant.into()
    }

    fn title(&self) -> crate::phrase::Phrase {
        match self.sent {
            Sent::Any => phrase!("Found last", "新しく見つかった順"),
            Sent::Yes => phrase!("Sent", "送信済み"),
            Sent::No => phrase!("Not sent yet", "未送信"),
        }
    }

    fn nothing(&self) -> Block {
        let is_narrowed = self.job.is_some() || self.sent != Sent::Any || !self.text.is_empty();
        if is_narrowed {
            Block::Empty {
                text: phrase!("No such book was found.", "該当する書籍はありません。"),
                command: None,
            }
        } else {
            Block::Empty {
                text: phrase!(
                    "No books yet. A run of a books job finds them.",
                    "書籍はまだありません。書籍のジョブを実行すると見つかります。"
                ),
                command: Some("run-due".to_owned()),
            }
        }
    }
}

fn card(tx: &mut Tx<'_>, row: &BookRow) -> db::Result<Card> {
    let book = &row.book;
    let mut lines: Vec<Value> = Vec::new();
    lines.extend(book.published_date.as_deref().map(Value::from));
    lines.push(book.isbn13.as_str().into());
    let said = match row.last_delivered_at {
        Some(at) => phrase!("sent {at}", "送信済み（{at}）"),
        None => phrase!("not sent yet", "未送信"),
    };
    let link = |link: &super::model::BookLink| Value::Link {
        href: link.url.clone(),
        text: Some(link.label.clone()),
    };
    Ok(Card {
        title: book.title.clone(),
        by: book.authors.join(", "),
        state: if row.last_delivered_at.is_some() { State::Ok } else { State::New },
        said,
        lines,
        links: book.links.iter().take(2).map(link).collect(),
        about: subject(&book.isbn13).to_string(),
        detail: find_prompt(tx, &book.isbn13)?,
    })
}

fn find_prompt(tx: &mut Tx<'_>, isbn13: &Isbn13) -> db::Result<Option<(crate::phrase::Phrase, String)>> {
    let prompt = store::find_prompt(tx, isbn13)?;
    Ok(prompt.map(|text| (phrase!("prompt", "プロンプト"), text)))
}
