//! Completion scripts and manual pages, made from the command tree itself.

use std::path::PathBuf;

use super::{Context, Exit, Result, tree};

/// Options of `completions`.
#[derive(Debug, clap::Args)]
pub(super) struct CompletionArgs {
    /// The shell
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

/// Options of `man`.
#[derive(Debug, clap::Args)]
pub(super) struct ManArgs {
    /// Write one page per command into this directory instead
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(super) fn completions(args: &CompletionArgs, context: &Context) -> Result {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut tree(), "tsuzuki", &mut script);
    context.out.raw(&script)?;
    Ok(Exit::Fine)
}

pub(super) fn man(args: &ManArgs, context: &Context) -> Result {
    match &args.dir {
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(tree()).render(&mut page)?;
            context.out.raw(&page)?;
        }
        Some(dir) => {
            std::fs::create_dir_all(dir)?;
            clap_mangen::generate_to(tree(), dir)?;
            context.out.note(format!("Wrote the manual pages to {}", dir.display()));
        }
    }
    Ok(Exit::Fine)
}
