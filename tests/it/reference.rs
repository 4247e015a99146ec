//! The generated reference pages are up to date. `UPDATE_FIXTURES=1 cargo test --test it reference` writes them anew.

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

#[test]
fn the_command_line_reference_is_up_to_date() {
    compare("docs/cli.md", &tsuzuki::cli::render_reference());
}

#[test]
fn the_config_reference_is_up_to_date() {
    compare("docs/config.md", &tsuzuki::config::render_reference(tsuzuki::app::kinds()));
}
