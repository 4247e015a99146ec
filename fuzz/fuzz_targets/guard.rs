//! Any bytes as an address for the guard: `scripts/fuzz guard`.
#![no_main]

#[path = "../targets.rs"]
#[allow(dead_code, reason = "the others are programs of their own")]
mod targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::ask_guard(bytes));
