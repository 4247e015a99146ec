//! `commits`: statistics per person, time, project or branch, and the newest commits.

use std::io::{IsTerminal, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Subcommand, ValueEnum};

use super::export::{Out, finish};
use super::names::refuse_unknown_if_given;
use super::since::SinceArgs;
use super::table::row;
use super::{Cell, Column, Context, Error, Exit, Result};
use tsuzuki::commits::people::People;
use tsuzuki::commits::stats::{self, By, Counting, StatRow, Stats};
use tsuzuki::commits::store::projects;
use tsuzuki::commits::store::reading::{self, Scope};
use tsuzuki::config::value::Zone;
use tsuzuki::db::Db;
use tsuzuki::export::{self, Format, RowWriter, Style};
use tsuzuki::phrase;
use tsuzuki::phrase::Value;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Count commits and changed lines; merges are counted apart, without their lines
    Stats {
        /// Each person in each month, week or day, or in all; or each project or branch
        #[arg(long, value_enum, default_value_t = ByWord::Month)]
        by: ByWord,
        #[command(flatten)]
        scope: ScopeArgs,
        /// Add the lines of merges, too, though they repeat those of the merged branch
        #[arg(long)]
        with_merges: bool,
        /// How to write it [default: by the ending of the file, else a table]
        #[arg(long, value_enum, conflicts_with = "json")]
        format: Option<FormatWord>,
        /// The file to write [default: the standard output]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Replace the file if it is there
        #[arg(long)]
        force: bool,
        /// The time zone in which months, weeks and days begin, or `app` for that of the config
        #[arg(long, default_value = "app", value_name = "ZONE")]
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

/// Which commits to read.
#[derive(Debug, clap::Args)]
pub(super) struct ScopeArgs {
    /// Only this project, by path or number
    #[arg(long)]
    project: Option<String>,
    /// Only this branch
    #[arg(long)]
    branch: Option<String>,
    /// Only this year
    #[arg(long, conflicts_with = "since")]
    year: Option<i16>,
    #[command(flatten)]
    since: SinceArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ByWord {
    Month,
    Week,
    Day,
    Project,
    #[value(alias = "author")]
    Person,
    Branch,
}

impl From<ByWord> for By {
    fn from(word: ByWord) -> Self {
        match word {
            ByWord::Month => By::Month,
            ByWord::Week => By::Week,
            ByWord::Day => By::Day,
            ByWord::Project => By::Project,
            ByWord::Person => By::Person,
            ByWord::Branch => By::Branch,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum FormatWord {
    Table,
    Tsv,
    Csv,
    Xlsx,
    Json,
}

pub(super) async fn run(command: Command, context: &Context) -> Result {
    match command {
        Command::Stats { by, scope, with_merges, format, output, force, timezone } => {
            let format = choose_format(format, output.as_deref(), context)?;
            let zone = read_zone(&timezone, context).await?;
            let people = Arc::new(People::of(context.config().await?)?);
            let scope = read_scope(&scope, &zone, context).await?;
            let counting = Counting { with_merges, ..Counting::new(scope, zone, people) };
            let stats = context.view().await?.read(move |tx| stats::count(tx, &counting, by.into())).await?;
            write(&stats, format, output.as_deref(), force, context)?;
            if !context.out.is_json() {
                note(&stats, context);
            }
            Ok(Exit::Fine)
        }
        Command::Ls { scope, limit } => list(&scope, limit, context).await,
    }
}

fn choose_format(word: Option<FormatWord>, output: Option<&Path>, context: &Context) -> Result<FormatWord> {
    let ending = output.and_then(Path::extension).and_then(|ending| ending.to_str());
    let by_ending = ending.and_then(|ending| FormatWord::from_str(ending, true).ok());
    let default = if context.out.is_json() { FormatWord::Json } else { FormatWord::Table };
    let format = word.or(by_ending).unwrap_or(default);
    if format == FormatWord::Xlsx && output.is_none() && std::io::stdout().is_terminal() {
        return Err(Error::usage(phrase!(
            "a workbook cannot be shown on a terminal",
            "ブックは端末に表示できません"
        ))
        .hint(phrase!(
            "name a file with --output FILE.xlsx",
            "--output FILE.xlsx でファイルを指定してください"
        )));
    }
    if format == FormatWord::Table && output.is_some() {
        return Err(Error::usage(phrase!(
            "a table is for reading on a terminal",
            "表は端末で読むための形式です"
        ))
        .hint(phrase!(
            "--format writes tsv, csv, xlsx or json into a file; so does a file with that ending",
            "ファイルには --format で tsv、csv、xlsx、json を指定してください（拡張子でも選べます）"
        )));
    }
    Ok(format)
}

async fn read_zone(timezone: &str, context: &Context) -> Result<Zone> {
    match timezone {
        "app" => Ok(context.config().await?.app.timezone.clone()),
        name => name.parse().map_err(|error: tsuzuki::config::value::BadValue| {
            let usage = Error::usage(error.message());
            error.hint().into_iter().fold(usage, Error::hint)
        }),
    }
}

async fn read_scope(args: &ScopeArgs, zone: &Zone, context: &Context) -> Result<Scope> {
    let mut scope = Scope { branch_name: args.branch.clone(), ..Scope::default() };
    let db = context.view().await?;
    refuse_unknown_if_given("branch", args.branch.as_deref(), &db, context).await?;
    if let Some(name) = &args.project {
        scope.project_id = Some(find_project(name, &db).await?);
    }
    scope.from = args.since.find(context).await?;
    if let Some(year) = args.year {
        let (from, until) = stats::period_bounds(&format!("{year:04}"), zone).ok_or_else(|| {
            Error::usage(phrase!(
                "{year} is not a year that a commit can be of",
                "{year} はコミットの年として使えません",
                year = year.to_string()
            ))
        })?;
        (scope.from, scope.until) = (Some(from), Some(until));
    }
    Ok(scope)
}

/// Our number of the project that `name` refers to.
pub(super) async fn find_project(name: &str, db: &Db) -> Result<i64> {
    let wanted = name.to_owned();
    let found = db.read(move |tx| projects::find_named(tx, &wanted)).await?;
    match found.as_slice() {
        [one] => Ok(one.project_id),
        [] => {
            Err(Error::usage(phrase!("there is no project `{name}`", "プロジェクト `{name}` はありません"))
                .hint(phrase!(
                    "`tsuzuki project ls` lists them",
                    "一覧は `tsuzuki project ls` で確認できます"
                )))
        }
        several => Err(Error::usage(phrase!(
            "`{name}` can be {several} projects",
            "`{name}` に当てはまるプロジェクトが {several} 件あります",
            several = several.len().to_string()
        ))
        .hint(phrase!(
            "use the number of one: {numbers}",
            "番号で指定してください：{numbers}",
            numbers = several
                .iter()
                .map(|p| format!("{} ({})", p.project_id, p.host))
                .collect::<Vec<_>>()
                .join(", ")
        ))),
    }
}

fn write(
    stats: &Stats,
    format: FormatWord,
    output: Option<&Path>,
    force: bool,
    context: &Context,
) -> Result<()> {
    let rows = || stats.rows.iter().map(|row| stats.fields(row));
    let bytes = match format {
        FormatWord::Table => return show(stats, context),
        FormatWord::Json if output.is_none() => return context.out.json(stats),
        FormatWord::Json => {
            serde_json::to_vec_pretty(stats).map_err(|error| Error::failed(error.to_string()))?
        }
        FormatWord::Xlsx => {
            export::render_workbook("commits", &stats.columns(), rows()).map_err(|error| {
                Error::failed(phrase!(
                    "the workbook cannot be written: {error}",
                    "ブックを書き出せません：{error}",
                    error = error.to_string()
                ))
            })?
        }
        FormatWord::Tsv | FormatWord::Csv => {
            let format = if format == FormatWord::Tsv { Format::Tsv } else { Format::Csv };
            let mut writer = RowWriter::new(Vec::new(), format, Style::default());
            writer.begin(&stats.columns())?;
            rows().try_for_each(|row| writer.row(&row))?;
            writer.end()?;
            writer.into_inner()
        }
    };
    let mut out = Out::open(output, force)?;
    out.write_all(&bytes)?;
    finish(out, output, phrase!("{count row}", "{count} 行", count = stats.rows.len()), context).map(drop)
}

fn show(stats: &Stats, context: &Context) -> Result<()> {
    let zone = stats.timezone.as_str();
    let author = || Column::left(phrase!("author", "作者"));
    let project = || Column::left(phrase!("project", "プロジェクト"));
    let people = || Column::right(phrase!("people", "人数"));
    let mut columns = match stats.by {
        By::Month => vec![Column::left(phrase!("month", "月")).labelled(zone), author()],
        By::Week => vec![Column::left(phrase!("week", "週")).labelled(zone), author()],
        By::Day => vec![Column::left(phrase!("day", "日")).labelled(zone), author()],
        By::Person => vec![author()],
        By::Project => vec![project(), people()],
        By::Branch => vec![project(), Column::left(phrase!("branch", "ブランチ")), people()],
    };
    columns.extend(
        [
            phrase!("commits", "コミット"),
            phrase!("merges", "マージ"),
            phrase!("additions", "追加行"),
            phrase!("deletions", "削除行"),
        ]
        .map(Column::right),
    );
    let cell = |field| match field {
        export::Cell::Int(number) => Cell::from(number),
        export::Cell::Word(text) | export::Cell::Text(text) => text.into(),
        _ => "".into(),
    };
    // The number of commits is printed below, also when there are none.
    if !stats.rows.is_empty() {
        let cells = |row: &StatRow| stats.fields(row).into_iter().map(cell).collect();
        context.out.listing(&columns, &stats.rows, cells)?;
    }
    Ok(())
}

/// Prints how many commits were counted and excluded, and the time zone of days.
fn note(stats: &Stats, context: &Context) {
    let commits = phrase!("{count commit}", "コミット {count} 件", count = stats.total.commits);
    let merges = if stats.with_merges {
        phrase!(
            "{count merge} (with their lines)",
            "マージ {count} 件（行数を含む）",
            count = stats.total.merges
        )
    } else {
        phrase!(
            "{count merge} (lines left out)",
            "マージ {count} 件（行数は除く）",
            count = stats.total.merges
        )
    };
    let missing = phrase!(
        "{count} without line counts so far",
        "行数が未取得のもの {count} 件",
        count = stats.stats_missing
    );
    let (authors, titles) = (stats.left_out.authors, stats.left_out.titles);
    let by_author = phrase!("{count} left out by author", "作者により除外 {count} 件", count = authors);
    let by_title = phrase!("{count} left out by title", "題名により除外 {count} 件", count = titles);
    let others = [
        (stats.total.merges > 0, merges),
        (stats.stats_missing > 0, missing),
        (authors > 0, by_author),
        (titles > 0, by_title),
    ];
    let others = others.into_iter().filter(|(is_there, _)| *is_there).map(|(_, part)| part.into());
    let parts: Vec<Value> = std::iter::once(commits.into()).chain(others).collect();
    context.out.note(phrase!(
        "{parts}; days begin in {zone}",
        "{parts}（日付の区切りは {zone}）",
        zone = &stats.timezone
    ));
}

async fn list(args: &ScopeArgs, limit: usize, context: &Context) -> Result {
    let scope = read_scope(args, &context.config().await?.app.timezone, context).await?;
    let commits = context.view().await?.read(move |tx| reading::list_commits(tx, &scope, limit)).await?;
    let columns = [
        Column::moment(phrase!("committed", "コミット日時")),
        Column::left(phrase!("project", "プロジェクト")),
        Column::left(phrase!("branch", "ブランチ")).secondary(),
        Column::left(phrase!("sha", "SHA")).secondary(),
        Column::left(phrase!("author", "作者")),
        Column::left(phrase!("lines", "行数")).secondary(),
        Column::long(phrase!("title", "題名")),
    ];
    context.out.listing(&columns, &commits, |commit| {
        let sha = commit.sha.get(..10).unwrap_or(&commit.sha);
        let sha = match commit.unreachable_since {
            Some(_) => Cell::from(phrase!("{sha} (gone)", "{sha}（到達不能）")),
            None => sha.into(),
        };
        let lines = || format!("+{} -{}", commit.additions, commit.deletions);
        row![
            commit.committed_date_utc,
            &commit.project,
            &commit.branch_name,
            sha,
            &commit.author_name,
            if commit.stats_missing { "?".into() } else { lines() },
            commit.title.as_deref(),
        ]
    })
}
