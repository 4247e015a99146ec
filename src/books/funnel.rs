//! The funnel of a run in one line, and where it is narrowest.

use super::collect::{Collected, Wrong};
use super::decide::StopReason;
use super::deliver::Queued;
use super::{select, store};
use crate::db::{self, Tx};
use crate::engine::Delivery;
use crate::id::JobName;
use crate::time::Timestamp;

/// What a run did, step by step.
#[derive(Clone, Debug, Default)]
pub struct Funnel {
    /// The collecting.
    pub collected: Collected,
    /// Books that were not delivered before this run's digest.
    pub undelivered: u64,
    /// The digest.
    pub queued: Queued,
    /// What was not chosen for it, and why.
    pub held_back: HeldBack,
    /// Whether the job tells anybody at all.
    pub has_channels: bool,
    /// Whether this run might tell anything.
    pub delivery: Delivery,
}

/// What keeps undelivered books out of a digest, after it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldBack {
    /// Books in digests on their way, also in that of this run.
    pub on_their_way: u64,
    /// Books that rest because digests with them were refused.
    pub resting: u64,
    /// When the next digest is made, if none is now because the last one was refused.
    pub next_digest_at: Option<Timestamp>,
}

impl HeldBack {
    /// How it is now.
    pub fn find(tx: &mut Tx<'_>, job: &JobName, now: Timestamp) -> db::Result<Self> {
        Ok(Self {
            on_their_way: u64::try_from(store::count_on_their_way(tx, job)?).unwrap_or(0),
            resting: u64::try_from(store::count_resting(tx, job, now)?).unwrap_or(0),
            next_digest_at: select::next_digest_at(tx, job, now)?,
        })
    }
}

impl Funnel {
    /// `collected 40 → with ISBN 38 → new 12 → undelivered 30 → queued 5; bottleneck: …`
    pub fn render(&self, local: impl Fn(Timestamp) -> String) -> String {
        let Collected { returned, without_isbn, new, .. } = self.collected;
        let queued = match self.queued.repeats {
            0 => self.queued.new.to_string(),
            repeats => format!("{repeats} again"),
        };
        let steps = format!(
            "collected {returned} → with ISBN {} → new {new} → undelivered {} → queued {queued}",
            returned.saturating_sub(without_isbn),
            self.undelivered
        );
        let narrow: Vec<String> =
            [self.bottleneck(&local), self.quota(&local)].into_iter().flatten().collect();
        match narrow.is_empty() {
            true => steps,
            false => format!("{steps}; bottleneck: {}", narrow.join("; ")),
        }
    }

    /// The step that keeps more from being told, if one does; a quota that is used up has a place of its own.
    fn bottleneck(&self, local: &impl Fn(Timestamp) -> String) -> Option<String> {
        if let Some(Wrong::Credentials(why) | Wrong::Failed(why)) = &self.collected.trouble {
            return Some(format!("the search failed ({why})"));
        }
        self.after_collecting(local).or_else(|| self.while_collecting())
    }

    /// That no more requests are possible now: said always, because the run waits for it whatever else is narrow.
    fn quota(&self, local: &impl Fn(Timestamp) -> String) -> Option<String> {
        match (self.collected.stop, self.collected.resumes_at) {
            (_, Some(at)) => Some(format!("quota, no more requests before {}", local(at))),
            (Some(StopReason::Quota), None) => {
                Some("quota, the provider is paused until it is resumed".to_owned())
            }
            (_, None) => None,
        }
    }

    /// What keeps books that were found from being told.
    fn after_collecting(&self, local: &impl Fn(Timestamp) -> String) -> Option<String> {
        let HeldBack { on_their_way, resting, next_digest_at } = self.held_back;
        let waiting = self.undelivered.saturating_sub(on_their_way).saturating_sub(resting);
        let sent_before = on_their_way.saturating_sub(self.queued.new);
        if !self.has_channels && self.undelivered > 0 {
            Some("nothing is sent, `deliver` names no channel".to_owned())
        } else if self.delivery == Delivery::NoDeliver && self.undelivered > 0 {
            Some(format!("--no-deliver, {} wait for a run that delivers", self.undelivered))
        } else if let Some(at) = next_digest_at {
            Some(format!("a digest was refused, the next is made after {}", local(at)))
        } else if waiting > 0 && self.queued.new > 0 {
            Some(format!("mail_limit, {waiting} more wait for the next digest"))
        } else if waiting > 0 {
            Some(format!("no channel could make a digest of the {waiting} that wait"))
        } else if sent_before > 0 {
            Some(format!("the channel, {sent_before} are on their way"))
        } else if resting > 0 {
            Some(format!("refused digests, {resting} are in none for a while"))
        } else {
            None
        }
    }

    /// What keeps more from being found, other than the quota.
    fn while_collecting(&self) -> Option<String> {
        let Collected { returned, without_isbn, new, stop, .. } = self.collected;
        match stop {
            Some(StopReason::Quota) => None,
            None => Some("exhausted, the search was read to its end".to_owned()),
            Some(StopReason::Exhausted) => Some("exhausted, the search is now read to its end".to_owned()),
            Some(_) if returned > 0 && without_isbn == returned => {
                Some("none of the volumes has an ISBN".to_owned())
            }
            Some(_) if returned > 0 && new == 0 => Some("all of them were known".to_owned()),
            Some(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_names_the_narrowest_step() {
        let collected = |returned, without_isbn, new, stop| Collected {
            returned,
            without_isbn,
            new,
            stop,
            ..Collected::default()
        };
        let queued = |new, repeats| Queued { new, repeats, problems: Vec::new() };
        let max = Some(StopReason::MaxPerRun);
        let at: Timestamp = "2026-01-15T15:00:00Z".parse().unwrap();
        let quota = Collected { resumes_at: Some(at), ..collected(40, 2, 12, Some(StopReason::Quota)) };
        let failed = Collected {
            trouble: Some(Wrong::Failed("status 500".into())),
            ..collected(0, 0, 0, Some(StopReason::Error))
        };
        let on_their_way = |on_their_way| HeldBack { on_their_way, ..HeldBack::default() };
        let refused = HeldBack { resting: 5, next_digest_at: Some(at), ..HeldBack::default() };
        for (collected, undelivered, queued, held_back, has_channels, expected) in [
            (
                collected(40, 2, 12, max),
                30,
                queued(5, 0),
                on_their_way(5),
                true,
                "collected 40 → with ISBN 38 → new 12 → undelivered 30 → queued 5; bottleneck: mail_limit, 25 more wait for the next digest",
            ),
            (
                quota.clone(),
                4,
                queued(4, 0),
                on_their_way(4),
                true,
                "collected 40 → with ISBN 38 → new 12 → undelivered 4 → queued 4; bottleneck: quota, no more requests before 2026-01-15T15:00:00.000Z",
            ),
            (
                quota.clone(),
                30,
                queued(5, 0),
                on_their_way(5),
                true,
                "collected 40 → with ISBN 38 → new 12 → undelivered 30 → queued 5; bottleneck: mail_limit, 25 more wait for the next digest; quota, no more requests before 2026-01-15T15:00:00.000Z",
            ),
            (
                collected(0, 0, 0, Some(StopReason::Quota)),
                0,
                queued(0, 0),
                on_their_way(0),
                true,
                "collected 0 → with ISBN 0 → new 0 → undelivered 0 → queued 0; bottleneck: quota, the provider is paused until it is resumed",
            ),
            (
                collected(0, 0, 0, None),
                0,
                queued(0, 3),
                on_their_way(0),
                true,
                "collected 0 → with ISBN 0 → new 0 → undelivered 0 → queued 3 again; bottleneck: exhausted, the search was read to its end",
            ),
            (
                collected(20, 20, 0, max),
                0,
                queued(0, 0),
                on_their_way(0),
                true,
                "collected 20 → with ISBN 0 → new 0 → undelivered 0 → queued 0; bottleneck: none of the volumes has an ISBN",
            ),
            (
                collected(20, 0, 0, max),
                0,
                queued(0, 0),
                on_their_way(0),
                true,
                "collected 20 → with ISBN 20 → new 0 → undelivered 0 → queued 0; bottleneck: all of them were known",
            ),
            (
                collected(5, 0, 5, max),
                5,
                queued(0, 0),
                on_their_way(0),
                false,
                "collected 5 → with ISBN 5 → new 5 → undelivered 5 → queued 0; bottleneck: nothing is sent, `deliver` names no channel",
            ),
            (
                collected(5, 0, 5, max),
                5,
                queued(0, 0),
                on_their_way(5),
                true,
                "collected 5 → with ISBN 5 → new 5 → undelivered 5 → queued 0; bottleneck: the channel, 5 are on their way",
            ),
            (
                collected(5, 0, 5, max),
                106,
                queued(0, 0),
                refused,
                true,
                "collected 5 → with ISBN 5 → new 5 → undelivered 106 → queued 0; bottleneck: a digest was refused, the next is made after 2026-01-15T15:00:00.000Z",
            ),
            (
                collected(5, 0, 5, max),
                8,
                queued(0, 0),
                HeldBack { on_their_way: 3, ..refused },
                true,
                "collected 5 → with ISBN 5 → new 5 → undelivered 8 → queued 0; bottleneck: a digest was refused, the next is made after 2026-01-15T15:00:00.000Z",
            ),
            (
                collected(5, 0, 5, max),
                8,
                queued(3, 0),
                HeldBack { on_their_way: 3, next_digest_at: None, ..refused },
                true,
                "collected 5 → with ISBN 5 → new 5 → undelivered 8 → queued 3; bottleneck: refused digests, 5 are in none for a while",
            ),
            (
                collected(5, 0, 5, max),
                5,
                queued(0, 0),
                on_their_way(0),
                true,
                "collected 5 → with ISBN 5 → new 5 → undelivered 5 → queued 0; bottleneck: no channel could make a digest of the 5 that wait",
            ),
            (
                failed,
                0,
                queued(0, 0),
                on_their_way(0),
                true,
                "collected 0 → with ISBN 0 → new 0 → undelivered 0 → queued 0; bottleneck: the search failed (status 500)",
            ),
            (
                collected(5, 0, 5, max),
                5,
                queued(5, 0),
                on_their_way(5),
                true,
                "collected 5 → with ISBN 5 → new 5 → undelivered 5 → queued 5",
            ),
        ] {
            let delivery = Delivery::Queue;
            let funnel = Funnel { collected, undelivered, queued, held_back, has_channels, delivery };
            assert_eq!(funnel.render(|at| at.to_string()), expected);
        }
    }
}
