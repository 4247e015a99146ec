//! Parses `[[job]]`: common keys, defaults, and references to other tables.

use std::ops::Range;
use std::sync::Arc;

use super::ConfigReader;
use crate::Config;
use crate::diagnostic::Problem;
use crate::explain::missing_key;
use crate::kind::TableKind;
use crate::model::{Defaults, HEAD_KEYS, Job, JobHead, ScheduleSpec};
use crate::section::Section;
use crate::tree::{Data, TomlTable, TomlValue};
use stdx::id::JobName;
use stdx::phrase;
use stdx::phrase::Phrase;

impl ConfigReader {
    pub(super) fn read_jobs(&mut self, config: &Config) -> Vec<Job> {
        let (section, defaults) = self.find_section(TableKind::Defaults);
        self.check_one_schedule(&defaults);
        self.read_section::<Defaults>(&section, &defaults);
        let defaults = defaults.only(|key| HEAD_KEYS.contains(&key) && !matches!(key, "name" | "kind"));
        let root = Arc::clone(&self.root);
        let Some(jobs) = root.find(TableKind::Job.word()) else { return Vec::new() };
        let wrong = |value: &TomlValue, message: Phrase| {
            Problem::at(&section.file.source, value.span.clone(), message)
                .with_hint(phrase!("write each job as `[[job]]`", "ジョブは 1 つずつ `[[job]]` で書きます"))
        };
        let Data::Array(items) = &jobs.data else {
            self.problems.push(wrong(jobs, phrase!("`job` is a list of tables", "`job` は表の配列です")));
            return Vec::new();
        };
        let read = |item: &TomlValue| match item.as_table() {
            Some(table) => self.read_job(config, &defaults, item.span.clone(), table),
            None => {
                self.problems.push(wrong(item, phrase!("a job is a table", "ジョブは表で書きます")));
                None
            }
        };
        items.iter().filter_map(read).collect()
    }

    fn read_job(
        &mut self,
        config: &Config,
        defaults: &TomlTable,
        span: Range<usize>,
        table: &TomlTable,
    ) -> Option<Job> {
        self.check_one_schedule(table);
        let mut section = self.make_section(TableKind::Job, String::new(), span.clone(), table);
        let own = table.only(|key| HEAD_KEYS.contains(&key));
        let mut shared = own.clone();
        let has_schedule = ["every", "cron"].iter().any(|key| own.find(key).is_some());
        for entry in defaults.list() {
            if !(has_schedule && matches!(&*entry.key, "every" | "cron")) && own.find(&entry.key).is_none() {
                shared.put(entry.clone());
            }
        }
        if own.find("name").is_none() {
            self.problems.push(missing_key(&section, &span, "name"));
        }
        let head: Option<JobHead> = self.read_section(&section, &shared);
        let name = head.as_ref().and_then(|head| head.name.clone());
        section.name = name.as_ref().map(JobName::to_string).unwrap_or_default();
        // Check both, so that one pass reports the problems of either.
        let has_kind = self.check_kind(&mut section, table);
        if has_kind {
            self.check_unused(&section, &own);
            section = self.read_by_kind(section, table);
        }
        let head = head?;
        self.check_channels(&section, "deliver", &head.deliver, config);
        let name = name?;
        self.check_unique(&section, &name);
        has_kind.then(|| Job {
            name,
            kind: section.kind.clone(),
            schedule: match (head.every, head.cron) {
                (Some(every), _) => ScheduleSpec::Every(every),
                (None, Some(cron)) => ScheduleSpec::Cron(cron),
                (None, None) => ScheduleSpec::Default,
            },
            timezone: head.timezone.unwrap_or_else(|| config.app.timezone.clone()),
            enabled: head.enabled,
            deliver: head.deliver,
            first_run: head.first_run,
            hold_above: head.hold_above,
            allow_private: head.allow_private,
            ping: head.ping.or_else(|| config.app.ping.clone()),
            section,
        })
    }

    fn check_one_schedule(&mut self, table: &TomlTable) {
        let (Some(_), Some(cron)) = (table.find("every"), table.find("cron")) else { return };
        let message = phrase!(
            "a job has either `every` or `cron`, not both",
            "`every` と `cron` は同時に指定できません"
        );
        let problem = Problem::at(&self.file.source, cron.span.clone(), message);
        self.problems
            .push(problem.with_label(phrase!("remove this or `every`", "これか `every` を削除してください")));
    }

    /// Checks that the channels in `key` exist, each once.
    pub(super) fn check_channels(&mut self, section: &Section, key: &str, named: &[String], config: &Config) {
        let names = self.list_names(TableKind::Channel);
        for (index, name) in named.iter().enumerate() {
            let key = format!("{key}.{index}");
            if !names.contains(name) {
                let known = config.channels.iter().map(|channel| channel.name.as_str());
                self.problems.push(section.unknown_name(&key, TableKind::Channel.noun(), name, known));
            } else if named[..index].contains(name) {
                let message =
                    phrase!("the channel `{name}` is named twice", "チャンネル `{name}` が重複しています");
                self.problems.push(section.problem(&key, message));
            }
        }
    }

    fn check_unique(&mut self, section: &Section, name: &JobName) {
        let problem = section.problem(
            "name",
            phrase!("two jobs are named `{name}`", "ジョブの名前 `{name}` が重複しています"),
        );
        match self.names.get(name) {
            Some(first) => {
                let label =
                    phrase!("first used in line {line}", "最初の使用は {line} 行目です", line = first.line());
                self.problems.push(problem.with_label(label));
            }
            None => {
                self.names.insert(name.clone(), problem);
            }
        }
    }
}
