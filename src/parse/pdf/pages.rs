//! The pages of a file in their order, each with its resources.

use std::borrow::Cow;
use std::collections::HashSet;
use std::rc::Rc;

use super::document::Document;
use super::object::{Dict, Object};

/// How deep the tree of pages may be.
const MAX_DEPTH: usize = 64;
/// The most pages that are looked at.
const MAX_PAGES: usize = 20_000;
/// The most nodes of the tree that wait to be looked at.
const MAX_OPEN: usize = 2 * MAX_PAGES;

/// A page.
#[derive(Clone, Debug)]
pub(super) struct Page {
    contents: Object,
    pub(super) resources: Rc<Dict>,
}

/// The pages by the tree, or in the order of their numbers if the tree is broken.
pub(super) fn list(document: &Document<'_>) -> Vec<Page> {
    let mut pages = Vec::new();
    let mut catalogue = document.root();
    if catalogue.dict().and_then(|dict| dict.find("Pages")).is_none() {
        catalogue = Cow::Owned(find_catalogue(document));
    }
    if let Some(tree) = catalogue.dict().and_then(|dict| dict.find("Pages")) {
        walk(document, tree, &mut pages);
    }
    if pages.is_empty() {
        for number in document.numbers() {
            let Some(Object::Dict(dict)) = document.load(number) else { continue };
            if dict.is_type("Page") && pages.len() < MAX_PAGES {
                pages.push(page(document, &dict, &Rc::default()));
            }
        }
    }
    if pages.len() == MAX_PAGES {
        document.budget.mark_cut();
    }
    pages
}

fn find_catalogue(document: &Document<'_>) -> Object {
    let numbers = document.numbers().into_iter().rev();
    let mut objects = numbers.filter_map(|number| document.load(number));
    objects.find(|object| object.dict().is_some_and(|dict| dict.is_type("Catalog"))).unwrap_or(Object::Null)
}

fn walk(document: &Document<'_>, tree: &Object, pages: &mut Vec<Page>) {
    let mut seen = HashSet::new();
    let mut open = vec![(tree.clone(), Rc::<Dict>::default(), 0)];
    while let Some((node, inherited, depth)) = open.pop() {
        if document.budget.spend(1).is_none() {
            return;
        }
        if let Object::Ref(number) = node
            && !seen.insert(number)
        {
            continue;
        }
        let node = document.resolve(&node);
        let Some(dict) = node.dict() else { continue };
        match document.value(dict, "Kids").as_ref() {
            Object::Array(kids) if depth < MAX_DEPTH => {
                let resources = own_resources(document, dict).unwrap_or(inherited);
                let room = MAX_OPEN - open.len();
                if kids.len() > room {
                    document.budget.mark_cut();
                }
                let kids =
                    kids.iter().take(room).rev().map(|kid| (kid.clone(), Rc::clone(&resources), depth + 1));
                open.extend(kids);
            }
            Object::Array(_) => {}
            _ if pages.len() < MAX_PAGES => pages.push(page(document, dict, &inherited)),
            _ => return,
        }
    }
}

fn page(document: &Document<'_>, dict: &Dict, inherited: &Rc<Dict>) -> Page {
    let resources = own_resources(document, dict).unwrap_or_else(|| Rc::clone(inherited));
    Page { contents: dict.find("Contents").cloned().unwrap_or(Object::Null), resources }
}

fn own_resources(document: &Document<'_>, dict: &Dict) -> Option<Rc<Dict>> {
    match document.value(dict, "Resources").into_owned() {
        Object::Dict(resources) => Some(Rc::new(resources)),
        _ => None,
    }
}

impl Page {
    /// Its operators: one stream, or several that count as one.
    pub(super) fn content(&self, document: &Document<'_>) -> Vec<u8> {
        let parts = document.resolve(&self.contents);
        let mut content = Vec::new();
        for part in parts.list() {
            if let Object::Stream(stream) = document.resolve(part).as_ref()
                && let Some(bytes) = document.decode(stream)
            {
                content.extend_from_slice(&bytes);
                content.push(b'\n');
            }
        }
        content
    }
}
