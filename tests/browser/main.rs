//! The dashboard in a real Chromium: what people see, click, type and copy. `scripts/test` installs what this needs.

mod access;
mod actions;
mod browser;
mod copying;
mod crawl;
mod keyboard;
mod program;
