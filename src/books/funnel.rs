//! The funnel of a run in one line, with its bottleneck.

use super::collect::{Collected, Wrong};
use super::decide::StopReason;
use super::deliver::Queued;
use super::{select, store};
use crate::db::{self, Tx};
use crate::engine::DeliveryMode;
use crate::id::JobName;
use crate::phrase;
use crate::phrase::{Phrase, Value};
use crate::time::Timestamp;

/// What a run did, step by step.
#[derive(Clone, Debug, Default)]
pub struct Funnel {
    pub collected: Collected,
    /// Undelivered books before this run's digest.
    pub undelivered: u64,
    pub queued: Queued,
    /// The books that were not selected for it, by reason.
    pub held_back: HeldBack,
    pub has_channels: bool,
    pub delivery: DeliveryMode,
}

/// Why undelivered books are not in a digest, after it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldBack {
    /// Books in queued digests, including that of this run.
    pub on_their_way: u64,
    /// Books that are paused because digests with them were refused.
    pub paused: u64,
    /// When the next digest is made, if the last one was refused and digests are paused.
    pub next_digest_at: Option<Timestamp>,
    /// Whether none is made now because the last one is still unsent.
    pub has_unsent_digest: bool,
}

impl HeldBack {
    /// How it is now, for a job that delivers to these channels.
    pub fn find(tx: &mut Tx<'_>, job: &JobName, deliver: &[String], now: Timestamp) -> db::Result<Self> {
        Ok(Self {
            on_their_way: u64::try_from(store::count_on_their_way(tx, job)?).unwrap_or(0),
            paused: u64::try_from(store::count_paused(tx, job, now)?).unwrap_or(0),
            next_digest_at: select::next_digest_at(tx, job, now)?,
            has_unsent_digest: store::has_unsent_digest(tx, job, deliver)?,
        })
    }
}

impl Funnel {
    /// `collected 40 → with ISBN 38 → new 12 → undelivered 30 → queued 5; bottleneck: …`
    pub fn phrase(&self) -> Phrase {
        let Collected { returned, without_isbn, new, .. } = self.collected;
        let queued = match self.queued.repeats {
            0 => Value::from(self.queued.new),
            repeats => phrase!("{repeats} again", "再送 {repeats}").into(),
        };
        let steps = phrase!(
            "collected {returned} → with ISBN {usable} → new {new} → undelivered {undelivered} → queued {queued}",
            "取得 {returned} → ISBN あり {usable} → 新規 {new} → 未送信 {undelivered} → 送信待ち {queued}",
            usable = returned.saturating_sub(without_isbn),
            undelivered = self.undelivered
        );
        let narrow: Vec<Phrase> = [self.bottleneck(), self.quota()].into_iter().flatten().collect();
        if narrow.is_empty() {
            steps
        } else {
            phrase!(
                "{steps}; bottleneck: {narrow}",
                "{steps}。ボトルネック：{narrow}",
                narrow = Phrase::list(narrow)
            )
        }
    }

    /// The step that limits what is sent, if one does; a used-up quota is reported separately.
    fn bottleneck(&self) -> Option<Phrase> {
        if let Some(Wrong::Credentials(why) | Wrong::Config(why) | Wrong::Failed(why)) =
            &self.collected.trouble
        {
            return Some(phrase!("the search failed ({why})", "検索に失敗（{why}）"));
        }
        self.after_collecting().or_else(|| self.while_collecting())
    }

    /// The used-up quota: always reported, because the run waits for it whatever the bottleneck is.
    fn quota(&self) -> Option<Phrase> {
        match (self.collected.stop, self.collected.resumes_at) {
            (_, Some(at)) => {
                Some(phrase!("quota, no more requests before {at}", "クォータ（{at} まで要求できません）"))
            }
            (Some(StopReason::Quota), None) => Some(phrase!(
                "quota, the provider is paused until it is resumed",
                "クォータ（再開されるまで一時停止中）"
            )),
            (_, None) => None,
        }
    }

    /// What prevents found books from being sent.
    fn after_collecting(&self) -> Option<Phrase> {
        let HeldBack { on_their_way, paused, next_digest_at, has_unsent_digest } = self.held_back;
        let waiting = self.undelivered.saturating_sub(on_their_way).saturating_sub(paused);
        let sent_before = on_their_way.saturating_sub(self.queued.new);
        if !self.has_channels && self.undelivered > 0 {
            Some(phrase!(
                "nothing is sent, `deliver` names no channel",
                "送信しません（`deliver` にチャンネルがありません）"
            ))
        } else if self.delivery == DeliveryMode::NoDeliver && self.undelivered > 0 {
            let count = self.undelivered;
            Some(phrase!(
                "--no-deliver, {count} wait for a run that delivers",
                "--no-deliver（{count} 件は次に送信する実行を待っています）"
            ))
        } else if let Some(at) = next_digest_at {
            Some(phrase!(
                "a digest was refused, the next is made after {at}",
                "ダイジェストが拒否されたため、次は {at} 以降"
            ))
        } else if waiting > 0 && self.queued.new > 0 {
            Some(phrase!(
                "mail_limit, {waiting} more wait for the next digest",
                "mail_limit（残り {waiting} 件は次のダイジェスト）"
            ))
        } else if waiting > 0 && has_unsent_digest {
            Some(phrase!(
                "the channel, the last digest is not sent yet and {waiting} more wait for the next",
                "チャンネル（前のダイジェストが未送信のため、残り {waiting} 件は次のダイジェスト）"
            ))
        } else if waiting > 0 {
            Some(phrase!(
                "no channel could make a digest of the {waiting} that wait",
                "待っている {waiting} 件のダイジェストを作れるチャンネルがありません"
            ))
        } else if sent_before > 0 {
            Some(phrase!(
                "the channel, {count} are on their way",
                "チャンネル（{count} 件は送信の途中）",
                count = sent_before
            ))
        } else if paused > 0 {
            Some(phrase!(
                "refused digests, {paused} are in none for a while",
                "ダイジェストの拒否（{paused} 件はしばらく対象外）"
            ))
        } else {
            None
        }
    }

    /// What prevents more books from being found, other than the quota.
    fn while_collecting(&self) -> Option<Phrase> {
        let Collected { returned, without_isbn, new, stop, .. } = self.collected;
        match stop {
            Some(StopReason::Quota) => None,
            None => {
                Some(phrase!("exhausted, the search was read to its end", "枯渇（検索結果はすべて取得済み）"))
            }
            Some(StopReason::Exhausted) => Some(phrase!(
                "exhausted, the search is now read to its end",
                "枯渇（検索結果をすべて取得しました）"
            )),
            Some(_) if returned > 0 && without_isbn == returned => {
                Some(phrase!("none of the volumes has an ISBN", "ISBN のある書籍がありません"))
            }
            Some(_) if returned > 0 && new == 0 => {
                Some(phrase!("all of them were known", "すべて既知の書籍です"))
            }
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
            trouble: Some(Wrong::Failed("HTTP 500".into())),
            ..collected(0, 0, 0, Some(StopReason::Error))
        };
        let on_their_way = |on_their_way| HeldBack { on_their_way, ..HeldBack::default() };
        let refused = HeldBack { paused: 5, next_digest_at: Some(at), ..HeldBack::default() };
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
                collected(5, 0, 5, max),
                10,
                queued(0, 0),
                HeldBack { has_unsent_digest: true, ..on_their_way(5) },
                true,
                "collected 5 → with ISBN 5 → new 5 → undelivered 10 → queued 0; bottleneck: the channel, the last digest is not sent yet and 5 more wait for the next",
            ),
            (
                failed,
                0,
                queued(0, 0),
                on_their_way(0),
                true,
                "collected 0 → with ISBN 0 → new 0 → undelivered 0 → queued 0; bottleneck: the search failed (HTTP 500)",
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
            let delivery = DeliveryMode::Queue;
            let funnel = Funnel { collected, undelivered, queued, held_back, has_channels, delivery };
            assert_eq!(funnel.phrase().to_string(), expected);
        }
    }
}
