//! `mail`: the status of mails, previews, tests and resets.

use clap::{Subcommand, ValueEnum};

use super::channel::{choose, send_test};
use super::names::refuse_unknown_if_given;
use super::since::SinceArgs;
use super::table::row;
use super::{Column, Context, Error, Exit, Result};
use tsuzuki::books::{self, Books, deliver, select, view};
use tsuzuki::channel::MAIL;
use tsuzuki::config;
use tsuzuki::id::JobName;
use tsuzuki::phrase;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Show for every books job what was delivered and what waits
    Status,
    /// Print the next digest of a job as a mail; its links are placeholders
    Preview {
        /// The job
        job: JobName,
        /// Which part of it
        #[arg(long, value_enum, default_value_t)]
        part: Part,
    },
    /// Send a test mail now, and print what the server answered
    Test {
        /// The mail channel [default: the only one]
        #[arg(long, value_name = "NAME")]
        channel: Option<String>,
        /// Send it here instead of to the recipients of the channel
        #[arg(long, value_name = "ADDRESS")]
        to: Option<String>,
    },
    /// Forget deliveries, so that their books are mailed again
    Reset {
        /// Only those of this job
        #[arg(long, value_name = "NAME")]
        job: Option<JobName>,
        #[command(flatten)]
        since: SinceArgs,
        /// Confirm: without it nothing is changed
        #[arg(long)]
        yes: bool,
    },
}

/// A part of a mail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Part {
    /// Subject and plain text
    #[default]
    Text,
    /// The HTML, for a browser
    Html,
}

pub(super) async fn run(command: Command, context: &Context) -> Result {
    match command {
        Command::Status => status(context).await,
        Command::Preview { job, part } => preview(&job, part, context).await,
        Command::Test { channel, to } => {
            let app = context.read_only_app().await?;
            let mails = app.env.channels.iter().filter(|one| one.kind() == MAIL);
            let chosen = choose(mails, channel.as_deref(), "mail", "--channel NAME")?;
            context.unless_stopped(send_test(chosen, to.as_deref(), &app, context)).await
        }
        Command::Reset { job, since, yes } => reset(job, &since, yes, context).await,
    }
}

async fn status(context: &Context) -> Result {
    let config = context.config().await?;
    let jobs: Vec<JobName> = books_jobs(config).map(|job| job.name.clone()).collect();
    let rows = context
        .view()
        .await?
        .read(move |tx| {
            jobs.iter().map(|job| view::mail_status(tx, job)).collect::<tsuzuki::db::Result<Vec<_>>>()
        })
        .await?;
    let columns = [
        Column::left(phrase!("job", "ジョブ")),
        Column::right(phrase!("books", "書籍")),
        Column::right(phrase!("delivered", "送信済み")),
        Column::right(phrase!("undelivered", "未送信")),
        Column::right(phrase!("queued", "送信待ち")),
        Column::moment(phrase!("last mail", "最終メール")),
        Column::right(phrase!("books in it", "その冊数")).secondary(),
    ];
    context.out.listing(&columns, &rows, |row| {
        row![
            &row.job_name,
            row.books,
            row.delivered,
            row.undelivered,
            row.on_their_way,
            row.last.as_ref().map(|last| last.delivered_at),
            row.last.as_ref().map(|last| last.books),
        ]
    })
}

async fn preview(name: &JobName, part: Part, context: &Context) -> Result {
    let app = context.read_only_app().await?;
    let config = context.config().await?;
    let Some(job) = books_jobs(config).find(|job| job.name == *name) else {
        let error =
            Error::usage(phrase!("there is no books job `{name}`", "books ジョブ `{name}` はありません"));
        let known = books_jobs(config).map(|job| job.name.as_str());
        let all =
            phrase!("`tsuzuki job ls` lists the jobs", "ジョブの一覧は `tsuzuki job ls` で確認できます");
        return Err(error.hint_nearest(name.as_str(), known, all));
    };
    let books = Books::new(job, &app.env)?;
    let plan = books.deliver_plan();
    let (job, limits, now) = (name.clone(), plan.limits.clone(), context.clock.now());
    let choice = app.env.db.read(move |tx| select::choose(tx, &job, &limits, now)).await?;
    if choice.books().is_empty() {
        context.out.note(phrase!("{name} has nothing to send now", "{name} に今送るものはありません"));
        return context.out.nothing();
    }
    let mail = deliver::preview(plan, name, &choice, now);
    if plan.web.links_are_local() {
        context.out.warn(books::config::local_links());
        context.out.note(phrase!("hint: {hint}", "ヒント: {hint}", hint = books::config::local_links_hint()));
    }
    match (context.out.is_json(), part) {
        (true, _) => context.out.json(&mail)?,
        (false, Part::Text) => context.out.line(format!("{}\n\n{}", mail.subject, mail.text))?,
        (false, Part::Html) => context.out.line(&mail.html)?,
    }
    Ok(Exit::Fine)
}

async fn reset(job: Option<JobName>, since: &SinceArgs, yes: bool, context: &Context) -> Result {
    let since = since.find(context).await?;
    let whose = match &job {
        None => phrase!("all jobs", "全ジョブ"),
        Some(job) => phrase!("job {job}", "ジョブ {job}"),
    };
    if !yes {
        return Err(Error::usage(phrase!(
            "resetting forgets deliveries of {whose}: their books will be mailed again",
            "{whose}の送信の記録を取り消します（書籍がもう一度メールで送られます）"
        ))
        .hint(phrase!("add `--yes` if that is what you want", "実行するには `--yes` を付けてください")));
    }
    let now = context.clock.now();
    let name = job.as_ref().map(JobName::as_str);
    refuse_unknown_if_given("job", name, context.db().await?, context).await?;
    let forgotten =
        context.db().await?.write(move |tx| view::reset_mail(tx, job.as_ref(), since, now)).await?;
    context.out.done(phrase!(
        "Reset {count delivered book} of {whose}",
        "{whose}の送信済みの書籍 {count} 件を取り消しました",
        count = forgotten
    ))
}

fn books_jobs(config: &config::Config) -> impl Iterator<Item = &config::Job> {
    config.jobs.iter().filter(|job| job.kind == books::KIND)
}
