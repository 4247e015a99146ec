//! The tsuzuki command.
fn main() {}
