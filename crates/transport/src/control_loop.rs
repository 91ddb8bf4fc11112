//! The control loop of congestion (RFC 5681): passes a TCB's losses, time-outs and round trips to a controller, and
//! applies the controller's answers.
//!
//! ```text
//! ACKs, timers -> Tcb -> AckOutcome, Expired -> this loop -> controller
//!                 Tcb <- window, threshold, pacing rate <- this loop <- controller
//! ```
//!
//! A connection with its subflows and the leg of a relay are both [`ControlledPaths`]: a connection shows its
//! controller all siblings, a leg a single path. The owner handles all other consequences of an ACK or a time-out:
//! reinjection, events, the view of schedulers.

use units::Instant;

use crate::SubflowId;
use crate::congestion::{
    AckSample, Competition, CongestionController, CongestionSignal, DeliverySample, LossSample, PathView, Paths,
};
use crate::tcp::{AckOutcome, Expired, Tcb};

/// Who decides how fast a path sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// The controller decides.
    Controller,
    /// The controller decides the window, and the peer the pace.
    PeerPaces,
    /// The peer decides, and answers losses with the rate that it asks for.
    Peer,
}

/// Paths that share a controller. Each has a TCB and an identifier that stays the same while others come and go.
pub(crate) trait ControlledPaths {
    /// Returns the TCB of an existing path.
    fn tcb(&mut self, id: SubflowId) -> &mut Tcb;

    /// Returns the controller, for calls that need no view.
    fn controller(&mut self) -> &mut dyn CongestionController;

    /// Calls `ask` with the controller and its view: among the paths that it knows, the one in question and those that
    /// carry data or may.
    fn with_paths<T>(&mut self, asked: SubflowId, ask: impl FnOnce(&mut dyn CongestionController, Paths<'_>) -> T)
    -> T;

    /// Whether the controller knows the path. It does not before the end of the handshake.
    fn is_admitted(&self, id: SubflowId) -> bool;

    /// Returns who decides about the path.
    fn rule(&self, id: SubflowId) -> Rule;
}

/// Returns what controllers may see of a path.
pub(crate) fn path_view(id: SubflowId, tcb: &Tcb, competition: Option<Competition>) -> PathView {
    let (window, rtt) = (tcb.window(), tcb.rtt());
    PathView {
        id,
        mss: tcb.payload_max(),
        cwnd: window.cwnd(),
        ssthresh: window.ssthresh(),
        in_flight: tcb.in_flight(),
        srtt: rtt.srtt(),
        latest_rtt: rtt.latest(),
        min_rtt: rtt.min(),
        in_recovery: window.in_recovery(),
        competition,
    }
}

/// Responds to an ACK.
pub(crate) fn on_ack(paths: &mut impl ControlledPaths, id: SubflowId, ack: &AckOutcome, now: Instant) {
    if !paths.is_admitted(id) {
        return;
    }
    if !ack.idle.is_zero() {
        paths.controller().on_idle(id, ack.idle);
    }
    if ack.delivered_bytes > 0 || ack.rtt.is_some() {
        let (delivered_bytes, rtt) = (ack.delivered_bytes, ack.rtt);
        paths.controller().on_delivery(&DeliverySample { subflow: id, now, delivered_bytes, rtt });
    }
    if let Some(signal) = ack.congestion {
        on_congestion(paths, id, signal, ack, now);
    } else if ack.growth_bytes > 0 && paths.rule(id) != Rule::Peer {
        if ack.cwnd_limited {
            grow_window(paths, id, ack, now);
        } else {
            paths.controller().on_unused_window(id, now);
        }
    }
    if ack.round_ended && paths.rule(id) != Rule::Peer {
        let set = paths.with_paths(id, |controller, view| controller.on_round(id, now, view));
        if let Some(set) = set {
            paths.tcb(id).window_mut().set(set.cwnd, set.ssthresh);
        }
        follow_pace(paths, id);
    }
    if ack.round_ended {
        paths.tcb(id).tell_congestion(None);
    }
}

/// Runs the timers of a TCB that are due, and responds to the results. `None` if none was due.
pub(crate) fn on_timeout(paths: &mut impl ControlledPaths, id: SubflowId, now: Instant) -> Option<Expired> {
    let tcb = paths.tcb(id);
    if tcb.next_timeout() > now {
        return None;
    }
    let expired = tcb.on_timeout(now);
    if expired.gave_up {
        return Some(expired);
    }
    if expired.retransmission_timeout {
        let ask = tcb.is_first_timeout() && paths.is_admitted(id);
        let ssthresh = ask.then(|| ssthresh_after_timeout(paths, id, now));
        paths.tcb(id).begin_loss(ssthresh, now);
    } else if let Some(signal) = expired.congestion.filter(|_| paths.is_admitted(id)) {
        let found = AckOutcome { lost_bytes: expired.lost_bytes, ..AckOutcome::default() };
        on_congestion(paths, id, signal, &found, now);
    }
    Some(expired)
}

/// Sets the pace of a path from the controller, unless the peer decides it. Called after every round, and when the
/// controller changes.
pub(crate) fn follow_pace(paths: &mut impl ControlledPaths, id: SubflowId) {
    if paths.rule(id) == Rule::Controller {
        let rate = paths.controller().pacing_rate_bytes_per_s(id);
        paths.tcb(id).set_pacing_rate(rate);
    }
}

fn on_congestion(
    paths: &mut impl ControlledPaths,
    id: SubflowId,
    signal: CongestionSignal,
    ack: &AckOutcome,
    now: Instant,
) {
    let ssthresh = match paths.rule(id) {
        Rule::Peer => paths.tcb(id).window().ssthresh(),
        Rule::Controller | Rule::PeerPaces => {
            let sample = LossSample { subflow: id, now, signal, lost_bytes: ack.lost_bytes };
            paths.with_paths(id, |controller, view| controller.ssthresh_after_loss(&sample, view))
        }
    };
    paths.tcb(id).begin_recovery(ssthresh, ack);
}

fn ssthresh_after_timeout(paths: &mut impl ControlledPaths, id: SubflowId, now: Instant) -> u64 {
    match paths.rule(id) {
        Rule::Peer => paths.tcb(id).window().ssthresh(),
        Rule::Controller | Rule::PeerPaces => {
            paths.with_paths(id, |controller, view| controller.ssthresh_after_timeout(id, now, view))
        }
    }
}

/// Grows the window. The TCB performs slow start itself unless the controller wants it; the octets left over go to the
/// controller.
fn grow_window(paths: &mut impl ControlledPaths, id: SubflowId, ack: &AckOutcome, now: Instant) {
    let mut acked_bytes = ack.growth_bytes;
    let rules_slow_start = paths.controller().rules_slow_start();
    let tcb = paths.tcb(id);
    if tcb.window().in_slow_start() && !rules_slow_start {
        acked_bytes = tcb.slow_start(ack);
    }
    if acked_bytes == 0 {
        return;
    }
    let sample = AckSample { subflow: id, now, acked_bytes, rtt: ack.rtt, cwnd_limited: ack.cwnd_limited };
    let step = paths.with_paths(id, |controller, view| controller.on_ack(&sample, view));
    paths.tcb(id).window_mut().apply(step);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use units::{Duration, SeqNr};

    use super::*;
    use crate::ConnectionConfig;
    use crate::congestion::{WindowSet, WindowStep};
    use crate::tcp::Secrets;

    const ID: SubflowId = SubflowId(7);

    /// Records the calls that it receives.
    #[derive(Default)]
    struct Recorder(Vec<&'static str>);

    impl CongestionController for Recorder {
        fn name(&self) -> &'static str {
            "recorder"
        }

        fn on_delivery(&mut self, _: &DeliverySample) {
            self.0.push("delivery");
        }

        fn on_ack(&mut self, _: &AckSample, _: Paths<'_>) -> WindowStep {
            self.0.push("ack");
            WindowStep::from_bytes(100)
        }

        fn on_idle(&mut self, _: SubflowId, _: Duration) {
            self.0.push("idle");
        }

        fn on_unused_window(&mut self, _: SubflowId, _: Instant) {
            self.0.push("unused");
        }

        fn on_loss(&mut self, loss: &LossSample, _: Paths<'_>) -> u64 {
            self.0.push("loss");
            loss.lost_bytes
        }

        fn on_round(&mut self, _: SubflowId, _: Instant, _: Paths<'_>) -> Option<WindowSet> {
            self.0.push("round");
            None
        }

        fn pacing_rate_bytes_per_s(&self, _: SubflowId) -> Option<u64> {
            Some(1_000_000)
        }
    }

    struct Lone {
        tcb: Tcb,
        controller: Recorder,
        admitted: bool,
        rule: Rule,
    }

    impl Lone {
        fn new(rule: Rule) -> Self {
            let (local, remote) = (([10, 0, 0, 1], 1).into(), ([10, 0, 0, 2], 2).into());
            let secrets = Secrets { iss: SeqNr(0), timestamp_offset: 0 };
            let tcb = Tcb::connect(local, remote, Arc::new(ConnectionConfig::default()), secrets, Instant::ZERO);
            Self { tcb, controller: Recorder::default(), admitted: true, rule }
        }

        fn hear(&mut self, ack: &AckOutcome) -> Vec<&'static str> {
            on_ack(self, ID, ack, Instant::from_millis(1));
            core::mem::take(&mut self.controller.0)
        }
    }

    impl ControlledPaths for Lone {
        fn tcb(&mut self, _: SubflowId) -> &mut Tcb {
            &mut self.tcb
        }

        fn controller(&mut self) -> &mut dyn CongestionController {
            &mut self.controller
        }

        fn with_paths<T>(
            &mut self,
            _: SubflowId,
            ask: impl FnOnce(&mut dyn CongestionController, Paths<'_>) -> T,
        ) -> T {
            let view = [path_view(ID, &self.tcb, None)];
            ask(&mut self.controller, Paths(&view))
        }

        fn is_admitted(&self, _: SubflowId) -> bool {
            self.admitted
        }

        fn rule(&self, _: SubflowId) -> Rule {
            self.rule
        }
    }

    fn growing() -> AckOutcome {
        AckOutcome {
            growth_bytes: 1000,
            delivered_bytes: 1000,
            cwnd_limited: true,
            rtt: Some(Duration::from_millis(10)),
            round_ended: true,
            ..AckOutcome::default()
        }
    }

    #[test]
    fn before_its_admission_a_path_tells_the_controller_nothing() {
        let mut lone = Lone { admitted: false, ..Lone::new(Rule::Controller) };
        let cwnd = lone.tcb.window().cwnd();
        assert!(lone.hear(&growing()).is_empty());
        assert_eq!((lone.tcb.window().cwnd(), lone.tcb.is_paced()), (cwnd, false));
    }

    #[test]
    fn slow_start_is_the_tcbs_and_what_follows_the_controllers() {
        let mut lone = Lone::new(Rule::Controller);
        let cwnd = lone.tcb.window().cwnd();
        assert_eq!(lone.hear(&growing()), ["delivery", "round"]);
        assert_eq!((lone.tcb.window().cwnd(), lone.tcb.is_paced()), (cwnd + 1000, true));
        lone.tcb.window_mut().set(cwnd, cwnd);
        assert_eq!(lone.hear(&growing()), ["delivery", "ack", "round"]);
        assert_eq!(lone.tcb.window().cwnd(), cwnd + 100);
    }

    #[test]
    fn a_loss_asks_for_the_threshold_and_nothing_grows() {
        let mut lone = Lone::new(Rule::Controller);
        let ack = AckOutcome { congestion: Some(CongestionSignal::Loss), lost_bytes: 50_000, ..growing() };
        assert_eq!(lone.hear(&ack), ["delivery", "loss", "round"]);
        assert_eq!(lone.tcb.window().ssthresh(), 50_000);
        // Nothing is outstanding that could be repaired.
        assert!(!lone.tcb.window().in_recovery() && lone.tcb.window().cwnd() <= 50_000);
    }

    #[test]
    fn what_comes_while_the_window_is_not_used_up_lets_nothing_grow() {
        let mut lone = Lone::new(Rule::Controller);
        let unused = AckOutcome { cwnd_limited: false, ..growing() };
        let cwnd = lone.tcb.window().cwnd();
        // In slow start too: after idling it leads back to a congestion avoidance whose time goes on.
        for ssthresh in [u64::MAX, cwnd] {
            lone.tcb.window_mut().set(cwnd, ssthresh);
            assert_eq!(lone.hear(&unused), ["delivery", "unused", "round"]);
            assert_eq!(lone.tcb.window().cwnd(), cwnd);
        }
    }

    #[test]
    fn the_controller_hears_of_idle_time_before_the_ack_that_follows_it() {
        let mut lone = Lone::new(Rule::Controller);
        let cwnd = lone.tcb.window().cwnd();
        lone.tcb.window_mut().set(cwnd, cwnd);
        let after = AckOutcome { idle: Duration::from_secs(60), ..growing() };
        assert_eq!(lone.hear(&after), ["idle", "delivery", "ack", "round"]);
    }

    #[test]
    fn a_peer_that_paces_leaves_the_window_to_the_controller() {
        let mut lone = Lone::new(Rule::PeerPaces);
        assert_eq!(lone.hear(&growing()), ["delivery", "round"]);
        assert!(!lone.tcb.is_paced());
    }

    #[test]
    fn where_the_peer_rules_the_controller_only_listens() {
        let mut lone = Lone::new(Rule::Peer);
        let (cwnd, ssthresh) = (lone.tcb.window().cwnd(), lone.tcb.window().ssthresh());
        assert_eq!(lone.hear(&growing()), ["delivery"]);
        assert_eq!((lone.tcb.window().cwnd(), lone.tcb.is_paced()), (cwnd, false));
        let ack = AckOutcome { congestion: Some(CongestionSignal::Loss), lost_bytes: 50_000, ..growing() };
        assert_eq!(lone.hear(&ack), ["delivery"]);
        assert_eq!(lone.tcb.window().ssthresh(), ssthresh, "losses do not lower it");
    }
}
