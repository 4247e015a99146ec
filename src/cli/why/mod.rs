//! `why`: the story of one thing, from the events and the seeds' tables alone.

mod find;
mod job;
mod page;
mod tell;
mod words;

use self::find::{Finder, Thing, read_address};
use self::page::Page;
use super::{Context, Error, Exit, Result, names};
use crate::db::Db;
use crate::text::nearest;

/// Options of `why`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A job, a URL, item:NUMBER, a blog's id, an ISBN, a project, PROJECT/BRANCH, a run's id, a delivery's number, a
    /// channel or a provider; where several have that name, KIND:NAME
    thing: String,
    /// At most this many events
    #[arg(long, default_value_t = 50)]
    limit: usize,
}

pub(super) async fn run(args: &Args, context: &Context) -> Result {
    let app = context.look().await?;
    let config = context.config().await?;
    let look = Finder {
        config: config.clone(),
        jobs: app.jobs.clone(),
        limit: args.limit,
        now: context.clock.now(),
    };
    let thing = args.thing.clone();
    let stories = app.env.db.read(move |tx| look.find(tx, &thing)).await?;
    match stories.as_slice() {
        [] => return Err(unknown(&args.thing, &app.env.db, context).await?),
        [_] => {}
        // One address in several jobs or on several blogs is one question.
        several if several.iter().all(|story| matches!(story, Thing::Item(_))) => {}
        _ if read_address(&args.thing).is_some() => {}
        several => return Err(ambiguous(&args.thing, several)),
    }
    if context.out.is_json() {
        context.out.json(&stories)?;
        return Ok(Exit::Fine);
    }
    let times = context.times().await?;
    for story in &stories {
        let mut page = Page::new(&times);
        tell::tell(story, &mut page);
        page.into_lines().iter().try_for_each(|line| context.out.line(line))?;
    }
    Ok(Exit::Fine)
}

async fn unknown(thing: &str, db: &Db, context: &Context) -> Result<Error> {
    let name = thing.split_once(':').map_or(thing, |(_, name)| name);
    if let Some(job) = names::find_job_of_blog(context.config().await?, name) {
        return Ok(Error::failed(format!("the blog `{name}` of the job `{job}` was not checked yet")).hint(
            format!("`tsuzuki run {job}` checks it now; `tsuzuki why {job}` says when it runs by itself"),
        ));
    }
    let error = Error::failed(format!("nothing is known about `{thing}`"));
    let known = names::list_all(db, context).await?;
    // What has that very name is known, and yet there is nothing to tell about it.
    Ok(match nearest(thing, known.iter().map(String::as_str).filter(|known| *known != thing)) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error.hint("`tsuzuki status` lists the jobs; `why JOB` shows what they work on"),
    })
}

fn ambiguous(thing: &str, stories: &[Thing]) -> Error {
    let error = Error::usage(format!("`{thing}` can be {} things", stories.len()));
    stories.iter().fold(error, |error, story| error.hint(format!("`tsuzuki why {}`", story.name())))
}
