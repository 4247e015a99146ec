//! Environment variables that override the keys of the only email channel.

use crate::config::EnvOverride;
use crate::config::value::BadValue;
use crate::phrase;

pub(in crate::channel) const ENV: &[EnvOverride] = &[
    EnvOverride::new("SMTP_HOST", "smtp", |value, old| smtp_host(value, old).map(Into::into)),
    EnvOverride::new("SMTP_PORT", "smtp", |value, old| smtp_port(value, old).map(Into::into)),
    EnvOverride::new("SMTP_USER", "user", |value, _| Ok(value.into())),
    EnvOverride::secret("SMTP_PASS", "password"),
    EnvOverride::new("MAIL_TO", "to", |value, _| mail_to(value).map(Into::into)),
];

/// The host; the port stays.
fn smtp_host(value: &str, old: Option<&str>) -> Result<String, BadValue> {
    let host = value.trim();
    if host.contains(['/', ' ']) || host.is_empty() {
        return Err(BadValue::new(phrase!(
            "`{value}` is not the name of a mail server",
            "`{value}` はメールサーバーの名前ではありません"
        )));
    }
    Ok(match old.and_then(|smtp| smtp.rsplit_once(':')) {
        Some((_, port)) if is_port(port) => format!("{host}:{port}"),
        _ => host.to_owned(),
    })
}

/// The port; the host stays.
fn smtp_port(value: &str, old: Option<&str>) -> Result<String, BadValue> {
    let port = value.trim();
    if !is_port(port) {
        return Err(BadValue::new(phrase!(
            "`{value}` is not a port",
            "`{value}` はポート番号ではありません"
        ))
        .with_hint(phrase!("write for example 587", "例：587")));
    }
    let smtp = old.unwrap_or("localhost");
    let host = smtp.rsplit_once(':').filter(|(_, old)| is_port(old)).map_or(smtp, |(host, _)| host);
    Ok(format!("{host}:{port}"))
}

/// The recipients, separated by commas.
fn mail_to(value: &str) -> Result<Vec<String>, BadValue> {
    let recipients: Vec<&str> = value.split(',').map(str::trim).filter(|text| !text.is_empty()).collect();
    if recipients.is_empty() {
        return Err(BadValue::new(phrase!("`{value}` names no recipient", "`{value}` に宛先がありません")));
    }
    if let Some(bad) = recipients.iter().find(|to| !to.contains('@')) {
        let hint = phrase!("write for example `me@example.org`", "例：`me@example.org`");
        return Err(BadValue::new(phrase!(
            "`{text}` is no mail address",
            "`{text}` はメールアドレスではありません",
            text = *bad
        ))
        .with_hint(hint));
    }
    Ok(recipients.into_iter().map(str::to_owned).collect())
}

fn is_port(text: &str) -> bool {
    text.parse::<u16>().is_ok_and(|port| port > 0)
}
