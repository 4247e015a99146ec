//! The elements of HTML, and what the tree builder does with each.

/// What the tree builder does with an element, as far as its depth goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Never has content.
    Void,
    /// Is reopened in the next block when it was not closed.
    Formatting,
    /// Ends tags do not reach through it.
    Boundary,
    /// Everything else that may stay.
    Plain,
    /// Goes together with what it holds.
    Raw,
    /// HTML, but only its content stays.
    Dropped,
}

/// Every element of HTML with its role, sorted by name.
const ELEMENTS: &[(&str, Role)] = {
    use Role::{Boundary, Dropped, Formatting, Plain, Raw, Void};
    &[
        ("a", Formatting),
        ("abbr", Plain),
        ("acronym", Plain),
        ("address", Plain),
        ("applet", Raw),
        ("area", Void),
        ("article", Plain),
        ("aside", Plain),
        ("audio", Plain),
        ("b", Formatting),
        ("base", Dropped),
        ("basefont", Dropped),
        ("bdi", Plain),
        ("bdo", Plain),
        ("bgsound", Dropped),
        ("big", Formatting),
        ("blink", Dropped),
        ("blockquote", Plain),
        ("body", Dropped),
        ("br", Void),
        ("button", Dropped),
        ("canvas", Dropped),
        ("caption", Boundary),
        ("center", Plain),
        ("cite", Plain),
        ("code", Formatting),
        ("col", Void),
        ("colgroup", Plain),
        ("data", Plain),
        ("datalist", Dropped),
        ("dd", Plain),
        ("del", Plain),
        ("details", Plain),
        ("dfn", Plain),
        ("dialog", Dropped),
        ("dir", Plain),
        ("div", Plain),
        ("dl", Plain),
        ("dt", Plain),
        ("em", Formatting),
        ("embed", Dropped),
        ("fieldset", Dropped),
        ("figcaption", Plain),
        ("figure", Plain),
        ("font", Formatting),
        ("footer", Plain),
        ("form", Dropped),
        ("frame", Dropped),
        ("frameset", Dropped),
        ("h1", Plain),
        ("h2", Plain),
        ("h3", Plain),
        ("h4", Plain),
        ("h5", Plain),
        ("h6", Plain),
        ("head", Dropped),
        ("header", Plain),
        ("hgroup", Plain),
        ("hr", Void),
        ("html", Dropped),
        ("i", Formatting),
        ("iframe", Dropped),
        ("image", Dropped),
        ("img", Void),
        ("input", Dropped),
        ("ins", Plain),
        ("isindex", Dropped),
        ("kbd", Plain),
        ("keygen", Dropped),
        ("label", Dropped),
        ("layer", Dropped),
        ("legend", Dropped),
        ("li", Plain),
        ("link", Dropped),
        ("listing", Dropped),
        ("main", Plain),
        ("map", Plain),
        ("mark", Plain),
        ("marquee", Dropped),
        ("math", Dropped),
        ("menu", Dropped),
        ("meta", Dropped),
        ("meter", Dropped),
        ("multicol", Dropped),
        ("nav", Plain),
        ("nobr", Dropped),
        ("noembed", Dropped),
        ("noframes", Dropped),
        ("noscript", Dropped),
        ("object", Dropped),
        ("ol", Plain),
        ("optgroup", Dropped),
        ("option", Dropped),
        ("output", Dropped),
        ("p", Plain),
        ("param", Dropped),
        ("picture", Plain),
        ("plaintext", Dropped),
        ("pre", Plain),
        ("progress", Dropped),
        ("q", Plain),
        ("rb", Plain),
        ("rp", Plain),
        ("rt", Plain),
        ("rtc", Plain),
        ("ruby", Plain),
        ("s", Formatting),
        ("samp", Plain),
        ("script", Raw),
        ("section", Plain),
        ("select", Dropped),
        ("slot", Dropped),
        ("small", Formatting),
        ("source", Void),
        ("spacer", Dropped),
        ("span", Plain),
        ("strike", Formatting),
        ("strong", Formatting),
        ("style", Raw),
        ("sub", Plain),
        ("summary", Plain),
        ("sup", Plain),
        ("svg", Dropped),
        ("table", Boundary),
        ("tbody", Plain),
        ("td", Boundary),
        ("template", Dropped),
        ("textarea", Dropped),
        ("tfoot", Plain),
        ("th", Boundary),
        ("thead", Plain),
        ("time", Plain),
        ("title", Dropped),
        ("tr", Plain),
        ("track", Void),
        ("tt", Formatting),
        ("u", Formatting),
        ("ul", Plain),
        ("var", Plain),
        ("video", Plain),
        ("wbr", Void),
        ("xml", Dropped),
        ("xmp", Dropped),
    ]
};

/// The element's name in lower case and its role; `None` when it is no HTML.
pub(crate) fn element(name: &str) -> Option<(&'static str, Role)> {
    let mut buffer = [0_u8; 12];
    let lower = buffer.get_mut(..name.len())?;
    lower.copy_from_slice(name.as_bytes());
    lower.make_ascii_lowercase();
    let lower = std::str::from_utf8(lower).ok()?;
    let at = ELEMENTS.binary_search_by(|(known, _)| (*known).cmp(lower)).ok()?;
    Some(ELEMENTS[at])
}

/// Names of the elements that may stay after cleaning.
pub(crate) fn kept_elements() -> impl Iterator<Item = &'static str> {
    ELEMENTS.iter().filter(|(_, role)| !matches!(role, Role::Raw | Role::Dropped)).map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_sorted_so_that_they_are_found() {
        assert!(ELEMENTS.is_sorted_by(|(a, _), (b, _)| a < b));
        assert!(ELEMENTS.iter().all(|(name, _)| element(name).is_some()));
        assert_eq!(element("BlockQuote").map(|(name, _)| name), Some("blockquote"));
        assert_eq!(element("string"), None);
    }
}
