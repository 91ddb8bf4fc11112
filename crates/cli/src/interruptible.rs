//! The simulator, ended by Ctrl-C with what was measured until then.

use std::cell::Cell;

use lab::run::{Backend, GoesOn, LabHost, Passed, RunError, VirtualTime};
use linux::stop::Stop;
use simulator::Simulation;
use units::Instant;

/// Events between two looks for a signal: some tens of milliseconds.
const EVENTS_BETWEEN: u32 = 50_000;

/// Virtual time until somebody has enough of it.
pub struct Interruptible {
    stop: Stop,
}

impl Interruptible {
    /// One that listens for signals.
    ///
    /// # Errors
    /// If the process has no file descriptors left.
    pub fn new() -> linux::Result<Self> {
        Ok(Self { stop: Stop::on_signals()? })
    }
}

impl Backend for Interruptible {
    fn name(&self) -> &'static str {
        VirtualTime.name()
    }

    fn pass(
        &mut self,
        simulation: &mut Simulation<LabHost>,
        until: Instant,
        goes_on: &GoesOn<'_>,
    ) -> Result<Passed, RunError> {
        let (events, interrupted) = (Cell::new(0), Cell::new(false));
        let watched = |simulation: &Simulation<LabHost>| {
            events.set(events.get() + 1);
            if events.get() % EVENTS_BETWEEN == 0 {
                interrupted.set(self.stop.is_triggered());
            }
            !interrupted.get() && goes_on(simulation)
        };
        let passed = VirtualTime.pass(simulation, until, &watched)?;
        Ok(if interrupted.get() || self.stop.is_triggered() { Passed::Interrupted } else { passed })
    }
}
