//! The blogs that the keys of a `blogs` job make.

mod keys;

use std::collections::HashMap;
use std::sync::Arc;

pub use keys::{BlogKeys, EntryText, Keys, Probe};

use super::access::BlogAccess;
use super::model::Detector;
use crate::channel::ChannelSet;
use crate::config::value::{FirstRun, HttpUrl, Patterns, Span};
use crate::config::{self, Problems, Section};
use crate::fetch::AllowPrivate;
use crate::hash;
use crate::id::JobName;
use crate::parse::url::{Url, comparison_key};

/// A blog as the checks see it.
#[derive(Clone, Debug)]
pub struct Blog {
    pub id: String,
    pub url: Url,
    /// What to look at, in order.
    pub detect: Vec<Detector>,
    /// Its feed, if the file names it.
    pub feed: Option<Url>,
    /// Its sitemap, if the file names it.
    pub sitemap: Option<Url>,
    /// Where links count.
    pub selector: Option<String>,
    /// Which addresses count.
    pub patterns: Patterns,
    /// The least time between two checks.
    pub every: Option<Span>,
    /// Whether new links on a page must be seen twice.
    pub confirm: bool,
    /// Private addresses that may be reached.
    pub allow_private: AllowPrivate,
    /// What it is called.
    pub title: String,
    /// Hashtags for messages about it.
    pub tags: Vec<String>,
    /// The channels that hear of it, if not those of the job.
    pub deliver: Option<Vec<String>>,
    /// Which text of its entries messages have.
    pub text: EntryText,
    /// How we prove who we are.
    pub access: Arc<BlogAccess>,
    /// A fingerprint of everything that decides what is looked at; when it differs, known answers no longer hold.
    ///
    /// It is a hash on purpose: the config itself is never copied into the database.
    pub settings_hash: String,
}

/// What holds for all blogs of a job.
#[derive(Clone, Debug)]
pub struct Rules {
    /// What the first successful check tells.
    pub first_run: FirstRun,
    /// More new entries than this at once, on one blog, are held.
    pub hold_above: usize,
    /// Failures in a row after which the channels are told.
    pub warn_after: u32,
    /// How a check asks.
    pub probe: Probe,
    /// Whether a run tells all that is new in one message.
    pub digest: bool,
}

/// The blogs and rules of a job; every mistake is reported at once.
pub fn read(job: &config::Job) -> Result<(Vec<Blog>, Rules), Problems> {
    let keys: &Keys = job.section.keys()?;
    let mut problems = Problems::default();
    let of_job = AllowPrivate::parse(&job.allow_private)
        .map_err(|error| job.section.problem("allow_private", error.to_string()));
    let of_job = problems.note(of_job).unwrap_or_else(AllowPrivate::none);
    let mut blogs = Vec::with_capacity(keys.blog.len());
    for (number, blog) in keys.blog.iter().cloned().enumerate() {
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
    blog: BlogKeys,
    of_job: &AllowPrivate,
    text: EntryText,
    at: &dyn Fn(&str) -> String,
) -> Result<Blog, Problems> {
    let mut problems = Problems::default();
    let problem = |key: &str, message: String| job.section.problem(&at(key), message);
    if blog.id.trim().is_empty() || blog.id.chars().count() > 200 || blog.id.chars().any(char::is_control) {
        problems.push(problem("id", "an id has 1 to 200 printable characters".into()));
    }
    let access = problems.note(BlogAccess::read(&blog).map_err(|(key, why)| problem(&key, why)));
    let detect = blog.detect.unwrap_or_else(|| Detector::ALL.to_vec());
    for (key, is_set, needed) in [
        ("feed", blog.feed.is_some(), Detector::Feed),
        ("sitemap", blog.sitemap.is_some(), Detector::Sitemap),
        ("selector", blog.selector.is_some(), Detector::Html),
    ] {
        if is_set && !detect.contains(&needed) {
            let message = format!("`{key}` is of no use without \"{}\" in `detect`", needed.word());
            problems.push(problem(key, message));
        }
    }
    let allow_private = if blog.allow_private.is_empty() {
        of_job.clone()
    } else {
        let allowed: Vec<&String> = job.allow_private.iter().chain(&blog.allow_private).collect();
        let allowed =
            AllowPrivate::parse(&allowed).map_err(|error| problem("allow_private", error.to_string()));
        problems.note(allowed).unwrap_or_else(AllowPrivate::none)
    };
    let mut blog = Blog {
        title: blog.title.unwrap_or_else(|| blog.id.clone()),
        tags: blog.tags,
        deliver: blog.deliver,
        text,
        access: Arc::new(access.unwrap_or_default()),
        id: blog.id,
        url: blog.url.into(),
        detect,
        feed: blog.feed.map(Url::from),
        sitemap: blog.sitemap.map(Url::from),
        selector: blog.selector,
        patterns: Patterns { include: blog.include, exclude: blog.exclude },
        every: blog.every,
        confirm: blog.confirm.unwrap_or(true),
        allow_private,
        settings_hash: String::new(),
    };
    blog.settings_hash = blog.hash_settings();
    problems.unless_any(blog)
}

/// Channels that a blog names and that there are not.
pub(super) fn check_channels(job: &config::Job, channels: &ChannelSet) -> Result<(), Problems> {
    let known = channels.names();
    let keys: &Keys = job.section.keys()?;
    let mut problems = Problems::default();
    for (number, blog) in keys.blog.iter().enumerate() {
        for name in blog.deliver.iter().flatten().filter(|name| !known.contains(*name)) {
            let known = known.iter().map(String::as_str);
            problems.push(job.section.unknown_name(
                &format!("blog.{number}.deliver"),
                "channel",
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

/// The values of `--blog`: `id=url` or a bare address, whose host is the id.
pub(super) fn from_flags(words: &[String]) -> Result<toml::Value, String> {
    let mut blogs = Vec::new();
    for word in words {
        let is_bare = word.starts_with("http://") || word.starts_with("https://");
        let (id, url) = match word.split_once('=').filter(|_| !is_bare) {
            Some((id, url)) => (Some(id.to_owned()), url),
            None => (None, word.as_str()),
        };
        let parsed: HttpUrl = url
            .parse()
            .map_err(|_| format!("`{word}` names no blog: write --blog ID=https://… or --blog https://…"))?;
        let host = || parsed.url().host_str().unwrap_or_default().trim_start_matches("www.").to_owned();
        let mut blog = toml::Table::new();
        blog.insert("id".into(), id.unwrap_or_else(host).into());
        blog.insert("url".into(), url.into());
        blogs.push(toml::Value::from(blog));
    }
    Ok(toml::Value::Array(blogs))
}

/// Blogs of one job with the same id.
pub fn check(section: &Section) -> Problems {
    let repeat = |(id, [before, number]): (String, [usize; 2])| {
        let message = format!("the id `{id}` is already that of blog number {}", before + 1);
        section.problem(&format!("blog.{number}.id"), message)
    };
    section.list_repeats("blog", "id").into_iter().map(repeat).collect()
}

/// Blogs whose id stands in two jobs: their state is kept by id, so the two would overwrite each other.
pub fn check_ids(jobs: &[config::Job]) -> Problems {
    let mut owners: HashMap<&str, &config::Job> = HashMap::new();
    let mut problems = Problems::default();
    for job in jobs.iter().filter(|job| job.kind == super::KIND) {
        let Ok(keys) = job.section.keys::<Keys>() else { continue };
        for (number, blog) in keys.blog.iter().enumerate() {
            let id = blog.id.as_str();
            match owners.get(id) {
                Some(other) if other.name != job.name => {
                    let message = format!("the id `{id}` is already that of a blog of job `{}`", other.name);
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

impl Blog {
    /// A blog of which nothing is said but its address.
    pub fn at(id: &str, url: Url) -> Self {
        Self {
            id: id.to_owned(),
            url,
            detect: Detector::ALL.to_vec(),
            feed: None,
            sitemap: None,
            selector: None,
            patterns: Patterns::default(),
            every: None,
            confirm: true,
            allow_private: AllowPrivate::none(),
            title: id.to_owned(),
            tags: Vec::new(),
            deliver: None,
            text: EntryText::None,
            access: Arc::default(),
            settings_hash: String::new(),
        }
    }

    /// What `settings_hash` is to be.
    pub(super) fn hash_settings(&self) -> String {
        let mut parts = vec![comparison_key(&self.url)];
        parts.extend(self.detect.iter().map(|detector| detector.word().to_owned()));
        for url in [&self.feed, &self.sitemap] {
            parts.push(url.as_ref().map(comparison_key).unwrap_or_default());
        }
        parts.push(self.selector.clone().unwrap_or_default());
        for list in [&self.patterns.include, &self.patterns.exclude] {
            parts.push(list.len().to_string());
            parts.extend(list.iter().map(ToString::to_string));
        }
        hash::sha256_parts(&parts.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Whether `detector` may be used.
    pub fn uses(&self, detector: Detector) -> bool {
        self.detect.contains(&detector)
    }
}
