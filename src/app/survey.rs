//! Everything that is wrong with a config file or should be better, told at once.

use std::path::Path;

use super::new_table::AddError;
use super::{App, Error, kinds, list_warnings};
use crate::config::{self, Config, Env, Problem, Problems};
use crate::time::Clock;

/// The config as far as it can be read, and what is to be said about it; secrets that are missing are not among it.
pub async fn survey(path: &Path, env: &Env, clock: &Clock) -> (Option<Config>, Problems) {
    let (config, mut problems) = config::survey(path, kinds(), env);
    let Some(config) = config else { return (None, problems) };
    config.hide_secrets();
    // What one table says about another shows only when all of them are put together.
    match App::preview(&config, clock).await {
        Ok(_) => {}
        Err(AddError::App(Error::Config(more))) => problems.extend(more),
        Err(error) => problems.push(Problem::of_file(path, error.phrase())),
    }
    problems.extend(config.warnings.clone());
    problems.extend(list_warnings(&config));
    (Some(config), problems)
}
