//! Any text as the answer of a model: what is taken from it has no control characters and is as short as asked for.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| tsuzuki::llm::fuzz_answer(text));
