//! Environment variables that stand above the file: the ones the seeds have, and one for the database.

use super::Config;
use super::diagnostic::{Problem, Problems, Source};
use super::env_overrides;
use super::kind::TableKind;
use super::model::Quota;
use super::secret_context::Surroundings;
use super::secret_url::SecretUrl;
use super::tree::Table;
use super::value::Zone;

/// A variable that replaces a key of the file.
pub struct Override {
    /// The variable.
    pub env: &'static str,
    /// The key that it replaces.
    pub key: &'static str,
    apply: Apply,
}

enum Apply {
    /// Once the table of that place has been read.
    Read(TableKind, fn(&mut Config, &str, &Surroundings) -> Result<(), Why>),
    /// Into the tables, before their owners read them.
    Write(fn(&mut Table, &str) -> Result<(), Why>),
}

/// What is wrong with the value, and what to write instead.
pub(super) type Why = (String, Option<String>);

/// Every variable that replaces a key; there are no others.
pub const OVERRIDES: &[Override] = &[
    Override {
        env: "APP_TZ",
        key: "app.timezone",
        apply: Apply::Read(TableKind::App, |config, value, _| {
            let zone: Zone = value.parse().map_err(|err| why(&err))?;
            config.app.timezone = zone;
            Ok(())
        }),
    },
    Override {
        env: "DAILY_BOOKS_API_LIMIT",
        key: "quota.google_books.per_day",
        apply: Apply::Read(TableKind::Quota, |config, value, _| {
            let per_day = value.trim().parse().map_err(|_| {
                (
                    format!("`{value}` is not a number of requests a day"),
                    Some("write for example 100".to_owned()),
                )
            })?;
            let zone = config.app.timezone.clone();
            let quota = config.quotas.entry("google_books".to_owned());
            quota.or_insert_with(|| Quota::from_midnight(per_day, zone)).per_day = per_day;
            Ok(())
        }),
    },
    Override {
        env: "TSUZUKI_STORE_URL",
        key: "store.url",
        apply: Apply::Read(TableKind::Store, |config, value, secret_context| {
            let url = SecretUrl::parse(value, secret_context).map_err(|err| (err.to_string(), None))?;
            url.check().map_err(|err| (err.to_string(), None))?;
            config.store.url = url;
            Ok(())
        }),
    },
    Override {
        env: "GOOGLE_BOOKS_API_KEY",
        key: "job.google_books.api_key",
        apply: Apply::Write(env_overrides::google_books_api_key),
    },
    Override {
        env: "COPY_PAGE_BASE_URL",
        key: "web.public_url",
        apply: Apply::Write(env_overrides::copy_page_base_url),
    },
    Override { env: "SMTP_HOST", key: "channel.NAME.smtp", apply: Apply::Write(env_overrides::smtp_host) },
    Override { env: "SMTP_PORT", key: "channel.NAME.smtp", apply: Apply::Write(env_overrides::smtp_port) },
    Override { env: "SMTP_USER", key: "channel.NAME.user", apply: Apply::Write(env_overrides::smtp_user) },
    Override {
        env: "SMTP_PASS",
        key: "channel.NAME.password",
        apply: Apply::Write(env_overrides::smtp_pass),
    },
    Override { env: "MAIL_TO", key: "channel.NAME.to", apply: Apply::Write(env_overrides::mail_to) },
];

/// Puts what the environment says about `place` over what the file says.
pub(super) fn apply(config: &mut Config, place: TableKind, secret_context: &Surroundings) -> Problems {
    collect(secret_context, |over, value| match &over.apply {
        Apply::Read(own, apply) if *own == place => apply(config, value, secret_context),
        _ => Ok(()),
    })
}

/// Writes what the environment says into the tables of the file.
pub(super) fn write(root: &mut Table, secret_context: &Surroundings) -> Problems {
    collect(secret_context, |over, value| match &over.apply {
        Apply::Write(apply) => apply(root, value),
        Apply::Read(..) => Ok(()),
    })
}

fn collect(
    secret_context: &Surroundings,
    mut apply: impl FnMut(&Override, &str) -> Result<(), Why>,
) -> Problems {
    let mut problems = Problems::default();
    for over in OVERRIDES {
        let Some(value) = secret_context.env.find(over.env) else { continue };
        if let Err((message, hint)) = apply(over, &value) {
            let source = Source::new(format!("${}", over.env), value.as_str());
            let mut problem = Problem::at(&source, 0..value.len(), message)
                .with_label(format!("the environment sets `{}`", over.key));
            problem.hint = hint;
            problems.push(problem);
        }
    }
    problems
}

fn why(err: &super::value::BadValue) -> Why {
    (err.message().to_owned(), err.hint().map(str::to_owned))
}
