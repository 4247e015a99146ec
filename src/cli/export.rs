//! `export`: writes found and sent things to files for other programs.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser};

use super::names::{no_such, refuse_unknown};
use super::since::SinceArgs;
use super::{Context, Error, Exit, Result, Stopping};
use tsuzuki::app;
use tsuzuki::config::value::Since;
use tsuzuki::db::Open;
use tsuzuki::engine::pipeline::ExportDocument;
use tsuzuki::engine::table::{Table, TableFilter};
use tsuzuki::export::{self, Format, RowWriter, Style};
use tsuzuki::phrase;
use tsuzuki::phrase::Phrase;
use tsuzuki::text;
use tsuzuki::time::Timestamp;

/// Options of `export`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// What to write
    #[arg(value_parser = list_names())]
    what: String,
    /// How to write it [default: by the ending of the file, else csv]
    #[arg(long, value_enum)]
    format: Option<FormatWord>,
    /// The file to write [default: the standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file if it is there
    #[arg(long)]
    force: bool,
    /// Only what belongs to this job; for commits, what is on its GitLab
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
    #[command(flatten)]
    since: SinceArgs,
    /// Only before this day or moment
    #[arg(long, value_name = "TIME")]
    until: Option<Since>,
    /// Leave cells alone that a spreadsheet would run as a formula
    #[arg(long)]
    raw: bool,
    /// Begin with a byte order mark, so that Excel reads UTF-8
    #[arg(long)]
    bom: bool,
}

impl Args {
    /// A file is completed or removed; on standard output nothing is lost.
    pub(super) fn stopping(&self) -> Stopping {
        if self.output.is_some() { Stopping::Graceful } else { Stopping::CutOff }
    }
}

/// The tables that can be exported, with their content.
fn list_names() -> PossibleValuesParser {
    let tables = app::tables().map(|table| PossibleValue::new(table.name).help(table.about));
    let documents = app::documents().map(|document| PossibleValue::new(document.name).help(document.about));
    PossibleValuesParser::new(tables.chain(documents))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FormatWord {
    Csv,
    Tsv,
    Json,
    Ndjson,
}

pub(super) async fn run(args: Args, context: &Context) -> Result {
    // Read the config first: errors about the arguments are in its language.
    context.config().await?;
    if let Some(found) = app::documents().find(|document| document.name == args.what) {
        return write_document(found, &args, context).await;
    }
    let table = app::tables().find(|table| table.name == args.what);
    let table = table.ok_or_else(|| {
        Error::usage(phrase!("there is no table `{what}`", "表 `{what}` はありません", what = &args.what))
    })?;
    let format = format_of(&args, context)?;
    if args.bom && matches!(format, Format::Json | Format::Ndjson) {
        return Err(Error::usage(phrase!(
            "--bom is for csv and tsv; JSON has none",
            "--bom は csv と tsv 用です（JSON では使えません）"
        )));
    }
    let filter = filter_of(&args, table, context).await?;
    let db = context.open_db(Open::ReadOnly).await?.clone();
    if let Some(job) = &args.job {
        refuse_unknown("job", job, &db, context).await?;
    }
    let out = Out::open(args.output.as_deref(), args.force)?;
    let mut writer = RowWriter::new(out, format, Style { raw: args.raw, bom: args.bom });
    let count = export::write(&db, table, &filter, &mut writer, &context.stop).await?;
    finish(writer.into_inner(), args.output.as_deref(), phrase!("{count row}", "{count} 行"), context)
}

async fn write_document(document: &ExportDocument, args: &Args, context: &Context) -> Result {
    if args.format.is_some() || args.since.is_given() || args.until.is_some() || args.raw || args.bom {
        return Err(Error::usage(phrase!(
            "{name} has one format, and no times",
            "{name} の形式は 1 つだけで、期間は指定できません",
            name = document.name.to_string()
        ))
        .hint(phrase!(
            "only --job, --output and --force go with it",
            "一緒に使えるのは --job、--output、--force だけです"
        )));
    }
    let config = context.config().await?;
    if let Some(job) = args.job.as_deref().filter(|job| config.find_job(job).is_none()) {
        return Err(no_such("job", job, config.jobs.iter().map(|job| job.name.as_str())));
    }
    let made = (document.render)(config, context.find_db().await?, args.job.as_deref()).await?;
    let mut out = Out::open(args.output.as_deref(), args.force)?;
    out.write_all(made.text.as_bytes())?;
    if let Some(left_out) = &made.left_out {
        context.out.warn(context.speech().await?.phrase(left_out));
    }
    finish(
        out,
        args.output.as_deref(),
        phrase!("{count feed}", "フィード {count} 件", count = made.count),
        context,
    )
}

fn format_of(args: &Args, context: &Context) -> Result<Format> {
    if let Some(word) = args.format {
        return Ok(match word {
            FormatWord::Csv => Format::Csv,
            FormatWord::Tsv => Format::Tsv,
            FormatWord::Json => Format::Json,
            FormatWord::Ndjson => Format::Ndjson,
        });
    }
    let ending = args.output.as_deref().and_then(Path::extension).map(std::ffi::OsStr::to_ascii_lowercase);
    match ending.as_deref().and_then(|ending| ending.to_str()) {
        Some("csv") => Ok(Format::Csv),
        Some("tsv" | "tab") => Ok(Format::Tsv),
        Some("json") => Ok(Format::Json),
        Some("ndjson" | "jsonl") => Ok(Format::Ndjson),
        Some("opml" | "xml") => Err(Error::usage(phrase!(
            "only blogs can be written as OPML",
            "OPML で書き出せるのはブログだけです"
        ))
        .hint(phrase!(
            "run `tsuzuki export opml`, or name a format with --format",
            "`tsuzuki export opml` を使うか、--format で形式を指定してください"
        ))),
        Some(other) => Err(Error::usage(phrase!(
            "no format is known by the ending `.{ending}`",
            "拡張子 `.{ending}` に対応する形式はありません",
            ending = text::one_line(other)
        ))
        .hint(phrase!(
            "csv, tsv, json and ndjson are; spreadsheets open csv. --format writes one of them into any file",
            "対応しているのは csv、tsv、json、ndjson です（表計算ソフトには csv）。ほかの拡張子には --format で形式を指定してください"
        ))),
        None if context.out.is_json() => Ok(Format::Json),
        None => Ok(Format::Csv),
    }
}

async fn filter_of(args: &Args, table: &Table, context: &Context) -> Result<TableFilter> {
    let config = context.config().await?;
    let zone = config.app.timezone.time_zone();
    let owner = args.job.as_deref().map(|job| {
        (table.owner)(config, job).ok_or_else(|| {
            Error::usage(phrase!(
                "the job `{job}` has no {name}",
                "ジョブ `{job}` に {name} はありません",
                name = table.name.to_string()
            ))
            .hint(phrase!(
                "`tsuzuki job ls` lists the jobs",
                "ジョブの一覧は `tsuzuki job ls` で確認できます"
            ))
        })
    });
    Ok(TableFilter {
        owner: owner.transpose()?,
        since: args.since.moment(context).await?,
        until: args.until.map_or(Timestamp::MAX, |until| until.moment(zone)),
        ..TableFilter::default()
    })
}

/// The target: standard output, a device, or a file that appears only when it is complete.
pub(super) enum Out {
    Stream(Box<dyn Write + Send>),
    File { part: BufWriter<tempfile::NamedTempFile>, to: PathBuf, force: bool },
}

impl Out {
    pub(super) fn open(path: Option<&Path>, force: bool) -> Result<Self> {
        let Some(path) = path.filter(|path| *path != Path::new("-")) else {
            return Ok(Out::Stream(Box::new(BufWriter::with_capacity(64 << 10, std::io::stdout()))));
        };
        let failed = |error: std::io::Error| {
            Error::failed(phrase!(
                "{path} cannot be written: {error}",
                "{path} に書き込めません：{error}",
                path = path.display().to_string(),
                error = text::without_path(&error)
            ))
        };
        let mut mode = None;
        let to = match std::fs::metadata(path) {
            Ok(facts) if facts.is_dir() => {
                return Err(Error::usage(phrase!(
                    "{path} is a directory",
                    "{path} はディレクトリです",
                    path = path.display().to_string()
                )));
            }
            Ok(facts) if !facts.is_file() => {
                let device = std::fs::OpenOptions::new().write(true).open(path).map_err(failed)?;
                return Ok(Out::Stream(Box::new(BufWriter::new(device))));
            }
            Ok(_) if !force => return Err(already_there(path)),
            Ok(facts) => {
                mode = Some(facts.permissions());
                path.canonicalize().map_err(failed)?
            }
            Err(_) => path.to_owned(),
        };
        let directory = to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut builder = tempfile::Builder::new();
        builder.prefix(".tsuzuki-export-");
        // A new file gets the mode of the umask; one that replaces another keeps its mode.
        #[cfg(unix)]
        builder
            .permissions(mode.clone().unwrap_or_else(|| std::os::unix::fs::PermissionsExt::from_mode(0o666)));
        let part = builder.tempfile_in(directory).map_err(failed)?;
        if let Some(mode) = mode {
            // The umask may have removed permissions.
            part.as_file().set_permissions(mode).map_err(failed)?;
        }
        Ok(Out::File { part: BufWriter::with_capacity(64 << 10, part), to, force })
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Out::Stream(stream) => stream.write(bytes),
            Out::File { part, .. } => part.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Out::Stream(stream) => stream.flush(),
            Out::File { part, .. } => part.flush(),
        }
    }
}

fn already_there(path: &Path) -> Error {
    Error::usage(phrase!(
        "{path} is there already",
        "{path} はすでにあります",
        path = path.display().to_string()
    ))
    .hint(phrase!("--force replaces it", "--force で上書きできます"))
}

/// Puts the file in its place.
pub(super) fn finish(mut out: Out, output: Option<&Path>, written: Phrase, context: &Context) -> Result {
    out.flush()?;
    if let Out::File { part, to, force } = out {
        let part = part.into_inner().map_err(|error| Error::failed(error.to_string()))?;
        part.as_file().sync_all()?;
        let shown = output.unwrap_or(&to);
        if force { part.persist(&to).map(drop) } else { part.persist_noclobber(&to).map(drop) }.map_err(
            |error| match error.error.kind() {
                std::io::ErrorKind::AlreadyExists => already_there(shown),
                _ => Error::failed(phrase!(
                    "{shown} cannot be written: {error}",
                    "{shown} に書き込めません：{error}",
                    shown = shown.display().to_string(),
                    error = error.error.to_string()
                )),
            },
        )?;
        context.out.note(phrase!(
            "Wrote {written} to {file}",
            "{written}を {file} に書き出しました",
            file = shown.display().to_string()
        ));
    }
    Ok(Exit::Fine)
}

impl From<export::Error> for Error {
    fn from(error: export::Error) -> Self {
        match error {
            export::Error::Db(error) => error.into(),
            export::Error::Io(error) => error.into(),
            export::Error::Stopped => {
                Error::new(Exit::Interrupted, phrase!("the export was interrupted", "書き出しを中断しました"))
            }
        }
    }
}
