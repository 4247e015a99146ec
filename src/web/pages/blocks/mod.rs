//! Blocks of pages as HTML.

use askama::Template;

use super::render::Renderer;
use crate::engine::page::{Block, PageView};

/// A heading, the filters and the blocks of a page.
#[derive(Template)]
#[template(path = "pages/blocks/page.html")]
pub(in crate::web) struct PageBody<'a> {
    pub(in crate::web) r: &'a Renderer,
    pub(in crate::web) view: &'a PageView,
}
