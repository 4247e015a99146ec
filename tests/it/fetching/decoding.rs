//! Content codings as servers really send them, and bombs.

use async_compression::tokio::write::{BrotliEncoder, DeflateEncoder, GzipEncoder, ZlibEncoder, ZstdEncoder};
use async_compression::zstd::CParameter;
use tokio::io::AsyncWriteExt as _;
use tsuzuki::fetch::limits::Size;
use tsuzuki::fetch::{Error, Limits};

use super::server::{Asked, Server, answer, body, fetch, fetcher, get};

/// `bytes` in `coding`.
pub(crate) async fn encoded(coding: &str, bytes: &[u8]) -> Vec<u8> {
    macro_rules! with {
        ($encoder:expr) => {{
            let mut encoder = $encoder;
            encoder.write_all(bytes).await.unwrap();
            encoder.shutdown().await.unwrap();
            encoder.into_inner()
        }};
    }
    match coding {
        "gzip" => with!(GzipEncoder::new(Vec::new())),
        "br" => with!(BrotliEncoder::new(Vec::new())),
        "zstd" => with!(ZstdEncoder::new(Vec::new())),
        "zlib" => with!(ZlibEncoder::new(Vec::new())),
        "raw" => with!(DeflateEncoder::new(Vec::new())),
        "zstd with a window of 128 MiB" => {
            let params = [CParameter::window_log(27), CParameter::content_size_flag(false)];
            with!(ZstdEncoder::with_quality_and_params(
                Vec::new(),
                async_compression::Level::Fastest,
                &params
            ))
        }
        _ => panic!("{coding}"),
    }
}

/// A server that answers with `bytes` under `coding`.
async fn serving(coding: &'static str, bytes: Vec<u8>) -> Server {
    let whole = answer(200, &format!("content-encoding: {coding}\r\n"), bytes);
    Server::start(move |mut asked: Asked| {
        let whole = whole.clone();
        async move {
            asked.say(whole).await;
        }
    })
    .await
}

const PAGE: &[u8] = b"<rss>plain words, plain words, plain words</rss>";

#[tokio::test]
async fn every_coding_we_ask_for_is_undone() {
    let twice = [encoded("gzip", PAGE).await, encoded("gzip", PAGE).await].concat();
    let rubbish = [encoded("gzip", PAGE).await, vec![0, 0, 1, 2, 3]].concat();
    for (coding, bytes, expected) in [
        ("gzip", encoded("gzip", PAGE).await, PAGE.to_vec()),
        ("x-gzip", encoded("gzip", PAGE).await, PAGE.to_vec()),
        ("GZIP", encoded("gzip", PAGE).await, PAGE.to_vec()),
        ("br", encoded("br", PAGE).await, PAGE.to_vec()),
        ("zstd", encoded("zstd", PAGE).await, PAGE.to_vec()),
        ("deflate", encoded("zlib", PAGE).await, PAGE.to_vec()),
        ("deflate", encoded("raw", PAGE).await, PAGE.to_vec()),
        ("gzip", twice, PAGE.repeat(2)),
        ("gzip", rubbish, PAGE.to_vec()),
        ("zstd, gzip", encoded("gzip", &encoded("zstd", PAGE).await).await, PAGE.to_vec()),
        ("gzip", Vec::new(), Vec::new()),
        ("br", Vec::new(), Vec::new()),
        ("identity", PAGE.to_vec(), PAGE.to_vec()),
        ("utf-8", PAGE.to_vec(), PAGE.to_vec()),
        ("", PAGE.to_vec(), PAGE.to_vec()),
    ] {
        let server = serving(coding, bytes).await;
        assert_eq!(body(fetch(server.url("/")).await), expected, "{coding}");
    }
}

#[tokio::test]
async fn compressed_bodies_that_end_early_or_do_not_decode_are_broken() {
    let mut wrong_sum = encoded("gzip", PAGE).await;
    let at = wrong_sum.len() - 6;
    wrong_sum[at] ^= 1;
    for (coding, bytes) in [
        ("gzip", encoded("gzip", PAGE).await[..20].to_vec()),
        ("br", encoded("br", PAGE).await[..20].to_vec()),
        ("zstd", encoded("zstd", PAGE).await[..20].to_vec()),
        ("deflate", encoded("zlib", PAGE).await[..20].to_vec()),
        ("gzip", wrong_sum),
        ("gzip", PAGE.to_vec()),
        ("gzip", b"<".to_vec()),
        ("gzip", encoded("br", PAGE).await),
        ("deflate", PAGE.to_vec()),
        ("br", PAGE.to_vec()),
        ("zstd", PAGE.to_vec()),
        ("zstd", encoded("gzip", PAGE).await),
        ("compress", PAGE.to_vec()),
    ] {
        let server = serving(coding, bytes).await;
        let error = fetch(server.url("/")).await.unwrap_err();
        assert!(matches!(error, Error::Broken { .. }), "{coding}: {error:?}");
    }
}

#[tokio::test]
async fn codings_stacked_high_and_giant_windows_are_refused() {
    let server = serving("gzip, gzip, gzip, gzip", PAGE.to_vec()).await;
    let error = fetch(server.url("/")).await.unwrap_err();
    assert!(matches!(error, Error::TooBig { limit: Size::Encodings(3) }), "{error:?}");

    let wide = encoded("zstd with a window of 128 MiB", &vec![b'x'; 4 << 20]).await;
    // The first bytes of brotli's extension for windows up to 1 GiB, here with 2^30.
    for (coding, bytes) in [("zstd", wide), ("br", vec![0x11, 0x1e, 0, 0, 0, 0])] {
        let server = serving(coding, bytes).await;
        let error = fetch(server.url("/")).await.unwrap_err();
        assert!(matches!(error, Error::TooBig { limit: Size::Window }), "{coding}: {error:?}");
    }
}

#[tokio::test]
async fn a_small_page_that_compresses_very_well_is_no_bomb() {
    let zeros = vec![0; 1 << 20];
    let small = encoded("br", &zeros).await;
    assert!(small.len() * 1000 < zeros.len());
    let server = serving("br", small).await;
    assert_eq!(body(fetch(server.url("/")).await).len(), zeros.len());
}

#[tokio::test]
async fn a_bomb_is_recognised_by_its_ratio_and_by_its_size() {
    for (coding, kind) in [("gzip", "gzip"), ("br", "br"), ("zstd", "zstd"), ("deflate", "raw")] {
        let bytes = encoded(kind, &vec![0; 8 << 20]).await;
        let server = serving(coding, bytes).await;
        let error = fetch(server.url("/")).await.unwrap_err();
        assert!(matches!(error, Error::TooBig { limit: Size::Ratio(100) }), "{coding}: {error:?}");
        assert_eq!(error.to_string(), "too big: the body unpacks to more than 100 times its size");

        let limits = Limits { body_bytes: 2 << 20, ratio: u64::MAX, ..Limits::default() };
        let error = fetcher(limits).fetch(&get(server.url("/"))).await.unwrap_err();
        assert!(matches!(error, Error::TooBig { limit: Size::Body(_) }), "{coding}: {error:?}");
    }
}

#[tokio::test]
async fn a_stream_that_unpacks_to_nothing_for_ever_is_cut_too() {
    let nothing = encoded("gzip", b"").await.repeat(1000);
    let server = Server::start(move |mut asked: Asked| {
        let nothing = nothing.clone();
        async move {
            asked.say("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n").await;
            while asked.say(&nothing).await {}
        }
    })
    .await;
    let limits = Limits { body_bytes: 1 << 20, ..Limits::default() };
    let error = fetcher(limits).fetch(&get(server.url("/"))).await.unwrap_err();
    assert!(matches!(error, Error::TooBig { limit: Size::Wire(0x10_0000) }), "{error:?}");
}

#[tokio::test]
async fn a_bomb_between_two_codings_is_cut_although_nothing_comes_out_of_it() {
    let nothing = encoded("gzip", b"").await.repeat(200_000);
    let bytes = encoded("gzip", &nothing).await;
    assert!(bytes.len() * 100 < nothing.len());
    let server = serving("gzip, gzip", bytes).await;
    let limits = Limits { body_bytes: 1 << 20, ..Limits::default() };
    let error = fetcher(limits).fetch(&get(server.url("/"))).await.unwrap_err();
    assert!(matches!(error, Error::TooBig { limit: Size::Wire(_) }), "{error:?}");
}
