//! Who may see the dashboard: one user and a password, asked for by the browser. Who guesses has to wait.

use std::sync::Arc;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{AUTHORIZATION, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use sha2::{Digest, Sha256};

use super::Reader;
use super::misses::Misses;
use crate::config::{MissingSecret, WebAuth};
use crate::time::Clock;

/// Paths that everybody may see.
fn is_public(path: &str) -> bool {
    path == "/healthz" || path.starts_with("/p/")
}

/// Knows what a browser must send, of which it holds only the hash, and who has guessed wrong.
#[derive(Debug)]
pub(super) struct Guard {
    hash: [u8; 32],
    clock: Clock,
    /// Apart from those of tokens: a crawler that follows dead links locks nobody out.
    misses: Misses,
}

impl Guard {
    /// Looks the password up.
    pub(super) fn new(auth: &WebAuth, clock: Clock) -> Result<Self, MissingSecret> {
        let password = auth.password.reveal()?;
        let hash = Sha256::digest(format!("{}:{}", auth.user, password.expose())).into();
        Ok(Self { hash, clock, misses: Misses::default() })
    }

    fn admits(&self, headers: &HeaderMap) -> bool {
        let Some(pair) = headers
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("basic"))
            .and_then(|(_, pair)| BASE64.decode(pair.trim()).ok())
        else {
            return false;
        };
        // Hashes of equal length, compared to the end: how long it takes tells nothing.
        let given: [u8; 32] = Sha256::digest(pair).into();
        given.iter().zip(&self.hash).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
    }
}

/// Lets public paths pass, and everything else with the right password.
pub(super) async fn check(
    State(guard): State<Arc<Guard>>,
    ConnectInfo(Reader(from)): ConnectInfo<Reader>,
    request: Request,
    next: Next,
) -> Response {
    if is_public(request.uri().path()) {
        return next.run(request).await;
    }
    // A browser asks without a password first, and that is no guess.
    if request.headers().contains_key(AUTHORIZATION) {
        let now = guard.clock.now();
        // Before the password is looked at: whoever has to wait does not learn whether this one was right.
        if let Some(wait) = guard.misses.wait(from.ip(), now) {
            let after = [(RETRY_AFTER, wait.as_secs().max(1).to_string())];
            return (StatusCode::TOO_MANY_REQUESTS, after, "too many wrong passwords; try again later\n")
                .into_response();
        }
        if guard.admits(request.headers()) {
            return next.run(request).await;
        }
        guard.misses.add(from.ip(), now);
    }
    let challenge = [(WWW_AUTHENTICATE, "Basic realm=\"tsuzuki\", charset=\"UTF-8\"")];
    (StatusCode::UNAUTHORIZED, challenge, "log in\n").into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_pair_is_admitted() {
        let hash = Sha256::digest("me:päss:word").into();
        let guard = Guard { hash, clock: Clock::system(), misses: Misses::default() };
        let with = |value: String| HeaderMap::from_iter([(AUTHORIZATION, value.parse().unwrap())]);
        let basic = |pair: &str| with(format!("Basic {}", BASE64.encode(pair)));
        assert!(guard.admits(&basic("me:päss:word")));
        assert!(guard.admits(&with(format!("basic  {}", BASE64.encode("me:päss:word")))));
        for wrong in ["me:päss:wor", "Me:päss:word", "", ":", "me:"] {
            assert!(!guard.admits(&basic(wrong)), "{wrong}");
        }
        assert!(!guard.admits(&with("Bearer x".into())) && !guard.admits(&HeaderMap::new()));
        assert!(!guard.admits(&with("Basic !!".into())));
    }

    #[test]
    fn the_public_paths_are_few() {
        assert!(is_public("/p/x") && is_public("/healthz"));
        for private in ["/", "/p", "/healthz/", "/healthzz", "/api/v1/p/x", "/P/x"] {
            assert!(!is_public(private), "{private}");
        }
    }
}
