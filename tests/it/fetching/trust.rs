//! TLS: strangers' certificates are refused, a named authority is trusted.
//!
//! The certificates in `tests/fixtures/tls` were made for these tests; the key of their authority was thrown away.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tsuzuki::fetch::{AllowPrivate, ClientConfig, Error, FetchConfig, Fetcher, Names, Request};
use tsuzuki::time::Clock;

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tls").join(name)
}

/// Serves one page over TLS to everybody who trusts it, on a thread that ends with the tests.
fn start() -> u16 {
    let certificate = CertificateDer::from_pem_file(fixture("server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(fixture("server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut tls = rustls::StreamOwned::new(connection, stream);
            let mut bytes = [0; 4096];
            if tls.read(&mut bytes).is_ok() {
                let _ = tls.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\npage");
            }
        }
    });
    port
}

async fn fetch(host: &str, port: u16, extra_ca: Option<PathBuf>) -> Result<(), Error> {
    let loopback = vec![Ipv4Addr::LOCALHOST.into()];
    let names = HashMap::from([
        ("secure.example".to_owned(), loopback.clone()),
        ("other.example".to_owned(), loopback),
    ]);
    let client = ClientConfig { names: Names::Fixed(Arc::new(names)), extra_ca, ..ClientConfig::default() };
    let fetcher = Fetcher::new(FetchConfig { client, ..FetchConfig::default() }, Clock::system())?;
    let allow = AllowPrivate::parse(&["127.0.0.1"]).unwrap();
    let url = format!("https://{host}:{port}/").parse().unwrap();
    fetcher.fetch(&Request::get(url).allow_private(&allow)).await.map(|_| ())
}

#[tokio::test]
async fn an_authority_nobody_named_is_not_trusted() {
    let error = fetch("secure.example", start(), None).await.unwrap_err();
    assert!(matches!(error, Error::BadTls { .. }), "{error:?}");
    assert!(!error.is_retryable() && !error.may_have_been_received());
    assert!(error.to_string().contains("UnknownIssuer"), "{error}");
}

#[tokio::test]
async fn a_named_authority_is_trusted_for_the_names_in_its_certificates() {
    let port = start();
    let authority = Some(fixture("authority.pem"));
    fetch("secure.example", port, authority.clone()).await.unwrap();
    let error = fetch("other.example", port, authority).await.unwrap_err();
    assert!(matches!(error, Error::BadTls { .. }), "{error:?}");
}

#[tokio::test]
async fn a_server_without_tls_is_no_trusted_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"HTTP/1.1 400 Speak plainly\r\n\r\n").unwrap();
    });
    let error = fetch("secure.example", port, None).await.unwrap_err();
    assert!(matches!(error, Error::BadTls { .. }), "{error:?}");
}
