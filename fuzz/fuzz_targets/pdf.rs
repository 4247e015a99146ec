//! Any bytes as a PDF: read within its limits or refused by name. `cargo +nightly fuzz run pdf`
#![no_main]

use libfuzzer_sys::fuzz_target;
use tsuzuki::parse::pdf::{Limit, text};

fuzz_target!(|bytes: &[u8]| {
    let limit = Limit { chars: 1000, decoded_bytes: 1 << 20, work: 5_000_000 };
    if let Ok(found) = text(bytes, limit) {
        assert!(!found.text.is_empty() && found.text.chars().count() <= limit.chars);
    }
});
