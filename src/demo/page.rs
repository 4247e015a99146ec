//! `/demo`: the posts and mails that the demo servers received, newest first, as a page of the dashboard.

use std::sync::Arc;

use jiff::fmt::rfc2822;

use super::google_books;
use super::mail;
use super::mastodon::Toot;
use super::smtp::Kept;
use super::world::World;
use crate::engine::page::{Block, ExtraPage, Frame, PageView, Timeline, TimelineEntry};
use crate::phrase;
use crate::phrase::{Phrase, Value};
use crate::time::Timestamp;

/// The path of the page.
pub const PATH: &str = "/demo";
/// The address of a generated cover, without its number.
const COVER: &str = "https://books.example/content?id=demo";
/// The newest of each to show; a demo may run for days.
const SHOWN: usize = 200;

/// The page, for the dashboard of the demo.
pub fn page(world: Arc<World>) -> ExtraPage {
    let (shown, read) = (Arc::clone(&world), world);
    ExtraPage {
        slug: PATH.trim_start_matches('/'),
        title: || phrase!("Demo", "デモ"),
        load: Arc::new(move || view(&shown.posts(), &shown.mails())),
        document: Arc::new(move |name| {
            let number: usize = name.parse().ok()?;
            read.mails().get(number.checked_sub(1)?).map(|mail| as_document(&mail::read(mail).html))
        }),
    }
}

fn view(posts: &[Toot], mails: &[Kept]) -> PageView {
    let mut view =
        PageView::new(phrase!("Messages the demo servers received", "デモのサーバーが受信したメッセージ"));
    view.blocks.push(Block::Notes(vec![phrase!(
        "The demo runs a Mastodon and a mail server of its own. The links in the mails about books lead to the prompt pages.",
        "Mastodon とメールサーバーもデモの中で動いています。本のメールにあるリンクは調査プロンプトのページです。"
    )]));
    let title = phrase!("Mails ({count})", "メール（{count} 件）", count = mails.len());
    let numbered = mails.iter().enumerate().map(|(index, mail)| (index + 1, mail));
    let frames: Vec<Frame> = numbered.rev().take(SHOWN).map(frame).collect();
    view.blocks.push(if frames.is_empty() { empty(&title) } else { Block::Frames { title, frames } });
    let title = phrase!("Posts ({count})", "投稿（{count} 件）", count = posts.len());
    view.blocks.push(timeline(title, posts.iter().rev().take(SHOWN).map(post_entry)));
    view
}

fn empty(title: &Phrase) -> Block {
    Block::Empty { text: phrase!("{title}: nothing yet", "{title}：まだありません"), command: None }
}

/// A mail in a frame.
fn frame((number, mail): (usize, &Kept)) -> Frame {
    let letter = mail::read(mail);
    let at = rfc2822::parse(&letter.date)
        .map_or(Timestamp::MIN, |at| Timestamp::from_millis(at.timestamp().as_millisecond()));
    Frame {
        title: Phrase::verbatim(letter.subject),
        at,
        note: phrase!("to {to}", "宛先 {to}", to = &letter.to),
        address: format!("{PATH}?document={number}"),
        links: list_links(&letter.text).into_iter().map(Value::link).collect(),
        text: Phrase::verbatim(letter.text),
    }
}

/// The HTML of a mail for a frame: links open in a new page, and no pictures are loaded from other sites.
fn as_document(html: &str) -> String {
    let html = html.replacen("<head>", "<head><base target=\"_blank\">", 1);
    let mut out = String::with_capacity(html.len());
    let mut rest = html.as_str();
    while let Some(start) = rest.find(COVER) {
        let (before, from) = rest.split_at(start);
        let end = from.find('"').unwrap_or(from.len());
        let number = from[COVER.len()..end].chars().take_while(char::is_ascii_digit).collect::<String>();
        out.push_str(before);
        out.push_str(&number.parse().map_or_else(|_| from[..end].to_owned(), google_books::draw_cover));
        rest = &from[end..];
    }
    out + rest
}

fn timeline(title: Phrase, entries: impl Iterator<Item = TimelineEntry>) -> Block {
    let entries: Vec<TimelineEntry> = entries.collect();
    if entries.is_empty() { empty(&title) } else { Block::Timeline(Timeline { title, entries, next: None }) }
}

fn post_entry(post: &Toot) -> TimelineEntry {
    let text = post.request["status"].as_str().unwrap_or_default();
    TimelineEntry {
        at: post.created_at,
        state: None,
        subject: Value::Text(format!("#{}", post.id)),
        text: Phrase::verbatim(text),
        links: list_links(text).into_iter().map(Value::link).collect(),
        notes: Vec::new(),
        about: None,
        actions: Vec::new(),
    }
}

/// The web addresses in a text.
fn list_links(text: &str) -> Vec<&str> {
    let mut links = Vec::new();
    let mut rest = text;
    while let Some(start) = ["http://", "https://"].into_iter().filter_map(|word| rest.find(word)).min() {
        let from = &rest[start..];
        let end = from.find(|c: char| !c.is_ascii_graphic() || "<>\"'()".contains(c)).unwrap_or(from.len());
        links.push(&from[..end]);
        rest = &from[end..];
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_in_a_text_is_a_link_and_nothing_else_is() {
        let text = "見る：http://127.0.0.1:1/p/abc。javascript:x 次は https://b.example/?b=1&c=\"onclick=x";
        assert_eq!(list_links(text), ["http://127.0.0.1:1/p/abc", "https://b.example/?b=1&c="]);
        assert_eq!(list_links(""), [""; 0]);
    }

    #[test]
    fn mails_and_posts_are_shown_newest_first() {
        let toot = |id| Toot {
            id,
            created_at: Timestamp::from_millis(0),
            request: serde_json::json!({ "status": format!("<b>{id}") }),
            key: None,
        };
        let mail = |subject: &str| Kept {
            from: "a@example.com".into(),
            to: vec!["b@example.com".into()],
            data: format!(
                "Subject: {subject}\r\nDate: Thu, 15 Jan 2026 09:02:00 +0900\r\n\r\nhttp://a.example/p/1"
            ),
        };
        let view = view(&[toot(1), toot(2)], &[mail("x"), mail("y")]);
        let [Block::Notes(_), Block::Frames { frames, .. }, Block::Timeline(posts)] = view.blocks.as_slice()
        else {
            panic!("{:?}", view.blocks)
        };
        assert_eq!(posts.entries[0].text, "<b>2");
        assert_eq!(frames[0].title, "y");
        assert_eq!(frames[0].address, "/demo?document=2");
        assert_eq!(frames[0].links, [Value::link("http://a.example/p/1")]);
        assert_eq!(frames[1].at, "2026-01-15T00:02:00.000Z".parse().unwrap());
    }

    #[test]
    fn covers_are_drawn_and_links_open_elsewhere() {
        let html = "<head></head><img src=\"https://books.example/content?id=demo00000023&#38;zoom=1\" width=\"96\">";
        let shown = as_document(html);
        assert!(
            shown.starts_with("<head><base target=\"_blank\"></head><img src=\"data:image/svg+xml;base64,"),
            "{shown}"
        );
        assert!(shown.ends_with("\" width=\"96\">") && !shown.contains("books.example"), "{shown}");
    }
}
