//! A funnel: bars below each other, with what was dropped at each step.

use super::SMALL;
use super::axis::{at, float, grouped};
use super::svg::{Anchor, Svg};
use crate::engine::chart::FunnelStep;
use crate::phrase::Speech;
use crate::text::shorten;

const NAME: f64 = 20.0;
const BAR: f64 = 14.0;
const LINE: f64 = 18.0;
const GAP: f64 = 10.0;

pub(super) fn draw(steps: &[FunnelStep], speech: &Speech) -> Svg {
    let lines: usize = steps.iter().map(|step| step.dropped.len()).sum();
    let height = at(steps.len()) * (NAME + BAR + GAP) + at(lines) * LINE;
    let mut svg = Svg::new(SMALL, height.max(BAR));
    let most = steps.iter().map(|step| step.count).max().unwrap_or(0).max(1);
    let mut y = 0.0;
    for step in steps {
        let name = speech.phrase(&step.name);
        let long = SMALL * (float(step.count.max(0)) / float(most));
        svg.text("c-strong", (0.0, y + 14.0), Anchor::Start, &shorten(&name, 44));
        svg.text("c-strong", (SMALL, y + 14.0), Anchor::End, &grouped(step.count));
        y += NAME;
        svg.rect("class=\"c-track\" rx=\"3\"", (0.0, y), (SMALL, BAR), "");
        let tip = format!("{name} · {}", grouped(step.count));
        svg.rect("class=\"c-bar\" rx=\"3\"", (0.0, y), (long, BAR), &tip);
        y += BAR;
        for (why, count) in &step.dropped {
            let label = format!("− {} {}", grouped(*count), shorten(&speech.phrase(why), 52));
            svg.text("c-text", (0.0, y + 14.0), Anchor::Start, &label);
            y += LINE;
        }
        y += GAP;
    }
    svg
}
