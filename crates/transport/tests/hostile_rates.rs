//! Receivers that lie about their desired rate (MPTCP-rec), and senders that lie about rounds.

use arrayvec::ArrayVec;
use transport::receiver_centric::ReceiverCentric;
use transport::{ConnectionConfig, ConnectionId};
use units::Duration;
use wire::mptcp::{HeldBlock, MptcpOption, PathId, RateReport, Round};
use wire::{Pattern, Payload, Segment};

use crate::forger::Forger;
use crate::live::live_bytes;
use crate::victim::Victim;

fn config() -> ConnectionConfig {
    ConnectionConfig { receiver_centric: Some(ReceiverCentric::DEFAULT), nagle: false, ..ConnectionConfig::default() }
}

fn attack(offers: bool) -> (Victim, Forger, ConnectionId) {
    let mut victim = Victim::new(&config());
    let mut forger = Forger::new(true, 77);
    forger.receiver_centric = offers;
    let (forger, id) = victim.connect_as(forger);
    (victim, forger, id)
}

fn wish(timestamp_ms: u32, desired_bytes_per_s: u32) -> RateReport {
    let held = ArrayVec::new();
    RateReport { path: PathId::new(0).unwrap(), round: timestamp_ms as u8, timestamp_ms, desired_bytes_per_s, held }
}

fn reports(segments: &[Segment]) -> usize {
    let is_report = |option: &MptcpOption| matches!(option, MptcpOption::Experimental(option) if RateReport::read(option).is_some());
    segments.iter().filter(|segment| segment.options.mptcp.iter().any(is_report)).count()
}

fn octets(segments: &[Segment]) -> usize {
    segments.iter().map(|segment| segment.payload.len()).sum()
}

/// Sends a megabyte to a receiver that acknowledges everything every 100 ms and always wants `desired_bytes_per_s`.
/// Returns the octets that arrived in each of the first intervals of 100 ms.
fn rounds(desired_bytes_per_s: u32) -> Vec<usize> {
    let (mut victim, mut forger, id) = attack(true);
    let mut offset = 0;
    let mut send = |victim: &mut Victim, len: u32| {
        let data = Payload::Pattern(Pattern { stream: 1, offset, len });
        victim.endpoint.send(id, data, victim.now).unwrap();
        offset += u64::from(len);
    };
    // The handshake took no time, so give the victim samples of the round-trip time.
    for _ in 0..30 {
        send(&mut victim, 1000);
        let sent = victim.wait(Duration::from_millis(100));
        learn(&mut forger, &sent);
        victim.inject(forger.ack(0, victim.now));
    }
    send(&mut victim, 1 << 20);
    let mut course = Vec::new();
    for round in 1..=6 {
        let sent = victim.wait(Duration::from_millis(100));
        course.push(octets(&sent));
        learn(&mut forger, &sent);
        let mut ack = forger.ack(0, victim.now);
        ack.options.mptcp.push(MptcpOption::Experimental(wish(round, desired_bytes_per_s).option()));
        victim.endpoint.handle_segment(ack, victim.now);
    }
    course
}

fn learn(forger: &mut Forger, sent: &[Segment]) {
    for segment in sent {
        forger.learn(segment);
    }
}

#[test]
fn whoever_wants_everything_gets_no_more_than_twice_what_it_acknowledged() {
    let course = rounds(u32::MAX);
    assert!(course.iter().sum::<usize>() > 100_000, "{course:?}");
    for pair in course.windows(2) {
        // Twice the initial window, or twice the last round, plus a segment for the remainder of the pacing.
        assert!(pair[1] <= 2 * pair[0].max(10 * 1424) + 1424, "{course:?}");
    }
}

#[test]
fn whoever_wants_next_to_nothing_gets_a_segment_a_round_trip_time() {
    let course = rounds(1);
    assert!(course[2..].iter().all(|octets| (1400..5 * 1460).contains(octets)), "{course:?}");
}

#[test]
fn a_wish_without_the_offer_means_nothing() {
    let (mut victim, mut forger, id) = attack(false);
    victim.endpoint.send(id, Payload::Pattern(Pattern { stream: 1, offset: 0, len: 100_000 }), victim.now).unwrap();
    let sent = victim.wait(Duration::ZERO);
    assert!(!sent.is_empty() && sent.iter().all(|segment| segment.options.round.is_none()));
    learn(&mut forger, &sent);
    let mut ack = forger.ack(0, victim.now);
    ack.options.mptcp.push(MptcpOption::Experimental(wish(1, 1).option()));
    let at_once = octets(&victim.inject(ack));
    assert!(at_once > 10 * 1460, "slow start goes on: {at_once}");
}

#[test]
fn data_said_to_be_held_are_sent_again_nevertheless_when_the_peer_lacks_the_first() {
    let (mut victim, mut forger, id) = attack(true);
    victim.endpoint.send(id, Payload::Pattern(Pattern { stream: 1, offset: 0, len: 5000 }), victim.now).unwrap();
    let sent = victim.wait(Duration::ZERO);
    // The lie acknowledges nothing, and claims to hold everything and more that was never sent.
    let mut lie = forger.ack(0, victim.now);
    let blocks = [(0, 5000), (1, u32::MAX), (1400, 5000)].map(|(start, end)| HeldBlock { start, end });
    let report = RateReport { held: blocks.into_iter().collect(), ..wish(1, 100_000) };
    lie.options.mptcp.push(MptcpOption::Experimental(report.option()));
    victim.inject(lie);
    let again = victim.wait(Duration::from_secs(5));
    assert!(octets(&again) >= 1400, "the first segment goes out again");
    learn(&mut forger, &sent);
    learn(&mut forger, &again);
    victim.inject(forger.ack(0, victim.now));
    victim.assert_honest_goes_on();
}

#[test]
fn rounds_and_paths_made_up_provoke_few_reports_and_keep_nothing() {
    let (mut victim, mut forger, id) = attack(true);
    let (before, mut answered, mut read) = (live_bytes(), 0, 0);
    for n in 0..20_000_u32 {
        let mut data = forger.data(0, 100, victim.now);
        data.options.round = PathId::new((n % 16) as u8).map(|path| Round { path, id: (n / 7) as u8 });
        forger.sent(0, 100);
        let answers = victim.inject(data);
        answered += reports(&answers);
        learn(&mut forger, &answers);
        read += victim.read(id, &forger, read);
        if n % 100 == 0 {
            victim.wait(Duration::from_millis(1));
        }
    }
    // 200 ms have passed: at most one report per millisecond.
    assert!((1..=200).contains(&answered), "{answered}");
    victim.events = Vec::new();
    let kept = live_bytes() - before;
    assert!(kept < 50_000, "{kept}");
    victim.assert_honest_goes_on();
}
