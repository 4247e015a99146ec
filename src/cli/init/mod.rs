//! `init`: a first config file with comments, for the given pipelines or with an example of each.

mod ask;

use std::io::Write;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};

use super::{Context, Error, Result};
use tsuzuki::app;
use tsuzuki::config::FILE_NAME;
use tsuzuki::config::value::Zone;
use tsuzuki::phrase;
use tsuzuki::text::Language;

/// The placeholder for the zone in the general part.
const ZONE: &str = "{zone}";

/// Options of `init`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// What to begin with; without any, the file holds a commented-out example of each
    #[arg(value_name = "KIND", value_parser = list_kinds())]
    kinds: Vec<String>,
    /// The time zone of schedules and of what is shown; the machine's own where it has one
    #[arg(long, value_name = "ZONE")]
    timezone: Option<Zone>,
}

/// The kinds of jobs with descriptions.
fn list_kinds() -> PossibleValuesParser {
    let values =
        app::PIPELINES.iter().map(|of| PossibleValue::new(of.kind.name).help((of.about)().to_string()));
    PossibleValuesParser::new(values)
}

pub(super) async fn run(args: &Args, context: &Context) -> Result {
    let path = context.global.config.clone().unwrap_or_else(|| PathBuf::from(FILE_NAME));
    let shown = path.display().to_string();
    let language = context.out.speech().language;
    let zone =
        args.timezone.clone().or_else(|| zone_of_machine(context)).unwrap_or_else(|| usual_zone(language));
    let mut file = std::fs::File::create_new(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => Error::failed(phrase!(
            "{shown} exists already, and was left as it is",
            "{shown} はすでにあります。変更していません"
        ))
        .hint(phrase!(
            "name another file: `tsuzuki init -c FILE`; `tsuzuki job add` adds a job to this one",
            "別のファイルは `tsuzuki init -c FILE`、このファイルへの追加は `tsuzuki job add` を使います"
        )),
        _ => Error::failed(phrase!(
            "{shown} cannot be written: {error}",
            "{shown} に書き込めません：{error}",
            shown = &shown,
            error = error.to_string()
        )),
    })?;
    if args.kinds.is_empty() && ask::is_possible(context) {
        file.write_all(base(language).replace(ZONE, zone.name()).as_bytes())?;
        // Without a job the file would only block the next `init`, also after a Ctrl-C at a question.
        let (stop, unfinished) = (context.stop.clone(), path.clone());
        let cleanup = tokio::spawn(async move {
            stop.cancelled().await;
            let _ = std::fs::remove_file(unfinished);
        });
        // The environment may name another file than the one written here.
        let context = context.at(path.clone());
        let answered = ask::fill_in(&context).await;
        cleanup.abort();
        let pipeline = answered.inspect_err(|_| drop(std::fs::remove_file(&path)))?;
        return ask::test_once(pipeline, &path, &context).await;
    }
    file.write_all(render(&args.kinds, language, &zone).as_bytes())?;
    context.out.done(if args.kinds.is_empty() { phrase!(
            "Wrote {shown}: uncomment what you need, then run `tsuzuki check`, `tsuzuki doctor` and `tsuzuki run-due`",
            "{shown} を作成しました。必要な箇所のコメントを外し、`tsuzuki check`、`tsuzuki doctor`、`tsuzuki run-due` の順に実行してください") } else { phrase!(
            "Wrote {shown}: fill in your own addresses, then run `tsuzuki check`, `tsuzuki doctor` and `tsuzuki run-due`",
            "{shown} を作成しました。URL などを書き換え、`tsuzuki check`、`tsuzuki doctor`、`tsuzuki run-due` の順に実行してください") })
}

/// The zone of the machine; UTC is the default of unconfigured machines, so it does not count.
fn zone_of_machine(context: &Context) -> Option<Zone> {
    context.env.find_zone().filter(|zone| !matches!(zone.name(), "UTC" | "Etc/UTC"))
}

fn usual_zone(language: Language) -> Zone {
    let name = match language {
        Language::Ja => "Asia/Tokyo",
        Language::En => "UTC",
    };
    name.parse().expect("a zone that every database has")
}

/// The file: the general part, then the given pipelines or, if none was given, all of them commented out.
///
/// A line of an example is commented out with a bare `#`; prose has a space after it, so that the two can be
/// distinguished.
fn render(kinds: &[impl AsRef<str>], language: Language, zone: &Zone) -> String {
    let mut text = base(language).replace(ZONE, zone.name());
    for pipeline in app::PIPELINES {
        let example = pipeline.example.of(language);
        if kinds.iter().any(|kind| kind.as_ref() == pipeline.kind.name) {
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
        Language::Ja => include_str!("ja/base.toml"),
        Language::En => include_str!("en/base.toml"),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use tsuzuki::config::Env;

    const NONE: &[&str] = &[];

    #[track_caller]
    fn jobs_of(text: &str) -> Vec<String> {
        let config = tsuzuki::config::parse(text, Path::new("t.toml"), tsuzuki::app::kinds(), &Env::of([]));
        let config = config.unwrap_or_else(|problems| panic!("{problems}\n{text}"));
        assert_eq!(config.warnings.to_string(), "", "{text}");
        config.jobs.iter().map(|job| job.name.to_string()).collect()
    }

    #[test]
    fn the_zone_is_written_where_it_belongs() {
        let zone: Zone = "Europe/Vienna".parse().unwrap();
        for language in [Language::Ja, Language::En] {
            let text = render(NONE, language, &zone);
            assert!(text.contains("timezone = \"Europe/Vienna\"") && !text.contains(ZONE), "{text}");
        }
    }

    #[test]
    fn every_template_can_be_used_alone_together_and_uncommented() {
        for language in [Language::Ja, Language::En] {
            assert!(
                jobs_of(&render(NONE, language, &usual_zone(language))).is_empty(),
                "examples are only examples"
            );
            let all: Vec<&str> = app::job_kinds().collect();
            for kind in &all {
                assert_eq!(jobs_of(&render(&[kind], language, &usual_zone(language))).len(), 1);
            }
            assert_eq!(jobs_of(&render(&all, language, &usual_zone(language))), all);
            let uncommented: String = render(NONE, language, &usual_zone(language))
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
