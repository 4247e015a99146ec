//! The mail about a notice, in both languages, as text and HTML.

use std::fmt::Write as _;

use jiff::tz::TimeZone;

use crate::channel::header_text::HeaderText;
use crate::channel::notice::{MailBody, Notice};
use crate::channel::plain::{inert, inert_line};
use crate::text::{Language, escape_html, untitled};

/// The mail about `notice`; both parts have the same content.
pub(super) fn write(notice: &Notice, zone: &TimeZone) -> MailBody {
    MailBody {
        subject: HeaderText::new(&notice.headline),
        text: write_text(notice, zone),
        html: write_html(notice, zone),
        list_id: None,
    }
}

fn write_text(notice: &Notice, zone: &TimeZone) -> String {
    let mut text = format!("{}\n", inert_line(&notice.headline));
    if let Some(warning) = &notice.warning {
        let _ = write!(text, "\n[{}]\n", inert_line(warning));
    }
    if !notice.summary.trim().is_empty() {
        let _ = write!(text, "\n{}\n", inert(notice.summary.trim()));
    }
    if let Some(link) = &notice.link {
        let _ = write!(text, "\n{link}\n");
    }
    for entry in &notice.entries {
        let _ = write!(text, "\n* {}\n", inert_line(&entry.title));
        if let Some(note) = &entry.note {
            let _ = writeln!(text, "  {}", inert_line(note));
        }
        if let Some(date) = entry.date {
            let _ = writeln!(text, "  {}", date.to_local_minute(zone));
        }
        if let Some(link) = &entry.link {
            let _ = writeln!(text, "  {link}");
        }
    }
    let _ = write!(text, "\n-- \n{}\n", footer(notice.language));
    text
}

fn write_html(notice: &Notice, zone: &TimeZone) -> String {
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"{}\">\n<head><meta charset=\"utf-8\"><title>{headline}</title></head>\n\
         <body>\n<h1 style=\"font-size:1.2em\">{headline}</h1>\n",
        notice.language.word(),
        headline = escape_html(&inert_line(&notice.headline)),
    );
    if let Some(warning) = &notice.warning {
        let _ = writeln!(html, "<p><strong>{}</strong></p>", escape_html(&inert_line(warning)));
    }
    for paragraph in inert(notice.summary.trim()).split("\n\n").filter(|part| !part.trim().is_empty()) {
        let _ = writeln!(html, "<p>{}</p>", escape_html(paragraph.trim()).replace('\n', "<br>\n"));
    }
    if let Some(link) = &notice.link {
        let _ = writeln!(html, "<p>{}</p>", anchor(link, link.as_str()));
    }
    if !notice.entries.is_empty() {
        html.push_str("<ul>\n");
        for entry in &notice.entries {
            let title = inert_line(&entry.title);
            let title = if title.is_empty() { untitled(notice.language) } else { &title };
            let shown = entry.link.as_ref().map_or_else(|| escape_html(title), |link| anchor(link, title));
            let _ = write!(html, "<li>{shown}");
            for more in
                [entry.note.as_deref().map(inert_line), entry.date.map(|date| date.to_local_minute(zone))]
                    .into_iter()
                    .flatten()
            {
                let _ = write!(html, "<br>\n<small>{}</small>", escape_html(&more));
            }
            html.push_str("</li>\n");
        }
        html.push_str("</ul>\n");
    }
    let _ =
        write!(html, "<p><small>{}</small></p>\n</body>\n</html>\n", escape_html(footer(notice.language)));
    html
}

/// A link; anything but a web address is shown without being linked.
fn anchor(link: &url::Url, text: &str) -> String {
    match link.scheme() {
        "http" | "https" => format!("<a href=\"{}\">{}</a>", escape_html(link.as_str()), escape_html(text)),
        _ => escape_html(text),
    }
}

fn footer(language: Language) -> &'static str {
    language.choose("Sent automatically by tsuzuki.", "このメールは tsuzuki が自動で送信しました。")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::NoticeEntry;

    #[test]
    fn titles_are_text_in_both_parts() {
        let notice = Notice {
            summary: "<img src=x onerror=alert(1)> https://evil.example/".into(),
            link: Some("https://example.com/?a=1&b=\"2\"".parse().unwrap()),
            entries: vec![NoticeEntry {
                title: "</a><script>alert(1)</script>".into(),
                link: Some("javascript:alert(1)".parse().unwrap()),
                date: None,
                note: Some("\"quoted\"\r\nnext".into()),
            }],
            ..Notice::new("題 <b>名</b>", Language::Ja)
        };
        let mail = write(&notice, &TimeZone::UTC);
        for forbidden in ["<b>", "<img", "<script", "href=\"javascript", "https://evil"] {
            assert!(!mail.html.contains(forbidden), "{forbidden} in {}", mail.html);
        }
        assert!(!mail.text.contains("https://evil"), "{}", mail.text);
        assert!(mail.html.contains("href=\"https://example.com/?a=1&amp;b=%222%22\""), "{}", mail.html);
        assert_eq!(mail.subject.as_str(), "題 <b>名</b>");
    }
}
