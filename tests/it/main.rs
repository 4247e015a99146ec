//! The one integration binary: real databases, real sockets, the real program.

#[macro_use]
mod databases;

mod architecture;
mod concurrency;
mod config;
mod ledger;
mod outbox;
mod schema;
mod statements;
mod transactions;
