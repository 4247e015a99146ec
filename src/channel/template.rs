//! Templates of users: they see only the message, and their run time is limited.

use crate::phrase;
use crate::phrase::Phrase;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior, Value};

/// Steps that a template may take; a post needs a few hundred.
const FUEL: u64 = 50_000;
/// The longest template, in bytes.
const MAX_TEMPLATE_BYTES: usize = 16 * 1024;

/// A template whose syntax was checked with the config.
#[derive(Clone, Debug)]
pub struct Template {
    source: String,
}

impl Template {
    /// Checks the syntax; unknown names only show when it is rendered.
    pub fn new(source: &str) -> Result<Self, Phrase> {
        if source.len() > MAX_TEMPLATE_BYTES {
            return Err(phrase!(
                "the template is longer than 16 KiB",
                "テンプレートが 16 KiB を超えています"
            ));
        }
        let template = Self { source: source.to_owned() };
        template.environment().template_from_str(source).map_err(|error| Self::wrong(&in_words(&error)))?;
        Ok(template)
    }

    /// An error message of the template engine.
    pub fn wrong(error: &str) -> Phrase {
        phrase!("{error}", "テンプレートの誤り：{error}")
    }

    /// Whether the template uses `name`.
    pub(super) fn uses(&self, name: &str) -> bool {
        self.environment()
            .template_from_str(&self.source)
            .is_ok_and(|template| template.undeclared_variables(false).contains(name))
    }

    /// Renders the text; values are inserted as they are, never as template code.
    pub fn render(&self, values: &impl serde::Serialize) -> Result<String, String> {
        let environment = self.environment();
        let rendered = environment
            .template_from_str(&self.source)
            .and_then(|template| template.render(Value::from(Serde(values))));
        rendered.map_err(|error| in_words(&error))
    }

    /// No loader is set, so no files can be included, and no function has side effects.
    fn environment(&self) -> Environment<'_> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        environment.set_fuel(Some(FUEL));
        environment.set_recursion_limit(50);
        environment
    }
}

fn in_words(error: &minijinja::Error) -> String {
    let line = error.line().map(|line| format!(" in line {line}")).unwrap_or_default();
    match error.detail() {
        Some(detail) => format!("{}{line}: {detail}", error.kind()),
        None => format!("{}{line}", error.kind()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(source: &str) -> Result<String, String> {
        Template::new(source)
            .map_err(|why| why.to_string())?
            .render(&serde_json::json!({ "headline": "{{ 1 + 1 }} {% include 'x' %}", "n": [1, 2] }))
    }

    #[test]
    fn values_are_never_template_code() {
        assert_eq!(render("> {{ headline }}").unwrap(), "> {{ 1 + 1 }} {% include 'x' %}");
    }

    #[test]
    fn templates_reach_neither_files_nor_the_network_and_end() {
        assert!(render("{% include '/etc/passwd' %}").is_err());
        assert!(render("{% import 'x' as y %}").is_err());
        assert!(render("{{ environ }}").is_err(), "unknown names are errors");
        assert!(
            render("{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}").is_err()
        );
        assert!(render("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}").is_err());
        assert!(Template::new("{{ headline").is_err());
    }

    #[test]
    fn the_names_that_a_template_uses_are_known() {
        let template = Template::new("{{ headline }} {% if link %}{{ link }}{% endif %}").unwrap();
        assert!(template.uses("link") && !template.uses("summary"));
    }
}
