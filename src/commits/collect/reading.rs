//! The progress of reading a branch, for display.

use std::time::Duration;

/// The progress of a branch in this run.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct BranchProgress {
    /// Pages stored.
    pub pages: u64,
    /// Commits on these pages, new or known.
    pub commits: u64,
    /// Commits a second.
    pub rate: f64,
    /// Remaining seconds, if the host reports the number of commits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_secs: Option<u64>,
}

impl BranchProgress {
    /// The progress after so many pages and commits of `total` in `elapsed`.
    pub(super) fn at(pages: u64, commits: u64, total: Option<u64>, elapsed: Duration) -> Self {
        let rate = commits as f64 / elapsed.as_secs_f64().max(0.001);
        let left = |total: u64| (total.saturating_sub(commits) as f64 / rate.max(0.001)).ceil() as u64;
        Self { pages, commits, rate: (rate * 10.0).round() / 10.0, left_secs: total.map(left) }
    }
}

impl std::fmt::Display for BranchProgress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} commits, {} pages, {:.0}/s", self.commits, self.pages, self.rate)?;
        match self.left_secs {
            Some(left) => write!(f, ", {left} s left"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_is_given_where_the_host_gives_a_total() {
        let at = |total| BranchProgress::at(3, 300, total, Duration::from_secs(6)).to_string();
        assert_eq!(at(None), "300 commits, 3 pages, 50/s");
        assert_eq!(at(Some(1_000)), "300 commits, 3 pages, 50/s, 14 s left");
        assert_eq!(at(Some(10)), "300 commits, 3 pages, 50/s, 0 s left");
        assert!(BranchProgress::at(1, 100, Some(200), Duration::ZERO).rate.is_finite());
    }
}
