//! `commits`: statistics per person and month, and the newest commits.

use clap::{Subcommand, ValueEnum};

use super::names::refuse_unknown_if_given;
use super::{Column, Context, Error, Exit, Result};
use crate::commits::stats::{self, By, StatRow, Stats};
use crate::commits::store::projects;
use crate::commits::store::reading::{self, Scope};
use crate::config::value::Zone;
use crate::db::Db;
use crate::text::{counted, one_line};

/// Options of `commits`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Count commits and changed lines per person
    Stats {
        /// Per month, per day, or in all
        #[arg(long, value_enum, default_value_t = ByWord::Month)]
        by: ByWord,
        #[command(flatten)]
        scope: ScopeArgs,
        /// Print tab-separated values, for spreadsheets
        #[arg(long, conflicts_with = "json")]
        tsv: bool,
        /// The time zone in which months and days begin, or `app` for that of the config
        #[arg(long, default_value = "UTC", value_name = "ZONE")]
        timezone: String,
    },
    /// List the newest commits
    Ls {
        #[command(flatten)]
        scope: ScopeArgs,
        /// At most this many
        #[arg(long, default_value_t = 30)]
        limit: usize,
    },
}

/// Which commits are meant.
#[derive(Debug, clap::Args)]
struct ScopeArgs {
    /// Only this project, by path or number
    #[arg(long)]
    project: Option<String>,
    /// Only this branch
    #[arg(long)]
    branch: Option<String>,
    /// Only this year
    #[arg(long)]
    year: Option<i16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ByWord {
    Month,
    Day,
    Author,
}

impl From<ByWord> for By {
    fn from(word: ByWord) -> Self {
        match word {
            ByWord::Month => By::Month,
            ByWord::Day => By::Day,
            ByWord::Author => By::Author,
        }
    }
}

pub(super) async fn run(args: Args, context: &Context) -> Result {
    match args.command {
        Command::Stats { by, scope, tsv, timezone } => {
            let layout = if tsv { Layout::Tsv } else { Layout::Table };
            count(by.into(), &scope, layout, &timezone, context).await
        }
        Command::Ls { scope, limit } => list(&scope, limit, context).await,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    Table,
    Tsv,
}

async fn read_scope(args: &ScopeArgs, zone: &Zone, context: &Context) -> Result<Scope> {
    let mut scope = Scope { branch_name: args.branch.clone(), ..Scope::default() };
    let db = context.view().await?;
    refuse_unknown_if_given("branch", args.branch.as_deref(), &db, context).await?;
    if let Some(name) = &args.project {
        scope.project_id = Some(find_project(name, &db).await?);
    }
    if let Some(year) = args.year {
        let (from, until) = stats::year_bounds(year, zone)
            .ok_or_else(|| Error::usage(format!("{year} is not a year that a commit can be of")))?;
        (scope.from, scope.until) = (Some(from), Some(until));
    }
    Ok(scope)
}

/// Our number of the project that `name` means.
pub(super) async fn find_project(name: &str, db: &Db) -> Result<i64> {
    let wanted = name.to_owned();
    let found = db.read(move |tx| projects::find_named(tx, &wanted)).await?;
    match found.as_slice() {
        [one] => Ok(one.project_id),
        [] => {
            Err(Error::usage(format!("there is no project `{name}`")).hint("`tsuzuki project ls` lists them"))
        }
        several => Err(Error::usage(format!("`{name}` can be {} projects", several.len())).hint(format!(
            "use the number of one: {}",
            several.iter().map(|p| format!("{} ({})", p.project_id, p.host)).collect::<Vec<_>>().join(", ")
        ))),
    }
}

async fn count(by: By, args: &ScopeArgs, layout: Layout, timezone: &str, context: &Context) -> Result {
    let zone: Zone = match timezone {
        "app" => context.config().await?.app.timezone.clone(),
        name => name.parse().map_err(|error: crate::config::value::BadValue| {
            let usage = Error::usage(error.message());
            error.hint().into_iter().fold(usage, Error::hint)
        })?,
    };
    let scope = read_scope(args, &zone, context).await?;
    let stats = context.view().await?.read(move |tx| stats::count(tx, &scope, by, &zone)).await?;
    if layout == Layout::Tsv {
        context.out.raw(stats::render_tsv(&stats).as_bytes())?;
        note_zone(&stats, context);
        return Ok(Exit::Fine);
    }
    if context.out.is_json() {
        context.out.json(&stats)?;
        return Ok(Exit::Fine);
    }
    let figures = [Column::right("commits"), Column::right("additions"), Column::right("deletions")];
    let mut columns = vec![];
    if by != By::Author {
        columns.push(Column::left(if by == By::Month { "month" } else { "day" }));
    }
    columns.push(Column::left("author"));
    columns.extend(figures);
    let to_cells = |row: &StatRow| {
        let mut cells: Vec<String> = row.period.clone().into_iter().collect();
        cells.extend([
            one_line(&row.author),
            row.commits.to_string(),
            row.additions.to_string(),
            row.deletions.to_string(),
        ]);
        cells
    };
    // How many there are is said below, also when there are none.
    if !stats.rows.is_empty() {
        context.out.listing(&columns, &stats.rows, to_cells)?;
    }
    note_zone(&stats, context);
    Ok(Exit::Fine)
}

/// Says how many commits were counted, and whose midnight begins a day.
fn note_zone(stats: &Stats, context: &Context) {
    let missing = match stats.stats_missing {
        0 => String::new(),
        missing => format!(", {missing} of them without line counts from GitLab"),
    };
    context.out.note(format!(
        "{}{missing}; months and days in {}",
        counted(stats.commits, "commit"),
        stats.timezone
    ));
}

async fn list(args: &ScopeArgs, limit: usize, context: &Context) -> Result {
    let scope = read_scope(args, &context.config().await?.app.timezone, context).await?;
    let times = context.times().await?;
    let commits = context.view().await?.read(move |tx| reading::list_commits(tx, &scope, limit)).await?;
    let columns = [
        times.column("committed"),
        Column::left("project"),
        Column::left("branch"),
        Column::left("sha"),
        Column::left("author"),
        Column::right("+"),
        Column::right("-"),
    ];
    context.out.listing(&columns, &commits, |commit| {
        let mark = if commit.unreachable_since.is_some() { " (gone)" } else { "" };
        vec![
            times.cell(commit.committed_date_utc),
            commit.project.clone(),
            commit.branch_name.clone(),
            format!("{}{mark}", commit.sha.get(..10).unwrap_or(&commit.sha)),
            one_line(&commit.author_name),
            if commit.stats_missing { "?".into() } else { commit.additions.to_string() },
            if commit.stats_missing { "?".into() } else { commit.deletions.to_string() },
        ]
    })?;
    Ok(Exit::Fine)
}
