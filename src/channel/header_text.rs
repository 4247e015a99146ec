//! Text that is safe in a header: always one line.

use std::fmt;

/// One line without control characters, so that no value can add a header.
///
/// Every value is cleaned, also when it is read from the database.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(transparent)]
pub struct HeaderText(String);

impl HeaderText {
    /// Cleans `text`: line ends and other white space become single spaces, control characters are removed.
    pub fn new(text: &str) -> Self {
        Self(crate::text::one_line(text))
    }

    /// The cleaned line.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HeaderText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for HeaderText {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl<'de> serde::Deserialize<'de> for HeaderText {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self::new(&text))
    }
}

impl schemars::JsonSchema for HeaderText {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "HeaderText".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "description": "one line of text" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_begins_a_second_header() {
        for hostile in
            ["a\r\nBcc: x@example.com", "a\nb", "a\rb", "a\0b", "a\u{85}b", "a\u{2028}b", "\u{b}a\u{c}b"]
        {
            let line = HeaderText::new(hostile);
            assert!(
                !line.as_str().chars().any(|c| c.is_control() || c == '\u{2028}'),
                "{hostile:?} → {line:?}"
            );
            let stored: HeaderText = serde_json::from_value(hostile.into()).unwrap();
            assert_eq!(stored, line, "reading back cleans too");
        }
        assert_eq!(HeaderText::new(" 新刊の\r\n お知らせ ").as_str(), "新刊の お知らせ");
    }
}
