//! One JSON Schema for the whole file, so that editors complete and check it.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::kind::{Kind, TableKind};
use super::model::{App, Defaults, JobHead, QuotaTable, StoreTable};

/// The schema of a config file with these kinds.
pub fn schema(kinds: &[Kind]) -> Value {
    // All TOML editors support draft 7, and only some of them later drafts.
    let mut generator = SchemaSettings::draft07().into_generator();
    let mut properties = Map::new();
    for place in TableKind::ALL.iter().copied() {
        let tables = list_tables(place, kinds, &mut generator);
        let one = match tables.len() {
            1 => tables.into_iter().next().map(|table| table.schema).unwrap_or_default(),
            _ => json!({ "oneOf": tables.into_iter().map(|table| table.schema).collect::<Vec<_>>() }),
        };
        let schema = match place {
            TableKind::Quota | TableKind::Llm | TableKind::Channel => {
                json!({ "type": "object", "additionalProperties": one })
            }
            TableKind::Job => json!({ "type": "array", "items": one }),
            _ => one,
        };
        properties.insert(place.word().to_owned(), schema);
    }
    let mut schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "tsuzuki.toml",
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
        "definitions": generator.take_definitions(true),
    });
    drop_null(&mut schema);
    schema
}

/// A table of the file: its kind, if it has one, and the schema of all its keys.
pub(super) struct TableSchema {
    pub(super) kind: Option<&'static str>,
    pub(super) schema: Value,
    /// Common keys without effect, and why.
    pub(super) unused: &'static [super::kind::UnusedKey],
}

/// The possible tables at `place`.
pub(super) fn list_tables(
    place: TableKind,
    kinds: &[Kind],
    generator: &mut SchemaGenerator,
) -> Vec<TableSchema> {
    let own = |schema: Value| vec![TableSchema { kind: None, schema, unused: &[] }];
    match place {
        TableKind::App => own(plain::<App>(generator)),
        TableKind::Store => own(plain::<StoreTable>(generator)),
        TableKind::Quota => own(plain::<QuotaTable>(generator)),
        TableKind::Defaults => own(plain::<Defaults>(generator)),
        TableKind::Web | TableKind::Llm | TableKind::Channel | TableKind::Job => {
            let mut tables = Vec::new();
            for kind in kinds.iter().filter(|kind| kind.place == place) {
                let mut schema = Value::from(kind.schema(generator));
                match place {
                    TableKind::Web => {}
                    TableKind::Job => add_head(&mut schema, &plain::<JobHead>(generator)),
                    _ => {
                        add_head(&mut schema, &json!({ "properties": { "kind": {} }, "required": ["kind"] }));
                    }
                }
                let name = (!kind.name.is_empty()).then_some(kind.name);
                if let Some(name) = name {
                    schema["properties"]["kind"] = json!({ "const": name, "description": "What it is." });
                }
                if let Some(properties) = schema["properties"].as_object_mut() {
                    properties.retain(|key, _| kind.unused.iter().all(|(unused, _)| unused != key));
                }
                tables.push(TableSchema { kind: name, schema, unused: kind.unused });
            }
            tables
        }
    }
}

fn plain<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    Value::from(T::json_schema(generator))
}

/// Adds the common keys of a place to those of a kind.
fn add_head(schema: &mut Value, head: &Value) {
    if let (Value::Object(own), Value::Object(head)) = (&mut schema["properties"], &head["properties"]) {
        for (key, value) in head {
            own.entry(key.clone()).or_insert_with(|| value.clone());
        }
    } else {
        schema["properties"] = head["properties"].clone();
    }
    let mut required: Vec<Value> = head["required"].as_array().cloned().unwrap_or_default();
    required.extend(schema["required"].as_array().cloned().unwrap_or_default());
    schema["required"] = Value::Array(required);
}

/// Whether a value is a secret, or a list or table of secrets, or an optional one.
fn is_secret(property: &Value) -> bool {
    property["$ref"].as_str().is_some_and(|path| path.ends_with("/Secret"))
        || ["items", "additionalProperties"].iter().any(|key| property.get(key).is_some_and(is_secret))
        || ["allOf", "anyOf"]
            .iter()
            .any(|key| property[key].as_array().is_some_and(|all| all.iter().any(is_secret)))
}

/// The names of all keys that hold secrets.
pub(super) fn list_secret_keys(kinds: &[Kind]) -> Vec<String> {
    fn walk(schema: &Value, keys: &mut Vec<String>) {
        let Value::Object(object) = schema else { return };
        for (key, property) in object.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if is_secret(property) {
                keys.push(key.clone());
            }
        }
        object.values().for_each(|inner| match inner {
            Value::Array(items) => items.iter().for_each(|item| walk(item, keys)),
            inner => walk(inner, keys),
        });
    }
    let mut keys = Vec::new();
    if !kinds.is_empty() {
        walk(&schema(kinds), &mut keys);
    }
    keys
}

/// TOML has no null: optional keys are simply not required.
pub(super) fn drop_null(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(drop_null),
        Value::Object(object) => {
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|one| one != "null");
                if let [one] = types.as_slice() {
                    let one = one.clone();
                    object.insert("type".to_owned(), one);
                }
            }
            if object.get("default").is_some_and(Value::is_null) {
                object.remove("default");
            }
            if let Some(Value::Array(choices)) = object.get_mut("anyOf") {
                choices.retain(|one| one.get("type").is_none_or(|kind| kind != "null"));
                if let [one] = choices.as_slice() {
                    // Draft 7 ignores other keys beside a `$ref`; with `allOf` the description is used.
                    let one = one.clone();
                    object.remove("anyOf");
                    object.insert("allOf".to_owned(), json!([one]));
                }
            }
            object.values_mut().for_each(drop_null);
        }
        _ => {}
    }
}
