//! The path collector (PCDer) at the sender of data (section 4.2): takes reports; yields rates, rounds, probes and the
//! choice of paths.
//!
//! A receiver's statement about a path holds until no report has arrived for four retransmission time-outs. The path is
//! then treated as if there had been no report, and the connection's congestion controller governs it again. If a peer
//! or a middlebox stops speaking MPTCP-rec, plain MPTCP remains.

use arrayvec::ArrayVec;
use units::{Duration, Instant};
use wire::mptcp::{PathId, RateReport, Round};

use super::ReceiverCentric;
use super::blocking::BlockingMonitor;
use super::path_list::{Choice, PathList};
pub(crate) use super::rate_bounds::PathFacts;
use super::rate_bounds::RateBounds;
use crate::SubflowId;

/// Retransmission time-outs for which a wish holds.
const WISH_HOLDS_RTOS: u64 = 4;

#[derive(Debug)]
struct Path {
    id: PathId,
    subflow: SubflowId,
    /// Round of the last report accepted.
    round: u8,
    timestamp_ms: Option<u32>,
    rate_bytes_per_s: Option<u64>,
    /// When the rate expires.
    forget_at: Instant,
    bounds: RateBounds,
    rtt: Duration,
    is_unused: bool,
    probe_at: Instant,
}

/// All paths of one sender of data.
#[derive(Debug)]
pub(crate) struct PathCollector {
    paths: ArrayVec<Path, { PathId::COUNT as usize }>,
    monitor: BlockingMonitor,
    list: PathList,
    round_ends_at: Instant,
}

impl PathCollector {
    pub(crate) fn new(settings: ReceiverCentric) -> Self {
        Self {
            paths: ArrayVec::new(),
            monitor: BlockingMonitor::default(),
            list: PathList::new(settings.reading, settings.clear_rounds),
            round_ends_at: Instant::ZERO,
        }
    }

    /// Adds a subflow that is ready for data. Beyond 16 at once, subflows get no identifier and behave as without
    /// MPTCP-rec.
    pub(crate) fn add(&mut self, subflow: SubflowId, acked_bytes: u64, now: Instant) {
        let is_free = |id: &PathId| self.paths.iter().all(|path| path.id != *id);
        let Some(id) = (0..PathId::COUNT).filter_map(PathId::new).find(is_free) else { return };
        self.paths.push(Path {
            id,
            subflow,
            round: 0,
            timestamp_ms: None,
            rate_bytes_per_s: None,
            forget_at: Instant::FAR_FUTURE,
            bounds: RateBounds::new(acked_bytes, now),
            rtt: Duration::ZERO,
            is_unused: false,
            probe_at: Instant::FAR_FUTURE,
        });
    }

    /// Removes a subflow that no longer carries data.
    pub(crate) fn remove(&mut self, subflow: SubflowId) {
        self.paths.retain(|path| path.subflow != subflow);
        if self.paths.iter().all(|path| path.is_unused) {
            self.paths.iter_mut().for_each(|path| (path.is_unused, path.probe_at) = (false, Instant::FAR_FUTURE));
        }
    }

    fn path(&self, subflow: SubflowId) -> Option<&Path> {
        self.paths.iter().find(|path| path.subflow == subflow)
    }

    /// Returns the subflow that a report concerns.
    pub(crate) fn subflow(&self, id: PathId) -> Option<SubflowId> {
        self.paths.iter().find(|path| path.id == id).map(|path| path.subflow)
    }

    /// Returns the round that the data of a subflow carry.
    pub(crate) fn round(&self, subflow: SubflowId) -> Option<Round> {
        self.path(subflow).map(|path| Round { path: path.id, id: path.round })
    }

    /// Returns the octets per second that the receiver wants on a subflow, bounded.
    pub(crate) fn rate_bytes_per_s(&self, subflow: SubflowId) -> Option<u64> {
        self.path(subflow)?.rate_bytes_per_s
    }

    /// Whether the subflow gets no new data while other subflows exist.
    pub(crate) fn is_unused(&self, subflow: SubflowId) -> bool {
        self.path(subflow).is_some_and(|path| path.is_unused)
    }

    /// Accepts a report unless a later one has already arrived. Starts a new round.
    pub(crate) fn on_report(&mut self, report: &RateReport, facts: &PathFacts, now: Instant) {
        let Some(path) = self.paths.iter_mut().find(|path| path.id == report.path) else { return };
        let is_late = |last: u32| report.timestamp_ms.wrapping_sub(last) > u32::MAX / 2;
        if path.timestamp_ms.is_some_and(is_late) {
            return;
        }
        path.timestamp_ms = Some(report.timestamp_ms);
        path.round = report.round;
        path.rtt = facts.rtt;
        if report.desired_bytes_per_s > 0 {
            path.rate_bytes_per_s = Some(path.bounds.bound(report.desired_bytes_per_s, facts, now));
            path.forget_at = now + facts.rto.saturating_mul(WISH_HOLDS_RTOS);
        }
    }

    /// Decides once a round (the round-trip time of the slowest path) which paths are used. Returns true if it decided.
    pub(crate) fn choose_paths(&mut self, window_bytes: u64, now: Instant) -> bool {
        if now < self.round_ends_at {
            return false;
        }
        let slowest = self.paths.iter().map(|path| path.rtt).max().unwrap_or_default();
        self.round_ends_at = now + slowest;
        let mut choices: ArrayVec<Choice, { PathId::COUNT as usize }> = self
            .paths
            .iter()
            .map(|path| Choice { rate_bytes_per_s: path.rate_bytes_per_s, is_unused: path.is_unused })
            .collect();
        self.list.on_round(self.monitor.on_round(window_bytes), &mut choices);
        for (path, choice) in self.paths.iter_mut().zip(choices) {
            if path.is_unused != choice.is_unused {
                path.is_unused = choice.is_unused;
                path.probe_at = if choice.is_unused { now + path.rtt } else { Instant::FAR_FUTURE };
            }
        }
        true
    }

    /// When [`Self::forget_old`] or [`Self::next_probe`] has work to do.
    pub(crate) fn next_timeout(&self) -> Instant {
        let times = self.paths.iter().map(|path| path.forget_at.min(path.probe_at));
        times.fold(Instant::FAR_FUTURE, Instant::min)
    }

    /// Expires the wish of a subflow without recent reports, which then counts as any other. Returns that subflow.
    pub(crate) fn forget_old(&mut self, now: Instant) -> Option<SubflowId> {
        let path = self.paths.iter_mut().find(|path| path.forget_at <= now)?;
        (path.rate_bytes_per_s, path.is_unused) = (None, false);
        (path.forget_at, path.probe_at) = (Instant::FAR_FUTURE, Instant::FAR_FUTURE);
        Some(path.subflow)
    }

    /// Returns an unused subflow whose probe is due. There is one probe a round-trip time, to keep its rate known. The
    /// connection skips probes that would overlap with others.
    pub(crate) fn next_probe(&mut self, now: Instant) -> Option<SubflowId> {
        let path = self.paths.iter_mut().find(|path| path.is_unused && path.probe_at <= now)?;
        path.probe_at = now + path.rtt.max(Duration::from_millis(1));
        Some(path.subflow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: SubflowId = SubflowId(40);
    const B: SubflowId = SubflowId(41);

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn collector() -> PathCollector {
        let mut collector = PathCollector::new(ReceiverCentric::default());
        collector.add(A, 0, at(0));
        collector.add(B, 0, at(0));
        collector
    }

    fn report(path: u8, timestamp_ms: u32, desired_bytes_per_s: u32) -> RateReport {
        let held = ArrayVec::new();
        RateReport { path: PathId::new(path).unwrap(), round: 9, timestamp_ms, desired_bytes_per_s, held }
    }

    fn facts() -> PathFacts {
        let (rtt, rto) = (Duration::from_millis(100), Duration::from_millis(300));
        PathFacts { acked_bytes: 0, packet_bytes: 1000, initial_packets: 10, rtt, rto }
    }

    #[test]
    fn a_report_sets_round_and_rate_of_its_path() {
        let mut collector = collector();
        assert_eq!(collector.round(A).map(|round| (round.path.number(), round.id)), Some((0, 0)));
        collector.on_report(&report(1, 5, 50_000), &facts(), at(10));
        assert_eq!((collector.rate_bytes_per_s(A), collector.rate_bytes_per_s(B)), (None, Some(50_000)));
        assert_eq!(collector.round(B).map(|round| (round.path.number(), round.id)), Some((1, 9)));
        assert_eq!(collector.subflow(PathId::new(1).unwrap()), Some(B));
        assert_eq!(collector.subflow(PathId::new(2).unwrap()), None);
    }

    #[test]
    fn a_report_that_was_overtaken_means_nothing() {
        let mut collector = collector();
        collector.on_report(&report(0, 3, 50_000), &facts(), at(10));
        collector.on_report(&report(0, u32::MAX - 2, 90_000), &facts(), at(11));
        assert_eq!(collector.rate_bytes_per_s(A), Some(50_000));
        collector.on_report(&report(0, 4, 0), &facts(), at(12));
        assert_eq!(collector.rate_bytes_per_s(A), Some(50_000), "zero is no wish");
    }

    #[test]
    fn silence_ends_the_rule_of_the_receiver() {
        let mut collector = collector();
        collector.on_report(&report(0, 1, 50_000), &facts(), at(0));
        assert_eq!(collector.next_timeout(), at(1200), "four times 300 ms");
        assert_eq!(collector.forget_old(at(1199)), None);
        assert_eq!(collector.forget_old(at(1200)), Some(A));
        assert_eq!((collector.rate_bytes_per_s(A), collector.forget_old(at(1200))), (None, None));
    }

    #[test]
    fn an_unused_path_is_probed_every_round_trip_time() {
        let mut collector = collector();
        collector.on_report(&report(0, 1, 50_000), &facts(), at(0));
        collector.on_report(&report(1, 1, 90_000), &facts(), at(0));
        assert!(collector.choose_paths(300, at(0)));
        assert!(!collector.choose_paths(200, at(99)), "one round is 100 ms");
        assert!(collector.choose_paths(200, at(100)));
        assert!(collector.is_unused(A) && !collector.is_unused(B));
        assert_eq!((collector.next_probe(at(199)), collector.next_probe(at(200))), (None, Some(A)));
        assert_eq!((collector.next_probe(at(200)), collector.next_probe(at(300))), (None, Some(A)));
        collector.remove(B);
        assert!(!collector.is_unused(A), "the last path is used");
        assert_eq!(
            collector.next_timeout(),
            at(1200),
            "a path in use waits for no probe, only for the end of its wish"
        );
    }

    #[test]
    fn names_are_given_again_and_run_out_at_sixteen() {
        let mut collector = collector();
        (0..20).for_each(|number| collector.add(SubflowId(number), 0, at(0)));
        assert_eq!(collector.round(SubflowId(14)), None);
        collector.remove(A);
        collector.add(SubflowId(14), 0, at(0));
        assert_eq!(collector.round(SubflowId(14)).map(|round| round.path.number()), Some(0));
    }
}
