//! Measurements by a relay's modem and counters.

use cooperation::agent::relay::{FlowUse, Measurement};
use cooperation::relay_selection::monitor::LinkUse;
use network::Network;
use network::cell::UeState;

use crate::run::hop::Hop;
use crate::run::local::LocalCounts;

/// Measures a relay's cellular hop and its owner's flows. `ue` is the relay's part of the network's own cell, if there
/// is one; `backlogged` tells whether data waited in the hop whenever it was looked at since the last measurement.
pub(in crate::run) fn measurement(
    network: &Network,
    hop: &Hop,
    backlogged: bool,
    ue: Option<&UeState>,
    local: &LocalCounts,
) -> Measurement {
    let local_bytes = local.received_packet_bytes();
    let link = match ue {
        Some(ue) => {
            LinkUse { local_bytes, delivered_bytes: ue.served_bytes, backlogged, granted: Some(ue.capacity_estimate) }
        }
        None => LinkUse {
            local_bytes,
            delivered_bytes: network.counters(hop.down_out).left.bytes,
            backlogged,
            granted: None,
        },
    };
    let flow = |flow: crate::run::local::FlowCount| FlowUse {
        demanded_bytes: flow.demanded_bytes,
        received_bytes: flow.received_bytes,
    };
    Measurement { link, flows: local.flows_in_packets().into_iter().map(flow).collect() }
}
