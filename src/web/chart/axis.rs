//! Axes of charts: scales, round ticks, labels that do not overlap, and formatted numbers.

use crate::engine::chart::Scale;
use crate::text::width;

/// From values to lengths.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    top: f64,
    length: f64,
    scale: Scale,
}

impl Axis {
    /// An axis for values from 0 to `largest`.
    pub(super) fn new(largest: f64, length: f64, scale: Scale) -> Self {
        let top = match scale {
            Scale::Linear => {
                let step = step_of(largest);
                (largest / step).ceil().max(1.0) * step
            }
            Scale::Log => 10_f64.powf(largest.max(1.0).log10().ceil().max(1.0)),
        };
        Self { top, length, scale }
    }

    /// The length of a value; never 0 for a value above 0.
    pub(super) fn length(&self, value: f64) -> f64 {
        if value <= 0.0 {
            return 0.0;
        }
        let share = match self.scale {
            Scale::Linear => value / self.top,
            // 1 is a tenth of the first power, so that it is visible.
            Scale::Log => (value.max(1.0).log10() + 0.1) / (self.top.log10() + 0.1),
        };
        (share * self.length).clamp(1.0, self.length)
    }

    /// Values with a grid line.
    pub(super) fn ticks(&self) -> Vec<f64> {
        match self.scale {
            Scale::Linear => {
                let step = step_of(self.top);
                (0..=10).map(|number| f64::from(number) * step).take_while(|tick| *tick <= self.top).collect()
            }
            Scale::Log => {
                let powers = self.top.log10().round();
                let every = (powers / 5.0).ceil().max(1.0);
                let power = |number: u8| 10_f64.powf(f64::from(number) * every);
                (0..=20).map(power).take_while(|tick| *tick <= self.top).collect()
            }
        }
    }
}

/// A round distance, about a quarter of `largest`.
fn step_of(largest: f64) -> f64 {
    let raw = (largest / 4.0).max(1.0);
    let power = 10_f64.powf(raw.log10().floor());
    let round = [1.0, 2.0, 5.0, 10.0].into_iter().find(|round| raw <= round * power * 1.000_001);
    round.unwrap_or(10.0) * power
}

#[allow(clippy::cast_precision_loss, reason = "a drawing has fewer pixels than a double has digits")]
pub(super) fn float(count: i64) -> f64 {
    count as f64
}

pub(super) fn at(index: usize) -> f64 {
    f64::from(u32::try_from(index).unwrap_or(u32::MAX))
}

/// `0`, `950`, `1.5k`, `20M`: for axes.
pub(super) fn compact(value: f64) -> String {
    const UNITS: [&str; 6] = ["", "k", "M", "G", "T", "P"];
    let (mut value, mut unit) = (value, 0);
    while value >= 1_000.0 && unit + 1 < UNITS.len() {
        value /= 1_000.0;
        unit += 1;
    }
    let text = format!("{value:.1}");
    format!("{}{}", text.strip_suffix(".0").unwrap_or(&text), UNITS[unit])
}

/// `1,234,567`: for texts.
pub(in crate::web) fn grouped(count: i64) -> String {
    let digits = count.unsigned_abs().to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3 + 1);
    if count < 0 {
        text.push('-');
    }
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Show every n-th label, so that labels with this much room do not overlap.
pub(super) fn every(labels: &[String], room: f64) -> usize {
    let widest = labels.iter().map(|label| width(label)).max().unwrap_or(0);
    let needed = at(widest) * LETTER + 8.0;
    let mut every = 1;
    while at(every) * room < needed && every < labels.len().max(1) {
        every += 1;
    }
    every
}

/// The width of a half-width letter.
pub(super) const LETTER: f64 = 6.6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_the_largest_value_fits() {
        for (largest, ticks) in [
            (0.0, vec![0.0, 1.0]),
            (1.0, vec![0.0, 1.0]),
            (7.0, vec![0.0, 2.0, 4.0, 6.0, 8.0]),
            (950.0, vec![0.0, 500.0, 1_000.0]),
        ] {
            let axis = Axis::new(largest, 100.0, Scale::Linear);
            assert_eq!(axis.ticks(), ticks, "{largest}");
            assert!(axis.length(largest) <= 100.0);
        }
        let axis = Axis::new(float(i64::MAX), 100.0, Scale::Linear);
        assert!(axis.ticks().len() < 8 && axis.length(float(i64::MAX)) <= 100.0);
    }

    #[test]
    fn a_logarithmic_axis_shows_one_beside_a_million() {
        let axis = Axis::new(1_500_000.0, 100.0, Scale::Log);
        assert_eq!(axis.ticks().first(), Some(&1.0));
        let (one, thousand, most) = (axis.length(1.0), axis.length(1_000.0), axis.length(1_500_000.0));
        assert!(one >= 1.0 && thousand > 20.0 && most > thousand && most <= 100.0, "{one} {thousand} {most}");
        assert!((axis.length(0.0)).abs() < f64::EPSILON);
    }

    #[test]
    fn numbers_are_short_on_axes_and_grouped_in_texts() {
        let shown = [0.0, 950.0, 1_500.0, 20_000_000.0].map(compact);
        assert_eq!(shown, ["0", "950", "1.5k", "20M"]);
        let shown = [0, -1_234, 999, 1_234_567].map(grouped);
        assert_eq!(shown, ["0", "-1,234", "999", "1,234,567"]);
        assert_eq!(grouped(i64::MIN), "-9,223,372,036,854,775,808");
    }

    #[test]
    fn labels_keep_their_distance() {
        let months: Vec<String> = (1..=24).map(|month| format!("2026-{month:02}")).collect();
        assert_eq!(every(&months, 80.0), 1);
        assert_eq!(every(&months, 30.0), 2);
        assert_eq!(every(&[], 30.0), 1);
    }
}
