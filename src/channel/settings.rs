//! Settings that all channels share: pace, limits, quiet hours, timeouts.

use std::time::Duration;

use jiff::tz::TimeZone;

use super::outbox::OnUnknown;
use crate::config::value::{BadValue, QuietHours, checked};
use crate::fetch::AllowPrivate;
use crate::phrase;

/// How a channel is used, whatever its kind.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Minimum time between two messages.
    pub pace: Duration,
    /// Limit for a calendar day.
    pub max_per_day: Option<u32>,
    /// Local hours in which nothing is sent.
    pub quiet_hours: Option<QuietHours>,
    /// The zone of days and quiet hours.
    pub zone: TimeZone,
    pub timeout: Duration,
    /// How often a message is tried before it fails.
    pub max_attempts: u32,
    /// What to do if it cannot be found out whether a message was sent.
    pub on_unknown: OnUnknown,
    /// Private addresses that it may connect to.
    pub allow_private: AllowPrivate,
}

impl Settings {
    /// The lease of a sender: the time to send a message and to record the outcome.
    pub fn lease(&self) -> Duration {
        self.timeout * 3 / 2
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            pace: Duration::ZERO,
            max_per_day: None,
            quiet_hours: None,
            zone: TimeZone::UTC,
            timeout: Duration::from_secs(30),
            max_attempts: 8,
            on_unknown: OnUnknown::default(),
            allow_private: AllowPrivate::none(),
        }
    }
}

/// Defines a channel's config struct: its own keys first, then those of every channel.
///
/// `serde(flatten)` would lose the positions of errors, so the shared keys are copied into each struct.
macro_rules! channel_config {
    ($(#[$attribute:meta])* pub struct $name:ident { $($(#[$field_attribute:meta])* pub $field:ident: $type:ty,)* }) => {
        $(#[$attribute])*
        #[derive(Clone, Debug, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($(#[$field_attribute])* pub $field: $type,)*
            /// The least time between two messages, such as `"10s"`.
            pub(in crate::channel) pace: Option<crate::config::value::Span>,
            /// The most messages in a calendar day; the rest waits until tomorrow.
            #[serde(default, deserialize_with = "crate::channel::settings::read_max_per_day")]
            pub(in crate::channel) max_per_day: Option<u32>,
            /// Local hours in which nothing is sent, such as `"22:00-07:00"`; what is due waits.
            pub(in crate::channel) quiet_hours: Option<crate::config::value::QuietHours>,
            /// The time zone of quiet hours and days; that of `[app]` when not set.
            pub(in crate::channel) timezone: Option<crate::config::value::Zone>,
            /// How long one send may take; default `"30s"`. A mail server has ten minutes to answer the end of the text.
            pub(in crate::channel) timeout: Option<crate::config::value::Span>,
            /// How often a message is tried before it counts as failed; default 8.
            #[serde(default, deserialize_with = "crate::channel::settings::read_max_attempts")]
            pub(in crate::channel) max_attempts: Option<u32>,
            /// What to do when it cannot be determined whether a message was sent: `"resend"` (default) or `"hold"`.
            pub(in crate::channel) on_unknown: Option<crate::channel::outbox::OnUnknown>,
            /// Private addresses that this channel may reach, such as `["127.0.0.1"]`.
            pub(in crate::channel) allow_private: Option<Vec<String>>,
        }

        impl $name {
            /// Parses a table and opens the channel with `new`; returns the problems of both.
            pub(in crate::channel) fn open<B: crate::channel::kind::Backend + 'static>(
                section: &crate::config::Section,
                zone: &crate::config::value::Zone,
                new: impl FnOnce(Self, &crate::config::Section) -> Result<B, crate::config::Problems>,
            ) -> Result<crate::channel::kind::Opened, crate::config::Problems> {
                let config: Self = section.keys().cloned()?;
                let settings = config.settings(section, zone);
                let (settings, backend) = crate::config::Problems::both(settings, new(config, section))?;
                Ok((settings, Box::new(backend)))
            }

            fn settings(
                &self,
                section: &crate::config::Section,
                zone: &crate::config::value::Zone,
            ) -> Result<crate::channel::settings::Settings, crate::config::Problems> {
                let defaults = crate::channel::settings::Settings::default();
                let mut problems = crate::config::Problems::default();
                let private = self.allow_private.as_deref().unwrap_or_default();
                let allow_private = crate::fetch::AllowPrivate::parse(private)
                    .map_err(|error| section.problem("allow_private", error.phrase()));
                let allow_private = problems.note(allow_private).unwrap_or(defaults.allow_private);
                problems.unless_any(crate::channel::settings::Settings {
                    pace: self.pace.map_or(defaults.pace, Into::into),
                    max_per_day: self.max_per_day,
                    quiet_hours: self.quiet_hours,
                    zone: self.timezone.as_ref().unwrap_or(zone).time_zone().clone(),
                    timeout: self.timeout.map_or(defaults.timeout, Into::into),
                    max_attempts: self.max_attempts.unwrap_or(defaults.max_attempts),
                    on_unknown: self.on_unknown.unwrap_or_default(),
                    allow_private,
                })
            }
        }
    };
}
pub(super) use channel_config;

pub(super) fn read_max_attempts<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u32>, D::Error> {
    checked(deserializer, |count| (*count != Some(0)).then_some(()).ok_or_else(sends_nothing))
}

pub(super) fn read_max_per_day<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u32>, D::Error> {
    let hint = || {
        phrase!(
            "remove the channel from `deliver` instead",
            "代わりに `deliver` からチャンネルを外してください"
        )
    };
    checked(deserializer, |count| {
        (*count != Some(0)).then_some(()).ok_or_else(|| sends_nothing().with_hint(hint()))
    })
}

fn sends_nothing() -> BadValue {
    BadValue::new(phrase!("0 would send nothing at all", "0 では何も送られません"))
}
