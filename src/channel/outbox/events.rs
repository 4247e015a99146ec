//! Events of messages and channels.

use super::model::State;
use crate::event_codes;

event_codes! {
    /// Events of a message.
    DeliveryCode on "delivery";
    Ready = "ready", "queued", "送信待ちに登録";
    Held = "held", "waiting for approval", "確認待ち";
    Deferred = "deferred", "put off", "延期";
    Unknown = "unknown", "may or may not have been sent", "送信済みか不明";
    Sent = "sent", "sent", "送信";
    Failed = "failed", "failed", "失敗";
    Skipped = "skipped", "discarded", "送信しないことに決定";
    Confirmed = "confirmed", "confirmed as arrived", "届いたことを確認";
    Approved = "approved", "approved", "送信を承認";
    Retried = "retried", "to be tried again, by hand", "手動で再送";
    Repeated = "repeated", "a repeat was requested", "もう一度送るよう指示";
    Cleared = "cleared", "checked, and sent", "確認のうえ送信";
    SentAgain = "sent_again", "sent once more, because it may have got lost", "届いていない可能性があるため再送";
}

impl DeliveryCode {
    /// The event for a message added in this state.
    pub(super) fn when_added(state: State) -> Self {
        match state {
            State::Ready => Self::Ready,
            state => Self::after_attempt(state),
        }
    }

    /// The event for an attempt that ended in this state.
    pub(super) fn after_attempt(state: State) -> Self {
        match state {
            State::Ready | State::Sending => Self::Deferred,
            State::Unknown => Self::Unknown,
            State::Sent => Self::Sent,
            State::Failed => Self::Failed,
            State::Held => Self::Held,
            State::Skipped => Self::Skipped,
        }
    }
}

event_codes! {
    /// Events of a channel.
    ChannelCode on "channel";
    AskedToWait = "asked_to_wait", "asked us to wait", "待つよう指示された";
    NoEncryption = "no_encryption", "cannot be reached encrypted; paused", "暗号化して接続できないため一時停止";
    CredentialsRejected = "credentials_rejected", "rejected our credentials; paused until they change", "認証情報が拒否されたため、変更されるまで一時停止";
    CredentialsChanged = "credentials_changed", "has new credentials and is tried again", "認証情報が変わったため再試行";
}

event_codes! {
    /// Events of the thing that a message is about.
    MessageCode;
    NotRendered = "not_rendered", "a message could not be made", "メッセージを作成できませんでした";
}
