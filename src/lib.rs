//! tsuzuki: collects from the outside world on a schedule, remembers how far it has read, and tells what is new, once.
//!
//! The floors, from the ground up; a module may use only lower floors and its own folder:
//!
//! ```text
//! 0  time  id  hash  text  config  fail  words
//! 1  db  parse                         databases; pure readers of documents
//! 2  fetch  ledger                     HTTP; durable bookkeeping
//! 3  llm  channel                      ask a model; outbox and the places it sends to
//! 4  engine                            schedule, runner, bulk runs
//! 5  press  books  blogs  commits      four stories; they do not know each other
//! 6  app                               the one place that lists kinds and wires them
//! 7  web  demo  import  export
//! 8  cli
//! ```

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
