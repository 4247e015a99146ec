//! How many got how far, as bars below each other, with what was dropped on the way.

use super::axis::{float, grouped};
use super::svg::{Anchor, Svg};
use crate::engine::chart::FunnelStep;
use crate::phrase::Speech;
use crate::text::shorten;

const WIDTH: f64 = 720.0;
const LEFT: f64 = 150.0;
const RIGHT: f64 = 90.0;
const BAR: f64 = 26.0;
const DROPPED: f64 = 18.0;

pub(super) fn draw(steps: &[FunnelStep], speech: &Speech) -> Svg {
    let lines: usize = steps.iter().map(|step| step.dropped.len()).sum();
    let height = super::axis::at(steps.len()) * (BAR + 12.0) + super::axis::at(lines) * DROPPED;
    let mut svg = Svg::new(WIDTH, height.max(BAR));
    let most = steps.iter().map(|step| step.count).max().unwrap_or(0).max(1);
    let mut y = 0.0;
    for step in steps {
        let name = speech.phrase(&step.name);
        let long = (WIDTH - LEFT - RIGHT) * (float(step.count.max(0)) / float(most));
        svg.text("c-strong", (LEFT - 10.0, y + 18.0), Anchor::End, &shorten(&name, 22));
        svg.rect("class=\"c-track\" rx=\"3\"", (LEFT, y), (WIDTH - LEFT - RIGHT, BAR), "");
        let tip = format!("{name} · {}", grouped(step.count));
        svg.rect("class=\"c-bar\" rx=\"3\"", (LEFT, y), (long, BAR), &tip);
        svg.text("c-strong", (WIDTH - RIGHT + 8.0, y + 18.0), Anchor::Start, &grouped(step.count));
        y += BAR + 4.0;
        for (why, count) in &step.dropped {
            let said = format!("− {} {}", grouped(*count), shorten(&speech.phrase(why), 60));
            svg.text("c-text", (LEFT + 4.0, y + 11.0), Anchor::Start, &said);
            y += DROPPED;
        }
        y += 8.0;
    }
    svg
}
