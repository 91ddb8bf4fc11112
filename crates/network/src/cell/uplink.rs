//! The path from the UEs to the core network: a link per UE, whose packets leave at the start of a TTI.

use units::{Deadlines, Instant};

use super::cargo::Cargo;
use super::config::UplinkConfig;
use super::{CORE, Gate, TTI};
use crate::{Amount, DropCause, Link, MediumOutput, Node, Output, Packet};

#[derive(Debug)]
pub(crate) struct Uplink {
    links: Vec<Link>,
    /// An unused link to copy.
    unused: Link,
    /// For each UE, the first TTI start at which a packet leaves.
    due: Deadlines,
    output: Output,
}

/// The TTI that begins at `at`, or the next one.
fn tti_from(at: Instant) -> u64 {
    at.as_nanos().div_ceil(TTI.as_nanos())
}

impl Uplink {
    pub(crate) fn new(config: &UplinkConfig, ues: usize) -> Self {
        let link = Link::new(config.rate, config.delay).queue(config.queue);
        Self { links: vec![link.clone(); ues], unused: link, due: Deadlines::new(), output: Output::new() }
    }

    pub(crate) fn enter(&mut self, ue: usize, packet: Packet, now: Instant, out: &mut MediumOutput) {
        if let Err(packet) = self.links[ue].take(packet, now) {
            out.discard(CORE, packet, DropCause::QueueFull);
        }
        self.plan(ue);
    }

    /// Returns the next TTI start at which a packet leaves.
    pub(crate) fn next_wakeup(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| at)
    }

    /// Passes on everything that is due.
    pub(crate) fn advance(&mut self, now: Instant, out: &mut MediumOutput) {
        while let Some((_, ue)) = self.due.first().filter(|(at, _)| *at <= now) {
            self.links[ue].process(None, now, &mut self.output);
            self.output.take_forwarded().for_each(|packet| out.forward(CORE, packet));
            self.output.take_dropped().for_each(|(packet, cause)| out.discard(CORE, packet, cause));
            self.plan(ue);
        }
    }

    /// Plans the next departure. A packet that is due within a TTI leaves when the next one begins.
    fn plan(&mut self, ue: usize) {
        let due = self.links[ue].next_wakeup().map(|at| Instant::from_nanos(tti_from(at) * TTI.as_nanos()));
        self.due.set(ue, due);
    }

    pub(crate) fn held(&self) -> Amount {
        self.links.iter().fold(Amount::default(), |sum, link| sum + link.held())
    }

    pub(crate) fn backlog(&self, ue: usize) -> Amount {
        self.links[ue].backlog()
    }

    /// Drops everything inside the UE's link.
    pub(crate) fn flush(&mut self, ue: usize, lost: &mut Vec<(Gate, Cargo, DropCause)>) {
        // A clone of the old link would stay busy for the time that the lost packets take.
        let mut left = core::mem::replace(&mut self.links[ue], self.unused.clone());
        left.process(None, Instant::FAR_FUTURE, &mut self.output);
        lost.extend(self.output.take_forwarded().map(|packet| (CORE, packet.into(), DropCause::Outage)));
        lost.extend(self.output.take_dropped().map(|(packet, cause)| (CORE, packet.into(), cause)));
        self.due.set(ue, None);
    }
}
