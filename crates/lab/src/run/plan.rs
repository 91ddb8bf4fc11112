//! What a scenario asks of its hosts: who talks to whom, and which relays handle data.

use cooperation::forwarding::hold_queue::HoldLimits;
use cooperation::forwarding::range::range_len_bytes;
use units::Duration;
use units::text::Text;

use super::backend::Standing;
use crate::scenario::{RelayMode, Scenario, WorkloadKind};

/// Returns whether relays are selected during the run.
pub(super) fn selects_relays(scenario: &Scenario) -> bool {
    scenario.cooperation.selection.method.steers() && scenario.workload.kind != WorkloadKind::None
}

/// Returns whether relays and destination have messages for each other.
pub(super) fn relays_converse(scenario: &Scenario) -> bool {
    scenario.has_control_plane()
}

/// Returns whether relays' messages concern the source.
pub(super) fn source_listens(scenario: &Scenario) -> bool {
    scenario.cooperation.bandwidth_sharing.is_some() || relays_report_delay(scenario).is_some()
}

/// Interval at which relays report the delay of data from them to the destination, if they do.
pub(super) fn relays_report_delay(scenario: &Scenario) -> Option<Duration> {
    let adaptive = scenario.cooperation.adaptive_congestion.as_ref()?;
    (adaptive.relay_delays && scenario.cooperation.relays == RelayMode::FastAck).then_some(adaptive.period)
}

/// Returns whether relays are separate devices, rather than further links of the destination.
pub(super) fn has_relays(scenario: &Scenario) -> bool {
    scenario.cooperation.relays != RelayMode::MultiHomed
}

/// Returns whether data pass through the relays' agents, rather than routers beside them.
pub(super) fn is_on_the_way(scenario: &Scenario) -> bool {
    match scenario.cooperation.relays {
        RelayMode::FastAck => true,
        RelayMode::Ip => hold_limits(scenario).is_some() || scenario.relays.iter().any(|relay| relay.lends.is_some()),
        RelayMode::MultiHomed => false,
    }
}

/// Where the engine of relay `index` stands, as seen by packets.
pub(super) fn standing(scenario: &Scenario, index: usize) -> Standing {
    let is_spoken_to = relays_converse(scenario) || !scenario.relays[index].local.is_empty();
    match is_on_the_way(scenario) {
        true => Standing::OnTheWay,
        false if is_spoken_to => Standing::Beside,
        false => Standing::Absent,
    }
}

/// H, if there is differentiated forwarding.
pub(super) fn range_bytes(scenario: &Scenario) -> Option<u64> {
    let forwarding = scenario.cooperation.forwarding.as_ref()?;
    let by_packets = forwarding.range_packets.map(|packets| u64::from(packets) * scenario.payload_bytes());
    let by_target = scenario.target.map(|target| range_len_bytes(target.bit_rate, scenario.metrics.period));
    by_packets.or(by_target)
}

/// How much a relay holds at most, and for how long, if there is differentiated forwarding.
pub(super) fn hold_limits(scenario: &Scenario) -> Option<HoldLimits> {
    let limits = HoldLimits::of(range_bytes(scenario)?, scenario.metrics.period);
    let buffer = scenario.cooperation.forwarding.as_ref()?.hold_buffer;
    Some(HoldLimits { size_bytes: buffer.map_or(limits.size_bytes, |Text(size)| size.0), ..limits })
}
