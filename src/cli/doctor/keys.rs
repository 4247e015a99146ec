//! Where each key, token and password comes from, and what it has to be allowed to do.

use crate::config::Section;
use crate::fetch::Check;

/// Where to get the secret that stands at `key` of a table of that kind.
pub(in crate::cli) fn where_to_get(kind: &str, key: &str) -> Option<&'static str> {
    Some(match (kind, key) {
        ("gemini", "api_key") => "make a key at https://aistudio.google.com/apikey",
        ("openai", "api_key") => {
            "make a key at https://platform.openai.com/api-keys, or where the service of `base_url` is run"
        }
        ("mastodon", "token") => {
            "on your instance under Preferences, Development, New application: scopes `read` and \
             `write:statuses`; the page of the application shows the access token"
        }
        ("email", "password") => {
            "the password of the mailbox or, where sign-in has a second step, an app password: for Gmail at \
             https://myaccount.google.com/apppasswords"
        }
        ("slack", "url") => {
            "at https://api.slack.com/apps: your app, Incoming Webhooks, Add New Webhook to Workspace; the whole \
             address is the secret"
        }
        ("webhook", "secret") => "any long random text that the receiver has, too: `openssl rand -base64 32`",
        ("webhook", "url" | "token") => "the receiver of the webhook tells it",
        ("commits", "token") => {
            "in GitLab under Edit profile, Access tokens: scope `read_api`; a group or project token will do"
        }
        ("books", "api_key") => {
            "enable the Books API at https://console.cloud.google.com/apis/library/books.googleapis.com, then make \
             a key at https://console.cloud.google.com/apis/credentials"
        }
        ("", "store.url") => "the password of the PostgreSQL user",
        ("", "app.proxy") => "whoever runs the proxy tells its address, user and password",
        ("", "web.auth.password") => "any long text; browsers ask for it",
        _ => return None,
    })
}

/// The same for a check that found a credential missing or not accepted.
pub(super) fn where_to_get_after(kind: &str, check: &Check) -> Option<&'static str> {
    let key = match (kind, check.what.as_str()) {
        _ if !check.is_locked => return None,
        ("gemini" | "openai", _) => "api_key",
        ("mastodon" | "commits", _) => "token",
        ("email", _) => "password",
        ("slack", _) | ("webhook", "address") => "url",
        ("webhook", "token") => "token",
        ("webhook", _) => "secret",
        _ => return None,
    };
    where_to_get(kind, key)
}

/// What a job would do better with, though it runs without.
pub(super) fn better_with(kind: &str, section: &Section) -> Option<String> {
    let (words, key) = match kind {
        "books" if crate::books::config::lacks_key(section) => {
            ("Google Books needs an API key: without one it allows no requests", "api_key")
        }
        "commits" if !section.has("token") => ("without a token only public projects can be read", "token"),
        _ => return None,
    };
    Some(format!("{words}; {}", where_to_get(kind, key)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_secret_that_a_config_can_name_has_a_place_to_get_it() {
        for (kind, key) in [
            ("gemini", "api_key"),
            ("openai", "api_key"),
            ("mastodon", "token"),
            ("email", "password"),
            ("slack", "url"),
            ("webhook", "secret"),
            ("webhook", "token"),
            ("commits", "token"),
            ("books", "api_key"),
            ("", "store.url"),
            ("", "app.proxy"),
            ("", "web.auth.password"),
        ] {
            assert!(where_to_get(kind, key).is_some(), "{kind} {key}");
        }
        let refused = Check::locked("token", "GitLab answers 401: invalid token");
        assert!(where_to_get_after("commits", &refused).is_some_and(|words| words.contains("read_api")));
        let unreachable = Check::bad("GitLab", "token.example:4010 refused the connection");
        assert_eq!(where_to_get_after("commits", &unreachable), None, "words decide nothing");
    }
}
