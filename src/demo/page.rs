//! `/demo`: the posts and mails that the made-up world received, newest first; no script, nothing loaded from elsewhere.

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::extract::State;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use minijinja::{Environment, Value, context};
use sha2::{Digest, Sha256};

use super::mail;
use super::mastodon::Toot;
use super::smtp::Kept;
use super::world::World;
use crate::text::Language;

/// Where the page is.
pub const PATH: &str = "/demo";
/// The newest of each that are shown; a demo may be left running for days.
const SHOWN: usize = 200;

const STYLE: &str = include_str!("page.css");

static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut templates = Environment::new();
    templates.add_template("page.html", include_str!("page.html")).expect("our own template is well formed");
    templates
});

/// Exactly our style counts; nothing runs, nothing is loaded or sent.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{}'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
        BASE64.encode(Sha256::digest(STYLE))
    );
    HeaderValue::from_str(&policy).expect("base64 and our own words")
});

/// The page, for the router of `serve`.
pub fn router(world: Arc<World>, language: Language) -> Router {
    Router::new().route(PATH, get(show)).with_state((world, language))
}

async fn show(State((world, language)): State<(Arc<World>, Language)>) -> Response {
    match render(&world.posts(), &world.mails(), language) {
        Ok(html) => {
            let headers = [
                (CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
                (CONTENT_SECURITY_POLICY, POLICY.clone()),
            ];
            (headers, html).into_response()
        }
        Err(error) => {
            tracing::error!("The page cannot be rendered: {error}");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// A piece of text that is a link or is not.
#[derive(Debug, PartialEq, Eq)]
struct Part<'a> {
    text: &'a str,
    link: bool,
}

fn render(posts: &[Toot], mails: &[Kept], language: Language) -> Result<String, minijinja::Error> {
    let posts: Vec<_> = posts
        .iter()
        .rev()
        .take(SHOWN)
        .map(|post| {
            let text = post.request["status"].as_str().unwrap_or_default();
            let lang = post.request["language"].as_str().unwrap_or_default();
            context! { id => post.id, date => post.created_at.to_string(), lang => lang, text => cut(text) }
        })
        .collect();
    let mails: Vec<_> = mails
        .iter()
        .rev()
        .take(SHOWN)
        .map(mail::read)
        .map(|mail| {
            let text = cut(&mail.text);
            context! { subject => mail.subject, to => mail.to, date => mail.date, text => text }
        })
        .collect();
    let words = words(language);
    TEMPLATES.get_template("page.html")?.render(context! {
        lang => language.code(),
        heading => words.heading,
        how => words.how,
        posts_heading => words.posts,
        mails_heading => words.mails,
        none => words.none,
        posts => posts,
        mails => mails,
        style => STYLE,
    })
}

fn cut(text: &str) -> Value {
    let part = |part: Part<'_>| context! { text => part.text, link => part.link };
    parts(text).into_iter().map(part).collect::<Vec<Value>>().into()
}

/// Cuts a text at its web addresses; anything else stays text, whatever it says.
fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(start) = ["http://", "https://"].into_iter().filter_map(|word| rest.find(word)).min() {
        let (before, from) = rest.split_at(start);
        let end = from.find(|c: char| !c.is_ascii_graphic() || "<>\"'()".contains(c)).unwrap_or(from.len());
        let (link, after) = from.split_at(end);
        parts.push(Part { text: before, link: false });
        parts.push(Part { text: link, link: true });
        rest = after;
    }
    parts.push(Part { text: rest, link: false });
    parts.retain(|part| !part.text.is_empty());
    parts
}

struct Words {
    heading: &'static str,
    how: &'static str,
    posts: &'static str,
    mails: &'static str,
    none: &'static str,
}

fn words(language: Language) -> Words {
    match language {
        Language::Ja => Words {
            heading: "デモの世界が受け取ったもの",
            how: "Mastodon とメールの役をこのデモが務め、受け取ったものを新しい順に示します。本のメールにあるリンクは調査プロンプトのページです。再読み込みすると新しいものが加わります。",
            posts: "投稿",
            mails: "メール",
            none: "まだありません。",
        },
        Language::En => Words {
            heading: "What the made-up world received",
            how: "The demo plays Mastodon and the mail server, and shows here what they accepted, newest first. The links in the mails about books lead to the prompt pages. Reload for more.",
            posts: "Posts",
            mails: "Mails",
            none: "Nothing yet.",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;

    #[test]
    fn what_strangers_wrote_is_text_and_only_web_addresses_are_links() {
        let status = "<script>alert(1)</script> \" javascript:x http://a.example/?b=1&c=\"onclick=x end";
        let toot = Toot {
            id: 1,
            created_at: Timestamp::from_millis(0),
            request: serde_json::json!({ "status": status, "language": "\"><b>" }),
            key: None,
        };
        let mail = Kept {
            from: "a@example.com".into(),
            to: vec!["<i>b@example.com".into()],
            data: "Subject: <img src=x>\r\n\r\n</p><script>2</script>".into(),
        };
        let html = render(&[toot], &[mail], Language::En).unwrap();
        let body = html.split_once("<body>").unwrap().1;
        for markup in ["<script", "<img", "<i>", "<b>", "</p><", "href=\"javascript", "\"onclick"] {
            assert!(!body.contains(markup), "{markup} in {body}");
        }
        assert!(body.contains("&lt;script&gt;alert(1)"), "{body}");
        assert_eq!(body.matches("<a href=").count(), 1, "{body}");
    }

    #[test]
    fn texts_are_cut_at_addresses_and_nothing_is_lost() {
        let text = "見る：http://127.0.0.1:1/p/abc。次は https://b.example/";
        let cut = parts(text);
        let links: Vec<_> = cut.iter().filter(|part| part.link).map(|part| part.text).collect();
        assert_eq!(links, ["http://127.0.0.1:1/p/abc", "https://b.example/"]);
        assert_eq!(cut.iter().map(|part| part.text).collect::<String>(), text);
        assert_eq!(parts(""), []);
    }
}
