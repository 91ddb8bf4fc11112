//! Distance between the target and the offers of selected relay sets.

/// Mean of `abs(S - TBR)` over decisions, where S is the sum of a set's offers; `None` without decisions.
pub fn mean_distance_bps(sums_bps: impl IntoIterator<Item = f64>, tbr_bps: f64) -> Option<f64> {
    let distances = sums_bps.into_iter().map(|sum_bps| (sum_bps - tbr_bps).abs());
    let (sum, count) = distances.fold((0.0, 0_u64), |(sum, count), distance| (sum + distance, count + 1));
    (count > 0).then(|| sum / count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2.75 and 3.25 are both 0.25 away from 3 Mbit/s, 3 is not away: 0.5 / 3.
    #[test]
    fn above_and_below_do_not_cancel() {
        assert_eq!(mean_distance_bps([2.75e6, 3.25e6], 3e6), Some(0.25e6));
        assert_eq!(mean_distance_bps([2.75e6, 3.25e6, 3e6], 3e6), Some(0.5e6 / 3.0));
        assert_eq!(mean_distance_bps([], 3e6), None);
    }
}
