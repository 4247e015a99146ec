//! Environment variables that are written over keys of the file before its tables are read by their owners.

use std::ops::Range;

use super::overrides::Why;
use super::tree::{Data, Entry, Table, Value};
use super::value::HttpUrl;

/// `GOOGLE_BOOKS_API_KEY`: the key of every books job. Only its name is written: the secret stays outside.
pub(super) fn google_books_api_key(root: &mut Table, _: &str) -> Result<(), Why> {
    let Some(Data::Array(jobs)) = root.find_mut("job").map(|value| &mut value.data) else {
        return Ok(());
    };
    for job in jobs {
        let span = job.span.clone();
        if let Data::Table(table) = &mut job.data
            && kind_of(table) == Some("books")
            && let Some(options) = inner_table(table, "google_books", &span)
        {
            put(options, "api_key", Data::Text("${GOOGLE_BOOKS_API_KEY}".into()), &span);
        }
    }
    Ok(())
}

/// `COPY_PAGE_BASE_URL`: where readers of mails reach the prompt pages.
pub(super) fn copy_page_base_url(root: &mut Table, value: &str) -> Result<(), Why> {
    value.parse::<HttpUrl>().map_err(|err| (err.message().to_owned(), err.hint().map(str::to_owned)))?;
    if let Some(web) = inner_table(root, "web", &(0..0)) {
        put(web, "public_url", Data::Text(value.into()), &(0..0));
    }
    Ok(())
}

/// `SMTP_HOST`: the host of the only email channel; its port stays.
pub(super) fn smtp_host(root: &mut Table, value: &str) -> Result<(), Why> {
    let host = value.trim();
    if host.contains(['/', ' ']) || host.is_empty() {
        return Err((format!("`{value}` is not the name of a mail server"), None));
    }
    if let Some((channel, span)) = only_email_channel(root) {
        let smtp = match text_of(channel, "smtp").and_then(|smtp| smtp.rsplit_once(':')) {
            Some((_, port)) if is_port(port) => format!("{host}:{port}"),
            _ => host.to_owned(),
        };
        put(channel, "smtp", Data::Text(smtp.into()), &span);
    }
    Ok(())
}

/// `SMTP_PORT`: the port of the only email channel; its host stays.
pub(super) fn smtp_port(root: &mut Table, value: &str) -> Result<(), Why> {
    let port = value.trim();
    if !is_port(port) {
        return Err((format!("`{value}` is not a port"), Some("write for example 587".to_owned())));
    }
    if let Some((channel, span)) = only_email_channel(root) {
        let host = match text_of(channel, "smtp") {
            Some(smtp) => {
                smtp.rsplit_once(':').filter(|(_, old)| is_port(old)).map_or(smtp, |(host, _)| host)
            }
            None => "localhost",
        };
        let smtp = format!("{host}:{port}");
        put(channel, "smtp", Data::Text(smtp.into()), &span);
    }
    Ok(())
}

/// `SMTP_USER`: the user of the only email channel.
pub(super) fn smtp_user(root: &mut Table, value: &str) -> Result<(), Why> {
    if let Some((channel, span)) = only_email_channel(root) {
        put(channel, "user", Data::Text(value.into()), &span);
    }
    Ok(())
}

/// `SMTP_PASS`: the password of the only email channel. Only its name is written.
pub(super) fn smtp_pass(root: &mut Table, _: &str) -> Result<(), Why> {
    if let Some((channel, span)) = only_email_channel(root) {
        put(channel, "password", Data::Text("${SMTP_PASS}".into()), &span);
    }
    Ok(())
}

/// `MAIL_TO`: the recipients of the only email channel, separated by commas.
pub(super) fn mail_to(root: &mut Table, value: &str) -> Result<(), Why> {
    let recipients: Vec<&str> = value.split(',').map(str::trim).filter(|text| !text.is_empty()).collect();
    if recipients.is_empty() {
        return Err((format!("`{value}` names no recipient"), None));
    }
    if let Some(bad) = recipients.iter().find(|to| !to.contains('@')) {
        return Err((
            format!("`{bad}` is no mail address"),
            Some("write for example `me@example.org`".to_owned()),
        ));
    }
    if let Some((channel, span)) = only_email_channel(root) {
        let items =
            recipients.into_iter().map(|to| Value { span: span.clone(), data: Data::Text(to.into()) });
        put(channel, "to", Data::Array(items.collect()), &span);
    }
    Ok(())
}

fn is_port(text: &str) -> bool {
    text.parse::<u16>().is_ok_and(|port| port > 0)
}

/// With several email channels nobody could say which one is meant, so none is.
fn only_email_channel(root: &mut Table) -> Option<(&mut Table, Range<usize>)> {
    let Data::Table(channels) = &mut root.find_mut("channel")?.data else { return None };
    let mut email = channels.list_mut().filter_map(|value| {
        let span = value.span.clone();
        match &mut value.data {
            Data::Table(table) if kind_of(table) == Some("email") => Some((table, span)),
            _ => None,
        }
    });
    match (email.next(), email.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

fn kind_of(table: &Table) -> Option<&str> {
    text_of(table, "kind")
}

fn text_of<'a>(table: &'a Table, key: &str) -> Option<&'a str> {
    match &table.find(key)?.data {
        Data::Text(text) => Some(text),
        _ => None,
    }
}

/// The table at `key`, made if it is missing; `None` if something else stands there, which is told elsewhere.
fn inner_table<'a>(table: &'a mut Table, key: &str, span: &Range<usize>) -> Option<&'a mut Table> {
    if table.find(key).is_none() {
        put(table, key, Data::Table(Table::default()), span);
    }
    match &mut table.find_mut(key)?.data {
        Data::Table(inner) => Some(inner),
        _ => None,
    }
}

fn put(table: &mut Table, key: &str, data: Data, span: &Range<usize>) {
    let value = Value { span: span.clone(), data };
    table.put(Entry { key: key.into(), key_span: span.clone(), value });
}
