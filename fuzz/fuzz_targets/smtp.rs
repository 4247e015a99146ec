//! Any bytes as the answers of a mail server: read within their limits, or the connection is given up.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| tsuzuki::channel::email::fuzz_replies(bytes));
