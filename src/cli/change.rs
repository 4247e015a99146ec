//! `change`: new entries of blogs, and decisions about held ones.

use clap::Subcommand;

use super::names::refuse_unknown_if_given;
use super::since::SinceArgs;
use super::table::{Tone, row};
use super::{Cell, Column, Context, Error, Exit, Result, view as shown};
use tsuzuki::app;
use tsuzuki::blogs::decide::Code;
use tsuzuki::blogs::events::change_subject;
use tsuzuki::blogs::store::ChangeFilter;
use tsuzuki::blogs::view::{self, ListedChange};
use tsuzuki::blogs::{change, commands};
use tsuzuki::channel::outbox::Answer;
use tsuzuki::phrase;
use tsuzuki::phrase::Phrase;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List what was new, newest first
    Ls {
        /// Only this blog
        blog: Option<String>,
        /// Only this job
        #[arg(long, value_name = "NAME")]
        job: Option<String>,
        /// Also failures, recoveries and blogs that are gone
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        since: SinceArgs,
        /// At most this many
        #[arg(long, default_value_t = 30)]
        limit: usize,
    },
    /// Show one change with its entries and what became of its messages
    Show {
        /// Its number
        id: i64,
    },
    /// Release the held messages of a change
    Approve {
        /// Its number
        #[arg(required = true)]
        id: Vec<i64>,
    },
    /// Discard the held messages of a change; its entries stay known
    Skip {
        /// Its number
        #[arg(required = true)]
        id: Vec<i64>,
    },
    /// Check a blog again that was paused because it was gone
    Resume {
        /// Its id
        blog: String,
    },
}

pub(super) async fn run(command: Command, context: &Context) -> Result {
    match command {
        Command::Ls { blog, job, all, since, limit } => {
            list(
                ChangeFilter { job, blog, code: (!all).then_some(Code::New), before: None },
                &since,
                limit,
                context,
            )
            .await
        }
        Command::Show { id } => show(id, context).await,
        Command::Approve { id } => decide(id, ChangeChoice::Approve, context).await,
        Command::Skip { id } => decide(id, ChangeChoice::Skip, context).await,
        Command::Resume { blog } => super::blog::resume(&blog, context).await,
    }
}

async fn list(filter: ChangeFilter, since: &SinceArgs, limit: usize, context: &Context) -> Result {
    let db = context.view().await?;
    refuse_unknown_if_given("blog", filter.blog.as_deref(), &db, context).await?;
    refuse_unknown_if_given("job", filter.job.as_deref(), &db, context).await?;
    let since = since.moment(context).await?;
    let mut listed = db.read(move |tx| view::list_changes(tx, &filter, limit)).await?;
    listed.retain(|listed| listed.change.found_at >= since);
    let columns = [
        Column::right(phrase!("id", "番号")),
        Column::moment(phrase!("found", "発見")),
        Column::left(phrase!("blog", "ブログ")),
        Column::left(phrase!("what", "種別")).secondary(),
        Column::right(phrase!("entries", "件数")),
        Column::left(phrase!("state", "状態")),
        Column::long(phrase!("first", "先頭の記事")),
    ];
    context.out.listing(&columns, &listed, |listed| {
        let row = &listed.change;
        row![
            row.id,
            row.found_at,
            &row.blog_id,
            row.code.phrase(),
            row.detail.count(),
            if change::needs_approval(listed) {
                Cell::toned(change::standing(listed), Tone::Warning)
            } else {
                change::standing(listed).into()
            },
            first_of(listed),
        ]
    })?;
    let held = listed.iter().filter(|listed| change::needs_approval(listed)).count();
    if held > 0 {
        context.out.note(phrase!(
            "{held} held: `tsuzuki change approve ID` or `skip ID`",
            "確認待ち {held} 件：`tsuzuki change approve ID` または `skip ID`"
        ));
    }
    Ok(Exit::Fine)
}

async fn show(id: i64, context: &Context) -> Result {
    if shown::show(&change_subject(id), context).await? { Ok(Exit::Fine) } else { Err(missing(id)) }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ChangeChoice {
    Approve,
    Skip,
}

async fn decide(ids: Vec<i64>, choice: ChangeChoice, context: &Context) -> Result {
    let now = context.clock.now();
    let topics = app::topics();
    for id in ids {
        let topics = topics.clone();
        let answers = context
            .db()
            .await?
            .write(move |tx| match choice {
                ChangeChoice::Approve => commands::approve(tx, id, now),
                ChangeChoice::Skip => commands::skip(tx, id, &topics, now),
            })
            .await?;
        let Some(answers) = answers else { return Err(missing(id)) };
        let done = answers.iter().filter(|answer| matches!(answer, Answer::Done { .. })).count();
        if done == 0 {
            let message = phrase!(
                "change {id} has no message that waits for a decision",
                "変更 {id} に確認待ちのメッセージはありません"
            );
            return Err(Error::failed(message).hint(phrase!(
                "`tsuzuki change show {id}` says what became of it",
                "`tsuzuki change show {id}` で結果を確認できます"
            )));
        }
        context.out.note(match choice {
            ChangeChoice::Approve => {
                phrase!("change {id}: released {done message}", "変更 {id}：{done} 件を送信します")
            }
            ChangeChoice::Skip => {
                phrase!("change {id}: discarded {done message}", "変更 {id}：{done} 件を破棄しました")
            }
        });
    }
    Ok(Exit::Fine)
}

fn missing(id: i64) -> Error {
    Error::failed(phrase!("there is no change {id}", "変更 {id} はありません"))
        .hint(phrase!("`tsuzuki change ls` lists them", "`tsuzuki change ls` で一覧できます"))
}

fn first_of(listed: &ListedChange) -> Phrase {
    let detail = &listed.change.detail;
    let first = detail.entries.first();
    let name = first.and_then(|entry| entry.title.clone().or_else(|| entry.url.clone()));
    name.map(Phrase::from).or_else(|| detail.error.clone()).unwrap_or_else(|| "".into())
}
