//! The pages of a file in order, each loaded only when needed.

use std::borrow::Cow;
use std::collections::HashSet;
use std::rc::Rc;

use super::document::PdfDocument;
use super::object::{Dict, Object};

/// How deep the tree of pages may be.
const MAX_DEPTH: usize = 64;
/// The most nodes of the page tree to visit.
const MAX_PAGES: usize = 20_000;
/// The most nodes that wait to be visited.
const MAX_OPEN: usize = 2 * MAX_PAGES;

/// A page: the numbers of its object and of the one with inherited resources. Nothing of it is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageRef {
    number: u32,
    /// The ancestor in the tree that has resources.
    heir_of: Option<u32>,
}

/// The resources of the previous page, which the next one often shares.
#[derive(Debug, Default)]
pub(super) struct LastResources {
    number: Option<u32>,
    resources: Rc<Dict>,
}

/// The pages in the order of the tree, or of their numbers if the tree is broken.
pub(super) fn list(document: &PdfDocument<'_>) -> Vec<PageRef> {
    let mut pages = Vec::new();
    let mut catalogue = document.root();
    if catalogue.dict().and_then(|dict| dict.find("Pages")).is_none() {
        catalogue = Cow::Owned(find_catalogue(document));
    }
    match catalogue.dict().and_then(|dict| dict.find("Pages")) {
        Some(Object::Ref(tree)) => walk(document, vec![*tree], &mut pages),
        // It should be an object of its own; without a number nothing can be inherited from it.
        Some(Object::Dict(tree)) => walk(document, kids_of(document, tree).unwrap_or_default(), &mut pages),
        _ => {}
    }
    if pages.is_empty() {
        for number in document.numbers() {
            let Some(Object::Dict(dict)) = document.load(number) else { continue };
            if dict.is_type("Page") && pages.len() < MAX_PAGES {
                pages.push(PageRef { number, heir_of: None });
            }
        }
    }
    if pages.len() == MAX_PAGES {
        document.budget.mark_cut();
    }
    pages
}

fn find_catalogue(document: &PdfDocument<'_>) -> Object {
    let numbers = document.numbers().into_iter().rev();
    let mut objects = numbers.filter_map(|number| document.load(number));
    objects.find(|object| object.dict().is_some_and(|dict| dict.is_type("Catalog"))).unwrap_or(Object::Null)
}

fn walk(document: &PdfDocument<'_>, tops: Vec<u32>, pages: &mut Vec<PageRef>) {
    let mut seen = HashSet::new();
    let mut open: Vec<(u32, Option<u32>, usize)> = tops.into_iter().rev().map(|top| (top, None, 0)).collect();
    while let Some((number, heir_of, depth)) = open.pop() {
        if document.budget.spend(1).is_none() {
            return;
        }
        if !seen.insert(number) {
            continue;
        }
        let node = document.resolve(&Object::Ref(number)).into_owned();
        let Some(dict) = node.dict() else { continue };
        match kids_of(document, dict) {
            Some(kids) if depth < MAX_DEPTH => {
                let heir_of = if dict.find("Resources").is_some() { Some(number) } else { heir_of };
                let free = MAX_OPEN - open.len();
                if kids.len() > free {
                    document.budget.mark_cut();
                }
                open.extend(kids.into_iter().take(free).rev().map(|kid| (kid, heir_of, depth + 1)));
            }
            Some(_) => {}
            None if pages.len() < MAX_PAGES => pages.push(PageRef { number, heir_of }),
            None => return,
        }
    }
}

/// The numbers of the children of a node; `None` if it is a page.
fn kids_of(document: &PdfDocument<'_>, dict: &Dict) -> Option<Vec<u32>> {
    let kids = document.value(dict, "Kids");
    let numbers = kids.array()?.iter().take(MAX_OPEN + 1).filter_map(|kid| match kid {
        Object::Ref(number) => Some(*number),
        _ => None,
    });
    Some(numbers.collect())
}

impl PageRef {
    /// Its operators, from one or several streams, and its resources.
    pub(super) fn read(&self, document: &PdfDocument<'_>, shared: &mut LastResources) -> (Vec<u8>, Rc<Dict>) {
        let page = document.resolve(&Object::Ref(self.number)).into_owned();
        let Some(dict) = page.dict() else { return Default::default() };
        let mut content = Vec::new();
        for part in document.value(dict, "Contents").list() {
            if let Object::Stream(stream) = document.resolve(part).as_ref()
                && let Some(bytes) = document.decode(stream)
            {
                content.extend_from_slice(&bytes);
                content.push(b'\n');
            }
        }
        (content, self.resources(document, dict, shared))
    }

    fn resources(&self, document: &PdfDocument<'_>, page: &Dict, shared: &mut LastResources) -> Rc<Dict> {
        let own = match page.find("Resources") {
            Some(Object::Dict(own)) => Some(Rc::new(own.clone())),
            Some(own @ Object::Ref(number)) => shared.load(*number, || document.resolve(own).into_owned()),
            _ => None,
        };
        let inherited = || {
            let number = self.heir_of?;
            shared.load(number, || {
                let node = document.load(number);
                let resources =
                    node.as_ref().and_then(Object::dict).map(|dict| document.value(dict, "Resources"));
                resources.map_or(Object::Null, Cow::into_owned)
            })
        };
        own.or_else(inherited).unwrap_or_default()
    }
}

impl LastResources {
    /// The dictionary of an object, loaded unless the previous page had the same.
    fn load(&mut self, number: u32, load: impl FnOnce() -> Object) -> Option<Rc<Dict>> {
        if self.number != Some(number) {
            // Drop the old ones first: those of two pages are never in memory together.
            *self = Self::default();
            let Object::Dict(resources) = load() else { return None };
            *self = Self { number: Some(number), resources: Rc::new(resources) };
        }
        Some(Rc::clone(&self.resources))
    }
}
