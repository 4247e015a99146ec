//! CPU of one unchanged check: our `Fetcher` against a bare loop with the same HTTP client, in one run.
//!
//! `cargo bench --bench fetch [-- HOSTS]`. Server and clients are processes of their own, so that each figure is of
//! one program alone. "cold": every host is asked once, as an hourly round does. "warm": every host ten times.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "the table is the product; a benchmark may panic"
)]

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tsuzuki::fetch::{AllowPrivate, FetchConfig, Fetcher, Manners, Request, Response, Validators};
use tsuzuki::time::Clock;

const AT_ONCE: usize = 64;
const TURNS: usize = 3;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["serve"] => run(serve()),
        [client @ ("bare" | "fetcher"), port, hosts, rounds] => {
            let (port, hosts, rounds) =
                (port.parse().unwrap(), hosts.parse().unwrap(), rounds.parse().unwrap());
            let started = Instant::now();
            match *client {
                "bare" => run(bare(port, hosts, rounds)),
                _ => run(fetcher(port, hosts, rounds)),
            }
            let each = (hosts * rounds) as f64;
            let wall = started.elapsed().as_secs_f64();
            println!("{} {} {}", cpu_secs() * 1e6 / each, wall * 1e6 / each, peak_mib());
        }
        rest => compare(rest.first().map_or(10_000, |hosts| hosts.parse().unwrap())),
    }
}

fn run(work: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(work);
}

/// Runs both clients in turn and prints the best turn of each.
fn compare(hosts: usize) {
    let (mut server, port) = start_server();
    println!("one 304, {hosts} hosts, best of {TURNS} turns");
    println!("{:<6} {:<9} {:>8} {:>8} {:>9}", "", "", "CPU µs", "wall µs", "VmHWM MiB");
    for (name, hosts, rounds) in [("cold", hosts, 1), ("warm", hosts / 10, 10)] {
        let mut best = [[f64::INFINITY; 3]; 2];
        for _ in 0..TURNS {
            for (slot, client) in ["bare", "fetcher"].into_iter().enumerate() {
                let figures = measure(client, port, hosts, rounds);
                if figures[0] < best[slot][0] {
                    best[slot] = figures;
                }
            }
        }
        for (client, [cpu, wall, peak]) in ["bare", "fetcher"].into_iter().zip(best) {
            println!("{name:<6} {client:<9} {cpu:>8.1} {wall:>8.1} {peak:>9.1}");
        }
        println!("{name:<6} {:<9} {:>8.2}", "ratio", best[1][0] / best[0][0]);
    }
    server.kill().unwrap();
    server.wait().unwrap();
}

fn start_server() -> (Child, u16) {
    let mut server = itself(&["serve"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    (server, line.trim().parse().unwrap())
}

fn measure(client: &str, port: u16, hosts: usize, rounds: usize) -> [f64; 3] {
    let output =
        itself(&[client, &port.to_string(), &hosts.to_string(), &rounds.to_string()]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let figures: Vec<f64> = text.split_whitespace().map(|figure| figure.parse().unwrap()).collect();
    figures.try_into().unwrap()
}

fn itself(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(args).stderr(Stdio::inherit());
    command
}

/// Answers 304 to everything, on every loopback address.
async fn serve() {
    let listener = tokio::net::TcpListener::bind("0.0.0.0:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap().port());
    loop {
        let Ok((mut stream, _)) = listener.accept().await else { continue };
        tokio::spawn(async move {
            let mut bytes = [0; 4096];
            while stream.read(&mut bytes).await.is_ok_and(|read| read > 0) {
                let answer = b"HTTP/1.1 304 Not Modified\r\netag: \"v1\"\r\ndate: Sun, 15 Nov 2026 12:00:00 GMT\r\n\r\n";
                if stream.write_all(answer).await.is_err() {
                    return;
                }
            }
        });
    }
}

fn host_url(host: usize, port: u16) -> url::Url {
    let host = host + 257;
    format!("http://127.{}.{}.{}:{port}/feed.xml", host >> 16, host >> 8 & 255, host & 255).parse().unwrap()
}

#[allow(clippy::disallowed_methods, reason = "the bare client is what we are compared with")]
async fn bare(port: u16, hosts: usize, rounds: usize) {
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(bare_tls())
        .redirect(reqwest::redirect::Policy::none())
        .timeout(Duration::from_secs(60))
        .no_proxy()
        .build()
        .unwrap();
    for _ in 0..rounds {
        let answered = stream::iter(0..hosts).map(|host| {
            let request = client.get(host_url(host, port)).header("if-none-match", "\"v1\"");
            async move { request.send().await.unwrap().status().as_u16() }
        });
        let count =
            answered.buffer_unordered(AT_ONCE).filter(|status| std::future::ready(*status == 304)).count();
        assert_eq!(count.await, hosts);
    }
}

fn bare_tls() -> rustls::ClientConfig {
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

async fn fetcher(port: u16, hosts: usize, rounds: usize) {
    let manners = Manners { spacing: Duration::ZERO, ..Manners::default() };
    let fetcher = Fetcher::new(FetchConfig { manners, ..FetchConfig::default() }, Clock::system()).unwrap();
    let allow = AllowPrivate::parse(&["127.0.0.0/8"]).unwrap();
    for _ in 0..rounds {
        let answered = stream::iter(0..hosts).map(|host| {
            let url = host_url(host, port);
            let known =
                Validators { etag: Some("\"v1\"".to_owned()), last_modified: None, url: Some(url.clone()) };
            let request = Request::get(url).validators(&known).allow_private(&allow);
            let fetcher = &fetcher;
            async move { matches!(fetcher.fetch(&request).await.unwrap(), Response::Unchanged(_)) }
        });
        let count = answered.buffer_unordered(AT_ONCE).filter(|same| std::future::ready(*same)).count();
        assert_eq!(count.await, hosts);
    }
}

fn cpu_secs() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let after_name = stat.rsplit(')').next().unwrap();
    let ticks: u64 =
        after_name.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    ticks as f64 / 100.0
}

fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}
