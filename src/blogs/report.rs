//! The counts of a round over all blogs, and its report.

use serde::{Deserialize, Serialize};

use crate::engine::cut;
use crate::parse::Cut;
use crate::phrase;
use crate::phrase::{Phrase, Value};
use crate::time::Timestamp;

/// The most failing blogs that a report lists.
pub const MAX_NAMED: usize = 10;
/// Up to this many failing blogs, a report does not mention the command that lists them.
const FEW: usize = 3;
/// The most blogs that wait, or were read in part, in the line of a report.
const NAMED_WAITS: usize = 3;

/// A blog that could not be read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailedBlog {
    blog: String,
    #[serde(with = "crate::phrase::stored")]
    error: Phrase,
    /// The end of the wait that its server asked for.
    until: Option<Timestamp>,
}

impl FailedBlog {
    /// What went wrong, in words.
    pub fn phrase(&self) -> Phrase {
        let Self { blog, error, until } = self;
        match until {
            Some(until) => phrase!(
                "{blog}: {error}; not checked before {until}",
                "{blog}：{error}（{until} まで確認しません）"
            ),
            None => phrase!("{blog}: {error}", "{blog}：{error}"),
        }
    }
}

/// The counts of a round. Stored with every chunk, so that those of several processes can be added.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RoundCounts {
    /// Blogs that were checked.
    pub checked: usize,
    /// Of these, read for the first time.
    pub first: usize,
    /// Entries that were recorded at the first check.
    pub recorded: usize,
    /// Of the checked, those with new entries.
    pub changed: usize,
    /// New entries.
    pub entries: usize,
    /// Of the checked, those that failed.
    pub failed: usize,
    /// Of these, those whose server asked us to wait.
    pub sent_away: usize,
    /// Of these, those that fail until the config changes.
    pub blocked: usize,
    /// The first failures.
    pub problems: Vec<FailedBlog>,
    /// Blogs that were not checked because their server had asked us to wait.
    pub waiting: usize,
    /// The first of them, and until when.
    pub waits: Vec<Value>,
    /// Blogs that exceed a limit.
    pub cut: usize,
    /// The first of them, and the limit.
    pub cuts: Vec<Value>,
}

impl RoundCounts {
    /// The report line; `blogs` is the number in the config.
    pub fn summary(&self, blogs: usize) -> Phrase {
        let others = self.first + self.changed + self.failed;
        let mut parts = Vec::new();
        if self.checked > others || (others == 0 && self.waiting == 0) {
            let count = self.checked.saturating_sub(others);
            parts.push(phrase!("{count} unchanged", "変化なし {count} 件"));
        }
        if self.first > 0 {
            parts.push(phrase!(
                "{count} read for the first time ({entries existing entry} recorded, none sent)",
                "初回 {count} 件（既存の {entries} 件を記録、通知なし）",
                count = self.first,
                entries = self.recorded
            ));
        }
        if self.changed > 0 {
            parts.push(phrase!(
                "{count} with {entries new entry}",
                "更新 {count} 件（新着 {entries} 件）",
                count = self.changed,
                entries = self.entries
            ));
        }
        let count = self.failed;
        if count > FEW {
            parts.push(phrase!(
                "{count} failed (`tsuzuki blog ls --failing`)",
                "失敗 {count} 件（`tsuzuki blog ls --failing`）"
            ));
        } else if count > 0 {
            parts.push(phrase!("{count} failed", "失敗 {count} 件"));
        }
        if self.waiting > 0 {
            let mut waits = self.waits.clone();
            if let Some(more) = self.waiting.checked_sub(waits.len()).filter(|more| *more > 0) {
                waits.push(phrase!("{more} more", "ほか {more} 件").into());
            }
            parts.push(phrase!(
                "{count} waiting as asked by their servers ({waits})",
                "サーバーの指示で待機中 {count} 件（{waits}）",
                count = self.waiting
            ));
        }
        if self.cut > 0 {
            let mut cuts = self.cuts.clone();
            if let Some(more) = self.cut.checked_sub(cuts.len()).filter(|more| *more > 0) {
                cuts.push(phrase!("{more} more", "ほか {more} 件").into());
            }
            parts.push(phrase!(
                "{count} read in part ({cuts})",
                "一部のみ読み込み {count} 件（{cuts}）",
                count = self.cut
            ));
        }
        let parts: Vec<Value> = parts.into_iter().map(Value::from).collect();
        phrase!(
            "checked {checked} of {blogs blog}: {parts}",
            "{blogs} 件中 {checked} 件を確認：{parts}",
            checked = self.checked
        )
    }

    /// Whether every check failed; a server that asks us to wait is no failure of the whole run.
    pub fn all_failed(&self) -> bool {
        self.checked > 0 && self.failed == self.checked && self.sent_away + self.waiting == 0
    }

    /// Counts a blog whose server asked us to wait.
    pub fn wait(&mut self, blog: &str, until: Timestamp) {
        self.waiting += 1;
        if self.waits.len() < NAMED_WAITS {
            self.waits.push(phrase!("{blog} until {until}", "{blog}：{until} まで").into());
        }
    }

    /// Counts a blog that was read in part.
    pub fn cut(&mut self, blog: &str, cut: Cut) {
        self.cut += 1;
        if self.cuts.len() < NAMED_WAITS {
            self.cuts.push(phrase!("{blog}: {why}", "{blog}：{why}", why = cut::phrase(cut)).into());
        }
    }

    /// Counts a blog that could not be read, with the end of the wait that its server asked for.
    pub fn fail(&mut self, blog: &str, error: &Phrase, until: Option<Timestamp>) {
        self.failed += 1;
        self.sent_away += usize::from(until.is_some());
        if self.problems.len() < MAX_NAMED {
            self.problems.push(FailedBlog { blog: blog.to_owned(), error: error.clone(), until });
        }
    }

    /// The failures in the same order every time, whichever came first.
    pub fn list_problems(&self) -> Vec<Phrase> {
        let mut problems: Vec<&FailedBlog> = self.problems.iter().collect();
        problems.sort_by(|one, other| one.blog.cmp(&other.blog));
        problems.into_iter().map(FailedBlog::phrase).collect()
    }

    /// Adds the counts of another part of the round.
    pub fn add(&mut self, other: RoundCounts) {
        self.checked += other.checked;
        self.first += other.first;
        self.recorded += other.recorded;
        self.changed += other.changed;
        self.entries += other.entries;
        self.failed += other.failed;
        self.sent_away += other.sent_away;
        self.blocked += other.blocked;
        self.problems.extend(other.problems);
        self.problems.truncate(MAX_NAMED);
        self.waiting += other.waiting;
        self.waits.extend(other.waits);
        self.waits.truncate(NAMED_WAITS);
        self.cut += other.cut;
        self.cuts.extend(other.cuts);
        self.cuts.truncate(NAMED_WAITS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_reported_in_words() {
        let tally = |checked, first, recorded, changed, entries, failed| {
            let rest = RoundCounts::default();
            RoundCounts { checked, first, recorded, changed, entries, failed, ..rest }.summary(4).to_string()
        };
        assert_eq!(tally(0, 0, 0, 0, 0, 0), "checked 0 of 4 blogs: 0 unchanged");
        assert_eq!(tally(4, 0, 0, 0, 0, 0), "checked 4 of 4 blogs: 4 unchanged");
        assert_eq!(
            tally(2, 2, 8, 0, 0, 0),
            "checked 2 of 4 blogs: 2 read for the first time (8 existing entries recorded, none sent)"
        );
        assert_eq!(
            tally(4, 0, 0, 1, 1, 1),
            "checked 4 of 4 blogs: 2 unchanged, 1 with 1 new entry, 1 failed"
        );
        assert_eq!(tally(1, 0, 0, 0, 0, 1), "checked 1 of 4 blogs: 1 failed");
        let mut failed = RoundCounts::default();
        ["b", "a"].iter().for_each(|blog| failed.fail(blog, &"gone".into(), None));
        assert_eq!(failed.list_problems(), ["a: gone", "b: gone"]);
        let mut waiting = RoundCounts { checked: 1, ..RoundCounts::default() };
        for blog in ["a", "b", "c", "d"] {
            waiting.wait(blog, Timestamp::MIN);
        }
        let at = Timestamp::MIN;
        assert_eq!(
            waiting.summary(5).to_string(),
            format!(
                "checked 1 of 5 blogs: 1 unchanged, 4 waiting as asked by their servers \
                 (a until {at}, b until {at}, c until {at}, 1 more)"
            )
        );
    }
}
