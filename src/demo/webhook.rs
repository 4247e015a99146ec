//! A receiver of webhooks that records every post; it also replaces Slack.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, Response};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use url::Url;

use super::faults::{Fault, Script};
use super::server::{self, Serving};

/// A post that had its effect.
#[derive(Clone, Debug)]
pub struct Post {
    pub headers: HeaderMap,
    pub body: String,
}

/// The receiver; stops when dropped.
#[derive(Debug)]
pub struct WebhookServer {
    /// The address to post to.
    pub url: Url,
    /// Its faults.
    pub script: Script,
    log: Arc<Mutex<Vec<Post>>>,
    _serving: Serving,
}

#[derive(Clone)]
struct Server {
    script: Script,
    log: Arc<Mutex<Vec<Post>>>,
}

impl WebhookServer {
    /// Starts on a free port of this machine.
    pub async fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = server::url(&listener, "/hook/s3cret")?;
        let server = Server { script: Script::default(), log: Arc::default() };
        let router = Router::new().fallback(take).with_state(server.clone());
        let _serving = server::start(listener, router);
        Ok(Self { url, script: server.script, log: server.log, _serving })
    }

    /// Every post that had its effect, in order.
    pub fn posts(&self) -> Vec<Post> {
        self.log.lock().clone()
    }
}

async fn take(
    State(server): State<Server>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    if method != Method::POST {
        return Response::new(Body::from("this is a webhook"));
    }
    let fault = server.script.draw();
    if fault.as_ref().is_none_or(Fault::has_effect) {
        let body = String::from_utf8_lossy(&body).into_owned();
        server.log.lock().push(Post { headers, body });
    }
    match fault {
        Some(fault) => fault.play().await,
        None => Response::new(Body::from("ok")),
    }
}
