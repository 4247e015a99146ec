//! The routes, declared: who may use each. The router is made of this list, and a test walks it.

use axum::Router;
use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{MethodRouter, get, post};

use super::Pages;

/// Who may use a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Everybody, under whatever name they reach us: it tells nothing to whoever does not know a secret part of it.
    Public,
    /// Everybody who means us: the way in.
    LogIn,
    /// Whoever may read, and whoever has a token for feeds.
    Feed,
    /// Whoever may read.
    Read,
    /// Whoever may change something.
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
    /// A page or a document.
    pub(super) fn get<H, T>(path: &'static str, access: Access, handler: H) -> Self
    where
        H: Handler<T, Pages>,
        T: 'static,
    {
        Self { method: Method::GET, path, access, answer: get(handler) }
    }

    /// Something that changes something.
    pub(super) fn act<H, T>(path: &'static str, handler: H) -> Self
    where
        H: Handler<T, Pages>,
        T: 'static,
    {
        Self::post(path, Access::Act, handler)
    }

    /// The same for whoever `access` names.
    pub(super) fn post<H, T>(path: &'static str, access: Access, handler: H) -> Self
    where
        H: Handler<T, Pages>,
        T: 'static,
    {
        Self { method: Method::POST, path, access, answer: post(handler) }
    }
}

/// Who may use which method of which path.
#[derive(Clone, Debug)]
pub(super) struct AccessTable(Vec<(Method, &'static str, Access)>);

impl AccessTable {
    pub(super) fn new(routes: &[Route]) -> Self {
        Self(routes.iter().map(|route| (route.method.clone(), route.path, route.access)).collect())
    }

    /// What a request needs. What is not declared is for those who may read, or change, everything.
    pub(super) fn find(&self, method: &Method, path: Option<&str>) -> Access {
        let method = if method == Method::HEAD { &Method::GET } else { method };
        let declared = self.0.iter().find(|(known, at, _)| known == method && Some(*at) == path);
        match declared {
            Some((.., access)) => *access,
            // Nothing answers it but the router: with the methods that there are.
            None if self.0.iter().any(|(_, at, access)| Some(*at) == path && *access == Access::Public) => {
                Access::Public
            }
            None if *method == Method::GET => Access::Read,
            None => Access::Act,
        }
    }
}

/// The router of these routes.
pub(super) fn build(routes: Vec<Route>) -> Router<Pages> {
    routes.into_iter().fold(Router::new(), |router, route| router.route(route.path, route.answer))
}
