//! `demo`: all four pipelines against a made-up world.

use super::{Context, Error, Result};

/// Options of `demo`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

pub(super) fn run(_: &Args, _: &Context) -> Result {
    Err(Error::failed("the demo is not part of this version yet")
        .hint("`tsuzuki init` writes a config file to start from"))
}
