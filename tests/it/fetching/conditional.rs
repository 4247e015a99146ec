//! Unchanged pages cost one round trip and no body.

use tsuzuki::fetch::{Error, Limits, Response, Validators};

use super::server::{Asked, Server, answer, fetcher, get};

fn tag(etag: &str) -> Validators {
    Validators { etag: Some(etag.to_owned()), ..Validators::default() }
}

async fn ask(server: &Server, path: &str, known: &Validators) -> Result<Response, Error> {
    fetcher(Limits::default()).fetch(&get(server.url(path)).validators(known)).await
}

#[tokio::test]
async fn validators_come_with_a_page_and_go_back_with_the_next_request() {
    let server = Server::start(|mut asked: Asked| async move {
        let unchanged = asked.head.contains("if-none-match: \"v1\"\r\n")
            && asked.head.contains("if-modified-since: sun, 15 nov 2026 12:00:00 gmt\r\n");
        let headers = "etag: \"v1\"\r\nlast-modified: Sun, 15 Nov 2026 12:00:00 GMT\r\n";
        asked
            .say(if unchanged { answer(304, "etag: \"v2\"\r\n", "") } else { answer(200, headers, "page") })
            .await;
    })
    .await;
    let first = ask(&server, "/", &Validators::default()).await.unwrap();
    let Response::Fetched(head, _) = first else { panic!("{first:?}") };
    assert_eq!(head.validators.url, Some(server.url("/")));

    let second = ask(&server, "/", &head.validators).await.unwrap();
    let Response::Unchanged(head) = second else { panic!("{second:?}") };
    assert_eq!(head.status, 304);
    assert_eq!(head.validators.etag.as_deref(), Some("\"v2\""), "a 304 may bring a new tag");
    assert_eq!(head.validators.last_modified.as_deref(), Some("Sun, 15 Nov 2026 12:00:00 GMT"));
}

#[tokio::test]
async fn a_part_that_nobody_asked_for_is_broken_for_pages_files_and_services() {
    let server = Server::start(|mut asked: Asked| async move {
        asked.say(answer(206, "etag: \"v1\"\r\ncontent-range: bytes 0-3/99\r\n", "part")).await;
    })
    .await;
    let is_broken =
        |error: Error| matches!(&error, Error::Broken { why, .. } if why.to_string().contains("206"));
    assert!(is_broken(ask(&server, "/", &tag("\"v1\"")).await.unwrap_err()));
    let fetcher = fetcher(Limits::default());
    assert!(is_broken(fetcher.fetch_api(&get(server.url("/"))).await.unwrap_err()));
    let file = tempfile::tempdir().unwrap();
    let saved = fetcher.fetch_to_file(&get(server.url("/")), &file.path().join("x")).await;
    assert!(is_broken(saved.unwrap_err()));
}

#[tokio::test]
async fn an_equal_strong_tag_saves_reading_a_huge_body() {
    let server = Server::start(|mut asked: Asked| async move {
        asked.say("HTTP/1.1 200 OK\r\netag: \"big\"\r\ncontent-length: 16000000\r\n\r\n").await;
        for _ in 0..1600 {
            if !asked.say([b'x'; 10_000]).await {
                break;
            }
        }
    })
    .await;
    let response = ask(&server, "/", &tag("\"big\"")).await.unwrap();
    let Response::Unchanged(head) = response else { panic!("{response:?}") };
    assert_eq!((head.status, head.validators.etag.as_deref()), (200, Some("\"big\"")));
    while server.under_way() > 0 {
        tokio::task::yield_now().await;
    }
    assert!(server.sent() < 8_000_000, "{} bytes left the server", server.sent());
}

#[tokio::test]
async fn weak_or_other_tags_and_dates_alone_do_not_save_reading() {
    let server = Server::with(|path| {
        let headers = match path {
            "/weak" => "etag: W/\"a\"\r\n",
            "/other" => "etag: \"b\"\r\n",
            _ => "last-modified: Sun, 15 Nov 2026 12:00:00 GMT\r\n",
        };
        answer(200, headers, "page")
    })
    .await;
    let dated = Validators {
        last_modified: Some("Sun, 15 Nov 2026 12:00:00 GMT".to_owned()),
        ..Validators::default()
    };
    for (path, known) in [("/weak", tag("W/\"a\"")), ("/other", tag("\"a\"")), ("/dated", dated)] {
        let response = ask(&server, path, &known).await.unwrap();
        assert!(matches!(response, Response::Fetched(..)), "{path}: {response:?}");
    }
}

#[tokio::test]
async fn validators_of_one_resource_are_not_shown_to_another() {
    let server = Server::with(|path| match path {
        "/moved" => super::server::redirect(302, "/elsewhere"),
        _ => answer(200, "etag: \"same\"\r\n", "another page"),
    })
    .await;
    let known = Validators { url: Some(server.url("/feed")), ..tag("\"same\"") };
    let response = ask(&server, "/moved", &known).await.unwrap();
    assert!(matches!(response, Response::Fetched(..)), "{response:?}");
    assert!(server.heads().iter().all(|head| !head.contains("if-none-match")));

    let known = Validators { url: Some(server.url("/elsewhere")), ..known };
    let response = ask(&server, "/moved", &known).await.unwrap();
    assert!(matches!(response, Response::Unchanged(_)), "{response:?}");
}

#[tokio::test]
async fn a_304_that_nobody_asked_for_is_broken() {
    let server = Server::with(|_| answer(304, "", "")).await;
    let error = ask(&server, "/", &Validators::default()).await.unwrap_err();
    assert!(matches!(error, Error::Broken { .. }), "{error:?}");
}

#[tokio::test]
async fn statuses_become_next_actions() {
    let server =
        Server::with(|path| answer(path[1..].parse().unwrap(), "etag: \"e\"\r\n", "error page")).await;
    for (status, expected) in [
        (404, "not_found"),
        (410, "gone"),
        (401, "refused"),
        (403, "refused"),
        (451, "refused"),
        (300, "refused"),
        (305, "refused"),
        (408, "host_asks_to_wait"),
        (429, "host_asks_to_wait"),
        (500, "host_asks_to_wait"),
        (503, "host_asks_to_wait"),
        (599, "host_asks_to_wait"),
    ] {
        let error = ask(&server, &format!("/{status}"), &tag("\"e\"")).await.unwrap_err();
        assert_eq!(error.why_code(), expected, "{status}");
        assert_eq!(error.status(), Some(status));
    }
}
