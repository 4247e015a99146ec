//! Events of items and of the feed of a job.

use crate::event_codes;
use crate::ledger::Subject;

/// The word before the address of an item.
pub const ITEM: &str = "item";
/// The word before the job of a feed.
pub const FEED: &str = "feed";

/// An item by its address, as events refer to it.
pub fn item(url: &str) -> Subject {
    Subject::new(ITEM, url)
}

/// An item by its number, as users refer to it.
pub fn numbered(id: i64) -> Subject {
    Subject::new(ITEM, id)
}

/// The feed of a job, as pauses refer to it.
pub fn feed(job: impl AsRef<str>) -> Subject {
    Subject::new(FEED, job.as_ref())
}

event_codes! {
    ItemCode on ITEM;
    Baseline = "baseline", "was there at the first run: recorded, not sent", "初回からあったため記録のみ（通知なし）";
    Rewritten = "rewritten", "an old entry at a new address: recorded, not sent", "既存の記事のアドレス変更のため記録のみ（通知なし）";
    MovedUp = "moved_up", "an older entry came up at the end of the feed: recorded, not sent", "フィードの末尾に現れた以前の記事のため記録のみ（通知なし）";
    Filtered = "filtered", "left out by `include` or `exclude`; no model request", "`include`・`exclude` の条件により対象外（モデルには問い合わせなし）";
    Found = "found", "found in the feed", "フィードで発見";
    Worth = "worth", "worth a post", "投稿する価値あり";
    NotValuable = "not_valuable", "not worth a post", "投稿する価値なし";
    PageNotReady = "page_not_ready", "the page is not complete yet", "ページが未完成";
    Unchanged = "unchanged", "the page has not changed", "ページに変化なし";
    WaitOver = "wait_over", "given up: the page did not change for as long as `wait_for_page` says", "`wait_for_page` の期間に変化がなかったため終了";
    DownloadFailed = "download_failed", "could not be fetched", "取得に失敗";
    OutOfReach = "out_of_reach", "its site is out of reach; no attempt was counted", "サイトに接続できないため後で再確認（失敗には数えません）";
    LargeFileSkipped = "large_file_skipped", "its files are too large", "ファイルが大きすぎるため対象外";
    ModelFailed = "model_failed", "the model gave no usable answer", "モデルの回答を使えず";
    Queued = "queued", "queued for posting", "投稿待ちに登録";
    Posted = "posted", "posted", "投稿済み";
    PostFailed = "post_failed", "the post failed", "投稿に失敗";
    AlreadyPosted = "already_posted", "had been posted before", "すでに投稿済み";
    AlreadySkipped = "already_skipped", "its post had been discarded before", "以前に投稿しないことに決定済み";
    Skipped = "skipped", "skipped", "対象外に決定";
    Retried = "retried", "to be tried again, by hand", "手動で再試行";
    Closed = "closed", "given up: too many failed attempts", "失敗が多いため終了";
    RetryLimitExceeded = "retry_limit_exceeded", "given up: too many failed attempts", "失敗が多いため終了";
    Held = "held", "its post needs approval: too many are pending at once", "一度に多数が投稿待ちのため確認待ち";
}

event_codes! {
    FeedCode on "job";
    Gone = "feed_gone", "its feed is gone for good; paused", "フィードが消滅したため一時停止";
    Moved = "feed_moved", "its feed has moved for good and is read at the new address", "フィードが恒久的に移転したため、新しいアドレスで読み込みます";
    MovedBack = "feed_moved_back", "the address that its feed had moved to is lost; the one in the config is read again", "移転先のアドレスが失われたため、設定のアドレスに戻します";
    Silent = "feed_silent", "its feed has had nothing new for much longer than usual", "フィードの新着が普段よりはるかに長く途絶えています";
    SilenceOver = "feed_silence_over", "its feed has something new again", "フィードの新着が再開しました";
    ReadInPart = "feed_read_in_part", "a part of its feed is not read", "フィードの一部のみ読み込みます";
    ReadWhole = "feed_read_whole", "its feed is read whole again", "フィード全体を読み込みます";
    Changed = "feed_changed", "its feed has another address and is read again", "フィードのアドレスが変わったため再開";
}
