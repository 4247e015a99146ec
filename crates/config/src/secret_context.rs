//! What a secret knows about the place it was named in, though serde hands no context to a value.

use std::cell::RefCell;
use std::path::PathBuf;

use super::env::Env;
use super::secret::Secret;

/// Where secrets are looked up: beside the config file and in the environment.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The directory that `${file:path}` is relative to.
    pub directory: PathBuf,
    /// The environment that `${NAME}` is looked up in.
    pub env: Env,
}

impl Default for Surroundings {
    fn default() -> Self {
        Self { directory: PathBuf::from("."), env: Env::of_process() }
    }
}

/// A secret that was met while a table was read.
#[derive(Clone)]
pub(super) struct Seen {
    pub(super) text: String,
    pub(super) literal: bool,
    pub(super) secret: Secret,
}

struct Reading {
    secret_context: Surroundings,
    seen: Vec<Seen>,
}

thread_local! {
    // serde hands no context to a value; a table is read on one thread without a pause, so this does.
    static READING: RefCell<Vec<Reading>> = const { RefCell::new(Vec::new()) };
}

/// Runs `read`, during which secrets learn their surroundings; answers which ones were met.
pub(super) fn reading<T>(secret_context: &Surroundings, read: impl FnOnce() -> T) -> (T, Vec<Seen>) {
    READING.with_borrow_mut(|stack| {
        stack.push(Reading { secret_context: secret_context.clone(), seen: Vec::new() });
    });
    let value = read();
    let reading = READING.with_borrow_mut(Vec::pop);
    (value, reading.map(|reading| reading.seen).unwrap_or_default())
}

pub(super) fn note_seen(seen: Seen) {
    READING.with_borrow_mut(|stack| {
        if let Some(reading) = stack.last_mut() {
            reading.seen.push(seen);
        }
    });
}

pub(super) fn current_surroundings() -> Surroundings {
    READING.with_borrow(|stack| stack.last().map(|one| one.secret_context.clone())).unwrap_or_default()
}
