//! Parses the whole file: its tables, their common keys, and references between them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::diagnostic::{ConfigSource, Problem, Problems};
use crate::env::Env;
use crate::explain::{belongs_in, list_homes, unknown_key_phrase};
use crate::kind::{Kind, TableKind};
use crate::lenient::read_lenient;
use crate::lookup::Surroundings;
use crate::model::{App, Quota, QuotaTable, Store, StoreTable};
use crate::secret_url::SecretUrl;
use crate::section::{File, Section, did_you_mean};
use crate::tree::{Data, TomlTable, TomlValue};
use crate::value::Zone;
use crate::{Config, SecretUse, overrides};
use stdx::id::JobName;
use stdx::phrase;
use stdx::phrase::Phrase;
use stdx::text::nearest;

mod apart;
mod jobs;
mod kinds;
mod syntax;

pub(crate) use syntax::not_toml;

/// Unknown top-level keys to report.
const MOST_UNKNOWN_KEYS: usize = 100;

/// Parses and validates `source`, as far as the `kinds` are known.
pub(crate) fn read_file(
    source: ConfigSource,
    kinds: &'static [Kind],
    env: &Env,
) -> (Option<Config>, Problems) {
    let mut root = match apart::parse(source.text()) {
        Ok(root) => root,
        Err(errors) => return (None, syntax::list_errors(&source, &errors)),
    };
    let directory = source.path().parent().filter(|path| !path.as_os_str().is_empty());
    let secret_context =
        Surroundings { directory: directory.unwrap_or(Path::new(".")).to_owned(), env: env.clone() };
    let problems = overrides::write(&mut root, kinds, env);
    let mut reader = ConfigReader {
        root: Arc::default(),
        file: Arc::new(File::new(source, kinds, secret_context, root)),
        problems,
        warnings: Problems::default(),
        secrets: Vec::new(),
        names: BTreeMap::new(),
    };
    reader.root = reader.file.tree();
    let config = reader.read_root();
    if reader.problems.is_empty() {
        reader.file.forget_tree();
    }
    let config = Config { warnings: reader.warnings.in_order().bounded(), secrets: reader.secrets, ..config };
    (Some(config), reader.problems.in_order().bounded())
}

struct ConfigReader {
    root: Arc<TomlTable>,
    file: Arc<File>,
    problems: Problems,
    warnings: Problems,
    secrets: Vec<SecretUse>,
    /// The names of the jobs so far, with their positions.
    names: BTreeMap<JobName, Problem>,
}

impl ConfigReader {
    fn read_root(&mut self) -> Config {
        self.check_root_keys();
        let mut app: App = self.read_table(TableKind::App).unwrap_or_default();
        self.add_surroundings(&mut app);
        self.check_header_texts(&app);
        let store: StoreTable = self.read_table(TableKind::Store).unwrap_or_default();
        let context = &self.file.secret_context;
        let fallback = || SecretUrl::parse("sqlite:tsuzuki.db", context).ok();
        let mut config = Config {
            path: self.file.source.path().to_owned(),
            app,
            store: Store {
                url: store.url.or_else(fallback).expect("the fallback has no reference that could be wrong"),
                directory: context.directory.clone(),
                keep_history: store.keep_history,
            },
            web: self.make_section(TableKind::Web, String::new(), 0..0, &TomlTable::default()),
            quotas: BTreeMap::new(),
            llms: Vec::new(),
            channels: Vec::new(),
            jobs: Vec::new(),
            has_all_jobs: true,
            warnings: Problems::default(),
            secrets: Vec::new(),
            source: self.file.source.clone(),
        };
        let (section, table) = self.find_section(TableKind::Web);
        config.web = self.read_by_kind(section, &table);
        config.quotas = self.read_quotas(&config.app);
        config.llms = self.read_named(TableKind::Llm);
        config.channels = self.read_named(TableKind::Channel);
        let section = self.find_section(TableKind::App).0;
        self.check_channels(&section, "alert", &config.app.alert, &config);
        config.jobs = self.read_jobs(&config);
        let tables = self.root.find(TableKind::Job.word()).map_or(&[][..], TomlValue::items);
        config.has_all_jobs = tables.len() <= config.jobs.len();
        config
    }

    /// Adds the machine's settings where the file has none.
    fn add_surroundings(&self, app: &mut App) {
        let env = &self.file.secret_context.env;
        app.quota_zone = env.find("APP_TZ").and_then(|zone| zone.parse().ok()).unwrap_or_else(Zone::tokyo);
        app.locale = env.find_language();
        let is_set =
            self.root.find_table(TableKind::App.word()).is_some_and(|app| app.find("timezone").is_some());
        if !is_set && let Some(zone) = env.find_zone() {
            app.timezone = zone;
        }
    }

    /// The value of a request header has to be valid as one.
    fn check_header_texts(&mut self, app: &App) {
        let section = self.find_section(TableKind::App).0;
        for (key, text) in [("user_agent", &app.user_agent), ("contact", &app.contact)] {
            let Some(text) = text else { continue };
            if text.trim().is_empty() || !text.chars().all(|c| c == ' ' || c.is_ascii_graphic()) {
                let message = phrase!(
                    "`{key}` goes into request headers: plain ASCII, one line, not empty",
                    "`{key}` はリクエストのヘッダーに入ります。空でない 1 行の ASCII 文字で書いてください"
                );
                self.problems.push(section.problem(key, message));
            }
        }
    }

    fn check_root_keys(&mut self) {
        let known = TableKind::ALL.iter().map(|place| place.word()).collect::<Vec<_>>();
        let unknown = self.root.list().iter().filter(|entry| !known.contains(&&*entry.key));
        let mut unknown: Vec<_> = unknown.collect();
        unknown.sort_by_key(|entry| entry.key_span.start);
        if let Some(entry) = unknown.get(MOST_UNKNOWN_KEYS) {
            let count = unknown.len() - MOST_UNKNOWN_KEYS;
            let message = phrase!(
                "{count} more keys from here on are unknown",
                "ここから先にも不明なキーが {count} 個あります"
            );
            self.problems.push(Problem::at(&self.file.source, entry.key_span.clone(), message));
        }
        for entry in unknown.into_iter().take(MOST_UNKNOWN_KEYS) {
            let key = &*entry.key;
            let problem = Problem::at(&self.file.source, entry.key_span.clone(), unknown_key_phrase(key));
            let problem = match nearest(key, known.iter().copied()) {
                Some(near) => {
                    let place = near.parse::<TableKind>().ok();
                    let header = place.map_or(String::new(), |place| place.header("NAME"));
                    problem
                        .with_label(did_you_mean(near))
                        .with_hint(phrase!("write `{header}`", "`{header}` と書きます"))
                }
                None => match list_homes(key, self.file.kinds).as_slice() {
                    [] => problem.with_hint(phrase!(
                        "tables that belong here: {names}",
                        "ここに書ける表：{names}",
                        names = known.join(", ")
                    )),
                    homes => problem.with_hint(belongs_in(key, homes)),
                },
            };
            self.problems.push(problem);
        }
    }

    fn read_table<T: DeserializeOwned + JsonSchema>(&mut self, place: TableKind) -> Option<T> {
        let (section, table) = self.find_section(place);
        self.read_section(&section, &table)
    }

    fn read_section<T: DeserializeOwned + JsonSchema>(
        &mut self,
        section: &Section,
        table: &TomlTable,
    ) -> Option<T> {
        let read = read_lenient(section, table, &[]);
        self.problems.extend(read.problems);
        self.note_secrets(read.secrets);
        read.value
    }

    /// A top-level table; an empty one if it is missing.
    fn find_section(&mut self, place: TableKind) -> (Section, TomlTable) {
        let (span, table) = match self.root.find(place.word()) {
            None => (0..0, TomlTable::default()),
            Some(TomlValue { span, data: Data::TomlTable(table) }) => (span.clone(), table.clone()),
            Some(value) => {
                let message = phrase!(
                    "`{key}` is a table, not {found}",
                    "`{key}` は表です（{found}ではありません）",
                    key = place.word(),
                    found = value.type_name()
                );
                let hint = phrase!(
                    "write `{header}` and its keys below",
                    "`{header}` と書き、その下にキーを並べます",
                    header = place.header("NAME")
                );
                self.problems
                    .push(Problem::at(&self.file.source, value.span.clone(), message).with_hint(hint));
                (0..0, TomlTable::default())
            }
        };
        (self.make_section(place, String::new(), span, &table), table)
    }

    fn make_section(&self, place: TableKind, name: String, span: Range<usize>, table: &TomlTable) -> Section {
        let kind = table.find_text("kind").unwrap_or_default().to_owned();
        Section { name, kind, place, file: Arc::clone(&self.file), span, keys: None }
    }

    /// The tables `[place.NAME]`.
    fn list_named(&mut self, place: TableKind) -> Vec<(Section, TomlTable)> {
        let (_, outer) = self.find_section(place);
        let mut sections = Vec::new();
        for entry in outer.list() {
            let name = &entry.key;
            let problem = |message: Phrase| Problem::at(&self.file.source, entry.key_span.clone(), message);
            let Some(table) = entry.value.as_table() else {
                let problem = problem(phrase!(
                    "`{name}` is directly in `[{key}]`",
                    "`{name}` が `[{key}]` に直接書かれています",
                    name = &**name,
                    key = place.word()
                ));
                let hint = phrase!(
                    "give the {what} a name: `{header}`",
                    "{what}に名前を付けてください：`{header}`",
                    what = place.noun(),
                    header = place.header("NAME")
                );
                self.problems.push(problem.with_hint(hint));
                continue;
            };
            if let Err(err) = name.parse::<JobName>() {
                self.problems.push(problem(err.phrase().clone()));
                continue;
            }
            let section = self.make_section(place, name.to_string(), entry.value.span.clone(), table);
            sections.push((section, table.clone()));
        }
        sections
    }

    fn read_quotas(&mut self, app: &App) -> BTreeMap<String, Quota> {
        let sections = self.list_named(TableKind::Quota);
        let mut quotas = BTreeMap::new();
        for (section, table) in sections {
            if let Some(keys) = self.read_section::<QuotaTable>(&section, &table) {
                let zone = keys.timezone.unwrap_or_else(|| app.quota_zone.clone());
                let quota = Quota { per_day: keys.per_day, day_starts: keys.day_starts, zone };
                quotas.insert(section.name, quota);
            }
        }
        quotas
    }

    /// The tables `[place.NAME]`, including those with problems, since others may refer to them.
    fn read_named(&mut self, place: TableKind) -> Vec<Section> {
        let sections = self.list_named(place);
        let read = |(mut section, table): (Section, TomlTable)| {
            if self.check_kind(&mut section, &table) {
                self.check_unused(&section, &table);
                section = self.read_by_kind(section, &table);
            }
            section
        };
        sections.into_iter().map(read).collect()
    }

    /// The names of tables in the file, including those with problems, and of quotas that kinds add.
    fn list_names(&self, place: TableKind) -> Vec<String> {
        let entries = self.root.find_table(place.word()).map(TomlTable::list).unwrap_or_default();
        let in_file =
            entries.iter().filter(|entry| entry.value.as_table().is_some()).map(|entry| &*entry.key);
        let brought =
            self.file.kinds.iter().filter_map(|kind| kind.quota.filter(|_| place == TableKind::Quota));
        in_file.chain(brought).map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn note_secrets(&mut self, secrets: Vec<SecretUse>) {
        for used in secrets {
            // A value from the environment has no position in the file.
            if used.literal && !used.span.is_empty() {
                self.warnings.push(
                    Problem::at(
                        &self.file.source,
                        used.span.clone(),
                        phrase!("secret in plain text", "秘密情報が設定ファイルに直接書かれています"),
                    )
                    .as_warning()
                    .with_hint(phrase!(
                        "use a reference instead: \"{env}\", \"{file}\" or \"{cred}\"",
                        "代わりに \"{env}\"、\"{file}\"、\"{cred}\" のいずれかで参照してください",
                        env = "${ENV_NAME}",
                        file = "${file:path}",
                        cred = "${cred:name}"
                    )),
                );
            }
            self.secrets.push(used);
        }
    }
}
