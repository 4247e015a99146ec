//! Any bytes as the answers of a Git host: commits that are read have SHAs, and titles of one line.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| tsuzuki::commits::host::fuzz_answers(bytes));
