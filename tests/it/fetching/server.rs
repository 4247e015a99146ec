//! A loopback server that sends given bytes and records its requests.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tsuzuki::fetch::{AllowPrivate, Error, FetchConfig, Fetcher, Limits, Manners, Request, Response};
use tsuzuki::time::Clock;
use url::Url;

/// Stops when dropped.
pub(crate) struct Server {
    pub(crate) addr: SocketAddr,
    seen: Arc<Seen>,
    task: JoinHandle<()>,
}

#[derive(Default)]
pub(crate) struct Seen {
    heads: Mutex<Vec<String>>,
    sent: AtomicU64,
    under_way: AtomicUsize,
    most: AtomicUsize,
}

/// A request and the connection for its answer.
pub(crate) struct Asked {
    pub(crate) head: String,
    pub(crate) path: String,
    stream: TcpStream,
    seen: Arc<Seen>,
}

impl Asked {
    /// Sends `bytes`; `false` when the client has gone.
    pub(crate) async fn say(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        let sent = self.stream.write_all(bytes.as_ref()).await.is_ok();
        if sent {
            self.seen.sent.fetch_add(bytes.as_ref().len() as u64, Ordering::SeqCst);
        }
        sent
    }

    /// Waits for the next request on the same connection, without answering it.
    pub(crate) async fn wait_for_more(&mut self) {
        let _ = self.stream.read(&mut [0; 4096]).await;
    }

    /// Waits until the client hangs up.
    pub(crate) async fn hang(&mut self) {
        let mut rest = [0; 64];
        while !matches!(self.stream.read(&mut rest).await, Ok(0) | Err(_)) {}
    }
}

impl Server {
    /// Serves with `answer`, one request per connection unless it asks for more.
    pub(crate) async fn start<F, Fut>(answer: F) -> Self
    where
        F: Fn(Asked) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send,
    {
        Self::start_at("127.0.0.1:0", answer).await
    }

    pub(crate) async fn start_at<F, Fut>(addr: &str, answer: F) -> Self
    where
        F: Fn(Asked) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send,
    {
        let listener = TcpListener::bind(addr).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        let shared = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (answer, seen) = (answer.clone(), Arc::clone(&shared));
                tokio::spawn(async move {
                    let Some(asked) = read_head(stream, &seen).await else { return };
                    let now = seen.under_way.fetch_add(1, Ordering::SeqCst) + 1;
                    seen.most.fetch_max(now, Ordering::SeqCst);
                    answer(asked).await;
                    seen.under_way.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self { addr, seen, task }
    }

    /// Answers every request with the bytes that `answer` returns for its path.
    pub(crate) async fn with(answer: fn(&str) -> Vec<u8>) -> Self {
        Self::start(move |mut asked: Asked| async move {
            let bytes = answer(&asked.path);
            asked.say(bytes).await;
        })
        .await
    }

    pub(crate) fn url(&self, path: &str) -> Url {
        Url::parse(&format!("http://{}{path}", self.addr)).unwrap()
    }

    /// The heads of all requests so far, in lower case.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.seen.heads.lock().unwrap().clone()
    }

    /// Bytes that left the server.
    pub(crate) fn sent(&self) -> u64 {
        self.seen.sent.load(Ordering::SeqCst)
    }

    /// The most requests that were under way at the same time.
    pub(crate) fn most_at_once(&self) -> usize {
        self.seen.most.load(Ordering::SeqCst)
    }

    /// Requests under way now.
    pub(crate) fn under_way(&self) -> usize {
        self.seen.under_way.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn read_head(mut stream: TcpStream, seen: &Arc<Seen>) -> Option<Asked> {
    let mut bytes = Vec::new();
    while !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    let text = String::from_utf8(bytes).unwrap();
    let path = text.split(' ').nth(1).unwrap().to_owned();
    let head = text.to_lowercase();
    seen.heads.lock().unwrap().push(head.clone());
    Some(Asked { head, path, stream, seen: Arc::clone(seen) })
}

/// A complete answer with a status line, headers and a body.
pub(crate) fn answer(status: u16, headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let mut bytes =
        format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n{headers}\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

pub(crate) fn redirect(status: u16, location: &str) -> Vec<u8> {
    answer(status, &format!("location: {location}\r\n"), "")
}

/// All of 127.0.0.0/8, where the servers are.
pub(crate) fn loopback() -> AllowPrivate {
    AllowPrivate::parse(&["127.0.0.0/8"]).unwrap()
}

pub(crate) fn get(url: Url) -> Request {
    Request::get(url).allow_private(&loopback())
}

/// A fetcher in a hurry: without spacing, so that tests do not wait.
pub(crate) fn fetcher(limits: Limits) -> Fetcher {
    fetcher_at(limits, Clock::system())
}

pub(crate) fn fetcher_at(limits: Limits, clock: Clock) -> Fetcher {
    let manners = Manners { at_once: 2, spacing: std::time::Duration::ZERO };
    Fetcher::new(FetchConfig { limits, manners, ..FetchConfig::default() }, clock).unwrap()
}

/// Fetches with the usual limits.
pub(crate) async fn fetch(url: Url) -> Result<Response, Error> {
    fetcher(Limits::default()).fetch(&get(url)).await
}

/// The body of a response that must have one.
pub(crate) fn body(response: Result<Response, Error>) -> Vec<u8> {
    match response.unwrap() {
        Response::Fetched(_, body) => body.to_vec(),
        Response::Unchanged(head) => panic!("unchanged: {head:?}"),
    }
}
