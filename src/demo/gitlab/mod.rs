//! A GitLab on this machine: the documented API over real git repositories, or over generated histories.
//!
//! It pages like GitLab (no totals, `x-next-page` and `Link`), accepts a SHA or `old..new` as `ref_name`, checks
//! tokens, limits rates and fails on request. All requests are recorded.

mod answer;
mod history;
mod repository;

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Request, Response};
use parking_lot::Mutex;

pub use history::{Change, History};
pub use repository::Repository;

use super::server::{self, Serving};

/// A running fake; it stops when dropped.
pub struct GitLab {
    address: std::net::SocketAddr,
    world: Arc<World>,
    _serving: Serving,
}

/// A received request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The segments of the path below `/api/v4/`, decoded.
    pub segments: Vec<String>,
    /// The parameters, decoded, in order.
    pub query: Vec<(String, String)>,
    pub token: Option<String>,
    /// The header of the token.
    pub token_by: Option<&'static str>,
    /// The number of requests before it.
    pub number: usize,
}

impl Asked {
    /// Whether it requests a page of commits.
    pub fn is_for_commits(&self) -> bool {
        self.segments.last().is_some_and(|last| last == "commits")
    }

    /// Whether it requests a single commit.
    pub fn is_for_one_commit(&self) -> bool {
        self.segments.len() == 5 && self.segments[3] == "commits"
    }

    /// The value of a parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// The fault of a request.
#[derive(Clone)]
pub enum Fault {
    /// This answer instead.
    Status(u16, Vec<(&'static str, String)>, &'static str),
    /// No answer.
    Hang,
    /// The answer is changed.
    Edit(fn(&mut serde_json::Value)),
    /// Headers of the answer are set or removed.
    Headers(Vec<(&'static str, Option<String>)>),
}

impl Fault {
    /// GitLab's answer to too many requests.
    pub fn too_many(retry_after_secs: u32) -> Self {
        Fault::Status(429, vec![("retry-after", retry_after_secs.to_string())], "Retry later\n")
    }

    /// GitLab's answer to an expired token.
    pub fn expired() -> Self {
        let body = r#"{"error":"invalid_token","error_description":"Token is expired. You can either do re-authorization or token refresh."}"#;
        Fault::Status(401, vec![("content-type", "application/json".into())], body)
    }
}

type FaultRule = Arc<dyn Fn(&Asked) -> Option<Fault> + Send + Sync>;

#[derive(Clone)]
pub(crate) struct FakeProject {
    pub(crate) id: i64,
    pub(crate) path: String,
    pub(crate) repository: Repository,
    pub(crate) is_archived: bool,
    pub(crate) shared_with: Option<String>,
}

/// GitLab's answer to an unknown `ref_name`; both have been observed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownRevision {
    /// 404.
    #[default]
    NotFound,
    /// 200 with an empty list.
    Empty,
}

#[derive(Default)]
struct Settings {
    projects: Vec<FakeProject>,
    token: Option<String>,
    fault: Option<FaultRule>,
    asked: Vec<Asked>,
    answered: Vec<u16>,
    unknown_revision: UnknownRevision,
    most_per_page: Option<usize>,
    keeps_log: bool,
}

type World = Mutex<Settings>;

impl GitLab {
    /// Starts one on a free port of this machine.
    pub async fn start() -> std::io::Result<Self> {
        Self::start_on(tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?)
    }

    /// Starts one on `listener`.
    pub fn start_on(listener: tokio::net::TcpListener) -> std::io::Result<Self> {
        let address = listener.local_addr()?;
        let world = Arc::new(World::default());
        world.lock().keeps_log = true;
        let router = Router::new().fallback(serve).with_state(Arc::clone(&world));
        Ok(Self { address, world, _serving: server::start(listener, router) })
    }

    /// Its address, for the key `gitlab`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Adds a project over the git repository in `directory`.
    pub fn add_repository(&self, id: i64, path: &str, directory: impl Into<PathBuf>) {
        self.add(id, path, Repository::Git(directory.into()));
    }

    /// Adds a project with a generated history of that many commits on `main`.
    pub fn add_synthetic(&self, id: i64, path: &str, commits: usize) {
        self.add(id, path, Repository::Synthetic { id, commits });
    }

    /// Adds a project over a history in memory, which can grow.
    pub fn add_history(&self, id: i64, path: &str, history: History) {
        self.add(id, path, Repository::Made(history));
    }

    /// Archives a project.
    pub fn set_archived(&self, id: i64) {
        self.world
            .lock()
            .projects
            .iter_mut()
            .filter(|project| project.id == id)
            .for_each(|project| project.is_archived = true);
    }

    /// Shares a project with a group that it is not in.
    pub fn share(&self, id: i64, group: &str) {
        let mut settings = self.world.lock();
        let shared = settings.projects.iter_mut().filter(|project| project.id == id);
        shared.for_each(|project| project.shared_with = Some(group.to_owned()));
    }

    fn add(&self, id: i64, path: &str, repository: Repository) {
        let mut settings = self.world.lock();
        settings.projects.retain(|project| project.id != id);
        let (path, is_archived, shared_with) = (path.to_owned(), false, None);
        settings.projects.push(FakeProject { id, path, repository, is_archived, shared_with });
    }

    /// Sets the only valid token.
    pub fn set_token(&self, token: &str) {
        self.world.lock().token = Some(token.to_owned());
    }

    /// Sets the rule for faults.
    pub fn set_fault(&self, rule: impl Fn(&Asked) -> Option<Fault> + Send + Sync + 'static) {
        self.world.lock().fault = Some(Arc::new(rule));
    }

    /// Removes the rule for faults.
    pub fn reset_fault(&self) {
        self.world.lock().fault = None;
    }

    /// Sets the answer to an unknown `ref_name`.
    pub fn set_unknown_revision(&self, answer: UnknownRevision) {
        self.world.lock().unknown_revision = answer;
    }

    /// Limits the size of pages.
    pub fn set_most_per_page(&self, most: usize) {
        self.world.lock().most_per_page = Some(most);
    }

    /// Stops recording requests, for measurements.
    pub fn forget_requests(&self) {
        let mut settings = self.world.lock();
        settings.keeps_log = false;
        settings.asked.clear();
    }

    /// Every request so far.
    pub fn requests(&self) -> Vec<Asked> {
        self.world.lock().asked.clone()
    }

    /// The statuses of the answers so far.
    pub fn statuses(&self) -> Vec<u16> {
        self.world.lock().answered.clone()
    }
}

async fn serve(State(world): State<Arc<World>>, request: Request<Body>) -> Response<Body> {
    let asked = answer::read_request(&request, world.lock().asked.len());
    let (fault, token) = {
        let mut settings = world.lock();
        if settings.keeps_log {
            settings.asked.push(asked.clone());
        }
        (settings.fault.clone().and_then(|rule| rule(&asked)), settings.token.clone())
    };
    let mut response = match &fault {
        Some(Fault::Hang) => std::future::pending().await,
        Some(Fault::Status(status, headers, body)) => server::answer(*status, headers, *body),
        _ if !answer::is_allowed(&request, token.as_deref()) => answer::message(401, "401 Unauthorized"),
        _ => answer::answer(&world, &asked).await,
    };
    match fault {
        Some(Fault::Edit(edit)) => response = answer::edited(response, edit).await,
        Some(Fault::Headers(headers)) => answer::set_headers(&mut response, headers),
        _ => {}
    }
    let mut settings = world.lock();
    if settings.keeps_log {
        settings.answered.push(response.status().as_u16());
    }
    response
}
