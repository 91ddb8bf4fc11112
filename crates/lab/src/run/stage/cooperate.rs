//! What is due between two steps of the simulation: the modules of cooperation hear of the hosts, and act on them.

use std::rc::Rc;

use cooperation::relay_selection::monitor::LinkUse;
use simulator::{EndpointHost, Simulation};
use units::Instant;

use super::{DESTINATION, RelayOnStage, SOURCE, Stage};
use crate::run::cooperation::{Adapting, LinkLoad, measure};

impl Stage {
    /// Does what is due now.
    pub(super) fn cooperate(&mut self) {
        let now = self.simulation.now();
        if self.cooperating.selection.as_ref().is_some_and(|selection| selection.next_advert_at <= now) {
            self.select_relays(now);
        }
        if self.cooperating.sharing.as_ref().is_some_and(|sharing| sharing.next_at() <= now) {
            self.share_bandwidth();
        }
        if let Some(adapting) = self.cooperating.adapting.as_mut().filter(|adapting| adapting.next_at() <= now) {
            report_delays(&self.simulation, &self.relays, adapting, now);
            self.simulation.with_host(SOURCE, |host, now| adapting.period(&mut host.endpoint, now));
        }
        self.deliver_ranges(now);
    }

    /// What the destination said of its ranges reaches the relays.
    fn deliver_ranges(&mut self, now: Instant) {
        let Some(ranges) = self.cooperating.ranges.clone() else { return };
        loop {
            let due = ranges.borrow_mut().take_due(now);
            let Some(due) = due else { return };
            for index in due.relays(self.relays.len()) {
                let Some(element) = self.relays[index].parts.forwarding.filter(|_| !self.is_gone(index)) else {
                    continue;
                };
                let frame = ranges.borrow().frame_to(index, due.frame);
                let passed = self.cooperating.messages.tell_relay(index, frame);
                if let Some(frame) = passed.frame {
                    element.tell(frame, &mut self.simulation);
                }
                if passed.refused {
                    ranges.borrow_mut().repeat(index, now);
                }
            }
        }
    }

    /// What the relays that are there see of their links.
    fn measure_links(&self) -> Vec<Option<LinkUse>> {
        let links = self.relays.iter().enumerate().map(|(index, relay)| {
            (!self.is_gone(index)).then(|| (relay.parts.cellular, relay.local.received_packet_bytes()))
        });
        measure(self.simulation.network(), self.cell, links)
    }

    /// The relays tell of their own flows, and the source hears it.
    fn share_bandwidth(&mut self) {
        let load = |(link, relay): (Option<LinkUse>, &RelayOnStage)| {
            Some(LinkLoad { link: link?, flows: relay.local.flows_in_packets() })
        };
        let loads = self.measure_links().into_iter().zip(&self.relays).map(load).collect();
        let Some(sharing) = &mut self.cooperating.sharing else { return };
        let messages = &mut self.cooperating.messages;
        self.simulation.with_host(SOURCE, |host, now| sharing.period(loads, messages, &mut host.endpoint, now));
    }

    /// The relays advertise, and the destination draws its conclusions.
    fn select_relays(&mut self, now: Instant) {
        let measured = self.measure_links();
        let Some(selection) = &mut self.cooperating.selection else { return };
        let adverts = self.cooperating.messages.adverts(selection.offers.adverts(&measured, now));
        let is_end = selection.next_at <= now;
        if is_end {
            selection.next_at = now + selection.offers.period();
        }
        selection.next_advert_at = selection.next_at.min(now + selection.offers.advert_period());
        let (steering, ranges) = (Rc::clone(&selection.steering), self.cooperating.ranges.clone());
        self.simulation.with_host(DESTINATION, |host, now| {
            let mut steering = steering.borrow_mut();
            match is_end {
                true => steering.period(adverts, &mut host.endpoint, now),
                false => steering.advertised(adverts, &mut host.endpoint, now),
            }
            if let Some(ranges) = ranges {
                ranges.borrow_mut().set_rates(|| steering.offers_in_use(now));
            }
            drop(steering);
            host.ask_apps();
        });
    }
}

/// Relays that acknowledge at once tell the source of their ways to the destination, if it wants to know.
fn report_delays(
    simulation: &Simulation<EndpointHost>,
    relays: &[RelayOnStage],
    adapting: &mut Adapting,
    now: Instant,
) {
    let Some(delays) = adapting.relays() else { return };
    for (index, relay) in relays.iter().enumerate() {
        let Some(forwarding) = relay.parts.forwarding else { continue };
        let splices = forwarding.splices(simulation.network());
        splices.into_iter().for_each(|(splice, stats)| delays.report(index, splice, &stats, now));
    }
}
