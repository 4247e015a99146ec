//! tsuzuki: collects from the outside world on a schedule, remembers how far it has read, and tells what is new, once.
//!
//! A module may use only lower floors and its own folder; ARCHITECTURE.md draws the floors, and a test keeps to them.

pub mod app;
pub mod blogs;
pub mod books;
pub mod channel;
pub mod cli;
pub mod commits;
pub mod config;
pub mod db;
pub mod demo;
pub mod engine;
pub mod export;
pub mod fail;
pub mod fetch;
pub mod hash;
pub mod id;
pub mod import;
pub mod ledger;
pub mod llm;
pub mod parse;
pub mod press;
pub mod text;
pub mod time;
pub mod web;
