//! `job show`: the config of one job, including defaults.

use serde::Serialize;
use serde_json::Value as Json;

use super::super::{Context, Exit, Result};
use super::{Listed, no_such_job};
use tsuzuki::app;
use tsuzuki::config::TableKind;
use tsuzuki::text::one_line;

/// A job with its common keys, and the keys of its kind as written.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    listed: Listed,
    timezone: String,
    /// `None` for kinds that refuse it.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_run: Option<Option<String>>,
    /// `None` for kinds that refuse it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hold_above: Option<u32>,
    allow_private: Vec<String>,
    /// The keys of its kind, without secrets.
    keys: Json,
}

pub(super) async fn run(name: &str, context: &Context) -> Result {
    let config = context.config().await?;
    let job = config.find_job(name).ok_or_else(|| no_such_job(name, config))?;
    let kind = app::kinds().iter().find(|kind| kind.place == TableKind::Job && kind.name == job.kind);
    let takes = |key: &str| kind.is_none_or(|kind| kind.unused.iter().all(|(unused, _)| *unused != key));
    let shown = Shown {
        listed: Listed::of(job),
        timezone: job.timezone.to_string(),
        first_run: takes("first_run").then(|| job.first_run.map(|first_run| first_run.to_string())),
        hold_above: takes("hold_above").then_some(job.hold_above),
        allow_private: job.allow_private.clone(),
        keys: job.section.to_json(),
    };
    if context.out.is_json() {
        context.out.json(&shown)?;
        return Ok(Exit::Fine);
    }
    let listed = &shown.listed;
    let none_if_empty = |names: &[String]| if names.is_empty() { "-".to_owned() } else { names.join(", ") };
    let first_run =
        shown.first_run.clone().map(|first_run| first_run.unwrap_or_else(|| "default".to_owned()));
    let common = [
        ("name", Some(listed.job_name.to_string())),
        ("kind", Some(listed.kind.clone())),
        (
            "schedule",
            Some(format!("{} ({})", context.out.speech().phrase(&listed.schedule_words), shown.timezone)),
        ),
        ("enabled", Some(if listed.enabled { "yes" } else { "no" }.to_owned())),
        ("deliver", Some(none_if_empty(&listed.deliver))),
        ("first_run", first_run),
        ("hold_above", shown.hold_above.map(|count| count.to_string())),
        ("allow_private", Some(none_if_empty(&shown.allow_private))),
    ];
    let own = shown.keys.as_object().into_iter().flatten().flat_map(|(key, value)| {
        let lines = lines_of(value);
        // Only the first line names the key.
        let names = std::iter::once(key.as_str()).chain(std::iter::repeat(""));
        names.zip(lines).collect::<Vec<_>>()
    });
    let common = common.into_iter().filter_map(|(key, value)| Some((key, value?)));
    let pairs: Vec<(&str, String)> = common.chain(own).collect();
    let widest = pairs.iter().map(|(key, _)| key.len()).max().unwrap_or(0);
    pairs
        .iter()
        .try_for_each(|(key, value)| context.out.prose(format!("{key:<widest$}  {}", one_line(value))))?;
    Ok(Exit::Fine)
}

/// The lines of a value: a list of tables has one line each.
fn lines_of(value: &Json) -> Vec<String> {
    match value {
        Json::Array(items) if items.iter().any(Json::is_object) => items.iter().map(plain).collect(),
        value => vec![plain(value)],
    }
}

fn plain(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        Json::Object(pairs) => {
            let pair = |(key, value): (&String, &Json)| format!("{key}={}", plain(value));
            pairs.iter().map(pair).collect::<Vec<_>>().join(" ")
        }
        value => value.to_string(),
    }
}
