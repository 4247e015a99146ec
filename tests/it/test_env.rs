//! A directory with a config file in which the real program is run, and its output.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use tsuzuki::config::{self, Config, Env};
use tsuzuki::time::Clock;

use crate::databases::Fixture;

/// The directory; it goes with this value.
pub(crate) struct TestEnv {
    dir: tempfile::TempDir,
    /// The database and the clock of a test that the program shares.
    shared: Option<(String, Clock)>,
}

impl TestEnv {
    /// One without a config.
    pub(crate) fn empty() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), shared: None }
    }

    /// One with this config.
    pub(crate) fn new(config: &str) -> Self {
        let test_env = Self::empty();
        test_env.write("tsuzuki.toml", config);
        test_env
    }

    /// One with this config whose program has the database of `fixture`, and the time of its clock.
    pub(crate) fn on(fixture: &Fixture, config: &str) -> Self {
        Self { shared: Some((fixture.address(), fixture.clock.clone())), ..Self::new(config) }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.file(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap()
    }

    pub(crate) fn config(&self) -> String {
        self.read("tsuzuki.toml")
    }

    /// The names of everything in it.
    pub(crate) fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The program in this directory, without the environment of the tests.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tsuzuki"));
        command
            .current_dir(self.path())
            .args(args)
            .env_clear()
            .env("TZ", "Asia/Tokyo")
            .env("HOME", self.path());
        if let Some((database, clock)) = &self.shared {
            command.env("TSUZUKI_STORE_URL", database).env("TSUZUKI_NOW", clock.now().to_string());
        }
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// The output of the command in this line, split at blanks, which ends with `code`.
    #[track_caller]
    pub(crate) fn ends(&self, line: &str, code: i32) -> String {
        let output = self.run(&line.split(' ').collect::<Vec<_>>());
        let printed = output_text(&output);
        assert_eq!(output.status.code(), Some(code), "{line}: {printed}");
        printed
    }

    /// The output for programs of the command in this line, which succeeds.
    #[track_caller]
    pub(crate) fn json(&self, line: &str) -> serde_json::Value {
        let output = self.run(&line.split(' ').chain(["--json"]).collect::<Vec<_>>());
        assert!(output.status.success(), "{line}: {}", err(&output));
        serde_json::from_slice(&output.stdout).unwrap_or_else(|why| panic!("{line}: {why}: {}", out(&output)))
    }

    /// The same as `run` while the test's servers on the same thread keep answering.
    pub(crate) async fn run_beside(&self, args: &[&str]) -> Output {
        output_beside(self.command(args)).await
    }

    /// The same with another store.
    pub(crate) fn run_on(&self, store: &str, args: &[&str]) -> Output {
        self.command(args).env("TSUZUKI_STORE_URL", store).output().unwrap()
    }

    pub(crate) fn run_with(&self, args: &[&str], input: &str) -> Output {
        let mut command = self.command(args);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }
}

/// Reads a config file, or returns what is wrong with it.
pub(crate) fn read_config(text: &str) -> Config {
    config::parse(text, Path::new("tsuzuki.toml"), tsuzuki::app::kinds(), &Env::of([]))
        .unwrap_or_else(|problems| panic!("{}", problems.render(config::Colour::Never)))
}

/// Runs a command while the test's servers keep answering.
pub(crate) async fn output_beside(mut command: Command) -> Output {
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

pub(crate) fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

pub(crate) fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}

/// What a command printed, on stdout and stderr.
pub(crate) fn output_text(output: &Output) -> String {
    out(output) + &err(output)
}

/// The same, by a command that ended with `code`.
#[track_caller]
pub(crate) fn ends_with(output: &Output, code: i32) -> String {
    let printed = output_text(output);
    assert_eq!(output.status.code(), Some(code), "{printed}");
    printed
}

/// Sends a signal to a process of ours.
pub(crate) fn send_signal(pid: u32, signal: rustix::process::Signal) {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// A process that is killed with this value, at the latest.
pub(crate) struct Daemon(pub(crate) Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A process that is stopped at a fail point; it goes with this value.
pub(crate) struct Stopped(Option<Child>);

impl Stopped {
    /// Starts `command`, which stops itself at `point`, and waits until it has.
    #[allow(clippy::disallowed_methods, reason = "another process stops when it does, by no clock of ours")]
    pub(crate) fn at(point: &str, command: &mut Command) -> Self {
        let child = command.env("TSUZUKI_STOP_AT", point).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = child.spawn().unwrap();
        while process_state(child.id()) != Some('T') {
            assert!(child.try_wait().unwrap().is_none(), "it ended before it stopped at {point}");
            std::thread::sleep(Duration::from_millis(2));
        }
        Self(Some(child))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.as_ref().unwrap().id()
    }

    /// Lets it continue to its end.
    pub(crate) fn wake(mut self) -> Output {
        let child = self.0.take().unwrap();
        send_signal(child.id(), rustix::process::Signal::CONT);
        child.wait_with_output().unwrap()
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn process_state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}
