//! What is said on a terminal breaks between words, also what goes to stderr.

use std::collections::BTreeSet;

use crate::terminal::{on_terminal_of, written};
use crate::test_env::{TestEnv, output_text};

const REFUSED: &str = "[[job]]\nname = \"a-blog-that-cannot-be-read\"\nkind = \"blogs\"\n\
    blog = [{ id = \"a\", url = \"http://127.0.0.1:9/\" }]\n";

#[test]
fn runs_warnings_and_hints_break_between_words() {
    let test_env = TestEnv::new(REFUSED);
    for (command, code) in [("run a-blog-that-cannot-be-read", 1), ("job show one-that-is-not-there", 2)] {
        for columns in [40, 60] {
            let piped = output_text(&test_env.run(&command.split(' ').collect::<Vec<_>>()));
            let words: BTreeSet<&str> = piped.split_whitespace().collect();
            let ended = on_terminal_of(columns, &test_env, command).status().unwrap();
            assert_eq!(ended.code(), Some(code));
            let shown = written(&test_env);
            let lines = shown.lines().map(|line| line.trim_end().rsplit('\r').next().unwrap_or(""));
            let lines: Vec<&str> = lines.filter(|line| !line.contains('\u{1b}')).collect();
            assert!(lines.iter().any(|line| line.chars().count() > columns / 2), "{shown:?}");
            for line in &lines {
                assert!(line.chars().count() <= columns, "{command} at {columns}: {line}");
                assert!(line.split_whitespace().all(|word| words.contains(word)), "{line}: {piped}");
            }
        }
    }
}
