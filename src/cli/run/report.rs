//! Reports how runs ended: a line for each job when it ends, a summary, and one exit code.

use serde::Serialize;

use super::super::{Context, Exit, Result};
use tsuzuki::engine::{Failure, Finished, RunOutcome, Skipped};
use tsuzuki::id::JobName;
use tsuzuki::phrase;
use tsuzuki::phrase::{Phrase, Speech, Value};

/// Whether a job held by another process is an error.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    IsFine,
    IsAnError,
}

#[derive(Serialize)]
struct RunLine<'a> {
    #[serde(rename = "job_name")]
    job: &'a JobName,
    outcome: &'static str,
    message: Phrase,
    problems: &'a [Phrase],
}

impl<'a> RunLine<'a> {
    fn new(job: &'a JobName, finished: &'a Finished) -> Self {
        let (outcome, message, problems) = match finished {
            Finished::Skipped(skipped) => ("skipped", skipped.phrase(), &[][..]),
            Finished::Ran(report) => (report.outcome().word(), report.summary.clone(), &report.problems[..]),
            Finished::Failed(failure) => {
                let is_interrupted = matches!(failure, Failure::Interrupted);
                (if is_interrupted { "interrupted" } else { "failed" }, failure.phrase(), &[][..])
            }
        };
        Self { job, outcome, message, problems }
    }
}

/// Reports each job when it ends, and all of them at the end.
pub(super) struct RunReporter<'a> {
    context: &'a Context,
    speech: Speech,
    held: Held,
}

impl<'a> RunReporter<'a> {
    pub(super) async fn new(context: &'a Context, held: Held) -> Result<Self> {
        Ok(Self { context, speech: context.speech().await?, held })
    }

    /// The line of a job that has ended, and its problems below it.
    pub(super) fn print_line(&self, job: &JobName, finished: &Finished) -> Result<()> {
        let out = &self.context.out;
        let line = RunLine::new(job, finished);
        let is_news = match finished {
            // Whatever decides the exit code is printed also with `-q`.
            Finished::Skipped(Skipped::Held(_)) => self.held == Held::IsAnError,
            Finished::Skipped(_) => !out.is_quiet() && self.held == Held::IsAnError,
            Finished::Ran(report) if report.is_held && self.held == Held::IsAnError => true,
            Finished::Ran(report) => {
                !out.is_quiet() || matches!(report.outcome(), RunOutcome::Partly | RunOutcome::Failed)
            }
            Finished::Failed(_) => true,
        };
        if !is_news || out.is_json() {
            return Ok(());
        }
        let said = phrase!(
            "{job}: {outcome}: {message}",
            "{job}：{outcome}：{message}",
            outcome = phrase_of(line.outcome),
            message = &line.message
        );
        out.prose(self.speech.phrase(&said))?;
        line.problems
            .iter()
            .try_for_each(|problem| out.prose(format!("  {}", self.speech.phrase(problem))))?;
        match finished {
            Finished::Failed(Failure::Credentials(_)) => out.prose(self.speech.choose(
                "  hint: `tsuzuki doctor` says which keys are missing or refused, and where to get them",
                "  ヒント: 足りないキーや拒否されたキー、その取得先は `tsuzuki doctor` で確認できます",
            )),
            _ => Ok(()),
        }
    }

    /// The exit code, and the summary as JSON or text.
    pub(super) fn conclude(&self, finished: &[(JobName, Finished)]) -> (Exit, Result<()>) {
        let out = &self.context.out;
        let written = if out.is_json() {
            let lines = finished.iter().map(|(job, finished)| RunLine::new(job, finished));
            out.json(&lines.collect::<Vec<_>>())
        } else {
            Ok(())
        };
        let exit = exit_code(finished, self.held);
        match exit {
            Exit::Interrupted => {
                out.note(phrase!(
                    "Interrupted. Everything up to here is saved; `tsuzuki run-due` continues.",
                    "中断しました。ここまでの内容は保存済みです。`tsuzuki run-due` で続きから再開します。"
                ));
            }
            _ if !out.is_json() => {
                if let Some(sentence) = summary(finished) {
                    out.note(sentence);
                }
            }
            _ => {}
        }
        (exit, written)
    }
}

/// A summary of several jobs; `None` for a single one.
fn summary(finished: &[(JobName, Finished)]) -> Option<Phrase> {
    let count = |outcome: &str| {
        let outcomes = finished.iter().map(|(job, finished)| RunLine::new(job, finished).outcome);
        outcomes.filter(|one| *one == outcome).count()
    };
    let skipped = count("skipped");
    if finished.is_empty() {
        return Some(phrase!(
            "There is no job to run; `tsuzuki job ls` lists the jobs.",
            "実行するジョブがありません。ジョブの一覧は `tsuzuki job ls` で確認できます。"
        ));
    }
    if finished.len() == skipped {
        let next = finished.iter().filter_map(|(job, finished)| match finished {
            Finished::Skipped(Skipped::NotDue(Some(next))) => Some((next, job)),
            _ => None,
        });
        let (next, job) = next.min()?;
        return Some(phrase!(
            "Nothing is due; the next is `{job}` at {next}.",
            "実行すべきジョブはありません。次は {next} の `{job}` です。"
        ));
    }
    if finished.len() < 2 {
        return None;
    }
    let words = RunOutcome::ALL.iter().map(|outcome| outcome.word()).chain(["skipped"]);
    let counts: Vec<Value> = words
        .map(|word| (word, count(word)))
        .filter(|(_, count)| *count > 0)
        .map(|(word, count)| phrase!("{count} {word}", "{word} {count} 件", word = phrase_of(word)).into())
        .collect();
    let jobs = finished.len();
    Some(phrase!("{jobs} jobs: {counts}.", "ジョブ {jobs} 件：{counts}。"))
}

/// The name of an outcome, by its word.
fn phrase_of(word: &str) -> Phrase {
    match RunOutcome::ALL.iter().find(|outcome| outcome.word() == word) {
        Some(outcome) => outcome.phrase(),
        None => phrase!("skipped", "対象外"),
    }
}

fn exit_code(finished: &[(JobName, Finished)], held: Held) -> Exit {
    let (mut failures, mut all_failed, mut partly, mut ran_well, mut is_held) = (Vec::new(), 0, 0, 0, false);
    for (_, finished) in finished {
        match finished {
            Finished::Failed(Failure::Interrupted) => return Exit::Interrupted,
            Finished::Failed(failure) => failures.push(failure),
            Finished::Ran(report) if report.is_held => is_held = true,
            Finished::Ran(report) => match report.outcome() {
                RunOutcome::Failed => all_failed += 1,
                RunOutcome::Partly => partly += 1,
                RunOutcome::Success | RunOutcome::Waiting | RunOutcome::Interrupted => ran_well += 1,
            },
            Finished::Skipped(Skipped::Held(_)) => is_held = true,
            Finished::Skipped(_) => {}
        }
    }
    match failures.as_slice() {
        [] if partly + all_failed == 0 && is_held && held == Held::IsAnError => Exit::Held,
        [] if partly + all_failed == 0 => Exit::Fine,
        _ if partly + ran_well > 0 => Exit::Partly,
        _ if all_failed > 0 => Exit::Failed,
        failures if failures.iter().all(|failure| matches!(failure, Failure::Credentials(_))) => {
            Exit::Credentials
        }
        failures if failures.iter().all(|failure| matches!(failure, Failure::Config(_))) => Exit::Config,
        _ => Exit::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tsuzuki::engine::Report;

    fn nothing() -> Report {
        Report::new(Phrase::verbatim(""))
    }

    fn ran(problems: &[&str]) -> Finished {
        let problems = problems.iter().map(|problem| Phrase::from(*problem)).collect();
        Finished::Ran(Report { problems, ..nothing() })
    }

    fn ran_in_vain() -> Finished {
        Finished::Ran(Report { problems: vec!["x".into()], all_failed: true, ..nothing() })
    }

    fn failed(failure: Failure) -> Finished {
        Finished::Failed(failure)
    }

    #[test]
    fn exit_codes_are_those_of_the_documentation() {
        let held = || {
            let at = "2026-01-15T00:00:00Z".parse().unwrap();
            let holder = tsuzuki::ledger::lease::Holder { owner: "x".into(), taken_at: at, expires_at: at };
            Finished::Skipped(Skipped::Held(holder))
        };
        let cases: Vec<(Vec<Finished>, Held, Exit)> = vec![
            (vec![], Held::IsFine, Exit::Fine),
            (vec![ran(&[])], Held::IsFine, Exit::Fine),
            (vec![Finished::Skipped(Skipped::Disabled)], Held::IsFine, Exit::Fine),
            (vec![held()], Held::IsFine, Exit::Fine),
            (vec![held()], Held::IsAnError, Exit::Held),
            (vec![Finished::Ran(Report { is_held: true, ..nothing() })], Held::IsAnError, Exit::Held),
            (vec![ran(&["x"])], Held::IsFine, Exit::Partly),
            (vec![Finished::Ran(Report { is_incomplete: true, ..nothing() })], Held::IsFine, Exit::Partly),
            (vec![ran_in_vain()], Held::IsFine, Exit::Failed),
            (vec![ran_in_vain(), Finished::Skipped(Skipped::Disabled)], Held::IsFine, Exit::Failed),
            (vec![ran_in_vain(), ran(&[])], Held::IsFine, Exit::Partly),
            (vec![ran_in_vain(), ran(&["x"])], Held::IsFine, Exit::Partly),
            (vec![ran_in_vain(), failed(Failure::Credentials("x".into()))], Held::IsFine, Exit::Failed),
            (vec![ran_in_vain(), held()], Held::IsAnError, Exit::Failed),
            (vec![failed(Failure::Failed("x".into()))], Held::IsFine, Exit::Failed),
            (vec![ran(&[]), failed(Failure::Failed("x".into()))], Held::IsFine, Exit::Partly),
            (vec![failed(Failure::Credentials("x".into()))], Held::IsFine, Exit::Credentials),
            (vec![failed(Failure::Config("x".into()))], Held::IsFine, Exit::Config),
            (vec![failed(Failure::Interrupted), ran(&[])], Held::IsFine, Exit::Interrupted),
        ];
        for (number, (finished, held, exit)) in cases.into_iter().enumerate() {
            let finished: Vec<_> =
                finished.into_iter().map(|finished| ("j".parse().unwrap(), finished)).collect();
            assert_eq!(exit_code(&finished, held), exit, "case {number}");
        }
    }
}
