//! A loopback world that speaks the real protocols: `demo` and the tests both use it.
//!
//! ```text
//! world ──story──▶ ministry, Google Books, three blogs, GitLab, Gemini      (what tsuzuki reads)
//!   │              Mastodon, SMTP ──▶ page                                  (what it tells)
//!   └──journal (one file; with it a world can be left and come back to)
//! ```

pub mod faults;
pub mod figures;
pub mod gemini;
pub mod gitlab;
pub mod google_books;
pub mod journal;
pub mod mail;
pub mod mastodon;
pub mod ministry;
pub mod open;
pub mod openai;
mod opinion;
pub mod page;
mod server;
pub mod site;
pub mod smtp;
pub mod store;
mod story;
pub mod webhook;
pub mod world;
