//! Additions to the config file by an import: jobs, and blogs of a job.

use super::jobs_yaml::YamlJob;
use super::list::{KnownBlog, NewBlog};
use crate::blogs;
use crate::config::{Config, ConfigText, EditError, Pairs};

/// The blogs of all jobs in the config.
pub fn list_blogs(config: &Config) -> Vec<KnownBlog> {
    let jobs = config.jobs.iter().filter(|job| job.kind == blogs::KIND);
    let keys = jobs.filter_map(|job| job.section.keys::<blogs::config::Keys>().ok());
    keys.flat_map(|keys| &keys.blog)
        .map(|blog| KnownBlog {
            id: blog.id.clone(),
            url: blog.url.clone().into(),
            feed: blog.feed.clone().map(Into::into),
        })
        .collect()
}

/// Adds blogs to a `blogs` job, which is created if there is none of that name.
pub fn add_blogs(
    document: &mut ConfigText,
    config: &Config,
    job: &str,
    blogs: &[NewBlog],
) -> Result<(), EditError> {
    if config.find_job(job).is_none() {
        document.add_job(&[("name", job.into()), ("kind", blogs::KIND.into())])?;
    }
    let tables: Vec<Pairs> = blogs.iter().map(pairs_of).collect();
    document.add_tables(job, "blog", &tables)
}

fn pairs_of(blog: &NewBlog) -> Pairs {
    let mut pairs: Pairs = vec![("id", blog.id.as_str().into()), ("url", blog.url.as_str().into())];
    let spare =
        [("title", &blog.title), ("folder", &blog.folder), ("feed", &blog.feed), ("sitemap", &blog.sitemap)];
    pairs.extend(spare.into_iter().filter_map(|(key, value)| Some((key, value.as_deref()?.into()))));
    pairs
}

/// Adds the jobs of a jobs.yaml that the file does not have; returns their names.
///
/// They deliver to the only mail channel, if there is exactly one.
pub fn add_jobs(
    document: &mut ConfigText,
    config: &Config,
    jobs: &[YamlJob],
) -> Result<Vec<String>, EditError> {
    let mails: Vec<&str> = config
        .channels
        .iter()
        .filter(|channel| channel.kind == crate::channel::MAIL)
        .map(|channel| channel.name.as_str())
        .collect();
    let mut added = Vec::new();
    for job in jobs.iter().filter(|job| config.find_job(job.name.as_str()).is_none()) {
        let mut keys: Vec<(&str, toml::Value)> =
            vec![("name", job.name.as_str().into()), ("kind", crate::books::KIND.into())];
        if let [mail] = mails.as_slice() {
            keys.push(("deliver", vec![*mail].into()));
        }
        keys.extend(job.keys.iter().map(|(key, value)| (key.as_str(), value.clone())));
        document.add_job(&keys)?;
        added.push(job.name.to_string());
    }
    Ok(added)
}
