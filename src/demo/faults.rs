//! What a server of the loopback world does wrong on request: refuse, hang, cut, answer nonsense.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::body::Body;
use axum::http::Response;
use parking_lot::Mutex;

use super::server::answer;

/// Something that goes wrong with one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing happens, and the answer has this status and these headers.
    Status(u16, Vec<(&'static str, String)>),
    /// It happens, and yet the answer has this status.
    DoneBut(u16),
    /// Nothing happens, and no answer comes.
    Hang,
    /// It happens, and no answer comes.
    DoneThenHang,
    /// Nothing happens, and the connection is cut.
    Cut,
    /// It happens, and the connection is cut before the answer.
    DoneThenCut,
}

impl Fault {
    /// Whether the request has its effect all the same.
    pub fn has_effect(&self) -> bool {
        matches!(self, Fault::DoneBut(_) | Fault::DoneThenHang | Fault::DoneThenCut)
    }

    /// Plays the fault: an answer, or none.
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

/// The faults to come, in order; then, or instead, one that repeats for ever.
#[derive(Clone, Debug, Default)]
pub struct Script(Arc<Mutex<Plan>>);

#[derive(Debug, Default)]
struct Plan {
    next: VecDeque<Option<Fault>>,
    always: Option<Fault>,
}

impl Script {
    /// The next request meets `fault`.
    pub fn next(&self, fault: Fault) {
        self.0.lock().next.push_back(Some(fault));
    }

    /// The next request that is not spoken for goes well.
    pub fn next_well(&self) {
        self.0.lock().next.push_back(None);
    }

    /// Every request that is not spoken for meets `fault`; `None` ends it.
    pub fn always(&self, fault: Option<Fault>) {
        self.0.lock().always = fault;
    }

    /// What the present request meets.
    pub fn draw(&self) -> Option<Fault> {
        let mut plan = self.0.lock();
        match plan.next.pop_front() {
            Some(fault) => fault,
            None => plan.always.clone(),
        }
    }
}
