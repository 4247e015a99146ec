//! `--json` on every command of the tree: whatever goes to stdout is JSON.

use std::path::Path;
use std::process::Output;

/// Commands whose output is a format of its own, and those that do not end or wait long for a GitLab that is gone.
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

/// What commands need besides `--json`; those that are not named need nothing.
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

fn leaves(command: &clap::Command, above: &str, found: &mut Vec<String>) {
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        let path = format!("{above} {}", sub.get_name()).trim().to_owned();
        if sub.has_subcommands() { leaves(sub, &path, found) } else { found.push(path) }
    }
}

fn run(dir: &Path, args: &[&str]) -> Output {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tsuzuki"));
    command.current_dir(dir).env_clear().env("HOME", dir).args(args).output().unwrap()
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
    let mut commands = Vec::new();
    leaves(&tsuzuki::cli::tree(), "", &mut commands);
    for (known, _) in ARGUMENTS {
        assert!(commands.iter().any(|command| command == known), "there is no command `{known}`");
    }
    // What empties the database comes last.
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
        "job cursor reset",
        "doctor",
        "status",
    ] {
        assert!(spoken.contains(&command), "`{command} --json` prints nothing; only these do: {spoken:?}");
    }
}
