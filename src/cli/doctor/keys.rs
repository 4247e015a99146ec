//! Where to get each key, token and password, and which permissions it needs.

use tsuzuki::app;
use tsuzuki::config::Section;
use tsuzuki::fetch::{Check, SecretHint};
use tsuzuki::phrase;
use tsuzuki::phrase::Phrase;
use tsuzuki::{channel, llm};

/// Where to get the secrets of tables without a kind.
const OTHERS: &[(&str, &[SecretHint])] = &[(
    "",
    &[
        SecretHint {
            key: "store.url",
            check: "",
            en: "the password of the PostgreSQL user",
            ja: "PostgreSQL のユーザーのパスワード",
        },
        SecretHint {
            key: "app.proxy",
            check: "",
            en: "ask the administrator of the proxy for its address, user and password",
            ja: "プロキシの管理者に、アドレス、ユーザー名、パスワードを確認します",
        },
        SecretHint {
            key: "web.auth.password",
            check: "",
            en: "any long text; browsers ask for it",
            ja: "任意の長い文字列。ブラウザーが尋ねます",
        },
    ],
)];

/// The secrets of a table of that kind.
fn secrets_of(kind: &str) -> &'static [SecretHint] {
    let channels = channel::KINDS.iter().map(|kind| (kind.keys.name, kind.secrets));
    let providers = llm::KINDS.iter().map(|kind| (kind.keys.name, kind.secrets));
    let pipelines = app::PIPELINES.iter().map(|of| (of.kind.name, of.secrets));
    let mut all = channels.chain(providers).chain(pipelines).chain(OTHERS.iter().copied());
    all.find(|(name, _)| *name == kind).map_or(&[], |(_, secrets)| secrets)
}

/// Where to get the secret at `key` of a table of that kind.
pub(in crate::cli) fn where_to_get(kind: &str, key: &str) -> Option<Phrase> {
    secrets_of(kind).iter().find(|secret| secret.key == key).map(SecretHint::phrase)
}

/// The same for a check that found a credential missing or refused.
pub(super) fn where_to_get_after(kind: &str, check: &Check) -> Option<Phrase> {
    let is_meant = |secret: &&SecretHint| secret.check.is_empty() || check.what == secret.check;
    secrets_of(kind).iter().filter(|_| check.is_locked).find(is_meant).map(SecretHint::phrase)
}

/// What a job should have, though it runs without.
pub(super) fn better_with(kind: &str, section: &Section) -> Option<Phrase> {
    let (words, key) = (app::find_pipeline(kind)?.lacks)(section)?;
    let hint = where_to_get(kind, key)?;
    Some(phrase!("{words}; {hint}", "{words}。{hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keys that hold a secret in every table with a kind, from the schema of the file.
    fn secret_keys(schema: &serde_json::Value, found: &mut Vec<(String, String)>) {
        if let Some(kind) = schema["properties"]["kind"]["const"].as_str() {
            let properties = schema["properties"].as_object().unwrap();
            let secret = properties.iter().filter(|(_, value)| value.to_string().contains("/Secret\""));
            found.extend(secret.map(|(key, _)| (kind.to_owned(), key.clone())));
        }
        match schema {
            serde_json::Value::Object(object) => object.values().for_each(|value| secret_keys(value, found)),
            serde_json::Value::Array(array) => array.iter().for_each(|value| secret_keys(value, found)),
            _ => {}
        }
    }

    #[test]
    fn every_secret_that_a_config_can_name_has_a_place_to_get_it() {
        let mut keys = Vec::new();
        secret_keys(&tsuzuki::config::schema(tsuzuki::app::kinds()), &mut keys);
        assert!(keys.len() >= 9, "{keys:?}");
        for (kind, key) in keys {
            assert!(where_to_get(&kind, &key).is_some(), "{kind} {key}");
        }
        for key in ["store.url", "app.proxy", "web.auth.password"] {
            assert!(where_to_get("", key).is_some(), "{key}");
        }
    }

    #[test]
    fn a_refused_credential_is_explained_and_an_unreachable_server_is_not() {
        for (kind, check, words) in [
            ("commits", "token", "read_api"),
            ("mastodon", "token", "write:statuses"),
            ("mastodon", "lookup", "write:statuses"),
            ("email", "server", "mailbox"),
            ("slack", "address", "the whole address"),
            ("webhook", "address", "the receiver"),
            ("webhook", "signature", "openssl"),
            ("gemini", "gemini-flash-latest", "aistudio"),
        ] {
            let found = where_to_get_after(kind, &Check::locked(check, "status 401"));
            assert!(
                found.as_ref().is_some_and(|found| found.to_string().contains(words)),
                "{kind} {check}: {found:?}"
            );
        }
        let unreachable = Check::bad("GitLab", "token.example:4010 refused the connection");
        assert_eq!(where_to_get_after("commits", &unreachable), None, "words decide nothing");
    }
}
