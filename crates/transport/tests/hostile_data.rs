//! Peers that lie about the place, the amount and the end of their data.

use transport::error::CloseReason;
use transport::{ConnectionConfig, ConnectionId, Event, Received};
use units::Duration;
use wire::mptcp::{DataSeq, Dss, Mapping, MptcpOption};
use wire::{Flags, Payload, Segment};

use crate::forger::{Forger, keys};
use crate::live::live_bytes;
use crate::victim::{Victim, resets};

const BUFFER: u64 = 256 << 10;

fn config() -> ConnectionConfig {
    ConnectionConfig { receive_buffer_bytes: BUFFER, ..ConnectionConfig::default() }
}

fn attack(mptcp: bool) -> (Victim, Forger, ConnectionId) {
    let mut victim = Victim::new(&config());
    let (forger, id) = victim.connect(mptcp);
    (victim, forger, id)
}

/// Returns the mapping of `segment`, for lies.
fn mapping(segment: &mut Segment) -> &mut Mapping {
    segment.options.mptcp.iter_mut().find_map(mapping_of).expect("the segment has a mapping")
}

fn mapping_of(option: &mut MptcpOption) -> Option<&mut Mapping> {
    match option {
        MptcpOption::Dss(Dss { mapping, .. }) => mapping.as_mut(),
        _ => None,
    }
}

#[test]
fn data_outside_the_window_are_not_kept() {
    for mptcp in [false, true] {
        let (mut victim, mut forger, id) = attack(mptcp);
        let before = live_bytes();
        for n in 0..2000_u32 {
            let beyond = BUFFER as u32 + 1_000_000 + n * 1400;
            let (seq, dsn) = (forger.flows[0].nxt + beyond, forger.dsn + u64::from(beyond));
            let mut segment = forger.data_at(0, seq, dsn, 1400, victim.now);
            segment.payload = segment.payload.to_bytes().into();
            let answers = victim.inject(segment);
            assert!(answers.iter().all(|answer| answer.ack == forger.flows[0].nxt));
        }
        assert!(live_bytes() - before < 100_000, "{} octets kept", live_bytes() - before);
        victim.send_data(&mut forger, 0, 1000);
        assert_eq!(victim.read(id, &forger, 0), 1000);
        victim.assert_honest_goes_on();
    }
}

#[test]
fn data_beyond_the_connections_window_are_not_kept_although_the_subflow_has_room() {
    let (mut victim, mut forger, id) = attack(true);
    let before = live_bytes();
    // In order on the subflow, far ahead in the data stream.
    for n in 0..2000_u64 {
        let seq = forger.flows[0].nxt;
        let mut segment = forger.data_at(0, seq, forger.dsn + 10_000_000 + n * 1400, 1400, victim.now);
        segment.payload = segment.payload.to_bytes().into();
        victim.inject(segment);
        forger.flows[0].nxt += 1400;
    }
    assert!(live_bytes() - before < 100_000, "{} octets kept", live_bytes() - before);
    assert_eq!(victim.stats(id).out_of_order_bytes, 0);
    victim.send_data(&mut forger, 0, 1000);
    assert_eq!(victim.read(id, &forger, 0), 1000);
}

#[test]
fn contradictory_mappings_reset_the_subflow_and_the_connection_goes_on_elsewhere() {
    let (mut victim, mut forger, id) = attack(true);
    let f = victim.join(&mut forger);
    // A hole first, so that the mapping is kept.
    let (seq, dsn) = (forger.flows[f].nxt + 100, forger.dsn + 100);
    victim.inject(forger.data_at(f, seq, dsn, 1000, victim.now));
    let answers = victim.inject(forger.data_at(f, seq + 500, dsn + 501, 1000, victim.now));
    assert_eq!(resets(&answers), 1);
    victim.send_data(&mut forger, 0, 1000);
    assert_eq!(victim.read(id, &forger, 0), 1000);
    victim.assert_honest_goes_on();
}

#[test]
fn mappings_that_nothing_fills_are_limited() {
    let (mut victim, mut forger, id) = attack(true);
    let f = victim.join(&mut forger);
    let before = live_bytes();
    let mut reset = 0;
    for n in 0..20_000_u32 {
        let mut segment = forger.ack(f, victim.now);
        let mapping =
            Mapping { dsn: DataSeq::Long(forger.dsn.0 + u64::from(n)), ssn: 2 * n + 10, len: 1, checksum: None };
        segment.options.mptcp[0] = MptcpOption::Dss(Dss { data_ack: None, mapping: Some(mapping), data_fin: false });
        reset += resets(&victim.inject(segment));
    }
    assert!(reset > 0, "the flood ends in a reset");
    assert!(live_bytes() - before < 200_000, "{} octets", live_bytes() - before);
    victim.send_data(&mut forger, 0, 1000);
    assert_eq!(victim.read(id, &forger, 0), 1000);
}

/// Builds a packet with a single octet, as a device delivers it: the payload is a part of the packet's memory.
fn small_piece(forger: &Forger, distance: u32, victim: &Victim) -> Segment {
    const PACKET_BYTES: usize = 1500;
    let (seq, dsn) = (forger.flows[0].nxt + distance, forger.dsn + u64::from(distance));
    let mut segment = forger.data_at(0, seq, dsn, 1, victim.now);
    let mut packet = vec![0; PACKET_BYTES];
    segment.payload.copy_to_slice(&mut packet);
    segment.payload = Payload::from(bytes::Bytes::from(packet).slice(0..1));
    segment
}

#[test]
fn small_pieces_out_of_order_cost_little_more_than_the_buffer() {
    for mptcp in [false, true] {
        let (mut victim, mut forger, _) = attack(mptcp);
        let before = live_bytes();
        for n in 0..50_000 {
            victim.inject(small_piece(&forger, 2 * n + 1, &victim));
        }
        let cost = live_bytes() - before;
        assert!(cost < 8 * BUFFER as isize, "{cost} octets for a buffer of {BUFFER}");
        // The next octet releases the data that the small pieces blocked.
        forger.timestamps = false;
        victim.send_data(&mut forger, 0, 1);
        victim.assert_honest_goes_on();
    }
}

#[test]
fn small_pieces_that_nobody_reads_cost_little_more_than_the_buffer() {
    for mptcp in [false, true] {
        let (mut victim, mut forger, id) = attack(mptcp);
        let before = live_bytes();
        for _ in 0..BUFFER {
            let segment = small_piece(&forger, 0, &victim);
            victim.inject(segment);
            forger.sent(0, 1);
        }
        let cost = live_bytes() - before;
        assert!(cost < 8 * BUFFER as isize, "{cost} octets for a buffer of {BUFFER}");
        let read = victim.read(id, &forger, 0);
        assert!(read > BUFFER / 2, "{read} octets came through");
        victim.assert_honest_goes_on();
    }
}

/// Where old octets come again before each new piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    InSequence,
    InStream,
    /// As in the stream, with a mapping of their own.
    Mapped,
}

/// What is left of a packet without them must not keep its memory.
#[test]
fn old_data_before_each_new_piece_cost_little_more_than_the_buffer() {
    const OLD: u16 = 30_000;
    const NEW: u16 = 1000;
    let cases = [(false, Again::InSequence), (true, Again::InSequence), (true, Again::InStream), (true, Again::Mapped)];
    for (mptcp, again) in cases {
        let (mut victim, mut forger, id) = attack(mptcp);
        victim.send_data(&mut forger, 0, OLD);
        let (before, mut sent) = (live_bytes(), u64::from(OLD));
        while sent + u64::from(OLD + NEW) <= BUFFER {
            let (mut seq, dsn) = (forger.flows[0].nxt, forger.dsn - u64::from(OLD));
            if again == Again::InSequence {
                seq = seq - u32::from(OLD);
            } else {
                forger.flows[0].nxt += u32::from(OLD);
            }
            let mut segment = forger.data_at(0, seq, dsn, OLD + NEW, victim.now);
            segment.payload = segment.payload.to_bytes().into();
            if again == Again::Mapped {
                // The new piece's first octet brings the mapping of the piece.
                let mut first = forger.data(0, NEW, victim.now);
                first.payload = forger.stream(forger.dsn, 1);
                victim.inject(first);
                mapping(&mut segment).len = OLD;
            }
            victim.inject(segment);
            forger.sent(0, NEW);
            sent += u64::from(NEW);
        }
        let cost = live_bytes() - before;
        assert!(cost < 2 * BUFFER as isize, "{again:?}: {cost} octets for a buffer of {BUFFER}");
        assert_eq!(victim.read(id, &forger, 0), sent);
        victim.assert_honest_goes_on();
    }
}

/// The checksum of a mapping covers all its octets, so none can be delivered before the last.
#[test]
fn a_mapping_with_a_checksum_that_comes_octet_by_octet_costs_little_more_than_its_octets() {
    const LEN: u16 = 60_000;
    let mut victim = Victim::new(&ConnectionConfig { checksum: true, ..config() });
    let (mut forger, id) = victim.connect_as(Forger { checksum: true, ..Forger::new(true, 5) });
    let (seq, dsn) = (forger.flows[0].nxt, forger.dsn);
    let whole = forger.mapping(0, seq, dsn, &forger.stream(dsn, LEN.into()));
    let before = live_bytes();
    for n in 0..u32::from(LEN) {
        if n + 1 == u32::from(LEN) {
            let cost = live_bytes() - before;
            assert!(cost < 6 * LEN as isize, "{cost} octets for a mapping of {LEN}");
        }
        let mut segment = small_piece(&forger, n, &victim);
        *mapping(&mut segment) = whole;
        victim.inject(segment);
    }
    forger.sent(0, LEN);
    assert_eq!(victim.read(id, &forger, 0), u64::from(LEN));
    victim.assert_honest_goes_on();
}

#[test]
fn a_wrong_checksum_never_reaches_the_application_of_a_connection_with_two_subflows() {
    let mut victim = Victim::new(&ConnectionConfig { checksum: true, ..config() });
    let (mut forger, id) = victim.connect_as(Forger { checksum: true, ..Forger::new(true, 5) });
    let f = victim.join(&mut forger);
    victim.send_data(&mut forger, 0, 1000);
    let mut segment = forger.data(f, 1000, victim.now);
    let value = mapping(&mut segment).checksum.unwrap();
    mapping(&mut segment).checksum = Some(value ^ 0x100);
    let answers = victim.inject(segment);
    assert_eq!(resets(&answers), 1);
    let fail = |answer: &Segment| answer.options.mptcp.iter().any(|option| matches!(option, MptcpOption::Fail(_)));
    assert!(answers.iter().any(fail), "RFC 8684 section 3.7: MP_FAIL on the RST");
    victim.send_data(&mut forger, 0, 1000);
    assert_eq!(victim.read(id, &forger, 0), 2000);
    victim.assert_honest_goes_on();
}

#[test]
fn the_end_of_the_stream_may_be_absurd_and_may_change_but_data_after_it_never_come() {
    let (mut victim, mut forger, id) = attack(true);
    // First distances beyond any window, then a possible one that the next ones contradict.
    for distance in [1 << 40, u64::MAX / 2, 1000, 500, 5000] {
        let mut segment = forger.ack(0, victim.now);
        let end = DataSeq::Long(forger.dsn.0.wrapping_add(distance));
        let mapping = Mapping { dsn: end, ssn: 0, len: 1, checksum: None };
        segment.options.mptcp[0] = MptcpOption::Dss(Dss { data_ack: None, mapping: Some(mapping), data_fin: true });
        victim.inject(segment);
    }
    assert_eq!(victim.endpoint.recv(id, 10, victim.now), Ok(Received::Pending));
    victim.send_data(&mut forger, 0, 1000);
    assert_eq!(victim.read(id, &forger, 0), 1000);
    assert_eq!(victim.endpoint.recv(id, 10, victim.now), Ok(Received::Finished));
    victim.send_data(&mut forger, 0, 1000);
    assert_eq!(victim.endpoint.recv(id, 10, victim.now), Ok(Received::Finished), "the stream was over");
    victim.assert_honest_goes_on();
}

#[test]
fn a_storm_of_fins_ends_one_stream_once() {
    let (mut victim, mut forger, id) = attack(false);
    victim.send_data(&mut forger, 0, 100);
    let mut answers = 0;
    for n in 0..5000_u32 {
        let mut fin = forger.ack(0, victim.now);
        fin.flags |= Flags::FIN;
        fin.seq += n % 7;
        answers += victim.inject(fin).len();
    }
    assert!(answers <= 5000);
    assert_eq!(victim.read(id, &forger, 0), 100);
    assert_eq!(victim.endpoint.recv(id, 10, victim.now), Ok(Received::Finished));
    let finished = |event: &&Event| matches!(event, Event::PeerFinished(finished) if *finished == id);
    assert_eq!(victim.events.iter().filter(finished).count(), 1);
    victim.assert_honest_goes_on();
}

#[test]
fn urgent_data_are_data() {
    for mptcp in [false, true] {
        let (mut victim, mut forger, id) = attack(mptcp);
        for urgent in [0, 1, 500, 0xffff] {
            let mut segment = forger.data(0, 1000, victim.now);
            segment.flags |= Flags::URG;
            segment.urgent = urgent;
            victim.inject(segment);
            forger.sent(0, 1000);
        }
        assert_eq!(victim.read(id, &forger, 0), 4000, "MPTCP: {mptcp}");
    }
}

#[test]
fn data_before_the_stream_are_duplicates() {
    let (mut victim, mut forger, id) = attack(true);
    victim.send_data(&mut forger, 0, 1000);
    let first = keys::first_dsn(forger.key);
    // The same place again in new subflow octets; then the octets before the first.
    for dsn in [first, first - 500, first - (1 << 40)] {
        let segment = forger.data_at(0, forger.flows[0].nxt, dsn, 400, victim.now);
        victim.inject(segment);
        forger.flows[0].nxt += 400;
    }
    assert_eq!(victim.read(id, &forger, 0), 1000);
    victim.send_data(&mut forger, 0, 1000);
    assert_eq!(victim.read(id, &forger, 1000), 1000);
    victim.wait(Duration::from_secs(1));
    victim.assert_honest_goes_on();
}

#[test]
fn a_fallback_after_the_end_of_the_stream_does_not_prolong_it() {
    let mut victim = Victim::new(&ConnectionConfig { checksum: true, ..config() });
    let (mut forger, id) = victim.connect_as(Forger { checksum: true, ..Forger::new(true, 5) });
    let mut last = forger.data(0, 1000, victim.now);
    let MptcpOption::Dss(dss) = &mut last.options.mptcp[0] else { panic!() };
    dss.data_fin = true;
    let mapping = dss.mapping.as_mut().unwrap();
    mapping.len += 1;
    mapping.checksum = Some(wire::checksum::dss_checksum(forger.dsn, mapping.ssn, mapping.len, [&last.payload]));
    victim.inject(last);
    forger.sent(0, 1000);
    assert_eq!(victim.read(id, &forger, 0), 1000);
    assert_eq!(victim.endpoint.recv(id, 10, victim.now), Ok(Received::Finished));
    let mut segment = forger.data(0, 1000, victim.now);
    let value = mapping_checksum(&mut segment);
    *value ^= 0x100;
    victim.inject(segment);
    forger.sent(0, 1000);
    victim.inject(forger.data(0, 1000, victim.now));
    assert_eq!(victim.endpoint.recv(id, 10, victim.now), Ok(Received::Finished));
}

/// Both streams have ended, and the peer withholds its FIN: what it still sends has no place, and is not kept either.
#[test]
fn wrong_checksums_after_both_ends_cost_nothing() {
    let mut victim = Victim::new(&ConnectionConfig { checksum: true, ..config() });
    let (mut forger, id) = victim.connect_as(Forger { checksum: true, ..Forger::new(true, 5) });
    let mut end = forger.ack(0, victim.now);
    let checksum = Some(wire::checksum::dss_checksum(forger.dsn, 0, 1, core::iter::empty::<&Payload>()));
    let mapping = Mapping { dsn: DataSeq::Long(forger.dsn.0), ssn: 0, len: 1, checksum };
    end.options.mptcp[0] = MptcpOption::Dss(Dss { data_ack: None, mapping: Some(mapping), data_fin: true });
    victim.play(&mut forger, |_, _| end);
    victim.endpoint.shutdown(id, victim.now).unwrap();
    // The DATA_FIN, then the FIN.
    for _ in 0..2 {
        let sent = victim.wait(Duration::from_millis(100));
        for segment in &sent {
            forger.learn(segment);
        }
        victim.play(&mut forger, |forger, now| forger.ack(0, now));
    }
    let closed = Event::Closed { connection: id, reason: CloseReason::Finished };
    assert!(victim.events.contains(&closed) && victim.stats(id).subflows[0].state == "FIN-WAIT-2");
    forger.dsn += 1;
    let before = live_bytes();
    for _ in 0..1000 {
        let mut segment = forger.data(0, 1000, victim.now);
        segment.payload = segment.payload.to_bytes().into();
        *mapping_checksum(&mut segment) ^= 0x100;
        victim.inject(segment);
        forger.sent(0, 1000);
    }
    let cost = live_bytes() - before;
    assert!(cost < 64 << 10, "{cost} octets kept");
    victim.assert_honest_goes_on();
}

#[test]
fn a_fallback_leaves_room_for_the_infinite_mapping() {
    let mut victim = Victim::new(&ConnectionConfig { checksum: true, ..config() });
    let (mut forger, id) = victim.connect_as(Forger { checksum: true, ..Forger::new(true, 5) });
    let mut segment = forger.data(0, 1000, victim.now);
    *mapping_checksum(&mut segment) ^= 0x100;
    victim.inject(segment);
    forger.sent(0, 1000);
    assert!(victim.stats(id).fell_back);
    victim.endpoint.send(id, Payload::from(vec![5; 20_000]), victim.now).unwrap();
    let sent = victim.wait(Duration::ZERO);
    let infinite =
        |option: &MptcpOption| matches!(option, MptcpOption::Dss(Dss { mapping: Some(m), .. }) if m.len == 0);
    assert!(sent.iter().any(|segment| segment.options.mptcp.iter().any(infinite)));
    let largest = sent.iter().map(|segment| segment.payload.len() + segment.options.encoded_len()).max();
    assert!(largest <= Some(1460), "{largest:?}");
}

fn mapping_checksum(segment: &mut Segment) -> &mut u16 {
    mapping(segment).checksum.as_mut().expect("checksums are in use")
}
