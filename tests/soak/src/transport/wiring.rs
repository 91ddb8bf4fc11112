//! Builds a simulation from a case.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;

use bytes::Bytes;
use network::impairment::{Corrupt, Delay, Detection, DropMatching, Duplicate, Outage, Reorder};
use network::middlebox::{Edit, EditStream, Merge, OptionKinds, ShiftDsn, Split, StripOn, StripOptions};
use network::{Link, LossModel, Packet, Path, PathEnds, Queue, Trace, TwoHosts};
use simulator::relay::{DESTINATION_GATE, RelayMedium, SOURCE_GATE};
use simulator::{CLIENT, EndpointHost, Simulation, two_hosts};
use transport::ConnectionConfig;
use transport::relay::{AtOnce, FastAckRelay, ForwardingRelay, RelayConfig};
use units::{Duration, Instant, Rate};
use wire::Flags;
use wire::mptcp::MptcpOption;

use super::case::{Case, Element, Gateway, Loss, PathCase, Relay, Segments, Side, Strip, Way};
use super::talker::{Conversations, Talker};
use crate::traffic::{Counter, Counts, Traffic};

/// The server's first port; each talk has its own.
pub const PORT_FIRST: u16 = 80;

/// Number of outages of a path that flaps.
const FLAPS: u64 = 500;

/// A case ready to run.
pub struct Stage {
    /// The hosts on their network.
    pub simulation: Simulation<EndpointHost>,
    /// Addresses of each path.
    pub paths: Vec<PathEnds>,
    /// Records of the applications of client and server.
    pub conversations: [Conversations; 2],
    /// Segment counts of both hosts so far.
    pub traffic: Counts,
}

/// Builds the simulation of a case.
pub fn wire(case: &Case) -> Stage {
    let mut topology = TwoHosts::new(case.seed);
    if case.ipv6 {
        topology = topology.ipv6();
    }
    if case.one_server_address {
        topology = topology.one_server_address();
    }
    for (number, path) in case.paths.iter().enumerate() {
        let ends = addresses(case, number);
        topology = topology.path(path_of(path, case.seed.wrapping_add(number as u64), ends));
    }
    let conversations = [Conversations::default(), Conversations::default()];
    let (mut simulation, paths) = two_hosts(topology, case.seed, |(id, paths), host| {
        let side = if id == CLIENT { Side::Client } else { Side::Server };
        let local = paths[0].client;
        let server: SocketAddr = SocketAddr::new(paths[0].server, PORT_FIRST);
        host.app(Talker::new(case, side, local, server, conversations[side.index()].clone()))
    });
    let traffic = Counts::new(RefCell::new(vec![Traffic::default(); 2]));
    simulation.add_tap(Box::new(Counter(traffic.clone())));
    Stage { simulation, paths, conversations, traffic }
}

/// Returns the addresses that [`TwoHosts`] gives client and server on a path.
fn addresses(case: &Case, path: usize) -> [IpAddr; 2] {
    let own = path as u8 + 1;
    let servers = if case.one_server_address { 1 } else { own };
    [(own, 0), (servers, 1)].map(|(number, side)| match case.ipv6 {
        true => Ipv6Addr::new(0xfd00, number.into(), side, 0, 0, 0, 0, 1).into(),
        false => Ipv4Addr::new(10, number, side as u8, 1).into(),
    })
}

fn path_of(path: &PathCase, seed: u64, [client, server]: [IpAddr; 2]) -> Path {
    let mut made = Path::new(link_of(&path.up), link_of(&path.down));
    for element in &path.up.elements {
        made = add(made, *element, true);
    }
    for element in &path.down.elements {
        made = add(made, *element, false);
    }
    if let Some(relay) = path.relay {
        made = made.middlebox(Delay::new(Duration::from_millis(relay.delay_ms)));
        made = made.medium(relay_of(relay, seed), DESTINATION_GATE, SOURCE_GATE);
    }
    if let Some(gateway) = path.gateway {
        made = made.middlebox(EditStream::new(if gateway.of_server { server } else { client }, edit(gateway)));
    }
    match path.nat_idle_s {
        Some(idle_s) => made.nat(Duration::from_secs(idle_s)),
        None => made,
    }
}

fn link_of(way: &Way) -> Link {
    let delay = Duration::from_millis(way.delay_ms);
    let mut queue = Queue::packets(way.queue_packets);
    if let Some(bytes) = way.queue_bytes {
        queue = queue.and_bytes(bytes);
    }
    if let Some(packets) = way.mark_above {
        queue = queue.mark_above(packets);
    }
    let loss = match way.loss {
        Loss::None => LossModel::None,
        Loss::Uniform { percent } => LossModel::uniform(percent / 100.0),
        Loss::Gilbert { percent, burst } => LossModel::gilbert(percent / 100.0, burst),
    };
    let link = match Trace::from_times_ms(way.trace_ms.clone()) {
        Ok(trace) => Link::traced(trace, delay),
        Err(_) => Link::new(Rate::from_bps(way.rate_kbps * 1000), delay),
    };
    link.queue(queue).loss(loss)
}

fn relay_of(relay: Relay, seed: u64) -> RelayMedium<AtOnce> {
    let tcp = ConnectionConfig { mtu: relay.mtu, ..RelayConfig::default().tcp };
    let buffer_bytes = relay.buffer_bytes.max(2 * u64::from(relay.mtu));
    let config = RelayConfig { tcp, buffer_bytes, ..RelayConfig::default() };
    let mut octets = [0; 32];
    octets[..8].copy_from_slice(&seed.to_le_bytes());
    let relay = FastAckRelay::new(config, octets).expect("the controller is known and the buffer large enough");
    RelayMedium::new(ForwardingRelay::new(relay, AtOnce))
}

fn edit(gateway: Gateway) -> Edit {
    let octets = Bytes::from(vec![b'x'; gateway.octets as usize]);
    match gateway.inserts {
        true => Edit::Insert { at: gateway.at, octets },
        false => Edit::Overwrite { at: gateway.at, octets },
    }
}

fn add(path: Path, element: Element, up: bool) -> Path {
    macro_rules! behind {
        ($node:expr) => {
            if up { path.to_server($node) } else { path.to_client($node) }
        };
    }
    match element {
        Element::Outage { from_ms, until_ms } => {
            behind!(Outage::new([Instant::from_millis(from_ms)..Instant::from_millis(until_ms)]))
        }
        Element::Flaps { every_ms, for_ms } => behind!(Outage::new(flaps(every_ms, for_ms))),
        Element::Dead { from_ms } => behind!(Outage::new([Instant::from_millis(from_ms)..Instant::FAR_FUTURE])),
        Element::Reorder { percent, delay_ms } => {
            behind!(Reorder::new(percent / 100.0, Duration::from_millis(delay_ms)))
        }
        Element::Duplicate { percent } => behind!(Duplicate::new(percent / 100.0)),
        Element::Damage { percent } => behind!(Corrupt::new(percent / 100.0, Detection::Detected)),
        Element::Corrupt { percent } => behind!(Corrupt::new(percent / 100.0, Detection::Undetected)),
        Element::StripMptcp(strip) => behind!(strip_mptcp(strip)),
        Element::StripSyn { mss, window_scale, sack, timestamps } => {
            match kinds([mss, window_scale, sack, timestamps]) {
                Some(kinds) => behind!(StripOptions::new(kinds, StripOn::Syn)),
                None => path,
            }
        }
        Element::Split { bytes } => behind!(Split::new(bytes as usize)),
        Element::Merge { bytes, hold_ms } => behind!(Merge::new(bytes as usize, Duration::from_millis(hold_ms))),
        Element::ShiftDsn { octets, after } => behind!(ShiftDsn::new(octets).after(after)),
        Element::Drop { what, after, count } => {
            behind!(DropMatching::new(move |packet| is_of_kind(packet, what)).after(after).at_most(count))
        }
    }
}

/// Returns the outages of the first minutes.
fn flaps(every_ms: u64, for_ms: u64) -> impl Iterator<Item = Range<Instant>> {
    (1..FLAPS).map(move |n| Instant::from_millis(n * every_ms)..Instant::from_millis(n * every_ms + for_ms))
}

fn strip_mptcp(strip: Strip) -> StripOptions {
    match strip {
        Strip::Syn => StripOptions::mptcp(StripOn::Syn),
        Strip::SynAck => StripOptions::mptcp(StripOn::SynAck),
        Strip::All => StripOptions::mptcp(StripOn::All),
        Strip::After(segments) => StripOptions::mptcp(StripOn::All).after(segments),
    }
}

/// Returns the chosen options, in the order of [`Element::StripSyn`]; `None` if none is chosen.
fn kinds(chosen: [bool; 4]) -> Option<OptionKinds> {
    let kinds = [OptionKinds::MSS, OptionKinds::WINDOW_SCALE, OptionKinds::SACK, OptionKinds::TIMESTAMPS];
    kinds.into_iter().zip(chosen).filter(|(_, chosen)| *chosen).map(|(kind, _)| kind).reduce(OptionKinds::and)
}

fn is_of_kind(packet: &Packet, what: Segments) -> bool {
    let Some(segment) = packet.segment() else { return false };
    let has = |wanted: fn(&MptcpOption) -> bool| segment.options.mptcp.iter().any(wanted);
    match what {
        Segments::Syn => segment.flags.contains(Flags::SYN),
        Segments::Fin => segment.flags.contains(Flags::FIN),
        Segments::Rst => segment.flags.contains(Flags::RST),
        Segments::Data => !segment.payload.is_empty(),
        Segments::Ack => is_pure_ack(segment),
        Segments::DataFin => has(|option| matches!(option, MptcpOption::Dss(dss) if dss.data_fin)),
        Segments::AddAddr => has(|option| matches!(option, MptcpOption::AddAddr(_))),
        Segments::Fastclose => has(|option| matches!(option, MptcpOption::Fastclose(_))),
    }
}

fn is_pure_ack(segment: &wire::Segment) -> bool {
    segment.payload.is_empty() && !segment.flags.intersects(Flags::SYN | Flags::FIN | Flags::RST)
}
