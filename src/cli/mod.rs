//! The command line: one file per noun.

pub mod inspect;
