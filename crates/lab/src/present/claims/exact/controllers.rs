//! Behaviour of coupled controllers, computed by calling them: their growth at given windows, and the windows at which
//! growth and loss balance.

use transport::SubflowId;
use transport::congestion::{AckSample, CongestionController, DeliverySample, PathView, Paths, build};
use units::{Duration, Instant};

use crate::measure::metrics::jain_index;

/// Octets of a segment.
const MSS: u32 = 1000;
/// Share of the round-trip time spent in queues: small windows stay below mVeno's three segments.
const QUEUED: f64 = 0.01;
/// mVeno's threshold beta, segments.
const BETA: f64 = 3.0;

/// A path with its loss rates: by congestion, and at random.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Lossy {
    /// x.
    pub congestion: f64,
    /// y.
    pub random: f64,
}

impl Lossy {
    /// p.
    fn loss(self) -> f64 {
        1.0 - (1.0 - self.congestion) * (1.0 - self.random)
    }

    /// Q: share of the losses that are due to congestion.
    fn congested(self) -> f64 {
        self.congestion / self.loss()
    }

    /// E: the average part of the window that a loss removes (mVeno equation (5)).
    fn decrease(self) -> f64 {
        0.2 + 0.3 * self.congested()
    }
}

/// A path with a window in segments and a round-trip time.
fn view(id: usize, window: f64, rtt: Duration) -> PathView {
    let queued = Duration::from_nanos((rtt.as_nanos() as f64 * QUEUED) as u64);
    PathView {
        id: SubflowId(id as u16),
        mss: MSS,
        cwnd: (window * f64::from(MSS)) as u64,
        ssthresh: 2 * u64::from(MSS),
        in_flight: (window * f64::from(MSS)) as u64,
        srtt: Some(rtt),
        latest_rtt: Some(rtt),
        min_rtt: Some(rtt.saturating_sub(queued)),
        in_recovery: false,
        competition: None,
    }
}

/// Growth per segment acknowledged on the path at `index`, segments.
fn growth(controller: &mut dyn CongestionController, paths: &[PathView], index: usize) -> f64 {
    let (subflow, now) = (paths[index].id, Instant::ZERO);
    let ack = AckSample { subflow, now, acked_bytes: MSS.into(), rtt: None, cwnd_limited: true };
    controller.on_ack(&ack, Paths(paths)).as_q16() as f64 / 65536.0 / f64::from(MSS)
}

/// Creates the controller called `name` with a subflow on each path.
fn controller(name: &str, paths: &[PathView]) -> Option<Box<dyn CongestionController>> {
    let mut controller = build(&name.parse().ok()?).ok()?;
    for count in 1..=paths.len() {
        controller.subflow_added(paths[count - 1].id, Paths(&paths[..count]));
    }
    Some(controller)
}

/// Growth of a controller over that of LIA without competition, on the path where it differs most from 1; paths are
/// windows in segments and round-trip times in ms.
pub(in super::super) fn growth_over_lia(name: &str, paths: &[(u32, u64)]) -> Option<f64> {
    let views: Vec<PathView> = paths
        .iter()
        .enumerate()
        .map(|(id, (window, rtt_ms))| view(id, f64::from(*window), Duration::from_millis(*rtt_ms)))
        .collect();
    let ratio = |index| {
        let (mut new, mut lia) = (controller(name, &views)?, controller("lia", &views)?);
        Some(growth(new.as_mut(), &views, index) / growth(lia.as_mut(), &views, index))
    };
    let ratios: Option<Vec<f64>> = (0..views.len()).map(ratio).collect();
    ratios?.into_iter().max_by(|one, other| (one - 1.0).abs().total_cmp(&(other - 1.0).abs()))
}

/// mVeno's weights delta at `windows`, with shares `congested` of congestion among the losses: equation (13) as used in
/// the proof.
fn deltas(windows: &[f64], congested: &[f64]) -> Option<Vec<f64>> {
    let rtt = Duration::from_millis(100);
    let views: Vec<_> = windows.iter().enumerate().map(|(id, window)| view(id, *window, rtt)).collect();
    let mut mveno = controller("mveno-proof", &views)?;
    for (path, congested) in views.iter().zip(congested) {
        // Equation (4), solved for the largest window seen. Without samples, a round yields no more information.
        let largest = BETA / QUEUED / (1.0 - congested.min(0.9999));
        let seen = view(usize::from(path.id.0), largest, rtt);
        let with_seen: Vec<_> = views.iter().map(|view| if view.id == seen.id { seen } else { *view }).collect();
        mveno.on_round(path.id, Instant::ZERO, Paths(&with_seen));
        let sample =
            DeliverySample { subflow: path.id, now: Instant::ZERO, delivered_bytes: MSS.into(), rtt: Some(rtt) };
        mveno.on_delivery(&sample);
        mveno.on_round(path.id, Instant::ZERO, Paths(&views));
    }
    Some((0..views.len()).map(|index| growth(mveno.as_mut(), &views, index) * windows[index]).collect())
}

/// mVeno's window over equal paths with these losses, segments: equations (13) and (14) at the windows (15) of Veno.
fn mveno_windows(paths: &[Lossy]) -> Option<Vec<f64>> {
    let veno: Vec<f64> = paths.iter().map(|path| (1.0 / (path.decrease() * path.loss())).sqrt()).collect();
    let congested: Vec<f64> = paths.iter().map(|path| path.congested()).collect();
    let windows = deltas(&veno, &congested)?.into_iter().zip(paths);
    Some(windows.map(|(delta, path)| (delta / (path.decrease() * path.loss())).sqrt()).collect())
}

/// LIA's windows over two equal paths with these loss rates, segments: where each grows as much as it loses, p w / 2.
/// Both grow equally, so windows are in inverse proportion to loss rates; `None` if LIA does not confirm this.
fn lia_windows(losses: [f64; 2]) -> Option<[f64; 2]> {
    let rtt = Duration::from_millis(100);
    let windows = |scale: f64| losses.map(|loss| scale / loss);
    let balance = |scale: f64, path: usize| {
        let [first, second] = windows(scale);
        let views = [view(0, first, rtt), view(1, second, rtt)];
        Some(growth(controller("lia", &views)?.as_mut(), &views, path) / (losses[path] * windows(scale)[path] / 2.0))
    };
    let (mut low, mut high) = (1e-4, 1.0);
    for _ in 0..40 {
        let scale = (low + high) / 2.0;
        *(if balance(scale, 0)? > 1.0 { &mut low } else { &mut high }) = scale;
    }
    let agrees = (balance(low, 1)? - 1.0).abs() < 0.01;
    agrees.then(|| windows(low))
}

/// LIA's window over each of two equal paths with this loss rate, segments.
pub(in super::super) fn lia_window(loss: f64) -> Option<f64> {
    lia_windows([loss; 2]).map(|[window, _]| window)
}

/// mVeno's window over each of two equal paths, segments.
pub(in super::super) fn mveno_window(path: Lossy) -> Option<f64> {
    mveno_windows(&[path; 2])?.first().copied()
}

/// Jain's index over the windows of mVeno's two subflows.
pub(in super::super) fn jain_of_mveno(paths: [Lossy; 2]) -> Option<f64> {
    jain_index(&mveno_windows(&paths)?)
}

/// Jain's index over the windows of LIA's two subflows.
pub(in super::super) fn jain_of_lia(paths: [Lossy; 2]) -> Option<f64> {
    jain_index(&lia_windows(paths.map(Lossy::loss))?)
}

/// mVeno's weight on each of `count` equal paths.
pub(in super::super) fn delta_of_equals(count: usize) -> Option<f64> {
    deltas(&vec![25.0; count], &vec![0.4; count])?.into_iter().reduce(f64::max)
}
