//! The dashboard in a real Chromium: what people see, click, type and copy. `scripts/test` installs what this needs.

mod browser;
mod crawl;
mod program;
