//! Decides the paging: what follows a page, when to stop, and where the next run begins. Pure.
//!
//! The order of the checks is the seed's: error, quota, max_per_run, exhausted. Only proof that no volume is left
//! exhausts a query set. Every page that is taken advances the position, so a run always ends.

use std::time::Duration;

/// The most volumes that the API returns in one page.
pub const PAGE_LIMIT: u32 = 40;

/// The delay before the first retry, and the factor of further ones: always longer than the HTTP client blocks a host
/// after a 503.
const FIRST_GAP: Duration = Duration::from_secs(15);
const GAP_GROWTH: u32 = 3;
/// A longer wait is left to the next run.
const PATIENCE: Duration = Duration::from_secs(5 * 60);
/// The most retries of a request: the delay before another one would be too long.
pub const MOST_RETRIES: u32 = 3;

/// How long to wait before the next retry after `failures` temporary failures; `None` when the request is given up.
///
/// `retry_after` is from the answer. Without a request left there is no retry.
pub fn repeat_after(
    failures: u32,
    retries: u32,
    quota_left: u32,
    retry_after: Option<Duration>,
) -> Option<Duration> {
    if failures > retries.min(MOST_RETRIES) || quota_left == 0 {
        return None;
    }
    let gap = FIRST_GAP * GAP_GROWTH.pow(failures.saturating_sub(1));
    Some(retry_after.map_or(gap, |retry_after| retry_after.max(gap))).filter(|wait| *wait <= PATIENCE)
}

/// The progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paging {
    /// Where the next page begins; this is saved.
    pub start_index: i64,
    /// Volumes that this run received, with and without an ISBN.
    pub collected: u64,
    /// How many volumes this run may receive before it stops.
    pub max_per_run: u32,
}

/// The parameters of the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// `startIndex`
    pub start_index: i64,
    /// `maxResults`: never more than the run may still take.
    pub max_results: u32,
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageOutcome {
    /// A page.
    Page {
        /// How many volumes it has, before any is dropped.
        returned: u64,
        /// The total number that the API reports, if it does.
        total_items: Option<i64>,
    },
    /// No usable answer.
    Failed,
    /// The provider refused because of a limit, or our quota is used up.
    OverQuota,
}

/// Why a run stopped requesting pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// A request failed.
    Error,
    /// The day's requests are used up, or the provider is paused.
    Quota,
    /// The run has taken as many volumes as it may.
    MaxPerRun,
    /// No volume is left: the only reason that marks the query set.
    Exhausted,
}

/// What to do after a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Request another page.
    Continue(PageRequest),
    Stop(StopReason),
}

impl Next {
    /// Whether the query set is to be marked as exhausted.
    pub fn is_exhausted(self) -> bool {
        self == Next::Stop(StopReason::Exhausted)
    }
}

impl Paging {
    /// A run that begins at `start_index`.
    pub fn new(start_index: i64, max_per_run: u32) -> Self {
        Self { start_index: start_index.max(0), collected: 0, max_per_run }
    }

    /// The first step.
    pub fn first(&self) -> Next {
        self.request_or_stop()
    }

    /// The state after a request, and what to do next; `quota_left` more requests are possible.
    pub fn after_page(self, outcome: PageOutcome, quota_left: u32) -> (Self, Next) {
        let (returned, total_items) = match outcome {
            PageOutcome::Failed => return (self, Next::Stop(StopReason::Error)),
            PageOutcome::OverQuota => return (self, Next::Stop(StopReason::Quota)),
            // An empty page without a total proves nothing, and retrying would not end.
            PageOutcome::Page { returned: 0, total_items: None } => {
                return (self, Next::Stop(StopReason::Error));
            }
            PageOutcome::Page { returned, total_items } => (returned, total_items),
        };
        let after = Self {
            start_index: self.start_index.saturating_add_unsigned(returned),
            collected: self.collected.saturating_add(returned),
            ..self
        };
        let next = if quota_left == 0 {
            Next::Stop(StopReason::Quota)
        } else if after.collected >= u64::from(self.max_per_run) {
            Next::Stop(StopReason::MaxPerRun)
        } else if total_items.is_some_and(|total| returned == 0 || after.start_index >= total) {
            Next::Stop(StopReason::Exhausted)
        } else {
            after.request_or_stop()
        };
        (after, next)
    }

    fn request_or_stop(&self) -> Next {
        let remaining = u64::from(self.max_per_run).saturating_sub(self.collected);
        match u32::try_from(remaining).unwrap_or(u32::MAX).min(PAGE_LIMIT) {
            0 => Next::Stop(StopReason::MaxPerRun),
            max_results => Next::Continue(PageRequest { start_index: self.start_index, max_results }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passing_failure_is_repeated_with_growing_gaps() {
        let secs = Duration::from_secs;
        for (failures, retries, quota_left, retry_after, expected) in [
            (1, 2, 9, None, Some(secs(15))),
            (2, 2, 9, None, Some(secs(45))),
            (3, 2, 9, None, None),
            (3, 3, 9, None, Some(secs(135))),
            (4, u32::MAX, 9, None, None),
            (1, 0, 9, None, None),
            (1, 2, 0, None, None),
            (1, 2, 1, None, Some(secs(15))),
            (1, 2, 9, Some(secs(2)), Some(secs(15))),
            (1, 2, 9, Some(secs(120)), Some(secs(120))),
            (1, 2, 9, Some(secs(301)), None),
        ] {
            let wait = repeat_after(failures, retries, quota_left, retry_after);
            assert_eq!(wait, expected, "{failures} of {retries}, {quota_left} left, told {retry_after:?}");
        }
    }
    use proptest::prelude::*;

    fn page(returned: u64, total_items: i64) -> PageOutcome {
        PageOutcome::Page { returned, total_items: Some(total_items) }
    }

    fn ask(start_index: i64, max_results: u32) -> Next {
        Next::Continue(PageRequest { start_index, max_results })
    }

    /// Sections 4.3 and 4.4 of the seed, line by line.
    #[test]
    fn a_page_is_followed_by_what_the_seed_says() {
        use StopReason::{Error, Exhausted, MaxPerRun, Quota};
        let stop = Next::Stop;
        let nameless = |returned| PageOutcome::Page { returned, total_items: None };
        // start_index, collected, max_per_run | outcome, quota left | start_index after, next
        let table = [
            // Many pages: startIndex moves by what was returned, never by what was asked for.
            ((0, 0, 80), (page(40, 150), 9), (40, ask(40, 40))),
            ((0, 0, 80), (page(37, 150), 9), (37, ask(37, 40))),
            // No overfetch: the last page asks for the rest only.
            ((40, 40, 60), (page(10, 150), 9), (50, ask(50, 10))),
            ((40, 40, 80), (page(40, 150), 9), (80, stop(MaxPerRun))),
            // The order: error, quota, max_per_run, exhausted.
            ((40, 40, 80), (PageOutcome::Failed, 0), (40, stop(Error))),
            ((40, 40, 80), (PageOutcome::OverQuota, 9), (40, stop(Quota))),
            ((40, 40, 80), (page(40, 80), 0), (80, stop(Quota))),
            ((40, 40, 80), (page(40, 80), 9), (80, stop(MaxPerRun))),
            ((40, 40, 90), (page(40, 80), 9), (80, stop(Exhausted))),
            ((40, 40, 90), (page(0, 80), 0), (40, stop(Quota))),
            // Exhausted: an empty page stays where it is, a last page moves on to totalItems.
            ((40, 40, 90), (page(0, 80), 9), (40, stop(Exhausted))),
            ((0, 0, 20), (page(0, 0), 9), (0, stop(Exhausted))),
            ((120, 0, 20), (page(0, 120), 9), (120, stop(Exhausted))),
            // totalItems shrinks below, or grows above, what it was.
            ((80, 0, 90), (page(5, 60), 9), (85, stop(Exhausted))),
            ((80, 0, 90), (page(40, 200), 9), (120, ask(120, 40))),
            // Without totalItems nothing is proven.
            ((80, 0, 90), (nameless(40), 9), (120, ask(120, 40))),
            ((80, 0, 90), (nameless(0), 9), (80, stop(Error))),
            // A server that sends more than it was asked for.
            ((0, 0, 10), (page(40, 500), 9), (40, stop(MaxPerRun))),
        ];
        for (number, ((start_index, collected, max_per_run), (outcome, left), expected)) in
            table.iter().enumerate()
        {
            let before =
                Paging { start_index: *start_index, collected: *collected, max_per_run: *max_per_run };
            let (after, next) = before.after_page(*outcome, *left);
            assert_eq!((after.start_index, next), *expected, "line {number}: {before:?} {outcome:?} {left}");
            assert_eq!(next.is_exhausted(), next == stop(Exhausted));
        }
    }

    #[test]
    fn a_run_begins_with_a_page_of_at_most_forty_or_not_at_all() {
        assert_eq!(Paging::new(0, 10).first(), ask(0, 10));
        assert_eq!(Paging::new(80, 100).first(), ask(80, 40));
        assert_eq!(Paging::new(0, 0).first(), Next::Stop(StopReason::MaxPerRun));
        assert_eq!(Paging::new(-5, 10).first(), ask(0, 10), "a damaged cursor begins at the beginning");
    }

    proptest! {
        #[test]
        fn whatever_the_server_answers_a_run_ends_and_never_moves_back(
            start in 0i64..1000,
            max_per_run in 1u32..300,
            answers in proptest::collection::vec((0u8..4, 0u64..60, proptest::option::of(-5i64..400)), 301),
        ) {
            let mut paging = Paging::new(start, max_per_run);
            let mut next = paging.first();
            let mut requests = 0;
            for (kind, returned, total_items) in answers {
                let Next::Continue(ask) = next else { break };
                prop_assert!(ask.max_results >= 1 && ask.max_results <= PAGE_LIMIT);
                prop_assert!(paging.collected + u64::from(ask.max_results) <= u64::from(max_per_run));
                prop_assert_eq!(ask.start_index, paging.start_index);
                let outcome = match kind {
                    0 => PageOutcome::Failed,
                    1 => PageOutcome::OverQuota,
                    _ => PageOutcome::Page { returned, total_items },
                };
                let (after, then) = paging.after_page(outcome, 1000);
                prop_assert!(after.start_index >= paging.start_index);
                let is_proof = matches!(outcome, PageOutcome::Page { total_items: Some(_), .. });
                prop_assert!(!then.is_exhausted() || is_proof);
                (paging, next) = (after, then);
                requests += 1;
            }
            prop_assert!(matches!(next, Next::Stop(_)), "still asking after {} requests", requests);
            prop_assert!(requests <= max_per_run);
        }
    }
}
