//! A web site with articles: page, feed, sitemap and robots.txt, with validators, redirects and faults on request.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Response};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use url::Url;

use super::faults::Fault;
use super::server::{self, Serving, header};
use crate::hash;
use crate::time::Timestamp;

/// An article.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Article {
    /// The last part of its address.
    pub slug: String,
    pub title: String,
    /// Its id in the feed.
    pub guid: String,
    /// When it was published.
    pub published: Timestamp,
}

impl Article {
    /// An article whose guid and address follow from `slug`.
    pub fn new(slug: &str, title: &str, published: Timestamp) -> Self {
        Self { slug: slug.into(), title: title.into(), guid: format!("urn:{slug}"), published }
    }

    fn has_usual_guid(&self) -> bool {
        self.guid.strip_prefix("urn:") == Some(&self.slug)
    }
}

/// The content of a site, and its faults.
#[derive(Clone, Debug)]
pub struct Content {
    /// In the order of every listing.
    pub articles: Vec<Article>,
    /// The path of the page.
    pub page: String,
    /// The path of the feed; `None` for a site without one.
    pub feed: Option<String>,
    /// Whether the page links the feed.
    pub names_feed: bool,
    /// The path of the sitemap; `None` for a site without one.
    pub sitemap: Option<String>,
    /// Whether the sitemap has `lastmod`.
    pub lastmods: bool,
    /// A header that requests must have, with its value.
    pub wants: Option<(String, String)>,
    /// Whether the page links to the articles.
    pub links: bool,
    /// The design of the page, by number.
    pub design: u32,
    /// Whether the feed uses links as ids, unless an article has its own guid.
    pub permalinks: bool,
    /// Appended to every link, such as `?utm_source=x`.
    pub link_suffix: String,
    /// Replaced answers by path: status, media type and body.
    pub instead: BTreeMap<String, (u16, String, String)>,
    /// Redirects by path: status and target.
    pub redirects: BTreeMap<String, (u16, String)>,
    pub versions: Versions,
    /// The fault of every request.
    pub fault: Option<Fault>,
}

/// The validators of documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Versions {
    /// Strong tags, and 304 if they match.
    Tags,
    /// Strong tags that are never compared: always 200.
    TagsWithout304,
    /// None.
    Nothing,
    /// Always 304 for conditional requests, whatever changed.
    Always304,
}

impl Content {
    /// A site with `count` articles, a feed, a sitemap and links to all of them.
    pub fn with_articles(count: usize, newest: Timestamp) -> Self {
        let day = std::time::Duration::from_secs(24 * 60 * 60);
        let articles = (1..=count).rev().map(|number| {
            let age = u32::try_from(count - number).unwrap_or(u32::MAX);
            Article::new(&format!("article-{number}"), &format!("Article {number}"), newest.minus(day * age))
        });
        Self {
            articles: articles.collect(),
            page: "/".into(),
            feed: Some("/feed.xml".into()),
            names_feed: true,
            sitemap: Some("/sitemap.xml".into()),
            lastmods: false,
            wants: None,
            links: true,
            design: 0,
            permalinks: false,
            link_suffix: String::new(),
            instead: BTreeMap::new(),
            redirects: BTreeMap::new(),
            versions: Versions::Tags,
            fault: None,
        }
    }

    /// Publishes an article on top of the others.
    pub fn publish(&mut self, slug: &str, title: &str, published: Timestamp) {
        self.articles.insert(0, Article::new(slug, title, published));
    }

    fn answer(&self, path: &str, base: &str) -> Option<(u16, String, String)> {
        if let Some(answer) = self.instead.get(path) {
            return Some(answer.clone());
        }
        let found = |media_type: &str, body: String| Some((200, media_type.to_owned(), body));
        match path {
            _ if path == self.page => found("text/html; charset=utf-8", self.page(base)),
            "/robots.txt" => {
                let line =
                    self.sitemap.as_ref().map(|at| format!("Sitemap: {base}{at}\n")).unwrap_or_default();
                found("text/plain", format!("User-agent: *\nDisallow: /private\n{line}"))
            }
            _ if self.feed.as_deref() == Some(path) => found("application/rss+xml", self.feed(base)),
            _ if self.sitemap.as_deref() == Some(path) => found("application/xml", self.sitemap(base)),
            _ => {
                let article = self.articles.iter().find(|article| path == format!("/{}", article.slug))?;
                found("text/html", format!("<title>{0}</title><h1>{0}</h1>", article.title))
            }
        }
    }

    fn link(&self, base: &str, article: &Article) -> String {
        format!("{base}/{}{}", article.slug, self.link_suffix).replace('&', "&amp;")
    }

    fn page(&self, base: &str) -> String {
        let mut page = String::from("<!DOCTYPE html><html><head><title>A site</title>");
        if let (Some(at), true) = (&self.feed, self.names_feed) {
            let _ = write!(page, "<link rel=\"alternate\" type=\"application/rss+xml\" href=\"{at}\">");
        }
        let _ =
            write!(page, "</head><body class=\"design-{0}\"><a href=\"/about-us\">About</a>", self.design);
        for article in self.articles.iter().filter(|_| self.links) {
            let (link, title) = (self.link(base, article), &article.title);
            let _ = match self.design {
                0 => write!(page, "<p><a href=\"{link}\">{title}</a></p>"),
                design => write!(
                    page,
                    "<section data-d={design}><h2><a class=x href=\"{link}\"> {title} </a></h2></section>"
                ),
            };
        }
        page.push_str("</body></html>");
        page
    }

    fn feed(&self, base: &str) -> String {
        let mut feed = format!(
            "<?xml version=\"1.0\"?><rss version=\"2.0\"><channel><title>A site</title><link>{base}/</link>"
        );
        for article in &self.articles {
            let (link, date) = (self.link(base, article), article.published);
            let guid = if self.permalinks && article.has_usual_guid() { &link } else { &article.guid };
            let _ = write!(
                feed,
                "<item><guid isPermaLink=\"false\">{guid}</guid><title>{}</title><link>{link}</link>\
                 <dc:date xmlns:dc=\"http://purl.org/dc/elements/1.1/\">{date}</dc:date></item>",
                article.title
            );
        }
        feed.push_str("</channel></rss>");
        feed
    }

    fn sitemap(&self, base: &str) -> String {
        let mut map = String::from("<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">");
        for article in &self.articles {
            let lastmod = if self.lastmods {
                format!("<lastmod>{}</lastmod>", article.published)
            } else {
                String::new()
            };
            let _ = write!(map, "<url><loc>{}</loc>{lastmod}</url>", self.link(base, article));
        }
        map.push_str("</urlset>");
        map
    }
}

/// A received request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// GET or HEAD.
    pub method: String,
    /// The path and query.
    pub path: String,
    /// The version known to the client.
    pub if_none_match: Option<String>,
    /// The status of the answer; 0 for none.
    pub status: u16,
}

/// The site; stops when dropped.
#[derive(Debug)]
pub struct Site {
    pub url: Url,
    server: Arc<Mutex<Server>>,
    _serving: Serving,
}

#[derive(Debug)]
struct Server {
    base: String,
    content: Content,
    log: Vec<Asked>,
}

impl Site {
    /// Starts on a free port of this machine.
    pub async fn start(content: Content) -> std::io::Result<Self> {
        Self::start_on(TcpListener::bind(("127.0.0.1", 0)).await?, content)
    }

    /// Starts on `listener`.
    pub fn start_on(listener: TcpListener, content: Content) -> std::io::Result<Self> {
        let base = format!("http://{}", listener.local_addr()?);
        let url = server::url(&listener, "/")?;
        let server = Arc::new(Mutex::new(Server { base, content, log: Vec::new() }));
        let router = Router::new().fallback(answer).with_state(Arc::clone(&server));
        let _serving = server::start(listener, router);
        Ok(Self { url, server, _serving })
    }

    /// Changes the content.
    pub fn edit(&self, change: impl FnOnce(&mut Content)) {
        change(&mut self.server.lock().content);
    }

    /// The requests since the last call.
    pub fn take_log(&self) -> Vec<Asked> {
        std::mem::take(&mut self.server.lock().log)
    }
}

async fn answer(State(server): State<Arc<Mutex<Server>>>, request: Request) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let if_none_match = header(request.headers(), "if-none-match");
    let (fault, response) = {
        let mut server = server.lock();
        let fault = server.content.fault.clone();
        let response = respond(&server, &path, if_none_match.as_deref(), request.headers());
        let status = match &fault {
            Some(Fault::Status(status, _)) => *status,
            Some(_) => 0,
            None => response.status().as_u16(),
        };
        let path = request.uri().path_and_query().map_or(path, ToString::to_string);
        server.log.push(Asked { method: request.method().to_string(), path, if_none_match, status });
        (fault, response)
    };
    match fault {
        Some(fault) => fault.play().await,
        None => response,
    }
}

fn respond(server: &Server, path: &str, known: Option<&str>, headers: &HeaderMap) -> Response<Body> {
    let content = &server.content;
    if let Some((name, value)) = &content.wants
        && headers.get(name).is_none_or(|found| found != value)
    {
        return server::answer(401, &[], Body::empty());
    }
    if let Some((status, to)) = content.redirects.get(path) {
        return server::answer(*status, &[("location", to.clone())], Body::empty());
    }
    let Some((status, media_type, body)) = content.answer(path, &server.base) else {
        return server::answer(404, &[("content-type", "text/html".to_owned())], "<h1>Not found</h1>");
    };
    let tag = format!("\"{}\"", hash::short(&hash::sha256_hex(&body)));
    let conditional = known.is_some() || headers.contains_key("if-modified-since");
    let unchanged = match content.versions {
        Versions::Tags => known == Some(tag.as_str()),
        Versions::Always304 => conditional,
        Versions::TagsWithout304 | Versions::Nothing => false,
    };
    let mut headers = vec![("content-type", media_type)];
    if content.versions != Versions::Nothing && status == 200 {
        headers.push(("etag", tag));
    }
    let (status, body) = if unchanged { (304, Body::empty()) } else { (status, Body::from(body)) };
    server::answer(status, &headers, body)
}
