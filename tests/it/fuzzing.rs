//! The documents that fuzzing has kept, and small changes of them, against every reader: a minute of `scripts/fuzz` in a second.

use std::path::Path;

#[path = "../../fuzz/targets.rs"]
mod targets;

/// Changed copies of each document.
const CHANGES: u64 = 40;

/// The next pseudo-random number of a fixed series.
fn next(seed: &mut u64) -> usize {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(*seed >> 33).unwrap()
}

/// Removes, repeats or overwrites a piece.
fn change(bytes: &[u8], seed: &mut u64) -> Vec<u8> {
    let mut changed = bytes.to_vec();
    let at = next(seed) % (changed.len() + 1);
    let end = (at + next(seed) % 16).min(changed.len());
    let piece = changed[at..end].to_vec();
    match next(seed) % 3 {
        0 => drop(changed.drain(at..end)),
        1 => drop(changed.splice(at..at, piece.repeat(1 + next(seed) % 50))),
        _ => changed[at..end].fill(b"\0\xff<&%\x1b0"[next(seed) % 7]),
    }
    changed
}

#[test]
fn every_reader_takes_what_fuzzing_has_kept_and_small_changes_of_it() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    for (name, read) in targets::TARGETS {
        let kept: Vec<_> =
            std::fs::read_dir(corpus.join(name)).unwrap().map(|file| file.unwrap().path()).collect();
        assert!(!kept.is_empty(), "nothing is kept for {name}");
        for (number, path) in kept.iter().enumerate() {
            let bytes = std::fs::read(path).unwrap();
            read(&bytes);
            let mut seed = number as u64;
            for _ in 0..CHANGES {
                read(&change(&bytes, &mut seed));
            }
        }
    }
}
