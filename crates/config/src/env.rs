//! The environment of the config: passed in, so that tests need no global variables.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use stdx::text::Language;

use crate::value::Zone;

/// Looks up environment variables.
#[derive(Clone)]
pub struct Env(Variables);

#[derive(Clone)]
enum Variables {
    OfProcess,
    Fixed(Arc<BTreeMap<String, String>>),
}

impl Env {
    /// The environment of this process; a value that is not UTF-8 counts as unset.
    pub fn of_process() -> Self {
        Self(Variables::OfProcess)
    }

    /// An environment with exactly these variables.
    pub fn of<const N: usize>(variables: [(&str, &str); N]) -> Self {
        let owned = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self(Variables::Fixed(Arc::new(owned.into_iter().collect())))
    }

    /// The value of a variable; an empty one counts as unset.
    pub fn find(&self, name: &str) -> Option<String> {
        let value = match &self.0 {
            Variables::OfProcess => std::env::var(name).ok(),
            Variables::Fixed(variables) => variables.get(name).cloned(),
        };
        value.filter(|value| !value.is_empty())
    }

    /// The time zone given by `TZ` or, for the environment of this process, by the system.
    pub fn find_zone(&self) -> Option<Zone> {
        let named = self.find("TZ").map(|name| name.trim_start_matches(':').to_owned());
        let of_machine = || {
            let file = std::fs::read_link("/etc/localtime").ok()?;
            Some(file.to_str()?.rsplit_once("zoneinfo/")?.1.to_owned())
        };
        match self.0 {
            // A system without a time zone uses UTC.
            Variables::OfProcess => {
                let zone = named.or_else(of_machine).and_then(|name| name.parse::<Zone>().ok());
                Some(zone.filter(|zone| zone.name() != "Etc/UTC").unwrap_or_else(Zone::utc))
            }
            Variables::Fixed(_) => named?.parse().ok(),
        }
    }

    /// The language of the locale, if it is set.
    pub fn find_language(&self) -> Option<Language> {
        let locale = ["LC_ALL", "LC_MESSAGES", "LANG"].iter().find_map(|name| self.find(name))?;
        match locale.split(['.', '_', '@']).next()? {
            "C" | "POSIX" => None,
            "ja" => Some(Language::Ja),
            _ => Some(Language::En),
        }
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Env")
    }
}
