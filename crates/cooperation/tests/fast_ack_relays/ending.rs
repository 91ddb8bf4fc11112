//! The beginning and the end of a spliced subflow whose data the relay holds, segment by segment.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::collections::BTreeMap;

use cooperation::forwarding::differentiated::{About, Differentiated};
use cooperation::forwarding::hold_queue::HoldLimits;
use cooperation::forwarding::range::{CumAck, DsnRange, RangeUpdate};
use transport::relay::{FastAckRelay, ForwardingRelay, RelayConfig, Side};
use units::{Dsn, Duration, Instant, SeqNr};
use wire::mptcp::{AddressId, DataSeq, Dss, Mapping, MpJoin, MptcpOption, Token};
use wire::{Flags, Payload, Segment};

const NOW: Instant = Instant::from_secs(1);
const LIMITS: HoldLimits = HoldLimits { size_bytes: 100_000, stay: Duration::from_secs(1_000) };
/// First octet of the source's data.
const DSN: u32 = 900;
/// Sequence number of this octet on each subflow.
const FIRST: SeqNr = SeqNr(101);
const PIECE: u16 = 1000;
/// The connection of the subflows.
const TOKEN: Token = Token(5);
const ABOUT: About = About { connection: TOKEN, destination: None };

/// A relay that knows a range of two pieces.
struct World {
    relay: ForwardingRelay<Differentiated>,
    /// Segments to the destination since they were last taken.
    sent: Vec<Segment>,
    /// The latest segment to each host's end of each subflow.
    latest: BTreeMap<(Side, u16), Segment>,
}

fn host(side: Side, subflow: u16) -> SocketAddr {
    let (last, port) = if side == Side::Source { (1, 80) } else { (2, 4000 + subflow) };
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)), port)
}

impl World {
    fn new() -> Self {
        Self::told(CumAck { rcv_nxt: Dsn(DSN.into()), window_bytes: 60_000, widened_bytes: 0 })
    }

    /// Creates a relay with a subflow to a destination whose own window has room for one piece.
    fn with_room_for_one_piece() -> Self {
        let (rcv_nxt, own_bytes, widened_bytes) = (Dsn(DSN.into()), u64::from(PIECE), 60_000);
        let mut world = Self::told(CumAck { rcv_nxt, window_bytes: own_bytes + widened_bytes, widened_bytes });
        world.join(0);
        world
    }

    /// Creates a relay that has heard this of the destination.
    fn told(ack: CumAck) -> Self {
        let relay = FastAckRelay::new(RelayConfig::default(), [3; 32]).unwrap();
        let mut relay = ForwardingRelay::new(relay, Differentiated::new(LIMITS));
        let range = DsnRange { seq: 1, min: ack.rcv_nxt, max: ack.rcv_nxt + (2 * u64::from(PIECE) - 1) };
        let (fast_ack, policy) = relay.parts();
        policy.on_range(ABOUT, RangeUpdate { range, ack }, fast_ack, NOW);
        Self { relay, sent: Vec::new(), latest: BTreeMap::new() }
    }

    fn hear(&mut self, from: Side, segment: Segment) {
        assert!(self.relay.handle_segment(from, segment, NOW).is_none(), "it belongs to the subflow");
        self.drain();
    }

    fn drain(&mut self) {
        while let Some((side, segment)) = self.relay.poll_transmit(NOW) {
            let port = if side == Side::Source { segment.src.port() } else { segment.dst.port() };
            self.latest.insert((side, port), segment.clone());
            if side == Side::Destination {
                self.sent.push(segment);
            }
        }
    }

    /// Returns an ACK of the host at `side`, of everything that it has seen.
    fn ack(&self, side: Side, subflow: u16) -> Segment {
        let latest = &self.latest[&(side, host(Side::Destination, subflow).port())];
        let mut ack = Segment::new(host(side, subflow), host(side.opposite(), subflow));
        (ack.seq, ack.ack, ack.flags, ack.window) = (latest.ack, latest.end(), Flags::ACK, 60_000);
        ack
    }

    /// Splices a subflow that the destination opens for the connection of the range.
    fn join(&mut self, subflow: u16) {
        self.join_of(TOKEN, subflow);
    }

    /// Splices a subflow that the destination opens for the connection with this token.
    fn join_of(&mut self, token: Token, subflow: u16) {
        self.prove(token, subflow);
        let fourth = self.ack(Side::Source, subflow);
        self.hear(Side::Source, fourth);
        self.sent.clear();
    }

    /// As [`Self::join_of`], but nothing has come from the source since its SYN/ACK.
    fn prove(&mut self, token: Token, subflow: u16) {
        let mut syn = Segment::new(host(Side::Destination, subflow), host(Side::Source, subflow));
        syn.flags = Flags::SYN;
        let join = MpJoin::Syn { backup: false, address_id: AddressId(1), token, nonce: 3 };
        syn.options.mptcp.push(MptcpOption::Join(join));
        self.hear(Side::Destination, syn);
        let mut second = self.ack(Side::Source, subflow);
        (second.seq, second.flags) = (SeqNr(100), Flags::SYN | Flags::ACK);
        let join = MpJoin::SynAck { backup: false, address_id: AddressId(0), hmac: 9, nonce: 4 };
        second.options.mptcp.push(MptcpOption::Join(join));
        self.hear(Side::Source, second);
        let mut third = self.ack(Side::Destination, subflow);
        third.seq = SeqNr(1);
        third.options.mptcp.push(MptcpOption::Join(MpJoin::Ack { hmac: [1; 20] }));
        self.hear(Side::Destination, third);
        self.sent.clear();
    }

    /// Returns piece `number` of the source's data, at place `place` of a subflow.
    fn piece(&self, subflow: u16, number: u32, place: u32) -> Segment {
        let mut segment = self.ack(Side::Source, subflow);
        let offset = place * u32::from(PIECE);
        segment.seq = FIRST + offset;
        segment.payload = Payload::Bytes(vec![7; PIECE.into()].into());
        let dsn = DataSeq::Short(DSN + number * u32::from(PIECE));
        let mapping = Mapping { dsn, ssn: 1 + offset, len: PIECE, checksum: None };
        let dss = Dss { data_ack: None, mapping: Some(mapping), data_fin: false };
        segment.options.mptcp.push(MptcpOption::Dss(dss));
        segment
    }

    fn held_packets(&self) -> usize {
        self.relay.forwarding().queue().held_packets()
    }

    /// Returns the octets sent to the destination, and whether the subflow's end followed them.
    fn sent(&mut self) -> (usize, bool) {
        let sent = core::mem::take(&mut self.sent);
        let bytes = sent.iter().map(|segment| segment.payload.len()).sum();
        (bytes, sent.last().is_some_and(|segment| segment.flags.contains(Flags::FIN)))
    }
}

/// The ACK of the source that would have completed the handshake is lost. Its data show the lower half of their numbers
/// only.
#[test]
fn data_that_complete_a_join_have_their_place_in_the_range() {
    let rcv_nxt = Dsn((1 << 63) + u64::from(DSN));
    let mut world = World::told(CumAck { rcv_nxt, window_bytes: 60_000, widened_bytes: 0 });
    world.prove(TOKEN, 0);
    world.hear(Side::Source, world.piece(0, 0, 0));
    assert_eq!((world.held_packets(), world.sent()), (0, (PIECE.into(), false)));
    world.hear(Side::Source, world.piece(0, 5, 1));
    assert_eq!((world.held_packets(), world.sent()), (1, (0, false)));
}

/// Nobody tells it any more when the destination has room for data beyond its own window.
#[test]
fn a_relay_that_hears_nothing_any_more_sends_what_waits_for_room() {
    let mut world = World::with_room_for_one_piece();
    (0..3).for_each(|number| world.hear(Side::Source, world.piece(0, number, number)));
    assert_eq!((world.held_packets(), world.sent()), (1, (PIECE.into(), false)));
    let (relay, policy) = world.relay.parts();
    // A destination that calls again says at once what it has room for.
    policy.forget_range(None, relay, NOW);
    world.drain();
    assert_eq!((world.held_packets(), world.sent()), (0, (0, false)));
    let (relay, policy) = world.relay.parts();
    policy.forget_windows(Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 3))), relay);
    world.drain();
    assert_eq!(world.sent(), (0, false), "another destination was lost");
    let (relay, policy) = world.relay.parts();
    policy.forget_windows(Some(host(Side::Destination, 0).ip()), relay);
    world.drain();
    assert_eq!((world.held_packets(), world.sent()), (0, (2 * usize::from(PIECE), false)));
    world.hear(Side::Source, world.piece(0, 3, 3));
    assert_eq!(world.sent(), (PIECE.into(), false));
}

/// It will not say any more what it has room for there.
#[test]
fn what_waits_of_a_connection_that_a_destination_no_longer_speaks_of_leaves() {
    let mut world = World::with_room_for_one_piece();
    (0..2).for_each(|number| world.hear(Side::Source, world.piece(0, number, number)));
    assert_eq!(world.sent(), (PIECE.into(), false));
    for (connection, sent_bytes) in [(Token(6), 0), (TOKEN, usize::from(PIECE))] {
        let (relay, policy) = world.relay.parts();
        policy.forget_window_of(About { connection, ..ABOUT }, relay);
        world.drain();
        assert_eq!(world.sent(), (sent_bytes, false));
    }
}

#[test]
fn data_beyond_the_range_that_come_with_the_end_leave_with_it() {
    let mut world = World::new();
    world.join(0);
    let mut last = world.piece(0, 5, 0);
    last.flags = Flags::ACK | Flags::FIN;
    world.hear(Side::Source, last);
    assert_eq!(world.held_packets(), 0);
    assert_eq!(world.sent(), (PIECE.into(), true));
}

#[test]
fn data_that_fill_a_hole_before_the_end_leave_with_it() {
    let mut world = World::new();
    world.join(0);
    world.hear(Side::Source, world.piece(0, 4, 0));
    let mut last = world.piece(0, 6, 2);
    last.flags = Flags::ACK | Flags::FIN;
    world.hear(Side::Source, last);
    assert_eq!((world.held_packets(), world.sent()), (1, (0, false)), "its end has not been reached");
    world.hear(Side::Source, world.piece(0, 5, 1));
    assert_eq!(world.held_packets(), 0);
    assert_eq!(world.sent(), (3 * usize::from(PIECE), true));
}

#[test]
fn what_is_held_of_a_subflow_that_was_reset_is_dropped_and_the_rest_stays() {
    let mut world = World::new();
    for subflow in 0..2 {
        world.join(subflow);
        for place in 0..3 {
            world.hear(Side::Source, world.piece(subflow, 5 + 2 * place + u32::from(subflow), place));
        }
    }
    assert_eq!((world.held_packets(), world.sent()), (6, (0, false)));
    let mut reset = world.ack(Side::Source, 1);
    (reset.seq, reset.flags) = (FIRST + 3 * u32::from(PIECE), Flags::RST | Flags::ACK);
    world.hear(Side::Source, reset);
    assert_eq!(world.relay.relay().splices().count(), 1);
    let queue = world.relay.forwarding().queue();
    assert_eq!((queue.held_packets(), queue.held_bytes()), (3, 3 * u64::from(PIECE)));
    let (relay, policy) = world.relay.parts();
    policy.leave(relay, NOW);
    world.drain();
    assert_eq!((world.held_packets(), world.sent().0), (0, 3 * usize::from(PIECE)));
}

/// Octets that the destination has of one connection have the numbers of octets that it lacks of another.
#[test]
fn what_is_said_of_one_connection_is_not_taken_for_another_ones() {
    let mut world = World::new();
    world.join_of(Token(6), 0);
    world.hear(Side::Source, world.piece(0, 5, 0));
    assert_eq!((world.held_packets(), world.sent()), (0, (PIECE.into(), false)), "it passes at once");
    let ack = CumAck { rcv_nxt: Dsn(u64::from(DSN) + 50 * u64::from(PIECE)), window_bytes: 60_000, widened_bytes: 0 };
    let (relay, policy) = world.relay.parts();
    policy.on_ack(ABOUT, ack, relay);
    world.hear(Side::Source, world.piece(0, 6, 1));
    assert_eq!(world.sent(), (PIECE.into(), false), "it is not swallowed");
}

#[test]
fn what_another_destination_says_of_a_connection_does_not_count() {
    let mut world = World::new();
    world.join(0);
    let stranger = Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 3)));
    let ack = CumAck { rcv_nxt: Dsn(u64::from(DSN) + 50 * u64::from(PIECE)), window_bytes: 60_000, widened_bytes: 0 };
    let (relay, policy) = world.relay.parts();
    policy.on_ack(About { destination: stranger, ..ABOUT }, ack, relay);
    world.hear(Side::Source, world.piece(0, 0, 0));
    assert_eq!(world.sent(), (PIECE.into(), false), "it is not swallowed");
    let (relay, policy) = world.relay.parts();
    policy.on_ack(About { destination: Some(host(Side::Destination, 0).ip()), ..ABOUT }, ack, relay);
    world.hear(Side::Source, world.piece(0, 1, 1));
    assert_eq!(world.sent(), (0, false), "the destination has it already");
}
