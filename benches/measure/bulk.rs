//! A run of commits for benchmarks.

use std::path::Path;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tsuzuki::app::{self, App};
use tsuzuki::commits::GitSource;
use tsuzuki::commits::run::decide::Sharing;
use tsuzuki::commits::run::{Bulk, Ended};
use tsuzuki::config::{self, Env};
use tsuzuki::db::Db;
use tsuzuki::engine::Progress;

/// One run over all projects of the group; returns how many commits were new.
pub(crate) async fn collect(url: &str, db: &Db, at_once: usize) -> i64 {
    let text = format!(
        "[[job]]\nname = \"code\"\nkind = \"commits\"\nallow_private = [\"127.0.0.1\"]\ngitlab = \"{url}\"\n\
         group = \"team\"\nconcurrency = {at_once}\n"
    );
    let config = config::parse(&text, Path::new("bench.toml"), app::kinds(), &Env::of_process()).unwrap();
    let env = App::new(&config, db.clone()).unwrap().env;
    let source = Arc::new(GitSource::read(&config.jobs[0]).unwrap());
    let bulk = Bulk::new(env, vec![source], Progress::default(), CancellationToken::new());
    let Ended::Worked(outcome) = bulk.start(None, Sharing::Alone).await.unwrap() else {
        panic!("nothing to do")
    };
    assert_eq!(outcome.problems, Vec::<String>::new());
    outcome.run.new_commits_count
}
