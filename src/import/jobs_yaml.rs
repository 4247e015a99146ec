//! `config/jobs.yaml` of dre: its jobs as tables of our config file.

use serde_json::{Map, Value as Json};

use super::dre::job_name;
use crate::config::value::Span;
use crate::id::JobName;
use crate::phrase;
use crate::phrase::Phrase;

/// The largest file; real ones have a few kilobytes.
pub const MAX_BYTES: u64 = 1 << 20;

/// A job as a table of our config file.
#[derive(Clone, Debug, PartialEq)]
pub struct YamlJob {
    pub name: JobName,
    /// In order, without `name` and `kind`.
    pub keys: Vec<(String, toml::Value)>,
}

/// The jobs of a file, and what could not be converted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct YamlJobs {
    pub jobs: Vec<YamlJob>,
    /// One line for each setting that is left out.
    pub notices: Vec<Phrase>,
}

/// Parses `jobs.yaml`; the YAML parser limits aliases, depth and size.
pub fn parse(text: &str) -> Result<YamlJobs, Phrase> {
    let root: Json = serde_saphyr::from_str(text).map_err(|error| {
        phrase!(
            "this is no usable YAML: {error}",
            "YAML として読めません：{error}",
            error = error.to_string()
        )
    })?;
    let none = Map::new();
    let defaults = root.get("defaults").and_then(Json::as_object).unwrap_or(&none);
    let Some(list) = root.get("jobs").and_then(Json::as_array) else {
        return Err(phrase!(
            "this is no jobs.yaml of dre: it has no list `jobs`",
            "dre の jobs.yaml ではありません：リスト `jobs` がありません"
        ));
    };
    let mut read = YamlJobs::default();
    for (number, job) in list.iter().enumerate() {
        match job
            .as_object()
            .ok_or_else(|| phrase!("it is not a table", "テーブルではありません"))
            .and_then(|job| read_job(job, defaults))
        {
            Ok((job, _)) if read.jobs.iter().any(|known| known.name == job.name) => {
                read.notices.push(phrase!(
                    "the job `{name}` is in jobs.yaml twice; the first one is used",
                    "jobs.yaml にジョブ `{name}` が 2 つあるため、最初のものを使います",
                    name = &job.name
                ));
            }
            Ok((job, left_out)) => {
                if !left_out.is_empty() {
                    read.notices.push(phrase!(
                        "`{keys}` of the job `{name}` is left out",
                        "ジョブ `{name}` の `{keys}` は取り込みません",
                        keys = left_out.join("`, `"),
                        name = &job.name
                    ));
                }
                read.jobs.push(job);
            }
            Err(why) => {
                read.notices.push(phrase!(
                    "job number {number} of jobs.yaml is left out: {why}",
                    "jobs.yaml の {number} 番目のジョブは対象外です：{why}",
                    number = number + 1
                ));
            }
        }
    }
    Ok(read)
}

fn read_job(job: &Map<String, Json>, defaults: &Map<String, Json>) -> Result<(YamlJob, Vec<String>), Phrase> {
    const KNOWN: &[&str] = &[
        "name",
        "enabled",
        "queries",
        "query",
        "mail_limit",
        "limit",
        "max_per_run",
        "fallback_limit",
        "interval",
        "google_books",
    ];
    let written = job
        .get("name")
        .and_then(Json::as_str)
        .ok_or_else(|| phrase!("it has no name", "name がありません"))?;
    let name = job_name(written)
        .ok_or_else(|| phrase!("`{written}` is not a usable name", "`{written}` は名前に使えません"))?;
    let mut keys: Vec<(String, toml::Value)> = Vec::new();
    let mut left_out: Vec<String> =
        job.keys().filter(|key| !KNOWN.contains(&key.as_str())).cloned().collect();
    let interval = job.get("interval").or_else(|| defaults.get("interval")).and_then(Json::as_str);
    match interval.map(|text| (text, text.trim().parse::<Span>())) {
        Some((_, Ok(every))) => keys.push(("every".into(), every.to_string().into())),
        Some((_, Err(_))) => left_out.push("interval".into()),
        None => keys.push(("every".into(), "3h".into())),
    }
    if job.get("enabled").and_then(Json::as_bool) == Some(false) {
        keys.push(("enabled".into(), false.into()));
    }
    let mut queries: Vec<&str> =
        job.get("queries").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str).collect();
    if queries.is_empty() {
        queries.extend(job.get("query").and_then(Json::as_str));
    }
    queries.retain(|query| !query.trim().is_empty());
    if queries.is_empty() {
        return Err(phrase!("`{name}` has no queries", "`{name}` に queries がありません", name = &name));
    }
    keys.push(("queries".into(), queries.into()));
    let number = |names: &[&str]| {
        let find =
            |table: &Map<String, Json>| names.iter().find_map(|name| table.get(*name)).and_then(Json::as_i64);
        find(job).or_else(|| find(defaults))
    };
    for (key, names, range) in [
        ("max_per_run", ["max_per_run"].as_slice(), 1..=i64::from(u32::MAX)),
        ("mail_limit", &["mail_limit", "limit"], 1..=50),
        ("fallback_limit", &["fallback_limit"], 0..=50),
    ] {
        match number(names) {
            Some(value) if range.contains(&value) => keys.push((key.into(), value.into())),
            Some(_) => left_out.push(key.into()),
            None => {}
        }
    }
    let mut asked = toml::Table::new();
    for (key, value) in job.get("google_books").and_then(Json::as_object).into_iter().flatten() {
        match value.as_str().map(str::trim) {
            Some("") => {}
            Some(text) if key == "langRestrict" => drop(asked.insert(key.clone(), text.into())),
            Some(text @ ("all" | "books" | "magazines")) if key == "printType" => {
                asked.insert(key.clone(), text.into());
            }
            Some(text @ ("relevance" | "newest")) if key == "orderBy" => {
                drop(asked.insert(key.clone(), text.into()));
            }
            _ => left_out.push(format!("google_books.{key}")),
        }
    }
    if !asked.is_empty() {
        keys.push(("google_books".into(), asked.into()));
    }
    Ok((YamlJob { name, keys }, left_out))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "defaults:\n  interval: 3h\n  mail_limit: 5\n  max_per_run: 20\n  fallback_limit: 3\njobs:\n  \
        - name: consultant-books\n    enabled: true\n    queries:\n      - コンサルタント 仕事\n      - \"rust: #1\"\n    \
        google_books:\n      printType: books\n      langRestrict: ja\n  - name: old\n    enabled: false\n    query: AI\n    \
        limit: 7\n    allowlist: [a]\n  - name: nothing\n    queries: []\n";

    #[test]
    fn jobs_become_tables_with_the_defaults_filled_in() {
        let read = parse(FILE).unwrap();
        let shown: Vec<String> = read
            .jobs
            .iter()
            .map(|job| {
                let keys: Vec<String> =
                    job.keys.iter().map(|(key, value)| format!("{key} = {value}")).collect();
                format!("{}: {}", job.name, keys.join("; "))
            })
            .collect();
        assert_eq!(
            shown,
            [
                "consultant-books: every = \"3h\"; queries = [\"コンサルタント 仕事\", \"rust: #1\"]; max_per_run = 20; \
                 mail_limit = 5; fallback_limit = 3; google_books = { langRestrict = \"ja\", printType = \"books\" }",
                "old: every = \"3h\"; enabled = false; queries = [\"AI\"]; max_per_run = 20; mail_limit = 7; \
                 fallback_limit = 3",
            ]
        );
        assert_eq!(
            read.notices,
            [
                "`allowlist` of the job `old` is left out",
                "job number 3 of jobs.yaml is left out: `nothing` has no queries"
            ]
        );
    }

    #[test]
    fn other_documents_and_bombs_are_refused() {
        for text in ["", "a: [", "- 1", "jobs: 3", "\u{0}", "&a [*a]"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for level in 1..12 {
            let before = level - 1;
            bomb.push_str(&format!("a{level}: &a{level} [{}]\n", vec![format!("*a{before}"); 10].join(", ")));
        }
        bomb.push_str("jobs: *a11\n");
        assert!(parse(&bomb).is_err(), "ten to the twelfth copies of x");
    }
}
