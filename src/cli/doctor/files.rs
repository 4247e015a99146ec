//! Checks whether a SQLite file can be written at the configured place, by trying it, not by permissions.

use std::path::Path;

use tsuzuki::phrase;
use tsuzuki::phrase::Phrase;
use tsuzuki::text;

/// Why the file at `path` cannot be written, if it cannot.
///
/// Permissions are not enough: root passes them all, and a mount may be read-only. So a file is created and removed;
/// SQLite creates others beside its own, too.
pub(super) fn check_place(path: &Path) -> Result<(), Phrase> {
    let file = path.display().to_string();
    if path.exists() {
        if !path.is_file() {
            return Err(phrase!("{file} is not a file", "{file} はファイルではありません"));
        }
        // Open it without writing: nothing changes.
        let opened = std::fs::OpenOptions::new().append(true).open(path);
        opened.map_err(|error| {
            phrase!(
                "{file} cannot be written: {error}",
                "{file} に書き込めません：{error}",
                file = &file,
                error = error.to_string()
            )
        })?;
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // A run creates missing directories inside the first existing one.
    let Some(directory) = parent.ancestors().find(|directory| is_there(directory)) else {
        return Err(phrase!(
            "{directory} cannot be found",
            "{directory} が見つかりません",
            directory = parent.display().to_string()
        ));
    };
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    if !directory.is_dir() {
        return Err(phrase!(
            "{directory} is not a directory, so {file} cannot be made",
            "{directory} はディレクトリではないため、{file} を作成できません",
            directory = directory.display().to_string()
        ));
    }
    let tried = tempfile::Builder::new().prefix(".tsuzuki-").tempfile_in(directory);
    match tried {
        Ok(_) => Ok(()),
        Err(error) => Err(phrase!(
            "{directory} cannot be written to: {error}",
            "{directory} に書き込めません：{error}",
            directory = directory.display().to_string(),
            error = text::without_path(&error)
        )),
    }
}

/// Also true for the empty path, which is the working directory, and for a dangling link.
fn is_there(path: &Path) -> bool {
    path.as_os_str().is_empty() || path.symlink_metadata().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_good_if_a_file_can_be_made_there() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("file"), "").unwrap();
        std::fs::create_dir(at("directory")).unwrap();
        assert_eq!(check_place(&at("new.db")), Ok(()));
        assert_eq!(check_place(&at("file")), Ok(()));
        assert_eq!(check_place(&at("not/yet/there.db")), Ok(()));
        for (name, why) in [
            ("directory", "is not a file"),
            ("file/inside.db", "is not a directory"),
            ("file/deeper/inside.db", "is not a directory"),
        ] {
            let said = check_place(&at(name)).unwrap_err().to_string();
            assert!(said.contains(why), "{name}: {said}");
        }
        // Nobody can make files here, not even root.
        #[cfg(target_os = "linux")]
        assert!(
            check_place(Path::new("/proc/tsuzuki.db"))
                .unwrap_err()
                .to_string()
                .contains("cannot be written to")
        );
        let left: Vec<_> =
            std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left.len(), 2, "nothing stays: {left:?}");
    }
}
