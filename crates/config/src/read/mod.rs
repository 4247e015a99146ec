//! Reads the whole file: which tables there are, what they share, and how they refer to each other.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use toml::de::DeTable;

use crate::diagnostic::{Problem, Problems, Severity, Source};
use crate::env::Env;
use crate::explain::list_homes;
use crate::kind::{Kind, TableKind};
use crate::lenient::read_lenient;
use crate::model::{App, HEAD_KEYS, Quota, QuotaTable, Store, StoreTable};
use crate::secret_context::Surroundings;
use crate::secret_url::SecretUrl;
use crate::section::Section;
use crate::tree::{Data, Table, Value};
use crate::{Config, SecretUse, overrides};
use stdx::id::JobName;
use stdx::text::nearest;

mod jobs;

/// Errors of the parser that are looked at, at most: a file that is no TOML has one in every line.
const MOST_SYNTAX_ERRORS: usize = 100;

/// Unknown keys at the top of the file that are told, at most.
const MOST_UNKNOWN_KEYS: usize = 100;

/// Reads `source` and checks it as far as the `kinds` are known.
pub(crate) fn read_file(source: Source, kinds: &'static [Kind], env: &Env) -> (Option<Config>, Problems) {
    let (root, errors) = DeTable::parse_recoverable(source.text());
    if !errors.is_empty() {
        return (None, list_syntax_errors(&source, &errors));
    }
    let mut root = Table::from_parsed(root.into_inner());
    let directory = source.path().parent().filter(|path| !path.as_os_str().is_empty());
    let secret_context =
        Surroundings { directory: directory.unwrap_or(Path::new(".")).to_owned(), env: env.clone() };
    let problems = overrides::write(&mut root, kinds, env);
    let mut reader = Reader {
        root,
        source,
        kinds,
        secret_context,
        problems,
        warnings: Problems::default(),
        secrets: Vec::new(),
        names: BTreeMap::new(),
    };
    let config = reader.read_root();
    let config = Config { warnings: reader.warnings.in_order().bounded(), secrets: reader.secrets, ..config };
    (Some(config), reader.problems.in_order().bounded())
}

fn list_syntax_errors(source: &Source, errors: &[toml::de::Error]) -> Problems {
    let mut problems = errors.iter().map(|err| syntax_error(source, err)).collect::<Problems>().in_order();
    // Counting lines takes a look at all that stands before.
    problems.truncate(MOST_SYNTAX_ERRORS);
    // One slip often upsets the parser again in the same line and the next ones; the first few say enough.
    problems.keep_first_of_each_line();
    problems.truncate(5);
    problems
}

fn syntax_error(source: &Source, err: &toml::de::Error) -> Problem {
    let text = source.text();
    let span = err.span().unwrap_or(0..0);
    let rest = text.get(span.start..).unwrap_or_default();
    let at_line_end = rest.is_empty() || rest.starts_with(['\r', '\n']);
    if at_line_end && (err.message().contains("basic string") || err.message().contains("literal string")) {
        return Problem::at(source, span.start..span.start, "a text in quotes is not closed in its line")
            .with_label("the closing quote is missing");
    }
    Problem::at(source, if at_line_end { span.start..span.start } else { span }, err.message())
}

struct Reader {
    root: Table,
    source: Source,
    kinds: &'static [Kind],
    secret_context: Surroundings,
    problems: Problems,
    warnings: Problems,
    secrets: Vec<SecretUse>,
    /// The jobs so far, with the places that name them.
    names: BTreeMap<JobName, Problem>,
}

impl Reader {
    fn read_root(&mut self) -> Config {
        self.check_root_keys();
        let app: App = self.read_table(TableKind::App).unwrap_or_default();
        self.check_header_texts(&app);
        let store: StoreTable = self.read_table(TableKind::Store).unwrap_or_default();
        let fallback = || SecretUrl::parse("sqlite:tsuzuki.db", &self.secret_context).ok();
        let mut config = Config {
            path: self.source.path().to_owned(),
            app,
            store: Store {
                url: store.url.or_else(fallback).expect("the fallback has no reference that could be wrong"),
                directory: self.secret_context.directory.clone(),
                keep_history: store.keep_history,
            },
            web: self.find_section(TableKind::Web),
            quotas: BTreeMap::new(),
            llms: Vec::new(),
            channels: Vec::new(),
            jobs: Vec::new(),
            warnings: Problems::default(),
            secrets: Vec::new(),
            source: self.source.clone(),
        };
        if let Some(web) = self.check_by_kind(config.web.clone()) {
            config.web = web;
        }
        config.quotas = self.read_quotas(&config.app);
        config.llms = self.read_named(TableKind::Llm);
        config.channels = self.read_named(TableKind::Channel);
        config.jobs = self.read_jobs(&config);
        config
    }

    /// What goes into a request header has to fit into one.
    fn check_header_texts(&mut self, app: &App) {
        let section = self.find_section(TableKind::App);
        for (key, text) in [("user_agent", &app.user_agent), ("contact", &app.contact)] {
            let Some(text) = text else { continue };
            if text.trim().is_empty() || !text.chars().all(|c| c == ' ' || c.is_ascii_graphic()) {
                let message = format!("`{key}` goes into request headers: plain ASCII, one line, not empty");
                self.problems.push(section.problem(key, message));
            }
        }
    }

    fn check_root_keys(&mut self) {
        let known = TableKind::ALL.map(TableKind::key);
        let unknown = self.root.list().iter().filter(|entry| !known.contains(&&*entry.key));
        let mut unknown: Vec<_> = unknown.collect();
        unknown.sort_by_key(|entry| entry.key_span.start);
        if let Some(entry) = unknown.get(MOST_UNKNOWN_KEYS) {
            let count = unknown.len() - MOST_UNKNOWN_KEYS;
            let message = format!("{count} more keys from here on are unknown");
            self.problems.push(Problem::at(&self.source, entry.key_span.clone(), message));
        }
        for entry in unknown.into_iter().take(MOST_UNKNOWN_KEYS) {
            let key = &*entry.key;
            let problem = Problem::at(&self.source, entry.key_span.clone(), format!("unknown key `{key}`"));
            let problem = match nearest(key, known) {
                Some(near) => {
                    let place = TableKind::ALL.into_iter().find(|place| place.key() == near);
                    let header = place.map_or(String::new(), |place| place.header("NAME"));
                    problem
                        .with_label(format!("did you mean `{near}`?"))
                        .with_hint(format!("write `{header}`"))
                }
                None => match list_homes(key, self.kinds).as_slice() {
                    [] => problem.with_hint(format!("tables that belong here: {}", known.join(", "))),
                    homes => problem.with_hint(format!("`{key}` belongs in {}", homes.join(" or "))),
                },
            };
            self.problems.push(problem);
        }
    }

    fn read_table<T: DeserializeOwned>(&mut self, place: TableKind) -> Option<T> {
        let section = self.find_section(place);
        self.read_section(&section)
    }

    fn read_section<T: DeserializeOwned>(&mut self, section: &Section) -> Option<T> {
        self.read_mended(section).0
    }

    /// The same, with the keys that it was read from, if anything was wrong with the section.
    fn read_mended<T: DeserializeOwned>(&mut self, section: &Section) -> (Option<T>, Option<Table>) {
        let read = read_lenient(section);
        self.problems.extend(read.problems);
        self.note_secrets(read.secrets);
        (read.value, read.repaired)
    }

    /// The table at the top of the file; an empty one when it is not there.
    fn find_section(&mut self, place: TableKind) -> Section {
        let (span, table) = match self.root.find(place.key()) {
            None => (0..0, Table::default()),
            Some(Value { span, data: Data::Table(table) }) => (span.clone(), table.clone()),
            Some(value) => {
                let message = format!("`{}` is a table, not {}", place.key(), value.type_name());
                let hint = format!("write `{}` and its keys below", place.header("NAME"));
                self.problems.push(Problem::at(&self.source, value.span.clone(), message).with_hint(hint));
                (0..0, Table::default())
            }
        };
        self.make_section(place, String::new(), span, table)
    }

    fn make_section(&self, place: TableKind, name: String, span: Range<usize>, table: Table) -> Section {
        let kind = match table.find("kind").map(|value| &value.data) {
            Some(Data::Text(kind)) => kind.to_string(),
            _ => String::new(),
        };
        let taken: &[&str] = match place {
            TableKind::Job => HEAD_KEYS,
            TableKind::Channel | TableKind::Llm => &["kind"],
            _ => &[],
        };
        Section {
            name,
            kind,
            place,
            source: self.source.clone(),
            span,
            table: Arc::new(table),
            taken,
            kinds: self.kinds,
            secret_context: self.secret_context.clone(),
        }
    }

    /// The tables `[place.NAME]`.
    fn list_named(&mut self, place: TableKind) -> Vec<Section> {
        let outer = self.find_section(place);
        let mut sections = Vec::new();
        for entry in outer.table.list() {
            let name = &entry.key;
            let Data::Table(table) = &entry.value.data else {
                let message = format!("`{name}` stands directly in `[{}]`", place.key());
                self.problems.push(
                    Problem::at(&self.source, entry.key_span.clone(), message).with_hint(format!(
                        "give the {} a name: `{}`",
                        place.word(),
                        place.header("NAME")
                    )),
                );
                continue;
            };
            if let Err(err) = name.parse::<JobName>() {
                self.problems.push(Problem::at(&self.source, entry.key_span.clone(), err.to_string()));
                continue;
            }
            sections.push(self.make_section(
                place,
                name.to_string(),
                entry.value.span.clone(),
                table.clone(),
            ));
        }
        sections
    }

    fn read_quotas(&mut self, app: &App) -> BTreeMap<String, Quota> {
        let sections = self.list_named(TableKind::Quota);
        let mut quotas = BTreeMap::new();
        for section in sections {
            if let Some(table) = self.read_section::<QuotaTable>(&section) {
                let zone = table.timezone.unwrap_or_else(|| app.timezone.clone());
                let quota = Quota { per_day: table.per_day, day_starts: table.day_starts, zone };
                quotas.insert(section.name, quota);
            }
        }
        quotas
    }

    fn read_named(&mut self, place: TableKind) -> Vec<Section> {
        let sections = self.list_named(place);
        let checked = |section: Section| match self.check_kind(section.clone()) {
            Some(section) => {
                self.check_unused(&section, &section.table);
                self.check_by_kind(section)
            }
            None => self.stand_in_for(section),
        };
        sections.into_iter().filter_map(checked).collect()
    }

    /// A section of any kind in place of one whose kind is not known, for those who name it.
    fn stand_in_for(&self, section: Section) -> Option<Section> {
        let kind = self.kinds.iter().find(|kind| kind.place == section.place)?;
        let empty = Section { kind: kind.name.to_owned(), table: Arc::default(), ..section };
        kind.check(empty).section
    }

    /// The section, if it names a kind that exists, or one that is clearly meant.
    fn check_kind(&mut self, mut section: Section) -> Option<Section> {
        let kinds: Vec<&str> =
            self.kinds.iter().filter(|kind| kind.place == section.place).map(|kind| kind.name).collect();
        let word = section.place.word();
        if section.kind.is_empty() {
            let problem = match section.table.find("kind") {
                Some(_) => {
                    section.problem("kind", format!("the kind of a {word} is a text that is not empty"))
                }
                None => section.problem("kind", "the key `kind` is missing"),
            };
            self.problems.push(problem.with_hint(format!("kinds of {word}: {}", kinds.join(", "))));
            return None;
        }
        if self.kinds.is_empty() || kinds.contains(&section.kind.as_str()) {
            return Some(section);
        }
        let problem = section.problem("kind", format!("there is no kind of {word} `{}`", section.kind));
        let Some(near) = nearest(&section.kind, kinds.iter().copied()) else {
            self.problems.push(problem.with_hint(format!("kinds of {word}: {}", kinds.join(", "))));
            return None;
        };
        self.problems.push(problem.with_label(format!("did you mean `{near}`?")));
        section.kind = near.to_owned();
        Some(section)
    }

    fn find_kind(&self, section: &Section) -> Option<&'static Kind> {
        self.kinds.iter().find(|kind| kind.place == section.place && kind.name == section.kind)
    }

    /// Refuses what `own`, the table as it is written, sets without effect.
    fn check_unused(&mut self, section: &Section, own: &Table) {
        if let Some(kind) = self.find_kind(section) {
            self.problems.extend(kind.list_unused(section, own));
        }
    }

    /// The section as its owner will read it.
    fn check_by_kind(&mut self, section: Section) -> Option<Section> {
        let Some(kind) = self.find_kind(&section) else { return Some(section) };
        let checked = kind.check(section);
        self.note_secrets(checked.secrets);
        let (errors, warnings): (Vec<_>, Vec<_>) =
            checked.problems.into_iter().partition(|problem| problem.severity == Severity::Error);
        self.problems.extend(errors);
        self.warnings.extend(warnings);
        checked.section
    }

    fn note_secrets(&mut self, secrets: Vec<SecretUse>) {
        for used in secrets {
            // What the environment sets has no place in the file.
            if used.literal && !used.span.is_empty() {
                self.warnings.push(
                    Problem::at(&self.source, used.span.clone(), "a secret stands in the file itself")
                        .as_warning()
                        .with_hint("name it instead: \"${ENV_NAME}\", \"${file:path}\" or \"${cred:name}\""),
                );
            }
            self.secrets.push(used);
        }
    }
}
