//! Renders blocks of pages as HTML, with a template for each sort.

mod cards;
mod charts;
mod sheet;
mod table;
mod timeline;

use askama::Template;

use self::cards::CardsPart;
use self::charts::ChartsPart;
use self::sheet::SheetPart;
use self::table::{ProgressPart, TablePart};
use self::timeline::TimelinePart;
use super::render::{Markup, Renderer};
use crate::engine::page::{Block, ChoiceLayout, FilterInput, Frame, PageFilter, PageQuery, PageView};
use crate::engine::view::{Action, Fact};
use crate::phrase::Phrase;

pub(super) use self::sheet::download;

/// A heading, the filters and the blocks of a page.
#[derive(Template)]
#[template(path = "pages/blocks/page.html")]
pub(in crate::web) struct PageBody<'a> {
    r: &'a Renderer,
    view: &'a PageView,
    query: &'a PageQuery,
    parts: Vec<Markup>,
    /// Whether a filter is set.
    is_narrowed: bool,
}

impl<'a> PageBody<'a> {
    pub(in crate::web) fn new(r: &'a Renderer, view: &'a PageView, query: &'a PageQuery) -> Self {
        let parts = render_all(r, &view.blocks, query);
        let is_narrowed = view.filters.iter().any(|filter| query.find(filter.name).is_some());
        Self { r, view, query, parts, is_narrowed }
    }

    /// The address of the same page with another tab.
    fn tab_href(&self, filter: &PageFilter, value: &str) -> String {
        let is_filter = |name: &str| self.view.filters.iter().any(|filter| filter.name == name);
        let kept = self.query.iter().filter(|(name, _)| is_filter(name));
        let kept: PageQuery = kept.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        kept.with(filter.name, value)
    }

    fn is_chosen(filter: &PageFilter, value: &str) -> bool {
        match &filter.input {
            FilterInput::Text(_) => false,
            FilterInput::One { value: chosen, .. } => chosen == value,
            FilterInput::Many { values, .. } => values.iter().any(|chosen| chosen == value),
        }
    }
}

/// Every block, from top to bottom.
pub(super) fn render_all(r: &Renderer, blocks: &[Block], query: &PageQuery) -> Vec<Markup> {
    let context = BlockContext { r, query };
    blocks.iter().enumerate().map(|(index, block)| context.render(index, block)).collect()
}

#[derive(Clone, Copy)]
pub(super) struct BlockContext<'a> {
    pub(super) r: &'a Renderer,
    pub(super) query: &'a PageQuery,
}

impl BlockContext<'_> {
    fn render(&self, index: usize, block: &Block) -> Markup {
        let r = self.r;
        let rendered = match block {
            Block::Facts { title, facts, charts } => {
                let charts = ChartsPart::new(r, index, charts);
                Markup::from_template(&FactsPart { r, title, facts, charts })
            }
            Block::Table(table) => Markup::from_template(&TablePart::new(self, index, table)),
            Block::Charts(charts) => Markup::from_template(&ChartsPart::cards(r, index, charts)),
            Block::Notes(notes) => Markup::from_template(&NotesPart { r, notes }),
            Block::Sheet(sheet) => Markup::from_template(&SheetPart::new(self, sheet)),
            Block::Progress(progress) => Markup::from_template(&ProgressPart::new(self, index, progress)),
            Block::Timeline(timeline) => Markup::from_template(&TimelinePart::new(self, timeline)),
            Block::Cards(cards) => Markup::from_template(&CardsPart::new(self, cards)),
            Block::Frames { title, frames } => Markup::from_template(&FramesPart { r, title, frames }),
            Block::Empty { text, command } => Markup::from_template(&EmptyPart { r, text, command }),
        };
        rendered.unwrap_or_else(|error| {
            tracing::error!("A part of a page cannot be rendered: {error}");
            Markup::default()
        })
    }

    /// The buttons of the actions.
    fn actions(&self, actions: &[Action]) -> Markup {
        if actions.is_empty() {
            return Markup::default();
        }
        Markup::from_template(&ActionsPart { r: self.r, actions }).unwrap_or_default()
    }
}

#[derive(Template)]
#[template(path = "pages/blocks/facts.html")]
struct FactsPart<'a> {
    r: &'a Renderer,
    title: &'a Phrase,
    facts: &'a [Fact],
    charts: ChartsPart<'a>,
}

#[derive(Template)]
#[template(path = "pages/blocks/notes.html")]
struct NotesPart<'a> {
    r: &'a Renderer,
    notes: &'a [Phrase],
}

#[derive(Template)]
#[template(path = "pages/blocks/frames.html")]
struct FramesPart<'a> {
    r: &'a Renderer,
    title: &'a Phrase,
    frames: &'a [Frame],
}

#[derive(Template)]
#[template(path = "pages/blocks/empty.html")]
struct EmptyPart<'a> {
    r: &'a Renderer,
    text: &'a Phrase,
    command: &'a Option<String>,
}

#[derive(Template)]
#[template(path = "pages/blocks/actions.html")]
struct ActionsPart<'a> {
    r: &'a Renderer,
    actions: &'a [Action],
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::page::{Cards, TableBlock, Timeline};
    use crate::phrase::Speech;
    use crate::text::Language;

    #[test]
    fn a_search_that_stopped_on_its_way_says_so() {
        let r = Renderer {
            speech: Speech { language: Language::En, zone: None },
            now: "2026-01-15T00:02:11Z".parse().unwrap(),
            address: "/".to_owned(),
            may_act: true,
        };
        let (title, next) = (Phrase::verbatim("x"), Some("?before=7".to_owned()));
        let blocks = [
            Block::Table(TableBlock {
                title: title.clone(),
                columns: Vec::new(),
                rows: Vec::new(),
                next: next.clone(),
            }),
            Block::Cards(Cards { title: title.clone(), cards: Vec::new(), next: next.clone() }),
            Block::Timeline(Timeline { title, entries: Vec::new(), next }),
        ];
        for html in render_all(&r, &blocks, &PageQuery::default()) {
            let html = html.to_string();
            assert!(html.contains("Nothing found so far") && html.contains("?before=7"), "{html}");
        }
    }
}
