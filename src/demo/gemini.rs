//! A Gemini API without a model: generateContent and the Files API, with every kind of reply and fault on request.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, Response};
use parking_lot::Mutex;
use serde_json::{Value as Json, json};
use tokio::net::TcpListener;
use url::Url;

use super::faults::Fault;
use super::opinion::think;
use super::server::{self, Serving, answer_json, header};

/// The API key that it accepts.
pub const KEY: &str = "loopback-gemini-key-0123456789";

/// Its models, as in the real list: aliases and versions.
const MODELS: [&str; 6] = [
    "gemini-3.5-flash",
    "gemini-flash-latest",
    "gemini-3.1-flash-lite",
    "gemini-flash-lite-latest",
    "gemini-3.1-pro-preview",
    "gemini-pro-latest",
];
/// Models on a page of the list, whatever was requested.
const MODELS_PER_PAGE: usize = 2;

/// The reply to a question.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// The verdict or summary of `super::opinion`.
    Usual,
    /// With this text as the model's answer.
    Text(String),
    /// The usual reply with this `usageMetadata`.
    Costing(Json),
    /// With a candidate that ended for this reason.
    Finish(&'static str),
    BlockedPrompt,
    /// No candidate at all.
    NoCandidates,
    /// Too many requests in this minute; retry after so many seconds.
    PerMinute(u32),
    /// Too many tokens in this minute.
    TokensPerMinute,
    /// Too many requests today.
    PerDay,
    /// This status, with a message that repeats the caller's key.
    EchoKey(u16),
    Status(u16),
    /// The request has a field that it does not know or accept.
    BadField(&'static str),
    /// 400 with this message, without a hint at the cause.
    BadRequest(&'static str),
    /// A body that is not an answer of this API.
    Garbage,
    /// A fault of the server.
    Fault(Fault),
}

/// A received request.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Method and address, including the query.
    pub line: String,
    pub key: Option<String>,
    /// Its body, if it is JSON.
    pub body: Json,
    /// The length of its body.
    pub bytes: usize,
}

impl Asked {
    /// Whether it is a question to a model.
    pub fn is_question(&self) -> bool {
        self.line.contains(":generateContent")
    }

    /// Whether it asks for a summary rather than a verdict.
    pub(super) fn is_summary(&self) -> bool {
        self.body["generationConfig"]["responseSchema"]["properties"]["verdict"].is_null()
    }

    /// The text of the question.
    pub fn text(&self) -> &str {
        self.body["contents"][0]["parts"][0]["text"].as_str().unwrap_or_default()
    }
}

/// The server; stops when dropped.
#[derive(Debug)]
pub struct Gemini {
    pub url: Url,
    server: Server,
    _serving: Serving,
}

type Server = Arc<Mutex<Inner>>;

#[derive(Debug, Default)]
struct Inner {
    next: VecDeque<Reply>,
    always: Option<Reply>,
    /// Replies to documents with certain words.
    about: Vec<(&'static str, Reply)>,
    log: Vec<Asked>,
    files: Vec<String>,
    uploads: u32,
}

impl Gemini {
    /// Starts on a free port of this machine.
    pub async fn start() -> std::io::Result<Self> {
        Self::start_on(TcpListener::bind(("127.0.0.1", 0)).await?)
    }

    /// Starts on `listener`.
    pub fn start_on(listener: TcpListener) -> std::io::Result<Self> {
        let url = server::url(&listener, "/")?;
        let server = Server::default();
        let router = Router::new()
            .fallback(serve)
            .layer(axum::extract::DefaultBodyLimit::disable())
            .with_state(server.clone());
        let _serving = server::start(listener, router);
        Ok(Self { url, server, _serving })
    }

    /// Sets the reply to the next question.
    pub fn next(&self, reply: Reply) {
        self.server.lock().next.push_back(reply);
    }

    /// Sets the reply to all further questions; `None` removes it.
    pub fn always(&self, reply: Option<Reply>) {
        self.server.lock().always = reply;
    }

    /// Sets the reply to every summary of a document with these words.
    pub fn about(&self, words: &'static str, reply: Reply) {
        self.server.lock().about.push((words, reply));
    }

    /// Every request so far.
    pub fn log(&self) -> Vec<Asked> {
        self.server.lock().log.clone()
    }

    /// Every question to a model so far.
    pub fn questions(&self) -> Vec<Asked> {
        self.log().into_iter().filter(Asked::is_question).collect()
    }

    /// Uploads that were not deleted.
    pub fn files(&self) -> Vec<String> {
        self.server.lock().files.clone()
    }
}

async fn serve(State(server): State<Server>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default();
    let key = header(&parts.headers, "x-goog-api-key");
    let asked = Asked {
        line: format!("{} {}", parts.method, parts.uri),
        key: key.clone(),
        body: serde_json::from_slice(&bytes).unwrap_or_default(),
        bytes: bytes.len(),
    };
    let path = parts.uri.path().to_owned();
    server.lock().log.push(asked.clone());
    if key.as_deref() != Some(KEY) {
        return error(
            400,
            "INVALID_ARGUMENT",
            "API key not valid.",
            &json!([{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID",
                      "domain": "googleapis.com", "metadata": { "service": "generativelanguage.googleapis.com" } }]),
        );
    }
    match (&parts.method, path.as_str()) {
        (&Method::POST, "/upload/v1beta/files") => begin_upload(&parts.headers),
        (&Method::POST, "/upload/session") => end_upload(&server, &parts.headers, &bytes),
        (&Method::GET, path) if path.starts_with("/v1beta/files/") => find_file(&server, path),
        (&Method::GET, "/v1beta/models") => list_models(parts.uri.query().unwrap_or_default()),
        (&Method::GET, path) if path.starts_with("/v1beta/models/") => {
            match MODELS.into_iter().find(|name| path.ends_with(&format!("/{name}"))) {
                Some(name) => good(&model(name)),
                None => unknown_model(path),
            }
        }
        (&Method::DELETE, path) if path.starts_with("/v1beta/files/") => delete_file(&server, path),
        (&Method::POST, path)
            if path.ends_with(":generateContent")
                && !MODELS.iter().any(|name| path.ends_with(&format!("/{name}:generateContent"))) =>
        {
            unknown_model(path)
        }
        (&Method::POST, path) if path.ends_with(":generateContent") => {
            let reply = {
                let mut inner = server.lock();
                let mut about = inner.about.iter().filter(|_| asked.is_summary());
                let about =
                    about.find(|(words, _)| asked.text().contains(words)).map(|(_, reply)| reply.clone());
                let planned = about.or_else(|| inner.next.pop_front()).or_else(|| inner.always.clone());
                planned.unwrap_or(Reply::Usual)
            };
            answer(reply, &asked).await
        }
        _ => error(404, "NOT_FOUND", "no such method", &json!([])),
    }
}

fn model(name: &str) -> Json {
    json!({ "name": format!("models/{name}"), "displayName": name,
            "supportedGenerationMethods": ["generateContent", "countTokens"] })
}

/// One page of the models, including one that cannot be used.
fn list_models(query: &str) -> Response<Body> {
    let token = url::form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == "pageToken");
    let from: usize = token.and_then(|(_, token)| token.parse().ok()).unwrap_or(0);
    let mut models: Vec<Json> =
        MODELS.iter().skip(from).take(MODELS_PER_PAGE).map(|name| model(name)).collect();
    models.push(
        json!({ "name": "models/gemini-embedding-001", "supportedGenerationMethods": ["embedContent"] }),
    );
    let next = from + MODELS_PER_PAGE;
    let mut page = json!({ "models": models });
    if next < MODELS.len() {
        page["nextPageToken"] = json!(next.to_string());
    }
    good(&page)
}

fn unknown_model(path: &str) -> Response<Body> {
    let name = path.trim_start_matches("/v1beta/").split(':').next().unwrap_or_default();
    let message = format!(
        "{name} is not found for API version v1beta, or is not supported for generateContent. Call ListModels to \
         see the list of available models and their supported methods."
    );
    error(404, "NOT_FOUND", &message, &json!([]))
}

fn begin_upload(headers: &HeaderMap) -> Response<Body> {
    let is_start = header(headers, "x-goog-upload-command").as_deref() == Some("start");
    let host = header(headers, "host").unwrap_or_default();
    if !is_start {
        error(400, "INVALID_ARGUMENT", "an upload begins with `start`", &json!([]))
    } else {
        server::answer(200, &[("x-goog-upload-url", format!("http://{host}/upload/session"))], Body::empty())
    }
}

fn end_upload(server: &Server, headers: &HeaderMap, bytes: &Bytes) -> Response<Body> {
    if header(headers, "x-goog-upload-command").as_deref() != Some("upload, finalize") {
        return error(400, "INVALID_ARGUMENT", "an upload ends with `finalize`", &json!([]));
    }
    let mut inner = server.lock();
    inner.uploads += 1;
    let name = format!("files/upload-{}", inner.uploads);
    inner.files.push(name.clone());
    good(&json!({ "file": { "name": name, "uri": format!("https://files.invalid/{name}"), "state": "ACTIVE",
                           "sizeBytes": bytes.len().to_string() } }))
}

fn find_file(server: &Server, path: &str) -> Response<Body> {
    let name = path.trim_start_matches("/v1beta/").to_owned();
    if server.lock().files.contains(&name) {
        good(&json!({ "name": name, "uri": format!("https://files.invalid/{name}"), "state": "ACTIVE" }))
    } else {
        error(403, "PERMISSION_DENIED", "no such file", &json!([]))
    }
}

fn delete_file(server: &Server, path: &str) -> Response<Body> {
    let name = path.trim_start_matches("/v1beta/");
    server.lock().files.retain(|file| file != name);
    good(&json!({}))
}

async fn answer(reply: Reply, asked: &Asked) -> Response<Body> {
    match reply {
        Reply::Usual => candidate(&think(asked), "STOP"),
        Reply::Text(text) => candidate(&text, "STOP"),
        Reply::Costing(usage) => {
            let mut body = finished(&think(asked), "STOP");
            body["usageMetadata"] = usage;
            good(&body)
        }
        Reply::Finish(reason) => candidate("", reason),
        Reply::BlockedPrompt => good(&json!({ "promptFeedback": { "blockReason": "PROHIBITED_CONTENT" },
                                             "usageMetadata": { "promptTokenCount": 100 } })),
        Reply::NoCandidates => good(&json!({ "usageMetadata": { "promptTokenCount": 100 } })),
        Reply::PerMinute(secs) => {
            exhausted("GenerateRequestsPerMinutePerProjectPerModel-FreeTier", Some(secs), asked)
        }
        Reply::TokensPerMinute => {
            exhausted("GenerateContentInputTokensPerModelPerMinute-FreeTier", Some(40), asked)
        }
        Reply::PerDay => exhausted("GenerateRequestsPerDayPerProjectPerModel-FreeTier", Some(20), asked),
        Reply::EchoKey(status) => {
            let key = asked.key.as_deref().unwrap_or_default();
            error(status, "INTERNAL", &format!("request ?key={key} failed"), &json!([{ "debug": key }]))
        }
        Reply::Status(status) => error(status, status_word(status), "the model is overloaded", &json!([])),
        Reply::BadField(field) => {
            let why = format!(
                "Invalid JSON payload received. Unknown name \"{field}\" at 'generation_config': Cannot find field."
            );
            let details = json!([{ "@type": "type.googleapis.com/google.rpc.BadRequest",
                                   "fieldViolations": [{ "field": "generation_config", "description": why }] }]);
            error(400, "INVALID_ARGUMENT", &why, &details)
        }
        Reply::BadRequest(message) => error(400, "INVALID_ARGUMENT", message, &json!([])),
        Reply::Garbage => Response::new(Body::from("<html>proxy</html>")),
        Reply::Fault(fault) => fault.play().await,
    }
}

/// The word that goes with a status.
fn status_word(status: u16) -> &'static str {
    match status {
        400 | 413 | 422 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        500 => "INTERNAL",
        _ => "UNAVAILABLE",
    }
}

fn exhausted(quota: &str, secs: Option<u32>, asked: &Asked) -> Response<Body> {
    let model = asked.line.rsplit('/').next().and_then(|end| end.split(':').next()).unwrap_or_default();
    let mut details = vec![json!({ "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                                   "violations": [{
                                       "quotaMetric": "generativelanguage.googleapis.com/generate_content_free_tier_requests",
                                       "quotaId": quota, "quotaValue": "20",
                                       "quotaDimensions": { "location": "global", "model": model } }] })];
    if let Some(secs) = secs {
        details.push(
            json!({ "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": format!("{secs}s") }),
        );
    }
    error(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota.", &Json::Array(details))
}

fn candidate(text: &str, finish: &str) -> Response<Body> {
    good(&finished(text, finish))
}

fn finished(text: &str, finish: &str) -> Json {
    json!({
        "candidates": [{ "content": { "role": "model", "parts": [{ "text": text }] }, "finishReason": finish }],
        "usageMetadata": { "promptTokenCount": 100, "candidatesTokenCount": 50, "totalTokenCount": 150 },
    })
}

fn good(body: &Json) -> Response<Body> {
    answer_json(200, body)
}

fn error(status: u16, code: &str, message: &str, details: &Json) -> Response<Body> {
    let body = json!({ "error": { "code": status, "status": code, "message": message, "details": details } });
    answer_json(status, &body)
}
