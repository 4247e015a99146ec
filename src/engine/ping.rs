//! The heartbeat of a job: an address that is requested after every run, so that a monitor notices when runs fail or
//! stop.

use tracing::warn;

use super::RunOutcome;
use crate::fetch::{AllowPrivate, Fetcher, Wanted};
use crate::id::JobName;
use crate::parse::url::Url;

/// Where to report runs.
#[derive(Clone)]
pub struct Ping {
    url: Url,
    fetcher: Fetcher,
    allowed: AllowPrivate,
}

impl Ping {
    /// Pings `url` through the guarded client.
    pub fn new(url: Url, fetcher: Fetcher, allowed: AllowPrivate) -> Self {
        Self { url, fetcher, allowed }
    }

    /// Reports how a run ended. A ping that fails is only logged: it has nothing to do with the job.
    pub async fn send(&self, job: &JobName, outcome: RunOutcome) {
        let Some(url) = address_after(&self.url, outcome) else { return };
        let check = self.fetcher.reach("ping", &url, &self.allowed, Wanted::Document).await;
        if !check.is_fine {
            warn!(job = %job, "The ping after the run of {job} did not arrive: {}", check.detail);
        }
    }
}

/// The address to request; `None` after an interrupted run. A run that failed in parts counts as a success.
fn address_after(url: &Url, outcome: RunOutcome) -> Option<Url> {
    let mut url = url.clone();
    match outcome {
        RunOutcome::Success | RunOutcome::Waiting | RunOutcome::Partly => {}
        RunOutcome::Interrupted => return None,
        RunOutcome::Failed => {
            let path = format!("{}/fail", url.path().trim_end_matches('/'));
            url.set_path(&path);
        }
    }
    Some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn success_and_failure_have_their_own_addresses_and_an_interrupted_run_none() {
        let url: Url = "https://hc.example/ping/uuid?rid=1".parse().unwrap();
        for (outcome, wanted) in [
            (RunOutcome::Success, Some("https://hc.example/ping/uuid?rid=1")),
            (RunOutcome::Waiting, Some("https://hc.example/ping/uuid?rid=1")),
            (RunOutcome::Partly, Some("https://hc.example/ping/uuid?rid=1")),
            (RunOutcome::Failed, Some("https://hc.example/ping/uuid/fail?rid=1")),
            (RunOutcome::Interrupted, None),
        ] {
            assert_eq!(address_after(&url, outcome).as_ref().map(Url::as_str), wanted, "{outcome:?}");
        }
    }
}
