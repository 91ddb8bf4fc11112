//! Counts the events of a run, and lets a supervisor end it.

use core::cell::Cell;
use core::fmt;
use std::rc::Rc;

use simulator::Tap;
use units::Instant;

/// Number of events between calls to the supervisor.
const EVENTS_BETWEEN: u64 = 1000;

/// Observes a running scenario and can end it.
pub struct Supervisor {
    /// Taps that see every segment of every host: the source is the first host, the destination the second; relays and
    /// their correspondents follow.
    pub taps: Vec<Box<dyn Tap>>,
    /// Called every thousand events, with the time and the number of events; returns whether the run continues.
    pub goes_on: Rc<dyn Fn(Instant, u64) -> bool>,
}

/// Counts events, and tells whether more may follow.
#[derive(Default)]
pub(super) struct Meter {
    events: Cell<u64>,
    halted: Cell<bool>,
    supervisor: Option<Supervisor>,
}

impl Meter {
    /// Creates a meter under a supervisor.
    pub fn under(supervisor: Supervisor) -> Self {
        Self { supervisor: Some(supervisor), ..Self::default() }
    }

    /// Takes the supervisor's taps.
    pub fn take_taps(&mut self) -> Vec<Box<dyn Tap>> {
        self.supervisor.as_mut().map(|supervisor| core::mem::take(&mut supervisor.taps)).unwrap_or_default()
    }

    /// Counts an event that is about to happen; returns whether it may.
    #[inline]
    pub fn tick(&self, now: Instant) -> bool {
        let events = self.events.get() + 1;
        self.events.set(events);
        if events % EVENTS_BETWEEN == 0 {
            let goes_on = self.supervisor.as_ref().is_none_or(|supervisor| (supervisor.goes_on)(now, events));
            self.halted.set(self.halted.get() || !goes_on);
        }
        !self.halted.get()
    }

    /// Number of events so far.
    pub fn events(&self) -> u64 {
        self.events.get()
    }

    /// Returns whether the supervisor has ended the run.
    pub fn is_halted(&self) -> bool {
        self.halted.get()
    }
}

impl fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supervisor").field("taps", &self.taps.len()).finish_non_exhaustive()
    }
}
