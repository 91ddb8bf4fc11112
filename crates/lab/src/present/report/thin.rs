//! Shortens long series for drawing.

/// Maximum number of points; more are averaged, because no screen shows them.
const POINTS_MAX: usize = 600;

/// Number of neighbours to combine into one point.
pub(super) fn group_of(points: usize) -> usize {
    points.div_ceil(POINTS_MAX).max(1)
}

/// The last time of every group.
pub(super) fn times(time_s: &[f64], group: usize) -> Vec<f64> {
    time_s.chunks(group).filter_map(|times| times.last().copied()).collect()
}

/// Mean of every group; a gap only if all values are gaps.
pub(super) fn averaged(values: &[Option<f64>], group: usize) -> Vec<Option<f64>> {
    let mean = |chunk: &[Option<f64>]| {
        let known: Vec<f64> = chunk.iter().flatten().copied().collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    };
    values.chunks(group).map(mean).collect()
}

/// Mean over the `width` windows up to each one; windows end at `time_s`. Windows are weighted by length, because the
/// last may be shorter.
pub(super) fn running_mean(time_s: &[f64], values: &[f64], width: usize) -> Vec<f64> {
    let start_s = |index: usize| if index == 0 { 0.0 } else { time_s[index - 1] };
    let mean = |last: usize| {
        let first = (last + 1).saturating_sub(width);
        let sum: f64 = (first..=last).map(|index| values[index] * (time_s[index] - start_s(index))).sum();
        sum / (time_s[last] - start_s(first))
    };
    (0..time_s.len().min(values.len())).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_leave_gaps_only_where_all_is_gap() {
        let values = [Some(1.0), Some(3.0), None, Some(4.0), None, None, Some(7.0)];
        assert_eq!(averaged(&values, 2), [Some(2.0), Some(4.0), None, Some(7.0)]);
        assert_eq!(times(&[0.1, 0.2, 0.3], 2), [0.2, 0.3]);
        assert_eq!([group_of(0), group_of(600), group_of(601)], [1, 1, 2]);
    }

    #[test]
    fn a_running_mean_starts_with_what_there_is() {
        // The last window is a third as long: (6 * 1 + 2 * 1/3) / (4/3) = 5.
        let times = [1.0, 2.0, 3.0, 3.0 + 1.0 / 3.0];
        let means = running_mean(&times, &[4.0, 2.0, 6.0, 2.0], 2);
        assert_eq!(means[..3], [4.0, 3.0, 4.0]);
        assert!((means[3] - 5.0).abs() < 1e-9, "{means:?}");
    }
}
