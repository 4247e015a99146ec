//! Faults that a server of the loopback world shows on request: refuse, hang, cut, answer nonsense.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::body::Body;
use axum::http::Response;
use parking_lot::Mutex;

use super::server::answer;

/// The fault of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Without an effect; the answer has this status and these headers.
    Status(u16, Vec<(&'static str, String)>),
    /// With its effect, but the answer has this status.
    DoneBut(u16),
    /// Without an effect and without an answer.
    Hang,
    /// With its effect, but without an answer.
    DoneThenHang,
    /// Without an effect; the connection is cut.
    Cut,
    /// With its effect; the connection is cut before the answer.
    DoneThenCut,
}

impl Fault {
    /// Whether the request has its effect nevertheless.
    pub fn has_effect(&self) -> bool {
        matches!(self, Fault::DoneBut(_) | Fault::DoneThenHang | Fault::DoneThenCut)
    }

    /// Performs the fault: an answer, or none.
    pub async fn play(self) -> Response<Body> {
        match self {
            Fault::Status(status, headers) => answer(status, &headers, "{\"error\":\"as requested\"}"),
            Fault::DoneBut(status) => answer(status, &[], "oops"),
            Fault::Hang | Fault::DoneThenHang => std::future::pending().await,
            // Unwinding drops the connection without an answer; no panic message is printed.
            Fault::Cut | Fault::DoneThenCut => std::panic::resume_unwind(Box::new("cut")),
        }
    }
}

/// The faults of the next requests in order, followed by one that repeats.
#[derive(Clone, Debug, Default)]
pub struct Script(Arc<Mutex<Plan>>);

#[derive(Debug, Default)]
struct Plan {
    next: VecDeque<Option<Fault>>,
    always: Option<Fault>,
}

impl Script {
    /// Adds `fault` for the next request.
    pub fn next(&self, fault: Fault) {
        self.0.lock().next.push_back(Some(fault));
    }

    /// Adds a success for the next request.
    pub fn next_well(&self) {
        self.0.lock().next.push_back(None);
    }

    /// Sets the fault of all further requests; `None` removes it.
    pub fn always(&self, fault: Option<Fault>) {
        self.0.lock().always = fault;
    }

    /// Takes the fault of the present request.
    pub fn draw(&self) -> Option<Fault> {
        let mut plan = self.0.lock();
        match plan.next.pop_front() {
            Some(fault) => fault,
            None => plan.always.clone(),
        }
    }
}
