//! The floors of the house, enforced: a module may use only lower floors and its own folder.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const FLOORS: &[&[&str]] = &[
    &["time", "id", "hash", "text", "fail"],
    &["config"],
    &["db", "parse"],
    &["fetch", "ledger"],
    &["llm", "channel"],
    &["engine"],
    &["press", "books", "blogs", "commits"],
    &["app"],
    &["web", "demo", "import", "export"],
    &["cli"],
];

fn floor(module: &str) -> Option<usize> {
    FLOORS.iter().position(|floor| floor.contains(&module))
}

pub(crate) fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The first-level module that a file of `src/` belongs to.
fn module_of(file: &Path) -> String {
    let first = file.strip_prefix(root().join("src")).unwrap().components().next().unwrap();
    Path::new(first.as_os_str()).file_stem().unwrap().to_str().unwrap().to_owned()
}

/// The part of a file before its unit tests, without comments.
pub(crate) fn code_of(file: &Path) -> String {
    let text = std::fs::read_to_string(file).unwrap();
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    code.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Every `crate::NAME` and every `NAME` of `use crate::{NAME…, NAME…}`.
fn used_modules(code: &str) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    let word = |text: &str| -> String {
        text.trim_start().chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect()
    };
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            None => {
                used.insert(word(rest));
            }
            Some(group) => {
                let mut depth = 0;
                let mut part = String::new();
                for c in group.chars() {
                    match c {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => {
                            used.insert(word(&part));
                            part.clear();
                            continue;
                        }
                        _ => {}
                    }
                    part.push(c);
                }
                used.insert(word(&part));
            }
        }
    }
    used
}

/// What is wrong with a file of the module `module`, if anything.
fn violations(module: &str, code: &str) -> Vec<String> {
    let Some(own) = floor(module) else { return vec![format!("`{module}` stands on no floor")] };
    used_modules(code)
        .into_iter()
        .filter(|used| used != module)
        .filter_map(|used| match floor(&used) {
            Some(floor) if floor >= own => {
                Some(format!("`{module}` (floor {own}) uses `{used}` (floor {floor})"))
            }
            _ => None,
        })
        .collect()
}

#[test]
fn modules_use_only_lower_floors() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for file in rust_files(&root().join("src")) {
        let module = module_of(&file);
        if matches!(module.as_str(), "lib" | "main") {
            continue;
        }
        seen += 1;
        wrong.extend(
            violations(&module, &code_of(&file)).into_iter().map(|why| format!("{}: {why}", file.display())),
        );
    }
    assert!(seen > 20, "the test looks at {seen} files only");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_rule_is_able_to_fail() {
    assert_eq!(violations("db", "use crate::engine::Runner;").len(), 1);
    assert_eq!(violations("press", "use crate::{db::Tx, books::{Book, Isbn}, time};").len(), 1);
    assert_eq!(violations("cli", "use crate::{db, web}; crate::app::run();").len(), 0);
    assert_eq!(violations("drawer", "").len(), 1);
}

#[test]
fn sql_stands_only_where_it_may() {
    let allowed = |path: &str| {
        path.ends_with("store.rs")
            || ["src/ledger/", "src/engine/", "src/db/"].iter().any(|folder| path.starts_with(folder))
            || path == "src/channel/outbox.rs"
            || path.starts_with("src/channel/outbox/")
            || path.contains("/store/")
    };
    let mut wrong = Vec::new();
    for file in rust_files(&root().join("src")) {
        let path = file.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        if !allowed(&path) && code_of(&file).contains("sql!(") {
            wrong.push(path);
        }
    }
    assert!(wrong.is_empty(), "SQL outside store.rs, ledger, engine, outbox and db: {wrong:?}");
}

#[test]
fn deciding_and_reading_do_no_input_or_output() {
    const ALONE: [&str; 4] =
        ["src/engine/schedule.rs", "src/blogs/detect.rs", "src/commits/history.rs", "src/fetch/polite.rs"];
    let pure = |path: &str| {
        path.ends_with("/decide.rs")
            || path.contains("/decide/")
            || path.starts_with("src/parse/")
            || ALONE.contains(&path)
    };
    assert!(ALONE.iter().all(|path| root().join(path).exists()));
    let banned = ["async fn", ".await", "crate::db", "crate::fetch", "std::fs", "std::net", "Clock", "tokio"];
    for file in rust_files(&root().join("src")) {
        let path = file.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        if pure(&path) && !path.ends_with("/tests.rs") {
            let code = code_of(&file);
            for word in banned {
                assert!(!code.contains(word), "{path} must be pure, but has `{word}`");
            }
        }
    }
}

/// Which rooms may name these: who asks the outside world, and who opens databases.
#[test]
fn sockets_and_databases_are_opened_only_where_they_may() {
    for (words, rooms) in [
        (&["TcpStream::connect", "TcpSocket", "UdpSocket"][..], &["fetch", "channel", "demo"][..]),
        (&["reqwest::Client", ".execute(request"], &["fetch", "llm", "channel"]),
        (&["TcpListener::bind"], &["web", "demo"]),
        (&["rusqlite::", "postgres::"], &["db"]),
    ] {
        for file in rust_files(&root().join("src")) {
            let code = code_of(&file);
            for word in words.iter().filter(|word| code.contains(**word)) {
                assert!(rooms.contains(&module_of(&file).as_str()), "{} has `{word}`", file.display());
            }
        }
    }
}

#[test]
fn the_floors_are_drawn_as_they_are_enforced() {
    let drawing = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let drawn: Vec<Vec<&str>> = drawing
        .lines()
        .filter_map(|line| line.strip_prefix("floor "))
        .map(|line| {
            let (_, rest) = line.split_once(' ').unwrap();
            let names = rest.trim_start().split("   ").next().unwrap();
            names.split_whitespace().collect()
        })
        .collect();
    assert_eq!(drawn, FLOORS);
}

#[test]
fn moments_are_told_to_people_in_one_place() {
    for file in rust_files(&root().join("src/cli")) {
        let code = code_of(&file);
        let is_the_place = file.ends_with("cli/times.rs");
        assert_eq!(is_the_place, code.contains("to_local_minute("), "{}", file.display());
    }
}

#[test]
fn every_test_file_is_listed() {
    let dir = root().join("tests/it");
    for file in rust_files(&dir) {
        let name = file.file_stem().unwrap().to_str().unwrap();
        let parent = file.parent().unwrap();
        // `tests/it/x.rs` is listed by `main.rs`, `tests/it/a/x.rs` by `tests/it/a.rs`.
        let lister = if parent == dir { dir.join("main.rs") } else { parent.with_extension("rs") };
        let listed = std::fs::read_to_string(&lister)
            .unwrap()
            .lines()
            .any(|line| line.trim_start_matches("pub(crate) ") == format!("mod {name};"));
        assert!(file == dir.join("main.rs") || listed, "{} does not list `{name}`", lister.display());
    }
}

#[test]
fn every_source_file_says_first_what_it_is_for() {
    for file in rust_files(&root().join("src")) {
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("//! "), "{} does not begin with `//! …`", file.display());
    }
}
