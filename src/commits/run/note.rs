//! A run that somebody made by hand, in the story of the jobs that it collected for.

use super::store::{self, JobFigures};
use super::{Ended, RunRow, WorkedRun};
use crate::db::{self, Db, Tx};
use crate::engine::runner::EndedRun;
use crate::engine::{Failure, Job, Report};
use crate::id::{JobName, RunId};
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;

/// What a run came to, for people.
pub(in crate::commits) fn summarise(run_id: &RunId, figures: &JobFigures) -> Phrase {
    let JobFigures { done, failed, total, new_commits } = *figures;
    phrase!(
        "run {run}: {done} of {total} branches up to date, {failed} failed, {new new commit}",
        "収集 {run}：{total} ブランチ中 {done} 件が最新、失敗 {failed} 件、新しいコミット {new} 件",
        run = run_id.to_string(),
        new = new_commits
    )
}

/// Notes the end of a run that began at `began_at` for each of `jobs` that it collected for, as if it had been a run of that
/// job: what it has collected is not due again at once, and `status` and `why` know of it. Which of several jobs a failure
/// is about, is not known.
pub async fn note_manual_run(
    db: &Db,
    jobs: Vec<Job>,
    ended: &Result<Ended, Failure>,
    began_at: Timestamp,
) -> db::Result<()> {
    let worked = match (ended, jobs.as_slice()) {
        (Ok(Ended::Worked(worked)), _) => worked.clone(),
        (Err(failure), [job]) => {
            let Some(ended) = EndedRun::of(Err(failure), began_at) else { return Ok(()) };
            let (name, schedule) = (job.name.clone(), job.schedule.clone());
            return db.write(move |tx| ended.note_manual_run(tx, &name, &schedule, tx.now())).await;
        }
        _ => return Ok(()),
    };
    db.write(move |tx| {
        let run = &worked.run.run;
        let names = store::list_jobs(tx, run)?;
        let now = tx.now();
        for job in jobs.iter().filter(|job| names.iter().any(|name| *name == *job.name.as_str())) {
            let report = report_of(tx, run, &job.name, names.len() == 1, &worked, now)?;
            if let Some(ended) = EndedRun::of(Ok(&report), began_at) {
                ended.note_manual_run(tx, &job.name, &job.schedule, now)?;
            }
        }
        Ok(())
    })
    .await
}

/// What the run came to for one job. Of several jobs, whose a problem is that is not about a branch, is not known.
fn report_of(
    tx: &mut Tx<'_>,
    run: &RunRow,
    job: &JobName,
    is_alone: bool,
    worked: &WorkedRun,
    now: Timestamp,
) -> db::Result<Report> {
    let figures = store::count_of_job(tx, &run.run_id, job)?;
    let JobFigures { done, failed, total, new_commits } = figures;
    let summary = summarise(&run.run_id, &figures);
    let problems = if is_alone {
        worked.problems.clone()
    } else {
        (failed > 0).then(|| summary.clone()).into_iter().collect()
    };
    let waiting_until = worked.waiting_until.or((done + failed < total).then_some(now));
    let all_failed = failed > 0 && done == 0 && new_commits == 0;
    let new_count = u64::try_from(new_commits).unwrap_or(0);
    Ok(Report { problems, new_count, waiting_until, all_failed, ..Report::new(summary) })
}
