//! Imports blogs from lists into the config file, by edits that keep everything else.

use std::collections::BTreeSet;

use super::super::{Context, Error, Exit, Result};
use super::{How, IfNew, ImportResult, about, check_name, find_job, load_input};
use tsuzuki::app;
use tsuzuki::blogs::KIND;
use tsuzuki::config::ConfigFile;
use tsuzuki::fetch::{AllowPrivate, Request, Response};
use tsuzuki::import::list::{self, Candidate, NewBlog};
use tsuzuki::import::{self};
use tsuzuki::parse::opml;
use tsuzuki::parse::url::resolve_web;
use tsuzuki::phrase;

/// The largest list that is read.
const MAX_BYTES: u64 = 16 << 20;

pub(super) async fn opml(input: &str, partial: bool, how: &How, context: &Context) -> Result {
    let (bytes, content_type) = match resolve_web(None, input).filter(|_| input.contains("://")) {
        Some(address) => {
            let fetcher = app::fetcher(context.config().await?, context.clock.clone())?;
            let request = Request::get(address).allow_private(&AllowPrivate::none());
            match fetcher.fetch(&request).await? {
                Response::Fetched(head, body) => (body.to_vec(), head.content_type().map(str::to_owned)),
                Response::Unchanged(_) => {
                    return Err(Error::failed(phrase!(
                        "the server sent no document",
                        "サーバーから文書が送られてきませんでした"
                    )));
                }
            }
        }
        None => (load_input(input, MAX_BYTES, context).await?, None),
    };
    let list = opml::parse(&bytes, content_type.as_deref())
        .map_err(|error| Error::failed(about(input, error.phrase())))?;
    if list.is_cut_off {
        let words = phrase!(
            "{input} is cut off: it ends before the list does, after {count feed}",
            "{input} は途中で切れています：リストの終わりがなく、フィード {count} 件まで読めました",
            count = list.feeds.len()
        );
        if !partial {
            return Err(Error::failed(words).hint(phrase!(
                "get the whole file, or take what is there with --partial",
                "完全なファイルを用意するか、--partial で読めた分を取り込んでください"
            )));
        }
        context.out.warn(words);
    }
    add(&list::of_opml(list), how, context).await
}

pub(super) async fn urls(input: &str, how: &How, context: &Context) -> Result {
    let bytes = load_input(input, MAX_BYTES, context).await?;
    let text = String::from_utf8(bytes).map_err(|_| {
        Error::failed(phrase!("{input} is not UTF-8", "{input} の文字コードが UTF-8 ではありません"))
    })?;
    add(&list::of_urls(&text), how, context).await
}

async fn add(candidates: &[Candidate], how: &How, context: &Context) -> Result {
    check_name(how, &BTreeSet::new(), IfNew::IsMade, context).await?;
    let mut result = ImportResult { dry_run: how.dry_run, ..ImportResult::default() };
    let chosen = add_to_config(candidates, how, context, &mut result).await?;
    let (added, known, refused) = (result.blogs.len(), chosen.known, chosen.refused.len());
    for why in chosen.refused.iter().take(20) {
        context.out.warn(phrase!("left out: {why}", "対象外：{why}"));
    }
    let exit = result.print(context)?;
    context.out.note(if how.dry_run {
        phrase!(
            "{added blog} would be added, {known} known already, {refused} left out",
            "ブログ {added} 件を追加します（既知 {known} 件、対象外 {refused} 件）"
        )
    } else {
        phrase!(
            "{added blog} added, {known} known already, {refused} left out",
            "ブログ {added} 件を追加しました（既知 {known} 件、対象外 {refused} 件）"
        )
    });
    Ok(if refused > 0 { Exit::Partly } else { exit })
}

/// Adds new blogs to the job, and records them in `result`.
pub(super) async fn add_to_config(
    candidates: &[Candidate],
    how: &How,
    context: &Context,
    result: &mut ImportResult,
) -> Result<list::ListSelection> {
    let config = context.config().await?;
    let job = job_name(how, context).await?;
    let chosen = list::choose(candidates, &import::config::list_blogs(config));
    result.blogs = chosen.new.clone();
    if config.find_job(&job).is_none() && !chosen.new.is_empty() {
        result.jobs.push(job.clone());
    }
    save(&chosen.new, &job, how, context).await?;
    Ok(chosen)
}

/// The blogs job to add to: the one named, the only one, or `blogs`.
pub(super) async fn job_name(how: &How, context: &Context) -> Result<String> {
    let config = context.config().await?;
    Ok(match (find_job(how, KIND, config)?, &how.job) {
        (Some(job), _) => job.name.to_string(),
        (None, Some(name)) => name.to_string(),
        (None, None) => match config.find_job(KIND) {
            Some(job) if job.kind != KIND => {
                return Err(Error::usage(phrase!(
                    "`{kind}` is a {kind} job",
                    "`{kind}` は {kind} ジョブです",
                    kind = KIND,
                    kind = &job.kind
                ))
                .hint(phrase!("name a job with --job", "--job でジョブを指定してください")));
            }
            _ => KIND.to_owned(),
        },
    })
}

/// Writes the file; a dry run only checks that it could be written.
async fn save(blogs: &[NewBlog], job: &str, how: &How, context: &Context) -> Result<()> {
    if blogs.is_empty() {
        return Ok(());
    }
    let mut file = ConfigFile::open(&context.config_path()?)?;
    import::config::add_blogs(&mut file.document, context.config().await?, job, blogs)?;
    if how.dry_run {
        file.read(app::kinds(), &context.env)?
    } else {
        file.save(app::kinds(), &context.env)?
    };
    Ok(())
}
