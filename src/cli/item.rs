//! `item`: items of press jobs, their states and reasons, and decisions about them.

use clap::Subcommand;
use serde::Serialize;

use super::names::refuse_unknown_if_given;
use super::since::SinceArgs;
use super::table::row;
use super::{Column, Context, Error, Exit, Result, view};
use tsuzuki::db::Db;
use tsuzuki::phrase;
use tsuzuki::phrase::Phrase;
use tsuzuki::press::commands::{self, ItemAnswer};
use tsuzuki::press::events;
use tsuzuki::press::store::{self, ItemFilter};
use tsuzuki::press::view::standing_in;
use tsuzuki::press::{Item, Reason, Status};
use tsuzuki::text;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List items, those found last first
    Ls {
        /// Only this job
        #[arg(long, value_name = "NAME")]
        job: Option<String>,
        /// Only this state: unprocessed, deferred, pending or processed (or 0 to 3)
        #[arg(long, value_parser = Status::parse)]
        state: Option<Status>,
        /// Only this reason: not_valuable, page_not_ready, download_failed, … (or 0 to 6)
        #[arg(long, value_parser = Reason::parse)]
        reason: Option<Reason>,
        #[command(flatten)]
        since: SinceArgs,
        /// At most this many
        #[arg(long, default_value_t = 30)]
        limit: usize,
    },
    /// Show one item with everything that is known about it
    Show(Which),
    /// Process an item again from the beginning, with all its attempts
    Retry(Which),
    /// Discard an item; it is not processed again
    Skip(Which),
}

/// Names an item.
#[derive(Debug, clap::Args)]
pub(super) struct Which {
    /// Its number or address
    item: String,
    /// The job, when several have the address
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
}

/// An item, with its state in words.
#[derive(Serialize)]
struct ListedItem {
    #[serde(flatten)]
    item: Item,
    state_words: Phrase,
}

pub(super) async fn run(command: Command, context: &Context) -> Result {
    match command {
        Command::Ls { job, state, reason, since, limit } => {
            list(ItemFilter { job, status: state, reason, before: None }, &since, limit, context).await
        }
        Command::Show(which) => show(&which, context).await,
        Command::Retry(which) => change(&which, commands::retry, context).await,
        Command::Skip(which) => change(&which, commands::skip, context).await,
    }
}

async fn list(filter: ItemFilter, since: &SinceArgs, limit: usize, context: &Context) -> Result {
    let db = context.view().await?;
    refuse_unknown_if_given("job", filter.job.as_deref(), &db, context).await?;
    let since = since.moment(context).await?;
    let listed = db.read(move |tx| {
        let items = store::list(tx, &filter, limit)?.into_iter().filter(|item| item.created_at >= since);
        items
            .map(|item| Ok(ListedItem { state_words: standing_in(tx, &item)?, item }))
            .collect::<Result<Vec<_>, _>>()
    });
    let listed = listed.await?;
    let columns = [
        Column::right(phrase!("id", "番号")),
        Column::left(phrase!("job", "ジョブ")).secondary(),
        Column::long(phrase!("state", "状態")),
        Column::right(phrase!("tries", "試行")).secondary(),
        Column::moment(phrase!("published", "公開")),
        Column::long(phrase!("title", "題名")),
    ];
    context.out.listing(&columns, &listed, |ListedItem { item, state_words }| {
        row![item.id, &item.job_name, state_words.clone(), item.retry_count, item.published_at, &item.title]
    })
}

async fn show(which: &Which, context: &Context) -> Result {
    let item = find(which, &context.view().await?).await?;
    view::show(&events::numbered(item.id), context).await?;
    Ok(Exit::Fine)
}

type Change =
    fn(&mut tsuzuki::db::Tx<'_>, &Item, tsuzuki::time::Timestamp) -> tsuzuki::db::Result<ItemAnswer>;

async fn change(which: &Which, change: Change, context: &Context) -> Result {
    let (db, now) = (context.db().await?, context.clock.now());
    let item = find(which, db).await?;
    let (title, id) = (text::one_line(&item.title), item.id);
    match db.write(move |tx| change(tx, &item, now)).await? {
        ItemAnswer::Done { status } => context.out.done(phrase!(
            "item {id} is now {status}: {title}",
            "記事 {id} を {status} にしました：{title}",
            status = status.word()
        )),
        ItemAnswer::NotNow { why, hint } => {
            let speech = context.speech().await?;
            let why = speech.phrase(&why);
            Err(Error::failed(phrase!("item {id} stays as it is: {why}", "記事 {id} は変わりません：{why}"))
                .hint(speech.phrase(&hint)))
        }
    }
}

/// Finds the item by number or address.
async fn find(which: &Which, db: &Db) -> Result<Item> {
    let (word, job) = (which.item.clone(), which.job.clone());
    let found = db
        .read(move |tx| {
            let mut found: Vec<Item> = match word.parse::<i64>() {
                Ok(id) => store::find(tx, id)?.into_iter().collect(),
                Err(_) => store::list_by_url(tx, &word)?,
            };
            found.retain(|item| job.as_ref().is_none_or(|job| *job == item.job_name));
            Ok(found)
        })
        .await?;
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (Some(item), None) => Ok(item),
        (None, _) => Err(Error::failed(phrase!(
            "there is no item `{item}`",
            "記事 `{item}` はありません",
            item = text::one_line(&which.item)
        ))
        .hint(phrase!("`tsuzuki item ls` lists the items", "記事の一覧は `tsuzuki item ls` で確認できます"))),
        (Some(one), Some(other)) => Err(Error::usage(phrase!(
            "several jobs have this address: `{one}`, `{other}`",
            "このアドレスは複数のジョブにあります：`{one}`、`{other}`",
            one = &one.job_name,
            other = &other.job_name
        ))
        .hint(phrase!("name one of them with --job", "--job でどれか 1 つを指定してください"))),
    }
}
