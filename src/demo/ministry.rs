//! A ministry's web site: an RDF feed of titles in Shift_JIS, pages of several shapes, and PDFs.
//!
//! Addresses and class names are those of a real ministry, the texts are ours: releases are below `/menu_news/s-news/`,
//! files below `/main_content/`, and the main block has a class (`contentsBody`) beside the menu of the section.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, Response};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use url::Url;

use super::faults::{Fault, Script};
use super::server::{self, Serving, answer, header};
use crate::hash;
use crate::time::Timestamp;

/// The folder of pages.
const PAGES: &str = "/menu_news/s-news/";
/// The folder of files.
const FILES: &str = "/main_content/";

/// A press release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// The last part of its address, without `.html`.
    pub slug: String,
    pub title: String,
    /// Its date in the feed, if it has one.
    pub date: Option<Timestamp>,
    /// The content of its page.
    pub shape: Shape,
}

/// The content of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A few words and no file: nothing to summarise.
    Bare,
    /// A finished page with files, by name and size in bytes.
    WithFiles(Vec<(String, usize)>),
    /// Documents are announced for later.
    Later,
    /// One PDF among links to other pages and other sites.
    AmongLinks,
    /// No page: the feed links the file itself, by name and size in bytes.
    File(String, usize),
    /// Any HTML.
    Html(String),
}

/// The site; stops when dropped.
#[derive(Debug)]
pub struct Ministry {
    pub url: Url,
    server: Server,
    _serving: Serving,
}

type Server = Arc<Mutex<Inner>>;

#[derive(Debug, Default)]
struct Inner {
    releases: Vec<Release>,
    /// Replaced answers by path: media type and body.
    instead: BTreeMap<String, (String, Vec<u8>)>,
    faults: BTreeMap<String, Script>,
    log: Vec<String>,
}

impl Ministry {
    /// Starts on a free port of this machine, without any release.
    pub async fn start() -> std::io::Result<Self> {
        Self::start_on(TcpListener::bind(("127.0.0.1", 0)).await?)
    }

    /// Starts on `listener`, without any release.
    pub fn start_on(listener: TcpListener) -> std::io::Result<Self> {
        let url = server::url(&listener, "/")?;
        let server = Server::default();
        let router = Router::new().fallback(serve).with_state(server.clone());
        let _serving = server::start(listener, router);
        Ok(Self { url, server, _serving })
    }

    /// Publishes a release, or replaces the one with its slug.
    pub fn publish(&self, slug: &str, title: &str, date: Option<Timestamp>, shape: Shape) {
        let mut inner = self.server.lock();
        inner.releases.retain(|release| release.slug != slug);
        inner.releases.insert(0, Release { slug: slug.into(), title: title.into(), date, shape });
    }

    /// Changes the page of a release.
    pub fn change(&self, slug: &str, shape: Shape) {
        let mut inner = self.server.lock();
        if let Some(release) = inner.releases.iter_mut().find(|release| release.slug == slug) {
            release.shape = shape;
        }
    }

    /// Removes a release from the feed, and its page.
    pub fn withdraw(&self, slug: &str) {
        self.server.lock().releases.retain(|release| release.slug != slug);
    }

    /// Replaces the answer at `path`.
    pub fn instead(&self, path: &str, media_type: &str, body: impl Into<Vec<u8>>) {
        self.server.lock().instead.insert(path.to_owned(), (media_type.to_owned(), body.into()));
    }

    /// The faults at `path`.
    pub fn script(&self, path: &str) -> Script {
        self.server.lock().faults.entry(path.to_owned()).or_default().clone()
    }

    /// The address of the feed.
    pub fn feed(&self) -> String {
        format!("{}news.rdf", self.url)
    }

    /// The address of a release.
    pub fn page(&self, slug: &str) -> String {
        let inner = self.server.lock();
        let release = inner.releases.iter().find(|release| release.slug == slug);
        let path = release.map_or_else(|| format!("{PAGES}{slug}.html"), path_of);
        format!("{}{}", self.url, &path[1..])
    }

    /// Every request so far: method and path.
    pub fn log(&self) -> Vec<String> {
        self.server.lock().log.clone()
    }
}

async fn serve(State(server): State<Server>, request: Request) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let host = header(request.headers(), "host");
    let base = format!("http://{}", host.as_deref().unwrap_or("127.0.0.1"));
    let (fault, found) = {
        let mut inner = server.lock();
        inner.log.push(format!("{} {path}", request.method()));
        let fault = inner.faults.get(&path).and_then(Script::draw);
        (fault, find(&inner, &path, &base))
    };
    if let Some(fault) = fault {
        let mut response = Fault::play(fault).await;
        response.headers_mut().insert("content-type", HeaderValue::from_static("text/html"));
        return response;
    }
    let Some((media_type, body)) = found else { return answer(404, &[], "not found") };
    let tag = ("etag", format!("\"{}\"", hash::short(&hash::sha256_hex(&body))));
    if header(request.headers(), "if-none-match").as_ref() == Some(&tag.1) {
        return answer(304, &[tag], Body::empty());
    }
    let headers = [("content-type", media_type), tag, ("content-length", body.len().to_string())];
    let body = if request.method() == Method::HEAD { Body::empty() } else { Body::from(body) };
    answer(200, &headers, body)
}

fn find(inner: &Inner, path: &str, base: &str) -> Option<(String, Vec<u8>)> {
    if let Some(instead) = inner.instead.get(path) {
        return Some(instead.clone());
    }
    if path == "/news.rdf" {
        return Some(("application/rdf+xml".to_owned(), in_shift_jis(&render_feed(&inner.releases, base))));
    }
    if let Some(slug) = path.strip_prefix(PAGES).and_then(|rest| rest.strip_suffix(".html")) {
        let release = inner.releases.iter().find(|release| release.slug == slug)?;
        return Some(("text/html".to_owned(), in_shift_jis(&render_page(release))));
    }
    if let Some(name) = path.strip_prefix(FILES) {
        let (_, size) = inner
            .releases
            .iter()
            .flat_map(|release| files_of(&release.shape))
            .find(|(file, _)| file == name)?;
        return Some(("application/pdf".to_owned(), render_pdf(name, size)));
    }
    None
}

/// Encodes text like the ministry's servers.
fn in_shift_jis(text: &str) -> Vec<u8> {
    encoding_rs::SHIFT_JIS.encode(text).0.into_owned()
}

fn render_feed(releases: &[Release], base: &str) -> String {
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"Shift_JIS\"?>\n\
         <rdf:RDF xmlns=\"http://purl.org/rss/1.0/\" xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" \
         xmlns:dc=\"http://purl.org/dc/elements/1.1/\" xml:lang=\"ja\">\n\
         <channel rdf:about=\"{base}/news.rdf\"><title>架空省 新着情報①</title><link>{base}/</link>\
         <description>報道資料</description></channel>\n"
    );
    for release in releases {
        let link = format!("{base}{}", path_of(release));
        let date = release.date.map_or(String::new(), |date| format!("<dc:date>{date}</dc:date>"));
        let title = escape(&release.title);
        let _ = writeln!(
            out,
            "<item rdf:about=\"{link}\"><title>{title}</title><link>{link}</link>{date}</item>"
        );
    }
    out.push_str("</rdf:RDF>\n");
    out
}

fn path_of(release: &Release) -> String {
    match &release.shape {
        Shape::File(name, _) => format!("{FILES}{name}"),
        _ => format!("{PAGES}{}.html", release.slug),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

fn files_of(shape: &Shape) -> Vec<(String, usize)> {
    match shape {
        Shape::WithFiles(files) => files.clone(),
        Shape::File(name, size) => vec![(name.clone(), *size)],
        Shape::AmongLinks => vec![("keikaku.pdf".to_owned(), 3000)],
        Shape::Bare | Shape::Later | Shape::Html(_) => Vec::new(),
    }
}

fn render_page(release: &Release) -> String {
    let title = escape(&release.title);
    let main = match &release.shape {
        Shape::Bare => "<p>大臣の閣議後記者会見を下記のとおり開催します。</p>".to_owned(),
        Shape::Later => "<p>研究会の第３回会合を開催しました。資料及び議事録は後日掲載します。</p>".to_owned(),
        Shape::AmongLinks => "<p>地域の通信網に関する計画㈱を取りまとめました。</p>\
             <ul><li><a href=\"/index.html\">トップ</a></li><li><a href=\"../../main_content/keikaku.pdf\">計画本文（PDF）</a></li>\
             <li><a href=\"https://other.example/\">関係機関</a></li><li><a href=\"#top\">先頭へ</a></li></ul>"
            .to_owned(),
        Shape::WithFiles(files) => {
            let mut out = "<p>家計に関する調査の結果を公表します。対象は全国の世帯です。</p><ul>".to_owned();
            for (name, _) in files {
                let _ = write!(out, "<li><a href=\"{FILES}{name}\">別紙（{name}）</a></li>");
            }
            out + "</ul>"
        }
        Shape::Html(html) => html.clone(),
        Shape::File(..) => String::new(),
    };
    format!(
        "<!DOCTYPE html>\n<html lang=\"ja\"><head><meta charset=\"Shift_JIS\"><title>架空省｜{title}</title></head>\
         <body><div id=\"headerWrapper\"><a href=\"/\">架空省</a></div>\
         <div id=\"contentsWrapper\"><div class=\"contentsBody\"><h1>{title}</h1>{main}</div>\
         <div class=\"contentsMenu\"><ul><li><a href=\"/menu_news/\">広報・報道</a></li>\
         <li><a href=\"{FILES}annai.pdf\">このサイトの御案内（PDF）</a></li></ul></div></div>\
         <div id=\"footerWrapper\">〒100-0000 架空省</div></body></html>"
    )
}

/// A file that begins and ends like a PDF, of the given size.
fn render_pdf(name: &str, size: usize) -> Vec<u8> {
    let mut bytes = format!("%PDF-1.4\n% {name}\n").into_bytes();
    while bytes.len() + 6 < size {
        bytes.push(b' ');
    }
    bytes.extend_from_slice(b"\n%%EOF");
    bytes
}
