//! `book`: the books found, the history of one book, and its prompt.

use clap::Subcommand;

use super::names::refuse_unknown_if_given;
use super::since::SinceArgs;
use super::table::row;
use super::{Column, Context, Error, Exit, Result, view as shown};
use tsuzuki::books::model::Isbn13;
use tsuzuki::books::{events, prompt, store, view};
use tsuzuki::id::JobName;
use tsuzuki::phrase;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List books, newest first
    Ls {
        /// Only those that this job found
        #[arg(long, value_name = "NAME")]
        job: Option<JobName>,
        /// Only those that were not delivered yet
        #[arg(long)]
        undelivered: bool,
        #[command(flatten)]
        since: SinceArgs,
        /// At most this many
        #[arg(long, default_value_t = 50)]
        limit: usize,
    },
    /// Show a book: what is known, who found it, when it was sent
    Show {
        /// Its ISBN, with 13 or 10 digits
        isbn: Isbn13,
    },
    /// Print the prompt of a book
    Prompt {
        /// Its ISBN, with 13 or 10 digits
        isbn: Isbn13,
    },
}

pub(super) async fn run(command: Command, context: &Context) -> Result {
    match command {
        Command::Ls { job, undelivered, since, limit } => {
            list(job, undelivered, &since, limit, context).await
        }
        Command::Show { isbn } => show(isbn, context).await,
        Command::Prompt { isbn } => print_prompt(isbn, context).await,
    }
}

async fn list(
    job: Option<JobName>,
    undelivered: bool,
    since: &SinceArgs,
    limit: usize,
    context: &Context,
) -> Result {
    let db = context.view().await?;
    refuse_unknown_if_given("job", job.as_ref().map(JobName::as_str), &db, context).await?;
    let since = since.moment(context).await?;
    let mut rows =
        db.read(move |tx| view::list(tx, store::BookQuery { job: job.as_ref(), undelivered, limit })).await?;
    rows.retain(|row| row.first_seen_at >= since);
    let columns = [
        Column::left(phrase!("ISBN", "ISBN")),
        Column::long(phrase!("title", "題名")),
        Column::left(phrase!("published", "出版日")),
        Column::moment(phrase!("found", "発見")),
        Column::moment(phrase!("delivered", "送信")),
    ];
    context.out.listing(&columns, &rows, |row| {
        row![
            row.book.isbn13.to_string(),
            &row.book.title,
            row.book.published_date.as_deref(),
            row.first_seen_at,
            row.last_delivered_at,
        ]
    })
}

async fn show(isbn: Isbn13, context: &Context) -> Result {
    if shown::show(&events::book(&isbn), context).await? { Ok(Exit::Fine) } else { Err(unknown(&isbn)) }
}

/// Prints the prompt of existing links, or the one that a digest would make now.
async fn print_prompt(isbn: Isbn13, context: &Context) -> Result {
    let wanted = isbn.clone();
    let (stored, book, found_by) = context
        .view()
        .await?
        .read(move |tx| {
            let found_by = store::list_jobs_of_book(tx, &wanted)?;
            Ok((store::find_prompt(tx, &wanted)?, store::find_book(tx, &wanted)?, found_by))
        })
        .await?;
    let config = context.config().await?;
    let language = config.app.message_language();
    let job = config.jobs.iter().find(|job| found_by.iter().any(|found| found.job_name == job.name));
    let own = || prompt::Prompt::Own(language);
    let prompt = job
        .and_then(|job| Some(prompt::Prompt::of(job.section.keys().ok()?, &job.section, language)))
        .unwrap_or_else(own);
    let prompt_text = match (stored, book) {
        (Some(prompt_text), _) => prompt_text,
        (None, Some(book)) => prompt.render(&book),
        (None, None) => return Err(unknown(&isbn)),
    };
    let shown = serde_json::json!({ "isbn13": isbn, "prompt_text": prompt_text });
    context.out.json_or_line(&shown, &prompt_text)?;
    Ok(Exit::Fine)
}

fn unknown(isbn: &Isbn13) -> Error {
    Error::failed(phrase!(
        "no job has found a book with ISBN {isbn}",
        "ISBN {isbn} の書籍を見つけたジョブはありません",
        isbn = isbn.to_string()
    ))
    .hint(phrase!("`tsuzuki book ls` lists what was found", "一覧は `tsuzuki book ls` で確認できます"))
}
