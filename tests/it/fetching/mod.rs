//! The fetcher against real sockets on loopback: honest servers, broken ones and hostile ones.

#![allow(clippy::unwrap_used, reason = "servers and helpers of tests")]

mod calling;
mod conditional;
mod decoding;
mod guarding;
mod hostile;
mod manners;
mod memory;
mod secrets;
mod server;
mod trust;
mod ways_out;
