//! Long series made short enough to draw.

/// More points than this are averaged: no screen shows them.
const POINTS_MAX: usize = 600;

/// How many neighbours become one point.
pub(super) fn group_of(points: usize) -> usize {
    points.div_ceil(POINTS_MAX).max(1)
}

/// The last time of every group.
pub(super) fn times(time_s: &[f64], group: usize) -> Vec<f64> {
    time_s.chunks(group).filter_map(|times| times.last().copied()).collect()
}

/// Mean of every group; a gap only where all are gaps.
pub(super) fn averaged(values: &[Option<f64>], group: usize) -> Vec<Option<f64>> {
    let mean = |chunk: &[Option<f64>]| {
        let known: Vec<f64> = chunk.iter().flatten().copied().collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    };
    values.chunks(group).map(mean).collect()
}

/// Mean over the `width` values up to each one.
pub(super) fn running_mean(values: &[f64], width: usize) -> Vec<f64> {
    let mut sum = 0.0;
    let mut means = Vec::with_capacity(values.len());
    for (index, value) in values.iter().enumerate() {
        sum += value;
        if index >= width {
            sum -= values[index - width];
        }
        means.push((sum / (index + 1).min(width) as f64).max(0.0));
    }
    means
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
        assert_eq!(running_mean(&[4.0, 2.0, 6.0, 0.0], 2), [4.0, 3.0, 4.0, 3.0]);
    }
}
