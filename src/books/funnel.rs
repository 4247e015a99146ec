//! The funnel of a run in one line, and where it is narrowest.

use super::collect::{Collected, Wrong};
use super::decide::StopReason;
use super::deliver::Queued;
use crate::engine::Delivery;
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
    /// Whether the job tells anybody at all.
    pub has_channels: bool,
    /// Whether this run might tell anything.
    pub delivery: Delivery,
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
        match self.bottleneck(local) {
            Some(bottleneck) => format!("{steps}; bottleneck: {bottleneck}"),
            None => steps,
        }
    }

    /// The step that keeps more from being told, if one does.
    fn bottleneck(&self, local: impl Fn(Timestamp) -> String) -> Option<String> {
        let Collected { returned, without_isbn, new, stop, .. } = self.collected;
        let waiting = self.undelivered.saturating_sub(self.queued.new);
        if let Some(Wrong::Credentials(why) | Wrong::Failed(why)) = &self.collected.trouble {
            return Some(format!("the search failed ({why})"));
        }
        if !self.has_channels && self.undelivered > 0 {
            return Some("nobody is told, `deliver` names no channel".to_owned());
        }
        if self.delivery == Delivery::Withhold && self.undelivered > 0 {
            return Some(format!("--no-deliver, {} wait for a run that delivers", self.undelivered));
        }
        if waiting > 0 && self.queued.new > 0 {
            return Some(format!("mail_limit, {waiting} more wait for the next digest"));
        }
        if waiting > 0 {
            return Some(format!("the channel, {waiting} are on their way"));
        }
        match stop {
            Some(StopReason::Quota) => Some(match self.collected.resumes_at {
                Some(at) => format!("quota, no more requests before {}", local(at)),
                None => "quota, the provider rests until it is resumed".to_owned(),
            }),
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
        for (collected, undelivered, queued, has_channels, expected) in [
            (
                collected(40, 2, 12, max),
                30,
                queued(5, 0),
                true,
                "collected 40 → with ISBN 38 → new 12 → undelivered 30 → queued 5; bottleneck: mail_limit, 25 more wait for the next digest",
            ),
            (
                quota.clone(),
                4,
                queued(4, 0),
                true,
                "collected 40 → with ISBN 38 → new 12 → undelivered 4 → queued 4; bottleneck: quota, no more requests before 2026-01-15T15:00:00.000Z",
            ),
            (
                collected(0, 0, 0, None),
                0,
                queued(0, 3),
                true,
                "collected 0 → with ISBN 0 → new 0 → undelivered 0 → queued 3 again; bottleneck: exhausted, the search was read to its end",
            ),
            (
                collected(20, 20, 0, max),
                0,
                queued(0, 0),
                true,
                "collected 20 → with ISBN 0 → new 0 → undelivered 0 → queued 0; bottleneck: none of the volumes has an ISBN",
            ),
            (
                collected(20, 0, 0, max),
                0,
                queued(0, 0),
                true,
                "collected 20 → with ISBN 20 → new 0 → undelivered 0 → queued 0; bottleneck: all of them were known",
            ),
            (
                collected(5, 0, 5, max),
                5,
                queued(0, 0),
                false,
                "collected 5 → with ISBN 5 → new 5 → undelivered 5 → queued 0; bottleneck: nobody is told, `deliver` names no channel",
            ),
            (
                collected(5, 0, 5, max),
                5,
                queued(0, 0),
                true,
                "collected 5 → with ISBN 5 → new 5 → undelivered 5 → queued 0; bottleneck: the channel, 5 are on their way",
            ),
            (
                failed,
                0,
                queued(0, 0),
                true,
                "collected 0 → with ISBN 0 → new 0 → undelivered 0 → queued 0; bottleneck: the search failed (status 500)",
            ),
            (
                collected(5, 0, 5, max),
                5,
                queued(5, 0),
                true,
                "collected 5 → with ISBN 5 → new 5 → undelivered 5 → queued 5",
            ),
        ] {
            let delivery = Delivery::Queue;
            let funnel = Funnel { collected, undelivered, queued, has_channels, delivery };
            assert_eq!(funnel.render(|at| at.to_string()), expected);
        }
    }
}
