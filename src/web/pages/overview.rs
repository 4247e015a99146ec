//! `/`: what needs the user, every job, the latest events, today's limits.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;

use super::render::{Markup, Renderer};
use super::{Visit, layout, missing, runs, settings, unavailable};
use crate::engine::chart::{Chart, Figure, Meter};
use crate::engine::newest::{self, Newest};
use crate::engine::overview::{JobOverview, QuotaUse};
use crate::engine::{Overview, PageQuery, State as JobState};
use crate::phrase;
use crate::time::Timestamp;
use crate::web::{Pages, chart};

/// How many events are shown.
const NEWEST: usize = 12;

#[derive(Template)]
#[template(path = "pages/overview.html")]
struct OverviewBody<'a> {
    r: &'a Renderer,
    overview: &'a Overview,
    jobs: Vec<JobRow<'a>>,
    show: Show,
    newest: &'a [Newest],
    meters: Vec<(&'a QuotaUse, Markup)>,
    next: Option<(Timestamp, String)>,
    /// The jobs that are due now.
    due: Vec<&'a str>,
    /// Whether the first job can be added here, too.
    has_form: bool,
}

/// A job and its strip.
struct JobRow<'a> {
    job: &'a JobOverview,
    strip: Markup,
}

impl JobRow<'_> {
    /// The number of new things in the last run.
    fn new_count(&self) -> u64 {
        self.job.runs.last().map_or(0, |run| run.new_count)
    }

    fn is_running(&self) -> bool {
        self.job.standing.state == JobState::Running
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Show {
    All,
    Failing,
    Paused,
}

impl Show {
    fn of(query: &PageQuery) -> Self {
        match query.find("show") {
            Some("failing") => Show::Failing,
            Some("paused") => Show::Paused,
            _ => Show::All,
        }
    }

    fn has(self, job: &JobOverview) -> bool {
        match self {
            Show::All => true,
            Show::Failing => matches!(job.standing.state, JobState::Failing | JobState::Setup),
            Show::Paused => matches!(job.standing.state, JobState::Paused | JobState::Disabled),
        }
    }
}

impl OverviewBody<'_> {
    /// The worst state of all jobs.
    fn state(&self) -> JobState {
        let is = |state| self.overview.jobs.iter().any(|job| job.standing.state == state);
        match self.overview.needs_you.first() {
            Some(notice) => notice.state,
            None if self.overview.jobs.is_empty() => JobState::New,
            None if is(JobState::Running) => JobState::Running,
            None => JobState::Ok,
        }
    }

    fn is_shown(&self, show: &Show) -> bool {
        self.show == *show
    }
}

/// The first page.
pub(super) async fn show(State(pages): State<Pages>, visit: Visit) -> Response {
    let Some(finder) = pages.finder().map(Arc::new) else { return missing(&pages, &visit) };
    let reading = Arc::clone(&finder);
    let read = pages.db.read(move |tx| {
        let overview = Overview::find(&reading, tx)?;
        Ok((overview, newest::list(&reading, tx, NEWEST)?))
    });
    let (overview, newest) = match read.await {
        Ok(read) => read,
        Err(error) => return unavailable(&pages, &visit, &error),
    };
    let r = visit.renderer(&finder);
    let show = Show::of(&visit.query);
    let jobs = overview.jobs.iter().enumerate().filter(|(_, job)| show.has(job));
    let row = |(index, job): (usize, &'_ JobOverview)| {
        runs::strip(&r, &job.job, &job.runs, &format!("strip-{index}"))
    };
    let body = OverviewBody {
        r: &r,
        jobs: jobs.map(|(index, job)| JobRow { job, strip: row((index, job)) }).collect(),
        show,
        newest: &newest,
        meters: overview
            .quotas
            .iter()
            .enumerate()
            .map(|(index, quota)| (quota, meter(&r, index, quota)))
            .collect(),
        next: overview.next().map(|(at, job)| (at, job.to_owned())),
        due: overview
            .jobs
            .iter()
            .filter(|job| {
                job.next_run_at.is_some_and(|at| at <= overview.now)
                    && job.standing.state != JobState::Running
            })
            .map(|job| job.job.as_str())
            .collect(),
        overview: &overview,
        has_form: visit.may_act && settings::may_edit(&finder),
    };
    layout::respond(&pages, &finder, &visit, r.say("Overview", "概要"), &body)
}

fn meter(r: &Renderer, index: usize, quota: &QuotaUse) -> Markup {
    let (name, used, limit) = (&quota.provider, quota.used, quota.per_day);
    let chart = Chart {
        title: phrase!("Requests to {name} today", "{name} への本日の要求"),
        about: phrase!("{used} of {limit} used", "{limit} 件中 {used} 件使用"),
        figure: Figure::Meter(Meter { used, limit: i64::from(limit) }),
    };
    Markup::from_chart(chart::draw(&chart, &format!("quota-{index}"), &r.speech))
}

#[cfg(test)]
mod tests {
    use crate::web::tests::Site;

    #[tokio::test]
    async fn the_first_job_can_be_added_from_here_where_the_file_may_be_changed() {
        for (config, has_form) in [("", true), ("edit = false\n", false)] {
            let page = Site::serve(config).await.get("/", &[]).await.body;
            assert_eq!(page.contains("class=\"button\" href=\"/settings\""), has_form, "{config}: {page}");
        }
    }
}
