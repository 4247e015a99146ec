//! The memory cost of hostile servers, measured in a process that does nothing else.

use std::process::Stdio;

use async_compression::tokio::write::{BrotliEncoder, GzipEncoder, ZstdEncoder};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tsuzuki::fetch::Limits;

use super::server::{fetcher, get};

const GIB: usize = 1 << 30;
const PIECE: usize = 4 << 20;
const MOST_GROWTH_KIB: u64 = 64 * 1024;

/// Sends a gibibyte of zeros in the coding that the path names, or until the client has enough.
async fn serve_zeros(listener: TcpListener) {
    while let Ok((mut stream, _)) = listener.accept().await {
        tokio::spawn(async move {
            let mut head = vec![0; 4096];
            let read = tokio::io::AsyncReadExt::read(&mut stream, &mut head).await.unwrap();
            let head = String::from_utf8_lossy(&head[..read]).into_owned();
            let coding = head.split(['/', ' ']).nth(2).unwrap().to_owned();
            let start = format!("HTTP/1.1 200 OK\r\ncontent-encoding: {coding}\r\n\r\n");
            stream.write_all(start.as_bytes()).await.unwrap();
            let zeros = vec![0; PIECE];
            macro_rules! send {
                ($encoder:expr) => {{
                    let mut encoder = $encoder;
                    for _ in 0..GIB / PIECE {
                        if encoder.write_all(&zeros).await.is_err() || encoder.flush().await.is_err() {
                            return;
                        }
                    }
                    let _ = encoder.shutdown().await;
                }};
            }
            match coding.as_str() {
                "gzip" => send!(GzipEncoder::new(stream)),
                "br" => send!(BrotliEncoder::with_quality(stream, async_compression::Level::Fastest)),
                "zstd" => send!(ZstdEncoder::new(stream)),
                _ => send!(stream),
            }
        });
    }
}

#[tokio::test]
async fn a_gibibyte_of_zeros_costs_little_memory() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(serve_zeros(listener));
    let output = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "fetching::memory::the_process_that_is_measured", "--ignored", "--nocapture"])
        .env("TSUZUKI_TEST_ZEROS", address.to_string())
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    server.abort();
    let printed =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
}

#[tokio::test]
#[ignore = "runs inside a_gibibyte_of_zeros_costs_little_memory, in a process of its own"]
async fn the_process_that_is_measured() {
    let address = std::env::var("TSUZUKI_TEST_ZEROS").unwrap();
    let before = peak_kib();
    // With the usual limits, and with the ratio switched off so that the size has to stop it.
    for ratio in [100, u64::MAX] {
        for coding in ["gzip", "br", "zstd", "identity"] {
            let fetcher = fetcher(Limits { ratio, ..Limits::default() });
            let url = format!("http://{address}/{coding}").parse().unwrap();
            let error = fetcher.fetch(&get(url)).await.unwrap_err();
            let code = error.why_code();
            assert!(["compression_bomb", "body_too_big"].contains(&code), "{coding}: {error:?}");
        }
    }
    let growth = peak_kib() - before;
    assert!(growth < MOST_GROWTH_KIB, "grew by {growth} KiB");
    assert!(growth > 8 * 1024, "16 MiB were read, so {growth} KiB cannot be what was measured");
}

/// The most memory this process ever had.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
