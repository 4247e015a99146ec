//! Environment variables that override keys of the file, each declared by the owner of its key.

use std::ops::Range;

use super::diagnostic::{ConfigSource, Problem, Problems};
use super::env::Env;
use super::kind::{Kind, TableKind};
use super::lookup::Surroundings;
use super::secret_url::SecretUrl;
use super::tree::{Data, TomlEntry, TomlTable, TomlValue};
use super::value::{BadValue, Zone};
use stdx::phrase;

/// An environment variable that overrides a key.
#[derive(Clone, Copy)]
pub struct EnvOverride {
    pub env: &'static str,
    /// The key: a path in the tables of its kind, or from the top of the file.
    key: &'static str,
    from_top: bool,
    value: Option<MakeValue>,
}

/// Converts the value of a variable, given the present text of the key.
type MakeValue = fn(&str, Option<&str>) -> Result<toml::Value, BadValue>;

impl EnvOverride {
    /// `env` overrides `key` in the tables of a kind: in every job, in the only channel or LLM of that kind, in
    /// `[web]`.
    ///
    /// With several channels of the kind it is ambiguous and overrides none.
    pub const fn new(env: &'static str, key: &'static str, value: MakeValue) -> Self {
        Self { env, key, from_top: false, value: Some(value) }
    }

    /// The same for a secret: a reference to the variable is written, not its value.
    pub const fn secret(env: &'static str, key: &'static str) -> Self {
        Self { env, key, from_top: false, value: None }
    }

    /// The same with a key that is a path from the top of the file, such as `quota.NAME.per_day`.
    pub const fn from_top(mut self) -> Self {
        self.from_top = true;
        self
    }

    fn make_value(&self, value: &str, old: Option<&str>) -> Result<toml::Value, BadValue> {
        match self.value {
            Some(make) => make(value, old),
            None => Ok(format!("${{{}}}", self.env).into()),
        }
    }
}

/// Variables without a kind.
const OF_ALL: &[EnvOverride] = &[
    EnvOverride::new("APP_TZ", "app.timezone", |value, _| value.parse().map(|_: Zone| value.into()))
        .from_top(),
    EnvOverride::new("TSUZUKI_STORE_URL", "store.url", |value, _| {
        let nowhere = Surroundings { directory: ".".into(), env: Env::of([]) };
        let url = SecretUrl::parse(value, &nowhere).map_err(|err| BadValue::new(err.phrase().clone()))?;
        url.check().map_err(|err| BadValue::new(err.phrase()))?;
        Ok(value.into())
    })
    .from_top(),
];

/// Every variable that overrides a key, with its kind.
fn list(kinds: &[Kind]) -> impl Iterator<Item = (Option<&Kind>, &'static EnvOverride)> {
    let of_kinds = kinds.iter().flat_map(|kind| kind.env.iter().map(move |over| (Some(kind), over)));
    OF_ALL.iter().map(|over| (None, over)).chain(of_kinds)
}

/// Every variable and the key that it overrides, for people.
pub(super) fn list_keys(kinds: &[Kind]) -> impl Iterator<Item = (&'static str, String)> {
    list(kinds).map(|(kind, over)| {
        let key = match kind.filter(|_| !over.from_top).map(|kind| kind.place) {
            Some(place @ (TableKind::Channel | TableKind::Llm)) => {
                format!("{}.NAME.{}", place.word(), over.key)
            }
            Some(place) => format!("{}.{}", place.word(), over.key),
            None => over.key.to_owned(),
        };
        (over.env, key)
    })
}

/// Writes the overrides into the tables of the file before they are parsed.
pub(super) fn write(root: &mut TomlTable, kinds: &[Kind], env: &Env) -> Problems {
    let mut problems = Problems::default();
    for ((kind, over), (_, key)) in list(kinds).zip(list_keys(kinds)) {
        let Some(value) = env.find(over.env) else { continue };
        let written = over.make_value(&value, None).and_then(|_| {
            let mut tables = list_tables(root, kind.filter(|_| !over.from_top));
            tables.iter_mut().try_for_each(|(table, span)| write_one(over, &value, table, span))
        });
        if let Err(bad) = written {
            let source = ConfigSource::new(format!("${}", over.env), value.as_str());
            let mut problem = Problem::at(&source, 0..value.len(), bad.message().clone());
            problem.label =
                Some(phrase!("the environment sets `{key}`", "環境変数が `{key}` を設定しています"));
            problem.hint = bad.hint().cloned();
            problems.push(problem);
        }
    }
    problems
}

/// The tables of a kind, or the whole file.
fn list_tables<'a>(root: &'a mut TomlTable, kind: Option<&Kind>) -> Vec<(&'a mut TomlTable, Range<usize>)> {
    let Some(kind) = kind else { return vec![(root, 0..0)] };
    let of_kind = |value: &'a mut TomlValue| match &mut value.data {
        Data::TomlTable(table) if table.find_text("kind") == Some(kind.name) => {
            Some((table, value.span.clone()))
        }
        _ => None,
    };
    let key = kind.place.word();
    match kind.place {
        TableKind::Job => match root.find_mut(key).map(|value| &mut value.data) {
            Some(Data::Array(jobs)) => jobs.iter_mut().filter_map(of_kind).collect(),
            _ => Vec::new(),
        },
        TableKind::Channel | TableKind::Llm => match root.find_mut(key).map(|value| &mut value.data) {
            Some(Data::TomlTable(named)) => {
                let tables: Vec<_> = named.list_mut().filter_map(of_kind).collect();
                if tables.len() == 1 { tables } else { Vec::new() }
            }
            _ => Vec::new(),
        },
        _ => inner_table(root, key, &(0..0)).map(|table| (table, 0..0)).into_iter().collect(),
    }
}

fn write_one(
    over: &EnvOverride,
    value: &str,
    table: &mut TomlTable,
    span: &Range<usize>,
) -> Result<(), BadValue> {
    let (above, last) =
        over.key.rsplit_once('.').map_or((None, over.key), |(above, last)| (Some(above), last));
    let mut steps = above.into_iter().flat_map(|above| above.split('.'));
    // A wrong type is reported elsewhere.
    let Some(table) = steps.try_fold(table, |table, step| inner_table(table, step, span)) else {
        return Ok(());
    };
    let value = over.make_value(value, table.find_text(last))?;
    put(table, last, data_of(value, span), span);
    Ok(())
}

fn data_of(value: toml::Value, span: &Range<usize>) -> Data {
    match value {
        toml::Value::String(text) => Data::Text(text.into()),
        toml::Value::Array(items) => {
            let item = |item| TomlValue { span: span.clone(), data: data_of(item, span) };
            Data::Array(items.into_iter().map(item).collect())
        }
        plain => Data::Plain(plain.to_string().into()),
    }
}

/// The table at `key`, created if it is missing.
fn inner_table<'a>(table: &'a mut TomlTable, key: &str, span: &Range<usize>) -> Option<&'a mut TomlTable> {
    if table.find(key).is_none() {
        put(table, key, Data::TomlTable(TomlTable::default()), span);
    }
    match &mut table.find_mut(key)?.data {
        Data::TomlTable(inner) => Some(inner),
        _ => None,
    }
}

fn put(table: &mut TomlTable, key: &str, data: Data, span: &Range<usize>) {
    let value = TomlValue { span: span.clone(), data };
    table.put(TomlEntry { key: key.into(), key_span: span.clone(), value });
}
