//! Every key that a config file may have is read by its owner, or refused where it would have no effect.

use std::path::Path;

use serde_json::Value;
use tsuzuki::app;
use tsuzuki::config::{self, Colour, Config, Env, Problems, TableKind};

use crate::architecture::{code_of, root, rust_files};

fn parse(text: &str) -> Result<Config, Problems> {
    config::parse(text, Path::new("tsuzuki.toml"), app::kinds(), &Env::of([]))
}

/// A job of each kind with one more line in its table.
fn job(kind: &str, line: &str) -> String {
    let own = match kind {
        "press" => "feed = \"https://a.example/feed\"",
        "books" => "queries = [\"rust\"]",
        "blogs" => "blog = [{ id = \"a\", url = \"https://a.example/\" }]",
        "commits" => "gitlab = \"https://gitlab.example\"\nprojects = [\"team/app\"]",
        other => panic!("a new kind of job: {other}"),
    };
    format!("[[job]]\nname = \"one\"\nkind = \"{kind}\"\n{line}\n{own}\n")
}

fn channel(kind: &str, line: &str) -> String {
    let own = match kind {
        "mastodon" => "instance = \"https://m.example\"\ntoken = \"${TOKEN}\"",
        "email" => "smtp = \"memory:\"\nfrom = \"a@example.com\"\nto = [\"b@example.com\"]",
        "slack" => "url = \"${HOOK}\"",
        "webhook" => "url = \"${HOOK}\"",
        other => panic!("a new kind of channel: {other}"),
    };
    format!("[channel.one]\nkind = \"{kind}\"\n{line}\n{own}\n")
}

#[test]
fn a_key_without_effect_is_refused_where_it_is_written_and_nowhere_else() {
    let kinds = |place| app::kinds().iter().filter(move |kind| kind.place == place);
    for (place, key, line) in [
        (TableKind::Job, "hold_above", "hold_above = 10"),
        (TableKind::Job, "first_run", "first_run = \"all\""),
        (TableKind::Job, "deliver", "deliver = []"),
        (TableKind::Channel, "on_unknown", "on_unknown = \"hold\""),
        (TableKind::Channel, "pace", "pace = \"10s\""),
    ] {
        for kind in kinds(place) {
            let text = if place == TableKind::Job { job(kind.name, line) } else { channel(kind.name, line) };
            let rendered = match parse(&text) {
                Ok(_) => String::new(),
                Err(problems) => problems.render(Colour::Never),
            };
            match kind.unused.iter().find(|(unused, _)| *unused == key) {
                Some((_, why)) => {
                    let line = if place == TableKind::Job { 4 } else { 3 };
                    assert!(
                        rendered.contains(&format!("`{key}` has no effect in a")),
                        "{}: {rendered}",
                        kind.name
                    );
                    assert!(
                        rendered.contains(&format!("tsuzuki.toml:{line}:"))
                            && rendered.contains(&why().to_string()),
                        "{rendered}"
                    );
                }
                None => assert_eq!(rendered, "", "{} with {key}", kind.name),
            }
        }
    }
    let unused = |name| {
        let kind = app::kinds().iter().find(|kind| kind.name == name).unwrap();
        kind.unused.iter().map(|(key, _)| *key).collect::<Vec<_>>()
    };
    assert_eq!(unused("books"), ["hold_above"]);
    assert_eq!(unused("commits"), ["hold_above", "first_run"]);
    assert_eq!(unused("mastodon"), ["on_unknown"]);
}

#[test]
fn the_config_itself_names_no_kind_and_none_of_their_variables() {
    let kinds = app::kinds().iter().map(|kind| kind.name).filter(|name| !name.is_empty());
    let words: Vec<&str> = kinds.chain(["google_books", "SMTP_", "MAIL_TO", "BOOKS_API"]).collect();
    for file in
        rust_files(&root().join("crates/config/src")).iter().filter(|file| !file.ends_with("tests.rs"))
    {
        let code = code_of(file);
        // A key named `webhook` is a secret in any table.
        for word in words.iter().filter(|word| !(file.ends_with("mask.rs") && **word == "webhook")) {
            assert!(!code.contains(&format!("\"{word}")), "{} names {word}", file.display());
        }
    }
}

#[test]
fn defaults_may_set_what_some_kinds_do_not_use() {
    for kind in app::job_kinds() {
        let text = format!("[defaults]\nhold_above = 10\nfirst_run = \"all\"\n{}", job(kind, ""));
        assert!(parse(&text).is_ok(), "{kind}");
    }
}

/// The folder or file of a module, as one text without comments and unit tests.
fn code(module: &str) -> String {
    let path = root().join("src").join(module);
    let files = if path.is_dir() { rust_files(&path) } else { vec![path.with_extension("rs")] };
    files.iter().filter(|file| !file.ends_with("tests.rs")).map(|file| code_of(file)).collect()
}

fn has_word(code: &str, word: &str) -> bool {
    code.match_indices(word)
        .any(|(at, _)| !code[at + word.len()..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'))
}

/// The tables of a place in the schema of the file: the kind and its keys.
fn tables(place: &str) -> Vec<(String, Vec<String>)> {
    let schema = config::schema(app::kinds());
    let place = &schema["properties"][place];
    let inner = if place["items"].is_object() { &place["items"] } else { &place["additionalProperties"] };
    let tables = inner["oneOf"].as_array().unwrap();
    let keys = |table: &Value| table["properties"].as_object().unwrap().keys().cloned().collect();
    tables
        .iter()
        .map(|table| (table["properties"]["kind"]["const"].as_str().unwrap().to_owned(), keys(table)))
        .collect()
}

#[test]
fn every_key_of_a_job_is_read_by_its_kind_or_named_as_unused() {
    // Read for every job by the config itself and by `app`, which makes schedule and ping.
    let of_all = ["name", "kind", "every", "cron", "timezone", "enabled", "ping"];
    let of_kind = ["deliver", "first_run", "hold_above", "allow_private"];
    let tables = tables("job");
    assert_eq!(tables.len(), app::job_kinds().count());
    for (kind, keys) in tables {
        let code = code(&kind);
        for key in of_kind {
            let is_read = has_word(&code, &format!("job.{key}"));
            assert_eq!(is_read, keys.iter().any(|one| one == key), "{kind}: {key}");
        }
        let own =
            keys.iter().filter(|key| !of_all.contains(&key.as_str()) && !of_kind.contains(&key.as_str()));
        for key in own {
            // The keys of Git hosts are stamped by a macro that reads each of the same list.
            let is_stamped = code.contains("self.$key") && code.contains(&format!("            {key},\n"));
            assert!(
                has_word(&code, &format!(".{key}")) || is_stamped,
                "nothing in {kind} reads its key `{key}`"
            );
        }
    }
}

#[test]
fn every_key_of_a_channel_is_read_by_it_or_by_the_outbox() {
    let common = [
        "pace",
        "max_per_day",
        "quiet_hours",
        "timezone",
        "timeout",
        "max_attempts",
        "on_unknown",
        "allow_private",
    ];
    let all: String =
        ["outbox", "http", "email", "mastodon"].map(|module| code(&format!("channel/{module}"))).concat();
    for (kind, keys) in tables("channel") {
        let code = code(&format!("channel/{kind}"));
        for key in keys.iter().filter(|key| *key != "kind") {
            let (code, word) = if common.contains(&key.as_str()) {
                (&all, if key == "timezone" { "zone" } else { key })
            } else {
                (&code, key.as_str())
            };
            assert!(has_word(code, &format!(".{word}")), "nothing reads the key `{key}` of {kind}");
        }
    }
}
