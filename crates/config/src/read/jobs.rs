//! Reads `[[job]]`: what all kinds share, the defaults, and the names that must fit together.

use std::ops::Range;
use std::sync::Arc;

use super::Reader;
use crate::Config;
use crate::diagnostic::Problem;
use crate::kind::TableKind;
use crate::model::{Defaults, HEAD_KEYS, Job, JobHead, ScheduleSpec};
use crate::section::Section;
use crate::tree::{Data, Table};
use stdx::id::JobName;

impl Reader {
    pub(super) fn read_jobs(&mut self, config: &Config) -> Vec<Job> {
        let defaults = self.find_section(TableKind::Defaults);
        self.check_one_schedule(&defaults.table);
        let defaults = match self.read_mended::<Defaults>(&defaults) {
            (Some(_), repaired) => defaults.with_mended(repaired).table,
            (None, _) => Arc::default(),
        };
        let tables = self.list_job_tables();
        tables.into_iter().filter_map(|(span, table)| self.read_job(config, &defaults, span, table)).collect()
    }

    fn list_job_tables(&mut self) -> Vec<(Range<usize>, Table)> {
        let Some(value) = self.root.take(TableKind::Job.key()) else { return Vec::new() };
        let wrong = |span: &Range<usize>, message: &str| {
            Problem::at(&self.source, span.clone(), message).with_hint("write each job as `[[job]]`")
        };
        let mut tables = Vec::new();
        match value.data {
            Data::Array(items) => {
                for item in items {
                    match item.data {
                        Data::Table(table) => tables.push((item.span, table)),
                        _ => self.problems.push(wrong(&item.span, "a job is a table")),
                    }
                }
            }
            _ => self.problems.push(wrong(&value.span, "`job` is a list of tables")),
        }
        tables
    }

    fn read_job(
        &mut self,
        config: &Config,
        defaults: &Table,
        span: Range<usize>,
        mut table: Table,
    ) -> Option<Job> {
        self.check_one_schedule(&table);
        let own = table.only(|key| HEAD_KEYS.contains(&key));
        let has_schedule = ["every", "cron"].iter().any(|key| table.find(key).is_some());
        for entry in defaults.list() {
            if !(has_schedule && matches!(&*entry.key, "every" | "cron")) && table.find(&entry.key).is_none()
            {
                table.put(entry.clone());
            }
        }
        let head_table = table.only(|key| HEAD_KEYS.contains(&key));
        let head = Section {
            taken: &[],
            kinds: &[],
            ..self.make_section(TableKind::Job, String::new(), span.clone(), head_table)
        };
        if !head.has("kind") {
            // The same words as the head's own, and the kinds there are.
            self.check_kind(head.clone());
        }
        let (head, repaired): (Option<JobHead>, _) = self.read_mended(&head);
        if let Some(repaired) = repaired {
            table = table.only(|key| !HEAD_KEYS.contains(&key));
            repaired.list().iter().for_each(|entry| table.put(entry.clone()));
        }
        let name = head.as_ref().map(|head| head.name.to_string()).unwrap_or_default();
        let section = self.make_section(TableKind::Job, name, span, table);
        // Both are checked, so that one pass reports what is wrong with either.
        let has_kind = !section.problem("kind", "").is_of_stand_in();
        let known = has_kind.then(|| self.check_kind(section.clone())).flatten();
        if let Some(known) = &known {
            self.check_unused(known, &own);
        }
        let section_of_kind = known.and_then(|section| self.check_by_kind(section));
        let head = head?;
        self.check_deliver(&section, &head.deliver, config);
        self.check_unique(&section, &head.name);
        let section = section_of_kind?;
        Some(Job {
            name: head.name,
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
            section,
        })
    }

    fn check_one_schedule(&mut self, table: &Table) {
        let (Some(_), Some(cron)) = (table.find("every"), table.find("cron")) else { return };
        let message = "a job has either `every` or `cron`, not both";
        let problem = Problem::at(&self.source, cron.span.clone(), message);
        self.problems.push(problem.with_label("remove this or `every`"));
    }

    fn check_deliver(&mut self, section: &Section, deliver: &[String], config: &Config) {
        let names = self.list_names(TableKind::Channel);
        for (index, name) in deliver.iter().enumerate() {
            let key = format!("deliver.{index}");
            if !names.contains(name) {
                let known = config.channels.iter().map(|channel| channel.name.as_str());
                self.problems.push(section.unknown_name(&key, "channel", name, known));
            } else if deliver[..index].contains(name) {
                self.problems.push(section.problem(&key, format!("the channel `{name}` is named twice")));
            }
        }
    }

    fn check_unique(&mut self, section: &Section, name: &JobName) {
        let problem = section.problem("name", format!("two jobs are named `{name}`"));
        if problem.is_of_stand_in() {
            return;
        }
        match self.names.get(name) {
            Some(first) => {
                let label = format!("first used in line {}", first.line());
                self.problems.push(problem.with_label(label));
            }
            None => {
                self.names.insert(name.clone(), problem);
            }
        }
    }

    /// The names that the file uses, also of tables that have problems of their own.
    fn list_names(&self, place: TableKind) -> Vec<String> {
        match self.root.find(place.key()).map(|value| &value.data) {
            Some(Data::Table(table)) => table.list().iter().map(|entry| entry.key.to_string()).collect(),
            _ => Vec::new(),
        }
    }
}
