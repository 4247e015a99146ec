//! The dictionary: private words that were replaced must not come back as names in the code.

use std::collections::{BTreeMap, BTreeSet};

use crate::architecture::{code_of, sources};

/// Names that were replaced by the field's words.
const GONE: &[&str] = &[
    "by_hand",
    "look_into",
    "LookInto",
    "Telling",
    "telling",
    "try_out",
    "Wish",
    "Obstacle",
    "Outside",
    "Withhold",
    "withholds",
    "ask_anew",
    "put_rest",
    "untold",
    "mark_told",
    "distrust",
    "credentials_print",
    "is_in_vain",
    "share_out",
    "stand_in",
    "Told",
    "Trial",
    "Turn",
    "Because",
    "Spent",
    "Peer",
    "Mover",
    "Desk",
    "Shelf",
    "surroundings",
    // Axum has a type of that name.
    "Parts",
    "find_rest",
    "list_rests",
    "rests",
    "resting",
    "Resting",
    "rest_until",
    "rests_until",
    "LONGEST_REST",
    "USUAL_REST",
    "Rest",
    "told",
    "tell",
    "tells",
    "tellable",
    "keep_telling",
    "run_telling",
    "Untold",
    "settle",
    "settled",
    "wake",
    "anew",
    "look",
    "Look",
    "looked",
    "Looked",
    "look_beside",
    "LOOK_EVERY",
    "doubt",
    "Doubted",
];

/// The code without strings, whose words do not matter.
fn without_texts(code: &str) -> String {
    let code = code.replace("\\\\", "").replace("\\\"", "").replace("'\"'", "");
    code.split('"').step_by(2).collect::<Vec<_>>().join("\"\"")
}

fn names(code: &str) -> BTreeSet<&str> {
    code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect()
}

#[test]
fn no_private_word_is_a_name() {
    let mut found = Vec::new();
    for file in sources() {
        let path = file.strip_prefix(crate::architecture::root()).unwrap();
        // The one that belongs to `axum` cannot be called otherwise.
        let code = without_texts(&code_of(&file)).replace("http::request::Parts", "");
        let names = names(&code);
        let met = GONE.iter().filter(|word| names.contains(**word));
        found.extend(met.map(|word| format!("{}: {word}", path.display())));
    }
    assert!(found.is_empty(), "the field's words are in STYLE and CONTRIBUTING.md:\n{}", found.join("\n"));
}

#[test]
fn the_rule_sees_whole_names_only() {
    assert!(names("struct Turn;").contains("Turn"));
    assert!(!names("struct Turning; fn Return() {}").contains("Turn"));
    let code = without_texts(r#"let a = "told \" told"; let quote = '"'; look(b"x");"#);
    assert!(names(&code).contains("look") && !names(&code).contains("told"), "{code}");
}

/// Names that are checked everywhere.
const CONVENTIONAL: &[&str] =
    &["Args", "Command", "Error", "Config", "Keys", "Row", "State", "Kind", "Inner"];

/// The names of the structs, enums and traits that a file defines.
fn types(code: &str) -> impl Iterator<Item = &str> {
    const TYPES: [&str; 3] = ["struct", "enum", "trait"];
    code.lines().filter_map(|line| {
        let words =
            || line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty());
        let keyword = words().find(|word| !["pub", "crate", "super", "in"].contains(word))?;
        let name = words().skip_while(|word| *word != keyword).nth(1)?;
        // A lower-case name is the variable of a macro.
        (TYPES.contains(&keyword) && name.starts_with(char::is_uppercase)).then_some(name)
    })
}

#[test]
fn at_most_two_types_have_one_name() {
    let mut defined: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in sources().into_iter().filter(|file| !file.ends_with("tests.rs")) {
        let path = file.strip_prefix(crate::architecture::root()).unwrap().display().to_string();
        // The demo servers use the words of the services that they imitate.
        if path.starts_with("src/demo/") || path.contains("/tests/") {
            continue;
        }
        for name in types(&code_of(&file)).filter(|name| !CONVENTIONAL.contains(name)) {
            defined.entry(name.to_owned()).or_default().push(path.clone());
        }
    }
    defined.retain(|_, files| files.len() > 2);
    assert_eq!(defined, BTreeMap::new(), "a type name makes sense alone in an import line");
}

#[test]
fn the_rule_finds_types_of_every_visibility() {
    let code =
        "struct A;\npub enum B<T> {\n    pub(super) trait C: D {\nlet structure = E;\nstruct $name;\nstruct";
    assert_eq!(types(code).collect::<Vec<_>>(), ["A", "B", "C"]);
}

/// Public types and functions of a file without a doc comment.
fn list_undocumented(code: &str) -> Vec<&str> {
    const ITEMS: [&str; 5] = ["pub fn ", "pub async fn ", "pub struct ", "pub enum ", "pub trait "];
    let lines: Vec<&str> = code.lines().map(str::trim).collect();
    // An item defined by a macro has its comment in the call.
    let is_item =
        |at: &usize| ITEMS.iter().any(|item| lines[*at].starts_with(item)) && !lines[*at].contains('$');
    let is_documented = |at: &usize| {
        let above =
            lines[..*at].iter().rev().take_while(|line| !line.is_empty() && !line.ends_with(['{', '}', ';']));
        above.into_iter().any(|line| line.starts_with("///"))
    };
    (0..lines.len()).filter(is_item).filter(|at| !is_documented(at)).map(|at| lines[at]).collect()
}

#[test]
fn public_types_and_functions_say_what_they_are_for() {
    let mut found = Vec::new();
    for file in sources().into_iter().filter(|file| !file.ends_with("tests.rs")) {
        let text = std::fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        found.extend(list_undocumented(code).into_iter().map(|item| format!("{}: {item}", file.display())));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    let code = "/// A.\n#[derive(\n    Debug,\n)]\npub struct A;\n\npub enum B {}\n// No.\npub fn c() {}";
    assert_eq!(list_undocumented(code), ["pub enum B {}", "pub fn c() {}"]);
}

/// Files outside of a pipeline's folder that may name it: the list of pipelines, tests and imports, the commands of its
/// nouns, and the page linked by mails about books.
const MAY_NAME_PIPELINES: &[&str] = &[
    "src/app/mod.rs",
    "src/lib.rs",
    "src/demo/",
    "src/import/",
    "src/cli/import/",
    "src/cli/demo/",
    "src/cli/item.rs",
    "src/cli/post.rs",
    "src/cli/book.rs",
    "src/cli/mail.rs",
    "src/cli/token.rs",
    "src/cli/blog.rs",
    "src/cli/change.rs",
    "src/cli/bulk/",
    "src/cli/commits.rs",
    "src/cli/project.rs",
    "src/cli/branch.rs",
    "src/cli/examples.rs",
    "src/cli/help.rs",
    "src/web/prompt.rs",
];

#[test]
fn a_pipeline_is_named_only_in_its_folder_and_where_they_are_listed() {
    let pipelines: Vec<&str> = tsuzuki::app::PIPELINES.iter().map(|pipeline| pipeline.kind.name).collect();
    let mut named = Vec::new();
    for file in sources().into_iter().filter(|file| !file.ends_with("tests.rs")) {
        let path = file.strip_prefix(crate::architecture::root()).unwrap().to_str().unwrap().to_owned();
        let code = code_of(&file);
        let mays = MAY_NAME_PIPELINES.iter().any(|may| path.starts_with(may));
        for name in pipelines.iter().filter(|name| !path.starts_with(&format!("src/{name}/"))) {
            let quoted = format!("\"{name}\"");
            let modules =
                ["crate", "tsuzuki"].map(|of| [format!("{of}::{name}::"), format!("{of}::{name};")]);
            let mut uses = modules.as_flattened().iter().chain([&quoted]);
            if !mays && uses.any(|used| code.contains(used.as_str())) {
                named.push(format!("{path} names {name}"));
            }
        }
    }
    assert_eq!(named, Vec::<String>::new());
}
