//! Where each key, token and password comes from, and what it has to be allowed to do.

use crate::config::Section;
use crate::fetch::Check;

/// Where to get the secret that stands at `key` of a table of that kind.
pub(super) fn where_to_get(kind: &str, key: &str) -> Option<&'static str> {
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
        _ => return None,
    })
}

/// The same for a check that failed because of the secret, as far as its words tell.
pub(super) fn where_to_get_after(kind: &str, check: &Check) -> Option<&'static str> {
    let words = check.detail.to_ascii_lowercase();
    let about_access =
        ["401", "403", "credential", "api key", "token", "sign"].iter().any(|word| words.contains(word));
    if !about_access {
        return None;
    }
    let key = match kind {
        "gemini" | "openai" => "api_key",
        "mastodon" | "commits" => "token",
        "email" => "password",
        "slack" => "url",
        "webhook" => "secret",
        _ => return None,
    };
    where_to_get(kind, key)
}

/// What a job would do better with, though it runs without.
pub(super) fn better_with(kind: &str, section: &Section) -> Option<String> {
    let (words, key) = match kind {
        "books" if !section.has_path("google_books.api_key") => {
            ("Google Books is asked without a key, which it does not take for long", "api_key")
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
        ] {
            assert!(where_to_get(kind, key).is_some(), "{kind} {key}");
        }
        let refused = Check::bad("token", "GitLab answers 401: invalid token");
        assert!(where_to_get_after("commits", &refused).is_some_and(|words| words.contains("read_api")));
        assert_eq!(where_to_get_after("commits", &Check::bad("GitLab", "the connection was refused")), None);
    }
}
