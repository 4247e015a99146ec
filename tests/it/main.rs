//! The one integration binary: real databases, real sockets, the real program.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

#[macro_use]
mod databases;

mod architecture;
mod attention;
mod backups;
mod blogs;
mod books_cli;
mod books_config;
mod books_kill;
mod books_mail;
mod books_pages;
mod books_paging;
mod books_process;
mod books_runs;
mod books_world;
mod channels;
mod charsets;
mod check;
mod clocks;
mod command_line;
mod commit_cut;
mod commits;
mod commits_faults;
mod commits_jobs;
mod commits_runs;
mod commits_together;
mod concurrency;
mod config;
mod config_keys;
mod demo;
mod dictionary;
mod documents;
mod export;
mod feeds;
mod fetching;
mod first_steps;
mod hostile_feeds;
mod import;
mod job_test;
mod json;
mod kill;
mod ledger;
mod mail_wire;
mod move_database;
mod neighbours;
mod outbox;
mod pdf;
mod pdf_memory;
mod plans;
mod press;
mod readme;
mod reference;
mod restoring;
mod running;
mod secrets;
mod seed_contract;
mod seldom_runs;
mod statements;
mod terminal;
mod test_env;
mod transactions;
mod why;
mod withheld;
