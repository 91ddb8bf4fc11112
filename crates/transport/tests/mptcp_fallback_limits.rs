//! Fallback to plain TCP is possible only if subflow and data stream coincide (RFC 8684 section 3.7), and the infinite
//! mapping says from where.

use transport::{ConnectionConfig, ConnectionId};
use units::{Dsn, Duration};
use wire::mptcp::{DataSeq, Dss, Mapping, MpFail, MptcpOption};
use wire::{Payload, Segment};

use crate::forger::{Forger, keys};
use crate::victim::{Victim, resets};

fn config() -> ConnectionConfig {
    ConnectionConfig { path_manager: "manual".into(), nagle: false, ..ConnectionConfig::default() }
}

fn with_checksums() -> ConnectionConfig {
    ConnectionConfig { checksum: true, ..config() }
}

fn connected(config: &ConnectionConfig) -> (Victim, Forger, ConnectionId) {
    let mut victim = Victim::new(config);
    let (forger, id) = victim.connect_as(Forger { checksum: config.checksum, ..Forger::new(true, 5) });
    (victim, forger, id)
}

fn send(victim: &mut Victim, forger: &mut Forger, id: ConnectionId, bytes: usize) -> Vec<Segment> {
    victim.endpoint.send(id, Payload::from(vec![5; bytes]), victim.now).unwrap();
    wait(victim, forger, Duration::ZERO)
}

fn wait(victim: &mut Victim, forger: &mut Forger, span: Duration) -> Vec<Segment> {
    let sent = victim.wait(span);
    for segment in &sent {
        forger.learn(segment);
    }
    sent
}

/// Builds an ACK of everything on the subflow, but at the data level only up to `data_ack`.
fn ack_up_to(forger: &Forger, data_ack: Dsn, victim: &Victim) -> Segment {
    let mut ack = forger.ack(0, victim.now);
    ack.options.mptcp[0] = MptcpOption::Dss(Dss { data_ack: Some(DataSeq::Long(data_ack.0)), ..Dss::default() });
    ack
}

fn mapping(segment: &Segment) -> Option<Mapping> {
    segment.options.mptcp.iter().find_map(|option| match option {
        MptcpOption::Dss(dss) => dss.mapping,
        _ => None,
    })
}

fn fail(forger: &Forger, dsn: Dsn, victim: &Victim) -> Segment {
    let mut segment = ack_up_to(forger, dsn, victim);
    segment.options.mptcp.push(MptcpOption::Fail(MpFail { dsn }));
    segment
}

/// Section 3.7: the infinite mapping is retroactive, from the last octet known to have arrived intact. It has neither
/// length nor checksum.
#[test]
fn the_infinite_mapping_starts_behind_what_was_acknowledged() {
    let (mut victim, mut forger, id) = connected(&with_checksums());
    assert!(!send(&mut victim, &mut forger, id, 5000).is_empty());
    let first = keys::first_dsn(forger.peer_key.unwrap());
    let report = fail(&forger, first + 3000, &victim);
    victim.play(&mut forger, |_, _| report);
    assert!(victim.stats(id).fell_back);
    let sent = send(&mut victim, &mut forger, id, 100);
    let infinite: Vec<_> = sent.iter().filter_map(mapping).collect();
    let dsn = DataSeq::Short((first + 3000).0 as u32);
    assert_eq!(infinite, [Mapping { dsn, ssn: 3001, len: 0, checksum: Some(0) }]);
}

/// Data that were sent twice have two places on the subflow: a report of failure ends the subflow.
#[test]
fn after_a_repetition_of_our_data_there_is_no_way_back() {
    for repeated in [false, true] {
        let (mut victim, mut forger, id) = connected(&with_checksums());
        send(&mut victim, &mut forger, id, 1000);
        let first = keys::first_dsn(forger.peer_key.unwrap());
        if repeated {
            let ack = ack_up_to(&forger, first, &victim);
            victim.play(&mut forger, |_, _| ack);
            let sent = wait(&mut victim, &mut forger, Duration::from_secs(3));
            assert_eq!(mapping(&sent[0]).map(|mapping| mapping.ssn), Some(1001), "the data come again as new octets");
        }
        let report = fail(&forger, first + 1000, &victim);
        let answers = victim.play(&mut forger, |_, _| report);
        assert_eq!((victim.stats(id).fell_back, resets(&answers)), (!repeated, usize::from(repeated)));
    }
}

/// The same in the other direction: data without a mapping could not be placed.
#[test]
fn after_a_repetition_of_the_peers_data_there_is_no_way_back() {
    for repeated in [false, true] {
        let (mut victim, mut forger, id) = connected(&config());
        let first = forger.dsn;
        victim.send_data(&mut forger, 0, 1000);
        if repeated {
            forger.dsn = first;
            victim.send_data(&mut forger, 0, 1000);
        }
        let mut bare = forger.data(0, 1000, victim.now);
        bare.options.mptcp.clear();
        let answers = victim.inject(bare);
        assert_eq!((victim.stats(id).fell_back, resets(&answers)), (!repeated, usize::from(repeated)));
        assert_eq!(victim.read(id, &forger, 0), if repeated { 1000 } else { 2000 });
    }
}

/// Our SYN/ACK may complete a join for the peer, which then cannot fall back any more. Nor can we, until the state of
/// the join is known.
#[test]
fn while_a_join_of_the_peers_is_under_way_there_is_no_way_back() {
    for begun in [false, true] {
        let (mut victim, mut forger, id) = connected(&config());
        victim.send_data(&mut forger, 0, 1000);
        if begun {
            victim.begin_join(&mut forger);
        }
        let mut bare = forger.data(0, 1000, victim.now);
        bare.options.mptcp.clear();
        let answers = victim.inject(bare);
        assert_eq!((victim.stats(id).fell_back, resets(&answers)), (!begun, usize::from(begun)));
    }
}

/// A peer that reports a failure without a RST has fallen back, whatever it knows of a join. The engine follows if both
/// streams are those of the first subflow; otherwise further data have no place.
#[test]
fn a_peer_that_fell_back_is_followed_or_reset() {
    for used in [false, true] {
        let (mut victim, mut forger, id) = connected(&with_checksums());
        send(&mut victim, &mut forger, id, 1000);
        let second = victim.join(&mut forger);
        if used {
            victim.send_data(&mut forger, second, 500);
        }
        let first = keys::first_dsn(forger.peer_key.unwrap());
        let report = fail(&forger, first, &victim);
        let answers = victim.play(&mut forger, |_, _| report);
        // An engine that follows resets the join; otherwise it resets the subflow.
        assert_eq!((victim.stats(id).fell_back, resets(&answers)), (!used, 1), "{answers:?}");
    }
}
