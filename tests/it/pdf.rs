//! PDFs of real writers, made for these tests, read as the text beside them.

use std::path::Path;

use tsuzuki::parse::pdf::{Limit, text};

#[test]
fn the_files_of_real_writers_read_as_expected() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/pdf");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "pdf") {
            let wanted = std::fs::read_to_string(path.with_extension("txt")).unwrap();
            let found = text(&std::fs::read(&path).unwrap(), Limit::default());
            let found = found.map_or_else(|error| error.to_string(), |found| found.text);
            assert_eq!(found, wanted.trim_end(), "{}", path.display());
            count += 1;
        }
    }
    assert_eq!(count, 15);
}
