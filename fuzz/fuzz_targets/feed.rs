//! Any bytes as a feed: read, shown, and read again under the same keys. `cargo +nightly fuzz run feed`
#![no_main]

use libfuzzer_sys::fuzz_target;
use tsuzuki::parse::feed::inspect::shown;
use tsuzuki::parse::feed::{Context, ENTRY_LIMIT, parse};

fuzz_target!(|bytes: &[u8]| {
    let context = Context { url: "https://example.org/feed".parse().ok(), ..Context::default() };
    let Ok(feed) = parse(bytes, &context) else { return };
    assert!(feed.entries.len() <= ENTRY_LIMIT);
    assert!(feed.entries.iter().all(|entry| !entry.key().is_empty()));
    shown(&feed);
});
