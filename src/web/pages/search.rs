//! `/search?q=…`: one box for everything. An exact name leads straight to its page.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};

use super::blocks::PageBody;
use super::render::why_path;
use super::{Visit, layout, missing, unavailable};
use crate::engine::finder::read_address;
use crate::engine::finding::{FoundThing, SEARCHED, SHOWN, SearchWords};
use crate::engine::page::{Block, PageFilter, PageView, TableBlock, TableRow};
use crate::engine::{Finder, View};
use crate::ledger::Subject;
use crate::phrase;
use crate::phrase::Value;
use crate::web::Pages;

/// What a search found.
enum Searched {
    /// The one thing that has this name.
    Exactly(String),
    Hits(Vec<FoundThing>),
}

pub(super) async fn show(State(pages): State<Pages>, visit: Visit) -> Response {
    let Some(finder) = pages.finder().map(Arc::new) else { return missing(&pages, &visit) };
    let text = visit.query.find("q").unwrap_or_default().trim().to_owned();
    let (reading, wanted) = (Arc::clone(&finder), text.clone());
    let hits = match pages.db.read(move |tx| search(&reading, tx, &wanted)).await {
        Ok(Searched::Exactly(about)) => return Redirect::to(&why_path(&about)).into_response(),
        Ok(Searched::Hits(hits)) => hits,
        Err(error) => return unavailable(&pages, &visit, &error),
    };
    let r = visit.renderer(&finder);
    let view = page(&text, &hits);
    let title = r.plain(&view.title);
    layout::respond(&pages, &finder, &visit, &title, &PageBody::new(&r, &view, &visit.query))
}

fn search(finder: &Finder, tx: &mut crate::db::Tx<'_>, text: &str) -> crate::db::Result<Searched> {
    let named = list_named(finder, tx, text)?;
    if let [only] = named.as_slice() {
        return Ok(Searched::Exactly(only.about.clone()));
    }
    let found = match SearchWords::new(text) {
        Some(words) => finder.search(tx, &words)?,
        None => Vec::new(),
    };
    if named.is_empty() {
        let titled = find_only(found.iter().filter(|hit| hit.title == text));
        let only = titled
            .or_else(|| find_only(found.iter().filter(|hit| hit.names.iter().any(|name| name == text))));
        if let Some(only) = only {
            return Ok(Searched::Exactly(only.about.clone()));
        }
    }
    let is_named = |hit: &FoundThing| named.iter().any(|known| known.about == hit.about);
    let others: Vec<FoundThing> = found.into_iter().filter(|hit| !is_named(hit)).collect();
    Ok(Searched::Hits(named.into_iter().chain(others).collect()))
}

/// The only one, if there is exactly one.
fn find_only<'a>(mut hits: impl Iterator<Item = &'a FoundThing>) -> Option<&'a FoundThing> {
    let only = hits.next()?;
    hits.next().is_none().then_some(only)
}

/// Finds things by address, number or `WORD:NAME`. Things of several sorts can have the same number.
fn list_named(finder: &Finder, tx: &mut crate::db::Tx<'_>, text: &str) -> crate::db::Result<Vec<FoundThing>> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let mut views: Vec<View> = Vec::new();
    if is_number {
        for thing in &finder.things {
            views.extend((thing.find)(finder, tx, text)?);
        }
    } else if read_address(text).is_some() {
        views = finder.find(tx, text)?;
    } else {
        views = finder.find_exactly(tx, text)?;
    }
    let thing = |view: View| FoundThing {
        title: view.headline.unwrap_or_else(|| Subject::verbatim(&view.name).phrase().to_string()),
        about: view.name,
        link: None,
        at: None,
        summary: None,
        names: Vec::new(),
    };
    Ok(views.into_iter().map(thing).collect())
}

fn page(text: &str, hits: &[FoundThing]) -> PageView {
    let mut page = PageView::new(phrase!("Search", "検索"));
    let label = phrase!("Titles, names, addresses, messages", "タイトル・名前・アドレス・メッセージ");
    page.filters.push(PageFilter::text("q", label, text));
    if hits.is_empty() && !text.is_empty() {
        let text = phrase!("Nothing has {text} in it.", "「{text}」を含むものはありません。");
        page.blocks.push(Block::Empty { text, command: None });
    }
    if !hits.is_empty() {
        page.blocks.push(Block::Table(TableBlock {
            title: phrase!("{count hit}", "{count} 件", count = hits.len()),
            columns: vec![
                phrase!("what", "名前"),
                phrase!("sort", "種類"),
                phrase!("when", "日時"),
                phrase!("address", "アドレス"),
            ],
            rows: hits.iter().map(row).collect(),
            next: None,
        }));
    }
    page.blocks.push(Block::Notes(vec![phrase!(
        "Every word has to be there, as a part of a word or as a whole. The newest {searched} things of each sort are searched, and the first {shown} hits of each are shown.",
        "すべての語を含むもの（部分一致）を表示します。種類ごとに新しい順に {searched} 件までを検索し、{shown} 件まで表示します。",
        searched = SEARCHED,
        shown = SHOWN
    )]));
    page
}

fn row(hit: &FoundThing) -> TableRow {
    let about = Subject::verbatim(&hit.about);
    TableRow {
        cells: vec![
            Value::from(hit.title.as_str()),
            Subject::called(about.word()).into(),
            hit.at.into(),
            hit.link.as_ref().map_or(Value::Nothing, Value::link),
        ],
        about: Some(hit.about.clone()),
        ..TableRow::default()
    }
}

#[cfg(test)]
mod tests {
    use crate::web::tests::Site;

    #[tokio::test]
    async fn hits_are_of_a_sort_in_the_language_of_the_reader_and_what_is_left_out_is_said() {
        let job = "[[job]]\nname = \"feeds\"\nkind = \"blogs\"\nblog = [{ id = \"feed-a\", url = \"https://a.example\" }]\n";
        let site = Site::serve(job).await;
        let page = site.get("/search?q=fee", &["Accept-Language: ja"]).await.body;
        for cell in [">ジョブ</td>", ">ブログ</td>"] {
            assert!(page.contains(cell), "{cell}: {page}");
        }
        assert!(page.contains("検索し、20 件まで表示します"), "{page}");
    }
}
