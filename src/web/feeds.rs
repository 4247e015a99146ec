//! `/feeds/job/NAME.atom` and `.json`: the results of a job, for feed readers.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HOST, IF_NONE_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::Pages;
use super::client::Client;
use super::guard::Guard;
use super::pages::why_path;
use super::problem::Problem;
use super::route::{Access, Route};
use crate::config::Web;
use crate::engine::Finder;
use crate::engine::finding::FoundThing;
use crate::hash::sha256_hex;
use crate::text::{one_line, printable};
use crate::time::Timestamp;

/// Entries of a feed.
const ENTRIES: usize = 50;

pub(super) fn routes() -> Vec<Route> {
    vec![Route::get("/feeds/job/{name}", Access::Feed, show)]
}

/// The formats, by extension.
#[derive(Clone, Copy)]
enum FeedFormat {
    Atom,
    Json,
}

#[derive(Template)]
#[template(path = "feed.xml")]
struct JobFeed {
    title: String,
    id: String,
    home: String,
    here: String,
    updated: Timestamp,
    entries: Vec<FeedEntry>,
}

/// An entry without characters that are invalid in XML or harmful to readers.
struct FeedEntry {
    id: String,
    title: String,
    link: String,
    at: Timestamp,
    summary: String,
}

async fn show(
    State(pages): State<Pages>,
    Extension(guard): Extension<Arc<Guard>>,
    Extension(client): Extension<Client>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let missing = || Problem::not_found("a feed is named like a job: /feeds/job/NAME.atom or .json");
    let (job, format) = match name.rsplit_once('.') {
        Some((job, "atom")) => (job, FeedFormat::Atom),
        Some((job, "json")) => (job, FeedFormat::Json),
        _ => return Err(missing()),
    };
    let finder = pages.finder().ok_or_else(missing)?;
    let job = finder.jobs.iter().find(|known| known.name.as_str() == job).ok_or_else(missing)?;
    let pipeline = finder.pipelines.iter().find(|of| of.kind.name == job.kind).ok_or_else(missing)?;
    let (list, job_name) = (pipeline.list_findings, job.name.clone());
    let findings = pages.db.read(move |tx| list(tx, Some(&job_name), ENTRIES)).await?;
    let base = base(&finder, &headers, guard.is_https(client, &headers));
    let feed = JobFeed::new(job.name.as_str(), &name, &base, findings);
    let (media_type, text) = match format {
        FeedFormat::Atom => ("application/atom+xml; charset=utf-8", feed.render().unwrap_or_default()),
        FeedFormat::Json => ("application/feed+json; charset=utf-8", feed.to_json()),
    };
    // Weak, because the transferred bytes may be compressed.
    let etag = format!("W/\"{}\"", &sha256_hex(&text)[..32]);
    let is_known = headers.get_all(IF_NONE_MATCH).iter().any(|known| is_listed(known.as_bytes(), &etag));
    let head = [(ETAG, etag.as_str()), (CACHE_CONTROL, "private, no-cache")];
    Ok(if is_known {
        (StatusCode::NOT_MODIFIED, head).into_response()
    } else {
        (head, [(CONTENT_TYPE, media_type)], text).into_response()
    })
}

/// Whether `If-None-Match` contains this tag; readers and proxies drop the `W/` of a weak one.
fn is_listed(known: &[u8], etag: &str) -> bool {
    let tags = known.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let bare = etag.trim_start_matches("W/").as_bytes();
    tags.map(|tag| tag.strip_prefix(b"W/").unwrap_or(tag)).any(|tag| tag == b"*" || tag == bare)
}

/// Our base address: that of the config, or that of this request.
fn base(finder: &Finder, headers: &HeaderMap, is_https: bool) -> String {
    let web = finder.config.web.keys::<Web>().ok();
    if let Some(url) = web.and_then(|web| web.public_url.as_ref()) {
        return url.as_str().trim_end_matches('/').to_owned();
    }
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    format!("{}://{host}", if is_https { "https" } else { "http" })
}

impl JobFeed {
    fn new(job: &str, file: &str, base: &str, findings: Vec<FoundThing>) -> Self {
        // With the current time a feed without dates would differ at every request.
        let undated = Timestamp::from_millis(0);
        let entry = |finding: FoundThing| {
            let is_web = |link: &String| link.starts_with("https://") || link.starts_with("http://");
            let here = || format!("{base}{}", why_path(&finding.about));
            FeedEntry {
                // One thing for `why` may have several findings, such as the commits of a branch.
                id: stable_id(&[job, &finding.about, &finding.title, &finding.names.join(" ")]),
                title: one_line(&finding.title),
                link: finding.link.clone().filter(is_web).unwrap_or_else(here),
                at: finding.at.unwrap_or(undated),
                summary: printable(finding.summary.as_deref().unwrap_or_default()),
            }
        };
        let entries: Vec<FeedEntry> = findings.into_iter().map(entry).collect();
        Self {
            title: one_line(&format!("{job} · tsuzuki")),
            id: stable_id(&[job]),
            home: format!("{base}{}", why_path(&format!("job:{job}"))),
            here: format!("{base}/feeds/job/{file}"),
            updated: entries.iter().map(|entry| entry.at).max().unwrap_or(undated),
            entries,
        }
    }

    fn to_json(&self) -> String {
        let item = |entry: &FeedEntry| {
            json!({
                "id": entry.id,
                "url": entry.link,
                "title": entry.title,
                "content_text": entry.summary,
                "date_published": entry.at.to_string(),
            })
        };
        let items: Vec<_> = self.entries.iter().map(item).collect();
        json!({
            "version": "https://jsonfeed.org/version/1.1",
            "title": self.title,
            "home_page_url": self.home,
            "feed_url": self.here,
            "items": items,
        })
        .to_string()
        // A client that parses it as HTML finds no element.
        .replace('<', "\\u003c")
    }
}

/// A stable id: a UUID (version 8) of a hash.
fn stable_id(parts: &[&str]) -> String {
    let hash = sha256_hex(parts.join("\n"));
    format!(
        "urn:uuid:{}-{}-8{}-a{}-{}",
        &hash[..8],
        &hash[8..12],
        &hash[13..16],
        &hash[17..20],
        &hash[20..32]
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::feed::{Context, parse};
    use crate::web::tests::Site;

    fn feed() -> JobFeed {
        let finding = |title: &str, link: Option<&str>| FoundThing {
            about: format!("item:{}", title.len()),
            title: title.to_owned(),
            link: link.map(str::to_owned),
            at: Some("2026-01-15T00:02:11.123Z".parse().unwrap()),
            summary: Some("<b>1 & 2</b>\u{1}\u{202e}".to_owned()),
            names: Vec::new(),
        };
        let hostile = "</title><script>alert(1)</script>\u{0}\u{202e}{{ 7*7 }}]]>";
        let findings = vec![
            finding("総務省 第12回", Some("https://a.example/?b=1&c=2")),
            finding(hostile, Some("javascript:alert(1)")),
            finding("no address", None),
        ];
        JobFeed::new("mine", "mine.atom", "http://localhost", findings)
    }

    #[test]
    fn feeds_are_read_by_our_own_reader_with_everything_inert() {
        let feed = feed();
        for (media_type, text) in
            [("application/atom+xml", feed.render().unwrap()), ("application/feed+json", feed.to_json())]
        {
            let context = Context { content_type: Some(media_type.to_owned()), ..Context::default() };
            let read = parse(text.as_bytes(), &context).unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert_eq!(read.entries.len(), 3, "{text}");
            assert_eq!(read.entries[0].title.as_deref(), Some("総務省 第12回"), "{text}");
            assert_eq!(read.entries[0].link.as_deref(), Some("https://a.example/?b=1&c=2"), "{text}");
            assert!(!text.contains("<script") && !text.contains("javascript:"), "{text}");
            assert!(!text.contains(['\u{0}', '\u{1}', '\u{202e}']), "{text}");
            let ids: std::collections::BTreeSet<_> = read.entries.iter().map(|entry| &entry.id).collect();
            assert_eq!(ids.len(), 3, "{ids:?}");
        }
    }

    #[tokio::test]
    async fn a_reader_that_knows_the_feed_is_told_so_without_its_text() {
        let job = "[[job]]\nname = \"feeds\"\nkind = \"blogs\"\nblog = [{ id = \"a\", url = \"https://a.example\" }]\n";
        let site = Site::serve(&format!("trusted_proxies = [\"127.0.0.1\"]\n{job}")).await;
        for path in ["/feeds/job/feeds.atom", "/feeds/job/feeds.json"] {
            let first = site.get(path, &[]).await;
            let etag = first.header("etag").unwrap().to_owned();
            assert!(
                first.status == 200 && first.body.contains("http://localhost/job/feeds"),
                "{}",
                first.body
            );
            assert_eq!(first.header("cache-control"), Some("private, no-cache"));
            for known in [etag.clone(), etag.replace("W/", ""), format!("\"x\", {etag}"), "*".to_owned()] {
                let again = site.get(path, &[&format!("If-None-Match: {known}")]).await;
                assert_eq!((again.status, again.header("etag")), (304, Some(&*etag)), "{known}");
                assert!(again.body.is_empty(), "{}", again.body);
            }
            let other = site.get(path, &["If-None-Match: \"x\""]).await;
            assert_eq!(other.status, 200);
            let proxied = site.get(path, &["X-Forwarded-Proto: https"]).await;
            assert!(proxied.body.contains("https://localhost/job/feeds"), "{}", proxied.body);
        }
    }

    #[test]
    fn an_entry_keeps_its_id() {
        let (before, after) = (feed(), feed());
        assert_eq!(before.entries[0].id, after.entries[0].id);
        assert_eq!(stable_id(&["mine"]), "urn:uuid:3fd30542-fe3f-81b1-abd4-a4b2dc0b6fb3");
    }
}
