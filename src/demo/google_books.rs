//! A Google Books API with generated books: it pages like the real one, and has all of its failures.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::Response;
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures_util::stream;
use parking_lot::Mutex;
use serde_json::{Value as Json, json};
use tokio::net::TcpListener;
use url::Url;

use super::server::{self, Serving};

/// The most volumes in a page, as in the real API.
const PAGE_LIMIT: usize = 40;

/// The answer to one request.
#[derive(Clone, Debug)]
pub enum Reply {
    /// The requested volumes.
    Volumes,
    /// The same with another `totalItems`, or without one.
    Total(Option<i64>),
    /// Any other answer.
    Raw {
        status: u16,
        /// Headers besides the length.
        headers: Vec<(&'static str, String)>,
        body: String,
    },
    /// The connection ends in the middle of the answer.
    Cut,
    /// No answer.
    Silence,
}

/// A received request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// `startIndex`
    pub start_index: i64,
    /// `maxResults`
    pub max_results: i64,
    /// All parameters, including `q` and `key`.
    pub all: BTreeMap<String, String>,
}

/// The server; stops when dropped.
#[derive(Debug)]
pub struct GoogleBooks {
    /// The value for `api_url`.
    pub url: Url,
    server: Arc<Mutex<Server>>,
    _serving: Serving,
}

#[derive(Debug, Default)]
struct Server {
    volumes: Vec<Json>,
    replies: VecDeque<Reply>,
    asked: Vec<Asked>,
}

impl GoogleBooks {
    /// Starts on a free port of this machine, with `volumes` to be found by any search.
    pub async fn start(volumes: Vec<Json>) -> std::io::Result<Self> {
        Self::start_on(TcpListener::bind(("127.0.0.1", 0)).await?, volumes)
    }

    /// Starts on `listener`, with `volumes` to be found by any search.
    pub fn start_on(listener: TcpListener, volumes: Vec<Json>) -> std::io::Result<Self> {
        let url = server::url(&listener, "/books/v1/volumes")?;
        let server = Arc::new(Mutex::new(Server { volumes, ..Server::default() }));
        let router = Router::new().route("/books/v1/volumes", get(answer)).with_state(Arc::clone(&server));
        let _serving = server::start(listener, router);
        Ok(Self { url, server, _serving })
    }

    /// Sets the reply to the next request; further requests get volumes.
    pub fn reply(&self, reply: Reply) {
        self.server.lock().replies.push_back(reply);
    }

    /// Replaces the volumes.
    pub fn set_volumes(&self, volumes: Vec<Json>) {
        self.server.lock().volumes = volumes;
    }

    /// Every request so far, in order.
    pub fn asked(&self) -> Vec<Asked> {
        self.server.lock().asked.clone()
    }
}

async fn answer(
    State(server): State<Arc<Mutex<Server>>>,
    Query(all): Query<BTreeMap<String, String>>,
) -> Response<Body> {
    let number =
        |name: &str, default: i64| all.get(name).and_then(|text| text.parse().ok()).unwrap_or(default);
    let asked = Asked {
        start_index: number("startIndex", 0),
        max_results: number("maxResults", 10),
        all: all.clone(),
    };
    let (reply, page, total) = {
        let mut server = server.lock();
        server.asked.push(asked.clone());
        let start = usize::try_from(asked.start_index).unwrap_or(usize::MAX);
        let count = usize::try_from(asked.max_results).unwrap_or(0).min(PAGE_LIMIT);
        let mut found: Vec<&Json> = server.volumes.iter().collect();
        if all.get("orderBy").is_some_and(|order| order == "newest") {
            found.sort_by_key(|volume| std::cmp::Reverse(volume["volumeInfo"]["publishedDate"].as_str()));
        }
        let page: Vec<Json> = found.into_iter().skip(start).take(count).cloned().collect();
        let total = i64::try_from(server.volumes.len()).unwrap_or(i64::MAX);
        (server.replies.pop_front().unwrap_or(Reply::Volumes), page, total)
    };
    match reply {
        Reply::Volumes => send_page(page, Some(total)),
        Reply::Total(total) => send_page(page, total),
        Reply::Raw { status, headers, body } => server::answer(status, &headers, body),
        Reply::Silence => std::future::pending().await,
        Reply::Cut => {
            let pieces =
                [Ok("{\"totalItems\": 3, \"items\": ["), Err(std::io::Error::other("cut as requested"))];
            Response::new(Body::from_stream(stream::iter(pieces)))
        }
    }
}

/// Like the real one, it omits `items` if there are none.
fn send_page(page: Vec<Json>, total: Option<i64>) -> Response<Body> {
    let mut body = json!({ "kind": "books#volumes" });
    if let Some(total) = total {
        body["totalItems"] = total.into();
    }
    if !page.is_empty() {
        body["items"] = page.into();
    }
    let kind = ("content-type", "application/json; charset=UTF-8".to_owned());
    server::answer(200, &[kind], body.to_string())
}

/// The ISBN-13 of the generated book `number`.
pub fn isbn(number: u32) -> String {
    let body = format!("9784{:08}", number % 100_000_000);
    let sum: u32 = body
        .bytes()
        .zip([1, 3].into_iter().cycle())
        .map(|(byte, weight)| u32::from(byte - b'0') * weight)
        .sum();
    format!("{body}{}", (10 - sum % 10) % 10)
}

const SUBJECTS: [&str; 8] =
    ["経営戦略", "機械学習", "組織づくり", "数理統計", "文章術", "都市計画", "投資判断", "創造性"];

/// The cover of the generated book `number`, as a data address.
pub(super) fn draw_cover(number: u32) -> String {
    let subject = SUBJECTS[number as usize % SUBJECTS.len()];
    let (hue, bar) = (number * 47 % 360, 20 + number * 13 % 60);
    let svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 96 136\"><rect width=\"96\" height=\"136\" \
         fill=\"hsl({hue},45%,32%)\"/><rect y=\"{bar}\" width=\"96\" height=\"34\" fill=\"hsl({hue},40%,90%)\"/>\
         <text x=\"48\" y=\"{}\" font-family=\"sans-serif\" font-size=\"17\" font-weight=\"bold\" text-anchor=\"middle\" \
         fill=\"hsl({hue},45%,20%)\">{subject}</text></svg>",
        bar + 23
    );
    format!("data:image/svg+xml;base64,{}", BASE64.encode(svg))
}

/// The generated book `number` as a volume.
pub fn volume(number: u32) -> Json {
    const FORMS: [&str; 6] = ["入門", "の教科書", "実践ガイド", "を疑う", "百の事例", "の歴史"];
    const AUTHORS: [&str; 7] =
        ["青木 遥", "石田 怜", "上野 千早", "Elena Marsh", "小川 湊", "木村 朔", "Tomas Lind"];
    const PUBLISHERS: [&str; 4] = ["架空書房", "みなと出版", "北窓社", "Lantern Press"];
    let pick = |list: &[&'static str], step: u32| list[(number / step) as usize % list.len()];
    let id = format!("demo{number:08}");
    json!({
        "kind": "books#volume",
        "id": id,
        "volumeInfo": {
            "title": format!("{}{} 第{}版", pick(&SUBJECTS, 1), pick(&FORMS, 8), number % 5 + 1),
            "authors": [pick(&AUTHORS, 1), pick(&AUTHORS, 3)],
            "publisher": pick(&PUBLISHERS, 2),
            "publishedDate": format!("{}-{:02}-{:02}", 2020 + number % 6, number % 12 + 1, number % 28 + 1),
            "description": format!("<p><b>{}</b>を、身近な例から一歩ずつ考える。</p>", pick(&SUBJECTS, 1)),
            "industryIdentifiers": [{ "type": "ISBN_13", "identifier": isbn(number) }],
            "imageLinks": { "thumbnail": format!("http://books.example/content?id={id}&zoom=1&edge=curl") },
            "infoLink": format!("http://books.example/books?id={id}"),
            "previewLink": format!("http://books.example/books?id={id}&printsec=frontcover"),
            "language": "ja",
        },
    })
}

/// Generated books, starting with `first`.
pub fn volumes(first: u32, count: u32) -> Vec<Json> {
    (first..first + count).map(volume).collect()
}

/// A volume without any ISBN.
pub fn volume_without_isbn(number: u32) -> Json {
    let mut volume = volume(number);
    volume["volumeInfo"]["industryIdentifiers"] =
        json!([{ "type": "OTHER", "identifier": format!("DEMO:{number}") }]);
    volume
}
