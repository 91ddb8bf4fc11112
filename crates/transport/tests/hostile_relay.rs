//! A fast-ACK relay between hosts that lie: whatever they send, it neither panics nor uses unbounded memory.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};

use proptest::prelude::*;
use transport::ConnectionConfig;
use transport::relay::{AtOnce, FastAckRelay, ForwardingRelay, Piece, RelayConfig, Side};
use units::{Dsn, Duration, Instant, SeqNr};
use wire::checksum::{dss_checksum, dss_checksum_is_valid};
use wire::mptcp::{AddressId, DataSeq, Dss, Key, Mapping, MpFail, MpFastclose, MpJoin, MpPrio, MptcpOption, Token};
use wire::{Flags, Payload, SackBlock, Segment};

const BUFFER_BYTES: u64 = 20_000;

pub(super) fn host(side: Side) -> SocketAddr {
    let last = if side == Side::Source { 1 } else { 2 };
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)), 80)
}

/// Segments that the two hosts have seen from the relay, so that lies can be close to the truth.
#[derive(Default)]
pub(super) struct Seen {
    /// Latest segment to each side.
    pub(super) latest: [Option<Segment>; 2],
    /// Segments with data to the destination.
    pub(super) data: Vec<Segment>,
}

pub(super) fn index(side: Side) -> usize {
    usize::from(side == Side::Destination)
}

#[derive(Clone, Debug)]
struct Lie {
    side: Side,
    flags: u8,
    /// Sequence and acknowledgement numbers relative to those that the relay expects; large ones lie anywhere.
    seq: i32,
    ack: i32,
    window: u16,
    len: u16,
    options: Vec<MptcpOption>,
    sack: Option<(u32, u32)>,
    wait_ms: u32,
}

fn option() -> impl Strategy<Value = MptcpOption> {
    let number = prop_oneof![
        (0..5000_u32).prop_map(DataSeq::Short),
        any::<u32>().prop_map(DataSeq::Short),
        any::<u64>().prop_map(DataSeq::Long)
    ];
    let mapping = (number.clone(), 0..4000_u32, any::<u16>(), proptest::option::of(any::<u16>()))
        .prop_map(|(dsn, ssn, len, checksum)| Mapping { dsn, ssn, len: len % 3000, checksum });
    let dss = (proptest::option::of(number), proptest::option::of(mapping), any::<bool>()).prop_map(
        |(data_ack, mapping, data_fin)| {
            let data_fin = data_fin && mapping.is_some_and(|mapping| mapping.len > 0);
            MptcpOption::Dss(Dss { data_ack, mapping, data_fin })
        },
    );
    prop_oneof![
        6 => dss,
        1 => any::<u64>().prop_map(|hmac| MptcpOption::Join(MpJoin::SynAck { backup: false, address_id: AddressId(0), hmac, nonce: 1 })),
        2 => any::<[u8; 20]>().prop_map(|hmac| MptcpOption::Join(MpJoin::Ack { hmac })),
        1 => any::<u64>().prop_map(|dsn| MptcpOption::Fail(MpFail { dsn: Dsn(dsn) })),
        1 => any::<u64>().prop_map(|key| MptcpOption::Fastclose(MpFastclose { receiver_key: Key(key) })),
        1 => any::<bool>().prop_map(|backup| MptcpOption::Prio(MpPrio { backup })),
    ]
}

fn lie() -> impl Strategy<Value = Lie> {
    let near = || prop_oneof![4 => Just(0), 3 => -3000..3000_i32, 1 => any::<i32>()];
    let flags = prop_oneof![8 => Just(0x10_u8), 1 => Just(0x12), 1 => Just(0x11), 1 => Just(0x14), 1 => any::<u8>()];
    let side = prop_oneof![Just(Side::Source), Just(Side::Destination)];
    let options = proptest::collection::vec(option(), 0..3);
    let sack = proptest::option::of((0..5000_u32, 0..5000_u32));
    let rest = (any::<u16>(), 0..2000_u16, options, sack, 0..400_u32);
    (side, flags, near(), near(), rest).prop_map(|(side, flags, seq, ack, (window, len, options, sack, wait_ms))| Lie {
        side,
        flags,
        seq,
        ack,
        window,
        len,
        options,
        sack,
        wait_ms,
    })
}

impl Lie {
    fn segment(&self, seen: &Seen) -> Segment {
        let mut segment = Segment::new(host(self.side), host(self.side.opposite()));
        let latest = seen.latest[index(self.side)].as_ref();
        let (expected, sent) = latest.map_or((SeqNr(1), SeqNr(1)), |latest| (latest.ack, latest.end()));
        segment.seq = SeqNr(expected.0.wrapping_add_signed(self.seq));
        segment.ack = SeqNr(sent.0.wrapping_add_signed(self.ack));
        segment.flags = Flags(self.flags);
        segment.window = self.window;
        segment.payload = Payload::Bytes(vec![7; self.len.into()].into());
        segment.options.mptcp.extend(self.options.iter().cloned());
        if let Some((start, end)) = self.sack {
            segment.options.sack.push(SackBlock { start: sent + start, end: sent + end });
        }
        segment
    }
}

pub(super) fn deliver(relay: &mut ForwardingRelay<AtOnce>, seen: &mut Seen, now: Instant) {
    for _ in 0..10_000 {
        let Some((side, segment)) = relay.poll_transmit(now) else { return };
        if side == Side::Destination && !segment.payload.is_empty() {
            seen.data.push(segment.clone());
        }
        seen.latest[index(side)] = Some(segment);
    }
    panic!("the relay talks without end");
}

pub(super) fn syn() -> Segment {
    let mut syn = Segment::new(host(Side::Destination), host(Side::Source));
    syn.flags = Flags::SYN;
    let join = MpJoin::Syn { backup: false, address_id: AddressId(1), token: Token(5), nonce: 3 };
    syn.options.mptcp.push(MptcpOption::Join(join));
    syn
}

/// Performs an honest handshake, so that the relay has state to lose.
fn join(relay: &mut ForwardingRelay<AtOnce>, seen: &mut Seen, now: Instant) {
    join_by(syn(), relay, seen, now);
}

pub(super) fn join_by(syn: Segment, relay: &mut ForwardingRelay<AtOnce>, seen: &mut Seen, now: Instant) {
    let timestamps = syn.options.timestamps;
    ask_to_join(syn, relay, seen, now);
    let mut fourth = ack(Side::Source, seen);
    fourth.options.timestamps = timestamps;
    relay.handle_segment(Side::Source, fourth, now);
    deliver(relay, seen, now);
    assert!(relay.relay().splices().all(|(_, stats)| stats.joined), "{:?}", seen.latest);
}

/// Returns an ACK of the host at `side`, of everything that it has seen.
pub(super) fn ack(side: Side, seen: &Seen) -> Segment {
    let latest = seen.latest[index(side)].as_ref().expect("it has seen a segment");
    let mut ack = Segment::new(host(side), host(side.opposite()));
    (ack.seq, ack.ack, ack.flags, ack.window) = (latest.ack, latest.end(), Flags::ACK, 60_000);
    ack
}

/// Performs the handshake up to the third ACK, which the source has not answered.
pub(super) fn ask_to_join(syn: Segment, relay: &mut ForwardingRelay<AtOnce>, seen: &mut Seen, now: Instant) {
    let (sack, timestamps) = (syn.options.sack_permitted, syn.options.timestamps);
    relay.handle_segment(Side::Destination, syn, now);
    deliver(relay, seen, now);
    let answer = |side: Side, flags, join: MpJoin, seen: &Seen| {
        let mut segment = Segment { flags, ..ack(side, seen) };
        segment.options.timestamps = timestamps;
        segment.options.mptcp.push(MptcpOption::Join(join));
        segment
    };
    let syn_ack = MpJoin::SynAck { backup: false, address_id: AddressId(0), hmac: 9, nonce: 4 };
    let mut second = answer(Side::Source, Flags::SYN | Flags::ACK, syn_ack, seen);
    second.seq = SeqNr(100);
    second.options.sack_permitted = sack;
    relay.handle_segment(Side::Source, second, now);
    deliver(relay, seen, now);
    let mut third = answer(Side::Destination, Flags::ACK, MpJoin::Ack { hmac: [1; 20] }, seen);
    third.seq = SeqNr(1);
    relay.handle_segment(Side::Destination, third, now);
    deliver(relay, seen, now);
}

/// RFC 8684 section 3.3: with checksums in use every mapping has one, even that of a DATA_FIN that first shows the
/// relay that they are in use. A host resets a subflow on which one is missing.
#[test]
fn the_end_of_a_stream_without_data_keeps_its_checksum() {
    for checksum in [None, Some(0x1234)] {
        let mut relay = ForwardingRelay::new(FastAckRelay::new(RelayConfig::default(), [3; 32]).unwrap(), AtOnce);
        let (mut seen, now) = (Seen::default(), Instant::from_secs(1));
        join(&mut relay, &mut seen, now);
        let mapping = Some(Mapping { dsn: DataSeq::Short(900), ssn: 0, len: 1, checksum });
        let dss = Dss { data_ack: Some(DataSeq::Short(500)), mapping, data_fin: true };
        let options = vec![MptcpOption::Dss(dss)];
        let end = Lie {
            side: Side::Source,
            flags: 0x10,
            seq: 0,
            ack: 0,
            window: 60_000,
            len: 0,
            options,
            sack: None,
            wait_ms: 0,
        };
        relay.handle_segment(Side::Source, end.segment(&seen), now);
        deliver(&mut relay, &mut seen, now);
        let passed_on = &seen.latest[index(Side::Destination)].as_ref().unwrap().options.mptcp;
        let ends = passed_on.iter().find_map(|option| match option {
            MptcpOption::Dss(Dss { data_fin: true, mapping, .. }) => *mapping,
            _ => None,
        });
        assert_eq!(ends.map(|mapping| mapping.checksum.is_some()), Some(checksum.is_some()), "{passed_on:?}");
    }
}

/// The checksum of a stream's end without data covers the same octets on both legs, whatever the peer believes them to
/// be.
#[test]
fn the_checksum_of_an_end_without_data_passes_unchanged() {
    let (mut relay, mut seen, now) = joined();
    let end = Sent { ssn: 0, len: 0, data_fin: true, checksum: Some(0x1234), ..Sent::default() };
    relay.handle_segment(Side::Source, end.segment(&seen, SeqNr(101)), now);
    deliver(&mut relay, &mut seen, now);
    let passed_on = &seen.latest[index(Side::Destination)].as_ref().unwrap().options.mptcp;
    let checksum = passed_on.iter().find_map(|option| match option {
        MptcpOption::Dss(Dss { mapping, .. }) => mapping.and_then(|mapping| mapping.checksum),
        _ => None,
    });
    assert_eq!(checksum, Some(0x1234), "{passed_on:?}");
}

/// The source's mapping; data are all 7.
#[derive(Clone, Copy, Default)]
struct Sent {
    dsn: u32,
    ssn: u32,
    len: u16,
    checksum: Option<u16>,
    data_fin: bool,
}

impl Sent {
    /// Adds the checksum of a host that knows all bits.
    fn summed(self, dsn: Dsn) -> Self {
        let (payload, len) = (Payload::Bytes(vec![7; self.len.into()].into()), self.len + u16::from(self.data_fin));
        Self { dsn: dsn.low(), checksum: Some(dss_checksum(dsn, self.ssn, len, [&payload])), ..self }
    }

    fn segment(&self, seen: &Seen, first: SeqNr) -> Segment {
        let mut segment = Segment::new(host(Side::Source), host(Side::Destination));
        segment.seq = first + self.ssn.saturating_sub(1);
        segment.ack = seen.latest[index(Side::Source)].as_ref().unwrap().end();
        (segment.flags, segment.window) = (Flags::ACK, 60_000);
        segment.payload = Payload::Bytes(vec![7; self.len.into()].into());
        let Self { dsn, ssn, len, checksum, data_fin } = *self;
        let mapping = Mapping { dsn: DataSeq::Short(dsn), ssn, len: len + u16::from(data_fin), checksum };
        let dss = Dss { data_ack: Some(DataSeq::Short(500)), mapping: Some(mapping), data_fin };
        segment.options.mptcp.push(MptcpOption::Dss(dss));
        segment
    }
}

/// Creates a relay that has spliced a subflow. The source's first octet of data has sequence number 101.
pub(super) fn joined() -> (ForwardingRelay<AtOnce>, Seen, Instant) {
    let mut relay = ForwardingRelay::new(FastAckRelay::new(RelayConfig::default(), [3; 32]).unwrap(), AtOnce);
    let (mut seen, now) = (Seen::default(), Instant::from_secs(1));
    join(&mut relay, &mut seen, now);
    (relay, seen, now)
}

/// Returns the octets that the destination received, and the number of them whose checksum is right for all bits of the
/// number near `dsn`.
fn verified(seen: &Seen, dsn: Dsn) -> (u64, u64) {
    let mut octets = (0, 0);
    for segment in &seen.data {
        let mapping = segment.options.mptcp.iter().find_map(|option| match option {
            MptcpOption::Dss(dss) => dss.mapping,
            _ => None,
        });
        let Some(Mapping { dsn: DataSeq::Short(low), ssn, len, checksum: Some(checksum) }) = mapping else {
            panic!("{segment:?}");
        };
        let is_right = dss_checksum_is_valid(checksum, Dsn::expand(low, dsn), ssn, len, [&segment.payload]);
        let len = segment.payload.len() as u64;
        octets = (octets.0 + len, octets.1 + if is_right { len } else { 0 });
    }
    octets
}

/// RFC 8684 section 3.3.1: checksums cover 64 bits of the data sequence number, of which hosts may write 32. The relay
/// cuts long segments into new ones, with checksums that the destination finds right. Over data damaged before the
/// first checksum, it makes none.
#[test]
fn checksums_are_made_anew_over_numbers_of_which_the_relay_knows_half() {
    // The last one wraps the lower half during the transfer.
    for dsn in [Dsn(900), Dsn(0x1234_5678_9abc_def0), Dsn(0xffff_0000_ffff_fff0), Dsn(0xfffe_ffff_ffff_ff00)] {
        for damaged in [false, true] {
            let (mut relay, mut seen, now) = joined();
            for part in 0..3_u32 {
                let sent = Sent { ssn: 1 + 1400 * part, len: 1400, ..Sent::default() };
                let mut segment = sent.summed(dsn + u64::from(1400 * part)).segment(&seen, SeqNr(101));
                if damaged && part == 0 {
                    let mut octets = vec![7; 1400];
                    octets[1] ^= 0x10;
                    segment.payload = Payload::Bytes(octets.into());
                }
                // In two pieces, of which the first proves nothing.
                let mut rest = segment.clone();
                rest.seq += 500;
                rest.payload = segment.payload.slice(500..1400);
                segment.payload = segment.payload.slice(0..500);
                relay.handle_segment(Side::Source, segment, now);
                relay.handle_segment(Side::Source, rest, now);
                deliver(&mut relay, &mut seen, now);
            }
            match damaged {
                false => assert_eq!(verified(&seen, dsn), (4200, 4200), "{dsn:?}"),
                true => {
                    assert_eq!(verified(&seen, dsn), (1400, 0), "{dsn:?}");
                    assert_eq!(relay.relay().splices().count(), 0, "the second checksum shows it here, too");
                }
            }
        }
    }
}

/// Bits learned of the upper halves while data wait behind a hole also apply to these data.
#[test]
fn mappings_that_wait_move_with_the_numbers() {
    for summed in [false, true] {
        let (mut relay, mut seen, now) = joined();
        let dsn = Dsn(0x7_0000_1000);
        let segments = [0, 1, 2].map(|part: u32| {
            let sent = Sent { dsn: dsn.low() + 100 * part, ssn: 1 + 100 * part, len: 100, ..Sent::default() };
            let sent = if summed { sent.summed(dsn + u64::from(100 * part)) } else { sent };
            sent.segment(&seen, SeqNr(101))
        });
        relay.handle_segment(Side::Source, segments[1].clone(), now);
        deliver(&mut relay, &mut seen, now);
        let splice = relay.relay().splices().next().unwrap().0;
        relay.parts().0.anchor(splice, Side::Destination, dsn);
        for segment in [1, 0, 2].map(|part| &segments[part]) {
            relay.handle_segment(Side::Source, segment.clone(), now);
            deliver(&mut relay, &mut seen, now);
        }
        assert_eq!(relay.relay().splices().count(), 1, "summed: {summed}");
        assert_eq!(seen.data.iter().map(|segment| segment.payload.len()).sum::<usize>(), 300);
    }
}

/// RFC 9293 section 3.8.4: a question asks for a sign of life of the other host, not of the relay.
#[test]
fn questions_are_answered_when_the_other_host_lives() {
    for octets in [0, 1] {
        for side in [Side::Source, Side::Destination] {
            let (mut relay, mut seen, now) = joined();
            let heard = |seen: &Seen, side| seen.latest[index(side)].clone().unwrap();
            let mut question = Segment::new(host(side), host(side.opposite()));
            (question.seq, question.ack) = (heard(&seen, side).ack - 1, heard(&seen, side).end());
            (question.flags, question.window) = (Flags::ACK, 60_000);
            question.payload = Payload::Bytes(vec![0; octets].into());
            seen.latest = [None, None];
            relay.handle_segment(side, question.clone(), now);
            deliver(&mut relay, &mut seen, now);
            assert_eq!(seen.latest[index(side)], None, "nobody knows yet");
            let passed_on = heard(&seen, side.opposite());
            assert_eq!((passed_on.src, passed_on.payload.len()), (host(side), 1));
            let mut answer = Segment::new(passed_on.dst, passed_on.src);
            (answer.seq, answer.ack) = (passed_on.ack, passed_on.seq + 1);
            (answer.flags, answer.window) = (Flags::ACK, 60_000);
            relay.handle_segment(side.opposite(), answer.clone(), now);
            deliver(&mut relay, &mut seen, now);
            assert_eq!(heard(&seen, side).ack, question.seq + 1);
            // Exactly one answer per question.
            seen.latest = [None, None];
            relay.handle_segment(side.opposite(), answer, now);
            deliver(&mut relay, &mut seen, now);
            assert_eq!(seen.latest, [None, None]);
        }
    }
}

/// A segment with its headers is one IP packet, and its mapping has 16 bits for its length, however much the relay's
/// owner forwards and the driver takes at once.
#[test]
fn what_is_forwarded_at_once_fits_packets_and_mappings() {
    let tcp =
        ConnectionConfig { offload_max_bytes: u32::MAX, initial_window_segments: 250, ..RelayConfig::default().tcp };
    let relay = FastAckRelay::new(RelayConfig { tcp, ..RelayConfig::default() }, [3; 32]).unwrap();
    let (mut relay, mut seen, now) = (ForwardingRelay::new(relay, AtOnce), Seen::default(), Instant::from_secs(1));
    let mut scaled = syn();
    scaled.options.window_scale = Some(4);
    join_by(scaled, &mut relay, &mut seen, now);
    let splice = relay.relay().splices().next().unwrap().0;
    let payload = Payload::Bytes(vec![7; 100_000].into());
    relay.parts().0.forward(Piece { splice, to: Side::Destination, dsn: Dsn(900), payload }, now);
    deliver(&mut relay, &mut seen, now);
    assert_eq!(seen.data.iter().map(|segment| segment.payload.len()).sum::<usize>(), 100_000);
    for segment in &seen.data {
        let mapped = segment.options.mptcp.iter().find_map(|option| match option {
            MptcpOption::Dss(dss) => dss.mapping.map(|mapping| usize::from(mapping.len)),
            _ => None,
        });
        assert_eq!(mapped, Some(segment.payload.len()));
        assert!(segment.payload.len() <= 0xffff - 40 - 60);
    }
}

proptest! {
    #[test]
    fn lies_cost_only_the_liars(
        honest in any::<bool>(),
        widened_bytes in prop_oneof![Just(0), 1..100_000_u64, Just(u64::MAX)],
        lies in proptest::collection::vec(lie(), 1..60),
    ) {
        let config = RelayConfig { buffer_bytes: BUFFER_BYTES, splices_max: 2, ..RelayConfig::default() };
        let mut relay = ForwardingRelay::new(FastAckRelay::new(config, [3; 32]).unwrap(), AtOnce);
        let (mut seen, mut now) = (Seen::default(), Instant::from_secs(1));
        if honest {
            join(&mut relay, &mut seen, now);
        } else {
            relay.handle_segment(Side::Destination, syn(), now);
            deliver(&mut relay, &mut seen, now);
        }
        let splice = relay.relay().splices().next().unwrap().0;
        relay.parts().0.widen_window(splice, widened_bytes);
        for lie in &lies {
            now += Duration::from_millis(lie.wait_ms.into());
            while relay.poll_timeout().is_some_and(|at| at <= now) {
                relay.handle_timeout(now);
                deliver(&mut relay, &mut seen, now);
            }
            relay.handle_segment(lie.side, lie.segment(&seen), now);
            deliver(&mut relay, &mut seen, now);
            for (_, stats) in relay.relay().splices() {
                prop_assert!(stats.stored_bytes <= BUFFER_BYTES + 65_536, "{stats:?}");
            }
            prop_assert!(relay.relay().splices().count() <= 2);
        }
        // Left alone, it eventually forgets everything.
        for _ in 0..1000 {
            let Some(at) = relay.poll_timeout() else { break };
            now = now.max(at);
            relay.handle_timeout(now);
            deliver(&mut relay, &mut seen, now);
        }
        prop_assert!(relay.poll_timeout().is_none_or(|at| at > now), "timers fire for ever");
    }
}

/// The joining host is gone before it could answer the SYN/ACK that the relay passed on. The other host gets a RST, and
/// the relay forgets both.
#[test]
fn a_join_that_ends_before_its_proof_is_forgotten() {
    let config = RelayConfig { buffer_bytes: BUFFER_BYTES, ..RelayConfig::default() };
    let relay = FastAckRelay::new(config, [9; 32]).unwrap();
    let (mut relay, mut seen) = (ForwardingRelay::new(relay, AtOnce), Seen::default());
    let now = Instant::from_millis(1);
    relay.handle_segment(Side::Destination, syn(), now);
    deliver(&mut relay, &mut seen, now);
    let asked = seen.latest[index(Side::Source)].clone().unwrap();
    let mut answer = Segment::new(host(Side::Source), host(Side::Destination));
    (answer.seq, answer.ack, answer.flags, answer.window) = (SeqNr(100), asked.end(), Flags::SYN | Flags::ACK, 60_000);
    let join = MpJoin::SynAck { backup: false, address_id: AddressId(0), hmac: 9, nonce: 4 };
    answer.options.mptcp.push(MptcpOption::Join(join));
    relay.handle_segment(Side::Source, answer, now);
    deliver(&mut relay, &mut seen, now);
    let mut reset = Segment::new(host(Side::Destination), host(Side::Source));
    (reset.seq, reset.flags) = (syn().end(), Flags::RST);
    relay.handle_segment(Side::Destination, reset, now);
    deliver(&mut relay, &mut seen, now);
    let heard = seen.latest[index(Side::Source)].as_ref().unwrap();
    assert!(heard.flags.contains(Flags::RST), "the far host heard {heard:?}");
    assert_eq!(relay.relay().splices().count(), 0);
}

/// The joining host takes its SYN back before the other host has answered: nobody is there to be answered.
#[test]
fn a_syn_that_is_taken_back_gets_no_answer() {
    let config = RelayConfig { buffer_bytes: BUFFER_BYTES, ..RelayConfig::default() };
    let relay = FastAckRelay::new(config, [9; 32]).unwrap();
    let (mut relay, mut seen) = (ForwardingRelay::new(relay, AtOnce), Seen::default());
    let now = Instant::from_millis(1);
    relay.handle_segment(Side::Destination, syn(), now);
    deliver(&mut relay, &mut seen, now);
    let mut reset = Segment::new(host(Side::Destination), host(Side::Source));
    (reset.seq, reset.flags) = (syn().end(), Flags::RST);
    relay.handle_segment(Side::Destination, reset, now);
    deliver(&mut relay, &mut seen, now);
    assert!(seen.latest[index(Side::Destination)].is_none(), "{:?}", seen.latest);
    assert_eq!(relay.relay().splices().count(), 0);
}
