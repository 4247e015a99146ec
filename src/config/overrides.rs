//! Environment variables that stand above the file: the ones the seeds have, and one for the database.

use super::Config;
use super::diagnostic::{Problem, Problems, Source};
use super::kind::Place;
use super::model::Quota;
use super::secret_url::SecretUrl;
use super::surroundings::Surroundings;
use super::value::{TimeOfDay, Zone};

/// A variable that replaces a key of the file.
pub struct Override {
    /// The variable.
    pub env: &'static str,
    /// The key that it replaces.
    pub key: &'static str,
    place: Place,
    apply: fn(&mut Config, &str, &Surroundings) -> Result<(), Why>,
}

/// What is wrong with the value, and what to write instead.
type Why = (String, Option<String>);

/// Every variable that replaces a key; there are no others.
pub const OVERRIDES: &[Override] = &[
    Override {
        env: "APP_TZ",
        key: "app.timezone",
        place: Place::App,
        apply: |config, value, _| {
            let zone: Zone = value.parse().map_err(|err| why(&err))?;
            config.app.timezone = zone;
            Ok(())
        },
    },
    Override {
        env: "DAILY_BOOKS_API_LIMIT",
        key: "quota.google_books.per_day",
        place: Place::Quota,
        apply: |config, value, _| {
            let per_day = value.trim().parse().map_err(|_| {
                (
                    format!("`{value}` is not a number of requests a day"),
                    Some("write for example 100".to_owned()),
                )
            })?;
            let zone = config.app.timezone.clone();
            let quota = config.quotas.entry("google_books".to_owned()).or_insert(Quota {
                per_day,
                day_starts: TimeOfDay::MIDNIGHT,
                zone,
            });
            quota.per_day = per_day;
            Ok(())
        },
    },
    Override {
        env: "TSUZUKI_STORE_URL",
        key: "store.url",
        place: Place::Store,
        apply: |config, value, surroundings| {
            let url = SecretUrl::parse(value, surroundings).map_err(|err| (err.to_string(), None))?;
            url.check().map_err(|err| (err.to_string(), None))?;
            config.store.url = url;
            Ok(())
        },
    },
];

/// Puts what the environment says about `place` over what the file says.
pub(super) fn apply(config: &mut Config, place: Place, surroundings: &Surroundings) -> Problems {
    let mut problems = Problems::default();
    for over in OVERRIDES.iter().filter(|over| over.place == place) {
        let Some(value) = surroundings.env.find(over.env) else { continue };
        if let Err((message, hint)) = (over.apply)(config, &value, surroundings) {
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
