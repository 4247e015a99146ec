//! The JSON output of `inspect`, pure: one document or one batch line in, one value out.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Value, json};

use tsuzuki::fetch::guard::{self, AllowPrivate};
use tsuzuki::parse::feed::inspect::shown;
use tsuzuki::parse::url::{self, Url};
use tsuzuki::parse::{feed, html, opml, pdf, robots, sitemap};

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// A feed: RSS, Atom or JSON Feed.
    Feed,
    /// A sitemap: XML, plain text or a feed, also compressed.
    Sitemap,
    /// A page: title, text, links and feeds.
    Page,
    /// A list of feeds.
    Opml,
    /// A PDF: its text.
    Pdf,
    /// A robots.txt, and whether it lets us fetch an address.
    Robots,
    /// An address: how browsers read it, and its form for comparison.
    Url,
    /// An address: whether we would connect to it.
    Address,
}

/// A document with its metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Document {
    /// The bytes, after transfer coding.
    pub bytes: Vec<u8>,
    /// Where they came from.
    pub url: Option<String>,
    /// `Content-Type` as sent.
    pub content_type: Option<String>,
    /// `Content-Location` as sent.
    pub content_location: Option<String>,
    /// `Content-Language` as sent.
    pub content_language: Option<String>,
}

/// The parsed document, or why it cannot be parsed.
pub(crate) fn of_document(kind: Kind, document: &Document) -> Result<Value, String> {
    let base = document.url.as_deref().and_then(|text| Url::parse(text).ok());
    let base = base.as_ref();
    let content_type = document.content_type.as_deref();
    match kind {
        Kind::Feed => {
            let context = feed::Context {
                url: base.cloned(),
                content_type: document.content_type.clone(),
                content_location: document.content_location.clone(),
                content_language: document.content_language.clone(),
                zone: None,
            };
            feed::parse(&document.bytes, &context).map(|feed| shown(&feed)).map_err(|refused| refused.to_string())
        }
        Kind::Sitemap => sitemap::parse(&document.bytes, content_type, base, &sitemap::SitemapLimits::default())
            .map(|sitemap| {
                let children: Vec<String> = sitemap.children.into_iter().map(|child| child.loc).collect();
                json!({ "urls": sitemap.urls, "children": children })
            })
            .map_err(|refused| refused.to_string()),
        Kind::Page => serde_json::to_value(html::read_page(&document.bytes, content_type, base))
            .map_err(|error| error.to_string()),
        Kind::Opml => opml::parse(&document.bytes, content_type)
            .map(|list| {
                let feeds: Vec<Value> =
                    list.feeds.into_iter().map(|feed| json!({ "url": feed.url, "title": feed.title })).collect();
                json!({ "feeds": feeds })
            })
            .map_err(|refused| refused.to_string()),
        Kind::Pdf => pdf::text(&document.bytes, pdf::Limit::default())
            .map(|found| {
                json!({
                    "text": found.text, "pages": found.pages, "unreadable": found.unreadable, "cut": found.is_cut,
                })
            })
            .map_err(|refused| refused.to_string()),
        Kind::Robots | Kind::Url | Kind::Address => Err("this kind is not about a document".to_owned()),
    }
}

/// The rules of a robots.txt for `agent` and `page`.
pub(crate) fn of_robots(robots_txt: &[u8], agent: &str, page: &str) -> Value {
    let robots = robots::parse(robots_txt);
    let base = Url::parse(page).ok();
    // A sitemap must be an absolute address, yet many files say `/sitemap.xml`.
    let absolute = |written: &String| match (Url::parse(written), &base) {
        (Err(_), Some(base)) => base.join(written).map_or_else(|_| written.clone(), String::from),
        _ => written.clone(),
    };
    json!({
        "allowed": robots.allows(agent, page),
        "sitemaps": robots.sitemaps().iter().map(absolute).collect::<Vec<_>>(),
        "crawl_delay": robots.crawl_delay(agent).map(|pause| pause.as_secs_f64()),
    })
}

/// How browsers read an address, and its form for comparison.
pub(crate) fn of_url(input: &str, base: Option<&str>) -> Result<Value, String> {
    let base = base
        .map(|base| Url::parse(base).map_err(|error| format!("the base is no address: {error}")))
        .transpose()?;
    let read =
        url::resolve(base.as_ref(), input).ok_or("this is no address, or a relative one without base")?;
    Ok(json!({ "href": read.as_str(), "normalized": url::normalize(&read) }))
}

/// Whether we would connect to an address when names resolve as given.
pub(crate) fn of_address(
    address: &str,
    resolve: &BTreeMap<String, Vec<IpAddr>>,
    allow: &AllowPrivate,
) -> Value {
    let opinion = guard::opinion(address, resolve, allow);
    json!({ "verdict": opinion.verdict, "why": opinion.why })
}

/// The output for one line of a batch: always `{id, out}`, with `out` null and an `error` when it is refused.
pub(crate) fn answer(kind: Kind, line: &str, allow: &AllowPrivate) -> Value {
    let read = serde_json::from_str(line).or_else(|error| match without_lone_surrogates(line) {
        Some(line) => serde_json::from_str(&line),
        None => Err(error),
    });
    let case: Value = match read {
        Ok(case @ Value::Object(_)) => case,
        Ok(_) => return refusal(&Value::Null, "the line is no JSON object"),
        Err(error) => return refusal(&Value::Null, &format!("the line is no JSON: {error}")),
    };
    let id = case.get("id").cloned().unwrap_or(Value::Null);
    // A parser that panics on one case must not affect the others.
    match catch_unwind(AssertUnwindSafe(|| answer_case(kind, &case, allow))) {
        Ok(Ok(out)) => json!({ "id": id, "out": out }),
        Ok(Err(why)) => refusal(&id, &why),
        Err(_) => refusal(&id, "the reader failed on this document; please report it"),
    }
}

/// The line with U+FFFD for every half of a surrogate pair, or `None` if there is no such half.
///
/// JavaScript and Python write broken strings as lone `\\uD800` escapes; browsers read them as U+FFFD.
fn without_lone_surrogates(line: &str) -> Option<String> {
    let escape = |at: usize| {
        let digits = line.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut out = String::with_capacity(line.len());
    let mut from = 0;
    let mut at = 0;
    while let Some(next) = line[at..].find('\\').map(|next| at + next) {
        let pair = (escape(next), escape(next + 6));
        at = match pair {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => next + 12,
            (Some(0xD800..=0xDFFF), _) => {
                out.push_str(&line[from..next]);
                out.push_str("\\uFFFD");
                from = next + 6;
                from
            }
            // The escaped character may be a backslash itself; it is ASCII in every valid escape.
            _ => line.ceil_char_boundary((next + 2).min(line.len())),
        };
    }
    if from == 0 {
        return None;
    }
    out.push_str(&line[from..]);
    Some(out)
}

/// The output for a line that cannot be parsed.
pub(super) fn refusal(id: &Value, why: &str) -> Value {
    json!({ "id": id, "out": null, "error": why })
}

fn answer_case(kind: Kind, case: &Value, allow: &AllowPrivate) -> Result<Value, String> {
    match kind {
        Kind::Feed | Kind::Sitemap | Kind::Page | Kind::Opml | Kind::Pdf => {
            of_document(kind, &document(case)?)
        }
        Kind::Robots => {
            let text = optional(case, "robots_txt")?.unwrap_or_default();
            Ok(of_robots(text.as_bytes(), required(case, "user_agent")?, required(case, "url")?))
        }
        Kind::Url => of_url(required(case, "input")?, optional(case, "base")?),
        Kind::Address => Ok(of_address(required(case, "url")?, &names(case)?, allow)),
    }
}

fn document(case: &Value) -> Result<Document, String> {
    // Missing or extra padding does not make the bytes ambiguous.
    let lenient = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let bytes = GeneralPurpose::new(&STANDARD, lenient)
        .decode(required(case, "input_b64")?)
        .map_err(|error| format!("`input_b64` is no base64: {error}"))?;
    let header = |name: &str| {
        let headers = case.get("http")?.as_object()?;
        let found = headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name))?;
        found.1.as_str().map(str::to_owned)
    };
    Ok(Document {
        bytes,
        url: optional(case, "url")?.map(str::to_owned),
        content_type: header("content-type"),
        content_location: header("content-location"),
        content_language: header("content-language"),
    })
}

fn names(case: &Value) -> Result<BTreeMap<String, Vec<IpAddr>>, String> {
    match case.get("resolve") {
        None | Some(Value::Null) => Ok(BTreeMap::new()),
        Some(table) => serde_json::from_value(table.clone())
            .map_err(|error| format!("`resolve` is not {{host: [address, …]}}: {error}")),
    }
}

fn required<'a>(case: &'a Value, key: &str) -> Result<&'a str, String> {
    optional(case, key)?.ok_or_else(|| format!("the line has no `{key}`"))
}

fn optional<'a>(case: &'a Value, key: &str) -> Result<Option<&'a str>, String> {
    match case.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("`{key}` is not a string")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn answer_of(kind: Kind, line: &Value) -> Value {
        answer(kind, &line.to_string(), &AllowPrivate::none())
    }

    fn b64(text: &str) -> String {
        base64::engine::general_purpose::STANDARD.encode(text)
    }

    #[test]
    fn pages_sitemaps_and_lists_are_answered_by_their_id() {
        let page = answer_of(
            Kind::Page,
            &json!({
                "id": {"n": 1}, "url": "https://example.com/", "http": {"Content-Type": "text/html"},
                "input_b64": b64("<title>T</title><link rel=alternate type=application/rss+xml href=/f><p><a href=x>go</a>"),
            }),
        );
        assert_eq!(
            page,
            json!({"id": {"n": 1}, "out": {
                "encoding": "utf-8", "title": "T", "text": "go",
                "links": [{"href": "https://example.com/x", "text": "go"}],
                "feeds": [{"href": "https://example.com/f", "type": "application/rss+xml", "title": null}],
            }})
        );
        let sitemap = json!({"id": "s", "input_b64": b64("<sitemapindex><sitemap><loc>https://e.example/1</loc></sitemap></sitemapindex>")});
        assert_eq!(
            answer_of(Kind::Sitemap, &sitemap),
            json!({"id": "s", "out": {"urls": [], "children": ["https://e.example/1"]}})
        );
        let list = json!({"id": 3, "input_b64": b64("<opml><outline text='a' xmlUrl='https://e.example/f'/></opml>")});
        assert_eq!(
            answer_of(Kind::Opml, &list),
            json!({"id": 3, "out": {"feeds": [{"url": "https://e.example/f", "title": "a"}]}})
        );
    }

    #[test]
    fn robots_and_addresses_are_answered() {
        let robots = json!({
            "id": 1, "robots_txt": "Sitemap: /s.xml\nUser-agent: *\nCrawl-delay: 2\nDisallow: /x",
            "user_agent": "a", "url": "https://example.com/x",
        });
        assert_eq!(
            answer_of(Kind::Robots, &robots),
            json!({"id": 1, "out": {"allowed": false, "sitemaps": ["https://example.com/s.xml"], "crawl_delay": 2.0}})
        );
        let url = json!({"id": 1, "input": "../b?utm_source=x", "base": "https://example.com/a/c"});
        assert_eq!(
            answer_of(Kind::Url, &url),
            json!({"id": 1, "out": {"href": "https://example.com/b?utm_source=x", "normalized": "https://example.com/b"}})
        );
        let address =
            json!({"id": 1, "url": "http://home.example/", "resolve": {"home.example": ["10.0.0.1"]}});
        assert_eq!(answer_of(Kind::Address, &address)["out"]["verdict"], "deny");
        let address =
            json!({"id": 1, "url": "http://home.example/", "resolve": {"home.example": ["93.184.216.34"]}});
        assert_eq!(answer_of(Kind::Address, &address)["out"]["verdict"], "allow");
    }

    #[test]
    fn halves_of_surrogate_pairs_are_read_as_browsers_read_them() {
        for (input, href) in [
            (r"https://a.example/\uD83D\uDE00", "https://a.example/%F0%9F%98%80"),
            (r"https://a.example/\uD83D\uD83D\uDE00", "https://a.example/%EF%BF%BD%F0%9F%98%80"),
            (r"https://a.example/\uDE00x\\uD800", "https://a.example/%EF%BF%BDx/uD800"),
            (r"https://a.example/é\uD800", "https://a.example/%C3%A9%EF%BF%BD"),
        ] {
            let line = format!(r#"{{"id":1,"input":"{input}","base":null}}"#);
            assert_eq!(answer(Kind::Url, &line, &AllowPrivate::none())["out"]["href"], href, "{line}");
        }
    }

    #[test]
    fn what_is_refused_has_a_null_and_an_error() {
        for (kind, line) in [
            (Kind::Page, json!({"id": 7})),
            (Kind::Page, json!({"id": 7, "input_b64": "*"})),
            (Kind::Sitemap, json!({"id": 7, "input_b64": b64("<html>")})),
            (Kind::Opml, json!({"id": 7, "input_b64": ""})),
            (Kind::Pdf, json!({"id": 7, "input_b64": b64("%PDF-1.4")})),
            (Kind::Url, json!({"id": 7, "input": "x", "base": null})),
            (Kind::Url, json!({"id": 7, "input": "https://example.com", "base": "nonsense"})),
            (Kind::Url, json!({"id": 7, "input": 3})),
            (Kind::Robots, json!({"id": 7, "robots_txt": ""})),
            (
                Kind::Address,
                json!({"id": 7, "url": "http://a.example", "resolve": {"a.example": ["nonsense"]}}),
            ),
        ] {
            let answered = answer_of(kind, &line);
            assert_eq!((&answered["id"], &answered["out"]), (&json!(7), &Value::Null), "{line}");
            assert!(!answered["error"].as_str().unwrap().is_empty(), "{line}");
        }
        for line in ["", "nonsense", "[]", "{\"id\":1"] {
            let answered = answer(Kind::Url, line, &AllowPrivate::none());
            assert!(
                answered["id"].is_null() && answered["out"].is_null() && answered["error"].is_string(),
                "{line}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_line_is_answered(line in ".{0,80}", input in ".{0,80}") {
            for kind in [Kind::Feed, Kind::Sitemap, Kind::Page, Kind::Opml, Kind::Pdf, Kind::Robots, Kind::Url, Kind::Address] {
                prop_assert!(answer(kind, &line, &AllowPrivate::none()).is_object());
                let case = json!({"id": 1, "input": input, "base": line, "url": input, "user_agent": line, "robots_txt": input, "input_b64": b64(&input)});
                prop_assert_eq!(&answer_of(kind, &case)["id"], 1);
            }
        }
    }
}
