//! Windows that stay shut (RFC 9293 section 3.8.6.1) at the connection level, tested with a hand-made peer.

use transport::error::CloseReason;
use transport::{ConnectionConfig, ConnectionId, Event};
use units::{Dsn, Duration};
use wire::mptcp::{DataSeq, Dss, MpJoin, MptcpOption};
use wire::{Pattern, Payload, Segment};

use crate::forger::{self, Forger};
use crate::script::{Script, mptcp_config};
use crate::victim::Victim;

const USER_TIMEOUT: Duration = Duration::from_secs(20);
const WRITTEN: u32 = 100_000;

fn config() -> ConnectionConfig {
    ConnectionConfig {
        user_timeout: USER_TIMEOUT,
        path_manager: "manual".into(),
        scheduler: "round-robin".into(),
        ..ConnectionConfig::default()
    }
}

/// Creates a connection on which the engine has 100 kB to send and has sent its first window.
fn sending(subflows: usize) -> (Victim, Forger, ConnectionId) {
    let mut victim = Victim::new(&config());
    let (mut forger, id) = victim.connect_as(Forger { window_scale: Some(0), ..Forger::new(true, 0xabcd) });
    for _ in 1..subflows {
        victim.join(&mut forger);
    }
    let data = Payload::Pattern(Pattern { stream: 1, offset: 0, len: WRITTEN });
    assert_eq!(victim.endpoint.send(id, data, victim.now), Ok(WRITTEN as usize));
    for segment in victim.wait(Duration::ZERO) {
        forger.learn(&segment);
    }
    (victim, forger, id)
}

/// Builds the peer's ACK on flow `f`: its window is shut, and it has everything on the subflow but only the stream
/// before `data_ack`.
fn shut(forger: &Forger, f: usize, data_ack: Dsn, victim: &Victim) -> Segment {
    let mut ack = forger.ack(f, victim.now);
    ack.window = 0;
    ack.options.mptcp[0] = MptcpOption::Dss(Dss { data_ack: Some(DataSeq::Long(data_ack.0)), ..Dss::default() });
    ack
}

/// Lets time pass and answers every segment with a shut window. Returns the number of segments.
fn hold_off(victim: &mut Victim, forger: &mut Forger, span: Duration, data_ack: impl Fn(&Forger) -> Dsn) -> usize {
    let (end, mut segments) = (victim.now + span, 0);
    while victim.now < end {
        for segment in victim.wait(Duration::from_millis(100)) {
            segments += 1;
            let f = forger.learn(&segment).expect("it is for the forger");
            let answer = shut(forger, f, data_ack(forger), victim);
            victim.play(forger, |_, _| answer);
        }
    }
    segments
}

fn is_over(victim: &Victim, id: ConnectionId) -> bool {
    victim.stats(id).closed_at.is_some()
}

/// The peer opens its window and takes everything.
fn open(victim: &mut Victim, forger: &mut Forger, id: ConnectionId) {
    for _ in 0..600 {
        for f in 0..forger.flows.len() {
            victim.play(forger, |forger, now| forger.ack(f, now));
        }
        for segment in victim.wait(Duration::from_millis(100)) {
            forger.learn(&segment);
        }
    }
    assert_eq!(victim.stats(id).acked_bytes, u64::from(WRITTEN));
}

/// The peer took all data and shuts its window. It is probed, with one subflow or two, and waited for as long as it
/// answers.
#[test]
fn a_peer_that_answers_probes_is_waited_for() {
    for subflows in [1, 2] {
        let (mut victim, mut forger, id) = sending(subflows);
        for f in 0..subflows {
            let answer = shut(&forger, f, forger.peer_dsn, &victim);
            victim.play(&mut forger, |_, _| answer);
        }
        let probes = hold_off(&mut victim, &mut forger, Duration::from_secs(600), |forger| forger.peer_dsn);
        assert!(probes >= 10, "{probes} probes");
        assert!(!is_over(&victim, id), "{subflows} subflows");
        open(&mut victim, &mut forger, id);
        victim.assert_honest_goes_on();
    }
}

/// The peer shrinks its window below the flight: it has the octets on the subflow and discards them as data.
#[test]
fn a_peer_that_shrinks_its_window_and_answers_is_waited_for() {
    for subflows in [1, 2] {
        let (mut victim, mut forger, id) = sending(subflows);
        let first = forger::keys::first_dsn(forger.peer_key.unwrap());
        for f in 0..subflows {
            let answer = shut(&forger, f, first, &victim);
            victim.play(&mut forger, |_, _| answer);
        }
        hold_off(&mut victim, &mut forger, Duration::from_secs(600), |_| first);
        assert!(!is_over(&victim, id), "{subflows} subflows");
        assert_eq!(victim.stats(id).acked_bytes, 0);
        open(&mut victim, &mut forger, id);
        victim.assert_honest_goes_on();
    }
}

/// A connection that was idle with a shut window for longer than the user time-out is probed before it is judged.
#[test]
fn a_window_that_was_shut_during_a_long_rest_is_probed_first() {
    for mptcp in [false, true] {
        let mut victim = Victim::new(&config());
        let (mut forger, id) = victim.connect_as(Forger { window_scale: Some(0), ..Forger::new(mptcp, 0xabcd) });
        let data = |offset| Payload::Pattern(Pattern { stream: 1, offset, len: 1000 });
        victim.endpoint.send(id, data(0), victim.now).unwrap();
        let close = |victim: &mut Victim, forger: &mut Forger| {
            for segment in victim.wait(Duration::from_millis(100)) {
                forger.learn(&segment);
                let mut ack = forger.ack(0, victim.now);
                ack.window = 0;
                victim.inject(ack);
            }
        };
        close(&mut victim, &mut forger);
        assert_eq!(victim.wait(USER_TIMEOUT * 10), []);
        victim.endpoint.send(id, data(1000), victim.now).unwrap();
        (0..1000).for_each(|_| close(&mut victim, &mut forger));
        assert!(!is_over(&victim, id), "MPTCP: {mptcp}");
        victim.play(&mut forger, |forger, now| forger.ack(0, now));
        victim.wait(Duration::from_secs(1)).iter().for_each(|segment| {
            forger.learn(segment);
        });
        victim.play(&mut forger, |forger, now| forger.ack(0, now));
        assert_eq!(victim.stats(id).acked_bytes, 2000);
    }
}

/// A peer that shuts its window and then falls silent is not waited for.
#[test]
fn a_peer_that_shut_its_window_and_fell_silent_is_given_up() {
    for (subflows, all) in [(1, true), (1, false), (2, true), (2, false)] {
        let (mut victim, mut forger, id) = sending(subflows);
        let first = forger::keys::first_dsn(forger.peer_key.unwrap());
        for f in 0..subflows {
            let answer = shut(&forger, f, if all { forger.peer_dsn } else { first }, &victim);
            victim.play(&mut forger, |_, _| answer);
        }
        // The user time-out, the last backed-off timer, and the wait for a new subflow.
        victim.wait(USER_TIMEOUT * 6);
        assert!(is_over(&victim, id), "{subflows} subflows, all taken: {all}");
        assert!(victim.events.iter().any(
            |event| matches!(event, Event::Closed { reason: CloseReason::TimedOut, connection } if *connection == id)
        ));
        victim.assert_honest_goes_on();
    }
}

/// If data in an open window are never acknowledged, the user time-out ends the connection.
#[test]
fn a_peer_that_takes_data_and_never_acknowledges_them_is_given_up() {
    let (mut victim, mut forger, id) = sending(1);
    let first = forger::keys::first_dsn(forger.peer_key.unwrap());
    for _ in 0..1200 {
        for segment in victim.wait(Duration::from_millis(100)) {
            forger.learn(&segment);
        }
        let mut answer = shut(&forger, 0, first, &victim);
        answer.window = 0xffff;
        victim.play(&mut forger, |_, _| answer);
    }
    assert!(is_over(&victim, id));
    victim.assert_honest_goes_on();
}

/// Creates a connection with two subflows, the second perhaps a backup. The peer's window has room for 500 octets; it
/// took them all on the first subflow and left a window of `left` octets there.
fn two_subflows(is_backup: bool, left: u32) -> Script {
    let mut script = Script::listen(mptcp_config());
    script.inject("S 0 mss 1000 sackok win 500 mpc");
    script.expect("SA 0 ack 1 mpc");
    script.inject("A 1 ack 1 win 500 mpc");
    script.expect("A 1 ack 1 dack 1");
    script.new_flow();
    script.inject_with("2: S 0 mss 1000 sackok win 500 join", |syn| {
        if let Some(MptcpOption::Join(MpJoin::Syn { backup, .. })) = syn.options.mptcp.first_mut() {
            *backup = is_backup;
        }
    });
    script.expect("2: SA 0 ack 1 join");
    script.inject("2: A 1 ack 1 win 500 join");
    script.expect("2: A 1 ack 1 dack 1");
    script.send(500);
    script.expect("A 1+500 ack 1 dack 1 map 1");
    script.run_until(100);
    script.inject(&format!("A 1 ack 501 dack 501 win {left}"));
    script
}

/// A window that opens on a backup is used once the regular subflow has left a probe without an answer. A probe that has
/// only just left proves nothing.
#[test]
fn a_path_that_died_while_the_window_was_shut_does_not_hold_up_a_backup() {
    let mut script = two_subflows(true, 0);
    script.send(700);
    script.inject("2: A 1 ack 1 dack 501 win 65535");
    script.expect_nothing();
    let mut sent = Vec::new();
    while sent.is_empty() {
        script.run_for(10);
        sent = script.drain();
    }
    assert_eq!(sent, ["A 500 ack 1 dack 1"], "the first probe");
    script.run_for(2000);
    assert!(script.drain().contains(&"2: A 1+700 ack 1 dack 1 map 501".into()));
}

/// The same if the update is lost: the backup is asked for it.
#[test]
fn a_backup_is_probed_once_the_regular_subflow_is_silent() {
    let mut script = two_subflows(true, 0);
    script.send(700);
    script.run_for(3000);
    assert!(script.drain().contains(&"2: A 0 ack 1 dack 1".into()));
    script.inject("2: A 1 ack 1 dack 501 win 65535");
    script.expect("2: A 1+700 ack 1 dack 1 map 501");
}

/// While the regular subflow answers probes, the backup rests. Once the window opens on the backup, the wait for the
/// next answer is short, however long the window was shut.
#[test]
fn a_backup_rests_while_the_regular_subflow_answers_probes() {
    let mut script = two_subflows(true, 0);
    script.send(700);
    for _ in 0..6000 {
        script.run_for(100);
        for sent in script.drain() {
            assert_eq!(sent, "A 500 ack 1 dack 1");
            script.inject("A 1 ack 501 dack 501 win 0");
        }
    }
    script.inject("2: A 1 ack 1 dack 501 win 65535");
    script.run_for(2000);
    assert!(script.drain().contains(&"2: A 1+700 ack 1 dack 1 map 501".into()));
}

/// A window that was too small for long is used on one subflow and opens there. The other one was not told: it is asked
/// before its silence counts.
#[test]
fn a_subflow_that_was_asked_nothing_is_not_given_up() {
    let mut script = two_subflows(false, 100);
    script.send(700);
    script.expect_nothing();
    script.run_until(300);
    script.expect("2: A 1+100 ack 1 dack 1 map 501");
    script.inject("2: A 1 ack 101 dack 601 win 65535");
    script.expect("2: A 101+600 ack 1 dack 1 map 601");
    script.inject("2: A 1 ack 701 dack 1201 win 65535");
    script.run_for(1000);
    assert_eq!(script.drain(), ["A 500 ack 1 dack 1"]);
    script.inject("A 1 ack 501 dack 1201 win 65535");
    script.silent_until(1_000_000);
}

/// A peer that answers probes and takes nothing does not keep a connection that its owner has closed for longer than
/// the user time-out.
#[test]
fn a_shut_window_does_not_hold_a_closed_connection() {
    for (subflows, all) in [(1, true), (1, false), (2, true), (2, false)] {
        let (mut victim, mut forger, id) = sending(subflows);
        let first = forger::keys::first_dsn(forger.peer_key.unwrap());
        let acked = |forger: &Forger| if all { forger.peer_dsn } else { first };
        for f in 0..subflows {
            let answer = shut(&forger, f, acked(&forger), &victim);
            victim.play(&mut forger, |_, _| answer);
        }
        victim.wait(Duration::ZERO);
        victim.endpoint.close(id, victim.now).unwrap();
        hold_off(&mut victim, &mut forger, USER_TIMEOUT - Duration::from_secs(1), acked);
        assert!(!is_over(&victim, id), "{subflows} subflows, all taken: {all}");
        hold_off(&mut victim, &mut forger, Duration::from_secs(2), acked);
        assert!(is_over(&victim, id), "{subflows} subflows, all taken: {all}");
        assert!(victim.events.iter().any(
            |event| matches!(event, Event::Closed { reason: CloseReason::TimedOut, connection } if *connection == id)
        ));
        victim.assert_honest_goes_on();
    }
}

/// An owner that shuts down and releases a connection before it is established leaves nobody who could abort it: the
/// limit holds from the handshake on.
#[test]
fn a_shut_window_does_not_hold_a_connection_that_was_released_before_it_was_established() {
    for mptcp in [true, false] {
        let mut script = Script::connect(ConnectionConfig { mptcp, ..mptcp_config() });
        script.send(500);
        script.shutdown();
        script.command(|endpoint, id, _| endpoint.release(id));
        script.drain();
        script.run_until(1000);
        script.inject(if mptcp { "SA 0 ack 1 win 0 mss 1000 mpc" } else { "SA 0 ack 1 win 0 mss 1000" });
        let mut ms = 1000;
        while ms < 600_000 {
            ms += 100;
            script.run_until(ms);
            for _ in script.drain() {
                script.inject(if mptcp { "A 1 ack 1 dack 1 win 0" } else { "A 1 ack 1 win 0" });
            }
            let is_held = script.endpoint.footprint().connections > 0;
            assert!(is_held || ms > 300_000, "the peer has the user time-out, and got {ms} ms; MPTCP: {mptcp}");
        }
        script.assert_nothing_left(0);
    }
}

/// A peer that has everything and has ended its stream does not keep a subflow by never acknowledging what is on it.
#[test]
fn a_shut_window_does_not_hold_a_subflow_of_a_finished_connection() {
    let mut script = Script::accepted();
    script.send(500);
    script.close();
    script.inject("A 1 ack 1 dack 502 dfin 1 win 0");
    assert_eq!(script.closed(), Some(CloseReason::Finished));
    for _ in 0..100 {
        script.run_for(10_000);
        script.drain();
        script.inject("A 1 ack 1 dack 502 win 0");
    }
    script.assert_nothing_left(0);
}
