//! The result of reading a feed: counts, and the line for the report.

use crate::engine::cut;
use crate::parse::Cut;
use crate::phrase;
use crate::phrase::{Phrase, Value};

/// The counts of one fetch of the feed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Whether the server answered 304.
    pub is_unchanged: bool,
    pub added: usize,
    /// Items that were recorded at the first fetch.
    pub baseline: usize,
    /// Items that were recorded because the feed lists old entries under new addresses.
    pub rewritten: usize,
    /// Items that were recorded because they are older than all entries that the feed listed before.
    pub moved_up: usize,
    /// Items that `include` and `exclude` filter out.
    pub filtered: usize,
    /// Entries ignored because their date is in the future.
    pub future: usize,
    /// Entries without a usable address.
    pub unusable: usize,
    /// Why the posts of the new items wait for approval, if they do.
    pub held: Option<HoldReason>,
    /// The part of the feed that exceeds a limit.
    pub cut: Option<Cut>,
}

/// Why the posts of new items wait for approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldReason {
    /// They are more than `hold_above`.
    TooMany,
    /// They are most of the feed.
    MostOfTheFeed,
}

impl HoldReason {
    pub(in crate::press) fn phrase(self) -> Phrase {
        match self {
            HoldReason::TooMany => phrase!(
                "their posts need approval: more than `hold_above` at once",
                "確認待ち：一度に `hold_above` を超えました"
            ),
            HoldReason::MostOfTheFeed => phrase!(
                "their posts need approval: more than half of the feed at once",
                "確認待ち：一度にフィードの半分を超えました"
            ),
        }
    }
}

impl Collected {
    pub(in crate::press) fn phrase(&self) -> Phrase {
        if self.is_unchanged {
            return phrase!("feed unchanged", "フィードに変化なし");
        }
        let (baseline, rewritten, moved_up) = (self.baseline, self.rewritten, self.moved_up);
        let mut parts: Vec<Value> =
            vec![phrase!("{count} new", "新着 {count} 件", count = self.added).into()];
        if baseline > 0 {
            parts.push(phrase!("{baseline} recorded as known", "既知として記録 {baseline} 件").into());
        }
        if rewritten > 0 {
            parts.push(phrase!("{rewritten} at a new address", "アドレス変更 {rewritten} 件").into());
        }
        if moved_up > 0 {
            let older = phrase!(
                "{moved_up} older at the end of the feed",
                "フィードの末尾に現れた以前の記事 {moved_up} 件"
            );
            parts.push(older.into());
        }
        if self.filtered > 0 {
            let filtered = self.filtered;
            parts.push(
                phrase!(
                    "{filtered} left out by `include` or `exclude`",
                    "`include`・`exclude` により対象外 {filtered} 件"
                )
                .into(),
            );
        }
        parts.extend(left_out(self.future, self.unusable));
        parts.extend(self.held.map(|held| Value::from(held.phrase())));
        parts.extend(self.cut.map(|cut| Value::from(read_in_part(cut))));
        phrase!("{parts}", "{parts}")
    }
}

/// The line when a part of the feed exceeds a limit.
fn read_in_part(cut: Cut) -> Phrase {
    phrase!("read in part: {why}", "一部のみ読み込み：{why}", why = cut::phrase(cut))
}

/// The entries that did not become items, by reason.
pub(in crate::press) fn left_out(future: usize, unusable: usize) -> impl Iterator<Item = Value> {
    let future =
        (future > 0).then(|| phrase!("{future} dated in the future", "日付が未来のもの {future} 件"));
    let unusable = (unusable > 0)
        .then(|| phrase!("{unusable} without a usable link", "有効なリンクのないもの {unusable} 件"));
    [future, unusable].into_iter().flatten().map(Value::from)
}
