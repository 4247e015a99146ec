//! One call to a service: what is known when it breaks, and that nothing is sent twice or elsewhere.

use std::time::Duration;

use tsuzuki::fetch::{AllowPrivate, ApiReply, Limits, NoAnswer, call};
use tsuzuki::time::Clock;

use super::server::{Asked, Server, answer, fetcher, loopback, redirect};

const TIMEOUT: Duration = Duration::from_millis(300);

async fn call_to(url: url::Url) -> Result<ApiReply, NoAnswer> {
    let client = fetcher(Limits::default()).clients().client_for(&url, &loopback()).unwrap();
    let request = reqwest::Request::new(reqwest::Method::POST, url);
    call(&client, request, &Clock::system(), TIMEOUT, 8).await
}

#[tokio::test]
async fn a_status_counts_although_its_body_breaks_off_or_never_ends() {
    let hanging = Server::start(|mut asked: Asked| async move {
        asked.say("HTTP/1.1 201 Created\r\ncontent-length: 8\r\nretry-after: 7\r\n\r\nhalf").await;
        asked.hang().await;
    });
    let breaking = Server::start(|mut asked: Asked| async move {
        asked.say("HTTP/1.1 201 Created\r\ncontent-length: 8\r\nretry-after: 7\r\n\r\nhalf").await;
    });
    for server in [hanging.await, breaking.await] {
        let reply = call_to(server.url("/")).await.unwrap();
        assert_eq!((reply.status, &reply.body[..]), (201, &b"half"[..]));
        assert_eq!(reply.retry_after, Some(Duration::from_secs(7)));
        assert!(reply.cut.is_some_and(|why| why.to_string().contains("no answer from 127.0.0.1")));
    }
}

#[tokio::test]
async fn no_more_is_read_than_was_wanted_and_no_redirect_is_followed() {
    let long = Server::with(|_| answer(200, "", "0123456789")).await;
    let reply = call_to(long.url("/")).await.unwrap();
    assert_eq!((&reply.body[..], reply.cut), (&b"01234567"[..], None));
    let away = Server::with(|_| redirect(302, "/elsewhere")).await;
    assert_eq!(call_to(away.url("/")).await.unwrap().status, 302);
    assert_eq!(away.heads().len(), 1);
}

#[tokio::test]
async fn only_a_request_that_never_left_is_known_not_to_have_arrived() {
    let silent = Server::start(|mut asked: Asked| async move { asked.hang().await }).await;
    let closing = Server::start(|_: Asked| async {}).await;
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (url, may_have_arrived) in [
        (silent.url("/"), true),
        (closing.url("/"), true),
        (format!("http://{gone}/").parse().unwrap(), false),
    ] {
        let failed = call_to(url.clone()).await.unwrap_err();
        assert_eq!(failed.may_have_arrived, may_have_arrived, "{url}: {failed:?}");
    }
    let clients = fetcher(Limits::default()).clients().clone();
    assert!(clients.client_for(&silent.url("/"), &AllowPrivate::none()).is_err(), "the guard judges first");
}
