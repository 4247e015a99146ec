//! The one integration binary: real databases, real sockets, the real program.

#[macro_use]
mod databases;

mod architecture;
mod books_paging;
mod books_process;
mod books_runs;
mod books_world;
mod concurrency;
mod config;
mod ledger;
mod outbox;
mod schema;
mod statements;
mod transactions;
