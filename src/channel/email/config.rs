//! The keys of an e-mail channel: where mail is handed in, who sends and who receives.

use std::path::PathBuf;

use lettre::message::Mailbox;

use super::super::settings::channel_config;
use crate::config::value::{BadValue, checked};
use crate::config::{Flag, FlagShape, Secret};
use crate::phrase;

channel_config! {
    /// `[channel.NAME] kind = "email"`: mails to one or more recipients.
    pub struct EmailConfig {
        /// Where mail is handed in: `"smtp.example.com:587"`; `"file:DIRECTORY"`, seen from this file, and `"memory:"` for trying things out.
        #[serde(deserialize_with = "read_smtp")]
        pub smtp: String,
        /// `"starttls"`, `"tls"` or `"none"`; default: `"tls"` on port 465, else `"starttls"`.
        pub tls: Option<Tls>,
        /// The user name, if the server wants one; then it wants a `password`, too.
        pub user: Option<String>,
        /// The password of `user`.
        pub password: Option<Secret>,
        /// A PEM file of a certificate authority to trust besides the machine's own, seen from this file.
        pub ca_file: Option<PathBuf>,
        /// The sender, such as `"tsuzuki <tsuzuki@example.com>"`.
        #[serde(deserialize_with = "read_address")]
        pub from: String,
        /// The recipients; each gets a mail of its own.
        #[serde(deserialize_with = "read_addresses")]
        pub to: Vec<String>,
        /// Where answers go, if not to the sender.
        pub reply_to: Option<String>,
        /// The name of the list in `List-Id`, such as `"books.example.com"`.
        pub list_id: Option<String>,
        /// Where readers can leave the list: a web or `mailto:` address for `List-Unsubscribe`.
        #[serde(default, deserialize_with = "read_unsubscribe")]
        pub list_unsubscribe: Option<String>,
    }
}

/// The options of `channel add`.
pub(super) const FLAGS: &[Flag] = &[
    Flag::new("smtp", "HOST:PORT", || {
        phrase!("the mail server, e.g. smtp.example.com:587", "メールサーバー（例：smtp.example.com:587）")
    })
    .required(),
    Flag::new("from", "ADDRESS", || phrase!("the sender", "差出人のアドレス")).required(),
    Flag::new("to", "ADDRESS", || phrase!("a recipient", "宛先のアドレス"))
        .shaped(FlagShape::List)
        .required(),
    Flag::new("user", "NAME", || {
        phrase!(
            "the user name, if the server wants one; then the password, too",
            "ユーザー名（サーバーの認証が必要な場合。パスワードも指定）"
        )
    }),
    Flag::variable("password-env", "password", "SMTP_PASSWORD", || {
        phrase!("the environment variable that holds the password", "パスワードを入れた環境変数の名前")
    }),
];

/// How the connection is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(clippy::enum_variant_names, reason = "they are the words of the config file")]
pub enum Tls {
    /// It begins in the clear and turns to TLS before anything is said.
    Starttls,
    /// It is TLS from the first byte.
    Tls,
    /// It is not: only for a server on this machine.
    None,
}

/// What `smtp` names.
pub(super) enum Smtp<'a> {
    File(&'a str),
    Memory,
    Server(&'a str, Option<u16>),
}

pub(super) fn parse_smtp(text: &str) -> Result<Smtp<'_>, BadValue> {
    match text.strip_prefix("file:") {
        Some("") => {
            return Err(BadValue::new(phrase!(
                "`file:` is followed by a directory",
                "`file:` の後にディレクトリを書きます"
            )));
        }
        Some(directory) => return Ok(Smtp::File(directory)),
        None if text == "memory:" => return Ok(Smtp::Memory),
        None => {}
    }
    let (host, port) = text.rsplit_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
    let port = port.map(|port| port.parse::<u16>().unwrap_or_default());
    if port == Some(0) || host.is_empty() || host.contains('/') || host.chars().any(char::is_whitespace) {
        let hint = phrase!(
            "write `smtp.example.com:587`, `file:DIRECTORY` or `memory:`",
            "`smtp.example.com:587`、`file:DIRECTORY`、`memory:` のいずれかを書きます"
        );
        return Err(BadValue::new(phrase!(
            "`{text}` is not a mail server",
            "`{text}` はメールサーバーではありません"
        ))
        .with_hint(hint));
    }
    Ok(Smtp::Server(host, port))
}

pub(super) fn parse_address(text: &str) -> Result<Mailbox, BadValue> {
    let bad = |_| {
        BadValue::new(phrase!("`{text}` is not a mail address", "`{text}` はメールアドレスではありません"))
            .with_hint(phrase!(
                "write `name@example.com` or `Name <name@example.com>`",
                "`name@example.com` または `Name <name@example.com>` と書きます"
            ))
    };
    text.trim().parse().map_err(bad)
}

fn read_smtp<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    checked(deserializer, |text: &String| parse_smtp(text).map(drop))
}

fn read_address<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    checked(deserializer, |text: &String| parse_address(text).map(drop))
}

/// Mail readers make a button of a web or `mailto:` address, and of nothing else.
fn read_unsubscribe<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    checked(deserializer, |text: &Option<String>| {
        let Some(text) = text else { return Ok(()) };
        let address = text.trim().trim_start_matches('<').to_ascii_lowercase();
        if ["https://", "http://", "mailto:"].iter().any(|scheme| address.starts_with(scheme)) {
            return Ok(());
        }
        let bad = phrase!(
            "`{text}` is neither a web nor a `mailto:` address",
            "`{text}` は Web アドレスでも `mailto:` アドレスでもありません"
        );
        Err(BadValue::new(bad).with_hint(phrase!(
            "write for example \"mailto:leave@example.com\"",
            "例：\"mailto:leave@example.com\""
        )))
    })
}

fn read_addresses<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(serde::Deserialize)]
    struct Address(#[serde(deserialize_with = "read_address")] String);
    let addresses: Vec<Address> = serde::Deserialize::deserialize(deserializer)?;
    Ok(addresses.into_iter().map(|Address(text)| text).collect())
}
