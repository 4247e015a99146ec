//! `--since` of listings: a moment, a day, or how long ago.

use super::{Context, Error, Result};
use tsuzuki::config::value::{Since, Span, Zone};
use tsuzuki::phrase;
use tsuzuki::time::Timestamp;

/// Options of listings that can be limited by time.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct SinceArgs {
    /// Only since then: a date (2026-01-15), a moment, or a duration (7d)
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
}

impl SinceArgs {
    pub(super) fn is_given(&self) -> bool {
        self.since.is_some()
    }

    /// The moment; without the option the earliest possible.
    pub(super) async fn moment(&self, context: &Context) -> Result<Timestamp> {
        Ok(self.find(context).await?.unwrap_or(Timestamp::MIN))
    }

    /// The moment, if one is given.
    pub(super) async fn find(&self, context: &Context) -> Result<Option<Timestamp>> {
        let zone = &context.config().await?.app.timezone;
        self.since.as_deref().map(|text| parse(text, zone, context.clock.now())).transpose()
    }
}

/// A moment with its offset, a day that begins at local midnight, or how long ago.
fn parse(text: &str, zone: &Zone, now: Timestamp) -> Result<Timestamp> {
    if let Ok(since) = text.parse::<Since>() {
        return Ok(since.moment(zone.time_zone()));
    }
    text.parse::<Span>().map(|ago| now.minus(ago.duration())).map_err(|_| {
        let message = phrase!(
            "`{text}` is neither a moment nor a day nor a duration",
            "`{text}` は日時・日付・期間のいずれでもありません"
        );
        Error::usage(message).hint(phrase!(
            "write for example 2026-01-15, 2026-01-15T09:00:00+09:00 or 7d",
            "例：2026-01-15、2026-01-15T09:00:00+09:00、7d"
        ))
    })
}
