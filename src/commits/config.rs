//! The keys of a `commits` job.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IntoDeserializer as _;

use super::host::{self, HostKind, TokenKind};
use super::people::{self, Person};
use crate::config::value::{BadValue, HttpUrl, Since, checked};
use crate::config::{self, Problems, Secret, Section, UnusedKey};
use crate::phrase;

/// The default number of branches collected at the same time.
const CONCURRENCY: usize = 4;
/// More would only slow down the host for others.
const MOST_CONCURRENCY: usize = 16;

/// Common keys that have no effect here, with the reason.
pub const UNUSED: &[UnusedKey] = &[
    ("hold_above", || {
        phrase!(
            "a run sends one message, however many commits are new",
            "新しいコミットが何件あっても、1 回の実行につき通知は 1 通です"
        )
    }),
    ("first_run", || {
        phrase!(
            "the first run sends one message like every other; `since` leaves older commits out",
            "初回もほかの実行と同じく 1 通で通知します。古いコミットは `since` で除けます"
        )
    }),
];

/// The keys of a job: the address of one of the hosts, and what is the same for all of them.
macro_rules! keys {
    ($($(#[$about:meta])* $key:ident,)+) => {
        /// `[[job]]` with `kind = "commits"`: which branches of which projects are collected.
        #[derive(Clone, Debug, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct Keys {
            $($(#[$about])* #[schemars(with = "HttpUrl")] pub $key: Option<HttpUrl>,)+
            /// An access token with the scope `read_api`; without one only public projects can be read.
            pub token: Option<Secret>,
            /// Projects by path ("group/project") or number.
            #[serde(default)]
            pub projects: Vec<ProjectName>,
            /// How the token is shown: `private` (access tokens), `bearer` (OAuth), `job` (CI) or `deploy`.
            #[serde(default)]
            pub token_kind: TokenKind,
            /// A group by path or number, or several: every project in them and in their subgroups.
            #[serde(default, deserialize_with = "read_groups")]
            #[schemars(with = "OneOrMany")]
            pub group: Vec<ProjectName>,
            /// Every project that the token's user is a member of.
            #[serde(default)]
            pub membership: bool,
            /// Of the projects of groups and memberships, only those whose path fits a pattern ("team/*").
            #[serde(default)]
            pub include: Vec<String>,
            /// … and none whose path fits one of these ("*/sandbox"). Projects that `projects` names are always in.
            #[serde(default)]
            pub exclude: Vec<String>,
            /// Whether archived projects of groups and memberships are collected.
            #[serde(default = "yes")]
            pub archived: bool,
            /// Whether projects of others that are shared with a group are collected, too.
            #[serde(default)]
            pub shared: bool,
            /// Branches by name or pattern ("main", "release/*"). Default: the default branch of each project.
            #[serde(default)]
            pub branches: Vec<String>,
            /// Branches that are not collected, though `branches` fits them.
            #[serde(default)]
            pub exclude_branches: Vec<String>,
            /// Commits before this day ("2024-01-01", in the job's time zone) or moment are not stored.
            pub since: Option<Since>,
            /// Branches collected at the same time, 1 to 16.
            #[serde(default = "concurrency", deserialize_with = "read_concurrency")]
            pub concurrency: usize,
            /// Store a fingerprint of each author's e-mail address instead of the address. Addresses are never shown.
            #[serde(default)]
            pub hide_emails: bool,
            /// People who commit under several names or addresses.
            #[serde(default)]
            pub person: Vec<Person>,
            /// A file in the format of git's `.mailmap`, relative to the config file.
            pub mailmap: Option<PathBuf>,
            /// Authors whose commits do not count in statistics: names, addresses or patterns (`"*[bot]*"`).
            #[serde(default)]
            pub exclude_authors: Vec<String>,
            /// Titles of commits that do not count in statistics, as patterns ("chore(release)*").
            #[serde(default)]
            pub exclude_titles: Vec<String>,
        }

        impl Keys {
            /// Every key that can hold an address, with its value and its kind of host.
            fn list_addresses(&self) -> Vec<(&'static str, Option<&HttpUrl>, HostKind)> {
                vec![$((stringify!($key), self.$key.as_ref(), host::$key::KIND)),+]
            }
        }
    };
}
host::hosts!(keys);

fn yes() -> bool {
    true
}

/// One name or a list of them, for the schema.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code)]
enum OneOrMany {
    One(ProjectName),
    Many(Vec<ProjectName>),
}

fn read_groups<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<ProjectName>, D::Error> {
    struct Groups;
    impl<'de> serde::de::Visitor<'de> for Groups {
        type Value = Vec<ProjectName>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            let what = phrase!(
                "a path such as \"team\", a number, or a list of them",
                "パス（例：\"team\"）、番号、またはその配列"
            );
            f.write_str(&what.to_stored())
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
            ProjectName::deserialize(text.into_deserializer()).map(|group| vec![group])
        }

        fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Self::Value, E> {
            ProjectName::deserialize(number.into_deserializer()).map(|group| vec![group])
        }

        fn visit_seq<A: serde::de::SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
            Deserialize::deserialize(serde::de::value::SeqAccessDeserializer::new(list))
        }
    }
    deserializer.deserialize_any(Groups)
}

fn concurrency() -> usize {
    CONCURRENCY
}

fn read_concurrency<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    let bad = || {
        BadValue::new(phrase!(
            "`concurrency` is 1 to {most}",
            "`concurrency` は 1 から {most} までです",
            most = MOST_CONCURRENCY
        ))
    };
    checked(deserializer, |count| (1..=MOST_CONCURRENCY).contains(count).then_some(()).ok_or_else(bad))
}

/// A project or group by its name on the host: a path or a number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProjectName(String);

impl ProjectName {
    /// The path, or the number as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The number, if it is one.
    pub fn number(&self) -> Option<i64> {
        self.0.parse().ok()
    }
}

impl fmt::Display for ProjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ProjectName {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let name = text.trim().trim_matches('/');
        if name.is_empty() || name.contains(char::is_whitespace) || name.contains("://") {
            Err(BadValue::new(phrase!(
                "`{text}` is not the path or number of a project",
                "`{text}` はプロジェクトのパスでも番号でもありません"
            )))
        } else {
            Ok(Self(name.to_owned()))
        }
    }
}

impl<'de> Deserialize<'de> for ProjectName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;
        impl serde::de::Visitor<'_> for Name {
            type Value = ProjectName;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let what = phrase!(
                    "a path such as \"group/project\" or a number",
                    "パス（例：\"group/project\"）または番号"
                );
                f.write_str(&what.to_stored())
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<ProjectName, E> {
                text.parse().map_err(|bad: BadValue| E::custom(bad.for_serde()))
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<ProjectName, E> {
                if number > 0 {
                    Ok(ProjectName(number.to_string()))
                } else {
                    let bad = phrase!("project numbers begin at 1", "プロジェクトの番号は 1 からです");
                    Err(E::custom(bad.to_stored()))
                }
            }
        }
        deserializer.deserialize_any(Name)
    }
}

impl JsonSchema for ProjectName {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ProjectName".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": ["string", "integer"], "examples": ["group/project", 42] })
    }
}

impl Keys {
    /// Reads and checks the keys of `job`.
    pub fn read(job: &config::Job) -> Result<Self, Problems> {
        let keys: Self = job.section.keys().cloned()?;
        let mut problems = Problems::default();
        let hosts = keys.list_addresses();
        let named: Vec<&str> =
            hosts.iter().filter(|(_, url, _)| url.is_some()).map(|(key, ..)| *key).collect();
        if let [_, other, ..] = named[..] {
            let message = phrase!(
                "a job collects from one host: make two jobs of it",
                "1 つのジョブが収集するホストは 1 つです。ジョブを 2 つに分けてください"
            );
            problems.push(job.section.problem(other, message));
        }
        for (key, url, kind) in &hosts {
            let Some(url) = url else { continue };
            let base = url.path().trim_end_matches('/').strip_suffix(kind.api);
            if let Some(base) = base.filter(|base| base.ends_with('/')) {
                let mut base_url: url::Url = (*url).clone().into();
                base_url.set_path(base);
                let message = phrase!(
                    "`{key}` is the address of {host} itself, without `{api}`: {base_url}",
                    "`{key}` には `{api}` を付けず、{host} 本体の URL を指定します：{base_url}",
                    key = *key,
                    host = kind.name,
                    api = kind.api,
                    base_url = base_url.as_str()
                );
                problems.push(job.section.problem(key, message));
            }
        }
        // An invalid one has already been reported.
        if !hosts.iter().any(|(key, ..)| job.section.has(key)) {
            let keys: Vec<String> = hosts.iter().map(|(key, ..)| format!("`{key}`")).collect();
            let keys = keys.join(" or ");
            let message = phrase!("the key {keys} is missing", "キー {keys} がありません", keys = &keys);
            let label = phrase!("{keys} belongs here", "ここに {keys} が必要です");
            problems.push(job.section.header_problem(message).with_label(label));
        }
        let has_space = |text: &str| text.contains(|c: char| c.is_whitespace() || c.is_control());
        for (key, patterns) in [("branches", &keys.branches), ("exclude_branches", &keys.exclude_branches)] {
            for (number, branch) in
                patterns.iter().enumerate().filter(|(_, name)| name.is_empty() || has_space(name))
            {
                let message = phrase!(
                    "`{branch}` is not a branch or a pattern",
                    "`{branch}` はブランチ名でもパターンでもありません"
                );
                problems.push(job.section.problem(&format!("{key}.{number}"), message));
            }
        }
        for (key, patterns) in [
            ("include", &keys.include),
            ("exclude", &keys.exclude),
            ("exclude_authors", &keys.exclude_authors),
            ("exclude_titles", &keys.exclude_titles),
        ] {
            for (number, _) in patterns.iter().enumerate().filter(|(_, pattern)| pattern.trim().is_empty()) {
                let message = phrase!("the pattern is empty", "パターンが空です");
                problems.push(job.section.problem(&format!("{key}.{number}"), message));
            }
        }
        for (number, person) in keys.person.iter().enumerate() {
            if person.name.trim().is_empty() || (person.emails.is_empty() && person.names.is_empty()) {
                let problem = job.section.problem(
                    &format!("person.{number}"),
                    phrase!(
                        "a person has a `name` and the `emails` or `names` of their commits",
                        "person には `name` と、コミットの `emails` または `names` が必要です"
                    ),
                );
                problems.push(problem);
            }
        }
        if let Err(unreadable) = people::load_mailmap(&keys, &job.section) {
            problems.extend(unreadable);
        }
        if problems.is_empty() && !named.is_empty() { Ok(keys) } else { Err(problems) }
    }

    /// The address and the kind of the host; `None` when none is configured.
    pub fn find_host(&self) -> Option<(&HttpUrl, HostKind)> {
        self.list_addresses().into_iter().find_map(|(_, url, kind)| Some((url?, kind)))
    }
}

/// Warnings about the table of a commits job: one that names nothing to collect gets a hint.
pub fn check(section: &Section) -> Problems {
    let Ok(keys) = section.keys::<Keys>() else { return Problems::default() };
    if !keys.projects.is_empty() || !keys.group.is_empty() || keys.membership {
        return Problems::default();
    }
    let name = &section.name;
    let message = phrase!(
        "the job `{name}` names neither `projects` nor a `group` nor `membership`: it collects nothing by itself",
        "ジョブ `{name}` には `projects`、`group`、`membership` のいずれもないため、このままでは何も収集しません"
    );
    let hint = phrase!(
        "add one of them, or single branches with `tsuzuki branch add PROJECT BRANCH --job {name}`",
        "いずれかを追加するか、`tsuzuki branch add PROJECT BRANCH --job {name}` でブランチを追加してください"
    );
    section.header_problem(message).as_warning().with_hint(hint).into()
}

/// The name of a host in the database: host, port if unusual, and path.
pub fn host_of(url: &HttpUrl) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}{port}{}", url.host_str().unwrap_or_default(), url.path().trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_begins_at_midnight_of_the_zone() {
        let since: Since = "2024-01-01".parse().unwrap();
        let tokyo = jiff::tz::TimeZone::get("Asia/Tokyo").unwrap();
        assert_eq!(since.moment(&tokyo).to_string(), "2023-12-31T15:00:00.000Z");
        let moment: Since = "2024-01-01T00:00:00+01:00".parse().unwrap();
        assert_eq!(moment.moment(&tokyo).to_string(), "2023-12-31T23:00:00.000Z");
        for bad in ["2024", "yesterday", "2024-13-01", "2024-01-01T00:00:00"] {
            assert!(bad.parse::<Since>().is_err(), "{bad}");
        }
    }

    #[test]
    fn hosts_are_told_apart_by_name_port_and_path() {
        for (address, host) in [
            ("https://gitlab.com", "gitlab.com"),
            ("https://gitlab.com/", "gitlab.com"),
            ("https://git.example:8443/gitlab/", "git.example:8443/gitlab"),
        ] {
            assert_eq!(host_of(&address.parse().unwrap()), host);
        }
    }
}
