//! Golden pairs of documents and what `inspect` reads from them: `NAME.html` beside `NAME.json`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn fixtures(folder: &str) -> Vec<(PathBuf, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(folder);
    let mut pairs: Vec<(PathBuf, Value)> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension != "json"))
        .map(|path| {
            let golden = fs::read_to_string(path.with_extension("json"))
                .unwrap_or_else(|error| panic!("{} has no golden file: {error}", path.display()));
            (path, serde_json::from_str(&golden).unwrap())
        })
        .collect();
    pairs.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(!pairs.is_empty(), "{} is empty", folder.display());
    pairs
}

/// What the program parses from a file.
fn inspect(kind: &str, file: &Path, options: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tsuzuki"));
    let output = command.args(["inspect", kind]).arg(file).args(options).output().unwrap();
    assert!(output.status.success(), "{}: {output:?}", file.display());
    serde_json::from_slice(&output.stdout).unwrap()
}

fn check(kind: &str, folder: &str, url: &str) {
    for (path, golden) in fixtures(folder) {
        let read = inspect(kind, &path, &["--url", url]);
        assert_eq!(read, golden, "{}\n{}", path.display(), serde_json::to_string_pretty(&read).unwrap());
    }
}

#[test]
fn pages_are_read_as_their_golden_files_say() {
    check("page", "pages", "https://www.example.jp/menu_news/index.html");
}

#[test]
fn sitemaps_are_read_as_their_golden_files_say() {
    check("sitemap", "sitemaps", "https://blog.example/sitemap.xml");
}

#[test]
fn lists_of_feeds_are_read_as_their_golden_files_say() {
    check("opml", "opml", "https://example.com/");
}

#[test]
fn robots_are_obeyed_as_their_golden_files_say() {
    for (path, golden) in fixtures("robots") {
        for case in golden.as_array().unwrap() {
            let (agent, url) = (case["user_agent"].as_str().unwrap(), case["url"].as_str().unwrap());
            let read = inspect("robots", &path, &["--user-agent", agent, "--url", url]);
            assert_eq!(read["allowed"], case["allowed"], "{case}");
            assert_eq!(read["crawl_delay"], case["crawl_delay"], "{case}");
            assert_eq!(read["sitemaps"][1], "https://example.com/news.xml");
        }
    }
}
