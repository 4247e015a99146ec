//! The newest runs of a job, as a strip and as a table.

use super::render::{Markup, Renderer};
use crate::engine::RunOutcome;
use crate::engine::chart::{Chart, Figure, StripCell, StripMark};
use crate::engine::overview::RunMark;
use crate::phrase;
use crate::phrase::Phrase;
use crate::web::chart;

/// A cell for each run, oldest first; `id` is unique on its page.
pub(super) fn strip(r: &Renderer, job: &str, runs: &[RunMark], id: &str) -> Markup {
    let cell = |run: &RunMark| StripCell { mark: mark(run), about: about(run) };
    let failed = runs.iter().filter(|run| mark(run) == StripMark::Failed).count();
    let chart = Chart {
        title: phrase!("Last runs of {job}", "{job} の実行履歴"),
        about: phrase!(
            "{count run}, {failed} failed",
            "{count} 回の実行（失敗 {failed} 回）",
            count = runs.len()
        ),
        figure: Figure::Strip(runs.iter().map(cell).collect()),
    };
    Markup::from_chart(chart::draw(&chart, id, &r.speech))
}

fn mark(run: &RunMark) -> StripMark {
    match run.outcome {
        RunOutcome::Failed | RunOutcome::Partly => StripMark::Failed,
        RunOutcome::Waiting => StripMark::Quota,
        RunOutcome::Interrupted => StripMark::Unchanged,
        RunOutcome::Success if run.new_count > 0 => StripMark::New,
        RunOutcome::Success => StripMark::Same,
    }
}

fn about(run: &RunMark) -> Phrase {
    let (at, how, said) = (run.at, run.outcome.phrase(), &run.message);
    phrase!("{at} {how}: {said}", "{at} {how}：{said}")
}
