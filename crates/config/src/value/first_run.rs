//! What a job announces after its first run.

use std::fmt;
use std::str::FromStr;

use super::{BadValue, text_value};
use stdx::phrase;

/// What the first successful check of a source announces.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum FirstRun {
    /// Nothing: existing entries are recorded as known.
    Baseline,
    /// This many of the newest entries.
    Latest(u32),
    /// Everything.
    All,
}

impl FromStr for FirstRun {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let number = text.strip_prefix("latest:").map(|number| number.trim().parse::<u32>());
        match (text, number) {
            ("baseline", _) => Ok(Self::Baseline),
            ("all", _) => Ok(Self::All),
            (_, Some(Ok(number))) if number > 0 => Ok(Self::Latest(number)),
            _ => Err(BadValue::new(phrase!(
                "`{text}` is not something to do on the first run",
                "`{text}` は初回の動作ではありません"))
            .with_hint(phrase!(
                "write \"baseline\" (send nothing), \"latest:3\" (the newest three) or \"all\"",
                "\"baseline\"（通知しない）、\"latest:3\"（最新の 3 件）、\"all\"（すべて）のいずれかを書きます"
            ))),
        }
    }
}

impl fmt::Display for FirstRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Baseline => f.write_str("baseline"),
            Self::Latest(number) => write!(f, "latest:{number}"),
            Self::All => f.write_str("all"),
        }
    }
}

text_value!(FirstRun, "what the first run sends", "初回の動作", "latest:3");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_forms_read_back_and_others_are_refused() {
        for text in ["baseline", "latest:1", "latest:500", "all"] {
            assert_eq!(text.parse::<FirstRun>().unwrap().to_string(), text);
        }
        for text in ["", "none", "latest", "latest:0", "latest:-1", "latest:x", "latest:99999999999", "All"] {
            assert!(text.parse::<FirstRun>().is_err(), "{text}");
        }
    }
}
