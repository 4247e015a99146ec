//! Servers that try to exhaust memory, hang or confuse the client: each ends in a typed error.

use std::time::Duration;

use tsuzuki::fetch::limits::{Pace, Size};
use tsuzuki::fetch::{Error, Limits};

use super::server::{Asked, Server, answer, fetch, fetcher, get, redirect};

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[tokio::test]
async fn an_endless_body_is_cut_at_the_limit() {
    let server = Server::start(|mut asked: Asked| async move {
        asked.say("HTTP/1.1 200 OK\r\n\r\n").await;
        while asked.say([b'x'; 8192]).await {}
    })
    .await;
    let limits = Limits { body_bytes: 1 << 20, ..Limits::default() };
    let error = fetcher(limits).fetch(&get(server.url("/"))).await.unwrap_err();
    assert!(matches!(error, Error::TooBig { limit: Size::Body(0x10_0000) }), "{error:?}");
    assert_eq!(error.to_string(), "too big: the body is larger than 1 MiB");
}

#[tokio::test]
async fn a_body_that_is_announced_too_large_is_not_read() {
    let server = Server::start(|mut asked: Asked| async move {
        asked.say("HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n").await;
        asked.hang().await;
    })
    .await;
    let error = fetch(server.url("/")).await.unwrap_err();
    assert!(matches!(error, Error::TooBig { limit: Size::Body(_) }), "{error:?}");
}

#[tokio::test]
async fn a_dripping_body_is_too_slow() {
    let server = Server::start(|mut asked: Asked| async move {
        asked.say("HTTP/1.1 200 OK\r\n\r\n").await;
        while asked.say("x").await {
            tokio::time::sleep(millis(20)).await;
        }
    })
    .await;
    let limits = Limits { speed_window: millis(150), ..Limits::default() };
    let error = fetcher(limits).fetch(&get(server.url("/"))).await.unwrap_err();
    assert!(matches!(error, Error::TooSlow { limit: Pace::Speed(1024) }), "{error:?}");
    assert!(error.is_retryable());
}

#[tokio::test]
async fn a_dripping_compressed_body_is_too_slow_even_if_nothing_comes_out_of_it() {
    let server = Server::start(|mut asked: Asked| async move {
        asked.say("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n\x1f").await;
        asked.hang().await;
    })
    .await;
    let limits = Limits { speed_window: millis(100), ..Limits::default() };
    let error = fetcher(limits).fetch(&get(server.url("/"))).await.unwrap_err();
    assert!(matches!(error, Error::TooSlow { limit: Pace::Speed(_) }), "{error:?}");
}

#[tokio::test]
async fn a_steady_body_that_takes_for_ever_runs_out_of_time() {
    let server = Server::start(|mut asked: Asked| async move {
        asked.say("HTTP/1.1 200 OK\r\n\r\n").await;
        while asked.say([b'x'; 1024]).await {
            tokio::time::sleep(millis(5)).await;
        }
    })
    .await;
    let limits = Limits { in_all: millis(200), speed_window: millis(50), ..Limits::default() };
    let error = fetcher(limits).fetch(&get(server.url("/"))).await.unwrap_err();
    assert!(matches!(error, Error::TooSlow { limit: Pace::InAll(_) }), "{error:?}");
}

#[tokio::test]
async fn headers_that_do_not_come_are_not_waited_for() {
    let silent = Server::start(|mut asked: Asked| async move { asked.hang().await }).await;
    let dripping = Server::start(|mut asked: Asked| async move {
        asked.say("HTTP/1.1 200 OK\r\nx: ").await;
        while asked.say("x").await {
            tokio::time::sleep(millis(10)).await;
        }
    })
    .await;
    let hinting = Server::start(|mut asked: Asked| async move {
        while asked.say("HTTP/1.1 103 Early Hints\r\nlink: </x>; rel=preload\r\n\r\n").await {
            tokio::time::sleep(millis(1)).await;
        }
    })
    .await;
    let fetcher = fetcher(Limits { to_headers: millis(100), ..Limits::default() });
    for server in [silent, dripping, hinting] {
        let error = fetcher.fetch(&get(server.url("/"))).await.unwrap_err();
        assert!(matches!(error, Error::TooSlow { limit: Pace::Headers(_) }), "{error:?}");
        assert_eq!(error.to_string(), "too slow: no answer within 100 ms");
    }
}

#[tokio::test]
async fn a_mebibyte_of_headers_is_too_big_in_any_shape() {
    let server = Server::start(|mut asked: Asked| async move {
        let headers = match asked.path.as_str() {
            "/one" => format!("x: {}\r\n", "y".repeat(1 << 20)),
            "/many" => "x: y\r\n".repeat((1 << 20) / 6),
            "/medium" => format!("x: {}\r\n", "y".repeat(100 * 1024)),
            "/some" => format!("x: {}\r\n", "y".repeat(1024)).repeat(70),
            _ => format!("x: {}\r\n", "y".repeat(60 * 1024)),
        };
        asked.say(answer(200, &headers, "body")).await;
    })
    .await;
    for path in ["/one", "/many", "/medium", "/some"] {
        let error = fetch(server.url(path)).await.unwrap_err();
        assert!(matches!(error, Error::TooBig { limit: Size::Headers(65_536) }), "{path}: {error:?}");
    }
    assert!(fetch(server.url("/fits")).await.is_ok());
}

#[tokio::test]
async fn circles_and_endless_chains_of_redirects_end() {
    let circle = Server::with(|path| redirect(302, if path == "/a" { "/b" } else { "/a" })).await;
    let error = fetch(circle.url("/a")).await.unwrap_err();
    assert!(matches!(error, Error::RedirectLoop { .. }), "{error:?}");
    assert_eq!(circle.heads().len(), 2);

    let endless = Server::with(|path| redirect(302, &format!("{path}x"))).await;
    let error = fetch(endless.url("/")).await.unwrap_err();
    assert!(matches!(error, Error::TooManyRedirects { limit: 10 }), "{error:?}");
    assert_eq!(endless.heads().len(), 11, "the first request and ten redirects");
}

#[tokio::test]
async fn cut_connections_are_told_as_such() {
    let server = Server::start(|mut asked: Asked| async move {
        let bytes = match asked.path.as_str() {
            "/nothing" => "",
            "/head" => "HTTP/1.1 200 OK\r\ncontent-le",
            "/body" => "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this",
            "/chunk" => "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nff\r\nonly this",
            "/last-chunk" => "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nthis\r\n",
            "/bad-chunk" => "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nthis\r\n",
            "/both" => "HTTP/1.1 200 OK\r\ncontent-length: 4\r\ncontent-length: 5\r\n\r\nthis",
            "/ssh" => "SSH-2.0-OpenSSH_9.9\r\n",
            _ => "\0\0\0\0\0\0\0\0",
        };
        asked.say(bytes).await;
    })
    .await;
    for path in
        ["/nothing", "/head", "/body", "/chunk", "/last-chunk", "/bad-chunk", "/both", "/ssh", "/binary"]
    {
        // A fetcher each: a host that breaks off again and again is paused.
        let error = fetch(server.url(path)).await.unwrap_err();
        assert!(matches!(error, Error::Broken { .. }), "{path}: {error:?}");
        assert!(error.is_retryable());
    }
}

#[tokio::test]
async fn more_than_the_announced_length_is_not_read() {
    let server =
        Server::with(|_| b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nthis and HTTP/1.1 200 OK".to_vec())
            .await;
    let fetcher = fetcher(Limits::default());
    for _ in 0..3 {
        assert_eq!(super::server::body(fetcher.fetch(&get(server.url("/"))).await), b"this");
    }
}

#[tokio::test]
async fn a_closed_port_is_no_connection() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
    drop(listener);
    let error = fetch(url).await.unwrap_err();
    assert_eq!(error.to_string(), "no connection to 127.0.0.1: connection refused");
    assert!(!error.may_have_been_received());
}

#[tokio::test]
async fn a_kept_connection_that_dies_under_the_next_request_is_replaced() {
    let server = Server::start(|mut asked: Asked| async move {
        asked.say(answer(200, "", "page")).await;
        asked.wait_for_more().await;
    })
    .await;
    let fetcher = fetcher(Limits::default());
    for turn in 1..=4 {
        let response = fetcher.fetch(&get(server.url("/"))).await;
        assert!(response.is_ok(), "request {turn}: {response:?}");
    }
}
