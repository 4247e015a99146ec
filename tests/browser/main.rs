//! The dashboard in a real Chromium: what people see, click, type and copy. `scripts/test` installs what this needs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod access;
mod actions;
mod browser;
mod copying;
mod crawl;
mod keyboard;
mod program;
