//! A fast-ACK relay whose buffer is full: what it drops, what it answers, and what small pieces cost.

use bytes::Bytes;
use transport::relay::{AtOnce, FastAckRelay, ForwardingRelay, RelayConfig, Side};
use units::{Duration, Instant, SeqNr};
use wire::mptcp::{DataSeq, Dss, Mapping, MptcpOption};
use wire::{Payload, Segment};

use crate::hostile_relay::{Seen, ack, deliver, index, join_by, syn};
use crate::live::live_bytes;

/// Octet of the source's data at which the tests begin.
const DSN: u32 = 900;
/// Sequence number of this octet.
const FIRST: SeqNr = SeqNr(101);
const PIECE: u16 = 1000;

/// A relay with a spliced subflow, and what its hosts have seen.
struct World {
    relay: ForwardingRelay<AtOnce>,
    seen: Seen,
    now: Instant,
}

impl World {
    fn new(buffer_bytes: u64) -> Self {
        let config = RelayConfig { buffer_bytes, ..RelayConfig::default() };
        let mut relay = ForwardingRelay::new(FastAckRelay::new(config, [3; 32]).unwrap(), AtOnce);
        let (mut seen, now) = (Seen::default(), Instant::from_secs(1));
        let mut scaled = syn();
        scaled.options.window_scale = Some(7);
        join_by(scaled, &mut relay, &mut seen, now);
        Self { relay, seen, now }
    }

    /// Creates a relay that is full: the destination acknowledges nothing.
    fn full() -> Self {
        let mut world = Self::new(3 * u64::from(PIECE));
        for n in 0..3 {
            world.hear(Side::Source, world.data(n * u32::from(PIECE), PIECE));
        }
        assert_eq!((world.acknowledged(), world.stored_bytes()), (FIRST + 3 * u32::from(PIECE), 3 * u64::from(PIECE)));
        world
    }

    /// Takes a segment from the host at `side`. Returns whether that host was answered.
    fn hear(&mut self, side: Side, segment: Segment) -> bool {
        let before = self.seen.latest[index(side)].take();
        self.relay.handle_segment(side, segment, self.now);
        deliver(&mut self.relay, &mut self.seen, self.now);
        let answered = self.seen.latest[index(side)].is_some();
        if !answered {
            self.seen.latest[index(side)] = before;
        }
        answered
    }

    /// Builds the source's data from octet `offset` on.
    fn data(&self, offset: u32, len: u16) -> Segment {
        let mut segment = ack(Side::Source, &self.seen);
        segment.seq = FIRST + offset;
        segment.payload = Payload::Bytes(vec![7; len.into()].into());
        let mapping = Mapping { dsn: DataSeq::Short(DSN + offset), ssn: 1 + offset, len, checksum: None };
        let dss = Dss { data_ack: Some(DataSeq::Short(500)), mapping: Some(mapping), data_fin: false };
        segment.options.mptcp.push(MptcpOption::Dss(dss));
        segment
    }

    /// The destination acknowledges `octets` of the relay's leg. Data of another subflow are missing before them.
    fn take(&mut self, octets: u32) {
        let mut taken = ack(Side::Destination, &self.seen);
        taken.ack = self.seen.data.first().map_or(taken.ack, |first| first.seq) + octets;
        taken.window = u16::MAX;
        taken.options.mptcp.push(MptcpOption::Dss(Dss { data_ack: Some(DataSeq::Short(DSN)), ..Dss::default() }));
        self.hear(Side::Destination, taken);
    }

    /// The destination acknowledges all that it has, at both levels.
    fn take_all(&mut self) {
        let mut taken = ack(Side::Destination, &self.seen);
        let ends = self.seen.data.iter().filter_map(|segment| mapped_end(segment).zip(Some(segment.end())));
        let (dsn, end) = ends.max_by_key(|(dsn, _)| *dsn).unwrap_or((DSN, taken.ack));
        taken.ack = end;
        taken.options.mptcp.push(MptcpOption::Dss(Dss { data_ack: Some(DataSeq::Short(dsn)), ..Dss::default() }));
        self.hear(Side::Destination, taken);
    }

    fn answer(&self) -> &Segment {
        self.seen.latest[index(Side::Source)].as_ref().expect("it was answered")
    }

    fn acknowledged(&self) -> SeqNr {
        self.answer().ack
    }

    fn stored_bytes(&self) -> u64 {
        self.relay.relay().splices().next().expect("it goes on").1.stored_bytes
    }

    fn overflowed_segments(&self) -> u64 {
        self.relay.relay().splices().next().expect("it goes on").1.overflowed_segments
    }

    /// Lets time pass, and the relay act when it wants to.
    fn wait(&mut self, span: Duration) {
        let end = self.now + span;
        while let Some(at) = self.relay.poll_timeout().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.relay.handle_timeout(self.now);
            deliver(&mut self.relay, &mut self.seen, self.now);
        }
        self.now = end;
    }
}

/// Returns the end of a segment's data in the data sequence.
fn mapped_end(segment: &Segment) -> Option<u32> {
    segment.options.mptcp.iter().find_map(|option| match option {
        MptcpOption::Dss(Dss { mapping: Some(Mapping { dsn: DataSeq::Short(dsn), len, .. }), .. }) => {
            Some(dsn + u32::from(*len))
        }
        _ => None,
    })
}

/// The source lacks the last ACK and sends again what the relay has: without an answer it would give the subflow up.
#[test]
fn a_full_relay_acknowledges_again_what_it_has() {
    let mut world = World::full();
    for _ in 0..5 {
        world.wait(Duration::from_secs(1));
        assert!(world.hear(Side::Source, world.data(2 * u32::from(PIECE), PIECE)));
        assert_eq!((world.acknowledged(), world.answer().window), (FIRST + 3 * u32::from(PIECE), 0));
    }
    assert_eq!((world.stored_bytes(), world.overflowed_segments()), (3 * u64::from(PIECE), 0));
}

/// RFC 9293 sections 3.8.6.1 and 3.10.7.4: a probe of a window that is shut is answered, until there is room again. Data
/// partly beyond what the relay has are no different.
#[test]
fn a_full_relay_answers_probes_of_its_window() {
    let mut world = World::full();
    let end = 3 * u32::from(PIECE);
    for n in 1..=5 {
        world.wait(Duration::from_secs(1));
        assert!(world.hear(Side::Source, world.data(end, 1)));
        assert_eq!((world.acknowledged(), world.answer().window), (FIRST + end, 0));
        assert!(world.hear(Side::Source, world.data(end - 500, PIECE)));
        assert_eq!((world.acknowledged(), world.answer().window), (FIRST + end, 0));
        assert_eq!((world.stored_bytes(), world.overflowed_segments()), (u64::from(end), 2 * n));
    }
    for _ in 0..10 {
        world.take_all();
        world.wait(Duration::from_secs(1));
    }
    assert_eq!(world.stored_bytes(), 0);
    assert!(world.answer().window > 0, "{:?}", world.answer());
    world.seen.data.clear();
    world.hear(Side::Source, world.data(end, PIECE));
    let passed_on: usize = world.seen.data.iter().map(|segment| segment.payload.len()).sum();
    assert_eq!(passed_on, PIECE.into(), "what was refused comes through, and nothing twice");
}

/// RFC 9293 section 3.8.6.2.2: the destination takes what the relay holds, but lacks data of another subflow, so its
/// DATA_ACK and window stay. The source is told that there is room again, and of little room only once it is worth it.
#[test]
fn a_relay_that_was_full_tells_that_it_has_room_again() {
    const SEGMENTS: u32 = 100;
    let mut world = World::new(u64::from(SEGMENTS * u32::from(PIECE)));
    world.take(0);
    for n in 0..SEGMENTS {
        world.hear(Side::Source, world.data(n * u32::from(PIECE), PIECE));
    }
    world.wait(Duration::from_millis(1));
    assert_eq!((world.acknowledged(), world.answer().window), (FIRST + SEGMENTS * u32::from(PIECE), 0));
    let mut told = Vec::new();
    for taken in (2..=SEGMENTS).step_by(2) {
        let before = world.seen.latest[index(Side::Source)].take();
        world.take(taken * u32::from(PIECE));
        world.wait(Duration::from_millis(1));
        match &world.seen.latest[index(Side::Source)] {
            Some(answer) => told.push((taken, u32::from(answer.window))),
            None => world.seen.latest[index(Side::Source)] = before,
        }
    }
    assert_eq!(world.stored_bytes(), 0);
    // Sixteen times 516 octets, all but the DSS of the least MSS. The source does not use this window, so it hears no
    // more.
    assert_eq!(told, [(10, 10 * u32::from(PIECE))]);
}

/// Data that are dropped bring an ACK of data in the other direction.
#[test]
fn a_full_relay_hears_acknowledgements_beside_data_that_it_drops() {
    let mut world = World::full();
    let mut back = ack(Side::Destination, &world.seen);
    // It has taken nothing.
    back.ack = world.seen.data[0].seq;
    back.payload = Payload::Bytes(vec![5; 100].into());
    let mapping = Mapping { dsn: DataSeq::Short(500), ssn: back.seq.since(SeqNr(0)), len: 100, checksum: None };
    let dss = Dss { data_ack: Some(DataSeq::Short(DSN)), mapping: Some(mapping), data_fin: false };
    back.options.mptcp.push(MptcpOption::Dss(dss));
    world.hear(Side::Destination, back);
    let heard = world.answer().clone();
    assert_eq!(heard.payload.len(), 100, "the source has these data");
    let segment = world.data(3 * u32::from(PIECE), PIECE);
    assert_eq!(segment.ack, heard.end());
    world.hear(Side::Source, segment);
    assert_eq!(world.overflowed_segments(), 1);
    world.wait(Duration::from_secs(3));
    let (_, stats) = world.relay.relay().splices().next().unwrap();
    assert_eq!((stats.towards_source.sent_bytes, stats.towards_source.retransmitted_bytes), (100, 0));
}

/// A source that sends octet by octet, each in a packet of its own, while the destination takes nothing. Its octets
/// follow each other in the data sequence, or leave holes; they wait for the destination's window, or in its leg.
#[test]
fn small_pieces_cost_a_relay_little_more_than_its_buffer() {
    const BUFFER: u64 = 256 << 10;
    const PACKET_BYTES: usize = 1500;
    for (stride, widened_bytes) in [(1, 0), (2, 0), (1, 1 << 20), (2, 1 << 20)] {
        let mut world = World::new(BUFFER);
        let splice = world.relay.relay().splices().next().unwrap().0;
        world.relay.parts().0.widen_window(splice, widened_bytes);
        world.take_all();
        let before = live_bytes();
        for n in 0..BUFFER as u32 {
            let mut octet = world.data(n, 1);
            octet.payload = Payload::from(Bytes::from(vec![7; PACKET_BYTES]).slice(0..1));
            let MptcpOption::Dss(Dss { mapping: Some(mapping), .. }) = &mut octet.options.mptcp[0] else { panic!() };
            mapping.dsn = DataSeq::Short(DSN + n * stride);
            world.hear(Side::Source, octet);
            world.seen.data.clear();
        }
        let cost = live_bytes() - before;
        assert!(cost < 8 * BUFFER as isize, "{cost} octets for a buffer of {BUFFER}, {stride}, {widened_bytes}");
        assert!(world.stored_bytes() > 1000 && world.overflowed_segments() > 0, "{}", world.stored_bytes());
        assert_eq!(world.answer().window, 0, "the source is told");
    }
}
