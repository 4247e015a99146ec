//! Shared by the benchmarks: CPU and memory of a process, and running this benchmark as a child process.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "each benchmark uses a part of it; a benchmark may panic, and what it prints is its answer"
)]

pub(crate) mod bulk;

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;

/// The cost of one process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    /// CPU seconds of all its threads.
    pub(crate) cpu: f64,
    /// Seconds on the wall.
    pub(crate) wall: f64,
    /// Peak memory in MiB.
    pub(crate) peak: f64,
}

impl Figures {
    /// The one with less CPU.
    pub(crate) fn better(self, other: Self) -> Self {
        if other.cpu < self.cpu { other } else { self }
    }
}

/// The arguments of the benchmark.
pub(crate) fn args() -> Vec<String> {
    std::env::args().skip(1).filter(|arg| arg != "--bench").collect()
}

/// Runs `work` to its end on two threads.
pub(crate) fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.unwrap().block_on(work)
}

/// Runs `work` in this process and prints its cost, for [`measure`].
pub(crate) fn report(work: impl FnOnce()) {
    let (before, started) = (cpu_secs(), Instant::now());
    work();
    println!("{} {} {}", cpu_secs() - before, started.elapsed().as_secs_f64(), peak_mib());
}

/// Runs `work`, which starts a program and waits for it, and prints the cost, for [`measure`].
pub(crate) fn report_children(work: impl FnOnce()) {
    let started = Instant::now();
    work();
    let wall = started.elapsed().as_secs_f64();
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    let cpu: f64 = [usage.user_time(), usage.system_time()]
        .map(|time| time.num_microseconds() as f64 / 1e6)
        .iter()
        .sum();
    println!("{cpu} {wall} {}", usage.max_rss() as f64 / 1024.0);
}

/// Runs this benchmark with `args` as a child process and parses its report.
pub(crate) fn measure(args: &[&str]) -> Figures {
    let output = itself(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stdout));
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().last().unwrap();
    let figures: Vec<f64> = line.split_whitespace().map(|figure| figure.parse().unwrap()).collect();
    Figures { cpu: figures[0], wall: figures[1], peak: figures[2] }
}

/// A server; stops when dropped.
pub(crate) struct Server {
    child: Child,
    /// The line that it printed when it was ready.
    pub(crate) ready: String,
}

/// Starts this benchmark with `args` as a child process and waits for its first line.
pub(crate) fn serve(args: &[&str]) -> Server {
    let mut child = itself(args).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    Server { child, ready: line.trim().to_owned() }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn itself(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(args).stderr(Stdio::inherit());
    command
}

/// Whether a limit is kept, in words.
pub(crate) fn verdict(holds: bool) -> &'static str {
    if holds { "holds" } else { "DOES NOT HOLD" }
}

/// CPU seconds of this process, all threads, in steps of a hundredth.
pub(crate) fn cpu_secs() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let after_name = stat.rsplit(')').next().unwrap();
    let ticks: u64 =
        after_name.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    ticks as f64 / 100.0
}

/// CPU seconds of this thread, independent of the load of the machine.
pub(crate) fn thread_cpu_secs() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    stat.split_whitespace().next().unwrap().parse::<u64>().unwrap() as f64 / 1e9
}

/// Resets the peak memory of this process for [`peak_mib`].
pub(crate) fn reset_peak() {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
}

/// The peak memory of this process (VmHWM).
pub(crate) fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}
