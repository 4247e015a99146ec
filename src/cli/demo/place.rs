//! The directory of a demo: temporary, or kept and reused.

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use tempfile::{NamedTempFile, TempDir};

use crate::cli::{Context, Error, Output, Result};
use tsuzuki::config::value::Zone;
use tsuzuki::demo::journal;
use tsuzuki::demo::world::{self, World};
use tsuzuki::phrase;
use tsuzuki::text::Language;

/// The directory of a demo.
pub(super) enum DemoDirectory {
    /// Removed with the demo.
    Passing(TempDir),
    Kept(PathBuf),
}

impl DemoDirectory {
    /// Creates the directory, or uses an empty one or that of a demo.
    pub(super) fn open(keep: Option<&Path>) -> Result<Self> {
        let Some(path) = keep else {
            return Ok(DemoDirectory::Passing(tempfile::Builder::new().prefix("tsuzuki-demo-").tempdir()?));
        };
        let shown = path.display();
        let unusable = |error: std::io::Error| {
            Error::failed(phrase!(
                "{shown} cannot be used: {error}",
                "{shown} は使えません：{error}",
                shown = shown.to_string(),
                error = error.to_string()
            ))
            .hint(phrase!(
                "name a new or empty directory",
                "新しいディレクトリか空のディレクトリを指定してください"
            ))
        };
        std::fs::create_dir_all(path).map_err(unusable)?;
        let path = path.canonicalize().map_err(unusable)?;
        let mut other = None;
        for entry in path.read_dir().map_err(unusable)? {
            let name = entry.map_err(unusable)?.file_name();
            if name == journal::FILE {
                return Ok(DemoDirectory::Kept(path));
            }
            other = other.or(Some(name));
        }
        match other {
            None => Ok(DemoDirectory::Kept(path)),
            Some(other) => Err(Error::usage(phrase!(
                "{shown} holds something else than a demo: `{other}`",
                "{shown} にはデモのものではない `{other}` があります",
                shown = shown.to_string(),
                other = other.to_string_lossy().into_owned()
            ))
            .hint(phrase!(
                "name a new or empty directory, or one that an earlier demo has kept",
                "新しいディレクトリ、空のディレクトリ、または以前のデモが残したディレクトリを指定してください"
            ))),
        }
    }

    pub(super) fn path(&self) -> &Path {
        match self {
            DemoDirectory::Passing(directory) => directory.path(),
            DemoDirectory::Kept(path) => path,
        }
    }

    /// Removes a temporary directory.
    pub(super) fn close(self, out: &Output) {
        if let DemoDirectory::Passing(directory) = self {
            let path = directory.path().to_owned();
            if let Err(error) = directory.close() {
                out.warn(phrase!(
                    "{path} could not be removed: {error}",
                    "{path} を削除できません：{error}",
                    error = error.to_string()
                ));
            }
        }
    }
}

/// Writes the config file and its secrets, unless it exists, because the user may have changed it. Then `listen` and
/// `language` change only their lines.
pub(super) fn put_config(
    path: &Path,
    world: &World,
    listen: Option<SocketAddr>,
    context: &Context,
) -> Result<()> {
    let language = context.global.lang;
    let known = match std::fs::read_to_string(path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    if let Some(listen) = listen.filter(|listen| !listen.ip().to_canonical().is_loopback())
        && known.as_ref().is_none_or(|text| !text.contains("[web.auth]"))
    {
        return Err(Error::usage(phrase!(
            "{listen} is reachable from other machines without a login",
            "{listen} はほかのマシンから届きますが、ログインが不要になっています",
            listen = listen.to_string()
        ))
        .hint(phrase!(
            "listen on 127.0.0.1, or keep the demo and set [web.auth] in its tsuzuki.toml",
            "127.0.0.1 で待ち受けるか、デモを残してその tsuzuki.toml の [web.auth] を設定してください"
        )));
    }
    let text = match known {
        Some(mut text) => {
            if let Some(listen) = listen {
                text = with_line(&text, "listen", &world::free_address(listen)?.to_string())?;
            }
            match language {
                Some(language) => with_line(&text, "language", language.word())?,
                None => text,
            }
        }
        None => {
            let listen = listen.unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 0).into());
            let language = language.or_else(|| context.env.find_language()).unwrap_or(Language::En);
            let zone = context.env.find_zone().unwrap_or_else(Zone::utc);
            world.render_config(world::free_address(listen)?, language, &zone)
        }
    };
    let keys = path.with_file_name("keys");
    std::fs::create_dir_all(&keys)?;
    for (name, key) in world::KEYS {
        put(&keys.join(name), key)?;
    }
    put(path, &text)
}

/// Writes a file atomically, for this user only.
fn put(path: &Path, text: &str) -> Result<()> {
    let mut file = NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
    file.write_all(text.as_bytes())?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// The text with another value in the line of `key`.
fn with_line(text: &str, key: &str, value: &str) -> Result<String> {
    let start = format!("{key} = ");
    if !text.lines().any(|line| line.starts_with(&start)) {
        return Err(Error::usage(phrase!(
            "the kept config has no line `{start}…` that could be changed",
            "残された設定に、変更できる行 `{start}…` がありません"
        ))
        .hint(phrase!("change it in its tsuzuki.toml", "その tsuzuki.toml で変更してください")));
    }
    let line =
        |line: &str| if line.starts_with(&start) { format!("{start}\"{value}\"\n") } else { line.to_owned() };
    Ok(text.split_inclusive('\n').map(line).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_new_an_empty_or_a_demos_directory_is_taken() {
        let directory = tempfile::tempdir().unwrap();
        let new = directory.path().join("a/b");
        assert!(DemoDirectory::open(Some(&new)).is_ok(), "a new one");
        assert!(DemoDirectory::open(Some(&new)).is_ok(), "an empty one");
        std::fs::write(new.join("notes.txt"), "mine").unwrap();
        let Err(refused) = DemoDirectory::open(Some(&new)) else {
            panic!("a directory of the user's was taken")
        };
        assert!(refused.plain().contains("`notes.txt`"));
        std::fs::write(new.join(journal::FILE), "").unwrap();
        assert!(DemoDirectory::open(Some(&new)).is_ok(), "that of a demo, whatever else the user put there");
        assert!(DemoDirectory::open(Some(&new.join("notes.txt"))).is_err(), "a file");
    }

    #[test]
    fn another_address_or_language_changes_one_line() {
        let text = "# my note\n[web]\nlisten = \"127.0.0.1:1\"\n[app]\nlanguage = \"en\"\n";
        let changed = with_line(text, "listen", "127.0.0.1:2").unwrap();
        assert_eq!(changed, text.replace(":1\"", ":2\""));
        assert_eq!(with_line(text, "language", "ja").unwrap(), text.replace("\"en\"", "\"ja\""));
        assert!(with_line("[app]\n", "language", "ja").is_err(), "nothing is left out silently");
    }
}
