//! What an observer is shown, beside what the statistics count.

use std::sync::{Arc, Mutex};

use transport::inspection::SubflowTimer;
use transport::observation::{
    CongestionCause, CongestionState, Observation, Observer, Occurrence, ReinjectionCause, State,
};
use transport::{ConnectionConfig, ConnectionId, Endpoint, Event, Received, SubflowId};
use units::Duration;

use crate::pair::{Pair, client_address, pattern, server_address};
use crate::script::{Script, config};

/// Keeps everything that it is shown.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<Observation>>>);

impl Observer for Notes {
    fn observe(&mut self, observation: &Observation) {
        self.0.lock().unwrap().push(observation.clone());
    }
}

impl Notes {
    fn on(endpoint: &mut Endpoint) -> Self {
        let notes = Self::default();
        endpoint.set_observer(Box::new(notes.clone()));
        notes
    }

    fn take(&self) -> Vec<Observation> {
        core::mem::take(&mut self.0.lock().unwrap())
    }

    fn count(&self, is_meant: impl Fn(&Observation) -> bool) -> u64 {
        self.0.lock().unwrap().iter().filter(|observation| is_meant(observation)).count() as u64
    }
}

/// Returns times in ms and changes of state, without metrics.
fn changes(observations: &[Observation]) -> Vec<(u64, Occurrence)> {
    let kept = observations.iter().filter(|seen| !matches!(seen.what, Occurrence::MetricsUpdated(_)));
    kept.map(|seen| (seen.at.as_nanos() / 1_000_000, seen.what.clone())).collect()
}

fn congestion(from: CongestionState, to: CongestionState, cause: CongestionCause) -> Occurrence {
    Occurrence::CongestionStateChanged { from, to, cause }
}

/// A time-out, its repair, and the end of the connection, in order and with their times.
#[test]
fn each_change_is_shown_when_it_happens() {
    let mut script = Script::listen(config());
    let notes = Notes::on(&mut script.endpoint);
    script.inject("S 0 win 65535 mss 1000");
    script.expect("SA 0 ack 1");
    script.run_until(100);
    script.inject("A 1 ack 1");
    let begun = changes(&notes.take());
    let opened = Occurrence::StateChanged { from: State::SynReceived, to: State::Established };
    assert!(matches!(begun[0], (0, Occurrence::SubflowBegun { by_peer: true, backup: false, .. })), "{begun:?}");
    assert!(begun[1..].contains(&(100, opened)), "{begun:?}");
    assert!(matches!(begun.last(), Some((100, Occurrence::Notified(Event::SubflowEstablished { .. })))), "{begun:?}");

    script.send(1000);
    script.expect("A 1+1000 ack 1");
    script.expect_at(400, "A 1+1000 ack 1");
    script.run_until(500);
    script.inject("A 1 ack 1001");
    assert_eq!(
        changes(&notes.take()),
        [
            (400, Occurrence::TimerExpired(SubflowTimer::Retransmit)),
            (
                400,
                congestion(CongestionState::SlowStart, CongestionState::Loss, CongestionCause::RetransmissionTimeout)
            ),
            (500, congestion(CongestionState::Loss, CongestionState::SlowStart, CongestionCause::Repaired)),
        ]
    );
    script.inject("R 1");
    let ended = changes(&notes.take());
    assert!(matches!(ended.last(), Some((500, Occurrence::Notified(Event::Closed { .. })))), "{ended:?}");
}

/// Connections keep their way to the observer, but not the observer itself.
#[test]
fn another_observer_takes_the_place_of_the_first_at_once() {
    let mut script = Script::listen(config());
    let first = Notes::on(&mut script.endpoint);
    script.inject("S 0 win 65535 mss 1000");
    script.expect("SA 0 ack 1");
    script.inject("A 1 ack 1");
    assert!(!first.take().is_empty());
    script.run_until(100);
    let second = Notes::on(&mut script.endpoint);
    assert_eq!(Arc::strong_count(&first.0), 1, "the endpoint holds only one");
    script.run_until(200);
    script.inject("R 1");
    assert_eq!(first.take(), []);
    let seen = second.take();
    let ended = Occurrence::StateChanged { from: State::Established, to: State::Closed };
    assert!(seen.iter().any(|observation| observation.what == ended), "{seen:?}");
    assert!(seen.iter().any(|observation| matches!(observation.what, Occurrence::Notified(_))), "{seen:?}");
    assert!(seen.iter().all(|observation| observation.at.as_nanos() == 200_000_000), "{seen:?}");
}

/// Creates a connection over two paths, whose server is observed.
fn observed(with_observer: bool) -> (Pair, Notes, ConnectionId, ConnectionId) {
    let config = ConnectionConfig { path_manager: "manual".into(), ..ConnectionConfig::default() };
    let mut pair = Pair::new(&[10, 40], config.clone(), 1);
    pair.log = Some(Vec::new());
    let notes = if with_observer { Notes::on(&mut pair.server) } else { Notes::default() };
    let (client, server) = pair.establish(config);
    pair.client.add_subflow(client, client_address(1), server_address(0), false, pair.now).unwrap();
    pair.run_for(Duration::from_secs(1));
    (pair, notes, client, server)
}

/// Sends from server to client over paths that lose and reorder, the first of which dies for two seconds.
fn rough_ride(pair: &mut Pair, client: ConnectionId, server: ConnectionId) {
    pair.loss = 0.001;
    pair.jitter = Duration::from_millis(5);
    let mut written = 0;
    for ms in 0..5000 {
        pair.dark[0] = (1000..3000).contains(&ms);
        written += pair.server.send(server, pattern(written, 2000), pair.now).unwrap() as u64;
        pair.run_for(Duration::from_millis(1));
        while let Received::Data(_) = pair.client.recv(client, usize::MAX, pair.now).unwrap() {}
    }
}

/// Statistics and observations are two accounts of the same things.
#[test]
fn the_observations_add_up_to_the_statistics() {
    let (mut pair, notes, client, server) = observed(true);
    rough_ride(&mut pair, client, server);
    let stats = pair.server.stats(server).unwrap();
    let reinjected = |observation: &Observation| match observation.what {
        Occurrence::DataReinjected { bytes, .. } => bytes,
        _ => 0,
    };
    let all = notes.0.lock().unwrap().clone();
    assert!(stats.reinjected_bytes > 0);
    assert_eq!(all.iter().map(reinjected).sum::<u64>(), stats.reinjected_bytes);
    let moved = |observation: &Observation| {
        let Occurrence::DataReinjected { instead_of, cause, .. } = observation.what else { return false };
        let is_about_others = observation.subject.subflow() == Some(SubflowId(1)) && instead_of == Some(SubflowId(0));
        is_about_others && cause == ReinjectionCause::SubflowTimedOut
    };
    assert!(notes.count(moved) > 0, "data of the dead path go to the other");
    for subflow in &stats.subflows {
        let of_it = |what: fn(&Occurrence) -> bool| {
            notes.count(|observation| observation.subject.subflow() == Some(subflow.id) && what(&observation.what))
        };
        let timeouts = of_it(|what| *what == Occurrence::TimerExpired(SubflowTimer::Retransmit));
        assert_eq!(timeouts, subflow.timeouts, "{subflow:?}");
        let recoveries =
            of_it(|what| matches!(what, Occurrence::CongestionStateChanged { to: CongestionState::Recovery, .. }));
        assert!(0 < recoveries && recoveries <= subflow.congestion_events, "{recoveries} {subflow:?}");
        assert!(of_it(|what| matches!(what, Occurrence::MetricsUpdated(_))) > 10);
        let last = all.iter().rev().find_map(|observation| match observation.what {
            Occurrence::CongestionStateChanged { to, .. } if observation.subject.subflow() == Some(subflow.id) => {
                Some(to)
            }
            _ => None,
        });
        let is_repairing = matches!(last, Some(CongestionState::Recovery | CongestionState::Loss));
        assert_eq!(is_repairing, subflow.in_recovery);
    }
}

/// The same segments leave at the same times whether or not somebody looks.
#[test]
fn an_observer_changes_nothing() {
    let run = |with_observer| {
        let (mut pair, notes, client, server) = observed(with_observer);
        rough_ride(&mut pair, client, server);
        assert_eq!(notes.count(|_| true) > 0, with_observer);
        pair.log
    };
    assert!(run(true) == run(false));
}
