//! Edits and their reversal, byte for byte.

use proptest::prelude::*;

use super::*;

const FILE: &str = r#"# My file
[app]
timezone = "Asia/Tokyo"   # home

# The ministry
[[job]]
name = "mic"        # short
kind = "press"
  feed = "https://example.com/feed"
google_books.langRestrict = "ja"
# about this job

# --- blogs ---

# Two of them
[[job]]
name = "blogs"
kind = "blogs"

[[job.blog]]
id = "one"   # first
url = "https://one.example"

[[job.blog]]
id = "two"
url = "https://two.example"

[channel.mail]
kind = "email"

[[job]]
name = "last"
kind = "books"
queries = [
  "rust",  # the language
  "sqlite",
]
[job.google_books]
printType = "books"
"#;

const INLINE: &str = "job = [\n  { name = \"a\", kind = \"press\", enabled = true },\n  { name = \"b\", kind = \"books\" },\n]\n";

fn text(value: &str) -> toml::Value {
    toml::Value::from(value)
}

/// The lines that differ, as `-old` and `+new`.
fn diff(old: &str, new: &str) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) =
        (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    let same_start = old.iter().zip(&new).take_while(|(one, other)| one == other).count();
    let most = old.len().min(new.len()) - same_start;
    let same_end =
        old.iter().rev().zip(new.iter().rev()).take(most).take_while(|(one, other)| one == other).count();
    let gone = old[same_start..old.len() - same_end].iter().map(|line| format!("-{line}"));
    gone.chain(new[same_start..new.len() - same_end].iter().map(|line| format!("+{line}"))).collect()
}

fn edited(file: &str, edit: impl FnOnce(&mut ConfigText) -> Result<(), EditError>) -> String {
    let mut document = ConfigText::parse(file).unwrap();
    edit(&mut document).unwrap();
    document.text().to_owned()
}

#[test]
fn setting_a_key_changes_its_value_and_keeps_the_comment() {
    let new = edited(FILE, |doc| doc.set("mic", "name", &text("soumu")));
    assert_eq!(diff(FILE, &new), ["-name = \"mic\"        # short\n", "+name = \"soumu\"        # short\n"]);
}

#[test]
fn a_new_key_stands_after_the_others_and_before_the_tables_inside() {
    let new = edited(FILE, |doc| doc.set("blogs", "every", &text("3h")));
    assert_eq!(diff(FILE, &new), ["+every = \"3h\"\n"]);
    assert!(new.contains("kind = \"blogs\"\nevery = \"3h\"\n\n[[job.blog]]"));
    let new = edited(FILE, |doc| doc.set("mic", "enabled", &toml::Value::from(false)));
    assert!(new.contains("langRestrict = \"ja\"\nenabled = false\n# about this job\n"), "{new}");
    let new = edited(FILE, |doc| doc.set("last", "mail_limit", &toml::Value::from(5)));
    assert!(new.contains("]\nmail_limit = 5\n[job.google_books]\n"), "{new}");
}

#[test]
fn keys_of_inner_tables_are_reached_by_path() {
    let new = edited(FILE, |doc| doc.set("last", "google_books.printType", &text("magazines")));
    assert_eq!(diff(FILE, &new), ["-printType = \"books\"\n", "+printType = \"magazines\"\n"]);
    let new = edited(FILE, |doc| doc.set("last", "google_books.langRestrict", &text("ja")));
    assert!(new.ends_with("printType = \"books\"\nlangRestrict = \"ja\"\n"), "{new}");
    let new = edited(FILE, |doc| doc.set("mic", "google_books.langRestrict", &text("en")));
    assert_eq!(
        diff(FILE, &new),
        ["-google_books.langRestrict = \"ja\"\n", "+google_books.langRestrict = \"en\"\n"]
    );
    let new = edited(FILE, |doc| doc.set("mic", "google_books.printType", &text("books")));
    assert_eq!(diff(FILE, &new), ["+google_books.printType = \"books\"\n"]);
    let new = edited(FILE, |doc| doc.unset("last", "google_books.printType"));
    assert_eq!(diff(FILE, &new), ["-printType = \"books\"\n"]);
}

#[test]
fn unsetting_removes_the_lines_of_the_value() {
    let new = edited(FILE, |doc| doc.unset("last", "queries"));
    assert_eq!(
        diff(FILE, &new),
        ["-queries = [\n", "-  \"rust\",  # the language\n", "-  \"sqlite\",\n", "-]\n"]
    );
}

#[test]
fn a_job_goes_with_its_tables_and_its_comments_and_nothing_else() {
    let new = edited(FILE, |doc| doc.remove_job("blogs"));
    assert!(new.contains("# about this job\n\n# --- blogs ---\n\n[channel.mail]\n"), "{new}");
    let new = edited(FILE, |doc| doc.remove_job("mic"));
    assert!(new.contains("# home\n\n# --- blogs ---\n\n# Two of them\n[[job]]\nname = \"blogs\""), "{new}");
    let new = edited(FILE, |doc| doc.remove_job("last"));
    assert!(new.ends_with("[channel.mail]\nkind = \"email\"\n"), "{new}");
}

#[test]
fn a_new_job_stands_at_the_end() {
    let blogs: toml::Value = toml::Value::Array(vec![
        read_value("{ id = \"one\", url = \"https://one.example\" }"),
        read_value("{ id = \"two\", url = \"https://two.example\" }"),
    ]);
    let new = edited("[app]\n", |doc| doc.add_job(&[("name", text("a")), ("blog", blogs)]));
    assert_eq!(
        new,
        "[app]\n\n[[job]]\nname = \"a\"\nblog = [\n  { id = \"one\", url = \"https://one.example\" },\n  { id = \"two\", url = \"https://two.example\" },\n]\n"
    );
    assert_eq!(edited("", |doc| doc.add_job(&[("name", text("a"))])), "[[job]]\nname = \"a\"\n");
}

#[test]
fn inline_jobs_stay_inline() {
    let new = edited(INLINE, |doc| doc.set("b", "every", &text("1h")));
    assert!(new.contains("{ name = \"b\", kind = \"books\", every = \"1h\" },"), "{new}");
    assert_eq!(edited(&new, |doc| doc.unset("b", "every")), INLINE);
    let new = edited(INLINE, |doc| doc.add_job(&[("name", text("c"))]));
    assert!(new.ends_with("\n  { name = \"c\" },\n]\n"), "{new}");
    assert_eq!(edited(&new, |doc| doc.remove_job("c")), INLINE);
    let new = edited(INLINE, |doc| doc.remove_job("a"));
    assert_eq!(new, "job = [\n  { name = \"b\", kind = \"books\" },\n]\n");
    let new = edited("job = [{ name = \"a\" }]\n", |doc| doc.add_job(&[("name", text("b"))]));
    assert_eq!(new, "job = [{ name = \"a\" }, { name = \"b\" }]\n");
    assert_eq!(edited("job = []\n", |doc| doc.add_job(&[("name", text("b"))])), "job = [{ name = \"b\" }]\n");
}

#[test]
fn what_is_not_there_or_too_intricate_is_refused() {
    let mut doc = ConfigText::parse(FILE).unwrap();
    assert!(matches!(doc.set("nope", "every", &text("1h")), Err(EditError::NoSuchJob(_))));
    assert!(matches!(doc.unset("mic", "every"), Err(EditError::NoSuchKey { .. })));
    assert!(matches!(doc.unset("mic", "feed.x"), Err(EditError::NoSuchKey { .. })));
    assert!(matches!(doc.set("mic", "feed.x", &text("1h")), Err(EditError::ByHand { line: 9, .. })));
    assert!(matches!(doc.set("blogs", "blog", &text("x")), Err(EditError::ByHand { .. })));
    assert!(matches!(doc.unset("blogs", "blog"), Err(EditError::ByHand { .. })));
    assert!(matches!(doc.remove_job("nope"), Err(EditError::NoSuchJob(_))));
    assert_eq!(doc.text(), FILE);
}

#[test]
fn line_endings_of_windows_are_kept() {
    let file = FILE.replace('\n', "\r\n");
    let new = edited(&file, |doc| {
        doc.set("blogs", "every", &text("3h"))?;
        doc.add_job(&[("name", text("x")), ("kind", text("press"))])?;
        doc.unset("mic", "feed")
    });
    assert_eq!(new.matches('\n').count(), new.matches("\r\n").count());
}

#[test]
fn values_of_the_command_line_are_toml_or_text() {
    for (given, value) in [
        ("5", toml::Value::from(5)),
        ("true", toml::Value::from(true)),
        ("3h", text("3h")),
        ("\"5\"", text("5")),
        ("https://example.com", text("https://example.com")),
        ("", text("")),
        ("[\"a\"]", toml::Value::from(vec!["a"])),
    ] {
        assert_eq!(read_value(given), value, "{given}");
    }
}

fn some_file() -> impl Strategy<Value = String> {
    let files = prop_oneof![Just(FILE.to_owned()), Just(INLINE.to_owned()), Just(FILE.replace("\n\n", "\n"))];
    (files, any::<bool>(), any::<bool>()).prop_map(|(file, crlf, trim)| {
        let file = if trim { file.trim_end().to_owned() } else { file };
        if crlf { file.replace('\n', "\r\n") } else { file }
    })
}

proptest! {
    #[test]
    fn setting_a_new_key_and_unsetting_it_gives_the_same_bytes(file in some_file(), word in "[a-z\"\\\\#é ]{0,8}") {
        let names: Vec<String> = ["mic", "blogs", "last", "a", "b"].map(str::to_owned).to_vec();
        for name in names {
            let mut doc = ConfigText::parse(&file).unwrap();
            if doc.set(&name, "first_run", &text(&word)).is_ok() {
                prop_assert!(doc.text() != file);
                doc.unset(&name, "first_run").unwrap();
                prop_assert_eq!(doc.text(), &file);
            }
        }
    }

    #[test]
    fn changing_a_value_and_changing_it_back_gives_the_same_bytes(file in some_file(), word in "\\PC{0,8}") {
        for (name, kind) in [("mic", "press"), ("blogs", "blogs"), ("a", "press"), ("b", "books")] {
            let mut doc = ConfigText::parse(&file).unwrap();
            if doc.set(name, "kind", &text(&word)).is_ok() {
                doc.set(name, "kind", &text(kind)).unwrap();
                prop_assert_eq!(doc.text(), &file);
            }
        }
    }

    #[test]
    fn adding_a_job_and_removing_it_gives_the_same_bytes(file in some_file()) {
        let mut doc = ConfigText::parse(&file).unwrap();
        doc.add_job(&[("name", text("new")), ("kind", text("press")), ("feed", text("x"))]).unwrap();
        doc.remove_job("new").unwrap();
        // A missing newline at the end is added, and stays.
        prop_assert_eq!(doc.text().trim_end(), file.trim_end());
        if file.ends_with('\n') {
            prop_assert_eq!(doc.text(), &file);
        }
    }
}
