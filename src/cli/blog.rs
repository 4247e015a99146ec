//! `blog`: the blogs of the config, one by one: list, show, add, remove, pause.

use std::collections::HashMap;

use clap::Subcommand;

use super::job::edit_file;
use super::names::refuse_unknown;
use super::table::row;
use super::{Cell, Column, Context, Error, Exit, Result, view};
use tsuzuki::blogs::listing::{self, BlogRow};
use tsuzuki::blogs::{KIND, commands, config, events, store};
use tsuzuki::config::value::Span;
use tsuzuki::db;
use tsuzuki::engine::obstacle;
use tsuzuki::engine::view::State;
use tsuzuki::import::config as edit;
use tsuzuki::import::list::{self, Candidate};
use tsuzuki::ledger::Subject;
use tsuzuki::phrase;
use tsuzuki::phrase::Phrase;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List the blogs of the config: state, last check, failures, next check
    Ls {
        /// Only this job
        #[arg(long, value_name = "NAME")]
        job: Option<String>,
        /// Only those that fail, wait or are paused
        #[arg(long)]
        failing: bool,
    },
    /// Show one blog with its checks, changes and decisions
    Show {
        /// Its id
        id: String,
    },
    /// Add a blog to a blogs job of the config file
    Add {
        /// Its page
        url: String,
        /// The name that its state is kept under [default: made of its title or host]
        #[arg(long)]
        id: Option<String>,
        /// What messages call it
        #[arg(long)]
        title: Option<String>,
        /// The folder it is in
        #[arg(long)]
        folder: Option<String>,
        /// Its feed, when it is not to be searched for
        #[arg(long, value_name = "URL")]
        feed: Option<String>,
        /// The job [default: the only blogs job, else `blogs`]
        #[arg(long, value_name = "NAME")]
        job: Option<String>,
    },
    /// Remove a blog from the config file; what was seen on it stays in the database
    Rm {
        /// Its id
        id: String,
        /// Confirm: without it nothing is changed
        #[arg(long)]
        yes: bool,
    },
    /// Pause the checks of a blog, without touching the config file
    Pause {
        /// Its id
        id: String,
        /// For how long, e.g. 7d [default: until `blog resume`]
        #[arg(long = "for", value_name = "DURATION")]
        span: Option<Span>,
        /// Why, for `blog ls`
        #[arg(long, default_value = "by hand")]
        reason: String,
    },
    /// Check a paused blog again
    Resume {
        /// Its id
        id: String,
    },
}

pub(super) async fn run(command: Command, context: &Context) -> Result {
    match command {
        Command::Ls { job, failing } => list(job.as_deref(), failing, context).await,
        Command::Show { id } => {
            if view::show(&Subject::new(events::BLOG, &id), context).await? {
                Ok(Exit::Fine)
            } else {
                refuse_unknown(events::BLOG, &id, &context.view().await?, context).await?;
                Err(Error::failed(phrase!(
                    "the blog `{id}` was never checked",
                    "ブログ `{id}` はまだ一度も確認されていません"
                ))
                .hint(phrase!(
                    "`tsuzuki job test NAME` shows what a check would find",
                    "`tsuzuki job test NAME` で、確認すると何が見つかるかを表示できます"
                )))
            }
        }
        Command::Add { url, id, title, folder, feed, job } => {
            // As on a line of a list: the text after the address is its title.
            let pasted = list::of_urls(&url).into_iter().next().unwrap_or_default();
            let title = title.or(pasted.title);
            let candidate = Candidate { id, title, folder, page: pasted.page, feed, ..Candidate::default() };
            add(&candidate, job, context).await
        }
        Command::Rm { id, yes } => remove(&id, yes, context).await,
        Command::Pause { id, span, reason } => set_pause(&id, span, reason, context).await,
        Command::Resume { id } => resume(&id, context).await,
    }
}

async fn list(job: Option<&str>, failing: bool, context: &Context) -> Result {
    let app = context.read_only_app().await?;
    let config = context.config().await?;
    let db = context.view().await?;
    super::names::refuse_unknown_if_given("job", job, &db, context).await?;
    let blogs: Vec<_> = config::list_blogs(config)
        .map(|(name, blog)| (name.clone(), blog))
        .filter(|(name, _)| job.is_none_or(|job| name.as_str() == job))
        .collect();
    let (all_jobs, now) = (app.jobs.clone(), context.clock.now());
    let rows = db
        .read(move |tx| {
            let next_runs: db::Result<HashMap<_, _>> =
                all_jobs.iter().map(|job| Ok((&job.name, obstacle::find_next_run(tx, job, now)?))).collect();
            let next_runs = next_runs?;
            let mut rows = Vec::new();
            for (job, blog) in &blogs {
                let next_run_at = next_runs.get(job).copied().flatten();
                rows.push(listing::find_row(tx, job, blog, next_run_at, now)?);
            }
            Ok(rows)
        })
        .await?;
    let is_fine = |row: &&BlogRow| matches!(row.state, State::Ok | State::New);
    let trouble = rows.iter().filter(|row| !is_fine(row)).count();
    let all = rows.len();
    let shown: Vec<BlogRow> = rows.into_iter().filter(|row| !failing || !is_fine(&row)).collect();
    let columns = [
        Column::left(phrase!("id", "ID")),
        Column::left(phrase!("state", "状態")),
        Column::moment(phrase!("last check", "最終確認")),
        Column::right(phrase!("failures", "失敗")),
        Column::moment(phrase!("next check", "次の確認")),
        Column::moment(phrase!("last change", "最終更新")).secondary(),
        // Whoever looks for trouble wants to read it whole.
        if failing {
            Column::whole(phrase!("why", "理由"))
        } else {
            Column::long(phrase!("title", "題名"))
        },
    ];
    context.out.listing(&columns, &shown, |row| {
        let title = row.title.as_str();
        row![
            &row.blog_id,
            Cell::state(row.state, row.state.phrase()),
            row.last_check_at,
            row.failures_in_a_row,
            row.next_check_at,
            row.last_change_at,
            match &row.why {
                why if failing => why.clone().unwrap_or_else(|| Phrase::verbatim("")),
                Some(why) => phrase!("{title} ({why})", "{title}（{why}）"),
                None => Phrase::verbatim(title),
            },
        ]
    })?;
    if trouble > 0 && !failing {
        context.out.note(phrase!(
            "{trouble} of {all blog} need a look: `tsuzuki blog ls --failing`",
            "{all} 件中 {trouble} 件に問題があります：`tsuzuki blog ls --failing`"
        ));
    }
    Ok(Exit::Fine)
}

async fn add(candidate: &Candidate, job: Option<String>, context: &Context) -> Result {
    let config = context.config().await?;
    let known = edit::list_blogs(config);
    if let Some(id) = candidate.id.as_ref().filter(|id| known.iter().any(|blog| blog.id == **id)) {
        return Err(Error::usage(phrase!(
            "there is a blog `{id}` already",
            "ブログ `{id}` はすでにあります"
        ))
        .hint(phrase!("choose another --id", "別の --id を指定してください")));
    }
    let chosen = list::choose(std::slice::from_ref(candidate), &known);
    if let Some(why) = chosen.refused.first() {
        return Err(Error::usage(why.clone()));
    }
    let Some(new) = chosen.new.first() else {
        return Err(Error::failed(phrase!(
            "that page is watched already",
            "そのページはすでに監視しています"
        ))
        .hint(phrase!("`tsuzuki blog ls` lists what there is", "一覧は `tsuzuki blog ls` で確認できます")));
    };
    let mut of_kind = config.jobs.iter().filter(|job| job.kind == KIND).map(|job| job.name.to_string());
    let job = match (job, of_kind.next(), of_kind.next()) {
        (Some(job), ..) => match config.find_job(&job) {
            Some(found) if found.kind != KIND => {
                return Err(Error::usage(phrase!(
                    "`{job}` is a {kind} job",
                    "`{job}` は {kind} ジョブです",
                    kind = &found.kind
                ))
                .hint(phrase!("name a blogs job", "blogs ジョブを指定してください")));
            }
            _ => job,
        },
        (None, Some(_), Some(_)) => {
            return Err(Error::usage(phrase!("which job is it to belong to?", "どのジョブに追加しますか？"))
                .hint(phrase!("name it with --job", "--job で指定してください")));
        }
        (None, Some(only), None) => only,
        (None, None, _) => KIND.to_owned(),
    };
    edit_file(context, |file| edit::add_blogs(&mut file.document, config, &job, &chosen.new))?;
    context.out.done(phrase!(
        "Added the blog `{id}` to the job `{job}`",
        "ブログ `{id}` をジョブ `{job}` に追加しました",
        id = &new.id
    ))
}

async fn remove(id: &str, yes: bool, context: &Context) -> Result {
    let config = context.config().await?;
    let Some((job, _)) = config::list_blogs(config).find(|(_, blog)| blog.id == id) else {
        return Err(super::names::no_such(
            "blog",
            id,
            edit::list_blogs(config).iter().map(|blog| blog.id.as_str()),
        ));
    };
    if !yes {
        let what = phrase!(
            "removing `{id}` takes it out of the config file; what was seen on it stays in the database",
            "`{id}` を設定ファイルから削除します（記録はデータベースに残ります）"
        );
        return Err(Error::unconfirmed(what, format_args!("blog rm {id}")));
    }
    edit_file(context, |file| file.document.remove_table(job.as_str(), "blog", id).map(drop))?;
    context.out.done(phrase!(
        "Removed the blog `{id}` from the job `{job}`",
        "ブログ `{id}` をジョブ `{job}` から削除しました"
    ))
}

async fn set_pause(id: &str, span: Option<Span>, reason: String, context: &Context) -> Result {
    let db = context.db().await?;
    refuse_unknown(events::BLOG, id, db, context).await?;
    let now = context.clock.now();
    let (until, blog) = (span.map(|span| now.plus(span.into())), id.to_owned());
    db.write(move |tx| commands::pause(tx, &blog, until, &Phrase::verbatim(&reason), now)).await?;
    match until {
        Some(until) => {
            let done = phrase!("paused {id} until {until}", "{id} を {until} まで一時停止しました");
            context.out.note(done);
        }
        None => context.out.note(phrase!(
            "paused {id} until `tsuzuki blog resume {id}`",
            "{id} を一時停止しました。`tsuzuki blog resume {id}` で再開します"
        )),
    }
    Ok(Exit::Fine)
}

/// Ends the pause of a blog, as `change resume` does, too.
pub(super) async fn resume(id: &str, context: &Context) -> Result {
    let (blog, now) = (id.to_owned(), context.clock.now());
    let db = context.db().await?;
    refuse_unknown(events::BLOG, id, db, context).await?;
    if db.write(move |tx| store::resume(tx, &blog, now)).await? {
        return context.out.done(phrase!(
            "`{id}` is checked again with the next run",
            "`{id}` は次の実行から再び確認されます"
        ));
    }
    Err(Error::failed(phrase!("the blog `{id}` is not paused", "ブログ `{id}` は一時停止していません")).hint(
        phrase!("`tsuzuki why {id}` explains what happened", "経緯は `tsuzuki why {id}` で確認できます"),
    ))
}
