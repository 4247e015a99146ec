//! SHA-256 as hex, and the seed's hash of a set of queries.

use sha2::{Digest, Sha256};

/// SHA-256 of `bytes` as 64 lower-case hex characters.
pub fn sha256_hex(bytes: impl AsRef<[u8]>) -> String {
    to_hex(&Sha256::digest(bytes.as_ref()))
}

/// SHA-256 over several parts, as hex; see [`digest_parts`].
pub fn sha256_parts(parts: &[&str]) -> String {
    to_hex(&digest_parts(parts))
}

/// SHA-256 over several parts, each preceded by its length, so that different lists of parts differ.
pub fn digest_parts<P: AsRef<str>>(parts: impl IntoIterator<Item = P>) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for part in parts {
        let part = part.as_ref();
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().into()
}

/// Longer keys are stored as their hash: indexes have a size limit.
const LONGEST_KEY: usize = 400;

/// `key`, or its hash if it is too long for an index.
pub fn bounded_key(key: String) -> String {
    // PostgreSQL text cannot contain NUL.
    if key.len() <= LONGEST_KEY && !key.contains('\0') { key } else { format!("sha256:{}", sha256_hex(key)) }
}

/// The first sixteen characters, for log lines.
pub fn short(hash: &str) -> &str {
    hash.get(..16).unwrap_or(hash)
}

/// Bytes as lower-case hex.
pub fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut hex = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        hex.push(char::from(DIGITS[usize::from(byte >> 4)]));
        hex.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    hex
}

/// The key of a set of search queries: independent of order and spacing.
///
/// Equal to the result of the seed's JavaScript: `trim`, runs of `\s` to one space, `sort()` by UTF-16 code units,
/// joined with line feeds, SHA-256.
pub fn query_set_hash<S: AsRef<str>>(queries: &[S]) -> String {
    sha256_hex(normalized_queries(queries).join("\n"))
}

/// The queries as they are hashed: trimmed, single-spaced, sorted by UTF-16 code units.
pub fn normalized_queries<S: AsRef<str>>(queries: &[S]) -> Vec<String> {
    let mut normalized: Vec<String> = queries.iter().map(|query| single_spaced(query.as_ref())).collect();
    normalized.sort_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
    normalized
}

fn single_spaced(query: &str) -> String {
    query.split(is_js_space).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// White space in JavaScript's `\s` and `trim`: it includes U+FEFF, but not U+0085.
fn is_js_space(c: char) -> bool {
    matches!(
        c,
        '\t' | '\n' | '\u{b}' | '\u{c}' | '\r' | ' ' | '\u{a0}' | '\u{1680}' | '\u{2000}'
            ..='\u{200a}' | '\u{2028}' | '\u{2029}' | '\u{202f}' | '\u{205f}' | '\u{3000}' | '\u{feff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_fit_into_an_index_and_stay_different() {
        let long = "x".repeat(5_000);
        assert!(bounded_key(long.clone()).len() < LONGEST_KEY);
        assert_ne!(bounded_key(long.clone()), bounded_key(format!("{long}y")));
        assert_eq!(bounded_key("a".into()), "a");
    }

    #[derive(serde::Deserialize)]
    struct Vector {
        queries: Vec<String>,
        hash: String,
    }

    /// The expected values were computed with the seed's function in Node.
    #[test]
    fn query_sets_hash_as_in_the_seed() {
        let vectors: Vec<Vector> =
            serde_json::from_str(include_str!("../../../tests/fixtures/query_set_hash.json")).unwrap();
        assert_eq!(vectors.len(), 18);
        for vector in vectors {
            assert_eq!(query_set_hash(&vector.queries), vector.hash, "{:?}", vector.queries);
        }
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        assert_ne!(sha256_parts(&["ab", "c"]), sha256_parts(&["a", "bc"]));
        assert_ne!(sha256_parts(&["a"]), sha256_parts(&["a", ""]));
    }

    #[test]
    fn a_short_hash_is_its_first_sixteen_characters() {
        assert_eq!(short(&sha256_hex("")), "e3b0c44298fc1c14");
        assert_eq!(short("abc"), "abc");
    }
}
