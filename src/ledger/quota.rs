//! Daily quotas: a request is counted before it is sent, so that any number of processes together stay within the
//! limit.

use crate::config;
use crate::db::{self, FromRow, Tx};
use crate::time::Timestamp;
use crate::{params, sql};

/// The daily limit of a provider.
#[derive(Clone, Debug)]
pub struct Quota {
    /// As in `api_usage`.
    pub provider: String,
    /// The limit, and when the provider's day begins.
    pub rule: config::Quota,
}

/// The result of a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grant {
    /// Counted; the request may be sent. `left` more are available today.
    Granted { left: u32 },
    /// Not counted; do not send anything before `resets_at`.
    Exhausted { resets_at: Timestamp },
}

/// The use on one day.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, FromRow)]
pub struct QuotaUsage {
    /// `YYYY-MM-DD`.
    pub date: String,
    pub provider: String,
    pub count: i64,
}

impl Quota {
    /// The provider's calendar day at `now`, as `YYYY-MM-DD`.
    pub fn day(&self, now: Timestamp) -> String {
        self.rule.date_at(now).to_string()
    }

    /// When the provider's next day begins.
    pub fn resets_at(&self, now: Timestamp) -> Timestamp {
        self.rule.next_day_at(now)
    }

    /// Counts `amount` requests before they are sent, or none if they are too many.
    pub fn reserve(&self, tx: &mut Tx<'_>, amount: u32, now: Timestamp) -> db::Result<Grant> {
        let exhausted = Grant::Exhausted { resets_at: self.resets_at(now) };
        if amount > self.rule.per_day {
            return Ok(exhausted);
        }
        let used = tx.find(
            sql!(
                "INSERT INTO api_usage (date, provider, count) VALUES (?1, ?2, ?3)
                 ON CONFLICT (date, provider) DO UPDATE SET count = api_usage.count + excluded.count
                 WHERE api_usage.count + excluded.count <= ?4
                 RETURNING count"
            ),
            params![self.day(now), self.provider, amount, self.rule.per_day],
            |row| row.get::<i64>(0),
        )?;
        Ok(match used {
            Some(used) => Grant::Granted {
                left: u32::try_from(i64::from(self.rule.per_day).saturating_sub(used)).unwrap_or(0),
            },
            None => exhausted,
        })
    }

    /// How many were counted today.
    pub fn used(&self, tx: &mut Tx<'_>, now: Timestamp) -> db::Result<i64> {
        tx.count(
            sql!("SELECT count FROM api_usage WHERE date = ?1 AND provider = ?2"),
            params![self.day(now), self.provider],
        )
    }
}

/// Newest days first, of one provider or of all.
pub fn list_usage(tx: &mut Tx<'_>, provider: Option<&str>, limit: usize) -> db::Result<Vec<QuotaUsage>> {
    tx.list(
        sql!(
            "SELECT date, provider, count FROM api_usage
             WHERE provider = COALESCE(?1, provider) ORDER BY date DESC, provider LIMIT ?2"
        ),
        params![provider, limit],
        FromRow::from_row,
    )
}

/// Every provider that was ever used.
pub fn list_providers(tx: &mut Tx<'_>) -> db::Result<Vec<String>> {
    tx.list(sql!("SELECT DISTINCT provider FROM api_usage ORDER BY provider"), params![], |row| row.get(0))
}

/// Adds the count of another program; if there is a count already, the larger one is kept. `true` if the day was new.
pub fn add_usage(tx: &mut Tx<'_>, usage: &QuotaUsage) -> db::Result<bool> {
    let added = tx.execute(
        sql!(
            "INSERT INTO api_usage (date, provider, count) VALUES (?1, ?2, ?3)
             ON CONFLICT (date, provider) DO NOTHING"
        ),
        params![usage.date, usage.provider, usage.count],
    )?;
    if added == 0 {
        tx.execute(
            sql!("UPDATE api_usage SET count = ?3 WHERE date = ?1 AND provider = ?2 AND count < ?3"),
            params![usage.date, usage.provider, usage.count],
        )?;
    }
    Ok(added == 1)
}

/// Deletes the count of a provider on one day; returns it.
pub fn reset_usage(tx: &mut Tx<'_>, provider: &str, date: &str) -> db::Result<Option<i64>> {
    tx.find(
        sql!("DELETE FROM api_usage WHERE provider = ?1 AND date = ?2 RETURNING count"),
        params![provider, date],
        |row| row.get(0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota(zone: &str, day_starts: &str) -> Quota {
        let rule = config::Quota {
            per_day: 100,
            day_starts: day_starts.parse().unwrap(),
            zone: zone.parse().unwrap(),
        };
        Quota { provider: "google_books".into(), rule }
    }

    #[test]
    fn the_day_is_the_providers_calendar_day() {
        let tokyo = quota("Asia/Tokyo", "00:00");
        for (now, day, resets_at) in [
            ("2026-01-14T14:59:59.999Z", "2026-01-14", "2026-01-14T15:00:00.000Z"),
            ("2026-01-14T15:00:00.000Z", "2026-01-15", "2026-01-15T15:00:00.000Z"),
        ] {
            let now: Timestamp = now.parse().unwrap();
            assert_eq!(tokyo.day(now), day);
            assert_eq!(tokyo.resets_at(now).to_string(), resets_at);
        }
    }

    #[test]
    fn a_day_may_begin_later_and_last_23_or_25_hours() {
        let gemini = quota("America/Los_Angeles", "00:00");
        let before: Timestamp = "2026-03-08T08:00:00Z".parse().unwrap();
        assert_eq!(gemini.resets_at(before).to_string(), "2026-03-09T07:00:00.000Z", "23 hours");
        let late = quota("UTC", "06:00");
        assert_eq!(late.day("2026-01-15T05:59:00Z".parse().unwrap()), "2026-01-14");
        assert_eq!(late.day("2026-01-15T06:00:00Z".parse().unwrap()), "2026-01-15");
    }
}
