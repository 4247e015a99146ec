//! The elements of HTML, and how the tree builder treats them.

use std::collections::HashMap;
use std::sync::LazyLock;

/// How the tree builder treats an element, as far as nesting is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Never has content.
    Void,
    /// Is reopened in the next block when it was not closed.
    Formatting,
    /// End tags do not close elements outside of it.
    Boundary,
    /// All other elements that may stay.
    Plain,
    /// Dropped together with its content.
    Raw,
    /// HTML, but only its content stays.
    Dropped,
}

/// Every element of HTML, by its role.
const BY_ROLE: [(Role, &str); 6] = [
    (Role::Void, "area br col hr img source track wbr"),
    (Role::Formatting, "a b big code em font i s small strike strong tt u"),
    (Role::Boundary, "caption table td th"),
    (
        Role::Plain,
        "abbr acronym address article aside audio bdi bdo blockquote center cite colgroup data dd del \
         details dfn dir div dl dt figcaption figure footer h1 h2 h3 h4 h5 h6 header hgroup ins kbd li \
         main map mark nav ol p picture pre q rb rp rt rtc ruby samp section span sub summary sup tbody \
         tfoot thead time tr ul var video",
    ),
    (Role::Raw, "applet script style"),
    (
        Role::Dropped,
        "base basefont bgsound blink body button canvas datalist dialog embed fieldset form frame \
         frameset head html iframe image input isindex keygen label layer legend link listing marquee \
         math menu meta meter multicol nobr noembed noframes noscript object optgroup option output param \
         plaintext progress select slot spacer svg template textarea title xml xmp",
    ),
];

static ELEMENTS: LazyLock<HashMap<&'static str, Role>> = LazyLock::new(|| {
    let of_role = |(role, names): (Role, &'static str)| names.split(' ').map(move |name| (name, role));
    BY_ROLE.into_iter().flat_map(of_role).collect()
});

/// The element's name in lower case and its role; `None` if it is not HTML.
pub(crate) fn element(name: &str) -> Option<(&'static str, Role)> {
    let mut buffer = [0_u8; 12];
    let lower = buffer.get_mut(..name.len())?;
    lower.copy_from_slice(name.as_bytes());
    lower.make_ascii_lowercase();
    let lower = std::str::from_utf8(lower).ok()?;
    ELEMENTS.get_key_value(lower).map(|(name, role)| (*name, *role))
}

/// Names of the elements that may stay after cleaning.
pub(crate) fn kept_elements() -> impl Iterator<Item = &'static str> {
    let kept = BY_ROLE.into_iter().filter(|(role, _)| !matches!(role, Role::Raw | Role::Dropped));
    kept.flat_map(|(_, names)| names.split(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_has_one_role_and_is_found_in_any_case() {
        let names = BY_ROLE.iter().flat_map(|(_, names)| names.split(' '));
        assert_eq!(names.clone().count(), ELEMENTS.len());
        assert!(names.into_iter().all(|name| element(name).is_some()));
        assert_eq!(element("BlockQuote").map(|(name, _)| name), Some("blockquote"));
        assert_eq!(element("string"), None);
    }
}
