//! `config`: the path of the file, its content without secrets, and its schema for editors.

use std::io::IsTerminal as _;

use clap::Subcommand;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use serde::Serialize;
use serde_json::json;

use super::table::row;
use super::{Column, Context, Error, Exit, Result};
use tsuzuki::app;
use tsuzuki::phrase;
use tsuzuki::phrase::Phrase;
use tsuzuki::web;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Print where the config file is
    Path,
    /// Print the config file with secrets redacted
    Show {
        /// List every value and where it comes from instead: the file, the environment, the machine or a default
        #[arg(long)]
        origins: bool,
    },
    /// Print a JSON Schema for editors
    Schema,
    /// Read a password and print the hash of it that [web.auth] takes
    HashPassword,
}

pub(super) fn run(command: Command, context: &Context) -> Result {
    match command {
        Command::Path => {
            let path = context.config_path()?.display().to_string();
            context.out.json_or_line(&json!({ "path": path }), path)?;
        }
        Command::Show { origins: true } => return list_origins(context),
        Command::Show { origins: false } => {
            let config = context.load_config()?;
            if context.out.is_json() {
                context.out.json(&config.masked_json())?;
            } else {
                context.out.raw(config.masked_text().as_bytes())?;
            }
        }
        Command::Schema => context.out.json(&tsuzuki::config::schema(app::kinds()))?,
        Command::HashPassword => {
            let password = read_password(context)?;
            let hash = web::password::hash(&password)
                .ok_or_else(|| Error::failed(phrase!("it cannot be hashed", "ハッシュを作れません")))?;
            context.out.json_or_line(&json!({ "password": hash }), hash)?;
        }
    }
    Ok(Exit::Fine)
}

#[derive(Serialize)]
struct Origin {
    key: String,
    value: String,
    origin: Phrase,
}

/// Lists every value with its origin.
fn list_origins(context: &Context) -> Result {
    let config = context.load_config()?;
    let mut origins = Vec::new();
    add_of_file(&config.masked_json(), String::new(), &mut origins);
    for (variable, key) in tsuzuki::config::list_overrides(app::kinds(), &context.env) {
        origins.retain(|origin: &Origin| origin.key != key);
        let origin = phrase!("environment: {variable}", "環境変数 {variable}");
        origins.push(Origin { key, value: "…".to_owned(), origin });
    }
    let of_machine = phrase!("the machine (TZ, /etc/localtime)", "マシンの設定（TZ、/etc/localtime）");
    let of_locale =
        phrase!("the locale (LC_ALL, LC_MESSAGES, LANG)", "ロケール（LC_ALL、LC_MESSAGES、LANG）");
    let by_default = phrase!("default", "既定");
    let speech = context.out.speech();
    let language = match (context.global.lang, context.env.find_language()) {
        (Some(_), _) => phrase!("the option --lang", "オプション --lang"),
        (None, Some(_)) => of_locale,
        (None, None) => by_default.clone(),
    };
    for (key, value, origin) in [
        ("app.timezone", config.app.timezone.name().to_owned(), of_machine),
        ("app.language", speech.language.word().to_owned(), language),
        ("store.url", super::context::place_of(&config)?.to_string(), by_default),
    ] {
        match origins.iter_mut().find(|known| known.key == key) {
            Some(known) if known.value == "…" => known.value = value,
            Some(_) => {}
            None => origins.push(Origin { key: key.to_owned(), value, origin }),
        }
    }
    let columns = [
        Column::left(phrase!("key", "キー")),
        Column::long(phrase!("value", "値")),
        Column::left(phrase!("origin", "出所")),
    ];
    context.out.listing(&columns, &origins, |origin| row![&origin.key, &origin.value, &origin.origin])
}

/// The values of the file, secrets redacted.
fn add_of_file(value: &serde_json::Value, key: String, origins: &mut Vec<Origin>) {
    let below = |name: &str| if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") };
    match value {
        serde_json::Value::Object(pairs) => {
            pairs.iter().for_each(|(name, value)| add_of_file(value, below(name), origins));
        }
        serde_json::Value::Array(items) if items.iter().any(serde_json::Value::is_object) => {
            for (index, item) in items.iter().enumerate() {
                let name = item["name"].as_str().or(item["id"].as_str());
                add_of_file(item, below(name.unwrap_or(&index.to_string())), origins);
            }
        }
        value => {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            origins.push(Origin { key, value, origin: phrase!("the file", "設定ファイル") });
        }
    }
}

/// Reads one line of standard input, without echo on a terminal.
fn read_password(context: &Context) -> Result<String> {
    let stdin = std::io::stdin();
    let shown = if stdin.is_terminal() {
        context.out.note(phrase!("Password, which is not shown:", "パスワード（表示されません）:"));
        let shown = tcgetattr(&stdin).map_err(std::io::Error::from)?;
        let mut hidden = shown.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&stdin, OptionalActions::Now, &hidden).map_err(std::io::Error::from)?;
        Some(shown)
    } else {
        None
    };
    let mut line = String::new();
    let read = stdin.read_line(&mut line);
    if let Some(shown) = shown {
        tcsetattr(&stdin, OptionalActions::Now, &shown).map_err(std::io::Error::from)?;
    }
    read?;
    match line.trim_end_matches(['\r', '\n']) {
        "" => Err(Error::usage(phrase!("the password is empty", "パスワードが空です"))),
        password => Ok(password.to_owned()),
    }
}
