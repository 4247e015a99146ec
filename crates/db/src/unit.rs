//! A closure sent to a database thread, and its result on the way back.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tokio::sync::oneshot;

use super::{Error, Result, Tx};

/// The access that a closure needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TxAccess {
    Read,
    Write,
    Claim,
}

pub(super) enum UnitAnswer<T> {
    Done(Result<T>),
    Panicked(Box<dyn Any + Send>),
}

/// A unit of work without generic types, for the threads.
pub(super) trait Unit: Send {
    fn access(&self) -> TxAccess;
    /// Runs the closure; its value is kept until [`Unit::answer`]. A panic counts as an error.
    fn run(&mut self, tx: &mut Tx<'_>) -> Result<()>;
    /// Sends the kept value, or the error in `outcome`, to the caller.
    fn answer(self: Box<Self>, outcome: Result<()>);
}

pub(super) struct Pending<T, F> {
    access: TxAccess,
    work: F,
    kept: Option<std::result::Result<T, Box<dyn Any + Send>>>,
    reply: oneshot::Sender<UnitAnswer<T>>,
}

impl<T, F> Pending<T, F>
where
    T: Send,
    F: Fn(&mut Tx<'_>) -> Result<T> + Send,
{
    pub(super) fn new(access: TxAccess, work: F) -> (Self, oneshot::Receiver<UnitAnswer<T>>) {
        let (reply, answer) = oneshot::channel();
        (Self { access, work, kept: None, reply }, answer)
    }
}

impl<T, F> Unit for Pending<T, F>
where
    T: Send,
    F: Fn(&mut Tx<'_>) -> Result<T> + Send,
{
    fn access(&self) -> TxAccess {
        self.access
    }

    fn run(&mut self, tx: &mut Tx<'_>) -> Result<()> {
        self.kept = None;
        match catch_unwind(AssertUnwindSafe(|| (self.work)(tx))) {
            Ok(Ok(value)) => {
                self.kept = Some(Ok(value));
                Ok(())
            }
            Ok(Err(error)) => Err(error),
            Err(payload) => {
                self.kept = Some(Err(payload));
                Err(Error::Panicked)
            }
        }
    }

    fn answer(self: Box<Self>, outcome: Result<()>) {
        let answer = match (outcome, self.kept) {
            (Ok(()), Some(Ok(value))) => UnitAnswer::Done(Ok(value)),
            (Err(Error::Panicked), Some(Err(payload))) => UnitAnswer::Panicked(payload),
            (Err(error), _) => UnitAnswer::Done(Err(error)),
            (Ok(()), _) => UnitAnswer::Done(Err(Error::Closed)),
        };
        // The caller may be gone; committed work stays committed.
        let _ = self.reply.send(answer);
    }
}
