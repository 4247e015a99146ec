//! `import`: imports blogs from lists, and the data of four other programs.

mod blogs;
mod databases;

use std::collections::BTreeSet;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Subcommand;
use indicatif::ProgressBar;
use parking_lot::Mutex;
use serde::Serialize;

use super::table::row;
use super::{Column, Context, Error, Exit, Result, progress, sending};
use tsuzuki::config::Config;
use tsuzuki::config::value::Zone;
use tsuzuki::db::{Db, DbUrl, Open};
use tsuzuki::id::JobName;
use tsuzuki::import::{Options, Report};
use tsuzuki::phrase;
use tsuzuki::phrase::Phrase;
use tsuzuki::text::nearest;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Add the feeds of an OPML file to a blogs job
    Opml {
        /// The file, an address, or - for the standard input
        #[arg(value_hint = clap::ValueHint::FilePath)]
        input: String,
        /// Take what is there of a file that is cut off
        #[arg(long)]
        partial: bool,
        #[command(flatten)]
        how: How,
    },
    /// Add the addresses of a plain list to a blogs job, one a line
    Urls {
        /// The file, or - for the standard input
        #[arg(value_hint = clap::ValueHint::FilePath)]
        input: String,
        #[command(flatten)]
        how: How,
    },
    /// Take over the items of mic-bot
    MicBot {
        /// Its SQLite file
        db: PathBuf,
        #[command(flatten)]
        how: How,
        #[command(flatten)]
        times: Times,
    },
    /// Take over the books, deliveries, prompts and jobs of dre
    Dre {
        /// Its directory, or its SQLite file
        place: PathBuf,
        /// Its jobs.yaml [default: config/jobs.yaml in the directory]
        #[arg(long, value_name = "FILE")]
        jobs: Option<PathBuf>,
        #[command(flatten)]
        how: How,
        #[command(flatten)]
        times: Times,
    },
    /// Take over the blogs of blog-watcher and what it has seen on them
    BlogWatcher {
        /// Its config.toml
        #[arg(long, value_name = "FILE", required_unless_present = "db")]
        blogs: Option<PathBuf>,
        /// Its SQLite file
        #[arg(long, value_name = "FILE")]
        db: Option<PathBuf>,
        #[command(flatten)]
        how: How,
        #[command(flatten)]
        times: Times,
    },
    /// Take over the projects, commits and runs of gitlab-analyzer
    GitlabAnalyzer {
        /// Its SQLite file
        db: PathBuf,
        /// The GitLab it collected from [default: that of the job, else the one that the file names]
        #[arg(long, value_name = "URL")]
        gitlab: Option<String>,
        #[command(flatten)]
        how: How,
        #[command(flatten)]
        times: Times,
    },
}

/// Options of every import.
#[derive(Debug, clap::Args)]
pub(super) struct How {
    /// The job that it belongs to [default: the only one of its kind]
    #[arg(long, value_name = "NAME")]
    job: Option<JobName>,
    /// The job that `--job` names is a new one, though another has nearly the same name
    #[arg(long, requires = "job")]
    new: bool,
    /// Show what would be added, and change nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Times {
    /// The time zone of times in the file that name none
    #[arg(long, default_value = "UTC", value_name = "ZONE")]
    timezone: String,
}

pub(super) async fn run(command: Command, context: &Context) -> Result {
    // Read the config first: errors about the source are in its language.
    context.config().await?;
    let (exit, how, kind) = match command {
        Command::Opml { input, partial, how } => {
            (blogs::opml(&input, partial, &how, context).await?, how, tsuzuki::blogs::KIND)
        }
        Command::Urls { input, how } => {
            (blogs::urls(&input, &how, context).await?, how, tsuzuki::blogs::KIND)
        }
        Command::MicBot { db, how, times } => {
            (databases::mic_bot(db, &how, &times, context).await?, how, tsuzuki::press::KIND)
        }
        Command::Dre { place, jobs, how, times } => {
            (databases::dre(place, jobs, &how, &times, context).await?, how, tsuzuki::books::KIND)
        }
        Command::BlogWatcher { blogs, db, how, times } => {
            (databases::blog_watcher(blogs, db, &how, &times, context).await?, how, tsuzuki::blogs::KIND)
        }
        Command::GitlabAnalyzer { db, gitlab, how, times } => {
            let exit = databases::gitlab_analyzer(db, gitlab.as_deref(), &how, &times, context).await?;
            (exit, how, tsuzuki::commits::KIND)
        }
    };
    // The import has changed the jobs of the file.
    let config = context.load_config()?;
    let is_meant = |job: &&tsuzuki::config::Job| {
        job.kind == kind && how.job.as_ref().is_none_or(|name| *name == job.name)
    };
    sending::warn_without_channel(config.jobs.iter().filter(is_meant), &context.out);
    Ok(exit)
}

/// The report of an import.
#[derive(Default, Serialize)]
struct ImportResult {
    dry_run: bool,
    #[serde(flatten)]
    report: Report,
    /// Jobs that were, or would be, added to the config file.
    jobs: Vec<String>,
    /// Blogs that were, or would be, added to the config file.
    blogs: Vec<tsuzuki::import::list::NewBlog>,
}

impl ImportResult {
    fn print(&self, context: &Context) -> Result {
        let exit = if self.report.refused() > 0 { Exit::Partly } else { Exit::Fine };
        if context.out.is_json() {
            context.out.json(self)?;
            return Ok(exit);
        }
        let columns = [
            Column::left(phrase!("table", "表")),
            Column::right(phrase!("found", "件数")),
            Column::right(if self.dry_run {
                phrase!("would add", "追加予定")
            } else {
                phrase!("added", "追加")
            }),
            Column::right(phrase!("already there", "登録済み")),
            Column::right(phrase!("refused", "対象外")),
        ];
        // A list of addresses has no tables.
        if !self.report.tables.is_empty() {
            context.out.listing(&columns, &self.report.tables, |table| {
                row![&table.table, table.found, table.added, table.known, table.refused]
            })?;
        }
        if !self.blogs.is_empty() {
            let columns = [
                Column::left(phrase!("id", "ID")),
                Column::long(phrase!("address", "アドレス")),
                Column::long(phrase!("feed", "フィード")),
            ];
            context
                .out
                .listing(&columns, &self.blogs, |blog| row![&blog.id, &blog.url, blog.feed.as_deref()])?;
        }
        for table in &self.report.tables {
            for reason in &table.reasons {
                context.out.warn(phrase!(
                    "{table}: {count} refused, first row {first_row}: {reason}",
                    "{table}：{count} 件を取り込めません（最初は {first_row} 行目：{reason}）",
                    table = &table.table,
                    count = reason.count.to_string(),
                    first_row = reason.first_row.to_string(),
                    reason = &reason.reason
                ));
            }
        }
        for notice in &self.report.notices {
            context.out.note(notice);
        }
        if !self.jobs.is_empty() {
            let jobs = self.jobs.join(", ");
            context.out.note(if self.dry_run {
                phrase!(
                    "Jobs that would be added to the config file: {jobs}",
                    "設定ファイルに追加するジョブ：{jobs}"
                )
            } else {
                phrase!(
                    "Jobs that were added to the config file: {jobs}",
                    "設定ファイルに追加したジョブ：{jobs}"
                )
            });
        }
        if self.dry_run {
            context.out.note(phrase!("Nothing was changed.", "何も変更していません。"));
        }
        Ok(exit)
    }
}

/// The database to import into; for a dry run it is not changed, and an empty one takes its place if there is none.
///
/// The directory contains the empty one, and is removed when the value is dropped.
async fn open_db(how: &How, context: &Context) -> Result<(Db, Option<tempfile::TempDir>)> {
    if !how.dry_run {
        return Ok((context.db().await?.clone(), None));
    }
    if !context.database_exists().await? {
        // A file and not memory, because imports may be large.
        let dir = tempfile::tempdir()?;
        let place = DbUrl::File(dir.path().join("rehearsal.db"));
        return Ok((Db::open(place, Open::Create, context.clock.clone()).await?, Some(dir)));
    }
    // An outdated schema is refused here, so that opening it for the rehearsal changes nothing.
    Db::open(context.place().await?, Open::ReadOnly, context.clock.clone()).await?.close().await;
    Ok((context.open_db(Open::Existing).await?.clone(), None))
}

fn options(how: &How, times: &Times, context: &Context) -> Result<Options> {
    let zone: Zone = times.timezone.parse().map_err(|error: tsuzuki::config::value::BadValue| {
        error.hint().into_iter().fold(Error::usage(error.message()), Error::hint)
    })?;
    let plain = Options::plain();
    let progress = if context.out.is_quiet() || context.out.is_json() || !std::io::stderr().is_terminal() {
        plain.progress
    } else {
        drawn()
    };
    Ok(Options { dry_run: how.dry_run, zone: zone.time_zone().clone(), progress, stop: context.stop.clone() })
}

fn drawn() -> tsuzuki::import::Progress {
    let style = progress::style("{msg:24} {bar:30} {pos}/{len} {rate}");
    let bar = Mutex::new(ProgressBar::new(0).with_style(style));
    Arc::new(move |table, done, total| {
        let bar = bar.lock();
        bar.set_length(total);
        bar.set_message(table.to_owned());
        bar.set_position(done);
        if done == total {
            bar.finish_and_clear();
            bar.reset();
        }
    })
}

/// The job that `how` names, or the only one of that kind; `None` when there is none or several.
fn find_job<'a>(how: &How, kind: &str, config: &'a Config) -> Result<Option<&'a tsuzuki::config::Job>> {
    if let Some(name) = &how.job {
        return match config.find_job(name.as_str()) {
            Some(job) if job.kind != kind => Err(Error::usage(phrase!(
                "`{name}` is a {found} job, not a {kind} job",
                "`{name}` は {kind} ジョブではなく {found} ジョブです",
                found = &job.kind
            ))
            .hint(phrase!(
                "`tsuzuki job ls` lists the jobs; name another with --job",
                "ジョブの一覧は `tsuzuki job ls` で確認できます。--job で別のジョブを指定してください"
            ))),
            found => Ok(found),
        };
    }
    let mut jobs = config.jobs.iter().filter(|job| job.kind == kind);
    Ok(jobs.next().filter(|_| jobs.next().is_none()))
}

/// What to do with a given job that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IfNew {
    /// The import writes it into the config file.
    IsMade,
    /// The rows wait until the user adds it.
    IsAwaited,
}

/// Reports that the given job does not exist, and refuses a name similar to that of another, which may be a
/// misspelling. The jobs `also` are added by the import.
async fn check_name(how: &How, also: &BTreeSet<JobName>, if_new: IfNew, context: &Context) -> Result<()> {
    let config = context.config().await?;
    let Some(name) = how.job.as_ref().filter(|name| config.find_job(name.as_str()).is_none()) else {
        return Ok(());
    };
    if also.contains(name) {
        return Ok(());
    }
    let known = config.jobs.iter().map(|job| job.name.as_str()).chain(also.iter().map(JobName::as_str));
    if !how.new
        && let Some(near) = nearest(name.as_str(), known)
    {
        return Err(Error::usage(phrase!("there is no job `{name}`", "ジョブ `{name}` はありません"))
            .hint(phrase!("did you mean `{near}`?", "`{near}` ではありませんか？"))
            .hint(phrase!("add --new if it is to be a new job", "新しいジョブなら --new を付けてください")));
    }
    context.out.note(match if_new {
        IfNew::IsMade => phrase!(
            "job `{name}` does not exist; it is made new",
            "ジョブ `{name}` はないため、新しく作ります"
        ),
        IfNew::IsAwaited => phrase!(
            "job `{name}` does not exist; what is imported for it waits until the config file has it",
            "ジョブ `{name}` はまだありません。取り込んだものは、設定ファイルに追加されるまで待機します"
        ),
    });
    Ok(())
}

/// An error about a file.
fn about(file: &str, why: impl Into<Phrase>) -> Phrase {
    let why = why.into();
    phrase!("{file}: {why}", "{file}：{why}")
}

/// Reads a whole file, or standard input, up to a limit; can be cancelled.
async fn load_input(input: &str, most: u64, context: &Context) -> Result<Vec<u8>> {
    let name = input.to_owned();
    let loading = tokio::task::spawn_blocking(move || read_input(&name, most));
    tokio::select! {
        biased;
        () = context.stop.cancelled() => {
            Err(Error::new(Exit::Interrupted, phrase!("interrupted; nothing was imported", "中断しました。何も取り込んでいません")))
        }
        loaded = loading => loaded.map_err(|_| Error::failed(phrase!("{input} cannot be read", "{input} を読み込めません")))?,
    }
}

fn read_input(input: &str, most: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let failed = |error: std::io::Error| {
        Error::failed(phrase!(
            "{input} cannot be read: {error}",
            "{input} を読み込めません：{error}",
            error = error.to_string()
        ))
    };
    match input {
        "-" => std::io::stdin().take(most + 1).read_to_end(&mut bytes).map_err(failed)?,
        file => {
            let file = std::fs::File::open(Path::new(file)).map_err(failed)?;
            file.take(most + 1).read_to_end(&mut bytes).map_err(failed)?
        }
    };
    if bytes.len() as u64 > most {
        Err(Error::failed(phrase!(
            "{input} is larger than {most} bytes",
            "{input} は {most} バイトを超えています"
        )))
    } else {
        Ok(bytes)
    }
}
