//! The program on a terminal: bars that end, lines that stay.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tsuzuki::demo::google_books::{GoogleBooks, volumes};
use tsuzuki::demo::site::{Content, Site};

use crate::blogs::newest;
use crate::test_env::{TestEnv, send_signal};

/// Wider than any line of a run; a bar fills it.
const COLUMNS: usize = 250;

/// Runs a shell command in a pseudo-terminal of `COLUMNS`; its output is in the file `typescript`.
fn on_terminal(test_env: &TestEnv, command: &str) -> Command {
    on_terminal_of(COLUMNS, test_env, command)
}

/// The same in one of so many columns.
pub(crate) fn on_terminal_of(columns: usize, test_env: &TestEnv, command: &str) -> Command {
    let program = env!("CARGO_BIN_EXE_tsuzuki");
    let shell = format!("stty cols {columns} rows 40; tty > tty; echo $$ > pid; exec {program} {command}");
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--flush", "--command", &shell, "typescript"]);
    script
        .current_dir(test_env.path())
        .env_clear()
        .env("TZ", "Asia/Tokyo")
        .env("HOME", test_env.path())
        .env("PATH", "/usr/bin:/bin");
    script.env("TERM", "xterm").env("SHELL", "/bin/sh").env("NO_COLOR", "1");
    script.stdin(Stdio::null()).stdout(Stdio::null());
    script
}

/// The output, without the lines that `script` adds.
pub(crate) fn written(test_env: &TestEnv) -> String {
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

/// All counts that a bar has shown.
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
    let expected = crate::test_env::output_text(&expected);
    let mut command = on_terminal(&watched, "run-due");
    let status = tokio::task::spawn_blocking(move || command.status().unwrap()).await.unwrap();
    assert!(status.success(), "{}", written(&watched));
    let text = written(&watched);
    let counts = counts(&text);
    assert!(counts.iter().any(|(_, total)| *total == 100), "a bar was drawn: {text:?}");
    assert!(counts.iter().all(|(done, total)| done <= total), "{counts:?}");
    assert!(!text.contains(" 0/s "), "nothing is said of a speed that is not known: {text:?}");
    let (mut shown, mut printed) = (screen(&text), Vec::from_iter(expected.lines().map(str::to_owned)));
    // Jobs end in any order, and without a terminal lines and messages are separate.
    shown.sort();
    printed.sort();
    assert_eq!(shown, printed, "{text:?}");
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

const THREE_JOBS: &str = "[app]\nlanguage = \"en\"\n\
    [channel.the-mail-of-everybody]\nkind = \"email\"\nsmtp = \"memory:\"\nfrom = \"a@example.com\"\nto = [\"b@example.com\"]\n\
    [[job]]\nname = \"the-first-job-of-all\"\nkind = \"blogs\"\nblog = [{ id = \"a\", url = \"http://127.0.0.1:9/\" }]\n\
    [[job]]\nname = \"books-about-everything\"\nkind = \"books\"\nqueries = [\"x\"]\nenabled = false\n\
    [[job]]\nname = \"近所のブログ\"\nkind = \"blogs\"\nblog = [{ id = \"b\", url = \"http://127.0.0.1:9/\" }]\n";

/// The output of a command in a terminal of so many columns, as lines.
fn shown_in(columns: usize, test_env: &TestEnv, command: &str, term: &str) -> Vec<String> {
    let mut script = on_terminal_of(columns, test_env, command);
    script.env_remove("NO_COLOR").env("TERM", term);
    assert!(script.status().unwrap().success(), "{}", written(test_env));
    written(test_env).lines().map(|line| line.trim_end().to_owned()).collect()
}

#[test]
fn tables_fit_the_terminal_and_become_blocks_where_it_is_narrow() {
    let test_env = TestEnv::new(THREE_JOBS);
    // Private addresses are refused, so every job has failed a moment ago.
    test_env.run(&["run-due", "-q"]);
    for command in ["status", "job ls", "blog ls", "channel ls", "doctor --offline", "config show --origins"]
    {
        for columns in [40, 80, 120] {
            let lines = shown_in(columns, &test_env, &format!("{command} -q --color never"), "xterm");
            let table = lines.iter().filter(|line| !line.starts_with("warning"));
            for line in table {
                assert!(tsuzuki::text::width(line) <= columns, "{command} at {columns}: {line}");
            }
        }
    }
    let wide = shown_in(120, &test_env, "status -q --color never", "xterm");
    assert!(wide[0].starts_with("JOB ") && wide[0].contains("LAST SUCCESS"), "{wide:?}");
    assert!(
        wide[1].contains(" now ") || wide[1].contains(" s ago") || wide[1].contains(" min ago"),
        "{wide:?}"
    );
    let narrow = shown_in(40, &test_env, "status -q --color never", "xterm");
    assert_eq!(narrow[0], "the-first-job-of-all", "{narrow:?}");
    assert!(narrow.iter().any(|line| line.starts_with("  state         ▲ Failing")), "{narrow:?}");
    // In a pipe there is the moment itself.
    let piped = String::from_utf8(test_env.run(&["status", "-q"]).stdout).unwrap();
    assert!(piped.contains("LAST RUN (Asia/Tokyo)") && !piped.contains(" ago"), "{piped}");
}

#[test]
fn the_doctor_is_read_whole_on_every_terminal() {
    let test_env = TestEnv::new(THREE_JOBS);
    let piped = String::from_utf8(test_env.run(&["doctor", "--offline"]).stdout).unwrap();
    let without_blanks = |text: &str| text.split_whitespace().collect::<String>();
    let details = piped.lines().skip(1).map(|line| without_blanks(line.rsplit("  ").next().unwrap()));
    let details: Vec<String> = details.collect();
    for columns in [40, 80, 120] {
        let lines = shown_in(columns, &test_env, "doctor --offline --color never", "xterm");
        let shown = without_blanks(&lines.join(" "));
        for detail in &details {
            assert!(shown.contains(detail.as_str()), "{detail} at {columns}: {lines:#?}");
        }
        assert!(
            lines.iter().all(|line| tsuzuki::text::width(line) <= columns && !line.contains('…')),
            "{lines:#?}"
        );
    }
}

#[test]
fn help_fits_the_terminal_in_both_languages() {
    let test_env = TestEnv::empty();
    for (lang, heading) in [("en", "Start here:"), ("ja", "はじめに:")] {
        for columns in [40, 80, 120] {
            let lines = shown_in(columns, &test_env, &format!("--help --lang {lang}"), "dumb");
            for line in &lines {
                assert!(tsuzuki::text::width(line) <= columns, "{lang} at {columns}: {line}");
            }
            assert!(lines.iter().any(|line| line == heading), "{lines:#?}");
            // Continued lines are indented below the description of commands.
            let doctor = lines.iter().position(|line| line.starts_with("  doctor ")).unwrap();
            let goes_on = lines[doctor + 1].strip_prefix(&" ".repeat(15)).is_some();
            assert!(goes_on || columns > 40, "{lines:#?}");
        }
    }
}

#[test]
fn runs_of_commits_fit_eighty_columns() {
    let test_env = TestEnv::empty();
    assert!(test_env.run(&["demo", "--once", "-q", "--keep", "kept"]).status.success());
    for command in ["bulk ls", "bulk show", "bulk status", "commits ls --limit 3"] {
        let command = format!("-c kept/tsuzuki.toml {command}");
        let lines = shown_in(80, &test_env, &format!("{command} --color never"), "xterm");
        assert!(lines.iter().all(|line| tsuzuki::text::width(line) <= 80), "{lines:#?}");
        assert!(!lines.iter().any(|line| line.starts_with("  ")), "a row is a line: {lines:#?}");
    }
}

#[test]
fn stories_break_between_words_and_go_on_behind_their_labels() {
    let test_env = TestEnv::new(THREE_JOBS);
    test_env.run(&["run-due", "-q"]);
    for columns in [40, 80, 120] {
        for command in ["why the-first-job-of-all", "job show the-first-job-of-all", "demo --once"] {
            let lines = shown_in(columns, &test_env, &format!("{command} --color never"), "xterm");
            let prose = lines.iter().filter(|line| !line.trim_start().starts_with("tsuzuki "));
            for line in prose.filter(|line| !line.contains("/tmp/") && !line.contains("://")) {
                assert!(tsuzuki::text::width(line) <= columns, "{command} at {columns}: {line}");
            }
        }
    }
    let lines = shown_in(80, &test_env, "demo --once", "xterm");
    let books = lines.iter().position(|line| line.starts_with("books    40 volumes")).unwrap();
    assert!(lines[books + 1].starts_with("         "), "{lines:#?}");
}

#[test]
fn states_have_colours_and_a_dumb_terminal_gets_no_commands() {
    let test_env = TestEnv::new(THREE_JOBS);
    test_env.run(&["run-due", "-q"]);
    let coloured = shown_in(120, &test_env, "status -q", "xterm").join("\n");
    assert!(coloured.contains("\u{1b}[31m▲ Failing"), "{coloured:?}");
    let plain = shown_in(120, &test_env, "status -q", "dumb").join("\n");
    assert!(plain.contains("▲ Failing") && !plain.contains('\u{1b}'), "{plain:?}");
}

async fn wait_until_written(test_env: &TestEnv, words: &str) {
    wait_until(test_env, |text| text.contains(words)).await;
}

async fn wait_until(test_env: &TestEnv, is_meant: impl Fn(&str) -> bool) {
    let start = Instant::now();
    while !(test_env.file("typescript").exists() && is_meant(&written(test_env))) {
        assert!(start.elapsed() < Duration::from_secs(30), "{}", written(test_env));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn watching_redraws_in_place_and_follows_a_new_size() {
    let test_env = TestEnv::new(THREE_JOBS);
    test_env.run(&["run-due", "-q"]);
    let mut watching = on_terminal_of(120, &test_env, "status --watch").spawn().unwrap();
    wait_until(&test_env, |text| text.contains("LAST SUCCESS") && text.contains("\u{1b}[J")).await;
    let before = written(&test_env);
    assert!(before.starts_with("\u{1b}[H"), "{before:?}");
    assert!(!before.contains("a taller window"), "{before:?}");
    let tty = test_env.read("tty");
    assert!(Command::new("stty").args(["cols", "40", "-F", tty.trim()]).status().unwrap().success());
    wait_until_written(&test_env, "\u{1b}[Hthe-first-job-of-all").await;
    // Rows that need a person stay, and the table says that there is more.
    assert!(
        Command::new("stty").args(["cols", "120", "rows", "6", "-F", tty.trim()]).status().unwrap().success()
    );
    wait_until(&test_env, |text| {
        let screen = text.rsplit("\u{1b}[H").next().unwrap();
        let has_all = ["more; a taller window shows them", "tsuzuki why", "\u{1b}[J"]
            .iter()
            .all(|words| screen.contains(words));
        has_all && screen.matches("\r\n").count() == 5
    })
    .await;
    send_signal(test_env.read("pid").trim().parse().unwrap(), Signal::INT);
    assert!(watching.wait().unwrap().success(), "{}", written(&test_env));
}

#[tokio::test]
async fn watching_on_a_dumb_terminal_moves_no_cursor() {
    let test_env = TestEnv::new(THREE_JOBS);
    let mut watching = on_terminal_of(120, &test_env, "status --watch").env("TERM", "dumb").spawn().unwrap();
    wait_until_written(&test_env, "LAST SUCCESS").await;
    send_signal(test_env.read("pid").trim().parse().unwrap(), Signal::INT);
    assert!(watching.wait().unwrap().success());
    assert!(!written(&test_env).contains('\u{1b}'), "{}", written(&test_env));
}

#[tokio::test]
async fn init_asks_on_a_terminal_and_writes_a_file_that_passes_the_check() {
    let test_env = TestEnv::empty();
    let mut asking = on_terminal(&test_env, "init").stdin(Stdio::piped()).spawn().unwrap();
    let mut answers = asking.stdin.take().unwrap();
    for (question, answer) in [
        ("What do you want to watch?", "blog"),
        ("the address of a blog", ""),
        ("It cannot do without.", "a blog"),
        // Said at once, not after the next question.
        ("`a blog` names no blog: write https://", "blog.invalid"),
        ("Number or word (Enter for none)", "9"),
        // Two have these letters.
        ("That is none of them.", "a"),
        ("That is none of them.", "slack"),
        ("(Enter for SLACK_WEBHOOK_URL)", ""),
    ] {
        wait_until_written(&test_env, question).await;
        writeln!(answers, "{answer}").unwrap();
    }
    let status = asking.wait().unwrap();
    let text = written(&test_env);
    assert!(status.success(), "{text}");
    assert!(text.contains("SLACK_WEBHOOK_URL is not set"), "{text}");
    assert!(text.contains("Next: `tsuzuki doctor`"), "{text}");
    let config = test_env.config();
    for words in
        ["kind = \"slack\"\nurl = \"${SLACK_WEBHOOK_URL}\"", "deliver = [\"slack\"]", "https://blog.invalid"]
    {
        assert!(config.contains(words), "{words}: {config}");
    }
    test_env.ends("check", 0);
}

#[tokio::test]
async fn ctrl_c_at_a_question_of_init_leaves_no_file_that_is_in_the_way_of_the_next_one() {
    let test_env = TestEnv::empty();
    let mut asking = on_terminal(&test_env, "init").stdin(Stdio::piped()).spawn().unwrap();
    let mut answers = asking.stdin.take().unwrap();
    wait_until_written(&test_env, "What do you want to watch?").await;
    writeln!(answers, "blogs").unwrap();
    wait_until_written(&test_env, "the address of a blog").await;
    assert!(test_env.file("tsuzuki.toml").exists());
    send_signal(test_env.read("pid").trim().parse().unwrap(), Signal::INT);
    assert_eq!(asking.wait().unwrap().code(), Some(130), "{}", written(&test_env));
    assert!(!test_env.file("tsuzuki.toml").exists());
}

#[tokio::test]
async fn init_asks_in_japanese_too_and_again_where_an_answer_would_not_work() {
    let test_env = TestEnv::empty();
    // The file that this variable names is not the one that is written.
    let mut asking = on_terminal(&test_env, "init --lang ja");
    let mut asking = asking.env("TSUZUKI_CONFIG", "/nowhere.toml").stdin(Stdio::piped()).spawn().unwrap();
    let mut answers = asking.stdin.take().unwrap();
    for (question, answer) in [
        ("何を監視しますか？", "press"),
        ("どのモデルを使いますか？", "gemini"),
        ("（Enter で GEMINI_API_KEY）", ""),
        ("フィードの URL", "http://feed.invalid/rss"),
        ("使用するモデル", ""),
        ("新着をどこに送りますか？", "mastodon"),
        ("アカウントのあるサーバー", "nonsense"),
        ("（Enter で MASTODON_TOKEN）", ""),
        ("`nonsense`", "https://mastodon.invalid/"),
        ("\n", ""),
    ] {
        wait_until_written(&test_env, question).await;
        writeln!(answers, "{answer}").unwrap();
    }
    let status = asking.wait().unwrap();
    let text = written(&test_env);
    assert!(status.success(), "{text}");
    assert!(text.contains("tsuzuki.toml を作成しました。次は `tsuzuki doctor`"), "{text}");
    let config = test_env.config();
    for words in [
        "[llm.gemini]\nkind = \"gemini\"\napi_key = \"${GEMINI_API_KEY}\"\n",
        "instance = \"https://mastodon.invalid/\"\ntoken = \"${MASTODON_TOKEN}\"\n",
        "deliver = [\"mastodon\"]",
    ] {
        assert!(config.contains(words), "{words}: {config}");
    }
}
