//! Data that a subflow took and the peer lacks (RFC 8684 section 3.3.6), and subflows with different knowledge of the
//! window (section 3.3.4).

use transport::{ConnectionConfig, ConnectionId};
use units::{Dsn, Duration};
use wire::mptcp::{DataSeq, Dss, MptcpOption};
use wire::{Flags, Payload, Segment};

use crate::forger::{Forger, keys};
use crate::victim::Victim;

fn config() -> ConnectionConfig {
    ConnectionConfig {
        path_manager: "manual".into(),
        scheduler: "round-robin".into(),
        nagle: false,
        ..ConnectionConfig::default()
    }
}

/// Creates a connection with two subflows; the forger's windows are not scaled.
fn two_subflows() -> (Victim, Forger, ConnectionId) {
    two_subflows_of(&config())
}

fn two_subflows_of(config: &ConnectionConfig) -> (Victim, Forger, ConnectionId) {
    let mut victim = Victim::new(config);
    let (mut forger, id) = victim.connect_as(Forger { window_scale: Some(0), ..Forger::new(true, 5) });
    victim.join(&mut forger);
    (victim, forger, id)
}

fn wait(victim: &mut Victim, forger: &mut Forger, span: Duration) -> Vec<Segment> {
    let sent = victim.wait(span);
    for segment in &sent {
        forger.learn(segment);
    }
    sent
}

fn send(victim: &mut Victim, forger: &mut Forger, id: ConnectionId, bytes: usize) -> Vec<Segment> {
    victim.endpoint.send(id, Payload::from(vec![5; bytes]), victim.now).unwrap();
    wait(victim, forger, Duration::ZERO)
}

/// Builds an ACK of everything on flow `f`, of the data before `data_ack`, with a window of `window` octets.
fn ack(forger: &Forger, f: usize, data_ack: Dsn, window: u16, victim: &Victim) -> Segment {
    let mut ack = forger.ack(f, victim.now);
    ack.window = window;
    ack.options.mptcp[0] = MptcpOption::Dss(Dss { data_ack: Some(DataSeq::Long(data_ack.0)), ..Dss::default() });
    ack
}

/// Returns where each segment with data starts in the victim's stream, and its flow.
fn carried(segments: &[Segment], forger: &Forger) -> Vec<(u64, usize)> {
    let first = keys::first_dsn(forger.peer_key.unwrap());
    let place = |segment: &Segment| {
        let f = forger.flows.iter().position(|flow| flow.local == segment.dst)?;
        let dsn = segment.options.mptcp.iter().find_map(|option| match option {
            MptcpOption::Dss(dss) => Some(dss.mapping?.dsn.expand(first)),
            _ => None,
        });
        Some((dsn?.since(first), f))
    };
    segments.iter().filter(|segment| !segment.payload.is_empty()).filter_map(place).collect()
}

/// The peer acknowledges octets on a subflow but not as data, and resets the subflow: they come again at once on the
/// other.
#[test]
fn what_a_reset_subflow_took_comes_again_at_once() {
    let (mut victim, mut forger, id) = two_subflows();
    let first = keys::first_dsn(forger.peer_key.unwrap());
    let sent = send(&mut victim, &mut forger, id, 1000);
    let [(0, f)] = carried(&sent, &forger)[..] else { panic!("{sent:?}") };
    let taken = ack(&forger, f, first, 0xffff, &victim);
    victim.play(&mut forger, |_, _| taken);
    let mut reset = forger.ack(f, victim.now);
    reset.flags = Flags::RST;
    reset.options.mptcp.clear();
    let again = victim.play(&mut forger, |_, _| reset);
    assert_eq!(carried(&again, &forger), [(0, 1 - f)]);
    assert_eq!(victim.stats(id).reinjected_bytes, 1000);
}

/// The same without a reset: they come again after the data-level time-out of at least a second.
#[test]
fn what_is_not_acknowledged_as_data_comes_again_after_a_second() {
    let (mut victim, mut forger, id) = two_subflows();
    let first = keys::first_dsn(forger.peer_key.unwrap());
    let sent = send(&mut victim, &mut forger, id, 1000);
    let [(0, f)] = carried(&sent, &forger)[..] else { panic!("{sent:?}") };
    let taken = ack(&forger, f, first, 0xffff, &victim);
    victim.play(&mut forger, |_, _| taken);
    assert_eq!(carried(&wait(&mut victim, &mut forger, Duration::from_millis(990)), &forger), []);
    let again = wait(&mut victim, &mut forger, Duration::from_secs(2));
    assert_eq!(carried(&again[..1], &forger)[0].0, 0);
}

/// Data go to a subflow with room, not to one whose own window is shut while the connection's is open.
#[test]
fn a_subflow_whose_window_is_shut_gets_nothing() {
    let (mut victim, mut forger, id) = two_subflows();
    let shut = ack(&forger, 0, forger.peer_dsn, 0, &victim);
    victim.play(&mut forger, |_, _| shut);
    let open = ack(&forger, 1, forger.peer_dsn, 0xffff, &victim);
    victim.play(&mut forger, |_, _| open);
    let sent = send(&mut victim, &mut forger, id, 8000);
    assert_eq!(sent.iter().map(|segment| segment.payload.len()).sum::<usize>(), 8000, "all of it at once");
    assert!(carried(&sent, &forger).iter().all(|(_, f)| *f == 1));
}

/// The data of a failing subflow are handed over once; data that it gets later, once more.
#[test]
fn a_subflow_that_fails_again_is_relieved_again() {
    let (mut victim, mut forger, id) = two_subflows();
    let answer = |victim: &mut Victim, forger: &mut Forger, f: usize, window: u16| {
        let said = ack(forger, f, forger.peer_dsn, window, victim);
        victim.play(forger, |_, _| said)
    };
    answer(&mut victim, &mut forger, 0, 0);
    answer(&mut victim, &mut forger, 1, 0xffff);
    // As much as the congestion window of flow 1 takes.
    send(&mut victim, &mut forger, id, 10 * 1428);
    // The next data wait on flow 0 for a sufficient window, and probes there get no answer.
    answer(&mut victim, &mut forger, 0, 1000);
    let sent = send(&mut victim, &mut forger, id, 1428);
    assert_eq!(carried(&sent, &forger), []);
    answer(&mut victim, &mut forger, 0, 0);
    for _ in 0..50 {
        answer(&mut victim, &mut forger, 1, 0xffff);
        wait(&mut victim, &mut forger, Duration::from_millis(100));
    }
    let relieved = victim.stats(id);
    assert_eq!(relieved.acked_bytes, 11 * 1428);
    assert!(relieved.reinjected_bytes > 0);
    // Flow 0 opens its window, gets new data, and then falls silent.
    answer(&mut victim, &mut forger, 0, 0xffff);
    let sent = send(&mut victim, &mut forger, id, 8000);
    assert!(carried(&sent, &forger).iter().any(|(_, f)| *f == 0));
    let first = keys::first_dsn(forger.peer_key.unwrap());
    let elsewhere: Vec<_> = carried(&sent, &forger).into_iter().filter(|(_, f)| *f == 0).map(|(at, _)| at).collect();
    let mut again = Vec::new();
    for _ in 0..9 {
        let taken = ack(&forger, 1, first + elsewhere[0], 0xffff, &victim);
        again.extend(victim.play(&mut forger, |_, _| taken));
        again.extend(wait(&mut victim, &mut forger, Duration::from_millis(100)));
    }
    let taken_over: Vec<_> = carried(&again, &forger).into_iter().filter(|(_, f)| *f == 1).map(|(at, _)| at).collect();
    assert!(elsewhere.iter().all(|at| taken_over.contains(at)), "{elsewhere:?} {taken_over:?}");
}

/// A window filled by data in flight is not shut: ACKs will open it, so it needs no probe.
#[test]
fn a_window_that_is_in_use_is_not_probed() {
    let (mut victim, mut forger, id) = two_subflows();
    for f in 0..2 {
        // Two segments will fill it to the last octet.
        let narrow = ack(&forger, f, forger.peer_dsn, 2 * 1428, &victim);
        victim.play(&mut forger, |_, _| narrow);
    }
    let mut sent = send(&mut victim, &mut forger, id, 40_000);
    // The connection's window opens, as flow 1 learns; flow 0 is busy with its own data.
    for _ in 0..4 {
        let wide = ack(&forger, 1, forger.peer_dsn, 0xffff, &victim);
        sent.extend(victim.play(&mut forger, |_, _| wide));
    }
    assert!(carried(&sent, &forger).iter().any(|(_, f)| *f == 0));
    sent.extend(wait(&mut victim, &mut forger, Duration::from_secs(5)));
    let empty = sent.iter().filter(|segment| segment.payload.is_empty());
    assert_eq!(empty.count(), 0, "{:?}", carried(&sent, &forger));
}

/// Section 3.3.4: a window that the connection announced on one subflow holds on every other.
#[test]
fn a_window_announced_on_one_subflow_holds_on_the_other() {
    let config = ConnectionConfig { receive_buffer_bytes: 200_000, ..config() };
    let mut victim = Victim::new(&config);
    let (mut forger, id) = victim.connect_as(Forger::new(true, 5));
    for _ in 0..90 {
        victim.send_data(&mut forger, 0, 1000);
    }
    // Flow 1 only ever gets a window of 110,000 octets.
    victim.join(&mut forger);
    assert_eq!(victim.read(id, &forger, 0), 90_000);
    let told = victim.wait(Duration::ZERO);
    assert_eq!(told.iter().map(|segment| segment.dst).collect::<Vec<_>>(), [forger.flows[0].local]);
    let (seq, dsn) = (forger.flows[1].nxt, forger.dsn);
    victim.inject(forger.data_at(1, seq + 150_000, dsn + 150_000, 1000, victim.now));
    for n in 0..150_u32 {
        victim.inject(forger.data_at(1, seq + n * 1000, dsn + u64::from(n) * 1000, 1000, victim.now));
    }
    assert_eq!(victim.read(id, &forger, 90_000), 151_000, "what came early was kept");
}
