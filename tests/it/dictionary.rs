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
