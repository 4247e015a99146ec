//! The generated reference pages are up to date. `UPDATE_FIXTURES=1 cargo test --test it reference` writes them.

use std::path::Path;

fn compare(path: &str, wanted: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("UPDATE_FIXTURES").is_some() {
        std::fs::write(&path, wanted).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    let differing = found.lines().zip(wanted.lines()).position(|(found, wanted)| found != wanted);
    assert!(
        found == wanted,
        "{} is out of date from line {}: run UPDATE_FIXTURES=1 cargo test --test it reference",
        path.display(),
        differing.unwrap_or_else(|| found.lines().count()) + 1
    );
}

/// The program's own description of its commands.
pub(crate) fn command_line() -> String {
    let program = std::process::Command::new(env!("CARGO_BIN_EXE_tsuzuki"))
        .args(["man", "--markdown"])
        .env_remove("LANG")
        .output()
        .unwrap();
    assert!(program.status.success(), "{program:?}");
    String::from_utf8(program.stdout).unwrap()
}

#[test]
fn the_command_line_reference_is_up_to_date() {
    compare("docs/cli.md", &command_line());
}

#[test]
fn the_config_reference_is_up_to_date() {
    compare("docs/config.md", &tsuzuki::config::render_reference(tsuzuki::app::kinds()));
}
