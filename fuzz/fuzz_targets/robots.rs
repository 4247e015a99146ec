//! Any bytes as robots.txt: `scripts/fuzz robots`.
#![no_main]

#[path = "../targets.rs"]
#[allow(dead_code, reason = "the others are programs of their own")]
mod targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::read_robots(bytes));
