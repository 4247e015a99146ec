//! The address guard on real connections: names, hops and ports.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use tsuzuki::fetch::{AllowPrivate, ClientConfig, Error, FetchConfig, Fetcher, Names, Request, Response};
use tsuzuki::time::Clock;
use url::Url;

use super::server::{Asked, Server, answer, redirect};

fn knowing(names: &[(&str, &[&str])]) -> Fetcher {
    let table: HashMap<String, Vec<IpAddr>> = names
        .iter()
        .map(|(name, addresses)| ((*name).to_owned(), addresses.iter().map(|a| a.parse().unwrap()).collect()))
        .collect();
    let client = ClientConfig { names: Names::Fixed(Arc::new(table)), ..ClientConfig::default() };
    Fetcher::new(FetchConfig { client, ..FetchConfig::default() }, Clock::system()).unwrap()
}

fn request(url: &str, allow: &[&str]) -> Request {
    Request::get(Url::parse(url).unwrap()).allow_private(&AllowPrivate::parse(allow).unwrap())
}

fn blocked(result: Result<Response, Error>) -> (String, Option<String>) {
    match result {
        Err(Error::Blocked { why, allow, .. }) => (why.to_string(), allow),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_name_that_leads_inside_is_refused_before_anything_is_sent() {
    let server = Server::with(|_| answer(200, "", "secret")).await;
    let port = server.addr.port();
    let fetcher = knowing(&[
        ("inside.example", &["127.0.0.1"]),
        ("mixed.example", &["127.0.0.1", "93.184.215.14"]),
        ("mapped.example", &["::ffff:127.0.0.1"]),
    ]);
    for host in ["inside.example", "mixed.example", "mapped.example", "localhost", "x.localhost"] {
        let url = format!("http://{host}:{port}/");
        let (why, allow) = blocked(fetcher.fetch(&request(&url, &[])).await);
        assert!(why.contains("not a place on the open internet"), "{why}");
        assert_eq!(allow.as_deref(), Some(host));
    }
    assert!(server.heads().is_empty(), "{:?}", server.heads());

    for allow in ["inside.example", "127.0.0.0/8", "*.example", &format!("inside.example:{port}")] {
        let url = format!("http://inside.example:{port}/");
        let response = fetcher.fetch(&request(&url, &[allow])).await;
        assert!(response.is_ok(), "{allow}: {response:?}");
    }
}

#[tokio::test]
async fn a_connection_made_under_one_permission_does_not_serve_another() {
    let server = Server::start(|mut asked: Asked| async move {
        asked.say(answer(200, "", "page")).await;
        asked.hang().await;
    })
    .await;
    let fetcher = knowing(&[("inside.example", &["127.0.0.1"])]);
    let url = format!("http://inside.example:{}/", server.addr.port());
    fetcher.fetch(&request(&url, &["inside.example"])).await.unwrap();
    fetcher.fetch(&request(&url, &["inside.example"])).await.unwrap();
    blocked(fetcher.fetch(&request(&url, &[])).await);
    blocked(fetcher.fetch(&request(&url, &["other.example"])).await);
}

#[tokio::test]
async fn a_redirect_to_a_private_address_is_refused_on_the_way() {
    let inside = Server::start_at("127.0.0.2:0", |mut asked: Asked| async move {
        asked.say(answer(200, "", "secret")).await;
    })
    .await;
    let target = inside.url("/").to_string();
    let channel_env = Server::start(move |mut asked: Asked| {
        let target = target.clone();
        async move {
            let location = match asked.path.as_str() {
                "/inside" => target,
                "/metadata" => "http://169.254.169.254/latest/meta-data/".to_owned(),
                "/hex" => "http://0xa9fea9fe/".to_owned(),
                "/mapped" => "http://[::ffff:a9fe:a9fe]/".to_owned(),
                "/name" => "http://inside.example/".to_owned(),
                "/two" => "/inside".to_owned(),
                _ => "file:///etc/passwd".to_owned(),
            };
            asked.say(redirect(302, &location)).await;
        }
    })
    .await;
    let fetcher = knowing(&[("inside.example", &["10.0.0.1"])]);
    for path in ["/inside", "/metadata", "/hex", "/mapped", "/name", "/two"] {
        blocked(fetcher.fetch(&request(channel_env.url(path).as_str(), &["127.0.0.1"])).await);
    }
    let file = fetcher.fetch(&request(channel_env.url("/file").as_str(), &["127.0.0.1"])).await;
    assert!(matches!(file, Err(Error::BadUrl { .. })), "{file:?}");
    assert!(inside.heads().is_empty());
}

#[tokio::test]
async fn a_port_in_the_permission_is_the_only_port() {
    let (one, other) =
        (Server::with(|_| answer(200, "", "")).await, Server::with(|_| answer(200, "", "")).await);
    let fetcher = knowing(&[]);
    let allow = one.addr.to_string();
    assert!(fetcher.fetch(&request(one.url("/").as_str(), &[&allow])).await.is_ok());
    blocked(fetcher.fetch(&request(other.url("/").as_str(), &[&allow])).await);
}

#[tokio::test]
async fn names_that_do_not_exist_and_other_schemes_are_told_apart() {
    let fetcher = knowing(&[]);
    let unknown = fetcher.fetch(&request("http://nowhere.example/", &[])).await;
    assert!(matches!(unknown, Err(Error::Dns { .. })), "{unknown:?}");
    let scheme = fetcher.fetch(&request("ftp://nowhere.example/", &[])).await;
    assert!(matches!(scheme, Err(Error::BadUrl { .. })), "{scheme:?}");
}

#[tokio::test]
async fn clients_for_others_are_guarded_too() {
    let server = Server::with(|_| answer(200, "", "page")).await;
    let fetcher = knowing(&[("inside.example", &["127.0.0.1"])]);
    let none = AllowPrivate::none();
    assert!(matches!(fetcher.clients().client_for(&server.url("/"), &none), Err(Error::Blocked { .. })));
    let url: Url = format!("http://inside.example:{}/", server.addr.port()).parse().unwrap();
    let client = fetcher.clients().client_for(&url, &none).unwrap();
    assert!(client.get(url).send().await.is_err());
    assert!(server.heads().is_empty());
}
