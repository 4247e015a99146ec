//! A response body while it is read: decoded, counted and timed, so that every limit is enforced early.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::TryStreamExt as _;
use reqwest::header::CONTENT_ENCODING;
use tokio::io::{AsyncBufRead, AsyncRead, AsyncReadExt as _, ReadBuf};
use tokio::time::Instant;
use tokio_util::io::StreamReader;

use super::Head;
use super::cause;
use super::coding::{self, Coding};
use super::error::Error;
use super::limits::{Limits, Pace, Size};

/// The decoded body of one response.
pub(super) struct Body {
    source: BodySource,
    host: String,
    limits: Limits,
    wire: Arc<AtomicU64>,
    decoded: u64,
    meter: Meter,
}

enum BodySource {
    Plain(reqwest::Response),
    Decoded(coding::Reader, BytesMut),
}

impl Body {
    /// Prepares to read the body of `response`; `spent` is the time already used by the fetch.
    pub(super) async fn open(
        response: reqwest::Response,
        head: &Head,
        limits: &Limits,
        spent: Duration,
    ) -> Result<Self, Error> {
        let host = head.final_url.host_str().unwrap_or_default();
        let codings = coding::listed(head.headers.get_all(CONTENT_ENCODING))
            .map_err(|error| cause::from_coding(&error, host))?;
        let wire = Arc::new(AtomicU64::new(0));
        let mut body = Self {
            source: BodySource::Decoded(Box::pin(tokio::io::empty()), BytesMut::new()),
            host: host.to_owned(),
            limits: limits.clone(),
            meter: Meter::new(limits, limits.in_all.saturating_sub(spent), Arc::clone(&wire)),
            wire: Arc::clone(&wire),
            decoded: 0,
        };
        if codings.is_empty() {
            if response.content_length().is_some_and(|length| length > limits.body_bytes) {
                return Err(Error::TooBig { limit: Size::Body(limits.body_bytes) });
            }
            body.source = BodySource::Plain(response);
            return Ok(body);
        }
        let stream = response.bytes_stream().map_err(io::Error::other);
        let counted = Counted { inner: StreamReader::new(Box::pin(stream)), wire, limit: limits.body_bytes };
        let opening = open_all(Box::pin(counted), codings, limits.body_bytes);
        let reader = body.meter.watch(opening).await?.map_err(|error| cause::from_body(&error, host))?;
        body.source = BodySource::Decoded(reader, BytesMut::new());
        Ok(body)
    }

    /// The next chunk, or `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        const PIECE: usize = 32 * 1024;
        let piece = match &mut self.source {
            BodySource::Plain(response) => {
                let chunk = self.meter.watch(response.chunk()).await?;
                let chunk = chunk.map_err(|error| cause::from_client(&error, &self.host))?;
                if let Some(chunk) = &chunk {
                    self.wire.fetch_add(chunk.len() as u64, Ordering::Relaxed);
                }
                chunk
            }
            BodySource::Decoded(reader, buffer) => {
                buffer.reserve(PIECE);
                let read = self.meter.watch(reader.read_buf(buffer)).await?;
                let read = read.map_err(|error| cause::from_body(&error, &self.host))?;
                (read > 0).then(|| buffer.split().freeze())
            }
        };
        if let Some(piece) = &piece {
            self.decoded += piece.len() as u64;
            self.check_size()?;
            self.meter.check(Instant::now())?;
        }
        Ok(piece)
    }

    fn check_size(&self) -> Result<(), Error> {
        let Limits { body_bytes, ratio, ratio_floor_bytes, .. } = self.limits;
        if self.decoded > body_bytes {
            return Err(Error::TooBig { limit: Size::Body(body_bytes) });
        }
        let wire = self.wire.load(Ordering::Relaxed);
        if self.decoded > ratio_floor_bytes && self.decoded > wire.saturating_mul(ratio) {
            return Err(Error::TooBig { limit: Size::Ratio(ratio) });
        }
        Ok(())
    }

    /// Excludes time from the limits that we have spent ourselves.
    pub(super) fn excuse(&mut self, waited: Duration) {
        self.meter.excuse(waited);
    }
}

/// Undoes `codings`, the last one first.
///
/// The data between two codings is limited, too: it could decode to nothing for hours, during which no timer would run.
async fn open_all(
    wire: coding::BufReader,
    mut codings: Vec<Coding>,
    limit: u64,
) -> io::Result<coding::Reader> {
    let mut input = wire;
    while let Some(coding) = codings.pop() {
        let reader = coding::open(input, coding).await?;
        if codings.is_empty() {
            return Ok(reader);
        }
        let inner = tokio::io::BufReader::new(reader);
        input = Box::pin(Counted { inner, wire: Arc::new(AtomicU64::new(0)), limit });
    }
    Ok(Box::pin(input))
}

/// Enforces the time limits while a body is read.
struct Meter {
    deadline: Instant,
    window_ends: Instant,
    wire: Arc<AtomicU64>,
    wire_at_start: u64,
    limits: (Duration, u64, Duration),
}

impl Meter {
    fn new(limits: &Limits, left: Duration, wire: Arc<AtomicU64>) -> Self {
        let now = Instant::now();
        Self {
            deadline: now + left,
            window_ends: now + limits.speed_window,
            wire,
            wire_at_start: 0,
            limits: (limits.in_all, limits.min_bytes_per_sec, limits.speed_window),
        }
    }

    /// Runs `work` within the time and speed limits.
    async fn watch<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Error> {
        let mut work = std::pin::pin!(work);
        loop {
            match tokio::time::timeout_at(self.window_ends.min(self.deadline), work.as_mut()).await {
                Ok(done) => return Ok(done),
                Err(_) => self.check(Instant::now())?,
            }
        }
    }

    fn check(&mut self, now: Instant) -> Result<(), Error> {
        let (in_all, min_per_sec, window) = self.limits;
        if now >= self.deadline {
            return Err(Error::TooSlow { limit: Pace::InAll(in_all) });
        }
        if now >= self.window_ends {
            let wire = self.wire.load(Ordering::Relaxed);
            let least = (window.as_secs_f64() * min_per_sec as f64) as u64;
            if wire - self.wire_at_start < least {
                return Err(Error::TooSlow { limit: Pace::Speed(min_per_sec) });
            }
            self.wire_at_start = wire;
            self.window_ends = now + window;
        }
        Ok(())
    }

    fn excuse(&mut self, waited: Duration) {
        self.deadline += waited;
        self.window_ends += waited;
    }
}

/// The encoded body, counted as the decoder reads it.
struct Counted<R> {
    inner: R,
    wire: Arc<AtomicU64>,
    limit: u64,
}

/// The encoded body is larger than the decoded one may be.
#[derive(Debug, thiserror::Error)]
#[error("the compressed body is too large")]
pub(super) struct WireTooBig(pub(super) u64);

impl<R: AsyncBufRead + Unpin> AsyncBufRead for Counted<R> {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let this = self.get_mut();
        if this.wire.load(Ordering::Relaxed) > this.limit {
            return Poll::Ready(Err(io::Error::other(WireTooBig(this.limit))));
        }
        Pin::new(&mut this.inner).poll_fill_buf(cx)
    }

    fn consume(self: Pin<&mut Self>, amount: usize) {
        let this = self.get_mut();
        this.wire.fetch_add(amount as u64, Ordering::Relaxed);
        Pin::new(&mut this.inner).consume(amount);
    }
}

impl<R: AsyncBufRead + Unpin> AsyncRead for Counted<R> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let available = std::task::ready!(Pin::new(&mut *this).poll_fill_buf(cx))?;
        let amount = available.len().min(buf.remaining());
        buf.put_slice(&available[..amount]);
        Pin::new(this).consume(amount);
        Poll::Ready(Ok(()))
    }
}
