//! Many blogs at once: those that never answer delay no others.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tsuzuki::fetch::{FetchConfig, Fetcher, Limits};

use super::{World, config_text};
use crate::databases;

const BLOGS: usize = 1_000;
const TIME_OUT: Duration = Duration::from_secs(10);

/// Answers on loopback addresses with an odd number only; records when it answered.
async fn serve(answered: Arc<Mutex<Vec<Instant>>>) -> u16 {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let answered = Arc::clone(&answered);
            tokio::spawn(async move {
                let mut bytes = [0; 2048];
                let _ = stream.read(&mut bytes).await;
                let std::net::IpAddr::V4(address) = stream.local_addr().unwrap().ip() else { return };
                if address.octets()[3].is_multiple_of(2) {
                    return std::future::pending().await;
                }
                let feed = "<rss version=\"2.0\"><channel><item><guid>1</guid><title>x</title></item></channel></rss>";
                let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length";
                let _ = stream.write_all(format!("{head}: {}\r\n\r\n{feed}", feed.len()).as_bytes()).await;
                answered.lock().unwrap().push(Instant::now());
            });
        }
    });
    port
}

#[test]
fn half_of_a_thousand_blogs_never_answer_and_the_others_are_done_within_one_time_out() {
    databases::run(tsuzuki::db::Dialect::Sqlite, |fixture| async move {
        let answered = Arc::default();
        let port = serve(Arc::clone(&answered)).await;
        let blogs: Vec<String> = (0..BLOGS)
            .map(|number| {
                let at = format!("http://127.1.{}.{}:{port}/", number / 256, number % 256);
                format!("id = \"b{number}\"\nurl = \"{at}\"\nfeed = \"{at}feed\"")
            })
            .collect();
        let mut world = World::new(&fixture, &config_text("", &blogs));
        let limits = Limits { to_headers: TIME_OUT, ..Limits::default() };
        let config = FetchConfig { limits, ..FetchConfig::default() };
        world.env.fetcher = Fetcher::new(config, fixture.clock.clone()).unwrap();

        let started = Instant::now();
        let report = world.run().await;
        let whole = started.elapsed();
        assert!(report.summary.to_string().contains("500 failed"), "{}", report.summary);
        let answered = answered.lock().unwrap();
        assert_eq!(answered.len(), BLOGS / 2);
        let last = answered.iter().max().unwrap().duration_since(started);
        assert!(last < TIME_OUT, "the last of those that answer was read after {last:?}");
        assert!(whole < TIME_OUT * 3, "all hang at the same time, not one after the other: {whole:?}");
    });
}
