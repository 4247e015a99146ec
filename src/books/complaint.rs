//! Parses Google's error answers: the reason, and how long to pause. Pure.

use std::time::Duration;

use serde_json::Value as Json;

use crate::fetch::header;
use crate::text;
use crate::time::Timestamp;

/// The pause when the error does not say how long.
const DEFAULT_PAUSE: Duration = Duration::from_secs(60 * 60);
/// The same when a limit per minute is reached.
const MINUTE: Duration = Duration::from_secs(60);
/// Google's quota days begin at midnight in this zone, whatever the zone of our quota is.
const GOOGLE_ZONE: &str = "America/Los_Angeles";
/// Columns of a provider's message that are quoted.
const MESSAGE_COLUMNS: usize = 200;

/// The content of an error answer.
#[derive(Debug, Default)]
pub(super) struct Complaint {
    /// The message, in one line.
    pub(super) message: String,
    /// Every reason that it gives, in lower case.
    reasons: Vec<String>,
    /// What the limit counts by, such as `1/d/{project}`, and its name, such as `defaultPerDayPerProject`; lower case.
    limits: Vec<String>,
    /// Whether the limit is 0.
    pub(super) allows_nothing: bool,
    /// The delay of `google.rpc.RetryInfo`.
    pub(super) retry_delay: Option<Duration>,
}

/// What a limit counts by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Period {
    Day,
    Minute,
}

impl Complaint {
    /// Parses the body of an error; empty if it is not JSON.
    pub(super) fn read(body: &[u8]) -> Self {
        let Ok(body) = serde_json::from_slice::<Json>(body) else { return Self::default() };
        let error = &body["error"];
        let lists = [&error["errors"], &error["details"]];
        let reasons = lists
            .into_iter()
            .filter_map(Json::as_array)
            .flatten()
            .map(|entry| &entry["reason"])
            .chain([&error["status"]])
            .filter_map(Json::as_str)
            .map(str::to_ascii_lowercase)
            .collect();
        let message = text::one_line(error["message"].as_str().unwrap_or_default());
        let details = error["details"].as_array().map(Vec::as_slice).unwrap_or_default();
        let metadata =
            |key: &'static str| details.iter().filter_map(move |one| one["metadata"][key].as_str());
        let limits =
            metadata("quota_unit").chain(metadata("quota_limit")).map(str::to_ascii_lowercase).collect();
        Self {
            message: text::shorten(&message, MESSAGE_COLUMNS),
            reasons,
            limits,
            allows_nothing: metadata("quota_limit_value").any(|value| value == "0"),
            retry_delay: details.iter().find_map(|one| retry_delay(one["retryDelay"].as_str()?)),
        }
    }

    fn any(&self, test: impl Fn(&str) -> bool) -> bool {
        self.reasons.iter().any(|reason| test(reason))
    }

    /// Whether a limit was reached.
    pub(super) fn is_quota(&self) -> bool {
        self.any(|reason| {
            reason.contains("limitexceeded")
                || reason.contains("quotaexceeded")
                || reason == "resource_exhausted"
        })
    }

    /// A daily limit lasts until Google's next day, whatever `Retry-After` says; one per minute for as long as it says.
    pub(super) fn paused_until(&self, wait: Option<Duration>, now: Timestamp) -> Timestamp {
        match (self.period(), wait) {
            (Some(Period::Day), _) => next_google_day(now),
            (_, Some(wait)) => now.plus(wait),
            (Some(Period::Minute), None) => now.plus(MINUTE),
            (None, None) => now.plus(DEFAULT_PAUSE),
        }
    }

    /// From the metadata of the error; without any, from the older reasons.
    fn period(&self) -> Option<Period> {
        let names =
            |pieces: [&str; 2]| self.limits.iter().any(|one| pieces.iter().any(|piece| one.contains(piece)));
        if names(["/d/", "perday"]) {
            Some(Period::Day)
        } else if names(["/min/", "perminute"]) {
            Some(Period::Minute)
        } else if self.any(|reason| reason.starts_with("dailylimit") || reason.contains("quotaexceeded")) {
            Some(Period::Day)
        } else {
            None
        }
    }

    /// Whether Google cannot determine the country of the request.
    pub(super) fn is_place_unknown(&self) -> bool {
        self.any(|reason| reason == "unknownlocation")
    }

    /// Whether the key is not accepted.
    pub(super) fn is_credential(&self) -> bool {
        const REFUSALS: [&str; 11] = [
            "keyinvalid",
            "keyexpired",
            "api_key_invalid",
            "api_key_service_blocked",
            "api_key_ip_address_blocked",
            "api_key_http_referrer_blocked",
            "accessnotconfigured",
            "service_disabled",
            "iprefererblocked",
            "forbidden",
            "unauthenticated",
        ];
        self.any(|reason| REFUSALS.contains(&reason))
    }
}

/// A duration as Google's JSON writes it: `34s`, `1.5s`.
fn retry_delay(text: &str) -> Option<Duration> {
    let secs: f64 = text.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(secs).ok().map(|wait| wait.min(header::LONGEST_WAIT))
}

fn next_google_day(now: Timestamp) -> Timestamp {
    let Ok(zone) = jiff::tz::TimeZone::get(GOOGLE_ZONE) else { return now.plus(DEFAULT_PAUSE) };
    let tomorrow = now.date_in(&zone).saturating_add(jiff::Span::new().days(1));
    tomorrow.to_zoned(zone).map_or_else(|_| now.plus(DEFAULT_PAUSE), |midnight| midnight.timestamp().into())
}
