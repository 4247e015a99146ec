//! Events of books and of searches.

use crate::event_codes;
use crate::ledger::Subject;

/// The word before the ISBN of a book.
pub const BOOK: &str = "book";
/// The word before the prefix of a token.
pub const TOKEN: &str = "token";

/// A book, as events refer to it.
pub fn book(isbn13: impl std::fmt::Display) -> Subject {
    Subject::new(BOOK, isbn13)
}

event_codes! {
    BookCode on BOOK;
    Baseline = "baseline", "was there at the first run: recorded, not sent", "初回からあったため記録のみ（通知なし）";
    Collected = "collected", "found", "発見";
    NotWanted = "not_wanted", "found, but not wanted by the config", "発見（設定により対象外）";
    Queued = "queued", "chosen for a digest", "ダイジェストに選択";
    Delivered = "delivered", "sent", "送信済み";
    Released = "released", "its digest was not sent; it is chosen again later", "ダイジェストが送られなかったため、後日また選択";
    DeliveryReset = "delivery_reset", "its delivery was forgotten by hand", "送信の記録を手動で取り消し";
    TokenRevoked = "token_revoked", "a link to its prompt was revoked", "プロンプトへのリンクを無効化";
}

event_codes! {
    SearchCode on "job";
    Exhausted = "exhausted", "the search was read to its end", "検索結果をすべて取得（枯渇）";
}
