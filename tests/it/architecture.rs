//! Layers: a module may only use lower layers and its own folder.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The crates below the product; between them the compiler keeps order.
const KIT: &[&str] = &["macros", "stdx", "config", "parse", "db", "fetch"];

/// The modules from the lowest layer to the highest; one layer for all pipelines.
fn floors() -> [Vec<&'static str>; 7] {
    [
        vec!["ledger"],
        vec!["llm", "channel"],
        vec!["engine"],
        tsuzuki::app::job_kinds().collect(),
        vec!["app", "export"],
        vec!["web", "demo", "import"],
        vec!["cli"],
    ]
}

fn floor(module: &str) -> Option<usize> {
    floors().iter().position(|floor| floor.contains(&module))
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

/// Every source file of the product and of the crates below it.
pub(crate) fn sources() -> Vec<PathBuf> {
    let mut files = rust_files(&root().join("src"));
    for name in KIT {
        files.extend(rust_files(&root().join("crates").join(name).join("src")));
    }
    files
}

/// Its path from the root of the repository.
fn path_of(file: &Path) -> String {
    file.strip_prefix(root()).unwrap().to_str().unwrap().to_owned()
}

/// The crate of the kit, or the first-level module of `src/`, that a file belongs to.
fn module_of(file: &Path) -> String {
    let path = path_of(file);
    let rest = path.strip_prefix("crates/").or_else(|| path.strip_prefix("src/")).unwrap();
    rest.split('/').next().unwrap().trim_end_matches(".rs").to_owned()
}

/// The code of a file without its unit tests and comments.
pub(crate) fn code_of(file: &Path) -> String {
    let text = std::fs::read_to_string(file).unwrap();
    // A test module is the last item of a file; one in its own file is a single line.
    let code = match text.split_once("#[cfg(test)]\nmod tests {") {
        Some((code, tests)) => {
            assert!(
                tests.trim_end().ends_with('}') && tests.matches("\n}\n").count() == 1,
                "{}",
                file.display()
            );
            code
        }
        None => &text,
    };
    // Two slashes in a string do not begin a comment.
    let comment_at = |line: &str| {
        line.match_indices("//")
            .map(|(at, _)| at)
            .find(|at| line[..*at].matches('"').count().is_multiple_of(2))
    };
    let lines = code.lines().map(|line| &line[..comment_at(line).unwrap_or(line.len())]);
    lines.collect::<Vec<_>>().join("\n")
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

/// The violations in a file of the module `module`.
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
    for file in rust_files(&root().join("src")) {
        let module = module_of(&file);
        if matches!(module.as_str(), "lib" | "main") {
            continue;
        }
        let found = violations(&module, &code_of(&file));
        wrong.extend(found.into_iter().map(|why| format!("{}: {why}", file.display())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_rule_is_able_to_fail() {
    assert_eq!(violations("ledger", "use crate::engine::Runner;").len(), 1);
    assert_eq!(violations("press", "use crate::{db::Tx, books::{Book, Isbn}, time};").len(), 1);
    assert_eq!(violations("cli", "use crate::{db, web}; crate::app::run();").len(), 0);
    assert_eq!(violations("drawer", "").len(), 1);
}

#[test]
fn a_channel_and_a_model_provider_are_named_in_their_own_file_and_in_one_list() {
    let channels = tsuzuki::channel::KINDS.iter().map(|kind| ("channel", kind.keys.name));
    let providers = tsuzuki::llm::KINDS.iter().map(|kind| ("llm", kind.keys.name));
    for (room, name) in channels.chain(providers) {
        let own = format!("src/{room}/{name}");
        for file in rust_files(&root().join("src")) {
            let path = path_of(&file);
            // The loopback world implements the servers; `count.rs` knows protocols.
            let may = path.starts_with(&own)
                || path.starts_with("src/demo/")
                || path == format!("src/{room}/mod.rs")
                || path == "src/channel/count.rs"
                || path.ends_with("/tests.rs")
                // Slack also has a term "incoming webhook".
                || (path == "src/channel/slack.rs" && name == "webhook");
            let code = code_of(&file);
            for word in [format!("\"{name}\""), format!("{room}::{name}"), format!("super::{name}")] {
                assert!(may || !code.contains(&word), "{path} has `{word}`");
            }
        }
    }
}

#[test]
fn sql_stands_only_where_it_may() {
    const ROOMS: [&str; 4] = ["src/ledger/", "src/engine/", "src/channel/outbox/", "crates/db/src/"];
    let allowed = |path: &str| {
        path.ends_with("/store.rs")
            || path.contains("/store/")
            || ROOMS.iter().any(|room| path.starts_with(room))
    };
    let has_sql = |file: &PathBuf| code_of(file).contains("sql!(");
    let wrong: Vec<String> = sources()
        .iter()
        .filter(|file| has_sql(file))
        .map(|file| path_of(file))
        .filter(|path| !allowed(path))
        .collect();
    assert!(wrong.is_empty(), "SQL outside of stores, ledger, engine, outbox and db: {wrong:?}");
}

#[test]
fn the_tables_of_runs_are_named_in_one_room() {
    let names = |path: &str| path.starts_with("src/commits/run/store/");
    // The tables of another program have the same names.
    let foreign = |path: &str| path == "src/import/gitlab_analyzer.rs";
    let naming: Vec<String> = sources()
        .iter()
        .filter(|file| code_of(file).contains("bulk_collection_"))
        .map(|file| path_of(file))
        .filter(|path| !foreign(path))
        .collect();
    assert!(naming.len() > 2 && naming.iter().all(|path| names(path)), "{naming:?}");
}

#[test]
fn only_its_own_folder_and_the_list_of_hosts_know_a_git_host() {
    let mut naming: Vec<String> = rust_files(&root().join("src/commits"))
        .iter()
        .filter(|file| code_of(file).to_lowercase().contains("gitlab"))
        .map(|file| path_of(file))
        .filter(|path| !path.starts_with("src/commits/host/gitlab/"))
        .collect();
    naming.sort();
    assert_eq!(naming, ["src/commits/host/mod.rs"]);
}

#[test]
fn deciding_and_reading_do_no_input_or_output() {
    const ALONE: [&str; 4] = [
        "src/engine/schedule.rs",
        "src/blogs/detect.rs",
        "src/commits/history.rs",
        "crates/fetch/src/polite.rs",
    ];
    let pure = |path: &str| {
        path.ends_with("/decide.rs")
            || path.contains("/decide/")
            || path.starts_with("crates/parse/")
            || ALONE.contains(&path)
    };
    assert!(ALONE.iter().all(|path| root().join(path).exists()));
    let banned = ["async fn", ".await", "crate::db", "crate::fetch", "std::fs", "std::net", "Clock", "tokio"];
    let mut seen = 0;
    for file in sources() {
        let path = path_of(&file);
        if pure(&path) && !path.contains("/tests") {
            seen += 1;
            let code = code_of(&file);
            for word in banned {
                assert!(!code.contains(word), "{path} must be pure, but has `{word}`");
            }
        }
    }
    assert!(seen > 40, "only {seen} files are held to it");
}

/// Modules that may use these: network access and opening databases.
#[test]
fn sockets_and_databases_are_opened_only_where_they_may() {
    for (words, rooms) in [
        (&["TcpStream::connect", "TcpSocket", "UdpSocket"][..], &["fetch", "channel", "demo"][..]),
        (&["reqwest::Client"], &["fetch", "llm"]),
        (&[".execute(request"], &["fetch"]),
        (&["TcpListener::bind"], &["web", "demo"]),
        (&["rusqlite::", "postgres::"], &["db"]),
    ] {
        for file in sources().into_iter().filter(|file| !file.ends_with("tests.rs")) {
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
    assert_eq!(drawn, floors());
    for name in KIT {
        assert!(drawing.contains(&format!("\ncrates/{name} ")), "{name} is not drawn");
    }
}

#[test]
fn the_command_line_leaves_moments_to_phrases() {
    for file in rust_files(&root().join("src/cli")) {
        assert!(!code_of(&file).contains("to_local_minute("), "{}", file.display());
    }
}

#[test]
fn every_test_file_is_listed() {
    let dir = root().join("tests/it");
    for file in rust_files(&dir) {
        // `tests/it/a.rs` and `tests/it/a/mod.rs` are listed by `main.rs`, `tests/it/a/x.rs` by `tests/it/a/mod.rs`.
        let module = if file.ends_with("mod.rs") { file.parent().unwrap() } else { &file };
        let name = module.file_stem().unwrap().to_str().unwrap();
        let parent = module.parent().unwrap();
        let lister = if parent == dir { dir.join("main.rs") } else { parent.join("mod.rs") };
        let listed = std::fs::read_to_string(&lister)
            .unwrap()
            .lines()
            .any(|line| line.trim_start_matches("pub(crate) ") == format!("mod {name};"));
        assert!(file == dir.join("main.rs") || listed, "{} does not list `{name}`", lister.display());
    }
}

#[test]
fn modules_with_files_of_their_own_are_folders() {
    let tests = rust_files(&root().join("tests/it"));
    for file in sources().iter().chain(&tests) {
        let folder = file.with_extension("");
        assert!(!folder.is_dir(), "{} belongs into {} as mod.rs", file.display(), folder.display());
    }
}

#[test]
fn every_source_file_says_first_what_it_is_for() {
    for file in sources() {
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("//! "), "{} does not begin with `//! …`", file.display());
    }
}
