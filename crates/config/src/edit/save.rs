//! Saves an edited config file: validated first, then written atomically.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::{ConfigText, EditError};
use crate::{Config, Env, Kind, parse};

/// A config file on disk, being edited.
pub struct ConfigFile {
    /// The path as given, for messages.
    path: PathBuf,
    /// The path without symbolic links.
    target: PathBuf,
    original: String,
    /// The text, being edited.
    pub document: ConfigText,
}

impl ConfigFile {
    /// Opens the file for editing.
    pub fn open(path: &Path) -> Result<Self, EditError> {
        let target = path.canonicalize().map_err(|err| file_error(path, &err))?;
        let original = std::fs::read_to_string(&target).map_err(|err| file_error(path, &err))?;
        let document = ConfigText::parse(&original)?;
        Ok(Self { path: path.to_owned(), target, original, document })
    }

    /// The edited config, validated.
    pub fn read(&self, kinds: &'static [Kind], env: &Env) -> Result<Config, EditError> {
        parse(self.document.text(), &self.path, kinds, env).map_err(EditError::Problems)
    }

    /// Validates the result and replaces the file atomically; returns the new config.
    ///
    /// Nothing is written if the result has problems or if the file was changed meanwhile.
    pub fn save(self, kinds: &'static [Kind], env: &Env) -> Result<Config, EditError> {
        let text = self.document.text();
        let config = self.read(kinds, env)?;
        if text == self.original {
            return Ok(config);
        }
        let now = std::fs::read_to_string(&self.target).map_err(|err| file_error(&self.path, &err))?;
        if now != self.original {
            return Err(EditError::Changed(self.path.display().to_string()));
        }
        replace_file(&self.target, text.as_bytes()).map_err(|err| file_error(&self.path, &err))?;
        Ok(config)
    }
}

fn file_error(path: &Path, err: &std::io::Error) -> EditError {
    EditError::File { path: path.display().to_string(), why: stdx::text::without_path(err) }
}

/// Writes a temporary file beside it, syncs and renames it; permissions and owner are kept.
fn replace_file(target: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let directory = target.parent().unwrap_or(Path::new("."));
    let old = std::fs::metadata(target)?;
    let mut file = tempfile::Builder::new().prefix(".tsuzuki-").suffix(".toml").tempfile_in(directory)?;
    file.write_all(bytes)?;
    keep_owner(file.path(), &old)?;
    file.as_file().set_permissions(old.permissions())?;
    file.as_file().sync_all()?;
    file.persist(target).map_err(|err| err.error)?;
    #[cfg(unix)]
    std::fs::File::open(directory)?.sync_all()?;
    Ok(())
}

#[cfg(unix)]
fn keep_owner(path: &Path, old: &std::fs::Metadata) -> std::io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let new = std::fs::metadata(path)?;
    if (new.uid(), new.gid()) == (old.uid(), old.gid()) {
        return Ok(());
    }
    std::os::unix::fs::chown(path, Some(old.uid()), Some(old.gid()))
}

#[cfg(not(unix))]
fn keep_owner(_: &Path, _: &std::fs::Metadata) -> std::io::Result<()> {
    Ok(())
}
