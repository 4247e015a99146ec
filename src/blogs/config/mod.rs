//! The blogs of a `blogs` job, made from its keys.

mod keys;

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

pub use keys::{BlogKeys, EntryText, Keys, Probe};

use super::access::BlogAccess;
use super::model::Detector;
use crate::channel::ChannelSet;
use crate::config::value::{FirstRun, HttpUrl, Patterns};
use crate::config::{self, Problems, Section};
use crate::fetch::AllowPrivate;
use crate::hash;
use crate::id::JobName;
use crate::parse::url::{comparison_key, pasted};
use crate::phrase;
use crate::phrase::Phrase;

/// A blog for the checks: its keys, shared with the config, and derived values.
#[derive(Clone, Debug)]
pub struct Blog {
    keys: Arc<BlogKeys>,
    /// The allowed private addresses: those of the job and its own.
    pub reachable: AllowPrivate,
    /// The text of its entries in messages.
    pub text: EntryText,
    /// The credentials, if there are any.
    pub access: Option<Arc<BlogAccess>>,
    /// The value of [`Blog::settings_hash`].
    settings: [u8; 32],
}

/// The settings of all blogs of a job.
#[derive(Clone, Debug)]
pub struct Rules {
    /// What the first successful check announces.
    pub first_run: FirstRun,
    /// More new entries than this at once, on one blog, are held.
    pub hold_above: usize,
    /// The number of failures in a row before a warning.
    pub warn_after: u32,
    /// How a check asks.
    pub probe: Probe,
    /// Whether a run sends all new entries in one message.
    pub digest: bool,
}

/// The blogs and rules of a job; reports all problems at once.
pub fn read(job: &config::Job) -> Result<(Vec<Blog>, Rules), Problems> {
    let keys: &Keys = job.section.keys()?;
    let mut problems = Problems::default();
    let of_job = AllowPrivate::parse(&job.allow_private)
        .map_err(|error| job.section.problem("allow_private", error.phrase()));
    let of_job = problems.note(of_job).unwrap_or_else(AllowPrivate::none);
    let mut blogs = Vec::with_capacity(keys.blog.len());
    for (number, blog) in keys.blog.iter().enumerate() {
        let at = |key: &str| format!("blog.{number}.{key}");
        let text = if keys.digest { EntryText::None } else { keys.text };
        blogs.extend(problems.note(checked(job, blog, &of_job, text, &at)));
    }
    let rules = Rules {
        first_run: job.first_run.unwrap_or(FirstRun::Baseline),
        hold_above: job.hold_above as usize,
        warn_after: keys.warn_after,
        probe: keys.probe,
        digest: keys.digest,
    };
    problems.unless_any((blogs, rules))
}

fn checked(
    job: &config::Job,
    keys: &Arc<BlogKeys>,
    of_job: &AllowPrivate,
    text: EntryText,
    at: &dyn Fn(&str) -> String,
) -> Result<Blog, Problems> {
    let mut problems = Problems::default();
    let problem = |key: &str, message: Phrase| job.section.problem(&at(key), message);
    if keys.id.trim().is_empty() || keys.id.chars().count() > 200 || keys.id.chars().any(char::is_control) {
        let message =
            phrase!("an id has 1 to 200 printable characters", "id は表示できる 1 文字から 200 文字までです");
        problems.push(problem("id", message));
    }
    let access = problems.note(BlogAccess::read(keys).map_err(|(key, why)| problem(&key, why)));
    for (key, is_set, needed) in [
        ("feed", keys.feed.is_some(), Detector::Feed),
        ("sitemap", keys.sitemap.is_some(), Detector::Sitemap),
        ("selector", keys.selector.is_some(), Detector::Html),
    ] {
        if is_set && !keys.detectors().contains(&needed) {
            let message = phrase!(
                "`{key}` is of no use without \"{word}\" in `detect`",
                "`detect` に \"{word}\" がないと `{key}` は使われません",
                word = needed.word()
            );
            problems.push(problem(key, message));
        }
    }
    let reachable = if keys.allow_private.is_empty() {
        of_job.clone()
    } else {
        let allowed: Vec<&String> = job.allow_private.iter().chain(&*keys.allow_private).collect();
        let allowed = AllowPrivate::parse(&allowed).map_err(|error| problem("allow_private", error.phrase()));
        problems.note(allowed).unwrap_or_else(AllowPrivate::none)
    };
    problems.unless_any(Blog {
        keys: Arc::clone(keys),
        reachable,
        text,
        access: access.flatten().map(Arc::new),
        settings: keys.hash_settings(),
    })
}

/// Checks that the channels of blogs exist.
pub(super) fn check_channels(job: &config::Job, channels: &ChannelSet) -> Result<(), Problems> {
    let known = channels.names();
    let keys: &Keys = job.section.keys()?;
    let mut problems = Problems::default();
    for (number, blog) in keys.blog.iter().enumerate() {
        for name in blog.deliver.iter().flatten().filter(|name| !known.contains(*name)) {
            let known = known.iter().map(String::as_str);
            problems.push(job.section.unknown_name(
                &format!("blog.{number}.deliver"),
                config::TableKind::Channel.noun(),
                name,
                known,
            ));
        }
    }
    problems.unless_any(())
}

/// All blogs that the config names, each with its job.
pub fn list_blogs(config: &config::Config) -> impl Iterator<Item = (&JobName, Blog)> {
    let jobs = config.jobs.iter().filter(|job| job.kind == super::KIND);
    let listed = jobs.filter_map(|job| Some((&job.name, read(job).ok()?.0)));
    listed.flat_map(|(job, blogs)| blogs.into_iter().map(move |blog| (job, blog)))
}

/// The values of `--blog`: `id=url` or an address alone, whose host is the id; without `https://`, too.
pub(super) fn from_flags(words: &[String]) -> Result<toml::Value, Phrase> {
    let mut blogs = Vec::new();
    for word in words {
        let is_id = |before: &str| !before.contains([':', '/', '?']);
        let (id, url) = match word.split_once('=').filter(|(before, _)| is_id(before)) {
            Some((id, url)) => (Some(id.to_owned()), pasted(url)),
            None => (None, pasted(word)),
        };
        let bad = |_| {
            phrase!(
                "`{word}` names no blog: write https://… or ID=https://…",
                "`{word}` はブログの指定ではありません。https://… または ID=https://… と書きます"
            )
        };
        let parsed: HttpUrl = url.parse().map_err(bad)?;
        let host = || parsed.host_str().unwrap_or_default().trim_start_matches("www.").to_owned();
        let mut blog = toml::Table::new();
        blog.insert("id".into(), id.unwrap_or_else(host).into());
        blog.insert("url".into(), url.into());
        blogs.push(toml::Value::from(blog));
    }
    Ok(toml::Value::Array(blogs))
}

/// Reports blogs of one job with the same id.
pub fn check(section: &Section) -> Problems {
    let repeat = |(id, [before, number]): (String, [usize; 2])| {
        let message = phrase!(
            "the id `{id}` is already that of blog number {number}",
            "id `{id}` は {number} 番目のブログと重複しています",
            number = before + 1
        );
        section.problem(&format!("blog.{number}.id"), message)
    };
    section.list_repeats("blog", "id").into_iter().map(repeat).collect()
}

/// Reports ids that are in two jobs: the state is stored by id, so the two would overwrite each other.
pub fn check_ids(jobs: &[config::Job]) -> Problems {
    let mut owners: HashMap<&str, &config::Job> = HashMap::new();
    let mut problems = Problems::default();
    for job in jobs.iter().filter(|job| job.kind == super::KIND) {
        let Ok(keys) = job.section.keys::<Keys>() else { continue };
        for (number, blog) in keys.blog.iter().enumerate() {
            let id = blog.id.as_str();
            match owners.get(id) {
                Some(other) if other.name != job.name => {
                    let message = phrase!(
                        "the id `{id}` is already that of a blog of job `{other}`",
                        "id `{id}` はジョブ `{other}` のブログと重複しています",
                        other = &other.name
                    );
                    problems.push(job.section.problem(&format!("blog.{number}.id"), message));
                }
                _ => {
                    owners.insert(id, job);
                }
            }
        }
    }
    problems
}

#[cfg(test)]
impl Blog {
    /// The blog `b` at `url`, with those keys besides.
    pub(super) fn sample(url: &str, keys: &str) -> Self {
        let keys: BlogKeys = toml::from_str(&format!("id = 'b'\nurl = '{url}'\n{keys}")).unwrap();
        let settings = keys.hash_settings();
        Self {
            keys: Arc::new(keys),
            reachable: AllowPrivate::none(),
            text: EntryText::None,
            access: None,
            settings,
        }
    }
}

impl Blog {
    /// A fingerprint of all settings that affect detection; when it differs, stored validators are invalid.
    ///
    /// It is a hash on purpose: the config itself is never copied into the database.
    pub fn settings_hash(&self) -> String {
        hash::to_hex(&self.settings)
    }
}

impl Deref for Blog {
    type Target = BlogKeys;

    fn deref(&self) -> &BlogKeys {
        &self.keys
    }
}

impl BlogKeys {
    /// The detectors to use, in order.
    pub fn detectors(&self) -> &[Detector] {
        self.detect.as_deref().unwrap_or(Detector::ALL)
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.id)
    }

    /// The filters on entries.
    pub fn patterns(&self) -> Patterns<'_> {
        Patterns { include: &self.include, exclude: &self.exclude }
    }

    /// Computes the value of [`Blog::settings_hash`].
    fn hash_settings(&self) -> [u8; 32] {
        let mut parts = vec![comparison_key(&self.url)];
        parts.extend(self.detectors().iter().map(|detector| detector.word().to_owned()));
        for url in [&self.feed, &self.sitemap] {
            parts.push(url.as_deref().map(comparison_key).unwrap_or_default());
        }
        parts.push(self.selector.as_deref().unwrap_or_default().to_owned());
        for list in [&self.include, &self.exclude] {
            parts.push(list.len().to_string());
            parts.extend(list.iter().map(ToString::to_string));
        }
        hash::digest_parts(parts)
    }

    /// Whether `detector` may be used.
    pub fn uses(&self, detector: Detector) -> bool {
        self.detectors().contains(&detector)
    }
}
