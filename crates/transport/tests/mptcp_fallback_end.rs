//! How the stream of a connection in fallback ends (RFC 8684 sections 3.3.3 and 3.7): by the FIN, or by a DATA_FIN of a
//! peer that does not know of the fallback, if it lies exactly at the present end of the stream.

use transport::error::CloseReason;
use transport::{ConnectionConfig, ConnectionId, Event, Received};
use units::Duration;
use wire::checksum::dss_checksum;
use wire::mptcp::{DataSeq, Dss, Mapping, MptcpOption};
use wire::{Flags, Payload, Segment};

use crate::forger::Forger;
use crate::victim::Victim;

fn with_checksums() -> ConnectionConfig {
    ConnectionConfig { checksum: true, path_manager: "manual".into(), ..ConnectionConfig::default() }
}

fn connected() -> (Victim, Forger, ConnectionId) {
    let mut victim = Victim::new(&with_checksums());
    let (forger, id) = victim.connect_as(Forger { checksum: true, ..Forger::new(true, 5) });
    victim.events.clear();
    (victim, forger, id)
}

/// Builds a segment with the last 1000 octets of the stream and a DATA_FIN. `alter` changes them as a middlebox does.
fn last_data(forger: &Forger, victim: &Victim, alter: impl Fn(&mut Vec<u8>)) -> Segment {
    let mut segment = forger.data(0, 1000, victim.now);
    let MptcpOption::Dss(dss) = &mut segment.options.mptcp[0] else { panic!() };
    dss.data_fin = true;
    let mapping = dss.mapping.as_mut().unwrap();
    mapping.len += 1;
    mapping.checksum = Some(dss_checksum(forger.dsn, mapping.ssn, mapping.len, [&segment.payload]));
    let mut octets = segment.payload.to_bytes().to_vec();
    alter(&mut octets);
    segment.payload = octets.into();
    segment
}

/// Builds a separate DATA_FIN, after all data that the forger has sent.
fn data_fin(forger: &Forger, victim: &Victim) -> Segment {
    let mut segment = forger.ack(0, victim.now);
    let mapping = Mapping { dsn: DataSeq::Long(forger.dsn.0), ssn: 0, len: 1, checksum: Some(0) };
    segment.options.mptcp[0] = MptcpOption::Dss(Dss { data_ack: None, mapping: Some(mapping), data_fin: true });
    segment
}

/// Reads everything. Returns the number of octets, and whether the stream has ended.
fn read(victim: &mut Victim, id: ConnectionId) -> (usize, bool) {
    let mut octets = 0;
    loop {
        match victim.endpoint.recv(id, usize::MAX, victim.now).unwrap() {
            Received::Data(payload) => octets += payload.len(),
            Received::Pending => return (octets, false),
            Received::Finished => return (octets, true),
        }
    }
}

fn fin(forger: &Forger, victim: &Victim) -> Segment {
    let mut segment = forger.ack(0, victim.now);
    segment.options.mptcp.clear();
    segment.flags = Flags::ACK | Flags::FIN;
    segment
}

/// Sends octets that fail their checksum: the connection falls back.
fn fall_back(victim: &mut Victim, forger: &mut Forger, id: ConnectionId) {
    let mut segment = forger.data(0, 1000, victim.now);
    segment.payload = Payload::from(vec![7; 1000]);
    victim.play(forger, |_, _| segment);
    forger.sent(0, 1000);
    assert!(victim.stats(id).fell_back);
    assert_eq!(read(victim, id), (1000, false));
}

#[test]
fn the_data_fin_of_altered_data_ends_the_stream() {
    let (mut victim, mut forger, id) = connected();
    let segment = last_data(&forger, &victim, |octets| octets[17] ^= 1);
    victim.play(&mut forger, |_, _| segment);
    forger.sent(0, 1000);
    assert!(victim.stats(id).fell_back);
    assert_eq!(read(&mut victim, id), (1000, true));
    // The peer got no DATA_ACK and repeats its data, after all octets that it has sent on the subflow.
    let mut again = forger.data_at(0, forger.flows[0].nxt, forger.dsn, 1000, victim.now);
    again.options.mptcp.clear();
    victim.play(&mut forger, |_, _| again);
    forger.flows[0].nxt += 1000;
    assert_eq!(read(&mut victim, id), (0, true), "nothing comes behind the end");
    let last = fin(&forger, &victim);
    victim.play(&mut forger, |_, _| last);
    forger.flows[0].nxt += 1;
    let finished = |victim: &Victim| victim.events.iter().filter(|event| **event == Event::PeerFinished(id)).count();
    assert_eq!(finished(&victim), 1);
    victim.endpoint.shutdown(id, victim.now).unwrap();
    victim.wait(Duration::ZERO).iter().for_each(|segment| {
        forger.learn(segment);
    });
    victim.play(&mut forger, |forger, now| forger.ack(0, now));
    let closed = Event::Closed { connection: id, reason: CloseReason::Finished };
    assert_eq!((victim.events.contains(&closed), finished(&victim)), (true, 1));
    victim.assert_honest_goes_on();
}

#[test]
fn a_late_data_fin_ends_the_stream_where_it_has_got_to() {
    let (mut victim, mut forger, id) = connected();
    fall_back(&mut victim, &mut forger, id);
    let segment = data_fin(&forger, &victim);
    victim.inject(segment);
    assert_eq!(read(&mut victim, id), (0, true));
}

#[test]
fn data_fins_elsewhere_end_nothing() {
    let (mut victim, mut forger, id) = connected();
    fall_back(&mut victim, &mut forger, id);
    for distance in [1 << 40, u64::MAX, u64::MAX - 500] {
        let elsewhere = Forger { dsn: units::Dsn(forger.dsn.0.wrapping_add(distance)), ..forger.clone() };
        victim.inject(data_fin(&elsewhere, &victim));
        assert_eq!(read(&mut victim, id), (0, false));
    }
    let last = fin(&forger, &victim);
    victim.inject(last);
    assert_eq!(read(&mut victim, id), (0, true));
}

/// Options on a connection that never was MPTCP are ignored.
#[test]
fn plain_tcp_knows_no_data_fin() {
    let mut victim = Victim::new(&with_checksums());
    let (mut forger, id) = victim.connect(false);
    victim.send_data(&mut forger, 0, 1000);
    assert_eq!(read(&mut victim, id), (1000, false));
    for position in [0, 999, 1000, 1001] {
        let mut segment = forger.ack(0, victim.now);
        let mapping = Mapping { dsn: DataSeq::Long(position), ssn: 0, len: 1, checksum: None };
        segment.options.mptcp.push(MptcpOption::Dss(Dss { data_ack: None, mapping: Some(mapping), data_fin: true }));
        victim.inject(segment);
    }
    assert_eq!(read(&mut victim, id), (0, false));
}

/// A middlebox that lengthens data moves the end of the stream, which the FIN then marks.
#[test]
fn data_that_grew_on_the_way_end_with_the_fin() {
    let (mut victim, mut forger, id) = connected();
    let segment = last_data(&forger, &victim, |octets| drop(octets.splice(0..0, [1, 2, 3, 4])));
    victim.play(&mut forger, |_, _| segment);
    forger.sent(0, 1004);
    assert!(victim.stats(id).fell_back);
    assert_eq!(read(&mut victim, id), (1004, false));
    let last = fin(&forger, &victim);
    victim.play(&mut forger, |_, _| last);
    assert_eq!(read(&mut victim, id), (0, true));
}

/// Octets after a verified end are not the peer's.
#[test]
fn octets_behind_a_verified_end_are_dropped() {
    let (mut victim, mut forger, id) = connected();
    let segment = last_data(&forger, &victim, |octets| octets.extend([1, 2, 3, 4]));
    victim.play(&mut forger, |_, _| segment);
    forger.sent(0, 1004);
    assert!(!victim.stats(id).fell_back);
    assert_eq!(read(&mut victim, id), (1000, true));
}

/// Our own stream has ended before: a peer that never sends its FIN is waited for no longer than the user time-out.
#[test]
fn a_fin_that_never_comes_is_not_waited_for() {
    for ours_first in [false, true] {
        let (mut victim, mut forger, id) = connected();
        fall_back(&mut victim, &mut forger, id);
        let finish = |victim: &mut Victim, forger: &mut Forger| {
            victim.endpoint.shutdown(id, victim.now).unwrap();
            victim.wait(Duration::ZERO).iter().for_each(|segment| {
                forger.learn(segment);
            });
            victim.play(forger, |forger, now| forger.ack(0, now));
        };
        if ours_first {
            finish(&mut victim, &mut forger);
        }
        let segment = data_fin(&forger, &victim);
        victim.inject(segment);
        if !ours_first {
            finish(&mut victim, &mut forger);
        }
        assert!(victim.stats(id).closed_at.is_some());
        let before = victim.endpoint.footprint().four_tuples;
        victim.endpoint.release(id);
        victim.wait(ConnectionConfig::default().user_timeout + Duration::from_secs(1));
        assert_eq!(victim.endpoint.footprint().four_tuples, before - 1, "ours first: {ours_first}");
    }
}
