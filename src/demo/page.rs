//! `/demo`: the posts and mails that the demo servers received, newest first, as a page of the dashboard.

use std::sync::Arc;

use jiff::fmt::rfc2822;

use super::mail;
use super::mastodon::Toot;
use super::smtp::Kept;
use super::world::World;
use crate::engine::page::{Block, ExtraPage, PageView, Timeline, TimelineEntry};
use crate::phrase;
use crate::phrase::{Phrase, Value};
use crate::time::Timestamp;

/// Where the page is.
pub const PATH: &str = "/demo";
/// The newest of each that are shown; a demo may be left running for days.
const SHOWN: usize = 200;

/// The page, for the dashboard of the demo.
pub fn page(world: Arc<World>) -> ExtraPage {
    ExtraPage {
        slug: PATH.trim_start_matches('/'),
        title: || phrase!("Demo", "デモ"),
        load: Arc::new(move || view(&world.posts(), &world.mails())),
    }
}

fn view(posts: &[Toot], mails: &[Kept]) -> PageView {
    let mut view =
        PageView::new(phrase!("Messages the demo servers received", "デモのサーバーが受信したメッセージ"));
    view.blocks.push(Block::Notes(vec![phrase!(
        "The demo plays Mastodon and the mail server. The links in the mails about books lead to the prompt pages.",
        "Mastodon とメールサーバーの役はこのデモが務めます。本のメールにあるリンクは調査プロンプトのページです。"
    )]));
    let posts_title = phrase!("Posts ({count})", "投稿（{count} 件）", count = posts.len());
    view.blocks.push(timeline(posts_title, posts.iter().rev().take(SHOWN).map(post_entry)));
    let mails_title = phrase!("Mails ({count})", "メール（{count} 件）", count = mails.len());
    view.blocks.push(timeline(mails_title, mails.iter().rev().take(SHOWN).map(mail_entry)));
    view
}

fn timeline(title: Phrase, entries: impl Iterator<Item = TimelineEntry>) -> Block {
    let entries: Vec<TimelineEntry> = entries.collect();
    match entries.is_empty() {
        true => Block::Empty {
            text: phrase!("{title}: nothing yet", "{title}：まだありません", title),
            command: None,
        },
        false => Block::Timeline(Timeline { title, entries, next: None }),
    }
}

fn post_entry(post: &Toot) -> TimelineEntry {
    let text = post.request["status"].as_str().unwrap_or_default();
    entry(post.created_at, Value::Text(format!("#{}", post.id)), text, Vec::new())
}

fn mail_entry(mail: &Kept) -> TimelineEntry {
    let letter = mail::read(mail);
    let at = rfc2822::parse(&letter.date)
        .map_or(Timestamp::MIN, |at| Timestamp::from_millis(at.timestamp().as_millisecond()));
    let to = phrase!("to {to}", "宛先 {to}", to = &letter.to);
    entry(at, Value::Text(letter.subject), &letter.text, vec![to])
}

fn entry(at: Timestamp, subject: Value, text: &str, notes: Vec<Phrase>) -> TimelineEntry {
    TimelineEntry {
        at,
        state: None,
        subject,
        text: Phrase::verbatim(text),
        links: list_links(text).into_iter().map(Value::link).collect(),
        notes,
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
    fn mails_and_posts_are_told_newest_first_with_their_text() {
        let toot = |id| Toot {
            id,
            created_at: Timestamp::from_millis(0),
            request: serde_json::json!({ "status": format!("<b>{id}") }),
            key: None,
        };
        let mail = Kept {
            from: "a@example.com".into(),
            to: vec!["b@example.com".into()],
            data: "Subject: x\r\nDate: Thu, 15 Jan 2026 09:02:00 +0900\r\n\r\nhttp://a.example/p/1".into(),
        };
        let view = view(&[toot(1), toot(2)], &[mail]);
        let timelines: Vec<&Timeline> = view
            .blocks
            .iter()
            .filter_map(|block| match block {
                Block::Timeline(timeline) => Some(timeline),
                _ => None,
            })
            .collect();
        assert_eq!(timelines[0].entries[0].text, "<b>2");
        assert_eq!(timelines[1].entries[0].at, "2026-01-15T00:02:00.000Z".parse().unwrap());
        assert_eq!(timelines[1].entries[0].links, [Value::link("http://a.example/p/1")]);
    }
}
