//! Any text as an address, with and without a base: the normal form is stable, and so is the key.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tsuzuki::parse::url::{Url, comparison_key, normalize, resolve};

fuzz_target!(|texts: (&str, &str)| {
    let base = resolve(None, texts.0);
    let Some(url) = resolve(base.as_ref(), texts.1) else { return };
    let once = normalize(&url);
    if let Ok(again) = Url::parse(&once) {
        assert_eq!(normalize(&again), once);
        assert_eq!(comparison_key(&again), comparison_key(&url));
    }
});
