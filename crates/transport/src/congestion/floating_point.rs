//! Checks the fixed-point controllers against their equations, in floating point as the papers print them, over random
//! windows and round-trip times.

use proptest::prelude::*;
use units::{Duration, Instant};

use super::testing::{MSS, ack, delivery, loss};
use super::{CongestionController, ControllerSpec, DeliverySample, PathView, Paths, build};
use crate::SubflowId;

/// A path in the terms of the papers.
#[derive(Clone, Copy, Debug)]
struct Path {
    /// Window, segments.
    w: f64,
    /// Round-trip time, seconds.
    rtt: f64,
    /// Smallest round-trip time, seconds.
    base_rtt: f64,
    /// Segments delivered since the last loss.
    l: f64,
}

impl Path {
    fn x(&self) -> f64 {
        self.w / self.rtt
    }

    /// Segments in the queue.
    fn backlog(&self) -> f64 {
        self.w * (self.rtt - self.base_rtt) / self.rtt
    }
}

/// One to five paths: windows of whole segments, round-trip times of whole milliseconds.
fn paths() -> impl Strategy<Value = Vec<Path>> {
    let path = (4_u32..2000, 5_u32..800, 0_u32..=100, 1_u32..100_000).prop_map(|(w, rtt_ms, queued, l)| {
        let rtt = f64::from(rtt_ms) / 1000.0;
        let base_rtt = (f64::from(rtt_ms) * (1.0 - f64::from(queued) / 200.0)).ceil() / 1000.0;
        Path { w: w.into(), rtt, base_rtt, l: l.into() }
    });
    proptest::collection::vec(path, 1..6)
}

fn views(paths: &[Path]) -> Vec<PathView> {
    let view = |(path, id): (&Path, u16)| {
        let rtt = Some(Duration::from_secs_f64(path.rtt));
        PathView {
            id: SubflowId(id),
            mss: MSS as u32,
            cwnd: path.w as u64 * MSS,
            ssthresh: 2 * MSS,
            in_flight: path.w as u64 * MSS,
            srtt: rtt,
            latest_rtt: rtt,
            min_rtt: Some(Duration::from_secs_f64(path.base_rtt)),
            in_recovery: false,
            competition: None,
        }
    };
    paths.iter().zip(0..).map(view).collect()
}

/// Returns a controller that has seen `paths`: a round on each, with `l` segments delivered.
fn controller(name: &str, paths: &[Path]) -> Box<dyn CongestionController> {
    let mut controller = build(&ControllerSpec::named(name)).unwrap();
    let views = views(paths);
    for (view, path) in views.iter().zip(paths) {
        controller.subflow_added(view.id, Paths(&views));
        let sample = DeliverySample { rtt: view.srtt, ..delivery(view.id.0, path.l as u64 * MSS) };
        controller.on_delivery(&sample);
    }
    for view in &views {
        controller.on_round(view.id, Instant::ZERO, Paths(&views));
    }
    controller
}

/// Returns the segments gained by acknowledging one on the first path, and the window that a loss leaves there.
fn answers(name: &str, paths: &[Path]) -> (f64, f64) {
    let (mut controller, views) = (controller(name, paths), views(paths));
    let gained = controller.on_ack(&ack(0, MSS), Paths(&views)).as_q16() as f64 / 65536.0 / MSS as f64;
    (gained, controller.on_loss(&loss(0), Paths(&views)) as f64 / MSS as f64)
}

/// Compares to within a part in a thousand, plus a millionth of a segment for the truncation of fixed point.
fn assert_agrees(found: f64, expected: f64) -> Result<(), TestCaseError> {
    let tolerance = expected.abs() * 1e-3 + 1e-6;
    prop_assert!((found - expected).abs() <= tolerance, "fixed point {found}, floating point {expected}");
    Ok(())
}

fn sum(paths: &[Path], term: impl Fn(&Path) -> f64) -> f64 {
    paths.iter().map(term).sum()
}

fn largest(paths: &[Path], term: impl Fn(&Path) -> f64) -> f64 {
    paths.iter().map(term).fold(f64::MIN, f64::max)
}

/// OLIA's increase on the first path.
fn olia_increase(paths: &[Path]) -> f64 {
    let quality = |path: &Path| path.l / (path.rtt * path.rtt);
    let (best, widest) = (largest(paths, quality), largest(paths, |path| path.w));
    // The products that decide are exact in integers, so equal qualities need a tolerance here.
    let is_best = |path: &Path| quality(path) >= best * (1.0 - 1e-12);
    let in_max = sum(paths, |path| f64::from(path.w == widest));
    let collected = sum(paths, |path| f64::from(is_best(path) && path.w != widest));
    let (k, first) = (paths.len() as f64, &paths[0]);
    let alpha = if collected == 0.0 {
        0.0
    } else if first.w == widest {
        -1.0 / (k * in_max)
    } else if is_best(first) {
        1.0 / (k * collected)
    } else {
        0.0
    };
    first.w / square(first.rtt) / square(sum(paths, Path::x)) + alpha / first.w
}

fn square(x: f64) -> f64 {
    x * x
}

/// P(N > beta), not below the floor.
fn mveno_q(backlog: f64) -> f64 {
    (1.0 - (3.0 / backlog).min(1.0)).max(655.0 / 65536.0)
}

/// T_s and Q_s as in the proof.
fn mveno_proof(paths: &[Path]) -> (f64, f64) {
    (largest(paths, |path| path.rtt), -largest(paths, |path| -mveno_q(path.backlog())))
}

/// T_s and Q_s as printed in algorithm 1; there is one sample of each path.
fn mveno_algorithm_1(paths: &[Path]) -> (f64, f64) {
    let rtt = sum(paths, |path| path.rtt) / paths.len() as f64;
    let base_rtt = -largest(paths, |path| -path.base_rtt);
    (rtt, mveno_q(largest(paths, |path| path.w) * (rtt - base_rtt) / rtt))
}

/// Returns mVeno's delta on the first path, and the relative error that fixed point may cause. Delta and both
/// probabilities are truncated to 2^-16, and the probabilities come from a backlog in whole octets. Near a zero of the
/// divisor, small errors have large effects.
fn mveno_delta(paths: &[Path], (t_s, q_s): (f64, f64)) -> (f64, f64) {
    const UNIT: f64 = 1.0 / 65536.0;
    let decrease = |q: f64| 0.2 + 0.3 * q;
    let (first, y_s) = (&paths[0], sum(paths, Path::x));
    let q = mveno_q(first.backlog());
    let extent = decrease(q_s) * square(t_s * y_s);
    let divisor = q * (1.0 + extent) - q_s;
    let delta = q_s * decrease(q) * square(first.w) / divisor;
    let delta = if divisor > 0.0 { delta.clamp(655.0 / 65536.0, 1.0) } else { 1.0 };
    // 1 - q = 3 / backlog, so an octet of backlog is (1 - q)^2 / 3 MSS of q.
    let cut = |q: f64| UNIT + square(1.0 - q) / (3.0 * MSS as f64);
    // The derivatives of ln(delta) by Q_r and by Q_s, from above: decrease(Q_s) changes by at most 3/2 of itself.
    let (by_q, by_q_s) = ((1.0 + extent) / divisor.abs(), 1.0 / q_s + (1.0 + 1.5 * q * extent) / divisor.abs());
    (delta, UNIT / delta + cut(q) * by_q + cut(q_s) * by_q_s)
}

proptest! {
    #[test]
    fn lia(paths in paths()) {
        let alpha = sum(&paths, |path| path.w) * largest(&paths, |path| path.w / square(path.rtt))
            / square(sum(&paths, Path::x));
        let (gained, left) = answers("lia", &paths);
        assert_agrees(gained, (alpha / sum(&paths, |path| path.w)).min(1.0 / paths[0].w))?;
        assert_agrees(left, paths[0].w / 2.0)?;
    }

    #[test]
    fn olia(paths in paths()) {
        let (gained, left) = answers("olia", &paths);
        assert_agrees(gained, olia_increase(&paths))?;
        assert_agrees(left, paths[0].w / 2.0)?;
    }

    #[test]
    fn balia(paths in paths()) {
        let (first, q) = (&paths[0], largest(&paths, Path::x) / paths[0].x());
        let (gained, left) = answers("balia", &paths);
        assert_agrees(
            gained,
            first.x() / (first.rtt * square(sum(&paths, Path::x))) * (1.0 + q) / 2.0 * (4.0 + q) / 5.0,
        )?;
        // Whole octets.
        prop_assert!((left - (first.w - first.w / 2.0 * q.min(1.5))).abs() < 3.0 / MSS as f64 + first.w * 1e-4);
    }

    #[test]
    fn veno(paths in paths()) {
        let first = &paths[0];
        prop_assume!((first.backlog() - 3.0).abs() > 1e-3);
        let is_congested = first.backlog() >= 3.0;
        let (gained, left) = answers("veno", &paths);
        assert_agrees(gained, if is_congested { 0.5 / first.w } else { 1.0 / first.w })?;
        assert_agrees(left, if is_congested { first.w / 2.0 } else { 0.8 * first.w })?;
    }

    #[test]
    fn mpveno(paths in paths()) {
        let first = &paths[0];
        let threshold = 3.0 * first.x() / sum(&paths, Path::x);
        prop_assume!((first.backlog() - threshold).abs() > 1e-2);
        let (gained, left) = answers("mpveno", &paths);
        assert_agrees(gained, olia_increase(&paths))?;
        assert_agrees(left, if first.backlog() >= threshold { first.w / 2.0 } else { 0.8 * first.w })?;
    }

    #[test]
    fn mveno(paths in paths()) {
        let first = &paths[0];
        prop_assume!((first.backlog() - 3.0).abs() > 1e-3);
        let halving = if first.backlog() >= 3.0 { 2.0 } else { 1.0 };
        let (algorithm_1, proof) = (mveno_algorithm_1(&paths), mveno_proof(&paths));
        let own_rtt = (first.rtt, algorithm_1.1);
        for (name, whole) in [("mveno", algorithm_1), ("mveno-proof", proof), ("mveno-own-rtt", own_rtt)] {
            let (gained, left) = answers(name, &paths);
            let (delta, cut) = mveno_delta(&paths, whole);
            // Near a pole no two computations agree.
            if cut < 0.05 {
                let expected = delta / first.w / halving;
                let tolerance = expected * (1e-3 + cut) + 1e-6;
                prop_assert!((gained - expected).abs() <= tolerance, "{name}: {gained}, not {expected}");
            }
            assert_agrees(left, if halving > 1.0 { first.w / 2.0 } else { 0.8 * first.w })?;
        }
    }

    #[test]
    fn mveno_never_gains_more_than_one_veno(paths in paths()) {
        // Claim C59, over any state: delta is at most 1.
        for name in ["mveno", "mveno-proof", "mveno-own-rtt"] {
            prop_assert!(answers(name, &paths).0 <= 1.0 / paths[0].w + 1e-6);
        }
    }

    #[test]
    fn wvegas_shares_its_queue_by_rates(paths in paths()) {
        // Enough rounds to measure: the target of the first path after one round on each.
        let mut controller = build(&ControllerSpec::named("wvegas")).unwrap();
        let views = views(&paths);
        // The first path comes last, when it knows the rates of all others.
        let mut moved = None;
        for view in views.iter().rev() {
            for _ in 0..4 {
                controller.on_delivery(&DeliverySample { rtt: view.srtt, ..delivery(view.id.0, MSS) });
            }
            controller.on_ack(&ack(view.id.0, MSS), Paths(&views));
            moved = controller.on_round(view.id, Instant::ZERO, Paths(&views));
        }
        let backlog = |path: &Path| (path.backlog() + 1e-9).floor();
        let known = sum(&paths, |path| if backlog(path) >= 2.0 { path.x() } else { 0.0 });
        let first = &paths[0];
        let share = 10.0 * first.x() / known.max(1e-9);
        // The decision is on whole numbers: avoid the edges, where rounding decides.
        let is_edge = |value: f64| (value - value.round()).abs() < 1e-3;
        if is_edge(first.backlog()) || is_edge(share) {
            return Ok(());
        }
        let alpha = if backlog(first) >= 2.0 { share.floor().max(2.0) } else { 2.0 };
        let step = if backlog(first) > alpha { -1.0 } else if backlog(first) < alpha { 1.0 } else { 0.0 };
        let expected = (first.w + step).max(2.0);
        prop_assert_eq!(moved.map_or(first.w, |set| set.cwnd as f64 / MSS as f64), expected);
    }
}
