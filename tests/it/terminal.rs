//! The program on a terminal: bars that end, lines that stay.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tsuzuki::demo::google_books::{GoogleBooks, volumes};
use tsuzuki::demo::site::{Content, Site};

use crate::blogs::newest;
use crate::test_env::{TestEnv, send_signal};

/// Wider than any line of a run; a bar fills it.
const COLUMNS: usize = 250;

/// Runs a command of the shell in a pseudo-terminal of `COLUMNS`; what it wrote is in the file `typescript`.
fn on_terminal(test_env: &TestEnv, command: &str) -> Command {
    let program = env!("CARGO_BIN_EXE_tsuzuki");
    let shell = format!("stty cols {COLUMNS} rows 40; echo $$ > pid; exec {program} {command}");
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--flush", "--command", &shell, "typescript"]);
    script.current_dir(test_env.path()).env_clear().env("HOME", test_env.path()).env("PATH", "/usr/bin:/bin");
    script.env("TERM", "xterm").env("SHELL", "/bin/sh").env("NO_COLOR", "1");
    script.stdin(Stdio::null()).stdout(Stdio::null());
    script
}

/// What was written, without the lines that `script` adds.
fn written(test_env: &TestEnv) -> String {
    let text = test_env.read("typescript");
    let text = text.split_once('\n').map_or("", |(_, rest)| rest);
    text.rsplit_once("\nScript done on").map_or(text, |(rest, _)| rest).to_owned()
}

/// The screen after `text` was written to it, as far as bars move the cursor.
fn screen(text: &str) -> Vec<String> {
    let (mut lines, mut row, mut column) = (vec![Vec::<char>::new()], 0_usize, 0_usize);
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\n' => row += 1,
            '\r' => column = 0,
            '\u{1b}' => {
                let mut number = String::new();
                let command = rest.by_ref().skip(1).find(|c| {
                    let is_end = c.is_ascii_alphabetic();
                    if !is_end {
                        number.push(*c);
                    }
                    is_end
                });
                let count = number.parse().unwrap_or(1);
                match command {
                    Some('A') => row = row.saturating_sub(count),
                    Some('B') => row += count,
                    Some('K') if number == "2" => lines[row].clear(),
                    Some('K') => lines[row].truncate(column),
                    Some('J') => {
                        lines[row].truncate(column);
                        lines.truncate(row + 1);
                    }
                    Some('m' | 'h' | 'l') => {}
                    other => panic!("a terminal command that this screen does not know: {other:?}"),
                }
            }
            c => {
                if column == COLUMNS {
                    (row, column) = (row + 1, 0);
                    lines.resize(lines.len().max(row + 1), Vec::new());
                }
                let line = &mut lines[row];
                if line.len() <= column {
                    line.resize(column + 1, ' ');
                }
                line[column] = c;
                column += 1;
            }
        }
        if lines.len() <= row {
            lines.resize(row + 1, Vec::new());
        }
    }
    let lines = lines.iter().map(|line| line.iter().collect::<String>().trim_end().to_owned());
    lines.filter(|line| !line.is_empty()).collect()
}

/// All counts that a bar ever showed.
fn counts(text: &str) -> Vec<(u64, u64)> {
    let pairs = text.split_ascii_whitespace().filter_map(|word| word.split_once('/'));
    pairs.filter_map(|(done, total)| Some((done.parse().ok()?, total.parse().ok()?))).collect()
}

async fn blogs_and_books() -> (Vec<Site>, GoogleBooks, String) {
    let mut sites = Vec::new();
    let mut config = String::from(
        "[[job]]\nname = \"sites\"\nkind = \"blogs\"\nevery = \"1m\"\nallow_private = [\"127.0.0.0/8\"]\n",
    );
    for number in 0..3 {
        let site = Site::start(Content::with_articles(3, newest())).await.unwrap();
        config += &format!("[[job.blog]]\nid = \"b{number}\"\nurl = \"{}\"\n", site.url);
        sites.push(site);
    }
    let google = GoogleBooks::start(volumes(0, 160)).await.unwrap();
    config += &format!(
        "[[job]]\nname = \"shelf\"\nkind = \"books\"\nevery = \"1m\"\nqueries = [\"rust\"]\nmax_per_run = 100\n\
         allow_private = [\"127.0.0.0/8\"]\ngoogle_books = {{ api_url = \"{}\", printType = \"books\" }}\n",
        google.url
    );
    (sites, google, config)
}

#[tokio::test]
async fn bars_count_to_their_total_and_leave_every_line_of_a_run() {
    let (_sites, _google, config) = blogs_and_books().await;
    let (watched, unwatched) = (TestEnv::new(&config), TestEnv::new(&config));
    let expected = unwatched.run_beside(&["run-due"]).await;
    let expected = crate::test_env::said(&expected);
    let mut command = on_terminal(&watched, "run-due");
    let status = tokio::task::spawn_blocking(move || command.status().unwrap()).await.unwrap();
    assert!(status.success(), "{}", written(&watched));
    let text = written(&watched);
    let counts = counts(&text);
    assert!(counts.iter().any(|(_, total)| *total == 100), "a bar was drawn: {text:?}");
    assert!(counts.iter().all(|(done, total)| done <= total), "{counts:?}");
    let (mut shown, mut said) = (screen(&text), Vec::from_iter(expected.lines().map(str::to_owned)));
    // Jobs end in any order, and off a terminal lines and messages come separately.
    shown.sort();
    said.sort();
    assert_eq!(shown, said, "{text:?}");
}

#[tokio::test]
async fn a_daemon_draws_no_bars() {
    let (_sites, _google, config) = blogs_and_books().await;
    let test_env = TestEnv::new(&format!("[web]\nlisten = \"127.0.0.1:0\"\n{config}"));
    let mut daemon = on_terminal(&test_env, "serve").spawn().unwrap();
    let start = Instant::now();
    let has_run = |text: &str| text.contains("sites: checked 3 of 3 blogs") && text.contains("shelf: ");
    while !(test_env.file("typescript").exists() && has_run(&written(&test_env))) {
        assert!(start.elapsed() < Duration::from_secs(60), "{}", written(&test_env));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    send_signal(test_env.read("pid").trim().parse().unwrap(), Signal::TERM);
    let status = tokio::task::spawn_blocking(move || daemon.wait().unwrap()).await.unwrap();
    let text = written(&test_env);
    assert!(status.success(), "{text}");
    assert_eq!(counts(&text), [], "{text:?}");
    assert!(!text.contains('\u{1b}'), "nothing moves the cursor: {text:?}");
}
