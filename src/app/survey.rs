//! Checks a config file and reports everything that is wrong with it or could be better.

use std::path::Path;

use super::new_table::AddError;
use super::{App, Error, kinds, list_warnings};
use crate::config::{self, Config, Env, Problem, Problems};
use crate::time::Clock;

/// The config as far as it can be read, and all problems and warnings; missing secrets are not among them.
pub async fn survey(path: &Path, env: &Env, clock: &Clock) -> (Option<Config>, Problems) {
    let (config, mut problems) = config::survey(path, kinds(), env);
    let Some(config) = config else { return (None, problems) };
    config.hide_secrets();
    // Contradictions between tables show only when everything is created.
    match App::preview(&config, clock).await {
        Ok(_) => {}
        Err(AddError::App(Error::Config(more))) => problems.extend(more),
        Err(error) => problems.push(Problem::of_file(path, error.phrase())),
    }
    problems.extend(config.warnings.clone());
    problems.extend(list_warnings(&config));
    (Some(config), problems)
}
