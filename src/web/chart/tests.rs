//! Whatever the numbers are, and whoever wrote the labels, the drawing is well formed and inert.

use std::collections::HashMap;

use proptest::prelude::*;
use quick_xml::Reader;
use quick_xml::events::Event;

use super::*;
use crate::engine::chart::{Bars, Calendar, FunnelStep, Meter, Mirror, Scale, Series, StripCell, StripMark};
use crate::phrase::Phrase;
use crate::text::Language;

const HOSTILE: &str = "</text><script>alert(1)</script>\u{202e}\"'&{{ x }}\u{0}\u{ffff}";

fn chart(figure: Figure) -> Chart {
    Chart { title: Phrase::verbatim("Title"), about: Phrase::verbatim(HOSTILE), figure }
}

fn series(name: &str, values: &[i64]) -> Series {
    Series { name: Phrase::verbatim(name), values: values.to_vec() }
}

fn texts(count: usize) -> Vec<String> {
    (1..=count).map(|number| format!("2026-{number:02}")).collect()
}

/// Draws in both languages and answers how many elements of each name there are; fails if it is not well formed.
fn elements(figure: Figure) -> HashMap<String, usize> {
    let chart = chart(figure);
    let mut counts = HashMap::new();
    for language in [Language::Ja, Language::En] {
        counts.clear();
        let drawn = draw(&chart, "c1", &Speech { language, zone: None });
        let mut reader = Reader::from_str(&drawn.svg);
        reader.config_mut().check_end_names = true;
        loop {
            match reader.read_event().unwrap_or_else(|error| panic!("{error}: {}", drawn.svg)) {
                Event::Start(tag) | Event::Empty(tag) => {
                    for attribute in tag.attributes() {
                        let value = attribute.unwrap().value.into_owned();
                        assert!(!value.contains("NaN") && !value.contains("inf"), "{}", drawn.svg);
                    }
                    *counts.entry(tag.name().as_ref().to_owned()).or_default() += 1;
                }
                Event::Eof => break,
                _ => {}
            }
        }
        assert!(!drawn.svg.contains("style="), "the content security policy refuses styles of elements");
        assert!(!drawn.svg.contains("<script") && !drawn.svg.contains('\u{202e}'), "{}", drawn.svg);
        assert!(drawn.rows.iter().all(|row| row.len() == drawn.columns.len()), "{drawn:?}");
    }
    counts
}

fn count(figure: Figure, name: &str) -> usize {
    elements(figure).get(name).copied().unwrap_or(0)
}

fn bars(labels: usize, values: &[Vec<i64>], scale: Scale) -> Figure {
    let series = values.iter().map(|values| series(HOSTILE, values)).collect();
    Figure::Bars(Bars { labels: texts(labels), series, scale })
}

#[test]
fn nothing_one_point_and_huge_values_are_drawn() {
    let huge = vec![i64::MAX, 0, -5, 1];
    for scale in [Scale::Linear, Scale::Log] {
        for (labels, values) in [
            (0, vec![]),
            (1, vec![]),
            (0, vec![vec![]]),
            (1, vec![vec![7]]),
            (4, vec![huge.clone(), huge.clone()]),
            (40, vec![huge.clone(); 8]),
        ] {
            elements(bars(labels, &values, scale));
        }
    }
    for values in [vec![], vec![3], huge.clone()] {
        let (up, down) = (series(HOSTILE, &values), series("down", &values));
        elements(Figure::Mirror(Mirror { labels: texts(values.len()), up, down }));
    }
    elements(Figure::PunchCard([[0; 24]; 7]));
    elements(Figure::PunchCard([[i64::MAX; 24]; 7]));
    elements(Figure::Funnel(vec![]));
    elements(Figure::Strip(vec![]));
    for (used, limit) in [(0, 0), (5, 0), (-1, 10), (11, 10), (i64::MAX, i64::MAX)] {
        elements(Figure::Meter(Meter { used, limit }));
    }
}

#[test]
fn bars_stand_side_by_side_while_there_is_room_and_on_each_other_when_there_is_none() {
    let widths = |labels, people: usize| {
        let drawn = draw(
            &chart(bars(labels, &vec![vec![5; labels]; people], Scale::Linear)),
            "c1",
            &Speech::default(),
        );
        let mut widths: Vec<String> = drawn
            .svg
            .split("<rect fill=")
            .skip(1 + people)
            .filter_map(|rect| Some(rect.split_once("width=\"")?.1.split_once('"')?.0.to_owned()))
            .collect();
        widths.dedup();
        (widths, drawn.svg.matches("<rect fill=").count())
    };
    let (beside, drawn) = widths(12, 4);
    assert_eq!((beside.as_slice(), drawn), (["13.5".to_owned()].as_slice(), 4 + 12 * 4));
    let (stacked, drawn) = widths(36, 6);
    assert_eq!((stacked.as_slice(), drawn), (["16.9".to_owned()].as_slice(), 6 + 36 * 6));
}

#[test]
fn a_day_is_a_square_and_the_busiest_is_darkest() {
    let day = |text: &str| text.parse().unwrap();
    let days = vec![(day("2025-12-31"), 1), (day("2026-03-01"), 4), (day("2026-12-31"), 400)];
    let year = Calendar { first: day("2026-01-01"), last: day("2026-12-31"), days };
    assert_eq!(count(Figure::Calendar(year.clone()), "rect"), 365 + 5);
    let drawn = draw(&chart(Figure::Calendar(year)), "c1", &Speech::default());
    assert!(drawn.svg.contains("<rect class=\"c-h1\" rx=\"2\" x=\"154\""), "{}", drawn.svg);
    assert!(drawn.svg.contains("2026-12-31 · 400"));
    assert!(!drawn.svg.contains("2025-12-31"), "not of this year");
    let ages = Calendar { first: day("0001-01-01"), last: day("9999-12-31"), days: vec![] };
    assert!(count(Figure::Calendar(ages), "rect") < 110 * 7 + 10);
    let backwards = Calendar { first: day("2026-01-02"), last: day("2026-01-01"), days: vec![] };
    assert_eq!(count(Figure::Calendar(backwards), "rect"), 1 + 5);
}

#[test]
fn the_hours_of_the_week_and_the_steps_of_a_funnel_are_all_there() {
    let mut hours = [[0; 24]; 7];
    hours[0][9] = 4;
    hours[6][23] = 1;
    assert_eq!(count(Figure::PunchCard(hours), "circle"), 2);
    let step = |count, dropped| FunnelStep { name: Phrase::verbatim(HOSTILE), count, dropped };
    let steps = vec![step(10, vec![(Phrase::verbatim("why"), 4)]), step(6, vec![]), step(0, vec![])];
    let counts = elements(Figure::Funnel(steps));
    assert_eq!((counts["rect"], counts["text"]), (3 + 2, 3 * 2 + 1));
}

#[test]
fn each_mark_of_a_strip_has_a_shape_of_its_own() {
    let marks = [StripMark::Unchanged, StripMark::Same, StripMark::New, StripMark::Failed, StripMark::Quota];
    let mut shapes = std::collections::HashSet::new();
    for mark in marks {
        let cell = StripCell { mark, about: Phrase::verbatim(HOSTILE) };
        let svg = draw(&chart(Figure::Strip(vec![cell])), "c1", &Speech::default()).svg;
        let body = svg.split_once("</desc>").unwrap().1;
        shapes.insert(body.replace("c-quiet", "").replace("c-bar", "").replace("c-full", ""));
    }
    assert_eq!(shapes.len(), marks.len());
}

#[test]
fn the_table_behind_has_the_same_numbers() {
    let bars = Bars {
        labels: texts(2),
        series: vec![series("Ann", &[1_200, 3]), series("Bob", &[0])],
        scale: Scale::Log,
    };
    let drawn = draw(&chart(Figure::Bars(bars)), "c1", &Speech::default());
    assert_eq!(drawn.columns, ["Period", "Ann", "Bob"]);
    assert_eq!(drawn.rows, [["2026-01", "1,200", "0"], ["2026-02", "3", "0"]]);
}

proptest! {
    #[test]
    fn any_numbers_and_any_labels_make_a_well_formed_drawing(
        values in proptest::collection::vec(proptest::collection::vec(any::<i64>(), 0..20), 0..9),
        label in any::<String>(),
        is_log in any::<bool>(),
    ) {
        let labels = vec![label.clone(); values.iter().map(Vec::len).max().unwrap_or(0)];
        let series = values.iter().map(|values| series(&label, values)).collect();
        let scale = if is_log { Scale::Log } else { Scale::Linear };
        elements(Figure::Bars(Bars { labels, series, scale }));
    }
}
