//! The modules of cooperation that a scenario asks for, ready to begin.

use core::cell::RefCell;
use core::net::SocketAddr;
use std::rc::Rc;

use units::Instant;

use crate::run::RunError;
use crate::run::cooperation::forwarding::Ranges;
use crate::run::cooperation::{Adapting, Cooperating, Messages, Offers, Selecting, Sharing, Steering, measure};
use crate::run::topology::Topology;
use crate::scenario::{Addresses, RelayMode, Scenario, WorkloadKind};

/// The modules that the scenario asks for.
pub(super) fn cooperating(
    scenario: &Scenario,
    topology: &Topology,
    addresses: &Addresses,
    source: SocketAddr,
) -> Result<Cooperating, RunError> {
    let ranges = Ranges::new(scenario).filter(|_| scenario.cooperation.relays != RelayMode::MultiHomed);
    let ranges = ranges.map(|ranges| Rc::new(RefCell::new(ranges)));
    let mut messages = Messages::new(scenario);
    let (adapting, sharing) = (Adapting::new(scenario)?, Sharing::new(scenario, addresses));
    if !scenario.cooperation.selection.method.steers() || scenario.workload.kind == WorkloadKind::None {
        return Ok(Cooperating { messages, selection: None, ranges, adapting, sharing });
    }
    let mut offers = Offers::new(scenario);
    let links = topology.relays.iter().map(|parts| Some((parts.cellular, 0)));
    let adverts = offers.adverts(&measure(&topology.network, topology.cell, links), Instant::ZERO);
    let adverts = messages.adverts(adverts);
    let steering = Steering::begin(scenario, addresses, source, adverts)?;
    let next_at = Instant::ZERO + offers.period();
    let next_advert_at = Instant::ZERO + offers.advert_period();
    let selecting = Selecting { offers, steering: Rc::new(RefCell::new(steering)), next_at, next_advert_at };
    Ok(Cooperating { messages, selection: Some(selecting), ranges, adapting, sharing })
}
