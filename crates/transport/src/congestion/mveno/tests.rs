use super::super::testing::{MSS, ack, delivery, idle_ack, loss, path, path_with_rtt, queued_path};
use super::*;

fn segments(segments: f64) -> Segments {
    Segments((segments * ONE_Q16 as f64) as u64)
}

fn q16(value: f64) -> u64 {
    (value * ONE_Q16 as f64).round() as u64
}

fn assert_close(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() < tolerance, "found {found}, expected {expected}");
}

/// Returns delta of all subflows, without bounds, from windows in segments, round-trip times in ms, and Q.
fn deltas(windows: &[f64], rtts_ms: &[f64], q: &[f64]) -> Vec<f64> {
    let longest = rtts_ms.iter().copied().fold(0.0, f64::max);
    let window = windows.iter().zip(rtts_ms).map(|(window, rtt)| window * longest / rtt).sum();
    let smallest = q.iter().copied().fold(1.0, f64::min);
    let rtt = Duration::from_nanos((longest * 1e6) as u64);
    let whole = Whole { congestion_q16: q16(smallest), rtt, window: segments(window) };
    let delta = |(window, q): (&f64, &f64)| unbounded_delta_q16(q16(*q), segments(*window), &whole).unwrap();
    windows.iter().zip(q).map(delta).map(|delta| delta as f64 / ONE_Q16 as f64).collect()
}

#[test]
fn two_paths_by_hand() {
    // Q_s = 0.3, E_s = 0.29, T_s y_s = 20 * 2 + 10 = 50: D = 725. 0.3 * 0.38 * 400 / (0.6 * 726 - 0.3) = 0.10475 and
    // 0.3 * 0.29 * 100 / (0.3 * 726 - 0.3) = 0.04.
    let found = deltas(&[20.0, 10.0], &[100.0, 200.0], &[0.6, 0.3]);
    assert_close(found[0], 0.10475, 5e-5);
    assert_close(found[1], 0.0400, 5e-5);
}

#[test]
fn a_path_without_congestion_starves_the_others() {
    // Q_s = 0.01, E_s = 0.203: D = 507.5. 0.01 * 0.203 * 400 / (0.01 * 507.5) = 0.16 and
    // 0.01 * 0.38 * 100 / (0.6 * 508.5 - 0.01) = 0.00125, below the floor.
    let found = deltas(&[20.0, 10.0], &[100.0, 200.0], &[0.01, 0.6]);
    assert_close(found[0], 0.1600, 5e-4);
    assert_close(found[1], 0.00125, 2e-5);
    let whole = Whole { congestion_q16: q16(0.01), rtt: Duration::from_millis(200), window: segments(50.0) };
    assert_eq!(delta_q16(q16(0.6), segments(10.0), &whole), FLOOR_Q16);
}

#[test]
fn by_its_own_round_trip_time_a_subflow_weighs_as_much_as_it_carries() {
    // Q_r = Q_s and E_r = E_s: delta is (w_r / (T_r y_s))^2. Ten segments in 20 ms and in 80 ms are 4/5 and 1/5 of the
    // rate. With the longest round-trip time, T_s y_s is 10 * 4 + 10 = 50 for both, and delta 1/25.
    let whole = Whole { congestion_q16: q16(0.3), rtt: Duration::from_millis(80), window: segments(50.0) };
    let delta = |whole: &Whole| unbounded_delta_q16(q16(0.3), segments(10.0), whole).unwrap() as f64 / 65536.0;
    assert_close(delta(&whole), 0.04, 1e-4);
    assert_close(delta(&whole.over(Duration::from_millis(20))), 0.64, 1e-4);
    assert_close(delta(&whole.over(Duration::from_millis(80))), 0.04, 1e-4);
}

#[test]
fn one_subflow_is_veno() {
    // Claim C59: Q (1 + D) - Q = Q E w^2.
    for q in [0.01, 0.3, 1.0] {
        assert_close(deltas(&[17.0], &[100.0], &[q])[0], 1.0, 1e-4);
    }
}

#[test]
fn equal_subflows_share_one_veno_by_the_square() {
    // Claim C59: 1/K^2, as LIA.
    for (k, expected) in [(2, 0.25), (3, 0.111_11), (4, 0.0625)] {
        for delta in deltas(&vec![25.0; k], &vec![80.0; k], &vec![0.4; k]) {
            assert_close(delta, expected, 1e-4);
        }
    }
}

#[test]
fn equations_4_and_5() {
    let millis = Duration::from_millis;
    // The largest window of 40 segments puts 40 * 20/120 = 6.667 in the queue: Q = 1 - 3/6.667 = 0.55, E = 0.365.
    let q = congestion_q16(millis(120), millis(100), 40_000, MSS);
    assert_close(q as f64 / 65536.0, 0.55, 1e-4);
    assert_close(decrease_q16(q) as f64 / 65536.0, 0.365, 1e-4);
    // Less than beta in the queue, or nothing: the floor.
    assert_eq!(congestion_q16(millis(105), millis(100), 40_000, MSS), FLOOR_Q16);
    assert_eq!(congestion_q16(millis(100), millis(100), 40_000, MSS), FLOOR_Q16);
    assert_eq!(decrease_q16(0), ONE_Q16 / 5);
    assert_eq!(decrease_q16(ONE_Q16), ONE_Q16 / 2);
}

/// Returns windows by equations (14) to (16) from congestion loss and random loss: Veno's windows, put into (13), give
/// the weights.
fn windows_by_equation_16(losses: &[(f64, f64)]) -> Vec<f64> {
    let p = |(x, y): (f64, f64)| 1.0 - (1.0 - x) * (1.0 - y);
    let q: Vec<_> = losses.iter().map(|path| path.0 / p(*path)).collect();
    let decreases: Vec<_> = q.iter().map(|q| decrease_q16(q16(*q)) as f64 / 65536.0).collect();
    let veno: Vec<_> = losses.iter().zip(&decreases).map(|(path, e)| (1.0 / (e * p(*path))).sqrt()).collect();
    let weights = deltas(&veno, &vec![100.0; losses.len()], &q);
    let window = |((delta, e), path): ((&f64, &f64), &(f64, f64))| (delta / (e * p(*path))).sqrt();
    weights.iter().zip(&decreases).zip(losses).map(window).collect()
}

#[test]
fn windows_over_random_loss_are_those_of_figure_2() {
    // Claim C48: two equal paths with a congestion loss rate of 0.01 %.
    let table = [(0.0, 70.7), (1e-4, 59.8), (2e-4, 52.7), (3e-4, 47.7), (4e-4, 43.9), (5e-4, 40.8)];
    for (random, expected) in table {
        for window in windows_by_equation_16(&[(1e-4, random); 2]) {
            assert_close(window, expected, 0.06);
        }
    }
}

#[test]
fn lia_over_random_loss_balances_where_figure_2_says() {
    // Claim C48: at these windows LIA gains per segment what it loses, p w / 2. Windows in thousandths, for precision.
    let table = [(1e-4, 70.71), (2e-4, 50.00), (3e-4, 40.82), (4e-4, 35.36), (5e-4, 31.62), (6e-4, 28.87)];
    for (p, window) in table {
        let view = PathView { cwnd: (window * MSS as f64) as u64, ..path(0, 1) };
        let paths = [view, PathView { id: SubflowId(1), ..view }];
        let gain = super::super::Lia::default().on_ack(&ack(0, MSS), Paths(&paths)).as_q16() as f64 / 65_536_000.0;
        assert_close(gain / (p * window / 2.0), 1.0, 2e-3);
    }
}

#[test]
fn fairness_between_subflows_is_that_of_figure_3() {
    // Claim C49: congestion loss 0.01 % on both, random loss 0.01 % on the first. LIA's windows are in inverse
    // proportion to the loss rates: 3 : 1 and 11 : 2, Jain's index 16/20 and 169/250.
    let jain = |w: &[f64]| (w[0] + w[1]) * (w[0] + w[1]) / (2.0 * (w[0] * w[0] + w[1] * w[1]));
    assert_close(jain(&windows_by_equation_16(&[(1e-4, 1e-4), (1e-4, 5e-4)])), 0.966, 6e-4);
    assert_close(jain(&windows_by_equation_16(&[(1e-4, 1e-4), (1e-4, 1e-3)])), 0.913, 6e-4);
    assert_close(jain(&[3.0, 1.0]), 0.800, 1e-9);
    assert_close(jain(&[11.0, 2.0]), 0.676, 1e-9);
}

/// Runs a round on `path` with five samples of its round-trip time.
fn round(mveno: &mut MVeno, path: &PathView, paths: &[PathView]) {
    for _ in 0..5 {
        mveno.on_delivery(&DeliverySample { rtt: path.srtt, ..delivery(path.id.0, MSS) });
    }
    assert_eq!(mveno.on_round(path.id, Instant::ZERO, Paths(paths)), None);
}

/// Segments gained by acknowledging one on subflow `id`.
fn gain(mveno: &mut MVeno, id: u16, paths: &[PathView]) -> f64 {
    mveno.on_ack(&ack(id, MSS), Paths(paths)).as_q16() as f64 / 65_536_000.0
}

fn with_subflows(mut mveno: MVeno, paths: &[PathView]) -> MVeno {
    for count in 1..=paths.len() {
        mveno.subflow_added(paths[count - 1].id, Paths(&paths[..count]));
    }
    mveno
}

#[test]
fn weights_begin_with_an_equal_share() {
    let paths = [path(0, 10), path(1, 10)];
    let mut mveno = with_subflows(MVeno::new(), &paths);
    // When the second arrived, there were two.
    assert_close(gain(&mut mveno, 0, &paths), 0.1, 1e-6);
    assert_close(gain(&mut mveno, 1, &paths), 0.05, 1e-6);
}

#[test]
fn weights_follow_rounds() {
    // Two paths of 20 segments, both 120 ms with 100 ms of propagation: N = 3.33 >= 3, so half of 1/4 of 1/20.
    let paths = [queued_path(0, 20, 120, 100), queued_path(1, 20, 120, 100)];
    let mut mveno = with_subflows(MVeno::new(), &paths);
    round(&mut mveno, &paths[0], &paths);
    // Only this path has measurements so far.
    assert_close(gain(&mut mveno, 0, &paths), 1.0 / 20.0 / 2.0, 1e-5);
    round(&mut mveno, &paths[1], &paths);
    assert_close(gain(&mut mveno, 0, &paths), 0.25 / 20.0 / 2.0, 1e-5);
    assert_eq!(mveno.on_loss(&loss(0), Paths(&paths)), 10_000);
    // With the sibling gone, it is Veno again.
    mveno.subflow_removed(SubflowId(1), Paths(&paths[..1]));
    assert_close(gain(&mut mveno, 0, &paths[..1]), 1.0 / 20.0 / 2.0, 1e-5);
}

/// Returns two subflows of 20 segments after a round each, and their views: the second counts, and halves the first's
/// delta twice.
fn two_after_a_round() -> (MVeno, [PathView; 2]) {
    let paths = [path(0, 20), path(1, 20)];
    let mut mveno = with_subflows(MVeno::new(), &paths);
    round(&mut mveno, &paths[0], &paths);
    round(&mut mveno, &paths[1], &paths);
    assert_close(gain(&mut mveno, 0, &paths), 0.25 / 20.0, 1e-5);
    (mveno, paths)
}

#[test]
fn a_subflow_that_waits_does_not_count() {
    let (mut mveno, paths) = two_after_a_round();
    round(&mut mveno, &paths[0], &paths[..1]);
    assert_close(gain(&mut mveno, 0, &paths), 1.0 / 20.0, 1e-5);
    // It counts again as soon as it is in use.
    round(&mut mveno, &paths[0], &paths);
    assert_close(gain(&mut mveno, 0, &paths), 0.25 / 20.0, 1e-5);
}

#[test]
fn a_subflow_whose_timer_has_expired_counts_after_its_next_round() {
    let (mut mveno, paths) = two_after_a_round();
    assert_eq!(mveno.on_rto(SubflowId(1), Instant::ZERO, Paths(&paths)), 10_000);
    round(&mut mveno, &paths[0], &paths);
    assert_close(gain(&mut mveno, 0, &paths), 1.0 / 20.0, 1e-5);
    round(&mut mveno, &paths[1], &paths);
    assert_close(gain(&mut mveno, 0, &paths), 0.25 / 20.0, 1e-5);
}

#[test]
fn an_empty_queue_makes_losses_random() {
    let paths = [path(0, 20), path(1, 20)];
    let mut mveno = with_subflows(MVeno::new(), &paths);
    round(&mut mveno, &paths[0], &paths);
    round(&mut mveno, &paths[1], &paths);
    assert_eq!(mveno.on_loss(&loss(0), Paths(&paths)), 16_000);
    // All at the floor of Q: delta = w^2 / (sum w)^2 = 1/4.
    assert_close(gain(&mut mveno, 0, &paths), 0.25 / 20.0, 1e-5);
}

/// Returns the gain of acknowledging a segment on the faster of two paths: 20 segments each, 100 and 200 ms, nothing
/// queued.
fn gain_beside_a_slower_path(mveno: MVeno) -> f64 {
    let paths = [path_with_rtt(0, 20, 100), path_with_rtt(1, 20, 200)];
    let mut mveno = with_subflows(mveno, &paths);
    round(&mut mveno, &paths[0], &paths);
    round(&mut mveno, &paths[1], &paths);
    gain(&mut mveno, 0, &paths)
}

#[test]
fn in_the_proof_the_longest_round_trip_time_stands_for_all() {
    // Q is at the floor everywhere: delta = w^2 / (T_s y_s)^2, where T_s y_s = 20 * 200/100 + 20 = 60.
    assert_close(gain_beside_a_slower_path(MVeno::proof()), 400.0 / 3600.0 / 20.0, 1e-5);
}

#[test]
fn algorithm_1_sees_congestion_in_a_slower_path() {
    // T_s = 150 ms over a base of 100 ms: a window of 20 segments seems to put 6.667 in the queue, so Q_s = 0.55, above
    // Q_r. E_s = 0.365, T_s y_s = 45, D = 739.125; 0.55 * 0.203 * 400 / (0.01 * 740.125 - 0.55) = 6.5 is beyond 1.
    assert_close(gain_beside_a_slower_path(MVeno::new()), 1.0 / 20.0, 1e-5);
}

#[test]
fn a_window_that_nothing_fills_stays() {
    let paths = [path(0, 10)];
    assert_eq!(with_subflows(MVeno::new(), &paths).on_ack(&idle_ack(0, MSS), Paths(&paths)), WindowStep::ZERO);
}

/// Slow start ends in the middle of a round, in which its window was largest.
#[test]
fn the_largest_window_is_the_one_that_a_loss_or_a_time_out_ends() {
    let on_loss: fn(&mut MVeno, Paths<'_>) -> u64 = |mveno, paths| mveno.on_loss(&loss(0), paths);
    let on_rto: fn(&mut MVeno, Paths<'_>) -> u64 = |mveno, paths| mveno.on_rto(SubflowId(0), Instant::ZERO, paths);
    for end in [on_loss, on_rto] {
        let mut mveno = with_subflows(MVeno::new(), &[path(0, 80)]);
        round(&mut mveno, &path(0, 80), &[path(0, 80)]);
        end(&mut mveno, Paths(&[path(0, 110)]));
        round(&mut mveno, &path(0, 55), &[path(0, 55)]);
        assert_eq!(mveno.subflows.get_mut(SubflowId(0)).last.unwrap().cwnd_max, 110 * MSS);
    }
}
