//! `init`: a first config file, commented.

use std::io::Write;
use std::path::PathBuf;

use super::{Context, Error, Exit, Result};
use crate::config::FILE_NAME;
use crate::text::Language;

/// Options of `init`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Where to write it
    #[arg(default_value = FILE_NAME, value_name = "FILE")]
    path: PathBuf,
    /// The language of its comments, and of the messages it asks for
    #[arg(long, value_enum, default_value = "en")]
    lang: Lang,
}

/// A language to choose.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(super) enum Lang {
    Ja,
    En,
}

impl Lang {
    pub(super) fn language(self) -> Language {
        match self {
            Lang::Ja => Language::Ja,
            Lang::En => Language::En,
        }
    }
}

pub(super) fn run(args: &Args, context: &Context) -> Result {
    let shown = args.path.display();
    let mut file = std::fs::File::create_new(&args.path).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            Error::failed(format!("{shown} exists already, and was left as it is"))
                .hint("name another file: `tsuzuki init FILE`")
        }
        _ => Error::failed(format!("{shown}: {error}")),
    })?;
    file.write_all(template(args.lang.language()).as_bytes())?;
    context.out.note(format!("Wrote {shown}. Edit it, then run `tsuzuki check` and `tsuzuki run-due`."));
    Ok(Exit::Fine)
}

fn template(language: Language) -> &'static str {
    match language {
        Language::Ja => include_str!("init/ja.toml"),
        Language::En => include_str!("init/en.toml"),
    }
}
