//! Options of commands that write a key of the config file: `job add`, `channel add`, and the questions of `init`.

use stdx::phrase;
use stdx::phrase::Phrase;

use super::lookup::is_variable_name;

/// An option of `job add` or `channel add`.
pub struct Flag {
    /// Without the dashes.
    pub name: &'static str,
    /// The placeholder of its value in the help text.
    pub value: &'static str,
    pub help: fn() -> Phrase,
    pub key: &'static str,
    /// How its value is written.
    pub shape: FlagShape,
    /// Whether the table needs the key.
    pub is_required: bool,
}

/// How the value of a flag is written.
#[derive(Clone, Copy)]
pub enum FlagShape {
    Text,
    /// As a list of texts; the flag may be repeated.
    List,
    /// A reference to the environment variable of that name; the usual name of the variable.
    Variable(&'static str),
    /// The result of this function; the flag may be repeated.
    Made(fn(&[String]) -> Result<toml::Value, Phrase>),
}

impl Flag {
    /// An optional flag with a text value, for the key of the same name.
    pub const fn new(name: &'static str, value: &'static str, help: fn() -> Phrase) -> Self {
        Self { name, value, help, key: name, shape: FlagShape::Text, is_required: false }
    }

    /// A flag that takes the environment variable of a secret, usually called `usual`.
    pub const fn variable(
        name: &'static str,
        key: &'static str,
        usual: &'static str,
        help: fn() -> Phrase,
    ) -> Self {
        Self::new(name, "VARIABLE", help).writes(key).shaped(FlagShape::Variable(usual))
    }

    /// Sets another key than the flag's name.
    pub const fn writes(self, key: &'static str) -> Self {
        Self { key, ..self }
    }

    /// Sets another form of the value.
    pub const fn shaped(self, shape: FlagShape) -> Self {
        Self { shape, ..self }
    }

    /// Makes the key required.
    pub const fn required(self) -> Self {
        Self { is_required: true, ..self }
    }

    /// Whether it may be repeated.
    pub fn is_list(&self) -> bool {
        matches!(self.shape, FlagShape::List | FlagShape::Made(_))
    }

    /// The value if the flag is not given: the usual variable, for a secret that the table needs.
    pub fn usual(&self) -> Option<&'static str> {
        match self.shape {
            FlagShape::Variable(usual) if self.is_required => Some(usual),
            _ => None,
        }
    }

    fn render(&self, given: &[String]) -> Result<toml::Value, Phrase> {
        let last = || given.last().map(String::as_str).unwrap_or_default();
        Ok(match self.shape {
            FlagShape::Text => toml::Value::from(last()),
            FlagShape::List => toml::Value::from(given.to_vec()),
            FlagShape::Variable(_) if is_variable_name(last()) => {
                toml::Value::from(format!("${{{}}}", last()))
            }
            // Do not repeat the value, which may be the secret itself; and a form on a page must not name a file of
            // this machine.
            FlagShape::Variable(usual) => {
                return Err(phrase!(
                    "`{flag}` takes the name of an environment variable, such as {usual}",
                    "`{flag}` には環境変数の名前を指定します（例：{usual}）",
                    flag = self.name
                ));
            }
            FlagShape::Made(make) => make(given)?,
        })
    }

    /// The keys that `flags` write, in order; `given` has the values of the flags that were used.
    pub fn keys(
        flags: &[Flag],
        given: &[(&Flag, Vec<String>)],
    ) -> Result<Vec<(String, toml::Value)>, Phrase> {
        let mut keys = Vec::new();
        for flag in flags {
            let named = given.iter().find(|(known, _)| known.name == flag.name);
            let values = named.map(|(_, values)| values.clone());
            if let Some(values) = values.or_else(|| flag.usual().map(|usual| vec![usual.to_owned()])) {
                keys.push((flag.key.to_owned(), flag.render(&values)?));
            }
        }
        Ok(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn flag(name: &'static str, shape: FlagShape, is_required: bool) -> Flag {
        Flag { name, value: "X", help: || Phrase::verbatim(""), key: name, shape, is_required }
    }

    #[test]
    fn keys_come_in_the_order_of_the_flags_and_a_needed_secret_has_its_usual_name() {
        let flags = [
            flag("host", FlagShape::Text, true),
            flag("token", FlagShape::Variable("HOST_TOKEN"), true),
            flag("password", FlagShape::Variable("PASSWORD"), false),
            flag("to", FlagShape::List, true),
        ];
        let values = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let written = |given: &[(usize, &[&str])]| -> String {
            let given: Vec<_> = given.iter().map(|(at, list)| (&flags[*at], values(list))).collect();
            let keys = Flag::keys(&flags, &given).unwrap();
            keys.iter().map(|(key, value)| format!("{key} = {value}\n")).collect()
        };
        assert_eq!(
            written(&[(3, &["a", "b"]), (0, &["x", "y"])]),
            "host = \"y\"\ntoken = \"${HOST_TOKEN}\"\nto = [\"a\", \"b\"]\n"
        );
        assert_eq!(written(&[(1, &["MINE"])]), "token = \"${MINE}\"\n");
        assert_eq!(written(&[(2, &["P"])]), "token = \"${HOST_TOKEN}\"\npassword = \"${P}\"\n");
    }

    #[test]
    fn a_secret_is_named_by_a_variable_and_by_nothing_else() {
        let token = flag("token-env", FlagShape::Variable("HOST_TOKEN"), true);
        for wrong in ["file:/etc/passwd", "cred:key", "A}${file:/etc/passwd", "glpat-secret", "", "1A"] {
            let said = token.render(&[wrong.to_owned()]).unwrap_err().to_string();
            assert_eq!(said, "`token-env` takes the name of an environment variable, such as HOST_TOKEN");
        }
    }
}
