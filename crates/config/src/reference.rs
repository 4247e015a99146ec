//! Generates the reference page of the config file from the structs of its tables.

use std::fmt::Write;

use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::kind::{Kind, TableKind};
use super::overrides::list_keys;
use super::schema::{drop_null, list_tables};

const HEAD: &str = "# The config file

This page is generated from the program; a test fails when it is out of date.

One file, `tsuzuki.toml`, is looked for in this order: `-c FILE`, `$TSUZUKI_CONFIG`, the working directory,
`$XDG_CONFIG_HOME/tsuzuki/` (usually `~/.config/tsuzuki/`), `/etc/tsuzuki/` (or the directories of `$XDG_CONFIG_DIRS`). An unknown key or a bad value is an error that names
the line, the column and, where one is near, the word that was meant. `tsuzuki check` reports all of them at once.

## How values are written

| value | written as |
|---|---|
| duration | `\"90s\"`, `\"15m\"`, `\"1h30m\"`, `\"7d\"`, `\"2w\"`; never zero |
| size | `\"50 MiB\"` (1024 × 1024), `\"16MB\"` (1000 × 1000), or a number of bytes |
| time zone | an IANA name: `\"Asia/Tokyo\"`, `\"UTC\"` |
| time of day | `\"09:30\"` |
| quiet hours | `\"22:00-07:00\"`; may pass midnight |
| cron schedule | five fields: minute, hour, day of month, month, day of week |
| web address | begins with `https://` or `http://`; carries no user name or password |
| secret | `\"${NAME}\"` from the environment, `\"${file:path}\"` from a file beside the config, `\"${cred:name}\"` from systemd; text may stand around it, and `$${` stands for `${` |
";

/// The page, in Markdown.
pub fn render_reference(kinds: &[Kind]) -> String {
    let mut generator = SchemaSettings::draft07().into_generator();
    let tables: Vec<_> = TableKind::ALL
        .iter()
        .copied()
        .map(|place| (place, list_tables(place, kinds, &mut generator)))
        .collect();
    let mut definitions = Value::Object(generator.take_definitions(true));
    drop_null(&mut definitions);
    let mut page = ReferencePage { text: HEAD.to_owned(), definitions };
    page.add_overrides(kinds);
    for (place, tables) in tables {
        page.add_place(place);
        for mut table in tables {
            drop_null(&mut table.schema);
            if let Some(kind) = table.kind {
                page.add(format_args!("\n### {} with `kind = \"{kind}\"`\n", place.header("NAME")));
            }
            // The common keys of jobs are listed once, above.
            let hide_head = place == TableKind::Job;
            page.add_table(&table.schema, hide_head);
            for (key, why) in table.unused {
                page.add(format_args!("\n`{key}` is refused here: {}.\n", why()));
            }
        }
    }
    page.text
}

struct ReferencePage {
    text: String,
    definitions: Value,
}

impl ReferencePage {
    fn add(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.text.write_fmt(text);
    }

    fn add_overrides(&mut self, kinds: &[Kind]) {
        self.text.push_str("\n## Environment variables that replace keys\n\n| variable | key |\n|---|---|\n");
        for (env, key) in list_keys(kinds) {
            self.add(format_args!("| `{env}` | `{key}` |\n"));
        }
    }

    fn add_place(&mut self, place: TableKind) {
        let about = match place {
            TableKind::App => "What holds for everything.",
            TableKind::Store => "Where everything is kept.",
            TableKind::Web => "The pages that `serve` shows.",
            TableKind::Quota => "How many requests a provider may receive in a day.",
            TableKind::Llm => "Models that jobs may ask.",
            TableKind::Channel => "Where messages are sent.",
            TableKind::Defaults => "Keys that hold for every job that does not set them itself.",
            TableKind::Job => {
                "What is collected. These keys are the same for every kind; the kind's own follow below."
            }
        };
        self.add(format_args!("\n## {}\n\n{about}\n", place.header("NAME")));
        if place == TableKind::Job {
            let mut generator = SchemaSettings::draft07().into_generator();
            let mut head = super::model::job_head_schema(&mut generator);
            drop_null(&mut head);
            self.add_table(&head, false);
        }
    }

    /// The keys of a table, then those of the tables inside it.
    fn add_table(&mut self, schema: &Value, hide_head: bool) {
        let mut rows = Vec::new();
        self.list_rows(schema, "", hide_head, 0, &mut rows);
        if rows.is_empty() {
            self.text.push_str("\nIt has no keys of its own.\n");
            return;
        }
        self.text.push_str("\n| key | value | default | meaning |\n|---|---|---|---|\n");
        for row in rows {
            self.add(format_args!("| {row} |\n"));
        }
    }

    fn list_rows(&self, schema: &Value, prefix: &str, hide_head: bool, depth: usize, rows: &mut Vec<String>) {
        let required =
            |key: &str| schema["required"].as_array().is_some_and(|keys| keys.iter().any(|one| one == key));
        let Some(properties) = schema["properties"].as_object() else { return };
        for (key, property) in properties {
            if key == "kind" && prefix.is_empty() && property.get("const").is_some()
                || (hide_head && super::model::HEAD_KEYS.contains(&key.as_str()))
            {
                continue;
            }
            let (meaning, default) = split_default(property["description"].as_str().unwrap_or_default());
            let default = match &property["default"] {
                Value::Null if required(key) => "required".to_owned(),
                // Defaults that depend on the environment are described in words.
                _ if !default.is_empty() => default,
                Value::Null => default,
                default => format!("`{default}`"),
            };
            let cells = [format!("`{prefix}{key}`"), self.describe(property), default, meaning];
            rows.push(cells.map(|cell| cell.replace('\n', " ").replace('|', "\\|")).join(" | "));
            if depth < 3 {
                let (inner, step) = match self.resolve(property) {
                    inner if inner["type"] == "array" => (self.resolve(&inner["items"]), "[]."),
                    inner => (inner, "."),
                };
                self.list_rows(inner, &format!("{prefix}{key}{step}"), false, depth + 1, rows);
            }
        }
    }

    /// Resolves a `$ref`.
    fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        let reference = schema["$ref"].as_str().or_else(|| schema["allOf"][0]["$ref"].as_str());
        match reference.and_then(|path| path.rsplit('/').next()) {
            Some(name) => &self.definitions[name],
            None if schema["allOf"][0].is_object() => &schema["allOf"][0],
            None => schema,
        }
    }

    /// The type of a key's value, in a few words.
    fn describe(&self, property: &Value) -> String {
        let schema = self.resolve(property);
        if let Some(choices) = list_choices(schema) {
            return choices;
        }
        match schema["type"].as_str() {
            // Our own value types have a description; that of a plain text is the meaning of its key.
            Some("string") if !std::ptr::eq(schema, property) => {
                let about = schema["description"].as_str().unwrap_or("text");
                about
                    .split([':', ';'])
                    .next()
                    .unwrap_or(about)
                    .trim_start_matches("a ")
                    .trim_start_matches("A ")
                    .to_owned()
            }
            Some("string") => "text".to_owned(),
            Some("boolean") => "`true` or `false`".to_owned(),
            Some("integer") => "whole number".to_owned(),
            Some("number") => "number".to_owned(),
            Some("array") => format!("list of: {}", self.describe(&schema["items"])),
            Some("object") => "table".to_owned(),
            _ if schema["type"].is_array() => {
                schema["description"].as_str().unwrap_or("value").trim_start_matches("a ").to_owned()
            }
            _ => "value".to_owned(),
        }
    }
}

/// Splits the sentence "Default: …." off a description.
fn split_default(about: &str) -> (String, String) {
    let Some((before, rest)) = about.split_once("Default: ") else {
        return (about.to_owned(), String::new());
    };
    let (default, after) = rest.split_once(". ").or_else(|| rest.split_once(".\n")).unwrap_or((rest, ""));
    (format!("{before}{after}").trim().to_owned(), default.trim_end_matches('.').to_owned())
}

/// The words of an enumeration.
fn list_choices(schema: &Value) -> Option<String> {
    let words: Vec<&Value> = match (&schema["enum"], &schema["oneOf"]) {
        (Value::Array(words), _) => words.iter().collect(),
        (_, Value::Array(choices)) => choices
            .iter()
            .flat_map(|choice| match (&choice["const"], &choice["enum"]) {
                (Value::Null, Value::Array(words)) => words.iter().collect(),
                (Value::Null, _) => Vec::new(),
                (word, _) => vec![word],
            })
            .collect(),
        _ => return None,
    };
    (!words.is_empty()).then(|| words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "))
}
