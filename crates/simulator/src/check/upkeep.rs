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

/// Nothing more can be sent now: what waits has a timer, and what does not wait has none. A host is looked at after every
/// segment it is given and nearly always keeps all of it: so every rule is evaluated, and there is one branch for all.
#[inline]
pub(super) fn timers(inspection: &Inspection) -> Option<Rule> {
    let Inspection { outstanding, timers, connection, .. } = inspection;
    let unsent = inspection.unsent_bytes > 0;
    let waits_in_connection = connection.unsent_bytes > 0;
    let missing = [
        outstanding & !timers.retransmit,
        unsent & !(outstanding | timers.persist | timers.pace),
        connection.outstanding & connection.is_open & !connection.data_timer,
        connection.is_open & waits_in_connection & !connection.is_driven,
    ];
    let needless = [timers.retransmit, timers.tail_probe, timers.reorder].map(|runs| runs & !outstanding);
    let is_broken = missing.iter().chain(&needless).fold(false, |any, broken| any | broken);
    if is_broken { broken_rule(missing, needless) } else { None }
}

/// The first rule of [`timers`] that is broken: of what has no timer, then of what has one for nothing.
#[cold]
fn broken_rule(missing: [bool; 4], needless: [bool; 3]) -> Option<Rule> {
    let waits = [
        "something sent is unacknowledged",
        "data wait in the subflow, and none are in flight",
        "data wait for their DATA_ACK",
        "data wait in the connection",
    ];
    let of = ["retransmission", "tail loss probes", "reordering"];
    let missing = waits.into_iter().zip(missing).find(|(_, broken)| *broken);
    let needless = of.into_iter().zip(needless).find(|(_, broken)| *broken);
    missing.map(|(waits, _)| Rule::NoTimer { waits }).or(needless.map(|(of, _)| Rule::NeedlessTimer { of }))
}
