//! Peers that lie about what they received, and about how much more they can take.

use transport::{ConnectionConfig, ConnectionId};
use units::{Duration, SeqNr};
use wire::mptcp::{DataSeq, Dss, MptcpOption};
use wire::{Pattern, Payload, SackBlock, Segment};

use crate::forger::{self, Forger};
use crate::live::live_bytes;
use crate::victim::Victim;

const WRITTEN: u32 = 1 << 20;

/// Creates a connection on which the victim has a megabyte to send and has sent its first window.
fn attack(mptcp: bool) -> (Victim, Forger, ConnectionId) {
    attack_as(Forger::new(mptcp, 0xabcd))
}

fn attack_as(forger: Forger) -> (Victim, Forger, ConnectionId) {
    let mut victim = Victim::new(&ConnectionConfig::default());
    let (mut forger, id) = victim.connect_as(forger);
    let data = Payload::Pattern(Pattern { stream: 1, offset: 0, len: WRITTEN });
    assert_eq!(victim.endpoint.send(id, data, victim.now), Ok(WRITTEN as usize));
    let sent = victim.wait(Duration::ZERO);
    assert!(sent.len() >= 10);
    sent.iter().for_each(|segment| {
        forger.learn(segment);
    });
    (victim, forger, id)
}

/// Lets the forger acknowledge everything, honestly, until the victim has nothing more to send.
fn acknowledge_all(victim: &mut Victim, forger: &mut Forger, id: ConnectionId) {
    for _ in 0..3000 {
        let answers = victim.play(forger, |forger, now| forger.ack(0, now));
        if answers.is_empty() && victim.stats(id).acked_bytes == u64::from(WRITTEN) {
            return;
        }
        for segment in victim.wait(Duration::from_millis(5)) {
            forger.learn(&segment);
        }
    }
    panic!("{:#?}", victim.stats(id));
}

fn payload_octets(segments: &[Segment]) -> usize {
    segments.iter().map(|segment| segment.payload.len()).sum()
}

#[test]
fn acks_of_the_unsent_change_nothing() {
    for mptcp in [false, true] {
        let (mut victim, mut forger, id) = attack(mptcp);
        let in_flight = victim.stats(id).subflows[0].in_flight_bytes;
        for distance in [1, 1000, 1 << 20, 1 << 30, 1 << 31, u32::MAX - 100_000] {
            let mut ack = forger.ack(0, victim.now);
            ack.ack += distance;
            ack.options.mptcp.clear();
            let answers = victim.inject(ack);
            assert_eq!(payload_octets(&answers), 0, "no data for a lie about {distance}");
        }
        let stats = victim.stats(id);
        assert_eq!((stats.acked_bytes, stats.subflows[0].in_flight_bytes), (0, in_flight));
        acknowledge_all(&mut victim, &mut forger, id);
        victim.assert_honest_goes_on();
    }
}

#[test]
fn data_acks_of_the_unsent_change_nothing() {
    let (mut victim, mut forger, id) = attack(true);
    for distance in [1_u64, 1 << 20, 1 << 31, 1 << 40, 1 << 63, u64::MAX - (1 << 20)] {
        let mut ack = forger.ack(0, victim.now);
        ack.ack = forger.flows[0].peer_iss + 1;
        let lie = DataSeq::Long(forger.peer_dsn.0.wrapping_add(distance));
        ack.options.mptcp[0] = MptcpOption::Dss(Dss { data_ack: Some(lie), ..Dss::default() });
        victim.inject(ack);
    }
    assert_eq!(victim.stats(id).acked_bytes, 0);
    acknowledge_all(&mut victim, &mut forger, id);
    victim.assert_honest_goes_on();
}

#[test]
fn data_acks_without_acks_do_not_free_the_subflow() {
    let (mut victim, mut forger, id) = attack(true);
    let first = forger.flows[0].peer_iss + 1;
    // Everything is acknowledged at the data level and nothing below: the subflow windows still hold.
    for _ in 0..100 {
        victim.play(&mut forger, |forger, now| {
            let mut ack = forger.ack(0, now);
            ack.ack = first;
            ack
        });
    }
    let stats = victim.stats(id);
    assert!(stats.subflows[0].sent_bytes < 100_000, "{} octets sent", stats.subflows[0].sent_bytes);
    acknowledge_all(&mut victim, &mut forger, id);
}

#[test]
fn sacks_of_nonsense_change_nothing() {
    let (mut victim, mut forger, id) = attack(false);
    let before = live_bytes();
    let (una, nxt) = (forger.flows[0].peer_iss + 1, forger.flows[0].peer_nxt);
    let places =
        [SeqNr(0), una - 1, una, una + 1, nxt - 1, nxt, nxt + 1, nxt + (1 << 30), nxt + (1 << 31), una - (1 << 30)];
    for start in places {
        for end in places {
            let mut ack = forger.ack(0, victim.now);
            ack.ack = una;
            ack.options.sack.push(SackBlock { start, end });
            ack.options.sack.push(SackBlock { start: end, end: start });
            victim.inject(ack);
        }
    }
    assert!(live_bytes() - before < 200_000);
    acknowledge_all(&mut victim, &mut forger, id);
    victim.assert_honest_goes_on();
}

#[test]
fn sacks_that_cut_segments_to_pieces_cost_neither_memory_nor_tiny_retransmissions() {
    let (mut victim, mut forger, id) = attack(false);
    let (una, span) = (forger.flows[0].peer_iss + 1, forger.flows[0].peer_nxt.since(forger.flows[0].peer_iss) - 1);
    let before = live_bytes();
    let mut smallest = usize::MAX;
    for at in (1..span - 8).step_by(8) {
        let mut ack = forger.ack(0, victim.now);
        ack.ack = una;
        for piece in 0..4 {
            let start = una + at + 2 * piece;
            ack.options.sack.push(SackBlock { start, end: start + 1 });
        }
        for segment in victim.inject(ack).iter().filter(|segment| !segment.payload.is_empty()) {
            smallest = smallest.min(segment.payload.len());
        }
    }
    for _ in 0..50 {
        let sent = victim.wait(Duration::from_secs(1));
        let sizes = sent.iter().map(|segment| segment.payload.len()).filter(|len| *len > 0);
        smallest = smallest.min(sizes.min().unwrap_or(usize::MAX));
    }
    // Time-outs may halve a segment twice, to test whether its path has become narrow.
    assert!(smallest >= 1428 / 4, "retransmissions of {smallest} octets");
    assert!(live_bytes() - before < 200_000, "{} octets", live_bytes() - before);
    acknowledge_all(&mut victim, &mut forger, id);
}

#[test]
fn acks_inside_segments_are_taken_at_their_word() {
    for mptcp in [false, true] {
        let (mut victim, mut forger, id) = attack(mptcp);
        let una = forger.flows[0].peer_iss + 1;
        for octets in (1..8000).step_by(17) {
            let mut ack = forger.ack(0, victim.now);
            ack.ack = una + octets;
            ack.options.mptcp.clear();
            for answer in victim.inject(ack) {
                forger.learn(&answer);
            }
        }
        assert_eq!(victim.stats(id).subflows[0].acked_bytes, 1 + 17 * (7999 / 17));
        acknowledge_all(&mut victim, &mut forger, id);
    }
}

#[test]
fn acks_of_single_octets_do_not_open_the_window_by_segments() {
    // The division attack of Savage et al. (1999), which counting octets (RFC 3465) defeats.
    let (mut victim, mut forger, id) = attack(false);
    let una = forger.flows[0].peer_iss + 1;
    let before = victim.stats(id).subflows[0].cwnd_bytes;
    for octets in 1..1449 {
        let mut ack = forger.ack(0, victim.now);
        ack.ack = una + octets;
        victim.inject(ack);
    }
    let grown = victim.stats(id).subflows[0].cwnd_bytes - before;
    assert!(grown <= 1448, "{grown} octets for 1448 acknowledged");
    forger.timestamps = true;
}

#[test]
fn a_window_shut_for_ever_keeps_one_connection_and_no_more() {
    for mptcp in [false, true] {
        let (mut victim, mut forger, id) = attack_as(Forger { window_scale: Some(0), ..Forger::new(mptcp, 0xabcd) });
        // The right edge stays in place, and the window eventually shuts.
        let edge = forger.flows[0].peer_iss + 1 + 0xffff;
        let shut = |victim: &mut Victim, forger: &mut Forger| {
            victim.play(forger, |forger, now| {
                let mut ack = forger.ack(0, now);
                ack.window = edge.since(ack.ack) as u16;
                ack
            })
        };
        for _ in 0..100 {
            shut(&mut victim, &mut forger);
            for segment in victim.wait(Duration::from_secs(1)) {
                forger.learn(&segment);
            }
        }
        assert_eq!(forger.flows[0].peer_nxt, edge);
        let (before, mut probes) = (live_bytes(), 0);
        for _ in 0..3600 {
            for probe in victim.wait(Duration::from_secs(1)) {
                probes += 1;
                forger.learn(&probe);
                shut(&mut victim, &mut forger);
            }
        }
        assert!((10..1000).contains(&probes), "{probes} probes in an hour");
        assert!(live_bytes() - before < 50_000);
        assert!(victim.stats(id).closed_at.is_none(), "a peer that answers is not gone (RFC 9293 section 3.8.6.1)");
        acknowledge_all(&mut victim, &mut forger, id);
        victim.assert_honest_goes_on();
    }
}

#[test]
fn a_window_that_shrinks_is_respected_without_a_fuss() {
    let (mut victim, mut forger, id) = attack(false);
    for window in [100, 1, 0, 3, 0xffff, 0, 20] {
        let mut ack = forger.ack(0, victim.now);
        ack.window = window;
        let room = usize::from(window) << forger::WINDOW_SCALE;
        let answers = victim.inject(ack);
        answers.iter().for_each(|segment| {
            forger.learn(segment);
        });
        assert!(payload_octets(&answers) <= room, "{} octets into {room}", payload_octets(&answers));
    }
    acknowledge_all(&mut victim, &mut forger, id);
}

#[test]
fn timestamps_that_jump_stop_their_own_sender_at_most() {
    let (mut victim, forger, id) = attack(false);
    for jump in [1_u32 << 30, 1 << 31, u32::MAX, 0] {
        let mut ack = forger.ack(0, victim.now);
        let stamp = ack.options.timestamps.as_mut().unwrap();
        stamp.value = stamp.value.wrapping_add(jump);
        stamp.echo = stamp.echo.wrapping_add(jump);
        victim.inject(ack);
    }
    let stats = victim.stats(id);
    let srtt = stats.subflows[0].srtt.unwrap_or_default();
    assert!(srtt < Duration::from_secs(10), "an echo from the future is no measurement: {srtt:?}");
    victim.wait(Duration::from_secs(600));
    assert!(victim.stats(id).closed_at.is_some(), "what is never acknowledged ends");
    victim.assert_honest_goes_on();
}
