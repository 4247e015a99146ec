//! Enums whose variants are words, used in the database, the command line, the pages and the API.

use crate::phrase;
use crate::phrase::Phrase;
use crate::text;

/// An unknown word; suggests the nearest one, or lists all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{hint}")]
pub struct UnknownWord {
    hint: Phrase,
}

impl UnknownWord {
    /// For a text that is not among `words`.
    pub fn new(text: &str, words: &[&str]) -> Self {
        let hint = match text::nearest(text, words.iter().copied()) {
            Some(near) => phrase!("did you mean `{near}`?", "`{near}` ではありませんか？"),
            None => phrase!("known: {words}", "指定できる値：{words}", words = words.join(", ")),
        };
        Self { hint }
    }

    /// The suggestion.
    pub fn phrase(&self) -> &Phrase {
        &self.hint
    }
}

/// Defines an enum of words, each stated once, with `ALL`, `word`, `Display`, `FromStr` and `Serialize`.
///
/// ```
/// tsuzuki_stdx::word_enum! {
///     /// Where a page stands.
///     pub enum Progress {
///         /// It was not read yet.
///         NotStarted = "not_started",
///         Done = "done",
///     }
/// }
/// assert_eq!(Progress::ALL, [Progress::NotStarted, Progress::Done]);
/// assert_eq!(Progress::NotStarted.word(), "not_started");
/// assert_eq!("done".parse(), Ok(Progress::Done));
/// assert_eq!("gone".parse::<Progress>().unwrap_err().to_string(), "did you mean `done`?");
/// assert_eq!("".parse::<Progress>().unwrap_err().to_string(), "known: not_started, done");
/// ```
#[macro_export]
macro_rules! word_enum {
    ($(#[$of_enum:meta])* $vis:vis enum $name:ident {
        $($(#[$of_variant:meta])* $variant:ident = $word:literal),+ $(,)?
    }) => {
        $(#[$of_enum])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        $vis enum $name {
            $($(#[$of_variant])* $variant,)+
        }

        impl $name {
            /// All variants, in the order of their declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word that is stored and shown.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.word())
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = $crate::word_enum::UnknownWord;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                match word {
                    $($word => Ok(Self::$variant),)+
                    _ => Err($crate::word_enum::UnknownWord::new(word, &[$($word),+])),
                }
            }
        }

        impl $crate::serde::Serialize for $name {
            fn serialize<S: $crate::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.word())
            }
        }
    };
}
