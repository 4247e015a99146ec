//! Declares routes with their access. The router is built from this list, and a test walks it.

use axum::Router;
use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{MethodRouter, get, post};

use super::Pages;

/// Who may use a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Everybody, with any host name: it contains nothing without a secret in the address.
    Public,
    /// Everybody with an accepted host name: the login page.
    LogIn,
    /// Callers that may read, and tokens for feeds.
    Feed,
    /// Callers that may read.
    Read,
    /// Callers that may change something.
    Act,
}

/// One method of one path.
pub(super) struct Route {
    pub(super) method: Method,
    pub(super) path: &'static str,
    pub(super) access: Access,
    answer: MethodRouter<Pages>,
}

impl Route {
    pub(super) fn get<H, T>(path: &'static str, access: Access, handler: H) -> Self
    where
        H: Handler<T, Pages>,
        T: 'static,
    {
        Self { method: Method::GET, path, access, answer: get(handler) }
    }

    /// A POST that changes something.
    pub(super) fn act<H, T>(path: &'static str, handler: H) -> Self
    where
        H: Handler<T, Pages>,
        T: 'static,
    {
        Self::post(path, Access::Act, handler)
    }

    /// A POST with another access.
    pub(super) fn post<H, T>(path: &'static str, access: Access, handler: H) -> Self
    where
        H: Handler<T, Pages>,
        T: 'static,
    {
        Self { method: Method::POST, path, access, answer: post(handler) }
    }
}

/// The access by method and path.
#[derive(Clone, Debug)]
pub(super) struct AccessTable(Vec<(Method, &'static str, Access)>);

impl AccessTable {
    pub(super) fn new(routes: &[Route]) -> Self {
        Self(routes.iter().map(|route| (route.method.clone(), route.path, route.access)).collect())
    }

    /// The access that a request needs. Undeclared routes need the permission to read, or change, everything.
    pub(super) fn find(&self, method: &Method, path: Option<&str>) -> Access {
        let method = if method == Method::HEAD { &Method::GET } else { method };
        let declared = self.0.iter().find(|(known, at, _)| known == method && Some(*at) == path);
        match declared {
            Some((.., access)) => *access,
            // Only the router answers it, with the allowed methods.
            None if self.0.iter().any(|(_, at, access)| Some(*at) == path && *access == Access::Public) => {
                Access::Public
            }
            None if *method == Method::GET => Access::Read,
            None => Access::Act,
        }
    }
}

pub(super) fn build(routes: Vec<Route>) -> Router<Pages> {
    routes.into_iter().fold(Router::new(), |router, route| router.route(route.path, route.answer))
}
