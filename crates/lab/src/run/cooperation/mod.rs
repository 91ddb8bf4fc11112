//! How the destination and its relays work together in a run.
//!
//! Each module of `cooperation` is a setting of the scenario and hears of the others only through what the hosts do: relay
//! selection commands the destination's engine.
//!
//! ```text
//! first_path  the connection's first subflow beside relays that acknowledge at once
//! forwarding  fast-ACK relays that hold what the destination does not want yet
//! offers      the relays' side: what their links do, every period
//! steering    the destination's side: adverts and arrivals to subflows
//! ```

mod first_path;
pub(super) mod forwarding;
mod offers;
mod steering;

use core::cell::RefCell;
use std::rc::Rc;

use units::Instant;

pub(super) use first_path::FirstPath;
use forwarding::{Ranges, Relay};
pub(super) use offers::{Offers, measure};
pub(super) use steering::{Steering, Steersman};

use super::stage::{DESTINATION, Stage};
use crate::metrics::Shared;

/// The modules that a scenario asks for.
#[derive(Default)]
pub(super) struct Cooperating {
    pub selection: Option<Selecting>,
    /// Differentiated forwarding: what the destination tells its relays.
    pub ranges: Option<Rc<RefCell<Ranges>>>,
}

/// Relay selection, and when its next period ends.
pub(super) struct Selecting {
    pub offers: Offers,
    pub steering: Rc<RefCell<Steering>>,
    pub next_at: Instant,
}

impl Cooperating {
    /// When something is to be done next.
    pub fn next_at(&self) -> Instant {
        let selection = self.selection.as_ref().map_or(Instant::FAR_FUTURE, |selection| selection.next_at);
        selection.min(self.ranges.as_ref().map_or(Instant::FAR_FUTURE, |ranges| ranges.borrow().next_at()))
    }

    /// The collector of the connection's metrics hears of the active set.
    pub fn tell(&self, collector: &Shared) {
        if let Some(selection) = &self.selection {
            selection.steering.borrow_mut().tell(Rc::clone(collector));
        }
    }
}

impl Stage {
    /// Does what is due now.
    pub fn cooperate(&mut self) {
        let now = self.simulation.now();
        if self.cooperating.selection.as_ref().is_some_and(|selection| selection.next_at <= now) {
            self.select_relays(now);
        }
        self.deliver_ranges(now);
    }

    /// What the destination said of its ranges reaches the relays.
    fn deliver_ranges(&mut self, now: Instant) {
        let Some(ranges) = self.cooperating.ranges.clone() else { return };
        while let Some(announcement) = ranges.borrow_mut().take_due(now) {
            for relay in self.relays.iter().filter_map(|relay| relay.parts.fast_ack) {
                self.simulation.with_medium(relay, |relay: &mut Relay, now| {
                    let (relay, holding) = relay.parts();
                    holding.on_announcement(announcement, relay, now);
                });
            }
        }
    }

    /// The relays advertise, and the destination draws its conclusions.
    fn select_relays(&mut self, now: Instant) {
        let links = self.relays.iter().enumerate().map(|(index, relay)| {
            (!self.is_gone(index)).then(|| (relay.parts.cellular, relay.local.received_packet_bytes()))
        });
        let measured = measure(self.simulation.network(), self.cell, links);
        let Some(selection) = &mut self.cooperating.selection else { return };
        let adverts = selection.offers.adverts(&measured, now);
        selection.next_at = now + selection.offers.period();
        let steering = Rc::clone(&selection.steering);
        self.simulation.with_host(DESTINATION, |host, now| {
            steering.borrow_mut().period(adverts, &mut host.endpoint, now);
            host.ask_apps();
        });
    }
}
