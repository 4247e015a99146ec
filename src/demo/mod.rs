//! A loopback world that speaks the real protocols: `demo` and the tests both use it.

pub mod faults;
pub mod gemini;
pub mod gitlab;
pub mod google_books;
pub mod mastodon;
pub mod ministry;
pub mod open;
pub mod openai;
pub mod site;
pub mod smtp;
pub mod webhook;
