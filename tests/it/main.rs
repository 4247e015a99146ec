//! The one integration binary: real databases, real sockets, the real program.

#[macro_use]
mod databases;

mod architecture;
mod charsets;
mod concurrency;
mod config;
mod documents;
mod feeds;
mod ledger;
mod outbox;
mod schema;
mod statements;
mod transactions;
