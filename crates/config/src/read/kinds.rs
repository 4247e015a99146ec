//! Tables with a kind: checks that it exists, and parses the keys of the kind.

use stdx::phrase;
use stdx::text::nearest;

use super::ConfigReader;
use crate::diagnostic::Severity;
use crate::kind::{Kind, NO_LLM, TableKind};
use crate::section::{Section, did_you_mean};
use crate::tree::TomlTable;

impl ConfigReader {
    /// Whether the section has a valid kind, or one that is obviously misspelt, which is corrected.
    pub(super) fn check_kind(&mut self, section: &mut Section, table: &TomlTable) -> bool {
        let kinds: Vec<&str> =
            self.file.kinds.iter().filter(|kind| kind.place == section.place).map(|kind| kind.name).collect();
        let word = section.place.noun();
        let list_kinds =
            || phrase!("kinds of {word}: {kinds}", "{word}の種類：{kinds}", kinds = kinds.join(", "));
        if section.kind.is_empty() {
            let problem = match table.find("kind") {
                Some(_) => section.problem(
                    "kind",
                    phrase!(
                        "the kind of a {word} is a text that is not empty",
                        "{word}の種類は空でない文字列で書きます"
                    ),
                ),
                None => {
                    section.header_problem(phrase!("the key `kind` is missing", "キー `kind` がありません"))
                }
            };
            self.problems.push(problem.with_hint(list_kinds()));
            return false;
        }
        if self.file.kinds.is_empty() || kinds.contains(&section.kind.as_str()) {
            return true;
        }
        let problem = section.problem(
            "kind",
            phrase!(
                "there is no kind of {word} `{kind}`",
                "{word}の種類 `{kind}` はありません",
                kind = &section.kind
            ),
        );
        let Some(near) = nearest(&section.kind, kinds.iter().copied()) else {
            self.problems.push(problem.with_hint(list_kinds()));
            return false;
        };
        self.problems.push(problem.with_label(did_you_mean(near)));
        section.kind = near.to_owned();
        true
    }

    pub(super) fn find_kind(&self, section: &Section) -> Option<&'static Kind> {
        self.file.kinds.iter().find(|kind| kind.place == section.place && kind.name == section.kind)
    }

    /// Rejects keys in `own`, the table as written, without effect.
    pub(super) fn check_unused(&mut self, section: &Section, own: &TomlTable) {
        if let Some(kind) = self.find_kind(section) {
            self.problems.extend(kind.list_unused(section, own));
        }
    }

    /// Parses the keys of the section's kind.
    pub(super) fn read_by_kind(&mut self, mut section: Section, table: &TomlTable) -> Section {
        let Some(kind) = self.find_kind(&section) else { return section };
        let (secrets, problems) = kind.read(&mut section, table);
        self.note_secrets(secrets);
        let (errors, warnings): (Vec<_>, Vec<_>) =
            problems.into_iter().partition(|problem| problem.severity == Severity::Error);
        self.problems.extend(errors);
        self.warnings.extend(warnings);
        for (key, place) in kind.names {
            let known = self.list_names(*place);
            let is_none = |name: &str| *place == TableKind::Llm && name == NO_LLM;
            let is_missing = |name: &&str| !is_none(name) && !known.iter().any(|known| known == name);
            if let Some(name) = table.find_text(key).filter(is_missing) {
                let known = known.iter().map(String::as_str);
                self.problems.push(section.unknown_name(key, place.noun(), name, known));
            }
        }
        section
    }
}
