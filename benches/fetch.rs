//! CPU of one unchanged check: our `Fetcher` against a bare loop with the same HTTP client, in one run.
//!
//! `cargo bench --bench fetch [-- HOSTS]`. Server and clients are processes of their own, so that each figure is of
//! one program alone. "cold": every host is asked once, as an hourly round does. "warm": every host ten times.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "the table is the product; a benchmark may panic"
)]

use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tsuzuki::fetch::{AllowPrivate, FetchConfig, Fetcher, Manners, Request, Response, Validators};
use tsuzuki::time::Clock;

use measure::{Figures, measure, report, run, verdict};

mod measure;

const AT_ONCE: usize = 64;
const TURNS: usize = 3;
const RATIO_LIMIT: f64 = 3.0;

fn main() {
    let args = measure::args();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["serve"] => run(serve()),
        [client @ ("bare" | "fetcher"), port, hosts, rounds] => {
            let (port, hosts, rounds) =
                (port.parse().unwrap(), hosts.parse().unwrap(), rounds.parse().unwrap());
            report(|| match *client {
                "bare" => run(bare(port, hosts, rounds)),
                _ => run(fetcher(port, hosts, rounds)),
            });
        }
        rest => compare(rest.first().map_or(10_000, |hosts| hosts.parse().unwrap())),
    }
}

/// Runs both clients in turn and prints the best turn of each.
fn compare(hosts: usize) {
    let server = measure::serve(&["serve"]);
    println!("one 304, {hosts} hosts, best of {TURNS} turns");
    println!("{:<6} {:<9} {:>8} {:>8} {:>9}", "", "", "CPU µs", "wall µs", "VmHWM MiB");
    for (name, hosts, rounds) in [("cold", hosts, 1), ("warm", hosts / 10, 10)] {
        let mut best: [Option<Figures>; 2] = [None; 2];
        for _ in 0..TURNS {
            for (slot, client) in ["bare", "fetcher"].into_iter().enumerate() {
                let figures = measure(&[client, &server.ready, &hosts.to_string(), &rounds.to_string()]);
                best[slot] = Some(best[slot].map_or(figures, |best| best.better(figures)));
            }
        }
        let best = best.map(Option::unwrap);
        let each = 1e6 / (hosts * rounds) as f64;
        for (client, Figures { cpu, wall, peak }) in ["bare", "fetcher"].into_iter().zip(best) {
            println!("{name:<6} {client:<9} {:>8.1} {:>8.1} {peak:>9.1}", cpu * each, wall * each);
        }
        let ratio = best[1].cpu / best[0].cpu;
        let holds = verdict(ratio <= RATIO_LIMIT);
        println!("{name:<6} {:<9} {ratio:>8.2}   at most {RATIO_LIMIT}: {holds}", "ratio");
    }
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
