//! Identifies people in statistics: merges the spellings of one person, and excludes authors and titles.

use schemars::JsonSchema;
use serde::Deserialize;

use super::KIND;
use super::author::{email_key, fingerprint};
use super::config::Keys;
use super::mailmap::Mailmap;
use super::pattern::{any_matches_loosely, is_pattern};
use crate::config::{Config, Problems, Section};
use crate::phrase;

/// The longest mailmap that is read, in bytes.
const MOST_BYTES: u64 = 4 << 20;

/// `[[job.person]]`: names and addresses under which one person commits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Person {
    /// The name that statistics show.
    pub name: String,
    /// Addresses or patterns of them ("ann@*"). Where addresses are hidden, only whole ones can be recognised.
    #[serde(default)]
    pub emails: Vec<String>,
    /// Names in commits or patterns of them.
    #[serde(default)]
    pub names: Vec<String>,
}

/// The settings of all commits jobs about authors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct People {
    persons: Vec<Person>,
    mailmap: Mailmap,
    left_out_authors: Vec<String>,
    left_out_titles: Vec<String>,
}

/// The author of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Author {
    Person {
        /// Identifies them.
        key: String,
        /// Their configured name, if any.
        name: Option<String>,
    },
    /// Excluded by the config.
    LeftOut,
}

impl People {
    /// From the config; problems if a mailmap cannot be read.
    pub fn of(config: &Config) -> Result<Self, Problems> {
        let mut people = Self::default();
        for job in config.jobs.iter().filter(|job| job.kind == KIND) {
            let keys: &Keys = job.section.keys()?;
            people.add(keys, load_mailmap(keys, &job.section)?);
        }
        Ok(people)
    }

    fn add(&mut self, keys: &Keys, mailmap: Mailmap) {
        self.persons.extend(keys.person.iter().cloned());
        self.mailmap.extend(mailmap);
        self.left_out_authors.extend(keys.exclude_authors.iter().cloned());
        self.left_out_titles.extend(keys.exclude_titles.iter().cloned());
    }

    /// The author with this name and stored address.
    pub fn find(&self, name: &str, email: &str) -> Author {
        let (key, mapped) = self.mailmap.find(name, email);
        let names = [Some(name), mapped];
        let has_name =
            |patterns: &[String]| names.iter().flatten().any(|name| any_matches_loosely(patterns, name));
        let has_any_email = |patterns: &[String]| has_email(patterns, email) || has_email(patterns, &key);
        if has_name(&self.left_out_authors) || has_any_email(&self.left_out_authors) {
            return Author::LeftOut;
        }
        let is_meant = |person: &&Person| has_name(&person.names) || has_any_email(&person.emails);
        match self.persons.iter().find(is_meant) {
            Some(person) => {
                Author::Person { key: format!("person:{}", person.name), name: Some(person.name.clone()) }
            }
            None => Author::Person { key, name: mapped.map(str::to_owned) },
        }
    }

    /// Whether commits are excluded by title.
    pub fn excludes_titles(&self) -> bool {
        !self.left_out_titles.is_empty()
    }

    /// Whether commits with this title are excluded.
    pub fn excludes_title(&self, title: &str) -> bool {
        any_matches_loosely(&self.left_out_titles, title)
    }
}

/// Whether one of the patterns matches a stored address, which may be a fingerprint.
fn has_email(patterns: &[String], email: &str) -> bool {
    if email.starts_with("sha256:") {
        patterns.iter().any(|pattern| !is_pattern(pattern) && fingerprint(pattern) == email_key(email))
    } else {
        any_matches_loosely(patterns, email)
    }
}

/// The mailmap that a job names.
pub(super) fn load_mailmap(keys: &Keys, section: &Section) -> Result<Mailmap, Problems> {
    let Some(path) = &keys.mailmap else { return Ok(Mailmap::default()) };
    let path = section.resolve(path);
    let is_too_long = || std::fs::metadata(&path).is_ok_and(|facts| facts.len() > MOST_BYTES);
    let read = if is_too_long() {
        Err(phrase!("it is longer than 4 MiB", "4 MiB を超えています"))
    } else {
        std::fs::read(&path).map_err(|error| error.to_string().into())
    };
    match read {
        Ok(bytes) => Ok(Mailmap::parse(&String::from_utf8_lossy(&bytes))),
        Err(why) => {
            let message = phrase!(
                "the mailmap {path} cannot be read: {why}",
                "mailmap {path} を読み込めません：{why}",
                path = path.display().to_string()
            );
            Err(section.problem("mailmap", message).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn people() -> People {
        let list = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        People {
            persons: vec![
                Person { name: "Ann".into(), emails: list(&["ann@*", "a@home.example"]), names: list(&[]) },
                Person { name: "Bob".into(), emails: list(&[]), names: list(&["bob*"]) },
            ],
            mailmap: Mailmap::parse(
                "Ann of the map <a@home.example> <anna@old.example>\n<noreply@ci.example> <ci@old.example>",
            ),
            left_out_authors: list(&["*[bot]*", "noreply@ci.example"]),
            left_out_titles: list(&["chore(release)*"]),
        }
    }

    #[test]
    fn spellings_come_together_and_robots_do_not_count() {
        let people = people();
        let of = |name: &str, email: &str| match people.find(name, email) {
            Author::Person { key, name } => name.unwrap_or(key),
            Author::LeftOut => "left out".into(),
        };
        for (name, email, expected) in [
            ("x", "Ann@work.example", "Ann".to_owned()),
            ("x", &fingerprint("a@home.example"), "Ann".to_owned()),
            ("x", &fingerprint("ann@work.example"), fingerprint("ann@work.example")),
            ("x", "anna@old.example", "Ann".to_owned()),
            ("Bobby", "b@x", "Bob".to_owned()),
            ("renovate[bot]", "r@x", "left out".to_owned()),
            ("CI", "noreply@CI.example", "left out".to_owned()),
            ("CI", &fingerprint("noreply@ci.example"), "left out".to_owned()),
            ("CI", "ci@old.example", "left out".to_owned()),
            ("Cid", "C@x", fingerprint("c@x")),
        ] {
            assert_eq!(of(name, email), expected, "{name} <{email}>");
        }
        assert!(people.excludes_title("Chore(release): 1.2") && !people.excludes_title("Fix release"));
    }
}
