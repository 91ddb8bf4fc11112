//! The simulator, ended by Ctrl-C with what was measured until then.

use std::rc::Rc;

use lab::run::{Backend, GoesOn, KernelSource, LabHost, Party, Passed, Place, Portals, RunError, Seat, VirtualTime};
use linux::stop::Stop;
use simulator::Simulation;
use units::Instant;

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

    fn has_relay_hosts(&self) -> bool {
        VirtualTime.has_relay_hosts()
    }

    fn seat(&mut self, place: &Place<'_>) -> Result<Seat, RunError> {
        VirtualTime.seat(place)
    }

    fn connect(&mut self, party: Party, portals: Portals) {
        VirtualTime.connect(party, portals);
    }

    fn pass(
        &mut self,
        simulation: &mut Simulation<LabHost>,
        until: Instant,
        goes_on: &GoesOn<'_>,
    ) -> Result<Passed, RunError> {
        let passed = VirtualTime.pass(simulation, until, goes_on)?;
        Ok(if self.stop.is_triggered() { Passed::Interrupted } else { passed })
    }

    fn source(&self) -> Option<Rc<dyn KernelSource>> {
        VirtualTime.source()
    }
}
