//! Compares two runs, monitor point by monitor point.

/// Share of the points with a value in both lists at which `new` is above `old`; `None` if there is no such point.
pub fn share_above(new: &[Option<f64>], old: &[Option<f64>]) -> Option<f64> {
    let (mut above, mut points) = (0_u32, 0_u32);
    for (new, old) in new.iter().zip(old).filter_map(|(new, old)| new.zip(*old)) {
        above += u32::from(new > old);
        points += 1;
    }
    (points > 0).then(|| f64::from(above) / f64::from(points))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of five points, one lacks a value in the first run and one in the second; of the others, one is above and one
    /// equal.
    #[test]
    fn points_without_values_and_ties_are_not_above() {
        let new = [Some(3.0), None, Some(2.0), Some(9.0), Some(1.0)];
        let old = [Some(2.0), Some(1.0), Some(2.0), None, Some(4.0)];
        assert_eq!(share_above(&new, &old), Some(1.0 / 3.0));
        assert_eq!(share_above(&new, &[]), None);
        assert_eq!(share_above(&[None], &[Some(1.0)]), None);
    }
}
