//! `/metrics`: numbers for a monitoring system, as OpenMetrics text.
//!
//! Labels are fixed words and names of the config: no request can create a new series.

use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use parking_lot::Mutex;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::Pages;
use super::problem::Problem;
use super::route::{Access, Route};
use crate::channel::outbox::{self, DeliveryCount};
use crate::db::{self, Tx};
use crate::engine::events::RunEvent;
use crate::engine::{Overview, RunOutcome, State as Standing};
use crate::ledger::event::{self, Numbered};

const BUCKETS: [f64; 9] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0];
/// Events that are read in one transaction.
const AT_ONCE: usize = 1_000;

type Labels = Vec<(&'static str, String)>;

pub(super) fn routes() -> Vec<Route> {
    vec![Route::get("/metrics", Access::Read, show)]
}

/// The counters of this process.
pub(super) struct Metrics {
    requests: Family<Labels, Histogram>,
    runs: Family<Labels, Counter>,
    /// The newest event whose run is counted; `None` before the first request.
    counted: Mutex<Option<i64>>,
}

impl Default for Metrics {
    fn default() -> Self {
        let requests = Family::new_with_constructor((|| Histogram::new(BUCKETS)) as fn() -> Histogram);
        Self { requests, runs: Family::default(), counted: Mutex::new(None) }
    }
}

/// Measures the duration of requests; those without a route are only counted.
pub(super) async fn measure(State(pages): State<Pages>, request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().map_or("other", MatchedPath::as_str).to_owned();
    let began = Instant::now();
    let response = next.run(request).await;
    let labels = vec![("route", path), ("status", response.status().as_str().to_owned())];
    pages.metrics.requests.get_or_create(&labels).observe(began.elapsed().as_secs_f64());
    response
}

async fn show(State(pages): State<Pages>) -> Result<Response, Problem> {
    let finder = pages.finder();
    let (overview, tallies) = pages
        .db
        .read(move |tx| {
            let overview = finder.as_ref().map(|finder| Overview::find(finder, tx)).transpose()?;
            Ok((overview, outbox::tally(tx)?))
        })
        .await?;
    count_runs(&pages).await?;
    // A series that begins with 1 has no increase: the first failure would raise no alert.
    for job in overview.iter().flat_map(|overview| &overview.jobs) {
        for outcome in RunOutcome::ALL {
            drop(pages.metrics.runs.get_or_create(&run_labels(&job.job, *outcome)));
        }
    }
    let mut registry = Registry::with_prefix("tsuzuki");
    let metrics = &pages.metrics;
    registry.register("http_request_seconds", "How long answers took", metrics.requests.clone());
    registry.register("runs", "Runs of jobs that ended since this process began", metrics.runs.clone());
    add_outbox(&mut registry, &tallies);
    if let Some(overview) = &overview {
        add_jobs(&mut registry, overview);
        add_quotas(&mut registry, overview);
    }
    let mut text = String::new();
    encode(&mut text, &registry).map_err(|_| {
        Problem::new(axum::http::StatusCode::INTERNAL_SERVER_ERROR, "the numbers cannot be written")
    })?;
    Ok(([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text).into_response())
}

/// Counts the runs that have ended since the last request, in any process.
async fn count_runs(pages: &Pages) -> db::Result<()> {
    let mut counted = *pages.metrics.counted.lock();
    loop {
        let (ended, newest) = pages.db.read(move |tx| list_ended(tx, counted)).await?;
        let is_all = ended.len() < AT_ONCE;
        // Another request may have counted the same meanwhile.
        let mut known = pages.metrics.counted.lock();
        if *known != counted {
            return Ok(());
        }
        for Numbered { event, .. } in &ended {
            if let (Some(run), Some(job)) = (event::parse::<RunEvent>(event), event.subject.name_of("job")) {
                pages.metrics.runs.get_or_create(&run_labels(job, run.code)).inc();
            }
        }
        *known = Some(newest);
        counted = Some(newest);
        if is_all {
            return Ok(());
        }
    }
}

fn list_ended(tx: &mut Tx<'_>, counted: Option<i64>) -> db::Result<(Vec<Numbered>, i64)> {
    let Some(after) = counted else { return Ok((Vec::new(), event::find_newest(tx)?)) };
    let events = event::list_settled_after(tx, after, AT_ONCE)?;
    let newest = events.last().map_or(after, |last| last.id);
    Ok((events, newest))
}

fn add_outbox(registry: &mut Registry, tallies: &[DeliveryCount]) {
    let messages = Family::<Labels, Gauge>::default();
    for tally in tallies {
        let labels = vec![("channel", tally.channel.clone()), ("state", tally.state.word().to_owned())];
        messages.get_or_create(&labels).inc_by(tally.count);
    }
    registry.register("outbox_messages", "Messages that are not over, and those that failed", messages);
}

fn add_jobs(registry: &mut Registry, overview: &Overview) {
    let (states, failures, success) = (
        Family::<Labels, Gauge>::default(),
        Family::<Labels, Gauge>::default(),
        Family::<Labels, Gauge>::default(),
    );
    // Other states are zero, not missing, so that an alert can compare them.
    for state in Standing::ALL {
        drop(states.get_or_create(&state_labels(*state)));
    }
    for job in &overview.jobs {
        states.get_or_create(&state_labels(job.standing.state)).inc();
        let labels = vec![("job", job.job.clone())];
        failures.get_or_create(&labels).set(job.failures_in_a_row);
        if let Some(at) = job.last_success_at {
            success.get_or_create(&labels).set(at.as_millis() / 1_000);
        }
    }
    registry.register("jobs", "Jobs by where they stand", states);
    registry.register("job_failures_in_a_row", "Runs that failed since the last that did not", failures);
    registry.register("job_last_success_timestamp_seconds", "When a job last ended well", success);
}

fn state_labels(state: Standing) -> Labels {
    vec![("state", state.word().to_owned())]
}

fn run_labels(job: &str, outcome: RunOutcome) -> Labels {
    vec![("job", job.to_owned()), ("outcome", outcome.word().to_owned())]
}

fn add_quotas(registry: &mut Registry, overview: &Overview) {
    let (used, limit) = (Family::<Labels, Gauge>::default(), Family::<Labels, Gauge>::default());
    for quota in &overview.quotas {
        let labels = vec![("provider", quota.provider.clone())];
        used.get_or_create(&labels).set(quota.used);
        limit.get_or_create(&labels).set(quota.per_day.into());
    }
    registry.register("quota_used", "Requests counted today", used);
    registry.register("quota_limit", "Requests a day at most", limit);
}
