//! Counts the events of a run, and lets someone else end it.

use core::cell::Cell;
use core::fmt;
use std::rc::Rc;

use simulator::Tap;
use units::Instant;

/// The supervisor is asked after so many events.
const EVENTS_BETWEEN: u64 = 1000;

/// Who looks on while a scenario runs, and can end it.
pub struct Supervisor {
    /// See every segment of every host: the source is the first, the destination the second, relays and their
    /// correspondents follow.
    pub taps: Vec<Box<dyn Tap>>,
    /// Asked every thousand events, with the time and the events so far: whether the run goes on.
    pub goes_on: Rc<dyn Fn(Instant, u64) -> bool>,
}

/// How many events there were, and whether there may be more.
#[derive(Default)]
pub(super) struct Meter {
    events: Cell<u64>,
    halted: Cell<bool>,
    supervisor: Option<Supervisor>,
}

impl Meter {
    /// One under the eyes of a supervisor.
    pub fn under(supervisor: Supervisor) -> Self {
        Self { supervisor: Some(supervisor), ..Self::default() }
    }

    /// The taps that the supervisor wants.
    pub fn take_taps(&mut self) -> Vec<Box<dyn Tap>> {
        self.supervisor.as_mut().map(|supervisor| core::mem::take(&mut supervisor.taps)).unwrap_or_default()
    }

    /// An event is about to happen; whether it may.
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

    /// Events so far.
    pub fn events(&self) -> u64 {
        self.events.get()
    }

    /// Whether the supervisor has ended the run.
    pub fn is_halted(&self) -> bool {
        self.halted.get()
    }
}

impl fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supervisor").field("taps", &self.taps.len()).finish_non_exhaustive()
    }
}
