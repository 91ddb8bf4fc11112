//! Events of agents as one flat C struct: the kind determines which members are meaningful.

use cooperation::agent::Role;
use cooperation::agent::destination::DestinationEvent;
use cooperation::agent::relay::RelayEvent;
use cooperation::agent::source::SourceEvent;
use cooperation::channel::to_destination::Advert;
use cooperation::channel::to_source::ToSource;
use cooperation::relay_selection::RelayId;
use cooperation::relay_selection::manager::{Cause, Report};
use cooperation::relay_selection::trigger::Outage;
use host::Agent as _;
use units::{Instant, Rate};
use wire::mptcp::Token;

use crate::endpoint::{AnabranchEndpoint, with_endpoint, write_out};
use crate::status::AnabranchStatus;

/// Maximum number of relays in an event: more than a set has.
pub const ANABRANCH_RELAYS_MAX: usize = 64;

const _: () = assert!(ANABRANCH_RELAYS_MAX >= transport::SUBFLOWS_CAP, "a set of relays fits into an event");

/// Kinds of agents' events, with the meaningful members of `AnabranchAgentEvent` besides `kind` and `at_ns`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnabranchAgentEventKind {
    /// Nothing.
    #[default]
    None = 0,
    /// The agent is ready: connections may be opened.
    Ready = 1,
    /// Of a relay: measure the link, and call `anabranch_measure`.
    Measure = 2,
    /// Of a destination: another set of relays is wanted from now on. `cause`; `from` and `to`, with their numbers of
    /// relays; `offered_bps`: what the new ones offer; `flag`: whether that is in the accepted range.
    Migration = 3,
    /// Of a destination: exactly the wanted subflows are established.
    Settled = 4,
    /// Of a destination: a period has ended. `offered_bps`: what the relays in use offer; `flag` tells whether another
    /// set is ready, which offers `backup_bps`.
    Monitored = 5,
    /// Of a destination: `count` subflows carry new data.
    ActiveSet = 6,
    /// Of a relay: it made an offer, or of a destination: the offer of `relay` arrived. `capacity_bps`, `local_bps`.
    Offered = 7,
    /// Of a destination: `relay` acknowledged data and did not deliver them, and is used no more.
    Guilty = 8,
    /// Of a destination: octets never arrived, and no relay is left to exclude: the connection was aborted. `flag` tells
    /// whether no relay delivered anything any more; the links may be the cause.
    GaveUp = 9,
    /// Of a relay or a source: a destination has called and proven its identity.
    Called = 10,
    /// Of a relay or a source: the last destination has left.
    Deserted = 11,
    /// Of a source: a relay reports how crowded its link is. `connection` and `address_id` name the path that leads over
    /// it; `ratio`: the rate that its owner's flows want over what is left for each of them (rho).
    Load = 12,
    /// Of a source: a relay that acknowledges at once reports how long data take from it to the destination.
    /// `connection` and `address_id` name the path that leads over it; `delay_ns`.
    Delay = 13,
    /// Of a destination: the source forbids further subflows to its address (RFC 8684 section 3.1, flag C). The
    /// connection stays on its first subflow, and no more relays are selected.
    JoinsForbidden = 14,
}

/// Why a destination wants another set of relays.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnabranchCause {
    /// No reason.
    #[default]
    None = 0,
    /// No set was in use yet.
    Start = 1,
    /// The throughput was out of the accepted range.
    Throughput = 2,
    /// The offers were out of the accepted range.
    Offers = 3,
    /// A relay was lost.
    Loss = 4,
    /// The application asked for another rate.
    Goal = 5,
}

impl From<Cause> for AnabranchCause {
    fn from(cause: Cause) -> Self {
        match cause {
            Cause::Start => Self::Start,
            Cause::Outage(Outage::Throughput) => Self::Throughput,
            Cause::Outage(Outage::Advert) => Self::Offers,
            Cause::Loss(_) => Self::Loss,
            Cause::Goal => Self::Goal,
        }
    }
}

/// An event of an agent. Members that `AnabranchAgentEventKind` does not name for the kind are zero.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AnabranchAgentEvent {
    /// Kind of the event.
    pub kind: AnabranchAgentEventKind,
    /// Why another set is wanted.
    pub cause: AnabranchCause,
    /// Time of the event.
    pub at_ns: u64,
    /// Rate that a relay's link could carry.
    pub capacity_bps: u64,
    /// Part of it that the owner's traffic takes.
    pub local_bps: u64,
    /// Sum of offers.
    pub offered_bps: u64,
    /// Sum of the offers of another set.
    pub backup_bps: u64,
    /// A number; its meaning depends on the kind.
    pub count: u64,
    /// A connection; zero if it is over, or none of the program's.
    pub connection: u64,
    /// How long data take.
    pub delay_ns: u64,
    /// A ratio; its meaning depends on the kind.
    pub ratio: f64,
    /// Number of a relay in the destination's list.
    pub relay: u16,
    /// A flag; its meaning depends on the kind.
    pub flag: bool,
    /// Identifier of the destination's address (RFC 8684 section 3.2).
    pub address_id: u8,
    /// Number of relays in `from`.
    pub from_len: u8,
    /// Number of relays in `to`.
    pub to_len: u8,
    /// Relays that were wanted before and are still there, in ascending order.
    pub from: [u16; ANABRANCH_RELAYS_MAX],
    /// Relays that are wanted now, in ascending order.
    pub to: [u16; ANABRANCH_RELAYS_MAX],
}

impl AnabranchAgentEvent {
    /// Nothing.
    const NONE: Self = Self {
        kind: AnabranchAgentEventKind::None,
        cause: AnabranchCause::None,
        at_ns: 0,
        capacity_bps: 0,
        local_bps: 0,
        offered_bps: 0,
        backup_bps: 0,
        count: 0,
        connection: 0,
        delay_ns: 0,
        ratio: 0.0,
        relay: 0,
        flag: false,
        address_id: 0,
        from_len: 0,
        to_len: 0,
        from: [0; ANABRANCH_RELAYS_MAX],
        to: [0; ANABRANCH_RELAYS_MAX],
    };

    fn at(kind: AnabranchAgentEventKind, at: Instant) -> Self {
        Self { kind, at_ns: at.as_nanos(), ..Self::NONE }
    }

    fn offered(at: Instant, relay: RelayId, advert: &Advert) -> Self {
        let (capacity_bps, local_bps) = (advert.capacity.as_bps(), advert.local.as_bps());
        Self { relay: relay.0, capacity_bps, local_bps, ..Self::at(AnabranchAgentEventKind::Offered, at) }
    }

    fn selection(report: &Report) -> Self {
        use AnabranchAgentEventKind as Kind;
        match report {
            Report::Migration { at, cause, from, to, feasible } => {
                let (from_len, from) = listed(from);
                let (to_len, relays) = listed(&to.relays);
                let (cause, offered_bps, flag) = ((*cause).into(), to.sum_bps, *feasible);
                Self { cause, offered_bps, flag, from_len, from, to_len, to: relays, ..Self::at(Kind::Migration, *at) }
            }
            Report::Settled { at } => Self::at(Kind::Settled, *at),
            Report::Monitored { at, offered, backup } => Self {
                offered_bps: offered.as_bps(),
                backup_bps: backup.map_or(0, Rate::as_bps),
                flag: backup.is_some(),
                ..Self::at(Kind::Monitored, *at)
            },
        }
    }

    fn of_destination(event: &DestinationEvent, now: Instant) -> Self {
        use AnabranchAgentEventKind as Kind;
        match event {
            DestinationEvent::Selection(report) => Self::selection(report),
            DestinationEvent::Offered { at, relay, advert } => Self::offered(*at, *relay, advert),
            DestinationEvent::ActiveSet { at, count } => Self { count: *count, ..Self::at(Kind::ActiveSet, *at) },
            DestinationEvent::JoinsForbidden => Self::at(Kind::JoinsForbidden, now),
            DestinationEvent::Guilty(relay) => Self { relay: relay.0, ..Self::at(Kind::Guilty, now) },
            DestinationEvent::GaveUp { silence, .. } => Self { flag: *silence, ..Self::at(Kind::GaveUp, now) },
        }
    }

    fn of_relay(event: &RelayEvent) -> Option<Self> {
        use AnabranchAgentEventKind as Kind;
        match event {
            RelayEvent::Called { at } => Some(Self::at(Kind::Called, *at)),
            RelayEvent::Deserted { at } => Some(Self::at(Kind::Deserted, *at)),
            RelayEvent::Offered(advert) => Some(Self::offered(advert.at, RelayId(0), advert)),
            // It lends without limit.
            RelayEvent::Spent { .. } => None,
        }
    }
}

impl AnabranchAgentEvent {
    /// `number_of` returns the number of the connection with a token.
    fn of_source(event: &SourceEvent, now: Instant, number_of: impl FnOnce(Token) -> Option<u64>) -> Self {
        use AnabranchAgentEventKind as Kind;
        match event {
            SourceEvent::Called { at } => Self::at(Kind::Called, *at),
            SourceEvent::Deserted { at } => Self::at(Kind::Deserted, *at),
            SourceEvent::Told(ToSource::Load { connection, address_id, load }) => Self {
                connection: number_of(*connection).unwrap_or(0),
                address_id: address_id.0,
                ratio: load.ratio,
                ..Self::at(Kind::Load, now)
            },
            SourceEvent::Told(ToSource::Delay { connection, address_id, delay }) => Self {
                connection: number_of(*connection).unwrap_or(0),
                address_id: address_id.0,
                delay_ns: delay.delay.as_nanos(),
                ..Self::at(Kind::Delay, now)
            },
        }
    }
}

/// Returns relays as a list with its length.
fn listed(relays: &[RelayId]) -> (u8, [u16; ANABRANCH_RELAYS_MAX]) {
    let mut list = [0; ANABRANCH_RELAYS_MAX];
    list.iter_mut().zip(relays).for_each(|(place, relay)| *place = relay.0);
    (relays.len().min(ANABRANCH_RELAYS_MAX) as u8, list)
}

impl AnabranchEndpoint {
    fn poll_agent_event(&mut self) -> Option<AnabranchAgentEvent> {
        use AnabranchAgentEventKind as Kind;
        let now = self.now();
        if self.next_measurement() <= now {
            self.agent.asked = true;
            return Some(AnabranchAgentEvent::at(Kind::Measure, now));
        }
        if !self.agent.ready && !matches!(self.host.agent(), Role::Alone) && self.host.agent().is_ready() {
            self.agent.ready = true;
            return Some(AnabranchAgentEvent::at(Kind::Ready, now));
        }
        let Self { host, connections, .. } = self;
        host.with_agent_mut(|role, engine| {
            if let Some(agent) = role.destination_mut() {
                return agent.poll_event().map(|event| AnabranchAgentEvent::of_destination(&event, now));
            }
            if let Some(agent) = role.source_mut() {
                let event = agent.poll_event()?;
                return Some(AnabranchAgentEvent::of_source(&event, now, |token| {
                    engine
                        .by_token(token)
                        .filter(|known| connections.has(*known))
                        .map(|known| connections.number(known))
                }));
            }
            let relay = role.relay_mut()?;
            core::iter::from_fn(|| relay.poll_event()).find_map(|event| AnabranchAgentEvent::of_relay(&event))
        })
    }
}

/// Returns the next event of the endpoint's agent. `ANABRANCH_STATUS_AGAIN` if there is none, or no agent.
///
/// # Safety
/// Pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_poll_agent_event(
    endpoint: *mut AnabranchEndpoint,
    event: *mut AnabranchAgentEvent,
) -> AnabranchStatus {
    // SAFETY: the caller keeps to the contract of this function, which is that of every function called here.
    unsafe {
        with_endpoint(endpoint, |endpoint| {
            write_out(event, "event", AnabranchAgentEvent::NONE)?;
            let Some(happened) = endpoint.poll_agent_event() else { return Ok(AnabranchStatus::Again) };
            write_out(event, "event", happened)?;
            Ok(AnabranchStatus::Ok)
        })
    }
}
