//! `init`: a first config file, commented, for the pipelines that were named or with an example of each.

use std::io::Write;
use std::path::PathBuf;

use clap::ValueEnum;

use super::{Context, Error, Exit, Result};
use crate::config::FILE_NAME;
use crate::text::Language;

/// Options of `init`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// What to begin with; without any, the file holds a commented-out example of each
    #[arg(value_enum, value_name = "KIND")]
    kinds: Vec<Pipeline>,
    /// The language of its comments, and of the messages it asks for
    #[arg(long, value_enum, default_value = "en")]
    lang: Lang,
}

/// A language to choose.
#[derive(Clone, Copy, Debug, ValueEnum)]
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Pipeline {
    /// A feed, screened and summarised by a model, posted
    Press,
    /// A search of Google Books, sent as mail
    Books,
    /// What is new on blogs and pages
    Blogs,
    /// Commits of GitLab projects
    Commits,
}

pub(super) fn run(args: &Args, context: &Context) -> Result {
    let path = context.global.config.clone().unwrap_or_else(|| PathBuf::from(FILE_NAME));
    let shown = path.display();
    let mut file = std::fs::File::create_new(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            Error::failed(format!("{shown} exists already, and was left as it is"))
                .hint("name another file: `tsuzuki init -c FILE`; `tsuzuki job add` adds a job to this one")
        }
        _ => Error::failed(format!("{shown}: {error}")),
    })?;
    file.write_all(render(&args.kinds, args.lang.language()).as_bytes())?;
    let next = match args.kinds.is_empty() {
        true => "take the # away from what you want",
        false => "fill in your own addresses",
    };
    context.out.note(format!(
        "Wrote {shown}: {next}, then run `tsuzuki check`, `tsuzuki doctor` and `tsuzuki run-due`"
    ));
    Ok(Exit::Fine)
}

/// The file: the general part, then the pipelines as they are or, if none was named, all of them commented out.
///
/// A line of an example is commented out with a bare `#`, words have a space behind it, so that either can be told
/// from the other.
fn render(kinds: &[Pipeline], language: Language) -> String {
    let mut text = base(language).to_owned();
    for pipeline in Pipeline::value_variants() {
        let example = template(*pipeline, language);
        if kinds.contains(pipeline) {
            text.push('\n');
            text.push_str(example);
        } else if kinds.is_empty() {
            text.push('\n');
            for line in example.lines() {
                let mark = if line.is_empty() || line.starts_with('#') { "" } else { "#" };
                text.push_str(&format!("{mark}{line}\n"));
            }
        }
    }
    text
}

fn base(language: Language) -> &'static str {
    match language {
        Language::Ja => include_str!("init/ja/base.toml"),
        Language::En => include_str!("init/en/base.toml"),
    }
}

fn template(pipeline: Pipeline, language: Language) -> &'static str {
    match (pipeline, language) {
        (Pipeline::Press, Language::Ja) => include_str!("init/ja/press.toml"),
        (Pipeline::Press, Language::En) => include_str!("init/en/press.toml"),
        (Pipeline::Books, Language::Ja) => include_str!("init/ja/books.toml"),
        (Pipeline::Books, Language::En) => include_str!("init/en/books.toml"),
        (Pipeline::Blogs, Language::Ja) => include_str!("init/ja/blogs.toml"),
        (Pipeline::Blogs, Language::En) => include_str!("init/en/blogs.toml"),
        (Pipeline::Commits, Language::Ja) => include_str!("init/ja/commits.toml"),
        (Pipeline::Commits, Language::En) => include_str!("init/en/commits.toml"),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Env;

    #[track_caller]
    fn jobs_of(text: &str) -> Vec<String> {
        let config = crate::config::parse(text, Path::new("t.toml"), crate::app::kinds(), &Env::of([]));
        let config = config.unwrap_or_else(|problems| panic!("{problems}\n{text}"));
        assert_eq!(config.warnings.to_string(), "", "{text}");
        config.jobs.iter().map(|job| job.name.to_string()).collect()
    }

    #[test]
    fn every_template_can_be_used_alone_together_and_uncommented() {
        for language in [Language::Ja, Language::En] {
            assert!(jobs_of(&render(&[], language)).is_empty(), "examples are only examples");
            for pipeline in Pipeline::value_variants() {
                assert_eq!(jobs_of(&render(&[*pipeline], language)).len(), 1);
            }
            let all = ["press", "books", "blogs", "commits"];
            assert_eq!(jobs_of(&render(Pipeline::value_variants(), language)), all);
            let uncommented: String = render(&[], language)
                .lines()
                .map(|line| match line.strip_prefix('#') {
                    Some(rest) if !rest.is_empty() && !rest.starts_with(' ') => format!("{rest}\n"),
                    _ => format!("{line}\n"),
                })
                .collect();
            assert_eq!(jobs_of(&uncommented), all);
        }
    }
}
