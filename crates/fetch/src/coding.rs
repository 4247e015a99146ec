//! Content codings: gzip, deflate, br and zstd, each checked by its first bytes.
//!
//! Common deviations are accepted: `deflate` with or without its zlib wrapper, gzip with several members or with
//! garbage after the last one. A body that does not match its declaration, or needs too much memory, is rejected.

use std::io::{self, Cursor};
use std::pin::Pin;
use std::task::{Context, Poll};
use stdx::phrase;
use stdx::phrase::Phrase;

use async_compression::tokio::bufread::{
    BrotliDecoder, DeflateDecoder, GzipDecoder, ZlibDecoder, ZstdDecoder,
};
use async_compression::zstd::DParameter;
use reqwest::header::{GetAll, HeaderValue};
use tokio::io::{AsyncBufRead, AsyncRead, AsyncReadExt as _, ReadBuf};

/// A decoded stream.
pub(super) type Reader = Pin<Box<dyn AsyncRead + Send>>;
/// An encoded stream.
pub(super) type BufReader = Pin<Box<dyn AsyncBufRead + Send>>;

/// The `Accept-Encoding` of our requests.
pub(super) const ACCEPTED: &str = "gzip, br, zstd, deflate";

/// The most codings applied on top of each other; normal servers use one.
const STACKED: usize = 3;
/// HTTP allows zstd windows of up to 8 MiB (RFC 9659).
const ZSTD_WINDOW_LOG: u32 = 23;

/// A supported coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

/// An unsupported or broken coding.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BadCoding {
    Unknown(String),
    TooMany(usize),
    Mismatch,
    Window,
}

impl BadCoding {
    pub(super) fn phrase(&self) -> Phrase {
        match self {
            BadCoding::Unknown(word) => phrase!(
                "its content coding `{word}` was not requested",
                "要求していない圧縮方式 `{word}` です"
            ),
            BadCoding::TooMany(most) => {
                phrase!("it is encoded more than {most} times over", "{most} 重を超えて圧縮されています")
            }
            BadCoding::Mismatch => {
                phrase!("it says that it is gzip, and is not", "gzip とされていますが、そうではありません")
            }
            BadCoding::Window => {
                phrase!("it needs too large a window", "展開に大きすぎるウィンドウが必要です")
            }
        }
    }
}

stdx::error_in_english!(BadCoding);

/// The codings of a response in the order in which they were applied.
///
/// Ignores words that are no codings at all (`utf-8`, `none`): a common mistake of servers.
pub(super) fn listed(values: GetAll<'_, HeaderValue>) -> Result<Vec<Coding>, BadCoding> {
    let mut codings = Vec::new();
    for value in values {
        for word in String::from_utf8_lossy(value.as_bytes()).split(',') {
            let word = word.trim().to_ascii_lowercase();
            match word.as_str() {
                "gzip" | "x-gzip" => codings.push(Coding::Gzip),
                "deflate" | "x-deflate" => codings.push(Coding::Deflate),
                "br" => codings.push(Coding::Brotli),
                "zstd" => codings.push(Coding::Zstd),
                "compress" | "x-compress" | "exi" | "pack200-gzip" | "aes128gcm" | "dcb" | "dcz" => {
                    return Err(BadCoding::Unknown(word));
                }
                _ => {}
            }
        }
    }
    if codings.len() > STACKED { Err(BadCoding::TooMany(STACKED)) } else { Ok(codings) }
}

/// Decodes `input`; an empty body is valid in any coding.
pub(super) async fn open(mut input: BufReader, coding: Coding) -> io::Result<Reader> {
    let mut start = [0_u8; 2];
    let mut known = 0;
    while known < start.len() {
        match input.read(&mut start[known..]).await? {
            0 => break,
            read => known += read,
        }
    }
    let start = &start[..known];
    if start.is_empty() {
        return Ok(Box::pin(tokio::io::empty()));
    }
    let input: BufReader = Box::pin(Cursor::new(start.to_vec()).chain(input));
    Ok(match coding {
        Coding::Gzip if start == [0x1f, 0x8b] => Box::pin(Members::new(input)),
        Coding::Gzip => return Err(io::Error::new(io::ErrorKind::InvalidData, BadCoding::Mismatch)),
        Coding::Deflate if is_zlib(start) => Box::pin(ZlibDecoder::new(input)),
        Coding::Deflate => Box::pin(DeflateDecoder::new(input)),
        Coding::Brotli if is_large_window(start[0]) => return Err(io::Error::other(BadCoding::Window)),
        Coding::Brotli => Box::pin(BrotliDecoder::new(input)),
        Coding::Zstd => {
            let window = [DParameter::window_log_max(ZSTD_WINDOW_LOG)];
            let mut decoder = ZstdDecoder::with_params(input, &window);
            decoder.multiple_members(true);
            Box::pin(decoder)
        }
    })
}

fn is_zlib(start: &[u8]) -> bool {
    matches!(start, [first, second] if first & 0x0f == 8 && u16::from_be_bytes([*first, *second]) % 31 == 0)
}

/// The brotli extension for windows of up to 1 GiB; HTTP does not allow it, but the decoder would.
fn is_large_window(first: u8) -> bool {
    first & 0x7f == 0x11
}

/// Decodes successive gzip members; anything else after a member is ignored.
struct Members {
    current: Option<GzipDecoder<BufReader>>,
}

impl Members {
    fn new(input: BufReader) -> Self {
        Self { current: Some(GzipDecoder::new(input)) }
    }
}

impl AsyncRead for Members {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let Some(decoder) = &mut self.current else { return Poll::Ready(Ok(())) };
            let before = buf.filled().len();
            std::task::ready!(Pin::new(&mut *decoder).poll_read(cx, buf))?;
            if buf.filled().len() > before || buf.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
            let next = std::task::ready!(decoder.get_mut().as_mut().poll_fill_buf(cx))?;
            let is_member = next.first() == Some(&0x1f);
            self.current =
                self.current.take().filter(|_| is_member).map(|old| GzipDecoder::new(old.into_inner()));
        }
    }
}
