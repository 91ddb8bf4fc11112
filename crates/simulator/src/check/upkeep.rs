//! Windows and timers: what a host says of a subflow, beside what its segments show.

use transport::inspection::Inspection;
use units::Instant;

use super::Rule;
use super::flow::Flow;

/// Segments beyond the congestion window: two of limited transmit (RFC 3042), a tail loss probe (RFC 8985 section 7.3).
const SEGMENTS_BEYOND: u64 = 3;

/// New data were sent: they are within the congestion window. In recovery only the host knows what is lost, and so not in
/// flight; otherwise what ACKs have shown is reckoned with, whatever the host believes.
pub(super) fn flight(flow: &mut Flow, inspection: &Inspection, at: Instant) -> Option<Rule> {
    let mss = u64::from(inspection.mss_bytes);
    let shown = flow.flight_of_new_data(mss)?;
    let flight = if inspection.in_recovery || flow.is_repairing() { inspection.in_flight_bytes } else { shown };
    let cwnd = inspection.cwnd_bytes;
    (flight > cwnd.max(mss) + SEGMENTS_BEYOND * mss && !flow.may_be_probe(at))
        .then_some(Rule::BeyondCongestionWindow { flight, cwnd })
}

/// Nothing more can be sent now: what waits has a timer, and what does not wait has none.
pub(super) fn timers(inspection: &Inspection) -> Option<Rule> {
    let Inspection { outstanding, timers, connection, .. } = inspection;
    let missing = if *outstanding && !timers.retransmit {
        Some("something sent is unacknowledged")
    } else if inspection.unsent_bytes > 0 && !(*outstanding || timers.persist || timers.pace) {
        Some("data wait in the subflow, and none are in flight")
    } else if connection.outstanding && connection.is_open && !connection.data_timer {
        Some("data wait for their DATA_ACK")
    } else if connection.is_open && connection.unsent_bytes > 0 && !connection.is_driven {
        Some("data wait in the connection")
    } else {
        None
    };
    let needless = match outstanding {
        true => None,
        false if timers.retransmit => Some("retransmission"),
        false if timers.tail_probe => Some("tail loss probes"),
        false if timers.reorder => Some("reordering"),
        false => None,
    };
    missing.map(|waits| Rule::NoTimer { waits }).or(needless.map(|of| Rule::NeedlessTimer { of }))
}
