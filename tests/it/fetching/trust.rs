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

/// Serves one page over TLS, on a thread that ends with the tests.
pub(super) fn start() -> u16 {
    serve(&[], |tls| {
        let mut bytes = [0; 4096];
        let _ = tls.read(&mut bytes)?;
        tls.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\npage")
    })
}

type Tls = rustls::StreamOwned<rustls::ServerConnection, std::net::TcpStream>;

fn serve(protocols: &[&[u8]], answer: fn(&mut Tls) -> std::io::Result<()>) -> u16 {
    let certificate = CertificateDer::from_pem_file(fixture("server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(fixture("server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            let _ = answer(&mut rustls::StreamOwned::new(connection, stream));
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
    assert!(error.to_string().contains("an authority that is not trusted here"), "{error}");
}

#[tokio::test]
async fn a_named_authority_is_trusted_for_the_names_in_its_certificates() {
    let port = start();
    let authority = Some(fixture("authority.pem"));
    fetch("secure.example", port, authority.clone()).await.unwrap();
    let error = fetch("other.example", port, authority).await.unwrap_err();
    assert!(matches!(error, Error::BadTls { .. }), "{error:?}");
    assert!(error.to_string().contains("its certificate is for another name"), "{error}");
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

/// One HTTP/2 frame.
fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags, 0, 0, 0, stream], payload].concat()
}

#[tokio::test]
async fn a_server_that_speaks_http2_is_answered_in_it() {
    const PREFACE: usize = 24;
    const INDEXED_STATUS_200: u8 = 0x88;
    let port = serve(&[b"h2"], |tls| {
        tls.read_exact(&mut [0; PREFACE])?;
        tls.write_all(&frame(4, 0, 0, &[]))?;
        loop {
            let mut head = [0; 9];
            tls.read_exact(&mut head)?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            tls.read_exact(&mut vec![0; length as usize])?;
            let (kind, flags) = (head[3], head[4]);
            if kind == 4 && flags & 1 == 0 {
                tls.write_all(&frame(4, 1, 0, &[]))?;
            }
            if kind == 1 {
                tls.write_all(&frame(1, 4, 1, &[INDEXED_STATUS_200]))?;
                tls.write_all(&frame(0, 1, 1, b"page"))?;
            }
        }
    });
    fetch("secure.example", port, Some(fixture("authority.pem"))).await.unwrap();
}
