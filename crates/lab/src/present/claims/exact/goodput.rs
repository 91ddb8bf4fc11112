//! The model of goodput over two paths (thesis section 5.1).

use cooperation::adaptive_congestion::model::TwoPaths;

/// Goodput over throughput if the delays differ by `gap_intervals` intervals of the slower path.
pub(in super::super) fn goodput_share(gap_intervals: f64) -> Option<f64> {
    let paths = TwoPaths { interval_1_s: 0.004, interval_2_s: 0.012, delay_gap_s: 0.012 * gap_intervals };
    Some(paths.goodput() / paths.throughput())
}

/// The largest goodput over throughput in a grid of intervals and delays.
pub(in super::super) fn goodput_share_max() -> Option<f64> {
    let steps = || (1..=20).map(f64::from);
    let paths =
        steps().flat_map(move |first| steps().flat_map(move |second| (0..=40).map(move |gap| (first, second, gap))));
    let share = |(interval_1_s, interval_2_s, gap): (f64, f64, u32)| {
        let paths = TwoPaths { interval_1_s, interval_2_s, delay_gap_s: f64::from(gap) };
        paths.goodput() / paths.throughput()
    };
    paths.map(share).reduce(f64::max)
}
