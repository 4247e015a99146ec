//! The program under test: `demo` or `serve`, in a directory that goes with it.

use std::io::{BufRead as _, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use tempfile::TempDir;

/// The longest time until pages are served.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running program that serves pages.
pub(crate) struct Program {
    child: Child,
    directory: TempDir,
    origin: String,
}

impl Program {
    /// All four pipelines at work in the made-up world.
    pub(crate) fn demo() -> Self {
        let directory = TempDir::new().unwrap();
        Self::start(directory, &["demo", "--keep", "demo"])
    }

    /// `serve` with a config of the test's own.
    pub(crate) fn serve(config: &str) -> Self {
        let directory = TempDir::new().unwrap();
        std::fs::write(directory.path().join("tsuzuki.toml"), config).unwrap();
        Self::start(directory, &["serve"])
    }

    fn start(directory: TempDir, args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tsuzuki"))
            .args(args)
            .current_dir(directory.path())
            .env_remove("TSUZUKI_CONFIG")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = mpsc::channel();
        follow(child.stdout.take().unwrap(), sender.clone());
        follow(child.stderr.take().unwrap(), sender);
        let mut said = Vec::new();
        let origin = loop {
            let line = lines.recv_timeout(PATIENCE).unwrap_or_else(|_| {
                let _ = child.kill();
                panic!("no pages are served: {}", said.join("\n"))
            });
            if let Some(origin) = find_origin(&line) {
                break origin;
            }
            said.push(line);
        };
        Self { child, directory, origin }
    }

    /// Where a page is.
    pub(crate) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.origin)
    }

    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads to the end, so that the program never waits for a full pipe.
fn follow(from: impl Read + Send + 'static, to: mpsc::Sender<String>) {
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            let _ = to.send(line);
        }
    });
}

/// The address of the pages in a line that names it.
fn find_origin(line: &str) -> Option<String> {
    let from = &line[line.find("http://127.0.0.1:")?..];
    let is_in = |c: char| c.is_ascii_alphanumeric() || "/:.".contains(c);
    let end = from.find(|c| !is_in(c)).unwrap_or(from.len());
    let mut parts = from[..end].split('/');
    Some(format!("http://{}", parts.nth(2)?))
}
