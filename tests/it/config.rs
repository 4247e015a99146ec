//! The config file: what is read, what is refused, and what the user is told.
#![allow(dead_code, reason = "the structs stand for those of owners, and are read for their errors")]

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;
use tsuzuki::config::value::{ByteSize, HttpUrl, QuietHours, Span};
use tsuzuki::config::{self, Colour, Env, Kind, Secret};

/// A press job as its owner might read it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Press {
    /// The feed.
    feed: HttpUrl,
    /// The largest attachment.
    max_file: Option<ByteSize>,
    /// How often an item is tried again.
    max_retries: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Blogs {
    /// The blogs.
    blog: Vec<Blog>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Blog {
    /// A short name.
    id: String,
    /// The address.
    url: HttpUrl,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Books {
    /// What to search for.
    queries: Vec<String>,
    /// Books in one mail.
    mail_limit: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Mastodon {
    /// The server.
    instance: HttpUrl,
    /// The access token.
    token: Secret,
    /// When nothing is posted.
    quiet_hours: Option<QuietHours>,
    /// The least time between two posts.
    pace: Option<Span>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Gemini {
    /// The key.
    api_key: Secret,
    /// Where the service is.
    base_url: Option<HttpUrl>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Web {
    /// The address to listen on.
    listen: Option<String>,
    /// Who may look.
    auth: Option<Auth>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Auth {
    /// The password.
    password: Secret,
}

const KINDS: &[Kind] = &[
    Kind::job::<Press>("press"),
    Kind::job::<Blogs>("blogs"),
    Kind::job::<Books>("books"),
    Kind::channel::<Mastodon>("mastodon"),
    Kind::llm::<Gemini>("gemini"),
    Kind::web::<Web>(),
];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/config").join(name)
}

fn parse(text: &str) -> Result<config::Config, config::Problems> {
    config::parse(text, Path::new("tsuzuki.toml"), KINDS, &Env::of([]))
}

#[test]
fn every_bad_file_gets_the_diagnostics_beside_it() {
    let mut files: Vec<PathBuf> = std::fs::read_dir(fixture("bad"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "toml"))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    let mut stale = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let problems = parse(&text).expect_err(&format!("{} is accepted", file.display()));
        let said = problems.render(Colour::Never) + "\n";
        let expected = file.with_extension("txt");
        if std::env::var_os("UPDATE_FIXTURES").is_some() {
            std::fs::write(&expected, &said).unwrap();
        }
        if std::fs::read_to_string(&expected).ok().as_ref() != Some(&said) {
            stale.push(format!("{}:\n{said}", file.display()));
        }
    }
    assert!(stale.is_empty(), "{}", stale.join("\n"));
}
