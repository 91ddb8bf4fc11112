//! Relays with differentiated forwarding: the destination says which data it wants next, the relays hold the rest.
//!
//! What the destination says reaches every relay, in order, a little later.

use core::cell::RefCell;
use core::ops::Range;
use std::collections::VecDeque;
use std::rc::Rc;

use cooperation::channel::to_relay::ToRelay;
use cooperation::forwarding::differentiated::Differentiated;
use cooperation::forwarding::hold_queue::HoldLimits;
use cooperation::forwarding::packet_dsn::{PacketDsn, PacketDsns};
use cooperation::forwarding::range::{RangeUpdate, Threshold, range_len_bytes};
use cooperation::forwarding::range_keeper::{Announcement, Counting, RangeKeeper, RangeSettings};
use cooperation::forwarding::range_shares::RangeShares;
use cooperation::relay_selection::RelayId;
use network::{MediumId, Network};
use simulator::relay::RelayMedium;
use simulator::{App, Direction, EndpointHost, HostId, Interface, Report, Simulation, Tap};
use transport::relay::{FastAckRelay, ForwardingRelay, RelayConfig, RelayError, SpliceId, SpliceStats};
use transport::{ConnectionConfig, Endpoint, Event};
use units::text::Text;
use units::{Dsn, Duration, Instant, Prng, Rate};
use wire::Segment;

use super::routing::RoutingRelay;
use crate::run::RunError;
use crate::scenario::{CountKind, RangeShareKind, RelayMode, Scenario};

/// How long a message takes from the destination to its relays: a few turns on the Wi-Fi channel.
const MESSAGE_DELAY: Duration = Duration::from_millis(10);
/// What a relay stores besides what it holds: as much as its two links keep under way.
const UNDER_WAY_BYTES: u64 = 1 << 20;
/// Octets of TCP/IP headers, timestamps and DSS in a data packet.
const HEADER_BYTES: u64 = 72;

/// A fast-ACK relay of the network.
type Relay = RelayMedium<Differentiated>;

/// What a relay has beside its router.
#[derive(Clone, Copy)]
pub(in crate::run) enum Element {
    /// It ends subflows and acknowledges at once.
    FastAck(MediumId),
    /// It holds packets.
    Routing(MediumId),
}

impl Element {
    /// Adds what the relay of number `index` has, if anything.
    pub fn add(network: &mut Network, scenario: &Scenario, index: usize) -> Result<Option<Self>, RunError> {
        match (scenario.cooperation.relays, hold_limits(scenario)) {
            (RelayMode::FastAck, limits) => add_relay(network, scenario, index, limits).map(Self::FastAck).map(Some),
            (RelayMode::Ip, Some(limits)) => {
                Ok(Some(Self::Routing(network.add_medium(Box::new(RoutingRelay::new(limits))))))
            }
            (RelayMode::Ip, None) | (RelayMode::MultiHomed, _) => Ok(None),
        }
    }

    /// As part of the network.
    pub const fn medium(self) -> MediumId {
        match self {
            Self::FastAck(id) | Self::Routing(id) => id,
        }
    }

    /// A message of the destination reaches the relay. One that only routes needs no acknowledgements: the source gets them.
    pub fn tell(self, frame: ToRelay, simulation: &mut Simulation<EndpointHost>) {
        match (self, frame) {
            (Self::FastAck(id), frame) => drop(simulation.with_medium(id, |relay: &mut Relay, now| {
                let (relay, forwarding) = relay.parts();
                match frame {
                    ToRelay::Range(update) => forwarding.on_range(update, relay, now),
                    ToRelay::CumAck(ack) => forwarding.on_ack(ack, relay),
                }
            })),
            (Self::Routing(id), ToRelay::Range(update)) => {
                simulation.with_medium(id, |relay: &mut RoutingRelay, _| relay.on_range(update.range));
            }
            (Self::Routing(_), ToRelay::CumAck(_)) => {}
        }
    }

    /// The relay is gone, with all it holds, and without a word.
    pub fn kill(self, simulation: &mut Simulation<EndpointHost>) {
        match self {
            Self::FastAck(id) => simulation.with_medium(id, |relay: &mut Relay, _| relay.kill()),
            Self::Routing(id) => simulation.with_medium(id, |relay: &mut RoutingRelay, _| relay.kill()),
        };
    }

    /// The subflows that it ends; none where it only routes.
    pub fn splices(self, network: &Network) -> Vec<(SpliceId, SpliceStats)> {
        let Self::FastAck(id) = self else { return Vec::new() };
        let medium = network.medium::<Relay>(id);
        medium.into_iter().flat_map(|medium| medium.relay().relay().splices()).collect()
    }

    /// What the relay holds for later, octets.
    pub fn held_bytes(self, network: &Network) -> Option<u64> {
        match self {
            Self::FastAck(id) => Some(network.medium::<Relay>(id)?.relay().forwarding().queue().held_bytes()),
            Self::Routing(id) => Some(network.medium::<RoutingRelay>(id)?.held_bytes()),
        }
    }
}

fn add_relay(
    network: &mut Network,
    scenario: &Scenario,
    index: usize,
    limits: Option<HoldLimits>,
) -> Result<MediumId, RunError> {
    let mut prng = Prng::fork(scenario.seed, &format!("fast-ack relay {index}"));
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&prng.below(u64::MAX).to_le_bytes());
    // Without ranges nothing is ever held.
    let limits = limits.unwrap_or(HoldLimits::of(0, scenario.metrics.period));
    let own = RelayConfig::default().tcp;
    let hosts = scenario.connection.to_config(1);
    let keep_alive = hosts.keep_alive.or(own.keep_alive);
    let tcp = ConnectionConfig { congestion: own.congestion, nagle: own.nagle, keep_alive, ..hosts };
    let buffer_bytes = limits.size_bytes + UNDER_WAY_BYTES;
    let config = RelayConfig { tcp, buffer_bytes, ..RelayConfig::default() };
    let refused = |error: RelayError| RunError::Unsupported {
        field: "connection",
        problem: error.to_string(),
        remedy: "use settings that relays know",
    };
    let relay = FastAckRelay::new(config, seed).map_err(refused)?;
    Ok(network.add_medium(Box::new(RelayMedium::new(ForwardingRelay::new(relay, Differentiated::new(limits))))))
}

/// H, if there is differentiated forwarding.
fn range_bytes(scenario: &Scenario) -> Option<u64> {
    let forwarding = scenario.cooperation.forwarding.as_ref()?;
    let packet_bytes = scenario.connection.mtu.0.saturating_sub(HEADER_BYTES).max(1);
    let by_packets = forwarding.range_packets.map(|packets| u64::from(packets) * packet_bytes);
    let by_target = scenario.target.map(|target| range_len_bytes(target.bit_rate, scenario.metrics.period));
    by_packets.or(by_target)
}

fn hold_limits(scenario: &Scenario) -> Option<HoldLimits> {
    let limits = HoldLimits::of(range_bytes(scenario)?, scenario.metrics.period);
    let buffer = scenario.cooperation.forwarding.as_ref()?.hold_buffer;
    Some(HoldLimits { size_bytes: buffer.map_or(limits.size_bytes, |Text(size)| size.0), ..limits })
}

/// A message of the destination, on its way.
#[derive(Clone, Copy)]
pub(in crate::run) struct Due {
    at: Instant,
    /// To one relay, or to all.
    to: Option<usize>,
    pub frame: ToRelay,
}

impl Due {
    fn to_all(announcement: Announcement, now: Instant) -> Self {
        let frame = match announcement {
            Announcement::Range(update) => ToRelay::Range(update),
            Announcement::Ack(ack) => ToRelay::CumAck(ack),
        };
        Self { at: now + MESSAGE_DELAY, to: None, frame }
    }

    /// Who hears it, of `count` relays.
    pub fn relays(&self, count: usize) -> Range<usize> {
        self.to.map_or(0..count, |relay| relay..relay + 1)
    }
}

/// The destination's side: the range that it wants, and what it has said of it.
pub(in crate::run) struct Ranges {
    settings: RangeSettings,
    hold_bytes: u64,
    relays: usize,
    keeper: Option<RangeKeeper>,
    messages: VecDeque<Due>,
    /// Where relays have ranges of their own.
    shares: Option<RangeShares>,
}

impl Ranges {
    /// What `scenario` asks for, if anything.
    pub fn new(scenario: &Scenario) -> Option<Self> {
        let range_len_bytes = range_bytes(scenario)?;
        let forwarding = scenario.cooperation.forwarding.as_ref()?;
        let settings = RangeSettings {
            threshold: Threshold::new(forwarding.threshold.value())?,
            capacity_bytes: scenario.connection.receive_buffer.0,
            counting: match forwarding.count {
                CountKind::Contiguous => Counting::Contiguous,
                CountKind::Any => Counting::Any,
            },
            ..RangeSettings::new(range_len_bytes)
        };
        let hold_bytes = hold_limits(scenario)?.size_bytes;
        let shares = (forwarding.shares == RangeShareKind::ByRate).then(RangeShares::default);
        let (relays, messages) = (scenario.relays.len(), VecDeque::new());
        Some(Self { settings, hold_bytes, relays, keeper: None, messages, shares })
    }

    /// The relays in use offer these rates.
    pub fn set_rates(&mut self, rates: impl FnOnce() -> Vec<(RelayId, Rate)>) {
        if let Some(shares) = &mut self.shares {
            *shares = RangeShares::new(rates());
        }
    }

    /// What `relay` hears of what all are told.
    pub fn frame_to(&self, relay: usize, frame: ToRelay) -> ToRelay {
        match (frame, &self.shares) {
            (ToRelay::Range(update), Some(shares)) => {
                ToRelay::Range(RangeUpdate { range: shares.of(RelayId(relay as u16), update.range), ..update })
            }
            _ => frame,
        }
    }

    /// When the next message arrives.
    pub fn next_at(&self) -> Instant {
        self.messages.front().map_or(Instant::FAR_FUTURE, |due| due.at)
    }

    /// The next message that has arrived.
    pub fn take_due(&mut self, now: Instant) -> Option<Due> {
        self.messages.front().filter(|due| due.at <= now)?;
        self.messages.pop_front()
    }

    /// The channel to `relay` was opened anew: it hears what holds now.
    pub fn repeat(&mut self, relay: usize, now: Instant) {
        if let Some(keeper) = &self.keeper {
            let update = RangeUpdate { range: keeper.range(), ack: keeper.ack() };
            self.messages.push_back(Due { to: Some(relay), ..Due::to_all(Announcement::Range(update), now) });
        }
    }

    /// The stream has moved on up to `rcv_nxt`.
    fn on_progress(&mut self, rcv_nxt: Dsn, now: Instant) {
        let Self { settings, hold_bytes, relays, .. } = self;
        let begin = || {
            let mut keeper = RangeKeeper::new(*settings, rcv_nxt);
            // All hear of it, so that whoever joins knows what is wanted.
            let updates = (0..*relays).map(|relay| keeper.add_relay(now, RelayId(relay as u16), *hold_bytes));
            let latest = updates.last().map(Announcement::Range);
            (keeper, latest)
        };
        if self.keeper.is_none() {
            let (keeper, first) = begin();
            self.keeper = Some(keeper);
            self.messages.extend(first.map(|first| Due::to_all(first, now)));
        }
        if let Some(keeper) = &mut self.keeper {
            keeper.on_packet(now, rcv_nxt, 0, rcv_nxt, 0);
        }
        self.collect(now);
    }

    /// Octets arrived, wherever in the stream: for who counts any.
    fn on_arrival(&mut self, dsn: Dsn, len_bytes: u64, now: Instant) {
        if let Some(keeper) = &mut self.keeper {
            let rcv_nxt = keeper.ack().rcv_nxt;
            keeper.on_packet(now, dsn, len_bytes, rcv_nxt, 0);
        }
        self.collect(now);
    }

    fn collect(&mut self, now: Instant) {
        let Some(keeper) = &mut self.keeper else { return };
        while let Some(announcement) = keeper.poll_announcement() {
            self.messages.push_back(Due::to_all(announcement, now));
        }
    }
}

/// Tells [`Ranges`] which octets reach the destination, in order or not.
pub(in crate::run) struct ArrivalTap {
    ranges: Rc<RefCell<Ranges>>,
    destination: HostId,
    dsns: PacketDsns,
}

impl ArrivalTap {
    /// If any octet of a range counts.
    pub fn new(ranges: &Rc<RefCell<Ranges>>, destination: HostId) -> Option<Self> {
        let any = ranges.borrow().settings.counting == Counting::Any;
        any.then(|| Self { ranges: Rc::clone(ranges), destination, dsns: PacketDsns::default() })
    }
}

impl Tap for ArrivalTap {
    fn segment(&mut self, at: Instant, interface: Interface, direction: Direction, segment: &Segment) {
        if interface.host != self.destination || direction != Direction::Received {
            return;
        }
        let mut ranges = self.ranges.borrow_mut();
        let near = ranges.keeper.as_ref().map_or(Dsn(0), |keeper| keeper.range().min);
        if let PacketDsn::Data { dsn: Some(dsn), .. } = self.dsns.look(segment, near) {
            ranges.on_arrival(dsn, segment.payload.len() as u64, at);
        }
    }
}

/// Watches the destination's stream for [`Ranges`].
pub(in crate::run) struct RangeWatch(pub Rc<RefCell<Ranges>>);

impl App for RangeWatch {
    fn start(&mut self, _endpoint: &mut Endpoint, _now: Instant) {}

    fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant) {
        let (Event::FullyEstablished(connection) | Event::Readable(connection)) = event else { return };
        if let Some((_, rcv_nxt)) = endpoint.data_sequence(*connection) {
            self.0.borrow_mut().on_progress(rcv_nxt, now);
        }
    }

    fn handle_timeout(&mut self, _endpoint: &mut Endpoint, now: Instant) {
        let mut ranges = self.0.borrow_mut();
        if let Some(keeper) = &mut ranges.keeper {
            keeper.handle_timeout(now);
        }
        ranges.collect(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.0.borrow().keeper.as_ref()?.poll_timeout()
    }

    fn report(&self) -> Report {
        Report::default()
    }
}
