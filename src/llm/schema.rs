//! The shape of an answer, with its fields in the order in which a model should think: a verdict after its reason.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value as Json, json};

/// The fields of an answer; all of them are required, and no others are allowed.
///
/// Models write the fields in the order of the schema, and a JSON map would sort them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Schema(pub(super) &'static [(&'static str, FieldType)]);

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldType {
    Text,
    Texts,
    OneOf(&'static [&'static str]),
}

impl Schema {
    fn names(self) -> Vec<&'static str> {
        self.0.iter().map(|(name, _)| *name).collect()
    }

    /// In Gemini's format: types in capitals, the order in a key of its own, and no other keywords.
    pub(super) fn to_gemini(self) -> Json {
        let properties: Json = self
            .0
            .iter()
            .map(|(name, field)| ((*name).to_owned(), field.to_json(str::to_uppercase)))
            .collect();
        json!({
            "type": "OBJECT",
            "properties": properties,
            "required": self.names(),
            "propertyOrdering": self.names(),
        })
    }
}

impl FieldType {
    fn to_json(self, write: impl Fn(&str) -> String) -> Json {
        match self {
            FieldType::Text => json!({ "type": write("string") }),
            FieldType::Texts => json!({ "type": write("array"), "items": { "type": write("string") } }),
            FieldType::OneOf(words) => json!({ "type": write("string"), "enum": words }),
        }
    }
}

/// As JSON Schema, where the order of the text is the order of the fields.
impl Serialize for Schema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Properties(Schema);
        impl Serialize for Properties {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer
                    .collect_map(self.0.0.iter().map(|(name, field)| (name, field.to_json(str::to_owned))))
            }
        }
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("type", "object")?;
        map.serialize_entry("properties", &Properties(*self))?;
        map.serialize_entry("required", &self.names())?;
        map.serialize_entry("additionalProperties", &false)?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: Schema = Schema(&[
        ("reason", FieldType::Text),
        ("points", FieldType::Texts),
        ("kind", FieldType::OneOf(&["a", "b"])),
    ]);

    #[test]
    fn both_providers_are_told_the_order() {
        let theirs = json!({ "type": "OBJECT",
            "properties": { "reason": { "type": "STRING" }, "points": { "type": "ARRAY", "items": { "type": "STRING" } },
                            "kind": { "type": "STRING", "enum": ["a", "b"] } },
            "required": ["reason", "points", "kind"], "propertyOrdering": ["reason", "points", "kind"] });
        assert_eq!(SCHEMA.to_gemini(), theirs);
        assert_eq!(
            serde_json::to_string(&SCHEMA).unwrap(),
            r#"{"type":"object","properties":{"reason":{"type":"string"},"points":{"items":{"type":"string"},"type":"array"},"kind":{"enum":["a","b"],"type":"string"}},"required":["reason","points","kind"],"additionalProperties":false}"#
        );
    }
}
