//! The language of the reader: that of the browser, or of the config.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT_LANGUAGE;

use crate::text::Language;

/// The supported language with the greatest weight in `Accept-Language`.
pub(super) fn choose(headers: &HeaderMap, otherwise: Language) -> Language {
    let accepted = headers.get(ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut best: Option<(f32, Language)> = None;
    for part in accepted.split(',') {
        let (tag, rest) = part.split_once(';').unwrap_or((part, ""));
        let language = match tag.trim().split('-').next().unwrap_or_default().to_ascii_lowercase().as_str() {
            "ja" => Language::Ja,
            "en" => Language::En,
            _ => continue,
        };
        let weight = rest.trim().strip_prefix("q=").and_then(|q| q.trim().parse().ok()).unwrap_or(1.0);
        if weight > best.map_or(0.0, |(best, _)| best) {
            best = Some((weight, language));
        }
    }
    best.map_or(otherwise, |(_, language)| language)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_browser_decides_if_it_knows_one_of_ours() {
        for (asked, expected) in [
            ("ja", Language::Ja),
            ("ja-JP,ja;q=0.9,en;q=0.8", Language::Ja),
            ("de, en;q=0.3, ja;q=0.5", Language::Ja),
            ("en-GB,en;q=0.9,ja;q=0.8", Language::En),
            ("de", Language::Ja),
            ("", Language::Ja),
            ("en;q=0", Language::Ja),
            ("en;q=x", Language::En),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT_LANGUAGE, asked.parse().unwrap())]);
            assert_eq!(choose(&headers, Language::Ja), expected, "{asked}");
        }
    }
}
