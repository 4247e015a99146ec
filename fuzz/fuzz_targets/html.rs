//! Any bytes as a page: nothing panics, and a second look at the same page finds the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tsuzuki::parse::html::read_page;
use tsuzuki::parse::url::Url;

fuzz_target!(|bytes: &[u8]| {
    let url = Url::parse("https://example.com/dir/page").ok();
    assert_eq!(read_page(bytes, None, url.as_ref()), read_page(bytes, None, url.as_ref()));
});
