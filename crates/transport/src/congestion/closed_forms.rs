//! Compares mean windows with closed forms from the literature. Every path loses one segment in a fixed number, the
//! model behind the formulas, so no tolerance has to cover chance.

use units::{Duration, Instant};

use super::testing::{MSS, ack_at, loss, path_with_rtt};
use super::{AckSample, Competition, CongestionController, LossSample, PathView, Paths, WindowStep, build};

/// A path that loses every `loss_every`-th segment.
struct LossyPath {
    view: PathView,
    loss_every: u64,
    delivered: u64,
    /// Fraction of an octet of the window, in units of 2^-16.
    fraction_q16: i64,
    next_ack: Instant,
    round_ends: u64,
    /// Time integral of the window, octet-nanoseconds, and the time it covers.
    area: u128,
    time: Duration,
}

impl LossyPath {
    fn new(id: u16, rtt_ms: u64, loss_every: u64) -> Self {
        Self {
            view: path_with_rtt(id, 10, rtt_ms),
            loss_every,
            delivered: 0,
            fraction_q16: 0,
            next_ack: Instant::ZERO,
            round_ends: 10,
            area: 0,
            time: Duration::ZERO,
        }
    }

    /// Time between two ACKs: a window per round trip.
    fn ack_interval(&self) -> Duration {
        self.view.srtt.unwrap_or(Duration::ZERO).mul_div(MSS, self.view.cwnd)
    }

    fn grow(&mut self, step: WindowStep) {
        let total = self.fraction_q16 + step.as_q16();
        self.view.cwnd = self.view.cwnd.saturating_add_signed(total >> 16);
        self.fraction_q16 = total & 0xffff;
    }

    fn mean_segments(&self) -> f64 {
        self.area as f64 / self.time.as_nanos() as f64 / MSS as f64
    }
}

/// Runs `controller` over `paths`, given as (round-trip time in ms, segments per loss), until each path has seen
/// `losses` losses. Returns the mean windows of the second half, in segments.
fn mean_windows(controller: &str, paths: &[(u64, u64)], losses: u64) -> Vec<f64> {
    mean_windows_beside(None, controller, paths, losses)
}

/// Like [`mean_windows`], with `competition` on every path.
fn mean_windows_beside(
    competition: Option<Competition>,
    controller: &str,
    paths: &[(u64, u64)],
    losses: u64,
) -> Vec<f64> {
    let mut controller = build(&controller.parse().unwrap()).unwrap();
    let mut paths: Vec<_> =
        paths.iter().zip(0..).map(|(&(rtt_ms, every), id)| LossyPath::new(id, rtt_ms, every)).collect();
    paths.iter_mut().for_each(|path| path.view.competition = competition);
    while paths.iter().any(|path| path.delivered < losses * path.loss_every) {
        let next = (0..paths.len()).min_by_key(|index| paths[*index].next_ack).unwrap();
        acknowledge(controller.as_mut(), &mut paths, next, losses);
    }
    paths.iter().map(LossyPath::mean_segments).collect()
}

/// Acknowledges or loses one segment of `paths[index]`.
fn acknowledge(controller: &mut dyn CongestionController, paths: &mut [LossyPath], index: usize, losses: u64) {
    let views: Vec<_> = paths.iter().map(|path| path.view).collect();
    let path = &mut paths[index];
    let (now, id) = (path.next_ack, path.view.id);
    path.delivered += 1;
    if path.delivered % path.loss_every == 0 {
        let threshold = controller.on_loss(&LossSample { now, ..loss(id.0) }, Paths(&views));
        path.view.cwnd = threshold.max(2 * MSS);
    } else {
        let ack = AckSample { now, ..ack_at(id.0, MSS, 0) };
        path.grow(controller.on_ack(&ack, Paths(&views)));
    }
    if path.delivered >= path.round_ends {
        path.round_ends = path.delivered + path.view.cwnd / MSS;
        assert_eq!(controller.on_round(id, now, Paths(&views)), None);
    }
    let interval = path.ack_interval();
    path.next_ack += interval;
    if path.delivered > losses / 2 * path.loss_every {
        path.area += u128::from(path.view.cwnd) * u128::from(interval.as_nanos());
        path.time += interval;
    }
}

fn assert_within(found: f64, expected: f64, tolerance: f64) {
    assert!((found / expected - 1.0).abs() < tolerance, "mean of {found} segments instead of {expected}");
}

#[test]
fn newreno_follows_the_square_root_law() {
    // Mathis et al. 1997: sqrt(3 / (2 p)).
    assert_within(mean_windows("newreno", &[(100, 600)], 200)[0], 30.0, 0.02);
    assert_within(mean_windows("newreno", &[(100, 6_000)], 200)[0], 94.87, 0.02);
}

#[test]
fn the_friendly_aimd_is_as_large_as_newreno() {
    // sqrt(alpha (1 + beta) / (2 (1 - beta) p)): for (0.7, 0.625) sqrt(1.5167 / p), for (1, 0.875) sqrt(7.5 / p).
    assert_within(mean_windows("aimd(0.7,0.625)", &[(100, 6_000)], 200)[0], 95.39, 0.02);
    assert_within(mean_windows("aimd(1,0.875)", &[(100, 6_000)], 200)[0], 212.13, 0.02);
}

/// Returns CUBIC's mean window and last window, in segments, over the `segments` that follow a loss at `w_max`
/// segments.
fn cubic_cycle(rtt_ms: u64, w_max: f64, segments: u64) -> (f64, f64) {
    let mut controller = build(&"cubic".parse().unwrap()).unwrap();
    let mut path = LossyPath::new(0, rtt_ms, segments);
    path.view.cwnd = (w_max * MSS as f64) as u64;
    // The first segment is the lost one.
    path.delivered = segments - 1;
    let mut paths = [path];
    while paths[0].delivered < 2 * segments - 1 {
        acknowledge(controller.as_mut(), &mut paths, 0, 0);
    }
    (paths[0].mean_segments(), paths[0].view.cwnd as f64 / MSS as f64)
}

#[test]
fn cubic_follows_its_response_function() {
    // RFC 9438 section 5.1: a mean of 1.054 (RTT / p)^(3/4), which is (3 + beta_cubic) / 4 = 0.925 of the window at the
    // losses, 1 / p segments apart. One cycle only: equal windows at all losses are a fixed point, and fast convergence
    // drives the window away from it.
    for (rtt_ms, mean, w_max) in [(100, 187.4, 202.6), (400, 530.1, 573.1)] {
        let (found_mean, found_last) = cubic_cycle(rtt_ms, w_max, 10_000);
        assert_within(found_mean, mean, 0.01);
        assert_within(found_last, w_max, 0.01);
    }
}

#[test]
fn fast_convergence_costs_a_lone_flow_a_few_percent() {
    // Bounds, not a law: below the response function, and above the result of keeping 0.85 of the window at every loss.
    let mean = mean_windows("cubic", &[(100, 10_000)], 400)[0];
    assert!((0.85 * 187.4..187.4).contains(&mean), "{mean}");
}

#[test]
fn cubic_is_not_below_newreno_where_newreno_is_larger() {
    // Short round trips: the response function gives 18 segments, the Reno-friendly region about sqrt(3 / (2 p)) = 95.
    assert_within(mean_windows("cubic", &[(5, 6_000)], 200)[0], 94.87, 0.05);
}

#[test]
fn lia_over_two_equal_paths_is_as_large_as_one_newreno() {
    let windows = mean_windows("lia", &[(100, 6_000), (100, 6_000)], 200);
    assert_within(windows[0], 47.43, 0.03);
    assert_within(windows[1], 47.43, 0.03);
    let uncoupled = mean_windows("uncoupled", &[(100, 6_000), (100, 6_000)], 200);
    assert_within(uncoupled.iter().sum(), 189.7, 0.02);
}

#[test]
fn lia_is_as_fast_as_newreno_on_the_better_path() {
    // RFC 6356 goal 1. NewReno alone has 30 segments in 50 ms = 600 / s, or 94.87 in 100 ms = 949 / s.
    let windows = mean_windows("lia", &[(50, 600), (100, 6_000)], 400);
    assert_within(windows[0] / 0.05 + windows[1] / 0.1, 948.7, 0.1);
}

#[test]
fn lia_prefers_the_path_that_loses_less() {
    // RFC 6356 goal 3: windows in inverse proportion to the loss rates, 1 : 4; NewReno's would be 1 : 2.
    let windows = mean_windows("lia", &[(100, 2_000), (100, 8_000)], 400);
    assert!(windows[1] / windows[0] > 3.0, "{windows:?}");
}

#[test]
fn yielding_to_rivals_costs_the_root_of_what_growth_yields() {
    // AIMD(alpha' / rho^e, beta'), sqrt(alpha (1 + beta) / (2 (1 - beta) p)): with rho = 4, half of NewReno's 94.87 for
    // e = 1 and a quarter for e = 2; half of 95.39 for rivals with AIMD(0.7, 0.625).
    let beside = |ratio, increase, decrease, controller| {
        let competition = Some(Competition { ratio, increase, decrease });
        mean_windows_beside(competition, controller, &[(100, 6_000)], 200)[0]
    };
    assert_within(beside(1.0, 1.0, 0.5, "mcc-coop"), 94.87, 0.02);
    assert_within(beside(4.0, 1.0, 0.5, "mcc-coop(1)"), 47.43, 0.02);
    assert_within(beside(4.0, 1.0, 0.5, "mcc-coop(2)"), 23.72, 0.02);
    assert_within(beside(1.0, 0.7, 0.625, "gmcc-coop"), 95.39, 0.02);
    assert_within(beside(4.0, 0.7, 0.625, "gmcc-coop(1)"), 47.70, 0.02);
    assert_within(beside(4.0, 0.7, 0.625, "mpaimd"), 95.39, 0.02);
}

#[test]
fn mcc_coop_over_equal_paths_yields_only_where_that_is_less_than_lia_grows() {
    // Two paths, on each of which LIA has sqrt(3 / (2 p)) / 2 = 47.43. With rho = 2, yielding alone gives more,
    // sqrt(1/2) of 94.87, and so does the rule as printed; with rho = 16, yielding gives a quarter.
    let beside = |ratio, controller| {
        let competition = Some(Competition { ratio, ..Competition::NONE });
        mean_windows_beside(competition, controller, &[(100, 6_000), (100, 6_000)], 200)
    };
    beside(2.0, "mcc-coop(1,1)").into_iter().for_each(|window| assert_within(window, 47.43, 0.03));
    beside(2.0, "mcc-coop(1,0)").into_iter().for_each(|window| assert_within(window, 67.08, 0.02));
    beside(16.0, "mcc-coop(1,1)").into_iter().for_each(|window| assert_within(window, 23.72, 0.03));
}
