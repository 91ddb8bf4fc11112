//! Stores values from a thread of its own, so that a slow disk does not hold up its owner.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use linux::{Error, Result};

use crate::join::rights;

/// A thread that stores values of type `T`, one at a time. Dropping this waits for it.
#[derive(Debug)]
pub struct Storer<T> {
    /// `None` while this is dropped, which ends the thread.
    values: Option<Sender<T>>,
    outcomes: Receiver<Result<T>>,
    is_busy: bool,
    thread: Option<JoinHandle<()>>,
}

impl<T: Send + 'static> Storer<T> {
    /// Starts the thread, which calls `store` with each value.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(mut store: impl FnMut(&T) -> Result<()> + Send + 'static) -> Result<Self> {
        let (values, to_store) = mpsc::channel::<T>();
        let (done, outcomes) = mpsc::channel();
        let work = move || {
            // It may start before its owner gives up its rights. If it keeps them, it still does nothing else.
            let _ = rights::give_up();
            while let Ok(value) = to_store.recv() {
                let outcome = store(&value).map(|()| value);
                if done.send(outcome).is_err() {
                    return;
                }
            }
        };
        let thread =
            thread::Builder::new().name("storer".into()).spawn(work).map_err(Error::system("start a thread"))?;
        Ok(Self { values: Some(values), outcomes, is_busy: false, thread: Some(thread) })
    }

    /// Passes a value on to be stored. Must not be called while another one is being stored.
    pub fn store(&mut self, value: T) {
        debug_assert!(!self.is_busy, "one value at a time");
        // The thread lives until this is dropped.
        self.is_busy = self.values.as_ref().is_some_and(|values| values.send(value).is_ok());
    }

    /// Returns whether a value is being stored whose outcome was not taken.
    pub const fn is_busy(&self) -> bool {
        self.is_busy
    }

    /// Returns the outcome if one is there: the value that is stored now, or why it is not.
    pub fn outcome(&mut self) -> Option<Result<T>> {
        let outcome = self.outcomes.try_recv().ok()?;
        self.is_busy = false;
        Some(outcome)
    }

    /// Like [`Self::outcome`], but waits while a value is being stored.
    pub fn wait(&mut self) -> Option<Result<T>> {
        let outcome = self.is_busy.then(|| self.outcomes.recv().ok()).flatten();
        self.is_busy = false;
        outcome
    }

    /// Like [`Self::wait`], for at most `limit`. If it returns with a value still being stored, [`Self::is_busy`].
    pub fn wait_for(&mut self, limit: Duration) -> Option<Result<T>> {
        let outcome = self.is_busy.then(|| self.outcomes.recv_timeout(limit).ok()).flatten();
        self.is_busy &= outcome.is_none();
        outcome
    }

    /// Ends the thread once it has stored the value that it is storing, without waiting for that.
    pub fn leave(mut self) {
        drop(self.thread.take());
    }
}

impl<T> Drop for Storer<T> {
    fn drop(&mut self) {
        drop(self.values.take());
        if let Some(thread) = self.thread.take() {
            // It has no more to do, whatever it ended with.
            let _ = thread.join();
        }
    }
}
