//! The one integration binary: real databases, real sockets, the real program.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

#[macro_use]
mod databases;

mod architecture;
mod blogs;
mod channels;
mod charsets;
mod command_line;
mod concurrency;
mod config;
mod documents;
mod feeds;
mod fetching;
mod kill;
mod ledger;
mod outbox;
mod press;
mod reference;
mod running;
mod seed_contract;
mod statements;
mod transactions;
