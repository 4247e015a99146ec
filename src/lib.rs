//! tsuzuki: watches feeds, book searches, blogs and Git hosts, remembers where it left off, and sends each new thing once.
//!
//! The kit below (`crates/`) knows nothing of pipelines. A module may use only lower floors and its own folder;
//! ARCHITECTURE.md draws the floors, and a test keeps to them.

pub mod app;
pub mod blogs;
pub mod books;
pub mod channel;
pub mod commits;
pub mod demo;
pub mod engine;
pub mod export;
pub mod import;
pub mod ledger;
pub mod llm;
pub mod press;
pub mod web;

pub use ::{config, db, fetch, parse};
pub use db::{migration, params, sql, sql_rows};
pub use stdx::{error_in_english, fail, hash, id, phrase, text, time, word_enum};
