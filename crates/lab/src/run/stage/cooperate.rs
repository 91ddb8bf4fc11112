//! Actions between two steps of the simulation: relays read their counters, and the journal receives the destination's
//! reports.

use cooperation::agent::control::ControlStats;
use cooperation::agent::relay::RelayAgent;
use network::cell::{Cell, UeState};
use simulator::Simulation;
use units::Instant;

use super::{DESTINATION, SOURCE, Stage};
use crate::measure::results::ControlResults;
use crate::run::agents::measurement;
use crate::run::attacker::Attacker;
use crate::run::hosts::LabHost;

impl Stage {
    /// When a relay next reads its counters.
    pub(super) fn next_measurement(&self) -> Instant {
        self.next_measurement
    }

    /// Lets the relays whose time has come read their counters.
    pub(super) fn measure(&mut self) {
        if self.next_measurement > self.simulation.now() {
            return;
        }
        self.next_measurement = Instant::FAR_FUTURE;
        let cell = self.media.cell.and_then(|id| self.simulation.network().medium::<Cell>(id));
        let ues = cell.map(Cell::ues).unwrap_or_default();
        for index in 0..self.relays.len() {
            let Some(due) = self.relay_agent(index).map(RelayAgent::next_measurement) else { continue };
            if self.is_gone(index) {
                continue;
            }
            if due <= self.simulation.now() {
                self.measure_relay(index, ues.get(index));
            }
            let due = self.relay_agent(index).map_or(Instant::FAR_FUTURE, RelayAgent::next_measurement);
            self.next_measurement = self.next_measurement.min(due);
        }
    }

    /// Notes which cellular links have nothing to send at the end of a window: these are not full.
    pub(super) fn note_backlogs(&mut self) {
        let cell = self.media.cell.and_then(|id| self.simulation.network().medium::<Cell>(id));
        let ues = cell.map(Cell::ues).unwrap_or_default();
        for index in 0..self.relays.len() {
            let waits = self.waiting_bytes(index, ues.get(index)) > 0;
            self.relays[index].backlogged &= waits;
        }
    }

    /// Octets that wait for a relay's cellular link towards it.
    pub(super) fn waiting_bytes(&self, index: usize, ue: Option<&UeState>) -> u64 {
        ue.map_or_else(|| self.cellular_backlog(index), |ue| ue.queue.bytes)
    }

    fn measure_relay(&mut self, index: usize, ue: Option<&UeState>) {
        let waits = self.waiting_bytes(index, ue) > 0;
        // The next period begins.
        let backlogged = core::mem::replace(&mut self.relays[index].backlogged, waits) && waits;
        let (network, relay) = (self.simulation.network(), &self.relays[index]);
        let measured = measurement(network, &relay.parts.cellular, backlogged, ue, &relay.local);
        let Some(host) = relay.host else { return };
        self.simulation.with_host(host, |host, now| {
            let Some(host) = host.engine_mut() else { return };
            host.with_agent_mut(|role, endpoint| {
                if let Some(agent) = role.relay_mut() {
                    agent.handle_measurement(&measured, endpoint, now);
                }
            });
        });
    }

    /// Number of control messages that an attacker touched, and of channels that were closed because of octets that did
    /// not come from the peer.
    pub fn attacked(&self) -> (u64, u64) {
        let network = self.simulation.network();
        let attacker = self.attacker.and_then(|id| network.medium::<Attacker>(id));
        (attacker.map_or(0, Attacker::attacks), self.control().map_or(0, |control| control.channels_refused))
    }

    /// Cost of the control plane, where there is one.
    pub fn control(&self) -> Option<ControlResults> {
        let hosts = self.relays.iter().filter_map(|relay| relay.host).chain([SOURCE, DESTINATION]);
        let mut all = ControlStats::default();
        let engines = hosts.filter_map(|host| self.simulation.host(host).engine());
        engines.for_each(|host| all += host.agent().control_stats());
        self.kernel_source.iter().for_each(|source| all += source.control_stats());
        let ControlStats { sent_bytes, opened: channels_opened, refused: channels_refused, .. } = all;
        (all != ControlStats::default()).then_some(ControlResults { sent_bytes, channels_opened, channels_refused })
    }

    /// The agent of a relay, if it has one.
    pub fn relay_agent(&self, index: usize) -> Option<&RelayAgent> {
        self.simulation.host(self.relays[index].host?).engine()?.agent().relay()
    }

    /// Returns whether a relay has used up its lending volume.
    pub fn has_spent(&self, index: usize) -> bool {
        self.relay_agent(index).is_some_and(RelayAgent::has_spent)
    }

    /// Passes reports of the destination's agent to the journal.
    pub(super) fn hear(&mut self) {
        while has_news(&self.simulation) {
            let event = self.simulation.with_host(DESTINATION, |host, _| {
                host.engine_mut()?.with_agent_mut(|role, _| role.destination_mut().and_then(|agent| agent.poll_event()))
            });
            if let Some(failure) = event.and_then(|event| self.journal.note(event)) {
                self.delivered.borrow_mut().failure = Some(failure);
            }
        }
    }
}

/// Returns whether the destination's agent has something to report.
#[inline]
pub(super) fn has_news(simulation: &Simulation<LabHost>) -> bool {
    let destination = simulation.host(DESTINATION).engine().and_then(|host| host.agent().destination());
    destination.is_some_and(|agent| agent.has_events())
}
