//! The log lines of the seed, word for word: operators search for them, so they are never translated.

use super::decide::{Paging, StopReason};
use crate::hash;
use crate::id::JobName;

/// `[google-books][job] Page 1: startIndex=0, returned=40, totalItems=150`
pub fn page(job: &JobName, page: u32, start_index: i64, returned: u64, total_items: Option<i64>) -> String {
    let total = total_items.map_or_else(|| "unknown".to_owned(), |total| total.to_string());
    format!(
        "[google-books][{job}] Page {page}: startIndex={start_index}, returned={returned}, totalItems={total}"
    )
}

/// The line when a run stops, with the position of the next one.
pub fn stopped(
    job: &JobName,
    reason: StopReason,
    paging: &Paging,
    total_items: Option<i64>,
    query_set_hash: &str,
) -> String {
    let at = paging.start_index;
    let short = hash::short(query_set_hash);
    match (reason, total_items) {
        (StopReason::Error, _) => {
            format!("[google-books][{job}] Stopped: API error, preserving startIndex={at}")
        }
        (StopReason::Quota, _) => {
            format!("[google-books][{job}] Stopped: quota limit reached, next startIndex={at}")
        }
        (StopReason::MaxPerRun, _) => format!(
            "[google-books][{job}] Stopped: max_per_run reached ({}/{}), next startIndex={at}",
            paging.collected, paging.max_per_run
        ),
        // The page was empty before `totalItems`; the seed's comparison would be false.
        (StopReason::Exhausted, Some(total)) if at < total => format!(
            "[WARN][google-books][{job}] Exhausted: startIndex={at}, returned=0, totalItems={total} (query_set_hash={short})"
        ),
        (StopReason::Exhausted, total) => format!(
            "[WARN][google-books][{job}] Exhausted: startIndex={at} >= totalItems={} (query_set_hash={short})",
            total.unwrap_or(at)
        ),
    }
}

/// `[job] Skipped: exhausted (query_set_hash=0123456789abcdef)`
pub fn skipped(job: &JobName, query_set_hash: &str) -> String {
    format!("[{job}] Skipped: exhausted (query_set_hash={})", hash::short(query_set_hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_are_the_seeds() {
        let job: JobName = "job-name".parse().unwrap();
        let hash = "abc123def4567890ffffffffffffffffffffffffffffffffffffffffffffffff";
        let paging = |start_index, collected| Paging { start_index, collected, max_per_run: 80 };
        assert_eq!(
            page(&job, 1, 0, 40, Some(150)),
            "[google-books][job-name] Page 1: startIndex=0, returned=40, totalItems=150"
        );
        assert_eq!(
            stopped(&job, StopReason::MaxPerRun, &paging(80, 80), Some(150), hash),
            "[google-books][job-name] Stopped: max_per_run reached (80/80), next startIndex=80"
        );
        assert_eq!(
            stopped(&job, StopReason::Exhausted, &paging(120, 40), Some(120), hash),
            "[WARN][google-books][job-name] Exhausted: startIndex=120 >= totalItems=120 (query_set_hash=abc123def4567890)"
        );
        assert_eq!(
            stopped(&job, StopReason::Exhausted, &paging(40, 40), Some(150), hash),
            "[WARN][google-books][job-name] Exhausted: startIndex=40, returned=0, totalItems=150 (query_set_hash=abc123def4567890)"
        );
        assert_eq!(
            stopped(&job, StopReason::Quota, &paging(40, 40), None, hash),
            "[google-books][job-name] Stopped: quota limit reached, next startIndex=40"
        );
        assert_eq!(
            stopped(&job, StopReason::Error, &paging(40, 40), None, hash),
            "[google-books][job-name] Stopped: API error, preserving startIndex=40"
        );
        assert_eq!(skipped(&job, hash), "[job-name] Skipped: exhausted (query_set_hash=abc123def4567890)");
    }
}
