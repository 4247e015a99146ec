//! Other processes: one that stalls in the middle of a write, and one that replaces the database.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::test_env::{Daemon, Stopped, TestEnv, ends_with};

/// A config with `count` jobs whose sources cannot be reached.
fn jobs(count: usize) -> String {
    let job = |n| {
        format!(
            "[[job]]\nname = \"b{n}\"\nkind = \"blogs\"\nblog = [{{ id = \"b{n}\", url = \"http://127.0.0.1:9\" }}]\n"
        )
    };
    (0..count).map(job).collect()
}

#[test]
fn a_neighbour_that_stalls_in_a_write_is_waited_for_once_and_named() {
    let test_env = TestEnv::new(&jobs(12));
    test_env.ends("db migrate", 0);
    let patience = Duration::from_secs(3);
    let mut waiting = test_env.command(&["run-due"]);
    waiting.env("TSUZUKI_BUSY_MS", patience.as_millis().to_string());
    let waiting = Stopped::at("run.opened", &mut waiting);
    let stalled = Stopped::at("runner.begun", &mut test_env.command(&["run-due", "--job", "b0"]));

    let began = Instant::now();
    let printed = ends_with(&waiting.wake(), 1);
    let waited = began.elapsed();
    assert!(waited >= patience && waited < patience * 5, "{waited:?}, 12 jobs: {printed}");
    let words = format!("process {} (tsuzuki, stopped) keeps the database locked", stalled.pid());
    assert_eq!(printed.matches(&words).count(), 12, "every job: {printed}");
    stalled.wake();
    let printed = test_env.ends("run-due --force", 1);
    assert!(!printed.contains("locked"), "{printed}");
}

#[test]
fn a_command_that_finds_the_database_locked_says_by_whom() {
    let test_env = TestEnv::new(&jobs(1));
    test_env.ends("db migrate", 0);
    let stalled = Stopped::at("runner.begun", &mut test_env.command(&["run-due"]));
    let mut command = test_env.command(&["job", "pause", "b0"]);
    let printed = ends_with(&command.env("TSUZUKI_BUSY_MS", "300").output().unwrap(), 1);
    assert!(printed.contains(&format!("process {} (tsuzuki, stopped)", stalled.pid())), "{printed}");
}

#[test]
fn serve_ends_with_an_error_when_its_database_is_replaced() {
    let test_env = TestEnv::new(&(jobs(1) + "enabled = false\n[web]\nlisten = \"127.0.0.1:0\"\n"));
    let mut command = test_env.command(&["serve"]);
    let mut daemon = Daemon(command.stderr(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(daemon.0.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("No job starts by itself") {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "it ended early");
    }
    let (file, aside) = (test_env.file("tsuzuki.db"), test_env.file("aside.db"));
    std::fs::rename(&file, &aside).unwrap();
    std::fs::copy(&aside, &file).unwrap();
    let mut printed = String::new();
    lines.read_to_string(&mut printed).unwrap();
    assert_eq!(daemon.0.wait().unwrap().code(), Some(1), "{printed}");
    assert!(printed.contains("was removed or replaced; nothing more is run or sent"), "{printed}");
    assert!(printed.contains("error: ") && !printed.contains("everything is saved"), "{printed}");
}
