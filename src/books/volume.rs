//! Converts a Google Books volume into a book; all values are untrusted, so they are checked, cleaned and truncated.

use serde_json::Value as Json;
use url::Url;

use super::model::{Book, BookLink, Isbn13};
use crate::parse::html::Html;
use crate::text;

/// Columns of a title with its subtitle.
const TITLE_COLUMNS: usize = 500;
/// Columns of a name: an author, a publisher.
const NAME_COLUMNS: usize = 200;
/// Authors that are kept.
const MAX_AUTHORS: usize = 50;
/// Characters of a date.
const DATE_COLUMNS: usize = 32;
/// Characters of a description that are read, and columns that are kept.
const MAX_DESCRIPTION: usize = 40_000;
const DESCRIPTION_COLUMNS: usize = 8_000;
/// Characters of an address.
const MAX_URL: usize = 2_000;

/// The book that a volume describes, or `None` when it has no valid ISBN.
pub fn read(volume: &Json) -> Option<Book> {
    let info = &volume["volumeInfo"];
    let isbn13 = isbn(&info["industryIdentifiers"])?;
    Some(Book {
        title: title(info).unwrap_or_else(|| isbn13.to_string()),
        authors: authors(&info["authors"]),
        publisher: line(&info["publisher"], NAME_COLUMNS),
        published_date: line(&info["publishedDate"], DATE_COLUMNS),
        description: info["description"].as_str().and_then(plain_text),
        cover_url: cover(&info["imageLinks"]),
        links: links(info),
        isbn13,
    })
}

/// Prefers a valid ISBN-13 to a valid ISBN-10, whatever their order.
fn isbn(identifiers: &Json) -> Option<Isbn13> {
    let identifiers = identifiers.as_array()?;
    let of_type = |wanted: &str| {
        identifiers
            .iter()
            .filter(|entry| entry["type"].as_str() == Some(wanted))
            .filter_map(|entry| entry["identifier"].as_str())
            .find_map(|text| text.trim().parse::<Isbn13>().ok())
    };
    of_type("ISBN_13").or_else(|| of_type("ISBN_10"))
}

fn title(info: &Json) -> Option<String> {
    let title = line(&info["title"], TITLE_COLUMNS)?;
    match line(&info["subtitle"], TITLE_COLUMNS) {
        Some(subtitle) => Some(text::shorten(&format!("{title}: {subtitle}"), TITLE_COLUMNS)),
        None => Some(title),
    }
}

fn authors(names: &Json) -> Vec<String> {
    let names = names.as_array().map(Vec::as_slice).unwrap_or_default();
    names.iter().filter_map(|name| line(name, NAME_COLUMNS)).take(MAX_AUTHORS).collect()
}

/// A text on one line, or `None` when it is not a text or is empty.
fn line(value: &Json, columns: usize) -> Option<String> {
    let line = text::one_line(value.as_str()?);
    (!line.is_empty()).then(|| text::shorten(&line, columns))
}

/// A description without its markup.
fn plain_text(html: &str) -> Option<String> {
    let start: String = html.chars().take(MAX_DESCRIPTION).collect();
    let plain = Html::from_text(&start, None).main_text(Some("body")).ok()?;
    let lines: Vec<String> = plain.lines().map(text::one_line).filter(|line| !line.is_empty()).collect();
    let plain = lines.join("\n");
    (!plain.is_empty()).then(|| text::shorten(&plain, DESCRIPTION_COLUMNS))
}

/// The cover in a size that suits a mail, without the curled corner.
fn cover(images: &Json) -> Option<String> {
    let mut url = ["thumbnail", "small", "smallThumbnail", "medium", "large"]
        .into_iter()
        .find_map(|size| https_url(&images[size]))?;
    let kept: Vec<(String, String)> =
        url.query_pairs().into_owned().filter(|(name, _)| name != "edge").collect();
    if url.query().is_some() {
        url.query_pairs_mut().clear().extend_pairs(kept);
    }
    Some(url.into())
}

fn links(info: &Json) -> Vec<BookLink> {
    let mut links: Vec<BookLink> = Vec::new();
    for (label, key) in
        [("Google Books", "infoLink"), ("Preview", "previewLink"), ("Google Play", "canonicalVolumeLink")]
    {
        if let Some(url) = https_url(&info[key]).map(String::from)
            && !links.iter().any(|known| known.url == url)
        {
            links.push(BookLink { label: label.to_owned(), url });
        }
    }
    links
}

/// A web address, over https: mail readers refuse or warn about the other kind.
fn https_url(value: &Json) -> Option<Url> {
    let mut url = Url::parse(value.as_str()?.trim()).ok()?;
    if url.scheme() == "http" {
        // An explicit port means plain HTTP there; changing the scheme would break it.
        url.port().is_none().then(|| url.set_scheme("https"))?.ok()?;
    }
    let fine = url.scheme() == "https"
        && url.host().is_some()
        && url.username().is_empty()
        && url.password().is_none()
        && url.as_str().len() <= MAX_URL;
    fine.then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn volume(info: &Json) -> Json {
        let mut info = info.clone();
        if info.get("industryIdentifiers").is_none() {
            info["industryIdentifiers"] = json!([{ "type": "ISBN_13", "identifier": "9784101010014" }]);
        }
        json!({ "volumeInfo": info })
    }

    #[test]
    fn a_volume_becomes_a_book() {
        let book = read(&volume(&json!({
            "title": "吾輩は猫である", "subtitle": "上", "authors": ["夏目 漱石", " ", 7],
            "publisher": "架空書房", "publishedDate": "2026-01",
            "description": "<p>名前は<b>まだ</b>無い。</p><script>alert(1)</script>&amp; more",
            "imageLinks": { "thumbnail": "http://books.google.com/books?id=1&edge=curl&zoom=1" },
            "infoLink": "http://books.google.com/books?id=1", "previewLink": "javascript:alert(1)",
            "canonicalVolumeLink": "https://books.google.com/books?id=1",
        })))
        .unwrap();
        assert_eq!(book.title, "吾輩は猫である: 上");
        assert_eq!(book.authors, ["夏目 漱石"]);
        assert_eq!(book.description.as_deref(), Some("名前はまだ無い。\n& more"));
        assert_eq!(book.cover_url.as_deref(), Some("https://books.google.com/books?id=1&zoom=1"));
        assert_eq!(
            book.links,
            [BookLink { label: "Google Books".into(), url: "https://books.google.com/books?id=1".into() }]
        );
    }

    #[test]
    fn the_isbn_is_found_among_identifiers_or_the_volume_is_dropped() {
        let with = |list: Json| read(&volume(&json!({ "title": "t", "industryIdentifiers": list })));
        let isbn = |list: Json| with(list).map(|book| book.isbn13.to_string());
        let ten = json!({ "type": "ISBN_10", "identifier": "080442957X" });
        let thirteen = json!({ "type": "ISBN_13", "identifier": "978-4-10-101001-4" });
        let wrong = json!({ "type": "ISBN_13", "identifier": "9784101010013" });
        let other = json!({ "type": "OTHER", "identifier": "9784101010014" });
        assert_eq!(isbn(json!([ten, thirteen])).as_deref(), Some("9784101010014"));
        assert_eq!(isbn(json!([wrong, ten])).as_deref(), Some("9780804429573"));
        assert_eq!(isbn(json!([wrong, other])), None);
        assert_eq!(isbn(json!([])), None);
        assert_eq!(isbn(Json::Null), None);
        assert_eq!(isbn(json!("9784101010014")), None);
    }

    #[test]
    fn hostile_and_missing_fields_do_no_harm() {
        let book = read(&volume(&json!({
            "title": ["x"], "authors": "nobody", "publisher": "a\u{1b}[31m\nb", "description": "<p> </p>",
            "imageLinks": { "thumbnail": "http://me:pw@x.example/", "small": "ftp://x.example/" },
            "infoLink": format!("https://x.example/{}", "a".repeat(3000)),
        })))
        .unwrap();
        assert_eq!(book.title, "9784101010014");
        assert_eq!(
            (book.authors.len(), book.description, book.cover_url, book.links.len()),
            (0, None, None, 0)
        );
        assert_eq!(book.publisher.as_deref(), Some("a[31m b"));
        let long =
            read(&volume(&json!({ "title": "長".repeat(5000), "description": "<i>".repeat(30_000) + "x" })))
                .unwrap();
        assert!(text::width(&long.title) <= TITLE_COLUMNS);
    }
}
