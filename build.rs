//! How the program is linked.
#![allow(clippy::print_stdout, reason = "this is how Cargo is told")]

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=TSUZUKI_PORTABLE");
    // Whatever holds an address is put right when the program starts, along a list that stays in memory: in the short form a bit for
    // each place, in the other 24 bytes, which is two megabytes.
    if knows_short_lists() {
        println!("cargo::rustc-link-arg=-Wl,-z,pack-relative-relocs");
    }
}

/// Whether the program is for this machine alone, and its C library is glibc 2.36 or newer: an older one would refuse to start it.
/// What is handed out is built with `TSUZUKI_PORTABLE=1`.
fn knows_short_lists() -> bool {
    let variable = |name| std::env::var(name).unwrap_or_default();
    if !variable("TSUZUKI_PORTABLE").is_empty()
        || variable("HOST") != variable("TARGET")
        || variable("CARGO_CFG_TARGET_ENV") != "gnu"
    {
        return false;
    }
    let asked = Command::new("getconf").arg("GNU_LIBC_VERSION").output();
    let said = asked.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let version = said.trim().strip_prefix("glibc ").unwrap_or_default();
    let numbers: Vec<u32> = version.split('.').filter_map(|number| number.parse().ok()).collect();
    numbers >= vec![2, 36]
}
