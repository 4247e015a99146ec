//! Whose a branch is when several jobs collect from one GitLab: pure answers, in the order of the config file.

use super::Source;
use crate::engine::JobEnv;
use crate::id::JobName;

/// A `commits` job of the config, as far as it matters to the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostJob {
    /// The job.
    pub job: JobName,
    /// The GitLab it collects from.
    pub host: String,
    /// Whether it runs by itself.
    pub enabled: bool,
}

/// Whose a branch is, as the database has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// The job that collects it.
    pub job: Option<String>,
    /// Whether that job wants it: its config names it, or it was added by hand.
    pub is_wanted: bool,
}

/// What becomes of a target that is pending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate<'a> {
    /// This job's token and settings collect it.
    Collect(&'a JobName),
    /// Nobody can, for this reason.
    GiveUp(String),
}

/// The `commits` jobs of the config, in its order.
pub fn list(env: &JobEnv) -> Vec<HostJob> {
    Source::list(env).iter().map(|source| source.host_job()).collect()
}

/// Whether `me` is the one that collects what was `owner`'s on its GitLab.
pub fn is_fallback_job(jobs_on_host: &[HostJob], me: &HostJob, owner: Option<&str>) -> bool {
    find_heir(jobs_on_host, &me.host, owner).is_some_and(|fallback_job| fallback_job.job == me.job)
}

/// The job that collects what was `owner`'s on `host`: itself, or the first one there if it is no longer in the config.
pub fn find_heir<'a>(jobs_on_host: &'a [HostJob], host: &str, owner: Option<&str>) -> Option<&'a HostJob> {
    let here = || jobs_on_host.iter().filter(|host_job| host_job.host == host);
    here()
        .find(|host_job| Some(host_job.job.as_str()) == owner)
        .or_else(|| here().find(|host_job| host_job.enabled))
        .or_else(|| here().next())
}

/// Whether `me`, whose config names a branch of its own GitLab, may take it: not from a job that wants it, too.
pub fn may_take(jobs_on_host: &[HostJob], me: &HostJob, owner: &Owner) -> bool {
    let is_rival = |host_job: &HostJob| {
        host_job.host == me.host
            && host_job.job != me.job
            && Some(host_job.job.as_str()) == owner.job.as_deref()
    };
    !(owner.is_wanted && jobs_on_host.iter().any(is_rival))
}

/// What becomes of a pending target of `owner` on `host`, with `asked` as the jobs that somebody runs right now.
pub fn find_fate<'a>(
    jobs_on_host: &'a [HostJob],
    asked: &[&JobName],
    host: &str,
    owner: Option<&str>,
) -> Fate<'a> {
    match find_heir(jobs_on_host, host, owner) {
        None => Fate::GiveUp(format!("no job of the config collects from {host} any more")),
        Some(host_job) if host_job.enabled || asked.contains(&&host_job.job) => Fate::Collect(&host_job.job),
        Some(host_job) => Fate::GiveUp(format!("the job `{}` is disabled", host_job.job)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host_job(job: &str, host: &str, enabled: bool) -> HostJob {
        HostJob { job: job.parse().unwrap(), host: host.to_owned(), enabled }
    }

    fn jobs_on_host() -> Vec<HostJob> {
        vec![
            host_job("off", "x", false),
            host_job("one", "x", true),
            host_job("two", "x", true),
            host_job("far", "y", true),
            host_job("still", "z", false),
        ]
    }

    #[test]
    fn what_nobody_owns_falls_to_the_first_job_of_its_gitlab() {
        for (host, owner, expected) in [
            ("x", Some("two"), Some("two")),
            ("x", Some("off"), Some("off")),
            ("x", Some("removed"), Some("one")),
            ("x", None, Some("one")),
            // It collects from another GitLab now.
            ("x", Some("far"), Some("one")),
            ("z", None, Some("still")),
            ("gone", Some("one"), None),
        ] {
            let jobs_on_host = jobs_on_host();
            let fallback_job = find_heir(&jobs_on_host, host, owner).map(|host_job| host_job.job.as_str());
            assert_eq!(fallback_job, expected, "{host} {owner:?}");
        }
    }

    #[test]
    fn a_branch_that_two_jobs_name_stays_with_the_one_that_has_it() {
        let jobs_on_host = jobs_on_host();
        let me = host_job("two", "x", true);
        for (job, is_wanted, expected) in [
            (None, false, true),
            (Some("two"), true, true),
            (Some("one"), true, false),
            (Some("off"), true, false),
            (Some("one"), false, true),
            (Some("removed"), true, true),
            (Some("far"), true, true),
        ] {
            let owner = Owner { job: job.map(str::to_owned), is_wanted };
            assert_eq!(may_take(&jobs_on_host, &me, &owner), expected, "{owner:?}");
        }
    }

    #[test]
    fn a_target_is_given_up_only_when_nobody_may_collect_it() {
        let (jobs_on_host, off) = (jobs_on_host(), "off".parse().unwrap());
        let fate = |asked: &[&JobName], host, owner| match find_fate(&jobs_on_host, asked, host, owner) {
            Fate::Collect(job) => job.to_string(),
            Fate::GiveUp(why) => why,
        };
        assert_eq!(fate(&[], "x", Some("two")), "two");
        assert_eq!(fate(&[], "x", Some("removed")), "one");
        assert_eq!(fate(&[], "x", Some("off")), "the job `off` is disabled");
        assert_eq!(fate(&[&off], "x", Some("off")), "off", "somebody runs it all the same");
        assert_eq!(fate(&[], "z", None), "the job `still` is disabled");
        assert_eq!(fate(&[], "gone", None), "no job of the config collects from gone any more");
    }
}
