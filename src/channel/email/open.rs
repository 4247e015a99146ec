//! Builds a channel from its keys, or lists what is wrong with them.

use std::path::Path;

use lettre::message::Mailbox;
use parking_lot::Mutex;

use super::config::{EmailConfig, Smtp, Tls, parse_address, parse_smtp};
use super::smtp::Server;
use super::{Email, Transport, mime};
use crate::channel::header_text::HeaderText;
use crate::config::{Problem, Problems, Section};
use crate::phrase;

impl Email {
    pub(super) fn new(mut config: EmailConfig, section: &Section) -> Result<Self, Problems> {
        let mailbox = |key: &str, text: &str| {
            parse_address(text).map_err(|bad| Problems::from(section.bad_value(key, &bad)))
        };
        let mut problems = Problems::default();
        if config.to.is_empty() {
            problems.push(
                section.problem(
                    "to",
                    phrase!("`to` is empty: there is no recipient", "メールの宛先がありません"),
                ),
            );
        }
        match (&config.user, &config.password) {
            (Some(_), None) => problems.push(
                section
                    .problem(
                        "user",
                        phrase!(
                            "`user` is set, but `password` is not",
                            "`user` はありますが、`password` がありません"
                        ),
                    )
                    .with_hint(phrase!(
                        "add `password = \"{reference}\"`, or remove `user`",
                        "`password = \"{reference}\"` を追加するか、`user` を削除してください",
                        reference = "${SMTP_PASSWORD}"
                    )),
            ),
            (None, Some(_)) => problems.push(
                section
                    .problem(
                        "password",
                        phrase!(
                            "`password` is set, but `user` is not: there would be no login",
                            "`password` はありますが、`user` がないためログインできません"
                        ),
                    )
                    .with_hint(phrase!(
                        "add `user`, or remove `password`",
                        "`user` を追加するか、`password` を削除してください"
                    )),
            ),
            _ => {}
        }
        config.ca_file = config.ca_file.map(|path| section.resolve(&path));
        let to = config.to.iter().enumerate().map(|(at, text)| mailbox(&format!("to.{at}"), text));
        let to: Vec<Mailbox> = to.filter_map(|to| problems.note(to)).collect();
        let transport = problems.note(read_transport(&config, section));
        let from = problems.note(mailbox("from", &config.from));
        let reply_to = config.reply_to.as_deref().map(|text| mailbox("reply_to", text)).transpose();
        let reply_to = problems.note(reply_to).flatten();
        for (key, mailbox) in [("from", from.as_ref()), ("reply_to", reply_to.as_ref())]
            .into_iter()
            .map(|(key, mailbox)| (key.to_owned(), mailbox))
            .chain(to.iter().enumerate().map(|(at, to)| (format!("to.{at}"), Some(to))))
        {
            if mailbox.is_some_and(|mailbox| !mime::can_carry(mailbox, None)) {
                problems.push(too_long(section, &key));
            }
        }
        for (key, text) in [("list_id", &config.list_id), ("list_unsubscribe", &config.list_unsubscribe)] {
            if let (Some(text), Some(from)) = (text, &from)
                && !mime::can_carry(from, Some(&bracketed(text)))
            {
                problems.push(too_long(section, key));
            }
        }
        let (Some(transport), Some(from), true) = (transport, from, problems.is_empty()) else {
            return Err(problems);
        };
        Ok(Self {
            transport,
            from,
            to,
            reply_to,
            list_id: config.list_id.as_deref().map(bracketed),
            list_unsubscribe: config.list_unsubscribe.as_deref().map(bracketed),
            config,
        })
    }
}

/// The value of a list header, in the angle brackets that it needs.
fn bracketed(text: &str) -> HeaderText {
    let text = text.trim();
    if text.contains('<') { HeaderText::new(text) } else { HeaderText::new(&format!("<{text}>")) }
}

fn too_long(section: &Section, key: &str) -> Problem {
    let max = mime::MAX_LINE;
    section
        .problem(
            key,
            phrase!(
                "it cannot stand in a mail: a line of a mail has at most {max} bytes",
                "メールに入りません（メールの 1 行は {max} バイトまで）"
            ),
        )
        .with_hint(phrase!("write something shorter", "短くしてください"))
}

fn read_transport(config: &EmailConfig, section: &Section) -> Result<Transport, Problems> {
    let (host, port) = match parse_smtp(&config.smtp).map_err(|bad| section.bad_value("smtp", &bad))? {
        Smtp::File(directory) => return Ok(Transport::File(section.resolve(Path::new(directory)))),
        Smtp::Memory => return Ok(Transport::Memory),
        Smtp::Server(host, port) => (host, port),
    };
    let port = port.unwrap_or(if config.tls == Some(Tls::Tls) { 465 } else { 587 });
    let tls = config.tls.unwrap_or(if port == 465 { Tls::Tls } else { Tls::Starttls });
    if tls == Tls::None && config.user.is_some() && !is_loopback(host) {
        return Err(section
            .problem(
                "tls",
                phrase!("the password would be sent unencrypted", "パスワードが暗号化されずに送られます"),
            )
            .with_hint(phrase!(
                "use `tls = \"starttls\"`, or remove `user`",
                "`tls = \"starttls\"` にするか、`user` を削除してください"
            ))
            .into());
    }
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    Ok(Transport::Smtp(Server { host, port, tls }, Mutex::default()))
}

pub(super) fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}
