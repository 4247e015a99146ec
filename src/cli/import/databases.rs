//! Imports the databases and configs of four other programs: first the database, then the config file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::super::{Context, Error, Exit, Result};
use super::{
    How, IfNew, ImportResult, Times, about, blogs, check_name, find_job, load_input, open_db, options,
};
use tsuzuki::app;
use tsuzuki::commits::author::Emails;
use tsuzuki::commits::config::host_of;
use tsuzuki::config::ConfigFile;
use tsuzuki::config::value::HttpUrl;
use tsuzuki::db;
use tsuzuki::id::JobName;
use tsuzuki::import::gitlab_analyzer::Home;
use tsuzuki::import::jobs_yaml::YamlJobs;
use tsuzuki::import::{self, Report, blog_watcher as watcher, gitlab_analyzer as analyzer, jobs_yaml};
use tsuzuki::phrase;
use tsuzuki::phrase::Phrase;
use tsuzuki::{commits, press};

/// The largest config file of another program that is read.
const MAX_CONFIG_BYTES: u64 = 4 << 20;

pub(super) async fn mic_bot(file: PathBuf, how: &How, times: &Times, context: &Context) -> Result {
    let config = context.config().await?;
    check_name(how, &BTreeSet::new(), IfNew::IsAwaited, context).await?;
    let job = find_job(how, press::KIND, config)?;
    let Some(name) = how.job.clone().or_else(|| job.map(|job| job.name.clone())) else {
        return Err(Error::usage(phrase!("which job do the items belong to?", "どのジョブの記事ですか？"))
            .hint(phrase!(
                "name it with --job; a press job of that name should stand in the config file",
                "--job で指定してください（設定ファイルにその名前の press ジョブが必要です）"
            )));
    };
    let keys = job.and_then(|job| job.section.keys::<press::Keys>().ok());
    let feed = keys.and_then(|keys| keys.feed.iter().next()).map(ToString::to_string);
    let (db, _dir) = open_db(how, context).await?;
    let report = import::mic_bot::import(&db, file, name, feed, options(how, times, context)?).await;
    ImportResult { dry_run: how.dry_run, report: done(report, context)?, ..ImportResult::default() }
        .print(context)
}

pub(super) async fn dre(
    place: PathBuf,
    jobs: Option<PathBuf>,
    how: &How,
    times: &Times,
    context: &Context,
) -> Result {
    let (file, jobs) = find_dre(place, jobs)?;
    let yaml = match &jobs {
        None => YamlJobs::default(),
        Some(path) => {
            let text = load_text(path, jobs_yaml::MAX_BYTES, context).await?;
            jobs_yaml::parse(&text).map_err(|why| Error::failed(about(&path.display().to_string(), why)))?
        }
    };
    let config = context.config().await?;
    if let Some(name) = &how.job
        && config.find_job(name.as_str()).is_some()
    {
        find_job(how, tsuzuki::books::KIND, config)?;
    }
    let names: BTreeSet<JobName> = yaml.jobs.iter().map(|job| job.name.clone()).collect();
    check_name(how, &names, IfNew::IsAwaited, context).await?;
    let (db, _dir) = open_db(how, context).await?;
    let books = config.jobs.iter().filter(|job| job.kind == tsuzuki::books::KIND);
    let readers = books.map(|job| job.name.clone()).collect();
    let options = options(how, times, context)?;
    let report = import::dre::import(&db, file, how.job.clone(), names, readers, options).await;
    let mut result =
        ImportResult { dry_run: how.dry_run, report: done(report, context)?, ..ImportResult::default() };
    for notice in yaml.notices {
        result.report.note(notice);
    }
    if jobs.is_none() {
        result.report.note(phrase!(
            "no jobs.yaml was found; name it with --jobs to take its jobs over",
            "jobs.yaml が見つかりません。ジョブも引き継ぐには --jobs で指定してください"
        ));
    }
    if !yaml.jobs.is_empty() {
        let mut edited = ConfigFile::open(&context.config_path()?)?;
        result.jobs = import::config::add_jobs(&mut edited.document, config, &yaml.jobs)?;
        if how.dry_run {
            edited.read(app::kinds(), &context.env)?
        } else {
            edited.save(app::kinds(), &context.env)?
        };
    }
    result.print(context)
}

/// The database and the jobs.yaml of a directory of dre, or of a file in it.
fn find_dre(place: PathBuf, jobs: Option<PathBuf>) -> Result<(PathBuf, Option<PathBuf>)> {
    if !place.is_dir() {
        return Ok((place, jobs));
    }
    let candidates = ["data/app.db", "app.db", "data/dre.db"].map(|name| place.join(name));
    let Some(file) = candidates.iter().find(|file| file.is_file()) else {
        return Err(Error::failed(phrase!(
            "{place} has no data/app.db",
            "{place} に data/app.db がありません",
            place = place.display().to_string()
        ))
        .hint(phrase!(
            "name the SQLite file itself instead of its directory",
            "ディレクトリではなく SQLite のファイルを指定してください"
        )));
    };
    let yaml = ["config/jobs.yaml", "config/jobs.yml", "jobs.yaml"].map(|name| place.join(name));
    let jobs = jobs.or_else(|| yaml.into_iter().find(|file| file.is_file()));
    Ok((file.clone(), jobs))
}

pub(super) async fn blog_watcher(
    config: Option<PathBuf>,
    file: Option<PathBuf>,
    how: &How,
    times: &Times,
    context: &Context,
) -> Result {
    check_name(how, &BTreeSet::new(), IfNew::IsMade, context).await?;
    let mut result = ImportResult { dry_run: how.dry_run, ..ImportResult::default() };
    let (mut candidates, notices) = match &config {
        None => (Vec::new(), Vec::new()),
        Some(path) => read_watched(path, context).await?,
    };
    if let Some(file) = &file {
        let at = file.clone();
        let ids = tokio::task::spawn_blocking(move || watcher::list_ids(&at)).await.map_err(|_| {
            Error::failed(phrase!("the database cannot be read", "データベースを読み込めません"))
        })??;
        import::watched::adopt_ids(&mut candidates, &ids);
        let job: JobName = blogs::job_name(how, context)
            .await?
            .parse()
            .map_err(|error: tsuzuki::id::BadName| Error::usage(error.phrase()))?;
        let (db, _dir) = open_db(how, context).await?;
        let report = watcher::import(&db, file.clone(), job, options(how, times, context)?).await;
        result.report = done(report, context)?;
    }
    for notice in notices {
        result.report.note(notice);
    }
    let chosen = blogs::add_to_config(&candidates, how, context, &mut result).await?;
    for why in &chosen.refused {
        result.report.note(phrase!("left out: {why}", "対象外：{why}"));
    }
    if config.is_some() {
        result.report.note(phrase!(
            "config.toml: {count new blog}, {known} known already",
            "config.toml：新しいブログ {count} 件、既知 {known} 件",
            count = result.blogs.len(),
            known = chosen.known.to_string()
        ));
    }
    let exit = result.print(context)?;
    Ok(if chosen.refused.is_empty() { exit } else { Exit::Partly })
}

async fn read_watched(path: &Path, context: &Context) -> Result<(Vec<import::list::Candidate>, Vec<Phrase>)> {
    let text = load_text(path, MAX_CONFIG_BYTES, context).await?;
    import::watched::parse(&text).map_err(|why| Error::failed(about(&path.display().to_string(), why)))
}

async fn load_text(path: &Path, most: u64, context: &Context) -> Result<String> {
    let bytes = load_input(&path.to_string_lossy(), most, context).await?;
    String::from_utf8(bytes).map_err(|_| {
        Error::failed(phrase!("{path} is not UTF-8", "{path} の文字コードが UTF-8 ではありません"))
    })
}

pub(super) async fn gitlab_analyzer(
    file: PathBuf,
    gitlab: Option<&str>,
    how: &How,
    times: &Times,
    context: &Context,
) -> Result {
    let config = context.config().await?;
    check_name(how, &BTreeSet::new(), IfNew::IsAwaited, context).await?;
    let job = find_job(how, commits::KIND, config)?;
    let source = job.and_then(|job| commits::GitSource::read(job).ok());
    let address = match (gitlab, &source) {
        (Some(text), _) => text.parse::<HttpUrl>().map_err(|error| Error::usage(error.message()))?,
        (None, Some(source)) => source.address.clone(),
        (None, None) => {
            let at = file.clone();
            let named =
                tokio::task::spawn_blocking(move || analyzer::find_gitlab(&at)).await.map_err(|_| {
                    Error::failed(phrase!("the database cannot be read", "データベースを読み込めません"))
                })??;
            named.and_then(|text| text.parse().ok()).ok_or_else(|| {
                Error::usage(phrase!(
                    "which GitLab were the commits collected from?",
                    "どの GitLab から収集したコミットですか？"
                ))
                .hint(phrase!(
                    "name it with --gitlab URL, or name a commits job with --job",
                    "--gitlab URL で指定するか、--job で commits ジョブを指定してください"
                ))
            })?
        }
    };
    let can_go_on = source.as_ref().is_some_and(|source| source.host == host_of(&address));
    let hide = source.is_some_and(|source| source.keys.hide_emails);
    let home = Home {
        job: how.job.clone().or_else(|| job.map(|job| job.name.clone())),
        host: host_of(&address),
        emails: if hide { Emails::Hidden } else { Emails::Plain },
        can_go_on,
    };
    let (db, _dir) = open_db(how, context).await?;
    let report = analyzer::import(&db, file, home, options(how, times, context)?).await;
    ImportResult { dry_run: how.dry_run, report: done(report, context)?, ..ImportResult::default() }
        .print(context)
}

/// The report, or the error; for an interrupted import, that nothing was changed.
fn done(report: db::Result<Report>, context: &Context) -> Result<Report> {
    match report {
        Err(error) if context.stop.is_cancelled() => Err(Error::new(Exit::Interrupted, error.phrase())),
        other => Ok(other?),
    }
}
