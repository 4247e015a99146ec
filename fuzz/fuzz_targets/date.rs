//! Any text as a date; what is read is written and read back the same. `cargo +nightly fuzz run date`
#![no_main]

use libfuzzer_sys::fuzz_target;
use tsuzuki::parse::feed::date;

fuzz_target!(|text: &str| {
    if let Some(at) = date::parse(text) {
        assert_eq!(date::parse(&at.to_string()), Some(at));
    }
});
