//! A Mastodon server for one account: it honours idempotency keys or not, and records every post.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use url::Url;

use super::faults::Script;
use super::journal::{Memory, Record};
use super::open::{CountingListener, OpenCount};
use super::server::{self, Serving, answer_json, header};
use crate::time::{Clock, Timestamp};

/// The access token that the server accepts.
pub const TOKEN: &str = "loopback-token";
/// How long keys are honoured.
const KEY_LIFE: Duration = Duration::from_secs(3600);

/// A post.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Toot {
    pub id: u64,
    pub created_at: Timestamp,
    /// The request.
    pub request: Value,
    /// The idempotency key.
    pub key: Option<String>,
}

/// The server; stops when dropped.
#[derive(Debug)]
pub struct MastodonServer {
    pub url: Url,
    /// The faults of posts.
    pub posts: Script,
    /// The faults of all other requests.
    pub reads: Script,
    /// Its open connections.
    pub open: OpenCount,
    inner: Arc<Mutex<Inner>>,
    _serving: Serving,
}

#[derive(Debug, Default)]
struct Inner {
    toots: Vec<Toot>,
    keys: HashMap<String, (u64, Timestamp)>,
    honours_keys: bool,
    max_characters: u64,
}

#[derive(Clone)]
struct Server {
    posts: Script,
    reads: Script,
    inner: Arc<Mutex<Inner>>,
    clock: Clock,
    record: Record<Toot>,
}

impl MastodonServer {
    /// Starts on a free port of this machine; it honours keys.
    pub async fn start(clock: Clock) -> std::io::Result<Self> {
        Self::start_on(TcpListener::bind(("127.0.0.1", 0)).await?, clock, Memory::default())
    }

    /// Starts on `listener` with earlier posts; it honours keys.
    pub fn start_on(listener: TcpListener, clock: Clock, memory: Memory<Toot>) -> std::io::Result<Self> {
        let url = server::url(&listener, "/")?;
        let open = OpenCount::default();
        let listener = CountingListener { inner: listener, open: open.clone() };
        let keys =
            memory.before.iter().filter_map(|toot| Some((toot.key.clone()?, (toot.id, toot.created_at))));
        let inner =
            Inner { keys: keys.collect(), toots: memory.before, honours_keys: true, max_characters: 500 };
        let server = Server {
            posts: Script::default(),
            reads: Script::default(),
            inner: Arc::new(Mutex::new(inner)),
            clock,
            record: memory.record,
        };
        let router = Router::new()
            .route("/api/v1/statuses", post(make))
            .route("/api/v1/accounts/verify_credentials", get(who))
            .route("/api/v1/accounts/{id}/statuses", get(list))
            .route("/api/v2/instance", get(instance))
            .with_state(server.clone());
        let _serving = server::start(listener, router);
        let Server { posts, reads, inner, .. } = server;
        Ok(Self { url, posts, reads, open, inner, _serving })
    }

    /// Ignores keys from now on.
    pub fn ignore_keys(&self) {
        self.inner.lock().honours_keys = false;
    }

    /// Sets the limit of characters.
    pub fn allow_characters(&self, max: u64) {
        self.inner.lock().max_characters = max;
    }

    /// Every post, in order.
    pub fn toots(&self) -> Vec<Toot> {
        self.inner.lock().toots.clone()
    }
}

fn is_ours(headers: &HeaderMap) -> bool {
    header(headers, "authorization") == Some(format!("Bearer {TOKEN}"))
}

async fn make(State(server): State<Server>, headers: HeaderMap, body: Bytes) -> Response<Body> {
    if !is_ours(&headers) {
        return answer_json(401, &json!({ "error": "The access token is invalid" }));
    }
    let fault = server.posts.draw();
    let made = match &fault {
        Some(fault) if !fault.has_effect() => None,
        _ => Some(server.make(&headers, &body)),
    };
    match (fault, made) {
        (Some(fault), _) => fault.play().await,
        (None, Some(made)) => made,
        (None, None) => answer_json(500, &Value::Null),
    }
}

impl Server {
    fn make(&self, headers: &HeaderMap, body: &[u8]) -> Response<Body> {
        let Ok(request) = serde_json::from_slice::<Value>(body) else {
            return answer_json(400, &json!({ "error": "not JSON" }));
        };
        let now = self.clock.now();
        let key = header(headers, "idempotency-key");
        let mut inner = self.inner.lock();
        if let Some(key) = key.as_ref().filter(|_| inner.honours_keys)
            && let Some((id, at)) = inner.keys.get(key)
            && now.since(*at) < KEY_LIFE
            && let Some(known) = inner.toots.iter().find(|toot| toot.id == *id)
        {
            return answer_json(200, &show(known));
        }
        let text = request["status"].as_str().unwrap_or_default();
        let price = |word: &str| if word.starts_with("https://") { 23 } else { word.chars().count() };
        let length = text.split_inclusive([' ', '\n']).map(|word| {
            if word.ends_with([' ', '\n']) { price(&word[..word.len() - 1]) + 1 } else { price(word) }
        });
        let length = length.sum::<usize>() as u64;
        if text.trim().is_empty() || length > inner.max_characters {
            return answer_json(422, &json!({ "error": "Validation failed: Text character limit exceeded" }));
        }
        let toot = Toot { id: inner.toots.len() as u64 + 1, created_at: now, request, key };
        if self.record.note(&toot).is_err() {
            return answer_json(500, &json!({ "error": "the post cannot be kept" }));
        }
        if let Some(key) = &toot.key {
            inner.keys.insert(key.clone(), (toot.id, now));
        }
        let shown = show(&toot);
        inner.toots.push(toot);
        answer_json(200, &shown)
    }
}

/// A post as the API shows it: paragraphs, and anchors for links.
fn show(toot: &Toot) -> Value {
    let escape = |text: &str| {
        text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
    };
    let text = toot.request["status"].as_str().unwrap_or_default();
    let words = text.split(' ').map(|word| {
        let lines = word.split('\n').map(|line| {
            if line.starts_with("https://") || line.starts_with("http://") {
                format!("<a href=\"{0}\" rel=\"nofollow\"><span>{0}</span></a>", escape(line))
            } else {
                escape(line)
            }
        });
        lines.collect::<Vec<_>>().join("<br>")
    });
    json!({
        "id": toot.id.to_string(),
        "created_at": toot.created_at,
        "content": format!("<p>{}</p>", words.collect::<Vec<_>>().join(" ")),
        "visibility": toot.request["visibility"],
        "url": format!("https://mastodon.example/@bot/{}", toot.id),
    })
}

async fn who(State(server): State<Server>, headers: HeaderMap) -> Response<Body> {
    if let Some(fault) = server.reads.draw() {
        return fault.play().await;
    }
    if is_ours(&headers) {
        answer_json(200, &json!({ "id": "1", "acct": "bot", "username": "bot" }))
    } else {
        answer_json(401, &json!({ "error": "The access token is invalid" }))
    }
}

async fn list(
    State(server): State<Server>,
    Path(_): Path<String>,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
) -> Response<Body> {
    if let Some(fault) = server.reads.draw() {
        return fault.play().await;
    }
    if !is_ours(&headers) {
        return answer_json(401, &json!({ "error": "The access token is invalid" }));
    }
    let limit = query.get("limit").and_then(|limit| limit.parse().ok()).unwrap_or(20_usize).min(40);
    let before = query.get("max_id").and_then(|id| id.parse().ok()).unwrap_or(u64::MAX);
    let inner = server.inner.lock();
    let page = inner.toots.iter().rev().filter(|toot| toot.id < before).take(limit).map(show);
    answer_json(200, &page.collect())
}

async fn instance(State(server): State<Server>) -> Json<Value> {
    let max_characters = server.inner.lock().max_characters;
    Json(json!({
        "configuration": { "statuses": { "max_characters": max_characters, "characters_reserved_per_url": 23 } }
    }))
}
