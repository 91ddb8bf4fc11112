//! Independent observers: rules that hold in every run, checked from outside the engine.
//!
//! A [`Checker`] sees what each host sends and receives, and keeps its own small model of every flow and connection. It
//! does not use the engine's state. Where a rule leaves room the checker is lenient: everything it reports is wrong.
//!
//! | rule | source |
//! |---|---|
//! | an ACK covers only what has arrived in order; a SACK block only what has arrived | RFC 9293 section 3.4, RFC 2018 section 4 |
//! | no data beyond the right edge that the peer advertised, except a probe of one octet | RFC 9293 section 3.8.6, RFC 8684 section 3.3.4 |
//! | the token and HMACs of a join, and the HMAC of an announced address, match the connection's keys | RFC 8684 sections 3.2, 3.4.1 |
//! | new data stay within the congestion window, except those of limited transmit and a tail loss probe | RFC 5681 section 3.1, RFC 3042, RFC 8985 section 7.3 |
//! | waiting data have a timer, and no retransmission timer runs without need | RFC 6298 section 5, RFC 9293 section 3.8 |
//! | a DATA_ACK covers only data that have arrived in order | RFC 8684 section 3.3.2 |
//! | options fit into a TCP header | RFC 9293 section 3.1 |
//!
//! Applications that expect a stream check that it arrives once, in order and intact. [`network::Network::imbalances`]
//! checks that networks conserve octets.

mod connection;
mod expected;
mod flow;
mod flows;
mod proof;
mod received;
mod upkeep;

use core::net::SocketAddr;
use transport::inspection::{Inspect, Sight};
use units::Instant;
use wire::mptcp::{Dss, MptcpOption};
use wire::{Flags, Segment};

use crate::{Direction, HostId, Interface, Tap};
use connection::Connections;
use expected::Arrival;
pub use flows::FlowKey;
use flows::Flows;

/// Maximum number of faults kept; later ones are usually consequences.
const FAULTS_MAX: usize = 20;

/// Number of flows that are looked at after a time-out without segments.
const LOOKS_PER_TIMEOUT: usize = 8;

/// A rule that a host broke.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at:?} host {} {local} -> {remote}: {broken}", host.0)]
pub struct Fault {
    /// When the host broke it.
    pub at: Instant,
    /// The host.
    pub host: HostId,
    /// The host's side of the flow.
    pub local: SocketAddr,
    /// The other side.
    pub remote: SocketAddr,
    /// The rule and the values that broke it.
    pub broken: Rule,
}

/// How a rule was broken. Positions count octets from the start of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rule {
    /// An ACK beyond what has arrived.
    #[error("acknowledges up to {ack}, but only {arrived} arrived in order")]
    AckOfUnreceived {
        /// Position up to which the host acknowledged.
        ack: u64,
        /// Position up to which everything has arrived.
        arrived: u64,
    },
    /// A SACK block for data that have not arrived.
    #[error("selectively acknowledges [{start}, {end}), which has not arrived")]
    SackOfUnreceived {
        /// Position of the first octet.
        start: u64,
        /// Position after the last octet.
        end: u64,
    },
    /// Data beyond the window of the subflow.
    #[error("sends up to {end}, but the window ends at {edge}")]
    BeyondWindow {
        /// Position after the last octet sent.
        end: u64,
        /// The highest right edge advertised.
        edge: u64,
    },
    /// Data beyond the connection-level window.
    #[error("sends data up to {end}, but the connection's window ends at {edge}")]
    BeyondDataWindow {
        /// Position after the last octet sent.
        end: u64,
        /// The highest right edge advertised.
        edge: u64,
    },
    /// New data beyond the congestion window.
    #[error("sends new data with {flight} octets in flight; the congestion window is {cwnd}")]
    BeyondCongestionWindow {
        /// Octets in flight, including the new ones.
        flight: u64,
        /// The congestion window.
        cwnd: u64,
    },
    /// Something waits and no timer runs for it.
    #[error("{waits}, but no timer runs for that")]
    NoTimer {
        /// Description of the waiting data.
        waits: &'static str,
    },
    /// A timer runs without need.
    #[error("the timer of {of} runs, although nothing is unacknowledged")]
    NeedlessTimer {
        /// Name of the timer.
        of: &'static str,
    },
    /// A join with a token that belongs to no connection with the peer.
    #[error("joins with token {token:#010x}, which the peer has not given")]
    WrongToken {
        /// The wrong token.
        token: u32,
    },
    /// A wrong HMAC in a join's SYN/ACK or third ACK.
    #[error("joins with an HMAC that does not follow from the keys and random numbers")]
    WrongJoinHmac,
    /// A wrong HMAC of an announced address.
    #[error("announces address {address_id} with an HMAC that does not follow from the keys")]
    WrongAddressHmac {
        /// Identifier of the address.
        address_id: u8,
    },
    /// A DATA_ACK beyond the data that have arrived.
    #[error("acknowledges data up to {data_ack}, but only {arrived} arrived in order")]
    DataAckOfUnreceived {
        /// Position up to which the host acknowledged.
        data_ack: u64,
        /// Position up to which everything has arrived.
        arrived: u64,
    },
    /// Options that no TCP header has room for: segments are values here, but not on real networks.
    #[error("sends {bytes} octets of options; a TCP header has room for 40")]
    OptionsTooLong {
        /// Octets of the options, padding included.
        bytes: usize,
    },
}

/// Checks all hosts of a simulation.
#[derive(Debug, Default)]
pub struct Checker {
    /// The hosts, by number.
    hosts: Vec<HostView>,
    /// The flow of the latest segment that a host received or sent, until that host has settled.
    touched: Option<FlowId>,
    /// The other flows of that host that it has received or sent segments of meanwhile; nearly always none.
    earlier: Vec<FlowId>,
    faults: Vec<Fault>,
}

/// Identifies a flow of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FlowId {
    host: HostId,
    place: usize,
}

/// Model of what one host has sent and received.
#[derive(Debug, Default)]
struct HostView {
    flows: Flows,
    connections: Connections,
    /// The flow to look at first after the next time-out without segments.
    look_from: usize,
}

impl Checker {
    /// Creates a checker that has seen no segment.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the broken rules so far, at most twenty.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// Checks a segment that leaves or reaches a host, as [`Self::sent`] or [`Self::received`] does.
    pub fn see<I: Inspect>(
        &mut self,
        at: Instant,
        host: HostId,
        direction: Direction,
        segment: &Segment,
        look: impl FnOnce(&FlowKey) -> Option<I>,
    ) {
        match direction {
            Direction::Sent => self.sent(at, host, segment, look),
            Direction::Received => self.received(at, host, segment),
        }
    }

    /// Checks a segment that leaves a host. `look` returns the host's own state of a flow; the flow key has the host's
    /// side first.
    #[inline]
    pub fn sent<I: Inspect>(
        &mut self,
        at: Instant,
        host: HostId,
        segment: &Segment,
        look: impl FnOnce(&FlowKey) -> Option<I>,
    ) {
        let view = self.view(host);
        let place = view.flows.place_of(&segment.src, &segment.dst);
        if !view.sent_as_expected(place, segment) {
            self.sent_unexpected(at, host, place, segment);
        }
        let id = FlowId { host, place };
        let before = self.touched.replace(id);
        // A host sends all it can before time goes on, and meanwhile its flight only grows. It is therefore enough to
        // check when the host turns to another flow, or has settled.
        if let Some(before) = before.filter(|before| before.host == host && *before != id) {
            self.leave_for_now(before);
            self.check_flight(at, before, look);
        }
    }

    /// Checks a segment that reaches a host.
    #[inline]
    pub fn received(&mut self, at: Instant, host: HostId, segment: &Segment) {
        let view = self.view(host);
        let place = view.flows.place_of(&segment.dst, &segment.src);
        match view.received_as_expected(at, place, segment) {
            Arrival::Unexpected => view.received(at, place, segment),
            // The host's own data are unaffected. It acknowledges these data sooner or later, and is checked then.
            Arrival::OnlyData => return,
            Arrival::Acknowledgment => {}
        }
        let id = FlowId { host, place };
        let before = self.touched.replace(id);
        if let Some(before) = before.filter(|before| before.host == host && *before != id) {
            self.leave_for_now(before);
        }
    }

    /// Checks a host that has nothing more to send for now: compares its own state of all flows that it has received or
    /// sent segments of with what the segments show.
    #[inline]
    pub fn settled<I: Inspect>(&mut self, at: Instant, look: impl Fn(&FlowKey) -> Option<I>) {
        let Some(id) = self.touched.take() else { return };
        if !self.earlier.is_empty() {
            self.settle_earlier(at, id, &look);
        }
        self.settle(at, id, look);
    }

    /// As [`Self::settled`], after a time-out of `host`. If it sent nothing, no segment shows which flow the time-out was
    /// about: then this looks at some of the host's flows, and at the next ones the next time.
    pub fn settled_after_timeout<I: Inspect>(
        &mut self,
        at: Instant,
        host: HostId,
        look: impl Fn(&FlowKey) -> Option<I>,
    ) {
        if self.touched.is_some() {
            return self.settled(at, look);
        }
        let view = self.view(host);
        let (from, count) = (view.look_from, view.flows.len());
        let looks = count.min(LOOKS_PER_TIMEOUT);
        view.look_from = (from + looks).checked_rem(count).unwrap_or(0);
        (from..from + looks).for_each(|place| self.settle(at, FlowId { host, place: place % count }, &look));
    }

    #[inline(never)]
    fn settle_earlier<I: Inspect>(&mut self, at: Instant, latest: FlowId, look: &impl Fn(&FlowKey) -> Option<I>) {
        while let Some(id) = self.earlier.pop() {
            if id != latest && id.host == latest.host {
                self.settle(at, id, look);
            }
        }
    }

    #[inline]
    fn settle<I: Inspect>(&mut self, at: Instant, id: FlowId, look: impl FnOnce(&FlowKey) -> Option<I>) {
        let (key, known) = self.hosts[id.host.0 as usize].flows.at(id.place);
        let Some(seen) = look(key) else { return };
        let flight = if known.has_new_data() { upkeep::flight(known, &seen.flight(), at) } else { None };
        let broken = (flight, upkeep::timers(&seen));
        if broken != (None, None) {
            [broken.0, broken.1].into_iter().flatten().for_each(|broken| self.report(at, id, broken));
        }
    }

    /// Remembers a flow until its host has settled.
    #[inline(never)]
    fn leave_for_now(&mut self, id: FlowId) {
        if !self.earlier.contains(&id) {
            self.earlier.push(id);
        }
    }

    /// Checks the flight of a flow if the host has sent new data on it.
    #[inline(never)]
    fn check_flight<I: Inspect>(&mut self, at: Instant, id: FlowId, look: impl FnOnce(&FlowKey) -> Option<I>) {
        let (key, known) = self.hosts[id.host.0 as usize].flows.at(id.place);
        if !known.has_new_data() {
            return;
        }
        if let Some(broken) = look(key).and_then(|seen| upkeep::flight(known, &seen.flight(), at)) {
            self.report(at, id, broken);
        }
    }

    #[cold]
    fn report(&mut self, at: Instant, id: FlowId, broken: Rule) {
        let (key, _) = self.hosts[id.host.0 as usize].flows.at(id.place);
        keep(&mut self.faults, at, id.host, *key, broken);
    }

    /// Checks a segment that leaves a host on the full path.
    #[inline(never)]
    fn sent_unexpected(&mut self, at: Instant, host: HostId, place: usize, segment: &Segment) {
        let Self { hosts, faults, .. } = self;
        let view = &mut hosts[host.0 as usize];
        view.sent(place, segment, &mut |broken| keep(faults, at, host, (segment.src, segment.dst), broken));
    }

    #[inline]
    fn view(&mut self, host: HostId) -> &mut HostView {
        let number = host.0 as usize;
        if number >= self.hosts.len() {
            self.hosts.resize_with(number + 1, HostView::default);
        }
        &mut self.hosts[number]
    }
}

#[cold]
fn keep(faults: &mut Vec<Fault>, at: Instant, host: HostId, (local, remote): FlowKey, broken: Rule) {
    if faults.len() < FAULTS_MAX {
        faults.push(Fault { at, host, local, remote, broken });
    }
}

/// Checks without the hosts' own state.
impl Tap for Checker {
    fn segment(&mut self, at: Instant, interface: Interface, direction: Direction, segment: &Segment) {
        self.see(at, interface.host, direction, segment, |_| None::<Sight<'_>>);
    }
}

/// Returns the DSS if it is the only MPTCP option, as in nearly every segment: then there is nothing to learn and no
/// proof to check.
#[inline]
fn only_dss(segment: &Segment) -> Option<&Dss> {
    match &segment.options.mptcp[..] {
        [MptcpOption::Dss(dss)] => Some(dss),
        _ => None,
    }
}

impl HostView {
    #[inline]
    fn sent(&mut self, place: usize, segment: &Segment, fault: &mut dyn FnMut(Rule)) {
        if !segment.options.fits() {
            fault(Rule::OptionsTooLong { bytes: segment.options.encoded_len() });
        }
        if segment.flags.contains(Flags::RST) {
            return;
        }
        let flow = &mut self.flows[place];
        let only = only_dss(segment);
        flow.sent(segment);
        if only.is_none() || segment.flags.contains(Flags::SYN) {
            self.connections.open_sent(flow, segment, fault);
        }
        flow.check_acks(segment, fault);
        match flow.member.and_then(|member| self.connections.active(member)) {
            Some(mut connection) => connection.sent(segment, only, fault),
            None => flow.check_window(segment, fault),
        }
    }

    #[inline(never)]
    fn received(&mut self, at: Instant, place: usize, segment: &Segment) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        let flow = &mut self.flows[place];
        let only = only_dss(segment);
        flow.received(segment, at);
        if only.is_none() || segment.flags.contains(Flags::SYN) {
            self.connections.handshake_received(flow, segment);
        }
        if let Some(mut connection) = flow.member.and_then(|member| self.connections.active(member)) {
            connection.received(flow, segment, only);
        }
    }
}
