//! Paths that MPTCP-rec leaves unused, and the probes that keep their rates known.

use arrayvec::ArrayVec;
use transport::receiver_centric::ReceiverCentric;
use transport::{ConnectionConfig, ConnectionId};
use units::Duration;
use wire::mptcp::{MpPrio, MptcpOption, PathId, RateReport};
use wire::{Pattern, Payload, Segment};

use crate::forger::Forger;
use crate::victim::Victim;

const MS: fn(u64) -> Duration = Duration::from_millis;
/// The flow that carries data, and the one that is left out.
const USED: usize = 0;
const UNUSED: usize = 1;

fn config() -> ConnectionConfig {
    ConnectionConfig {
        receiver_centric: Some(ReceiverCentric::DEFAULT),
        offload_max_bytes: 60_000,
        path_manager: "manual".into(),
        nagle: false,
        ..ConnectionConfig::default()
    }
}

fn wait(victim: &mut Victim, forger: &mut Forger, span: Duration) -> Vec<Segment> {
    let sent = victim.wait(span);
    for segment in &sent {
        forger.learn(segment);
    }
    sent
}

fn send(victim: &mut Victim, forger: &mut Forger, id: ConnectionId, bytes: usize) {
    victim.endpoint.send(id, Payload::from(vec![5; bytes]), victim.now).unwrap();
    wait(victim, forger, Duration::ZERO);
}

/// Returns the number of data segments on the flow that is left out.
fn probes(segments: &[Segment], forger: &Forger) -> usize {
    segments.iter().filter(|segment| !segment.payload.is_empty() && segment.dst == forger.flows[UNUSED].local).count()
}

/// Two flows, the second of which is left out.
fn leave_one_out() -> (Victim, Forger, ConnectionId) {
    let mut victim = Victim::new(&config());
    let (mut forger, id) = victim.connect_as(Forger { receiver_centric: true, ..Forger::new(true, 78) });
    assert_eq!(victim.join(&mut forger), UNUSED);
    leave_out(&mut victim, &mut forger, id, 1);
    (victim, forger, id)
}

/// Leaves one path out, from round `first` on: the receiver wants little of the second path, and its window falls. One
/// octet that it does not acknowledge is outstanding.
fn leave_out(victim: &mut Victim, forger: &mut Forger, id: ConnectionId, first: u8) {
    for round in first..first + 3 {
        for (f, rate) in [(UNUSED, 1), (USED, u32::MAX)] {
            let window = if (round, f) == (first + 2, USED) { 0x4000 } else { 0xffff };
            send(victim, forger, id, 1000);
            wait(victim, forger, MS(5));
            let (path, held) = (PathId::new(f as u8).unwrap(), ArrayVec::new());
            let report =
                RateReport { path, round, timestamp_ms: round.into(), desired_bytes_per_s: rate, held }.option();
            let mut ack = forger.signal(f, MptcpOption::Experimental(report), victim.now);
            ack.window = window;
            victim.play(forger, |_, _| ack);
            let all = forger.ack(1 - f, victim.now);
            victim.play(forger, |_, _| Segment { window, ..all });
        }
    }
    send(victim, forger, id, 1);
}

/// If the path does not deliver a probe, the subflow repeats it at its own pace (RFC 6298 section 5). Further probes
/// would reveal nothing more, and with many connections they would fill the path.
#[test]
fn no_second_probe_before_the_first_is_acknowledged() {
    let (mut victim, mut forger, _) = leave_one_out();
    let sent = wait(&mut victim, &mut forger, MS(190));
    assert_eq!(probes(&sent, &forger), 1, "{sent:?}");
    // Repetitions back off; each may be accompanied by a tail loss probe.
    let sent = wait(&mut victim, &mut forger, MS(2000));
    assert!((1..=6).contains(&probes(&sent, &forger)), "{sent:?}");
}

/// Once it is acknowledged, the next one keeps the rate known.
#[test]
fn a_probe_every_round_trip_that_is_answered() {
    let (mut victim, mut forger, _) = leave_one_out();
    let before = forger.peer_dsn;
    let mut seen = 0;
    for _ in 0..20 {
        let sent = wait(&mut victim, &mut forger, MS(5));
        seen += probes(&sent, &forger);
        // The other path's data are still missing at the data level.
        forger.peer_dsn = before - 1;
        victim.play(&mut forger, |forger, now| forger.ack(UNUSED, now));
    }
    assert!((10..=20).contains(&seen), "{seen} probes in 20 round-trip times");
}

/// Lets the first path be a backup, and the second carry `bytes`, which the forger acknowledges.
fn carry_on_the_other(victim: &mut Victim, forger: &mut Forger, id: ConnectionId, mut bytes: u64) {
    for backup in [true, false] {
        let prio = forger.signal(USED, MptcpOption::Prio(MpPrio { backup }), victim.now);
        victim.play(forger, |_, _| prio);
        while backup && bytes > 0 {
            let len = bytes.min(1 << 20) as u32;
            let pattern = Payload::Pattern(Pattern { stream: 1, offset: 0, len });
            let taken = victim.endpoint.send(id, pattern, victim.now).unwrap() as u64;
            assert!(taken > 0, "{:?}", victim.stats(id));
            bytes -= taken;
            let mut sent = wait(victim, forger, Duration::ZERO);
            while !sent.is_empty() {
                wait(victim, forger, MS(1));
                sent = victim.play(forger, |forger, now| forger.ack(UNUSED, now));
            }
        }
    }
}

/// Sequence numbers wrap (RFC 9293 section 3.4.1): 2 GiB behind a probe, its end seems to lie ahead.
#[test]
fn a_probe_of_long_ago_is_not_under_way() {
    let (mut victim, mut forger, id) = leave_one_out();
    assert_eq!(probes(&wait(&mut victim, &mut forger, MS(10)), &forger), 1);
    for f in [UNUSED, USED] {
        victim.play(&mut forger, |forger, now| forger.ack(f, now));
    }
    // The wishes of the receiver expire.
    wait(&mut victim, &mut forger, MS(5000));
    let before = victim.stats(id).subflows[UNUSED].sent_bytes;
    carry_on_the_other(&mut victim, &mut forger, id, (2 << 30) + (1 << 20));
    assert!(victim.stats(id).subflows[UNUSED].sent_bytes - before > 2 << 30);
    leave_out(&mut victim, &mut forger, id, 4);
    let sent = wait(&mut victim, &mut forger, MS(190));
    assert_eq!(probes(&sent, &forger), 1, "{sent:?}");
}
