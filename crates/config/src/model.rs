//! What a config file says, once it is read: the tables that belong to no pipeline, and the common part of every job.

use std::path::PathBuf;

use jiff::civil::Date;
use jiff::{SignedDuration, Zoned};
use schemars::JsonSchema;
use serde::Deserialize;

use super::secret::Secret;
use super::secret_url::SecretUrl;
use super::section::Section;
use super::value::{Cron, FirstRun, HttpUrl, Span, TimeOfDay, Zone};
use stdx::id::JobName;
use stdx::text::Language;
use stdx::time::Timestamp;

/// `[app]`: what holds for everything.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct App {
    /// The time zone of schedules and of all times that are shown or sent. Default: that of the machine (`TZ`,
    /// `/etc/localtime`). `APP_TZ` overrides it.
    pub timezone: Zone,
    /// Whose midnight begins the day of a quota that names no zone: `APP_TZ`, else Asia/Tokyo.
    #[serde(skip)]
    pub quota_zone: Zone,
    /// The language of mails, posts, prompts, pages and commands. Default: that of the locale (`LANG`); where it names
    /// none, what is sent is in Japanese and commands speak English.
    pub language: Option<Language>,
    /// An address that is requested after every run of every job, such as a check of Healthchecks: as it is after a
    /// success, with `/fail` behind it after a failure. A job may have its own.
    pub ping: Option<HttpUrl>,
    /// What the locale of the environment names.
    #[serde(skip)]
    pub locale: Option<Language>,
    /// What we call ourselves in requests; when not set, the name and version of this program.
    pub user_agent: Option<String>,
    /// The channels that are notified of trouble: a job that keeps failing, a source that is gone or silent, a channel or provider
    /// that is locked or used up, messages that wait for approval. Each is reported once, and once when it is over; without
    /// `alert`, `status` shows them.
    pub alert: Vec<String>,
    /// A page or mail address that the operator of a site can turn to; added to the user agent.
    pub contact: Option<String>,
    /// An HTTP proxy for every HTTP request, as `http://USER:PASSWORD@HOST:PORT`; names are then resolved, and private
    /// addresses judged, by the proxy. Mail does not go through it.
    pub proxy: Option<Secret>,
    /// A PEM file, relative to the config file, with certificate authorities that HTTP requests trust besides those of
    /// the machine, e.g. that of a private GitLab.
    pub extra_ca: Option<PathBuf>,
}

impl App {
    /// The language of what is sent.
    pub fn message_language(&self) -> Language {
        self.language.or(self.locale).unwrap_or_default()
    }
}

impl Default for App {
    fn default() -> Self {
        Self {
            timezone: Zone::tokyo(),
            quota_zone: Zone::tokyo(),
            language: None,
            ping: None,
            locale: None,
            user_agent: None,
            alert: Vec::new(),
            contact: None,
            proxy: None,
            extra_ca: None,
        }
    }
}

/// `[store]` as it stands in the file.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct StoreTable {
    /// The database: `sqlite:PATH`, relative to the config file, or `postgres://USER:PASSWORD@HOST/NAME`.
    /// Default: `sqlite:tsuzuki.db` beside the config file. `TSUZUKI_STORE_URL` overrides it.
    pub(super) url: Option<SecretUrl>,
    /// How long checks and events are kept; when not set, for ever.
    pub(super) keep_history: Option<Span>,
}

/// `[store]`: where everything is kept.
#[derive(Clone, Debug)]
pub struct Store {
    pub url: SecretUrl,
    /// The directory of the config file, which a relative `sqlite:` path starts from.
    pub directory: PathBuf,
    /// How long checks and events are kept; `None` is for ever.
    pub keep_history: Option<Span>,
}

/// `[quota.NAME]` as it stands in the file.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct QuotaTable {
    /// How many requests a day may be made at most.
    pub(super) per_day: u32,
    /// The local time at which the provider's day begins.
    #[serde(default)]
    pub(super) day_starts: TimeOfDay,
    /// The provider's time zone. Default: `APP_TZ`, else Asia/Tokyo.
    pub(super) timezone: Option<Zone>,
}

/// `[quota.NAME]`: how much may be asked of a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quota {
    /// How many requests a day may be made at most.
    pub per_day: u32,
    /// The local time at which the provider's day begins.
    pub day_starts: TimeOfDay,
    /// The provider's time zone.
    pub zone: Zone,
}

impl Quota {
    /// So many requests a day that begins at midnight.
    pub fn from_midnight(per_day: u32, zone: Zone) -> Self {
        Self { per_day, day_starts: TimeOfDay::MIDNIGHT, zone }
    }

    /// The provider's day that `now` belongs to.
    pub fn date_at(&self, now: Timestamp) -> Date {
        let local = now.to_jiff().to_zoned(self.zone.time_zone().clone()).datetime();
        let into_day = SignedDuration::from_mins(i64::from(self.day_starts.minutes()));
        local.checked_sub(into_day).map_or(local.date(), jiff::civil::DateTime::date)
    }

    /// The moment at which the day of `now` is over and the count starts again.
    pub fn next_day_at(&self, now: Timestamp) -> Timestamp {
        let start = |date: Date| -> Option<Zoned> {
            date.to_datetime(self.day_starts.time()).to_zoned(self.zone.time_zone().clone()).ok()
        };
        let next = self.date_at(now).tomorrow().ok().and_then(start);
        next.map_or(Timestamp::MAX, |next| next.timestamp().into())
    }
}

/// Keys of a job that mean the same for every kind.
pub(super) const HEAD_KEYS: &[&str] = &[
    "name",
    "kind",
    "every",
    "cron",
    "timezone",
    "enabled",
    "deliver",
    "first_run",
    "hold_above",
    "allow_private",
    "ping",
];

/// The keys that every `[[job]]` has, whatever its kind.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct JobHead {
    /// The name: letters, digits, `-`, `_` and `.`; unique in the file. What the job has saved is
    /// kept under it: a renamed job starts from the beginning.
    #[schemars(with = "String", required)]
    pub(super) name: Option<JobName>,
    /// What the job does.
    #[allow(dead_code, reason = "its section knows it; here it is required and documented")]
    #[schemars(with = "String", required)]
    pub(super) kind: Option<serde::de::IgnoredAny>,
    /// How often it runs, on a grid that starts at local midnight. Default: 5m for press, 1h for others.
    pub(super) every: Option<Span>,
    /// When it runs, instead of `every`.
    pub(super) cron: Option<Cron>,
    /// The time zone of its schedule. Default: that of `[app]`.
    pub(super) timezone: Option<Zone>,
    /// Whether it runs at all.
    #[serde(default = "yes")]
    pub(super) enabled: bool,
    /// The names of the channels that it notifies.
    #[serde(default)]
    pub(super) deliver: Vec<String>,
    /// What the first run sends: "baseline" (nothing), "latest:N" or "all". Default: all for books, baseline for others.
    pub(super) first_run: Option<FirstRun>,
    /// More new things than this at once, of one feed or blog, are held until someone approves them.
    #[serde(default = "hold_above")]
    pub(super) hold_above: u32,
    /// Hosts, addresses or networks inside your own network that the job may reach.
    #[serde(default)]
    pub(super) allow_private: Vec<String>,
    /// An address that is requested after every run, such as a check of Healthchecks; with `/fail` behind it after a
    /// failure. Default: that of `[app]`.
    pub(super) ping: Option<HttpUrl>,
}

/// `[defaults]`: keys that hold for every job that does not set them.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[allow(
    dead_code,
    reason = "read for its errors and its documentation; the keys are merged into the jobs' tables"
)]
pub(super) struct Defaults {
    /// How often jobs run.
    pub(super) every: Option<Span>,
    /// When jobs run, instead of `every`.
    pub(super) cron: Option<Cron>,
    /// The time zone of schedules.
    pub(super) timezone: Option<Zone>,
    /// Whether jobs run at all.
    pub(super) enabled: Option<bool>,
    /// The channels that jobs notify.
    pub(super) deliver: Option<Vec<String>>,
    /// What first runs send.
    pub(super) first_run: Option<FirstRun>,
    /// More new things than this at once, of one feed or blog, are held.
    pub(super) hold_above: Option<u32>,
    /// Private addresses that jobs may reach.
    pub(super) allow_private: Option<Vec<String>>,
    /// The address that is requested after every run.
    pub(super) ping: Option<HttpUrl>,
}

fn yes() -> bool {
    true
}

fn hold_above() -> u32 {
    50
}

/// When a job runs, if the file says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleSpec {
    /// On a fixed grid anchored at local midnight.
    Every(Span),
    /// By a cron schedule.
    Cron(Cron),
    /// As the kind of job does by default.
    Default,
}

/// One `[[job]]`: what is common to all kinds, and the table with the kind's own keys.
#[derive(Clone, Debug)]
pub struct Job {
    pub name: JobName,
    /// What it does.
    pub kind: String,
    /// When it runs.
    pub schedule: ScheduleSpec,
    /// The time zone of its schedule.
    pub timezone: Zone,
    /// Whether it runs at all.
    pub enabled: bool,
    /// The channels that it tells; each exists.
    pub deliver: Vec<String>,
    /// What the first run tells; `None` is the default of the kind.
    pub first_run: Option<FirstRun>,
    /// More new things than this at once, of one feed or blog, are held.
    pub hold_above: u32,
    /// Private addresses that it may reach.
    pub allow_private: Vec<String>,
    /// The address that is requested after every run.
    pub ping: Option<HttpUrl>,
    /// The kind's own keys.
    pub section: Section,
}

/// The schema of the keys that every job has.
pub(super) fn job_head_schema(generator: &mut schemars::SchemaGenerator) -> serde_json::Value {
    JobHead::json_schema(generator).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_providers_day_begins_when_it_says() {
        let midnight = Quota {
            per_day: 1,
            day_starts: TimeOfDay::MIDNIGHT,
            zone: "America/Los_Angeles".parse().unwrap(),
        };
        let later = Quota { day_starts: "01:30".parse().unwrap(), ..midnight.clone() };
        for (now, by_midnight, by_later) in [
            ("2026-01-15T07:59:59Z", "2026-01-14", "2026-01-14"),
            ("2026-01-15T08:00:00Z", "2026-01-15", "2026-01-14"),
            ("2026-01-15T09:29:59Z", "2026-01-15", "2026-01-14"),
            ("2026-01-15T09:30:00Z", "2026-01-15", "2026-01-15"),
            // The night when 02:00 becomes 03:00.
            ("2026-03-08T09:30:00Z", "2026-03-08", "2026-03-08"),
            ("2026-03-09T07:00:00Z", "2026-03-09", "2026-03-08"),
        ] {
            let now: Timestamp = now.parse().unwrap();
            assert_eq!(midnight.date_at(now).to_string(), by_midnight, "{now}");
            assert_eq!(later.date_at(now).to_string(), by_later, "{now}");
            for quota in [&midnight, &later] {
                let next = quota.next_day_at(now);
                assert!(next > now);
                assert_eq!(quota.date_at(next), quota.date_at(now).tomorrow().unwrap(), "{now}");
            }
        }
    }
}
