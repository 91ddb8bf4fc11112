//! Windows and timers: compares a host's own state of a subflow with what its segments show.

use transport::inspection::{FlightInspection, Inspect, SubflowTimer};
use units::Instant;

use super::Rule;
use super::flow::Flow;

/// Segments allowed beyond the congestion window: two of limited transmit (RFC 3042), a tail loss probe (RFC 8985
/// section 7.3).
const SEGMENTS_BEYOND: u64 = 3;

/// Checks that new data are within the congestion window. In recovery only the host knows what is lost and thus not in
/// flight; otherwise the flight follows from ACKs, whatever the host believes.
#[inline(always)]
pub(super) fn flight(flow: &mut Flow, said: &FlightInspection, at: Instant) -> Option<Rule> {
    let mss = u64::from(said.mss_bytes);
    let new_segments = flow.take_new_segments();
    if new_segments == 0 {
        return None;
    }
    let shown = flow.flight(mss);
    let flight = if said.in_recovery || flow.is_repairing() { said.in_flight_bytes } else { shown };
    let cwnd = said.cwnd_bytes;
    let before = if said.penalized_at == Some(at) { cwnd.saturating_mul(2) } else { cwnd };
    let is_beyond = flight > before.max(mss).saturating_add(SEGMENTS_BEYOND * mss);
    (is_beyond && (new_segments > 1 || !flow.probes(at))).then_some(Rule::BeyondCongestionWindow { flight, cwnd })
}

/// Checks the timers of a host that can send nothing more: waiting data need a timer, and no other timer may run. This
/// runs after every segment except those that only bring data to the host, and nearly always finds no fault; it
/// therefore asks only for the state that it needs.
#[inline]
pub(super) fn timers(seen: &impl Inspect) -> Option<Rule> {
    let is_subflow_kept = if seen.is_outstanding() {
        seen.runs(SubflowTimer::Retransmit)
    } else {
        !NEEDLESS.iter().any(|(timer, _)| seen.runs(*timer))
            && (seen.unsent_bytes() == 0 || seen.runs(SubflowTimer::Persist) || seen.runs(SubflowTimer::Pace))
    };
    let is_connection_kept = !seen.is_open()
        || (!seen.is_data_outstanding() || seen.data_timer_runs())
            && (seen.connection_unsent_bytes() == 0 || seen.is_driven());
    if is_subflow_kept && is_connection_kept { None } else { broken_rule(seen) }
}

/// Timers that run only while data are unacknowledged.
const NEEDLESS: [(SubflowTimer, &str); 3] = [
    (SubflowTimer::Retransmit, "retransmission"),
    (SubflowTimer::TailProbe, "tail loss probes"),
    (SubflowTimer::Reorder, "reordering"),
];

/// Returns the first broken rule: first missing timers, then needless ones.
#[cold]
fn broken_rule(seen: &impl Inspect) -> Option<Rule> {
    let runs = |timer| seen.runs(timer);
    let outstanding = seen.is_outstanding();
    let waits_here = seen.unsent_bytes() > 0 && !outstanding;
    let waits_in_connection = seen.is_open() && seen.connection_unsent_bytes() > 0;
    let missing = [
        (outstanding && !runs(SubflowTimer::Retransmit), "something sent is unacknowledged"),
        (
            waits_here && !runs(SubflowTimer::Persist) && !runs(SubflowTimer::Pace),
            "data wait in the subflow, and none are in flight",
        ),
        (seen.is_data_outstanding() && seen.is_open() && !seen.data_timer_runs(), "data wait for their DATA_ACK"),
        (waits_in_connection && !seen.is_driven(), "data wait in the connection"),
    ];
    let missing = missing.into_iter().find(|(is_broken, _)| *is_broken);
    let needless = NEEDLESS.into_iter().find(|(timer, _)| !outstanding && runs(*timer));
    missing.map(|(_, waits)| Rule::NoTimer { waits }).or(needless.map(|(_, of)| Rule::NeedlessTimer { of }))
}
