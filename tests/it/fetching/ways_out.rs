//! The ways out that the config file names: a proxy, and authorities to trust besides.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;

use tsuzuki::app;
use tsuzuki::config::{self, Config, Env};
use tsuzuki::fetch::{AllowPrivate, Request};
use tsuzuki::time::Clock;

use super::trust;

fn read(text: &str) -> Config {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tls/tsuzuki.toml");
    config::parse(text, &path, app::kinds(), &Env::of([("PROXY_PASSWORD", "hunter2")])).unwrap()
}

#[tokio::test]
async fn everything_goes_through_the_proxy_of_the_config() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let proxy = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = [0; 4096];
        let count = stream.read(&mut bytes).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\npage").unwrap();
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    });
    let config = read(&format!("[app]\nproxy = \"http://user:${{PROXY_PASSWORD}}@127.0.0.1:{port}\"\n"));
    let fetcher = app::fetcher(&config, Clock::system()).unwrap();
    fetcher.fetch(&Request::get("http://nowhere.example/page".parse().unwrap())).await.unwrap();
    let asked = proxy.join().unwrap().to_ascii_lowercase();
    assert!(asked.starts_with("get http://nowhere.example/page http/1.1"), "{asked}");
    assert!(asked.contains("proxy-authorization: basic dxnlcjpodw50zxiy"), "{asked}");
}

#[test]
fn a_proxy_that_cannot_be_used_is_refused_without_being_shown() {
    for (proxy, why) in [
        ("ftp://user:hunter2@proxy.example", "like http://HOST:PORT"),
        ("hunter2", "like http://HOST:PORT"),
        ("${NOT_THERE}", "NOT_THERE"),
    ] {
        let config = read(&format!("[app]\nproxy = \"{proxy}\"\n"));
        let error = app::fetcher(&config, Clock::system()).unwrap_err().to_string();
        assert!(error.contains(why) && !error.contains("hunter2"), "{error}");
    }
}

#[tokio::test]
async fn an_authority_of_the_config_is_trusted_and_a_missing_one_is_named() {
    let port = trust::start();
    let allow = AllowPrivate::parse(&["127.0.0.1"]).unwrap();
    let request = Request::get(format!("https://127.0.0.1:{port}/").parse().unwrap()).allow_private(&allow);
    let mut errors = Vec::new();
    for text in ["", "[app]\nextra_ca = \"authority.pem\"\n"] {
        let fetcher = app::fetcher(&read(text), Clock::system()).unwrap();
        errors.push(fetcher.fetch(&request).await.unwrap_err().to_string());
    }
    assert!(errors[0].contains("UnknownIssuer"), "{errors:?}");
    assert!(!errors[1].contains("UnknownIssuer"), "trusted now, only the name does not fit: {errors:?}");
    let config = read("[app]\nextra_ca = \"not-there.pem\"\n");
    let error = app::fetcher(&config, Clock::system()).unwrap_err().to_string();
    assert!(error.contains("not-there.pem"), "{error}");
}
