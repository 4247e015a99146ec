//! `/p/{token}`: a prompt to copy, on a phone, without HTTPS and without JavaScript.

use std::sync::LazyLock;

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use jiff::tz::TimeZone;

use super::Pages;
use super::client::Client;
use super::route::{Access, Route};
use super::small::{self, MessagePage, PromptPage};
use crate::books::token::{self, Lookup};
use crate::text::Language;
use crate::time::Timestamp;

/// Allows only our script and style; nothing may be loaded or sent.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| small::policy(small::SCRIPT, "'none'"));

pub(super) fn routes() -> Vec<Route> {
    vec![Route::get("/p/{token}", Access::Public, show)]
}

/// 200 with the prompt, 410 when it has expired, 404 when there is none, 429 for guesses.
async fn show(
    State(pages): State<Pages>,
    Extension(client): Extension<Client>,
    path: Result<Path<String>, PathRejection>,
) -> Response {
    let (now, language) = (pages.clock.now(), pages.language);
    // Invalid UTF-8 is not a token.
    let text = path.map(|Path(text)| text).unwrap_or_default();
    match pages.db.read(move |tx| token::look_up(tx, &text, now)).await {
        Ok(Lookup::Works(found)) => {
            let title = found.title.unwrap_or_default();
            let (words, until) = (words(language), day(&pages, found.expires_at));
            let page = PromptPage {
                lang: language.word(),
                heading: words.heading,
                title: &title,
                prompt: &found.prompt_text,
                copy: words.copy,
                copied: words.copied,
                selected: words.selected,
                how: words.how,
                until: language.choose(format!("Valid until {until}"), format!("{until}まで有効")),
            };
            small::respond(StatusCode::OK, &page, &POLICY)
        }
        Ok(Lookup::Gone(at)) => {
            let at = day(&pages, at);
            let until = language.choose(format!("It was valid until {at}."), format!("{at}まで有効でした。"));
            message_with(StatusCode::GONE, language, until)
        }
        // Only misses are throttled: behind a proxy all readers have one address, and valid links must work.
        Ok(Lookup::Unknown) => match pages.misses.wait(client.ip, now) {
            Some(wait) => {
                let after = [(RETRY_AFTER, wait.as_secs().max(1).to_string())];
                (after, message(StatusCode::TOO_MANY_REQUESTS, language)).into_response()
            }
            None => {
                pages.misses.add(client.ip, now);
                message(StatusCode::NOT_FOUND, language)
            }
        },
        Err(error) => {
            tracing::error!("Could not read a prompt: {error}");
            message(StatusCode::SERVICE_UNAVAILABLE, language)
        }
    }
}

/// A day, in the zone and the language of the config.
fn day(pages: &Pages, at: Timestamp) -> String {
    let zone = pages.finder().map(|finder| finder.config.app.timezone.time_zone().clone());
    let day = at.date_in(&zone.unwrap_or(TimeZone::UTC));
    pages.language.choose(day.to_string(), format!("{}年{}月{}日", day.year(), day.month(), day.day()))
}

struct Words {
    heading: &'static str,
    copy: &'static str,
    copied: &'static str,
    selected: &'static str,
    how: &'static str,
}

fn words(language: Language) -> Words {
    match language {
        Language::Ja => Words {
            heading: "調査プロンプト",
            copy: "コピー",
            copied: "コピーしました",
            selected: "選択しました。長押しでコピーしてください",
            how: "下の文章をコピーして、お使いの AI の Deep Research に貼り付けてください。",
        },
        Language::En => Words {
            heading: "Research prompt",
            copy: "Copy",
            copied: "Copied",
            selected: "Selected: press and hold to copy",
            how: "Copy the text below and paste it into the research mode of your assistant.",
        },
    }
}

fn message(status: StatusCode, language: Language) -> Response {
    message_with(status, language, String::new())
}

/// The same, with a sentence before it.
fn message_with(status: StatusCode, language: Language, first: String) -> Response {
    let (heading, text) = match (language, status) {
        (Language::Ja, StatusCode::GONE) => (
            "このリンクは期限切れです",
            "有効期限が過ぎたか、取り消されました。新しいメールのリンクをお使いください。",
        ),
        (Language::En, StatusCode::GONE) => {
            ("This link is over", "It has expired or was revoked. Use the link of a newer mail.")
        }
        (Language::Ja, StatusCode::NOT_FOUND) => {
            ("ページが見つかりません", "リンクが途中で切れていないか、メールをもう一度ご確認ください。")
        }
        (Language::En, StatusCode::NOT_FOUND) => {
            ("There is no such page", "Check in the mail that the link was not cut off.")
        }
        (Language::Ja, StatusCode::TOO_MANY_REQUESTS) => {
            ("しばらくお待ちください", "少し時間をおいてから、もう一度お試しください。")
        }
        (Language::En, StatusCode::TOO_MANY_REQUESTS) => ("Please wait", "Try again in a moment."),
        (Language::Ja, _) => ("ただいま表示できません", "少し時間をおいてから、もう一度お試しください。"),
        (Language::En, _) => ("This page cannot be shown now", "Try again in a moment."),
    };
    small::respond(status, &MessagePage { lang: language.word(), heading, first, text }, &POLICY)
}
