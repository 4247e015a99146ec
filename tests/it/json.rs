//! `--json` with every command of the tree: everything on stdout is JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Output;

use serde_json::Value as Json;

/// Commands with their own output format, and those that do not end or wait long for an unreachable GitLab.
const EXEMPT: &[&str] = &[
    "completions",
    "man",
    "export",
    "serve",
    "bulk start",
    "bulk resume",
    "bulk retry-failed",
    "project sync",
    "branch add",
];

/// Arguments that commands need besides `--json`; others need none.
const ARGUMENTS: &[(&str, &str)] = &[
    ("demo", "--once"),
    ("init", "blogs -c NEW.toml"),
    ("run", "blogs --dry-run"),
    ("run-due", "--dry-run"),
    ("why", "blogs"),
    ("inspect", "page PAGE.html"),
    ("job show", "blogs"),
    ("job add", "books more --query rust"),
    ("job update", "blogs --set every=2h"),
    ("job enable", "blogs"),
    ("job disable", "blogs"),
    ("job rm", "more --yes"),
    ("job pause", "blogs"),
    ("job resume", "blogs"),
    ("job test", "blogs"),
    ("job cursor reset", "consultant-books --yes"),
    ("book show", "ISBN"),
    ("book prompt", "ISBN"),
    ("mail preview", "consultant-books"),
    ("mail reset", "--job consultant-books --yes"),
    ("token create", "--name program --scope read"),
    ("token revoke", "0123456789abcdef"),
    ("item show", "1"),
    ("item retry", "1"),
    ("item skip", "1"),
    ("branch rm", "team/app extra"),
    ("blog show", "example"),
    ("blog add", "https://new.example/"),
    ("blog rm", "new-example --yes"),
    ("blog pause", "example"),
    ("blog resume", "example"),
    ("change show", "1"),
    ("change approve", "1"),
    ("change skip", "1"),
    ("change resume", "example"),
    ("delivery show", "1"),
    ("delivery retry", "1"),
    ("delivery approve", "1"),
    ("delivery confirm", "1"),
    ("delivery skip", "1"),
    ("channel add", "slack team"),
    ("channel test", "mail"),
    ("post preview", "--title news --channel mastodon"),
    ("quota reset", "google_books --yes"),
    ("import opml", "LIST.opml"),
    ("import urls", "LIST.txt"),
    ("import mic-bot", "NONE.db --job mic"),
    ("import dre", "NONE.db"),
    ("import blog-watcher", "--db NONE.db"),
    ("import gitlab-analyzer", "NONE.db"),
    ("db backup", "COPY.db"),
    ("db restore", "COPY.db --yes"),
    ("db prune", "--keep 1d"),
    ("db move", "--to MOVED.db --dry-run"),
    ("db reset", "--yes"),
];

/// Every command that has none below it.
fn list_commands() -> Vec<String> {
    let reference = crate::reference::command_line();
    let paths: Vec<&str> =
        reference.lines().filter_map(|line| line.strip_prefix("## `tsuzuki ")?.strip_suffix('`')).collect();
    let is_leaf = |path: &&str| !paths.iter().any(|other| other.starts_with(&format!("{path} ")));
    paths.iter().copied().filter(is_leaf).map(str::to_owned).collect()
}

fn run(dir: &Path, args: &[&str]) -> Output {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tsuzuki"));
    command.current_dir(dir).env_clear().env("TZ", "Asia/Tokyo").env("HOME", dir).args(args).output().unwrap()
}

#[test]
fn whatever_a_command_prints_with_json_is_json() {
    let dir = tempfile::tempdir().unwrap();
    let kept = dir.path().join("kept");
    let demo = run(dir.path(), &["demo", "--once", "--keep", "kept", "-q"]);
    assert!(demo.status.success(), "{demo:?}");
    for (name, text) in [
        ("PAGE.html", "<p>hello</p>"),
        ("LIST.txt", "https://a.example/\n"),
        ("LIST.opml", "<opml><body><outline xmlUrl='https://b.example/f'/></body></opml>"),
    ] {
        std::fs::write(kept.join(name), text).unwrap();
    }
    let books: serde_json::Value =
        serde_json::from_slice(&run(&kept, &["book", "ls", "--json"]).stdout).unwrap();
    let isbn = books[0]["isbn13"].as_str().unwrap().to_owned();
    let mut commands = list_commands();
    assert!(commands.len() > 80, "{commands:?}");
    for (known, _) in ARGUMENTS {
        assert!(commands.iter().any(|command| command == known), "there is no command `{known}`");
    }
    // The command that empties the database is the last.
    commands.sort_by_key(|command| ["db reset", "mail reset", "job rm"].contains(&command.as_str()));
    let mut spoken = Vec::new();
    for command in commands.iter().filter(|command| !EXEMPT.contains(&command.as_str())) {
        let more = ARGUMENTS.iter().find(|(known, _)| known == command).map_or("", |(_, more)| more);
        let line = format!("{command} {more} --json").replace("ISBN", &isbn);
        let output = run(&kept, &line.split_whitespace().collect::<Vec<_>>());
        let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
        assert!(!err.contains("Usage:") && !err.contains("unexpected argument"), "{line}: {err}");
        assert_ne!(output.status.code(), Some(101), "{line}: {err}");
        if !out.trim().is_empty() {
            let parsed: Result<serde_json::Value, _> = serde_json::from_str(&out);
            assert!(parsed.is_ok(), "{line} prints no JSON: {out}");
            spoken.push(command.as_str());
        }
    }
    for command in [
        "config path",
        "config show",
        "config schema",
        "check",
        "job show",
        "job test",
        "job add",
        "channel add",
        "channel ls",
        "job cursor reset",
        "doctor",
        "status",
    ] {
        assert!(spoken.contains(&command), "`{command} --json` prints nothing; only these do: {spoken:?}");
    }
}

/// Every listing, and the file of its schema in `docs/schema/`.
const LISTINGS: &[(&str, &str)] = &[
    ("status", "status"),
    ("job ls", "job"),
    ("job cursor show", "cursor"),
    ("blog ls", "blog"),
    ("change ls --all", "change"),
    ("item ls", "item"),
    ("book ls", "book"),
    ("mail status", "mail"),
    ("delivery ls", "delivery"),
    ("channel ls", "channel"),
    ("bulk ls", "run"),
    ("project ls", "project"),
    ("branch ls", "branch"),
    ("commits ls", "commit"),
    ("quota ls", "quota"),
    ("token ls", "token"),
    ("doctor --offline", "finding"),
    ("config show --origins", "origin"),
];

/// The JSON Schema type of a value.
fn type_of(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(number) if number.is_f64() => "number",
        Json::Number(_) => "integer",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }
}

/// The schema of rows like `rows`, and like those of `known`.
fn schema_of(name: &str, rows: &[Json], known: &Json) -> Json {
    let mut types: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (key, known) in known["items"]["properties"].as_object().into_iter().flatten() {
        let known = known["type"].as_array().into_iter().flatten().filter_map(Json::as_str);
        types.entry(key.clone()).or_default().extend(known.map(str::to_owned));
    }
    for (key, value) in rows.iter().filter_map(Json::as_object).flatten() {
        types.entry(key.clone()).or_default().insert(type_of(value).to_owned());
    }
    let is_everywhere = |key: &&String| rows.iter().all(|row| row.get(key.as_str()).is_some());
    let required: Vec<&String> = types.keys().filter(is_everywhere).collect();
    let properties: serde_json::Map<String, Json> =
        types.iter().map(|(key, types)| (key.clone(), serde_json::json!({ "type": types }))).collect();
    serde_json::json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": format!("What `tsuzuki {name} --json` prints"),
        "type": "array",
        "items": { "type": "object", "properties": properties, "required": required },
    })
}

/// `UPDATE_FIXTURES=1 cargo test --test it json::` writes the schemas.
#[test]
fn every_listing_is_as_its_schema_says_and_fields_have_one_naming() {
    let dir = tempfile::tempdir().unwrap();
    let kept = dir.path().join("kept");
    let demo = run(dir.path(), &["demo", "--once", "--keep", "kept", "-q"]);
    assert!(demo.status.success(), "{demo:?}");
    run(&kept, &["token", "create", "--name", "reader", "--scope", "read"]);
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    for (listing, name) in LISTINGS {
        let args: Vec<&str> = listing.split(' ').chain(["--json"]).collect();
        let output = run(&kept, &args);
        let rows: Vec<Json> = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{listing}: {error}: {output:?}"));
        assert!(!rows.is_empty(), "{listing} has nothing to show");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/schema/{name}.json"));
        let known = std::fs::read_to_string(&path).unwrap_or_default();
        let known: Json = serde_json::from_str(&known).unwrap_or_default();
        let wanted = schema_of(listing, &rows, &known);
        if std::env::var_os("UPDATE_FIXTURES").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, format!("{wanted:#}\n")).unwrap();
        } else {
            assert_eq!(wanted, known, "{} is out of date: set UPDATE_FIXTURES=1", path.display());
        }
        for (key, value) in rows.iter().filter_map(Json::as_object).flatten() {
            assert!(key.chars().all(is_word), "{listing}: `{key}` is not in snake case");
            assert!(key != "job" || value.is_object(), "{listing}: the name of a job is `job_name`");
            let is_moment = value.as_str().is_some_and(|text| text.len() == 24 && text.ends_with('Z'));
            let says_so = ["_at", "_until", "_utc", "_before", "_since"].iter().any(|end| key.ends_with(end));
            assert!(!is_moment || says_so, "{listing}: `{key}` is a moment");
        }
    }
}

#[test]
fn what_is_wrong_is_json_when_data_is() {
    let dir = tempfile::tempdir().unwrap();
    for (args, code, message) in [
        (&["status", "--json"][..], 5, "there is no config file"),
        (&["status", "--json", "--nonsense"], 2, "unexpected argument '--nonsense' found"),
    ] {
        let output = run(dir.path(), args);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let error: Json = serde_json::from_slice(&output.stderr).unwrap();
        assert_eq!(error["error"]["exit_code"], code);
        assert!(error["error"]["message"].as_str().unwrap().starts_with(message), "{error}");
        assert!(error["error"]["hints"].is_array(), "{error}");
    }
    std::fs::write(dir.path().join("tsuzuki.toml"), "[ap]\n").unwrap();
    let error: Json = serde_json::from_slice(&run(dir.path(), &["status", "--json"]).stderr).unwrap();
    assert_eq!(error["error"]["problems"][0]["line"], 1, "{error}");
}
