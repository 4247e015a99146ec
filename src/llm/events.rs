//! Events of model providers.

use super::PauseReason;
use crate::event_codes;

event_codes! {
    /// Events of a provider.
    ProviderCode on "provider";
    Busy = "provider_busy", "is busy; paused", "混雑のため一時停止";
    UsedUp = "provider_used_up", "is used up for today; paused", "本日の上限に達したため一時停止";
    Down = "provider_down", "does not work; paused", "応答がないため一時停止";
    Locked = "provider_locked", "has no valid key; paused", "有効なキーがないため一時停止";
    Refused = "provider_refused", "refuses our requests; paused", "リクエストが拒否されたため一時停止";
    AskedToWait = "asked_to_wait", "asked us to wait", "待つよう指示された";
}

impl From<PauseReason> for ProviderCode {
    fn from(reason: PauseReason) -> Self {
        match reason {
            PauseReason::Busy => Self::Busy,
            PauseReason::UsedUp => Self::UsedUp,
            PauseReason::Down => Self::Down,
            PauseReason::Locked => Self::Locked,
            PauseReason::Refused => Self::Refused,
        }
    }
}
