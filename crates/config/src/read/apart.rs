//! Parses a long file in a way that releases the memory of its tree.

use std::thread::{self, ScopedJoinHandle};

use crate::tree::TomlTable;

/// Larger files are parsed in their own thread.
const LONG: usize = 64 * 1024;

/// Parses `text`, or returns all syntax errors; a long one is parsed in its own thread.
///
/// The tree is dropped soon, while values made from it stay. In a common heap these would keep the memory of the tree
/// from being released; glibc gives every thread its own heap, which is empty once the tree is dropped.
pub(super) fn parse(text: &str) -> Result<TomlTable, Vec<toml::de::Error>> {
    if text.len() < LONG {
        return TomlTable::parse(text);
    }
    let joined = thread::scope(|scope| {
        let parsing = thread::Builder::new().name("config".to_owned());
        parsing.spawn_scoped(scope, || TomlTable::parse(text)).map(ScopedJoinHandle::join)
    });
    match joined {
        Ok(Ok(parsed)) => parsed,
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(_no_thread) => TomlTable::parse(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_file_is_parsed_like_a_short_one() {
        let comment = format!("# {}\n", "long ".repeat(LONG / 5));
        for text in ["a = 1\n[b]\nc = 'd'\n", "a = 1\n[b\nc = 'd'\n", ""] {
            let shown = |parsed: Result<TomlTable, Vec<toml::de::Error>>| match parsed {
                Ok(table) => table.to_json(&|_, text| text.to_owned()).to_string(),
                Err(errors) => errors.iter().map(toml::de::Error::message).collect(),
            };
            assert_eq!(shown(parse(&format!("{text}{comment}"))), shown(parse(text)), "{text}");
        }
    }
}
