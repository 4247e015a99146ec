//! A loopback world that speaks the real protocols: `demo` and the tests both use it.

pub mod faults;
pub mod google_books;
pub mod webhook;
