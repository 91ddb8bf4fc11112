//! A switch that cuts and restores a link while the emulator runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use network::{DropCause, Node, Output, Packet};
use units::Instant;

/// Drops everything while it is off. All clones are the same switch: for both directions, and for its operator.
#[derive(Clone, Debug)]
pub struct Switch(Arc<AtomicBool>);

impl Switch {
    /// Creates a switch that is on.
    pub fn new() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }

    /// Turns it on or off.
    pub fn set(&self, on: bool) {
        // The switch publishes no other data, and its order relative to packets in flight does not matter.
        self.0.store(on, Ordering::Relaxed);
    }
}

impl Default for Switch {
    fn default() -> Self {
        Self::new()
    }
}

impl Node for Switch {
    fn process(&mut self, packet: Option<Packet>, _now: Instant, out: &mut Output) {
        match packet {
            Some(packet) if self.0.load(Ordering::Relaxed) => out.forward(packet),
            Some(packet) => out.discard(packet, DropCause::Outage),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn off_drops_and_on_passes_again() {
        let switch = Switch::new();
        let (mut node, mut out) = (switch.clone(), Output::new());
        let mut passes = |on| {
            switch.set(on);
            node.process(Some(Packet::from_raw(Bytes::from_static(&[0x45]))), Instant::ZERO, &mut out);
            (out.take_forwarded().count(), out.take_dropped().count())
        };
        assert_eq!([passes(true), passes(false), passes(true)], [(1, 0), (0, 1), (1, 0)]);
    }
}
