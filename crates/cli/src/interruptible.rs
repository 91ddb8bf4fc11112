//! The simulator, with Ctrl-C: an interrupted run keeps its measurements.

use std::cell::Cell;
use std::sync::Arc;

use lab::run::{Backend, GoesOn, LabHost, Passed, RunError, VirtualTime};
use linux::stop::Stop;
use simulator::Simulation;
use units::Instant;

/// Events between two checks for a signal: some tens of milliseconds.
const EVENTS_BETWEEN: u32 = 50_000;

/// Virtual time that a signal ends. Clones share what listens: one signal ends the runs of all.
#[derive(Clone)]
pub struct Interruptible {
    stop: Arc<Stop>,
}

impl Interruptible {
    /// Creates a backend that listens for signals.
    ///
    /// # Errors
    /// If the process has no file descriptors left.
    pub fn new() -> linux::Result<Self> {
        Ok(Self { stop: Arc::new(Stop::on_signals()?) })
    }

    /// Returns whether a signal has come.
    pub fn is_triggered(&self) -> bool {
        self.stop.is_triggered()
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
