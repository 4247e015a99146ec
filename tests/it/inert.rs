//! Text from outside is shown as it was written and has no effect, on every page that can be reached by links.

use std::collections::BTreeSet;

use tsuzuki::db::Tx;
use tsuzuki::engine::events::RunEvent;
use tsuzuki::engine::{RunOutcome, store as jobs};
use tsuzuki::id::JobName;
use tsuzuki::ledger::{Subject, event};
use tsuzuki::phrase::Phrase;
use tsuzuki::{params, sql};

use crate::site::{HOSTILE, NOW, Site, add_book, add_change, add_item, add_message, add_project};

/// Elements whose text direction is isolated; `code` by the style sheet.
const ISOLATED: &[&str] = &["bdi", "code", "pre", "textarea", "option", "title", "desc", "text"];
const WITHOUT_END: &[&str] = &["!doctype", "meta", "link", "input", "br"];
/// Pages that must be among the visited ones.
const KNOWN: &[&str] = &[
    "/",
    "/books",
    "/changes",
    "/commits",
    "/deliveries",
    "/job/code",
    "/job/ministry",
    "/press",
    "/quotas",
    "/settings",
    "/why/blog/site",
    "/why/change/1",
    "/why/delivery/1",
    "/why/item/1",
];

/// Titles, summaries, names, answers and errors of every kind.
fn fill(tx: &mut Tx<'_>) -> tsuzuki::db::Result<()> {
    add_project(tx)?;
    add_item(tx, 1, 3, 0, Some(HOSTILE))?;
    add_item(tx, 2, 1, 1, None)?;
    tx.execute(sql!("UPDATE items SET verdict = ?1"), params![HOSTILE])?;
    add_book(tx, 1, true)?;
    tx.execute(sql!("UPDATE books SET publisher = ?1, description = ?1"), params![HOSTILE])?;
    add_change(tx, 1, true)?;
    add_change(tx, 2, false)?;
    tx.execute(
        sql!("INSERT INTO blog_state (blog_id, last_check_at, job_name, decided_by, feed_url) VALUES ('site', ?1, 'watch', 'feed', 'https://site.example/feed')"),
        params![NOW],
    )?;
    tx.execute(
        sql!("INSERT INTO check_history (blog_id, checked_at, http_status, skipped, changed, error_message) VALUES ('site', ?1, 500, 0, 0, ?2)"),
        params![NOW, HOSTILE],
    )?;
    for (number, state) in [(1, "sent"), (2, "failed"), (3, "held")] {
        add_message(tx, number, state)?;
    }
    tx.execute(sql!("UPDATE outbox SET last_error = ?1, remote_id = ?1, recipient = ?1"), params![HOSTILE])?;
    let (now, message) = (tx.now(), Phrase::verbatim(HOSTILE));
    for name in ["watch", "ministry", "shelf", "code"] {
        let job: JobName = name.parse().unwrap();
        jobs::mark_begun(tx, name, now)?;
        jobs::mark_ended(tx, name, RunOutcome::Failed, &message, None, now)?;
        let run = RunEvent {
            code: RunOutcome::Failed,
            message: message.clone(),
            began_at: Some(now),
            new_count: 2,
        };
        event::record(tx, Some(&job), &Subject::job(name), &run, now)?;
        let detail = serde_json::json!({ "why": HOSTILE, "error": HOSTILE });
        for subject in
            [Subject::new("blog", HOSTILE), Subject::new("item", 1), Subject::new("other", HOSTILE)]
        {
            event::add(tx, Some(&job), &subject, HOSTILE, &detail, now)?;
        }
    }
    Ok(())
}

on_both_databases! {
    async fn what_strangers_wrote_does_nothing_on_any_page(fixture) {
        fixture.db.write(fill).await.unwrap();
        let site = Site::serve(&fixture).await;
        for language in ["en", "ja"] {
            let mut open = ["/", "/search?q=alert", "/settings?kind=blogs", "/press?text=%3Cscript%3Ealert(1)"].map(str::to_owned).to_vec();
            let mut seen = BTreeSet::new();
            while let Some(path) = open.pop() {
                if !seen.insert(path.clone()) {
                    continue;
                }
                assert!(seen.len() < 400, "pages without end: {seen:?}");
                let html = site.read(&path, language).await;
                assert_inert(&path, &html);
                open.extend(list_links(&path, &html));
            }
            for known in KNOWN {
                assert!(seen.contains(*known), "no link leads to {known}: {seen:?}");
            }
        }
        for job in ["watch", "ministry", "shelf", "code"] {
            for path in [format!("/badge/{job}.svg"), format!("/feeds/job/{job}.atom")] {
                let answer = site.get(&path, "en").await;
                assert!(answer.status == 200 && !answer.text().contains("<script") && !answer.text().contains("<img"), "{path}: {}", answer.text());
            }
        }
    }
}

/// Markup of strangers is text, and signs that turn the direction of reading end with it.
fn assert_inert(path: &str, html: &str) {
    for markup in [
        "<script>",
        "<img",
        "<iframe",
        " onclick=",
        " style=",
        "href=\"javascript:",
        "src=\"http",
        "href=\"//",
    ] {
        assert!(!html.contains(markup), "{markup} on {path}: {html}");
    }
    assert!(!html.contains("{% raw %}\""), "{path}: quotes are escaped");
    let (mut inside, mut rest): (Vec<&str>, _) = (Vec::new(), html);
    while let Some(at) = rest.find(['<', '\u{202e}']) {
        let before = &rest[..at];
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix('\u{202e}') {
            let is_isolated = inside.iter().any(|name| ISOLATED.contains(name));
            assert!(is_isolated, "{path}: turns around what follows in {inside:?}: {before}");
            rest = after;
            continue;
        }
        let (tag, after) = rest[1..].split_once('>').unwrap();
        rest = after;
        let name = tag.split_whitespace().next().unwrap_or_default();
        match name.strip_prefix('/') {
            Some(name) => assert_eq!(inside.pop(), Some(name), "{path}: elements end in order"),
            None if tag.ends_with('/') || WITHOUT_END.contains(&name) => {}
            None => inside.push(name),
        }
    }
}

/// Where a page leads to on this site; not to downloads, documents for programs and prompt pages.
fn list_links(path: &str, html: &str) -> Vec<String> {
    let here = path.split('?').next().unwrap();
    let links = html.split(" href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    links
        .map(|href| href.replace("&#38;", "&").replace("&amp;", "&"))
        .filter(|href| !href.contains("format=") && (href.starts_with('/') || href.starts_with('?')))
        .filter(|href| !["/api/", "/feeds/", "/assets/", "/p/"].iter().any(|other| href.starts_with(other)))
        .map(|href| if href.starts_with('?') { format!("{here}{href}") } else { href })
        .collect()
}
