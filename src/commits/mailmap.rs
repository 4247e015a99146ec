//! Git's `.mailmap`: which names and addresses in commits belong to which person.

use std::collections::BTreeMap;

use super::author::email_key;

/// The entries of a mailmap by the address in commits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mailmap {
    by_email: BTreeMap<String, Vec<MailmapEntry>>,
}

/// One line of it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct MailmapEntry {
    /// The name in commits that the entry is limited to, if any.
    commit_name: Option<String>,
    name: Option<String>,
    email: Option<String>,
}

impl Mailmap {
    /// Parses a mailmap; skips lines that are not entries, as git does.
    pub fn parse(text: &str) -> Self {
        let mut map = Self::default();
        for line in text.lines() {
            map.add(line);
        }
        map
    }

    /// Adds the entries of another one.
    pub fn extend(&mut self, other: Self) {
        for (email, entries) in other.by_email {
            self.by_email.entry(email).or_default().extend(entries);
        }
    }

    fn add(&mut self, line: &str) -> Option<()> {
        let line = line.trim();
        if line.starts_with('#') {
            return None;
        }
        let (name, email, rest) = read_pair(line)?;
        let (commit_email, entry) = match read_pair(rest) {
            Some((commit_name, commit_email, _)) => (
                commit_email,
                MailmapEntry { commit_name: some(commit_name), name: some(name), email: some(email) },
            ),
            None => (email, MailmapEntry { commit_name: None, name: some(name), email: None }),
        };
        self.by_email.entry(email_key(commit_email)).or_default().push(entry);
        Some(())
    }

    /// The key of the person behind a name and an address, and their proper name.
    pub fn find(&self, name: &str, email: &str) -> (String, Option<&str>) {
        let key = email_key(email);
        let Some(entries) = self.by_email.get(&key) else { return (key, None) };
        let is_of = |entry: &&MailmapEntry| {
            entry.commit_name.as_ref().is_some_and(|wanted| wanted.to_lowercase() == name.to_lowercase())
        };
        // As in git, the last of several lines counts, and one with a name before one without.
        let found = entries.iter().rev().find(is_of);
        let found = found.or_else(|| entries.iter().rev().find(|entry| entry.commit_name.is_none()));
        match found {
            Some(entry) => (entry.email.as_deref().map_or(key, email_key), entry.name.as_deref()),
            None => (key, None),
        }
    }
}

/// `Name <address>` at the beginning of a text, and what follows.
fn read_pair(text: &str) -> Option<(&str, &str, &str)> {
    let (name, rest) = text.split_once('<')?;
    let (email, rest) = rest.split_once('>')?;
    Some((name.trim(), email.trim(), rest))
}

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commits::author::fingerprint;

    #[test]
    fn the_four_forms_of_a_line_mean_what_git_says() {
        let map = Mailmap::parse(
            "# people\nAnn Author <ann@old.example>\n<bob@new.example> <bob@old.example> # moved\n\
             Cid Carter <cid@new.example> <CID@old.example>\nDee Doe <dee@new.example> root <root@host>\n\
             Eve <eve@new.example> eve <root@host>\nnonsense\n",
        );
        let key = fingerprint;
        for (name, email, expected_key, expected_name) in [
            ("ann", "Ann@Old.example", key("ann@old.example"), Some("Ann Author")),
            ("Bob", "bob@old.example", key("bob@new.example"), None),
            ("c", "cid@old.example", key("cid@new.example"), Some("Cid Carter")),
            ("Root", "root@host", key("dee@new.example"), Some("Dee Doe")),
            ("eve", "root@host", key("eve@new.example"), Some("Eve")),
            ("somebody", "root@host", key("root@host"), None),
            ("x", "x@nowhere", key("x@nowhere"), None),
            ("c", &key("cid@old.example"), key("cid@new.example"), Some("Cid Carter")),
        ] {
            assert_eq!(map.find(name, email), (expected_key, expected_name), "{name} <{email}>");
        }
    }
}
