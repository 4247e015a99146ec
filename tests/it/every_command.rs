//! Checks of every command of the tree: `--since`, ids that `why` finds, wrong words, and names for shell completion.

use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use crate::channel_command::completed;
use crate::test_env::{TestEnv, ends_with};

/// A command, its description, and the options and arguments in the reference.
struct Page {
    path: String,
    about: String,
    rows: Vec<String>,
}

fn list_pages() -> Vec<Page> {
    let reference = crate::reference::command_line();
    let sections = reference.split("\n## `tsuzuki ").skip(1);
    let pages = sections.map(|section| {
        let (path, rest) = section.split_once("`\n").unwrap();
        let rows = rest.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        Page {
            path: path.to_owned(),
            about: rest.lines().find(|line| !line.is_empty()).unwrap().to_owned(),
            rows: rows.map(str::to_owned).collect(),
        }
    });
    pages.collect()
}

/// A directory in which every listing has something to show.
fn demo() -> (TestEnv, PathBuf) {
    let test_env = TestEnv::empty();
    ends_with(&test_env.run(&["demo", "--once", "-q", "--keep", "kept"]), 0);
    let kept = test_env.file("kept");
    let mut command = test_env.command(&["token", "create", "--name", "reader", "--scope", "read"]);
    ends_with(&command.current_dir(&kept).output().unwrap(), 0);
    (test_env, kept)
}

/// An argument from the demo's listings; without one, the present time.
fn list(test_env: &TestEnv, kept: &Path, listing: &str, more: &[&str], now: Option<&str>) -> Vec<Json> {
    let words: Vec<&str> = listing.split(' ').chain(more.iter().copied()).chain(["--json"]).collect();
    let mut command = test_env.command(&words);
    if let Some(now) = now {
        command.env("TSUZUKI_NOW", now);
    }
    let output = command.current_dir(kept).output().unwrap();
    ends_with(&output, 0);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{words:?}: {error}"))
}

#[test]
fn whatever_lists_by_time_begins_where_since_says() {
    let (test_env, kept) = demo();
    let mut seen = 0;
    for Page { path, about, rows } in list_pages() {
        if !path.ends_with(" ls") || !["newest", "found last"].iter().any(|words| about.contains(words)) {
            continue;
        }
        assert!(rows.iter().any(|row| row == "--since TIME"), "`{path}` has no --since: {about}");
        let since = |now| list(&test_env, &kept, &path, &["--since", "7d"], now);
        assert!(!since(None).is_empty(), "`{path}` has something of these days");
        assert_eq!(since(Some("2100-01-01T00:00:00Z")), Vec::<Json>::new(), "`{path}`");
        seen += 1;
    }
    assert!(seen >= 7, "only {seen} listings go by time");
}

/// Every listing, the id of its rows, and the kind of thing that `why` finds by it.
const NAMED: &[(&str, &[&str], &str)] = &[
    ("status", &["job_name"], "job"),
    ("job ls", &["job_name"], "job"),
    ("job cursor show", &["job_name"], "job"),
    ("mail status", &["job_name"], "job"),
    ("blog ls", &["blog_id"], "blog"),
    ("change ls", &["id"], "change"),
    ("item ls", &["id"], "item"),
    ("item ls", &["url"], "item"),
    ("book ls", &["isbn13"], "book"),
    ("delivery ls", &["id"], "delivery"),
    ("channel ls", &["channel"], "channel"),
    ("quota ls", &["provider"], "provider"),
    ("project ls", &["path"], "project"),
    ("branch ls", &["project", "branch_name"], "branch"),
    ("bulk ls", &["run_id"], "run"),
    ("commits ls", &["sha"], "commit"),
    ("token ls", &["name"], "token"),
    ("token ls", &["token"], "token"),
];

#[test]
fn why_knows_every_id_that_a_listing_shows() {
    let (test_env, kept) = demo();
    for page in list_pages().iter().filter(|page| page.path.ends_with(" ls")) {
        assert!(
            NAMED.iter().any(|(listing, ..)| *listing == page.path),
            "what names a row of `{}`?",
            page.path
        );
    }
    for (listing, keys, kind) in NAMED {
        let mut asked = 0;
        for row in list(&test_env, &kept, listing, &[], None).iter().rev() {
            let words: Option<Vec<String>> = keys.iter().map(|key| row.get(*key).map(plain)).collect();
            // Tokens of programs have a name, links to prompts the beginning of their token.
            let Some(mut words) = words.filter(|_| asked < 3) else { continue };
            if *kind == "commit" {
                words[0].truncate(10);
            }
            let args: Vec<&str> =
                std::iter::once("why").chain(words.iter().map(String::as_str)).chain(["--json"]).collect();
            let output = test_env.command(&args).current_dir(&kept).output().unwrap();
            ends_with(&output, 0);
            let views: Vec<Json> = serde_json::from_slice(&output.stdout).unwrap();
            assert!(views.iter().any(|view| view.get(kind).is_some()), "{listing}: {args:?}: {views:?}");
            asked += 1;
        }
        assert!(asked > 0, "{listing} has nothing with {keys:?}");
    }
}

fn plain(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[test]
fn list_means_ls_delete_means_rm_and_version_is_a_command() {
    let test_env = TestEnv::new(NAMES);
    let run = |words: &str| ends_with(&test_env.run(&words.split(' ').collect::<Vec<_>>()), 0);
    let mut seen = 0;
    for Page { path, .. } in list_pages() {
        let Some((noun, last)) = path.rsplit_once(' ') else { continue };
        let Some((_, other)) = [("ls", "list"), ("rm", "delete")].into_iter().find(|(word, _)| *word == last)
        else {
            continue;
        };
        assert_eq!(run(&format!("{noun} {other} --help")), run(&format!("{path} --help")), "{path}");
        seen += 1;
    }
    assert!(seen > 12, "{seen}");
    assert!(run("blog list --json").contains("diary"));
    assert_eq!(run("version"), run("--version"));
}

/// Which names a shell is to offer for an argument or option, if any.
fn list_names_for(path: &str, row: &str) -> &'static [&'static str] {
    let noun = path.split(' ').next().unwrap();
    match (noun, row) {
        (_, "--job NAME" | "JOB") => &["news"],
        (_, "--channel NAME" | "--deliver CHANNEL") => &["post-box"],
        ("job" | "run" | "status", "NAME") => &["news"],
        ("channel", "NAME") => &["post-box"],
        ("blog", "ID") | (_, "BLOG") => &["diary"],
        (_, "PROVIDER") => &["google_books"],
        ("why", "THING") => &["news", "post-box", "diary", "google_books"],
        _ => &[],
    }
}

const NAMES: &str = "[channel.post-box]\nkind = \"slack\"\nurl = \"${X}\"\n[quota.google_books]\nper_day = 5\n\
    [[job]]\nname = \"news\"\nkind = \"blogs\"\ndeliver = [\"post-box\"]\n\
    blog = [{ id = \"diary\", url = \"https://diary.example\" }]\n";

#[test]
fn shells_complete_the_names_of_jobs_blogs_channels_and_providers_wherever_one_is_wanted() {
    let test_env = TestEnv::new(NAMES);
    let mut seen = 0;
    for Page { path, rows, .. } in list_pages() {
        for row in rows {
            let option = row.split(' ').next().filter(|word| word.starts_with("--"));
            let words: Vec<&str> = path.split(' ').chain(option).chain([""]).collect();
            for name in list_names_for(&path, &row) {
                let answers = completed(&test_env, &words);
                assert!(answers.iter().any(|answer| answer == name), "{words:?}: {answers:?}");
                seen += 1;
            }
        }
    }
    assert!(seen > 40, "{seen}");
    // Another file has other names.
    test_env.write("other.toml", &NAMES.replace("diary", "journal"));
    let answers = completed(&test_env, &["-c", "other.toml", "blog", "show", ""]);
    assert!(answers.contains(&"journal".to_owned()), "{answers:?}");
}
