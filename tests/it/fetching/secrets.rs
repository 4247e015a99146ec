//! Credentials go to the origin they are for, and into no message.

use reqwest::header::HeaderName;
use secrecy::SecretString;
use tsuzuki::fetch::{Credential, Limits, Request, Response};
use url::Url;

use super::server::{Asked, Server, answer, fetcher, get, loopback, redirect};

const SECRET: &str = "s3cret-token";

/// Two servers: the first redirects `/away` to the second, the second sends everything back home.
async fn two_servers() -> (Server, Server) {
    let other =
        Server::start_at("127.0.0.3:0", |mut asked: Asked| async move {
            let home = asked.path.strip_prefix("/back-to/").map(str::to_owned);
            asked
                .say(home.map_or_else(
                    || answer(200, "", "page"),
                    |home| redirect(302, &format!("http://{home}/end")),
                ))
                .await;
        })
        .await;
    let away = other.addr;
    let home = Server::start(move |mut asked: Asked| async move {
        let here = asked.head.split("host: ").nth(1).unwrap().split("\r\n").next().unwrap().to_owned();
        asked
            .say(match asked.path.split('?').next().unwrap() {
                "/away" => redirect(302, &format!("http://{away}/")),
                "/round" => redirect(302, &format!("http://{away}/back-to/{here}")),
                "/same" => redirect(302, "/end"),
                "/echo" => redirect(302, &format!("{}&again=1", asked.path.replace("/echo", "/end"))),
                _ => answer(200, "", "page"),
            })
            .await;
    })
    .await;
    (home, other)
}

fn with_secrets(url: Url) -> Request {
    get(url)
        .credential(&Credential::Bearer(SECRET.into()))
        .secret_header(HeaderName::from_static("private-token"), &SecretString::from(SECRET))
        .header(HeaderName::from_static("x-plain"), "plain")
}

#[tokio::test]
async fn secrets_stay_within_their_origin() {
    let (home, other) = two_servers().await;
    let fetcher = fetcher(Limits::default());
    for path in ["/same", "/away", "/round"] {
        fetcher.fetch(&with_secrets(home.url(path))).await.unwrap();
    }
    let with_secret = |head: &String| head.contains(SECRET);
    let heads = home.heads();
    let to = |path: &str| {
        heads.iter().filter(|head| head.starts_with(&format!("get {path} "))).collect::<Vec<_>>()
    };
    assert!(to("/same")[0].contains(&format!("authorization: bearer {SECRET}")));
    assert!(with_secret(to("/end")[0]), "the same origin keeps them");
    assert!(!with_secret(to("/end")[1]), "and they do not come back after a detour");
    assert_eq!(other.heads().len(), 2);
    assert!(!other.heads().iter().any(with_secret), "{:?}", other.heads());
    assert!(other.heads().iter().all(|head| head.contains("x-plain: plain")));
}

#[tokio::test]
async fn userinfo_in_an_address_is_sent_as_basic_and_then_forgotten() {
    let (home, other) = two_servers().await;
    let url = Url::parse(&format!("http://me:{SECRET}@{}/away", home.addr)).unwrap();
    let request = Request::get(url).allow_private(&loopback());
    let response = fetcher(Limits::default()).fetch(&request).await.unwrap();
    assert!(home.heads()[0].contains("authorization: basic "));
    assert!(!other.heads()[0].contains("authorization"));
    assert!(!format!("{response:?}{request:?}").contains(SECRET));
}

#[tokio::test]
async fn a_secret_parameter_is_in_no_address_and_no_error() {
    let (home, _) = two_servers().await;
    let fetcher = fetcher(Limits::default());
    let request = get(home.url("/echo?q=rust")).secret_query("key", &SecretString::from(SECRET));
    let response = fetcher.fetch(&request).await.unwrap();
    assert!(home.heads()[1].contains(&format!("key={SECRET}")), "the server echoed it: {:?}", home.heads());
    let Response::Fetched(head, _) = response else { panic!() };
    assert_eq!(head.final_url, home.url("/end?q=rust&again=1"));

    let dead =
        Request::get("http://127.0.0.1:9/".parse().unwrap()).secret_query("key", &SecretString::from(SECRET));
    let blocked = fetcher.fetch(&dead).await.unwrap_err();
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let refused = fetcher
        .fetch(
            &get(format!("http://{closed}/").parse().unwrap())
                .secret_query("key", &SecretString::from(SECRET)),
        )
        .await
        .unwrap_err();
    for error in [blocked, refused] {
        assert!(!format!("{error} {error:?}").contains(SECRET), "{error:?}");
    }
}

#[tokio::test]
async fn a_broken_error_page_does_not_hide_the_status() {
    let server = Server::with(|path| match path {
        "/cut" => b"HTTP/1.1 401 X\r\ncontent-length: 100\r\n\r\nhalf".to_vec(),
        _ => b"HTTP/1.1 401 X\r\ncontent-length: 99999999999\r\n\r\n".to_vec(),
    })
    .await;
    for (path, expected) in [("/cut", "half"), ("/giant", "")] {
        let answer = fetcher(Limits::default()).fetch_api(&get(server.url(path))).await.unwrap();
        assert_eq!((answer.head.status, &answer.body[..]), (401, expected.as_bytes()));
    }
}

#[tokio::test]
async fn an_api_answers_with_any_status_and_its_headers() {
    let server = Server::with(|_| {
        let headers = "retry-after: 7\r\nx-next-page: 3\r\nlink: </p?page=3>; rel=\"next\"\r\n";
        answer(429, headers, vec![b'x'; 200_000])
    })
    .await;
    let fetcher = fetcher(Limits::default());
    let answer = fetcher.fetch_api(&get(server.url("/"))).await.unwrap();
    assert_eq!((answer.head.status, answer.body.len()), (429, 65_536));
    assert_eq!(answer.head.headers["x-next-page"], "3");
    let next = tsuzuki::fetch::header::link(&answer.head.headers, &answer.head.final_url, "next");
    assert_eq!(next, Some(server.url("/p?page=3")));
    let error = fetcher.fetch_api(&get(server.url("/"))).await.unwrap_err();
    assert!(error.retry_after().is_some_and(|wait| (6..=7).contains(&wait.as_secs())), "{error:?}");
}
