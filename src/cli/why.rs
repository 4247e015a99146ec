//! `why`: everything known about one thing, its history and its actions.

use super::names;
use super::{Context, Error, Exit, Result, view};
use tsuzuki::app;
use tsuzuki::db::{self, Db, Tx};
use tsuzuki::engine::finder::read_address;
use tsuzuki::engine::table::{After, Cell, TableFilter};
use tsuzuki::engine::{Finder, View};
use tsuzuki::ledger::Subject;
use tsuzuki::phrase;
use tsuzuki::text::{shell_word, width};

/// The least width of a part of a title: three letters, or two of Japanese, which may be a word.
const SHORTEST_PART: usize = 3;
/// The most pages of a thousand rows that are searched for a title.
const MOST_PAGES: usize = 200;
/// The most things with a matching title that are listed.
const MOST_TITLED: usize = 10;

/// Options of `why`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A job, a URL, item:NUMBER, a blog's id, an ISBN, a project, PROJECT/BRANCH, a run's id, a commit's SHA, a
    /// delivery's number, a channel, a provider or a part of a title; where several have that name, KIND:NAME. Of a person who
    /// commits, person:NAME and a month
    #[arg(required = true, num_args = 1..)]
    thing: Vec<String>,
    /// At most this many events
    #[arg(long, default_value_t = 50)]
    limit: usize,
}

pub(super) async fn run(args: &Args, context: &Context) -> Result {
    let app = context.read_only_app().await?;
    let mut finder = app.finder(context.config().await?, args.limit);
    finder.things.push(&tsuzuki::web::token::TOKEN);
    // Names may contain spaces.
    let thing = args.thing.join(" ");
    let wanted = thing.clone();
    let views = app
        .env
        .db
        .read(move |tx| match finder.find(tx, &wanted)? {
            views if !views.is_empty() => Ok(views),
            _ => find_titled(&finder, tx, &wanted),
        })
        .await?;
    match views.as_slice() {
        [] => return Err(unknown(&thing, &app.env.db, context).await?),
        [_] => {}
        // Show all things of one sort with this address; a number of several listings is ambiguous.
        [first, others @ ..]
            if read_address(&thing).is_some()
                || thing.parse::<i64>().is_ok()
                || others.iter().all(|view| view.name == first.name) => {}
        several => return Err(ambiguous(&thing, several)),
    }
    view::print_all(&views, context).await?;
    Ok(Exit::Fine)
}

/// Things with `part` in their title, the first few: only for words that match no name, because every title is read.
fn find_titled(finder: &Finder, tx: &mut Tx<'_>, part: &str) -> db::Result<Vec<View>> {
    let part = part.to_lowercase();
    let mut views = Vec::new();
    if width(&part) < SHORTEST_PART {
        return Ok(views);
    }
    for table in app::PIPELINES.iter().flat_map(|pipeline| pipeline.tables) {
        let place = |names: &[&str]| table.columns.iter().position(|column| names.contains(column));
        let (Some(title), Some(name)) = (place(&["title"]), place(&["url", "isbn13"])) else { continue };
        let mut after = String::new();
        for _ in 0..MOST_PAGES {
            let page = (table.page)(tx, &TableFilter::default(), After(&after))?;
            for row in page.rows {
                let (Cell::Text(title) | Cell::Word(title), Cell::Text(name) | Cell::Word(name)) =
                    (&row[title], &row[name])
                else {
                    continue;
                };
                if views.len() < MOST_TITLED && title.to_lowercase().contains(&part) {
                    views.extend(finder.find(tx, name)?);
                }
            }
            match page.next {
                Some(next) => after = next,
                None => break,
            }
        }
    }
    Ok(views)
}

async fn unknown(thing: &str, db: &Db, context: &Context) -> Result<Error> {
    let name = thing.split_once(':').map_or(thing, |(_, name)| name);
    let config = context.config().await?;
    if let Some(of) = app::things().find(|of| (of.list_configured)(config).iter().any(|known| known == name))
    {
        let message = phrase!(
            "the {word} `{name}` is in the config, but no run has come to it yet",
            "{word} `{name}` は設定にありますが、まだ一度も実行されていません",
            word = Subject::called(of.word)
        );
        return Ok(Error::failed(message).hint(phrase!(
            "`tsuzuki status` says when the jobs run; `tsuzuki run-due --force` runs them now",
            "実行予定は `tsuzuki status` で確認できます。今すぐ実行するには `tsuzuki run-due --force`"
        )));
    }
    let error =
        Error::failed(phrase!("nothing is known about `{thing}`", "`{thing}` についての記録はありません"));
    let known = names::list_all(db, context).await?;
    let known = known.iter().map(String::as_str).filter(|known| *known != thing);
    let kind = thing.split_once(':').and_then(|(word, _)| app::things().find(|of| of.word == word));
    let all = match kind.map(|of| of.listed_by) {
        Some(command) => {
            phrase!("`tsuzuki {command}` lists what there is", "`tsuzuki {command}` で一覧できます")
        }
        None => phrase!(
            "`tsuzuki status` lists the jobs; `why JOB` shows what they work on",
            "`tsuzuki status` でジョブを一覧し、`why JOB` で対象を確認できます"
        ),
    };
    Ok(error.hint_nearest(thing, known, all))
}

fn ambiguous(thing: &str, views: &[View]) -> Error {
    let error = Error::usage(phrase!(
        "`{thing}` can be {count thing}",
        "`{thing}` に当てはまるものが {count} 件あります",
        count = views.len()
    ));
    views.iter().fold(error, |error, view| error.hint(format!("`tsuzuki why {}`", shell_word(&view.name))))
}
