//! The environment as the config sees it: handed in, so that tests need no global variables.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Looks up environment variables.
#[derive(Clone)]
pub struct Env(Variables);

#[derive(Clone)]
enum Variables {
    OfProcess,
    Fixed(Arc<BTreeMap<String, String>>),
}

impl Env {
    /// The environment of this process; a value that is not UTF-8 counts as unset.
    pub fn of_process() -> Self {
        Self(Variables::OfProcess)
    }

    /// An environment with exactly these variables.
    pub fn of<const N: usize>(variables: [(&str, &str); N]) -> Self {
        let owned = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self(Variables::Fixed(Arc::new(owned.into_iter().collect())))
    }

    /// The value of a variable; an empty one counts as unset.
    pub fn find(&self, name: &str) -> Option<String> {
        let value = match &self.0 {
            Variables::OfProcess => std::env::var(name).ok(),
            Variables::Fixed(variables) => variables.get(name).cloned(),
        };
        value.filter(|value| !value.is_empty())
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Env")
    }
}
