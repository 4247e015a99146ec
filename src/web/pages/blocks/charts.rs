//! Charts with their tables.

use askama::Template;

use crate::engine::chart::Chart;
use crate::phrase::Phrase;
use crate::web::chart::{self, Drawn};
use crate::web::pages::render::Renderer;

#[derive(Template)]
#[template(path = "pages/blocks/charts.html")]
pub(super) struct ChartsPart<'a> {
    r: &'a Renderer,
    charts: Vec<(&'a Phrase, Drawn)>,
    /// Whether each chart has a separate card.
    is_card: bool,
}

impl<'a> ChartsPart<'a> {
    /// Charts as a separate block.
    pub(super) fn cards(r: &'a Renderer, index: usize, charts: &'a [Chart]) -> Self {
        Self { is_card: true, ..Self::new(r, index, charts) }
    }

    pub(super) fn new(r: &'a Renderer, index: usize, charts: &'a [Chart]) -> Self {
        let draw = |(number, chart): (usize, &'a Chart)| {
            (&chart.title, chart::draw(chart, &format!("c{index}-{number}"), &r.speech))
        };
        Self { r, charts: charts.iter().enumerate().map(draw).collect(), is_card: false }
    }
}
