//! A service with chat completions and prepared answers.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Response};
use parking_lot::Mutex;
use serde_json::{Value as Json, json};
use tokio::net::TcpListener;
use url::Url;

use super::server::{self, Serving, answer_json, header};

/// A received request.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Its `Authorization` header.
    pub authorization: Option<String>,
    pub body: Json,
    /// Its body as received, as the order of keys matters.
    pub text: String,
}

/// The server; stops when dropped.
#[derive(Debug)]
pub struct OpenAi {
    /// The value for `base_url`.
    pub url: Url,
    server: Server,
    _serving: Serving,
}

type Server = Arc<Mutex<Inner>>;

#[derive(Debug, Default)]
struct Inner {
    next: VecDeque<(u16, Json)>,
    log: Vec<Asked>,
    models: Vec<String>,
}

impl OpenAi {
    /// Starts on a free port of this machine.
    pub async fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = server::url(&listener, "/v1")?;
        let server = Server::default();
        let router = Router::new()
            .route("/v1/chat/completions", axum::routing::post(serve))
            .route("/v1/models", axum::routing::get(list_models))
            .with_state(server.clone());
        let _serving = server::start(listener, router);
        Ok(Self { url, server, _serving })
    }

    /// Sets the answer to the next question.
    pub fn next(&self, content: impl Into<String>) {
        let content: String = content.into();
        let body = json!({
            "choices": [{ "message": { "role": "assistant", "content": content }, "finish_reason": "stop" }],
            "usage": { "prompt_tokens": 100, "completion_tokens": 50 },
        });
        self.next_raw(200, body);
    }

    /// Sets the status and body of the answer to the next question.
    pub fn next_raw(&self, status: u16, body: Json) {
        self.server.lock().next.push_back((status, body));
    }

    /// Sets the list of models; without it, none can be listed.
    pub fn set_models(&self, models: &[&str]) {
        self.server.lock().models = models.iter().map(|&model| model.to_owned()).collect();
    }

    /// Every question so far.
    pub fn log(&self) -> Vec<Asked> {
        self.server.lock().log.clone()
    }
}

async fn list_models(State(server): State<Server>) -> Response<Body> {
    let models = server.lock().models.clone();
    let (status, body) = if models.is_empty() {
        (404, json!({ "error": { "message": "Not Found" } }))
    } else {
        let data: Vec<Json> =
            models.iter().map(|id| json!({ "id": id, "object": "model", "owned_by": "loopback" })).collect();
        (200, json!({ "object": "list", "data": data }))
    };
    answer_json(status, &body)
}

async fn serve(State(server): State<Server>, headers: HeaderMap, body: Bytes) -> Response<Body> {
    let asked = Asked {
        authorization: header(&headers, "authorization"),
        body: serde_json::from_slice(&body).unwrap_or_default(),
        text: String::from_utf8_lossy(&body).into_owned(),
    };
    let (status, answer) = {
        let mut inner = server.lock();
        inner.log.push(asked);
        inner.next.pop_front().unwrap_or((503, json!({ "error": { "message": "nothing to say" } })))
    };
    answer_json(status, &answer)
}
