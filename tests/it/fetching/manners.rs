//! Politeness on real connections: turns, pauses, probes, and hosts that hang.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Instant, timeout};
use tsuzuki::fetch::{Error, FetchConfig, Fetcher, Limits, Manners, Response};
use tsuzuki::time::{Clock, Timestamp};

use super::server::{Asked, Server, answer, fetcher, fetcher_at, get};

fn polite(at_once_at_host: usize, spacing: Duration, at_once: usize) -> Fetcher {
    let manners = Manners { at_once: at_once_at_host, spacing };
    Fetcher::new(FetchConfig { manners, at_once, ..FetchConfig::default() }, Clock::system()).unwrap()
}

/// Answers all paths except `/hang`.
async fn sometimes_hanging(addr: &str) -> Server {
    Server::start_at(addr, |mut asked: Asked| async move {
        match asked.path.as_str() {
            "/hang" => asked.hang().await,
            _ => {
                tokio::time::sleep(Duration::from_millis(10)).await;
                asked.say(answer(200, "", "page")).await;
            }
        }
    })
    .await
}

#[tokio::test]
async fn a_host_is_asked_two_things_at_once_and_no_more() {
    let server = sometimes_hanging("127.0.0.1:0").await;
    let fetcher = fetcher(Limits::default());
    let requests: Vec<_> = (0..10).map(|n| get(server.url(&format!("/{n}")))).collect();
    let all = join_all(requests.iter().map(|request| fetcher.fetch(request))).await;
    assert!(all.iter().all(Result::is_ok), "{all:?}");
    assert_eq!(server.most_at_once(), 2);
    assert_eq!(server.heads().len(), 10);
}

#[tokio::test]
async fn starts_at_one_host_are_spaced() {
    let server = sometimes_hanging("127.0.0.1:0").await;
    let fetcher = polite(8, Duration::from_millis(40), 100);
    let request = get(server.url("/"));
    let started = Instant::now();
    join_all((0..4).map(|_| fetcher.fetch(&request))).await;
    assert!(started.elapsed() >= Duration::from_millis(120), "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_host_that_asks_for_patience_gets_it_and_is_then_probed() {
    let server = Server::start(|mut asked: Asked| async move {
        let busy = asked.path == "/busy";
        asked.say(if busy { answer(503, "retry-after: 120\r\n", "") } else { answer(200, "", "page") }).await;
    })
    .await;
    let clock = Clock::manual(Timestamp::from_millis(1_800_000_000_000));
    let fetcher = fetcher_at(Limits::default(), clock.clone());
    let error = fetcher.fetch(&get(server.url("/busy"))).await.unwrap_err();
    assert_eq!(error.to_string(), "HTTP 503 from 127.0.0.1, which asks to wait 2 min");

    clock.advance(Duration::from_secs(119));
    let error = fetcher.fetch(&get(server.url("/"))).await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(1)));
    assert_eq!(server.heads().len(), 1, "nobody knocked meanwhile");

    clock.advance(Duration::from_secs(1));
    assert!(fetcher.fetch(&get(server.url("/"))).await.is_ok());
    assert!(fetcher.fetch(&get(server.url("/"))).await.is_ok());
}

#[tokio::test]
async fn those_who_wait_for_a_probe_learn_when_it_fails() {
    let server = Server::with(|_| answer(503, "", "")).await;
    let fetcher = fetcher(Limits::default());
    let requests: Vec<_> = (0..20).map(|n| get(server.url(&format!("/{n}")))).collect();
    let all = join_all(requests.iter().map(|request| fetcher.fetch(request)));
    let all = timeout(Duration::from_secs(20), all).await.expect("nobody waits for ever");
    assert!(all.iter().all(|one| matches!(one, Err(Error::Later { .. }))), "{all:?}");
    assert!(server.heads().len() <= 2, "two were under way, eighteen were told to come later");
}

#[tokio::test]
async fn hanging_hosts_do_not_stop_the_others() {
    let server = sometimes_hanging("0.0.0.0:0").await;
    let port = server.addr.port();
    let fetcher = fetcher(Limits::default());
    let at = |host: usize, path: &str| {
        get(format!("http://127.0.{}.{}:{port}/{path}", host / 250, host % 250 + 1).parse().unwrap())
    };
    let hanging: Vec<_> = (0..300)
        .map(|host| {
            let (fetcher, request) = (fetcher.clone(), at(host, "hang"));
            tokio::spawn(async move { fetcher.fetch(&request).await.is_ok() })
        })
        .collect();
    while server.under_way() < 300 {
        tokio::task::yield_now().await;
    }
    let healthy: Vec<_> = (300..400).map(|host| at(host, "page")).collect();
    let all = timeout(Duration::from_secs(20), join_all(healthy.iter().map(|one| fetcher.fetch(one)))).await;
    assert!(all.expect("they are not held up").iter().all(Result::is_ok));
    assert!(hanging.iter().all(|task| !task.is_finished()));
    hanging.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn a_queue_at_one_host_takes_no_place_from_others() {
    let (stuck, other) = (sometimes_hanging("127.0.0.1:0").await, sometimes_hanging("127.0.0.1:0").await);
    let fetcher = polite(1, Duration::ZERO, 2);
    let queue: Vec<_> = (0..5)
        .map(|_| {
            let (fetcher, request) = (fetcher.clone(), get(stuck.url("/hang")));
            tokio::spawn(async move { fetcher.fetch(&request).await.is_ok() })
        })
        .collect();
    while stuck.under_way() < 1 {
        tokio::task::yield_now().await;
    }
    let response = timeout(Duration::from_secs(20), fetcher.fetch(&get(other.url("/")))).await;
    assert!(matches!(response, Ok(Ok(Response::Fetched(..)))), "{response:?}");

    queue.iter().for_each(tokio::task::JoinHandle::abort);
    let after = timeout(Duration::from_secs(20), fetcher.fetch(&get(stuck.url("/")))).await;
    assert!(matches!(after, Ok(Ok(_))), "dropped requests give their turn back: {after:?}");
}

#[tokio::test]
async fn a_file_appears_only_when_it_is_complete() {
    let server = Server::with(|path| match path {
        "/cut" => b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf".to_vec(),
        "/gone" => answer(410, "", ""),
        _ => answer(200, "etag: \"f\"\r\n", vec![b'x'; 300_000]),
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("paper.pdf");
    let small = Limits { body_bytes: 100_000, ..Limits::default() };
    for (limits, from, code) in [
        (Limits::default(), "/cut", "broken_answer"),
        (Limits::default(), "/gone", "gone"),
        (small, "/", "body_too_big"),
    ] {
        let error = fetcher(limits).fetch_to_file(&get(server.url(from)), &path).await.unwrap_err();
        assert_eq!(error.why_code(), code);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
    }
    let response = fetcher(Limits::default()).fetch_to_file(&get(server.url("/")), &path).await.unwrap();
    assert!(matches!(response, Response::Fetched(_, ref saved) if saved.bytes == 300_000), "{response:?}");
    assert_eq!(std::fs::read(&path).unwrap(), vec![b'x'; 300_000]);
}
