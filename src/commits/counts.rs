//! Counts for the page. Few commits are counted on each request; many are counted in the background and stored.
//!
//! ```text
//!  commits are stored, marked, completed, deleted ──▶ `branches.changes` rises, in the same transaction
//!                                                            │ seen by `refresh`, in the daemon
//!                                                            ▼
//!  the page ◀── the document of a year, fresh or not ◀── commit_counts: one pass over the commits of each large scope
//! ```

use std::sync::Arc;
use std::time::Duration;

use super::people::People;
use super::stats::{self, Counting, Series};
use super::store::counts::{self, ALL_YEARS, CountedAs};
use super::store::reading::{self, Scope};
use crate::config::Config;
use crate::db::{self, Db, Tx};
use crate::hash::sha256_hex;
use crate::time::{Clock, Timestamp};

/// Fewer commits are counted on each request.
const FEW: usize = 20_000;
/// While branches change all the time, a count is repeated after this time for each of its commits: about fifty times
/// the cost of counting one.
const AGAIN_PER_COMMIT: Duration = Duration::from_micros(100);

/// The counts of a scope for the page.
#[derive(Debug, Default)]
pub(super) struct PageCounts {
    /// The years that have commits, newest first.
    pub(super) years: Vec<i16>,
    /// The shown year; `None` for all of them.
    pub(super) year: Option<i16>,
    pub(super) series: Series,
    /// When it was counted, if something has changed since.
    pub(super) stale_since: Option<Timestamp>,
}

/// Which year to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WantedYear {
    Newest,
    All,
    Only(i16),
}

impl WantedYear {
    /// A commit dated in the future does not make its year the newest.
    fn among(self, years: &[i16], this_year: i16) -> Option<i16> {
        match self {
            WantedYear::Newest => years.iter().find(|year| **year <= this_year).or(years.first()).copied(),
            WantedYear::All => None,
            WantedYear::Only(year) => Some(year),
        }
    }
}

/// Counts few commits, or finds the stored count of many; `None` if there is none yet.
pub(super) fn find(
    config: &Config,
    tx: &mut Tx<'_>,
    scope: Scope,
    wanted: WantedYear,
) -> db::Result<Option<PageCounts>> {
    let counting = counting(config, scope);
    let pairs = reading::list_pairs_of(tx, &counting.scope)?;
    let this_year = tx.now().date_in(counting.zone.time_zone()).year();
    if counts::count_up_to(tx, &pairs, FEW)? < FEW {
        let series = stats::find_series(tx, &counting)?;
        let years = series.years();
        let year = wanted.among(&years, this_year);
        let series = year.map_or_else(|| series.over_all_years(), |year| series.in_year(year));
        return Ok(Some(PageCounts { years, year, series, stale_since: None }));
    }
    let scope = canonical(&counting.scope, &pairs);
    let Some(counted_as) = counts::find(tx, &scope)? else { return Ok(None) };
    let is_fresh = is_fresh(tx, &scope, &counted_as, &settings(&counting))?;
    let years = counts::list_years(tx, &scope)?;
    let year = wanted.among(&years, this_year);
    let document = counts::find_document(tx, &scope, year.unwrap_or(ALL_YEARS))?;
    let series = match document {
        // Another version may have written another format; it is counted again soon.
        Some(document) => serde_json::from_str(&document).ok(),
        None => Some(Series { timezone: counting.zone.name().to_owned(), ..Series::default() }),
    };
    let stale_since = (!is_fresh).then_some(counted_as.counted_at);
    Ok(series.map(|series| PageCounts { years, year, series, stale_since }))
}

/// Counts large scopes that have changed since they were counted. The daemon calls it periodically.
pub(super) async fn refresh(config: &Config, db: &Db, clock: &Clock) -> db::Result<()> {
    let counting = counting(config, Scope::default());
    let (settings, now) = (settings(&counting), clock.now());
    let due = {
        let settings = settings.clone();
        db.read(move |tx| list_due(tx, &settings, now)).await?
    };
    for scope in due {
        let (counting, settings) = (Counting { scope, ..counting.clone() }, settings.clone());
        let scope = counting.scope.clone();
        let (counted_as, documents) = db
            .read(move |tx| {
                // Before the commits are read: a change meanwhile makes the count stale, not wrong.
                let version = counts::find_version(tx, &counting.scope)?;
                let series = stats::find_series(tx, &counting)?;
                let (settings, commits) = (settings.clone(), series.commits());
                Ok((CountedAs { version, settings, counted_at: now, commits }, list_documents(&series)))
            })
            .await?;
        db.write(move |tx| counts::put(tx, &scope, &counted_as, &documents)).await?;
    }
    Ok(())
}

fn counting(config: &Config, scope: Scope) -> Counting {
    // An unreadable mailmap was reported when the jobs were made.
    let people = Arc::new(People::of(config).unwrap_or_default());
    Counting::new(scope, config.app.timezone.clone(), people)
}

/// A fingerprint of the config that affects counting.
fn settings(counting: &Counting) -> String {
    sha256_hex(format!("{} {:?}", counting.zone.name(), counting.people))
}

fn list_documents(series: &Series) -> Vec<(i16, String)> {
    let years = series.years().into_iter().map(|year| (year, series.in_year(year)));
    let all = std::iter::once((ALL_YEARS, series.over_all_years()));
    let text = |series: &Series| serde_json::to_string(series).expect("names and numbers");
    all.chain(years).map(|(year, series)| (year, text(&series))).collect()
}

fn is_fresh(tx: &mut Tx<'_>, scope: &Scope, counted_as: &CountedAs, settings: &str) -> db::Result<bool> {
    Ok(counted_as.settings == settings && counted_as.version == counts::find_version(tx, scope)?)
}

/// The scopes to count now: large ones that have changed, the largest last.
fn list_due(tx: &mut Tx<'_>, settings: &str, now: Timestamp) -> db::Result<Vec<Scope>> {
    let pairs = reading::list_pairs(tx)?;
    let whole = canonical(&Scope::default(), &pairs);
    // The scope of everything is counted last: if it is up to date, so are all others. If it is not large, no other
    // scope is.
    if counts::count_up_to(tx, &pairs, FEW)? < FEW || !is_due(tx, &whole, settings, now)? {
        return Ok(Vec::new());
    }
    let branch = |name: &String| Scope { branch_name: Some(name.clone()), ..Scope::default() };
    let project = |id: &i64| Scope { project_id: Some(*id), ..Scope::default() };
    let mut scopes: Vec<Scope> =
        pairs.iter().map(|(id, name)| Scope { project_id: Some(*id), ..branch(name) }).collect();
    scopes.extend(pairs.iter().map(|(_, name)| branch(name)));
    scopes.extend(pairs.iter().map(|(id, _)| project(id)));
    let mut due: Vec<Scope> = Vec::new();
    for scope in scopes {
        let pairs = reading::list_pairs_among(&pairs, &scope);
        let scope = canonical(&scope, &pairs);
        if scope != whole
            && !due.contains(&scope)
            && counts::count_up_to(tx, &pairs, FEW)? >= FEW
            && is_due(tx, &scope, settings, now)?
        {
            due.push(scope);
        }
    }
    due.push(whole);
    Ok(due)
}

fn is_due(tx: &mut Tx<'_>, scope: &Scope, settings: &str, now: Timestamp) -> db::Result<bool> {
    let Some(counted_as) = counts::find(tx, scope)? else { return Ok(true) };
    if is_fresh(tx, scope, &counted_as, settings)? {
        return Ok(false);
    }
    let wait = AGAIN_PER_COMMIT * u32::try_from(counted_as.commits).unwrap_or(u32::MAX);
    Ok(counted_as.settings != settings || now.since(counted_as.counted_at) >= wait)
}

/// A canonical scope for the same branches: a project with one branch is that branch.
fn canonical(scope: &Scope, pairs: &[(i64, String)]) -> Scope {
    let Some((project_id, branch_name)) = pairs.first() else { return scope.clone() };
    let is_one_project = pairs.iter().all(|(id, _)| id == project_id);
    let is_one_branch = pairs.iter().all(|(_, name)| name == branch_name);
    Scope {
        project_id: scope.project_id.or(is_one_project.then_some(*project_id)),
        branch_name: scope.branch_name.clone().or(is_one_branch.then(|| branch_name.clone())),
        ..Scope::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_that_is_dated_ahead_does_not_decide_which_year_is_shown() {
        let newest = |years: &[i16]| WantedYear::Newest.among(years, 2026);
        assert_eq!(newest(&[2106, 2026, 2025]), Some(2026));
        assert_eq!(newest(&[2106, 2024]), Some(2024));
        assert_eq!(newest(&[2106, 2038]), Some(2106), "nothing but wrong clocks");
        assert_eq!(newest(&[]), None);
        assert_eq!(WantedYear::Only(2106).among(&[2106, 2026], 2026), Some(2106));
    }

    #[test]
    fn the_same_branches_are_counted_once_however_they_are_asked_for() {
        let pairs = |names: &[(i64, &str)]| {
            names.iter().map(|(id, name)| (*id, (*name).to_owned())).collect::<Vec<_>>()
        };
        let scope = |project_id: Option<i64>, branch: Option<&str>| Scope {
            project_id,
            branch_name: branch.map(str::to_owned),
            ..Scope::default()
        };
        let all = Scope::default();
        assert_eq!(canonical(&all, &pairs(&[(1, "main")])), scope(Some(1), Some("main")));
        assert_eq!(canonical(&all, &pairs(&[(1, "main"), (1, "next")])), scope(Some(1), None));
        assert_eq!(canonical(&all, &pairs(&[(1, "main"), (2, "main")])), scope(None, Some("main")));
        assert_eq!(canonical(&all, &pairs(&[(1, "main"), (2, "next")])), all);
        assert_eq!(
            canonical(&scope(None, Some("main")), &pairs(&[(1, "main")])),
            scope(Some(1), Some("main"))
        );
    }
}
