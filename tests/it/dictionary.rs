//! One dictionary: the words that nobody outside would know do not come back as names in the code.

use std::collections::BTreeSet;

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
    "Parts",
    "Because",
    "Spent",
    "Peer",
    "Mover",
    "Desk",
    "Shelf",
    "surroundings",
];

fn names(code: &str) -> BTreeSet<&str> {
    code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect()
}

#[test]
fn no_private_word_is_a_name() {
    let mut found = Vec::new();
    for file in sources() {
        let code = code_of(&file);
        let names = names(&code);
        found.extend(
            GONE.iter()
                .filter(|word| names.contains(**word))
                .map(|word| format!("{}: {word}", file.display())),
        );
    }
    assert!(found.is_empty(), "the field's words are in STYLE and CONTRIBUTING.md:\n{}", found.join("\n"));
}

#[test]
fn the_rule_sees_whole_names_only() {
    assert!(names("struct Turn;").contains("Turn"));
    assert!(!names("struct Turning; fn Return() {}").contains("Turn"));
}

/// Files that may name a pipeline beside its folder: whoever lists them, tries them out or takes over old data, the
/// commands of their own nouns, and the page that a mail about books leads to.
const MAY_NAME_PIPELINES: &[&str] = &[
    "src/app.rs",
    "src/lib.rs",
    "src/demo/",
    "src/import/",
    "src/cli/import/",
    "src/cli/demo/",
    "src/cli/item.rs",
    "src/cli/post.rs",
    "src/cli/book.rs",
    "src/cli/mail/",
    "src/cli/token.rs",
    "src/cli/blog.rs",
    "src/cli/change.rs",
    "src/cli/bulk.rs",
    "src/cli/commits.rs",
    "src/cli/project.rs",
    "src/cli/branch.rs",
    "src/cli/examples.rs",
    "src/cli/help.rs",
    "src/web/prompt.rs",
];

#[test]
fn a_pipeline_is_named_only_in_its_folder_and_where_they_are_listed() {
    const PIPELINES: [&str; 4] = ["press", "books", "blogs", "commits"];
    let mut named = Vec::new();
    for file in sources().into_iter().filter(|file| !file.ends_with("tests.rs")) {
        let path = file.strip_prefix(crate::architecture::root()).unwrap().to_str().unwrap().to_owned();
        let code = code_of(&file);
        let mays = MAY_NAME_PIPELINES.iter().any(|may| path.starts_with(may));
        for name in PIPELINES.iter().filter(|name| !path.starts_with(&format!("src/{name}/"))) {
            let uses = [format!("crate::{name}::"), format!("crate::{name};"), format!("\"{name}\"")];
            if !mays && uses.iter().any(|used| code.contains(used.as_str())) {
                named.push(format!("{path} names {name}"));
            }
        }
    }
    assert_eq!(named, Vec::<String>::new());
}
