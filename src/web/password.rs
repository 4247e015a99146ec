//! The password of the dashboard: in plain text or as a hash.

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;

use crate::hash::sha256_parts;
use crate::phrase;
use crate::phrase::Phrase;

/// The prefix of a password hash.
const MARK: &str = "$argon2";
/// The largest memory in KiB that a hash may need: the program runs on small machines.
const MAX_MEMORY: u32 = 64 * 1024;

/// Why a password hash cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadHash {
    Malformed,
    /// It needs too much memory.
    TooLarge,
}

impl BadHash {
    pub fn phrase(&self) -> Phrase {
        match self {
            BadHash::Malformed => phrase!(
                "it begins like an argon2 hash but is none",
                "argon2 のハッシュのように始まりますが、そうではありません"
            ),
            BadHash::TooLarge => {
                phrase!("it asks for more than 64 MiB of memory", "64 MiB を超えるメモリを要求しています")
            }
        }
    }
}

crate::error_in_english!(BadHash);

/// The configured user and password.
#[derive(Debug)]
pub(super) struct Password {
    user: String,
    kept: Kept,
    /// Changes with the user or the password.
    pub(super) print: String,
}

#[derive(Debug)]
enum Kept {
    /// The digest of a plain-text password.
    Plain([u8; 32]),
    Hashed {
        phc: String,
        /// The digest of the right password, cached after the first success: programs send it with every request.
        known: Mutex<Option<[u8; 32]>>,
        /// One at a time: each costs some twenty megabytes.
        turn: Semaphore,
    },
}

impl Password {
    pub(super) fn new(user: &str, configured: &str) -> Result<Self, BadHash> {
        let kept = if configured.starts_with(MARK) {
            check(configured)?;
            let (phc, known) = (configured.to_owned(), Mutex::new(None));
            Kept::Hashed { phc, known, turn: Semaphore::new(1) }
        } else {
            Kept::Plain(digest(configured))
        };
        Ok(Self { user: user.to_owned(), kept, print: sha256_parts(&["web password", user, configured]) })
    }

    /// Whether these are the right ones. `may_go_on` is called when it is this attempt's turn.
    pub(super) async fn admits(&self, user: &str, password: &str, may_go_on: impl Fn() -> bool) -> bool {
        let given = digest(password);
        let is_user = is_same(&digest(user), &digest(&self.user));
        let is_right = match &self.kept {
            Kept::Plain(kept) => is_same(&given, kept),
            Kept::Hashed { known, .. } if known.lock().is_some_and(|known| is_same(&given, &known)) => true,
            Kept::Hashed { phc, known, turn } => {
                let _turn = turn.acquire().await;
                if !may_go_on() {
                    return false;
                }
                let (phc, password) = (phc.clone(), password.to_owned());
                let is_right =
                    tokio::task::spawn_blocking(move || verify(&phc, &password)).await.unwrap_or(false);
                if is_right {
                    *known.lock() = Some(given);
                }
                is_right
            }
        };
        is_user && is_right
    }
}

fn check(phc: &str) -> Result<(), BadHash> {
    let hash = PasswordHash::new(phc).map_err(|_| BadHash::Malformed)?;
    let params = argon2::Params::try_from(&hash).map_err(|_| BadHash::Malformed)?;
    argon2::Algorithm::try_from(hash.algorithm.as_str()).map_err(|_| BadHash::Malformed)?;
    match (hash.hash, params.m_cost() > MAX_MEMORY) {
        (None, _) => Err(BadHash::Malformed),
        (_, true) => Err(BadHash::TooLarge),
        _ => Ok(()),
    }
}

fn verify(phc: &str, password: &str) -> bool {
    PasswordHash::new(phc)
        .is_ok_and(|hash| Argon2::default().verify_password(password.as_bytes(), &hash).is_ok())
}

/// The hash of a password for the config file: argon2id with 19 MiB and two passes, as OWASP advises for small
/// machines.
pub fn hash(password: &str) -> Option<String> {
    Argon2::default().hash_password(password.as_bytes()).ok().map(|hash| hash.to_string())
}

fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text).into()
}

/// Compares in constant time.
fn is_same(a: &[u8; 32], b: &[u8; 32]) -> bool {
    a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_right_pair_is_admitted_in_plain_and_hashed() {
        let hashed = hash("päss:word").unwrap();
        assert!(hashed.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hashed}");
        assert_ne!(hash("päss:word").unwrap(), hashed, "salted");
        for kept in ["päss:word", &hashed] {
            let password = Password::new("me", kept).unwrap();
            for (user, given, expected) in [
                ("me", "päss:word", true),
                ("me", "päss:wor", false),
                ("Me", "päss:word", false),
                ("me", "", false),
                ("", "", false),
                ("me", &hashed, false),
                ("me", "päss:word", true),
            ] {
                assert_eq!(password.admits(user, given, || true).await, expected, "{kept} {user} {given}");
            }
        }
    }

    #[tokio::test]
    async fn a_guess_that_waited_for_its_turn_may_be_too_late() {
        let password = Password::new("me", &hash("right").unwrap()).unwrap();
        assert!(!password.admits("me", "right", || false).await);
        assert!(password.admits("me", "right", || true).await);
    }

    #[test]
    fn a_broken_or_greedy_hash_is_refused() {
        for wrong in [
            "$argon2id",
            "$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHQ",
            "$argon2x$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$aGFzaGhhc2hoYXNo",
        ] {
            assert_eq!(Password::new("me", wrong).unwrap_err(), BadHash::Malformed, "{wrong}");
        }
        let greedy = "$argon2id$v=19$m=1048576,t=2,p=1$c2FsdHNhbHQ$aGFzaGhhc2hoYXNoaGFzaA";
        assert_eq!(Password::new("me", greedy).unwrap_err(), BadHash::TooLarge);
    }

    #[test]
    fn the_fingerprint_changes_with_user_and_password() {
        let print = |user, password| Password::new(user, password).unwrap().print;
        assert_eq!(print("me", "a"), print("me", "a"));
        assert_ne!(print("me", "a"), print("me", "b"));
        assert_ne!(print("me", "a"), print("m", "ea"));
    }
}
