//! A histogram of times with a bounded relative error, whatever they are: buckets as wide as a 32nd of their octave.

use units::Duration;

/// Buckets of an octave, as a power of two.
const OCTAVE_BITS: u32 = 5;
/// Buckets of an octave: a value lies within 1/32 of its bucket's ends.
const PER_OCTAVE: u64 = 1 << OCTAVE_BITS;
/// Buckets for all values of 64 bits: those below `PER_OCTAVE` have one each.
const BUCKETS: usize = ((64 - OCTAVE_BITS as usize) + 1) * PER_OCTAVE as usize;

/// Weighted times in buckets. All memory is allocated at the start.
#[derive(Clone, Debug)]
pub struct Histogram {
    weights: Box<[u64]>,
    weight: u64,
    nanos: u128,
    min: u64,
    max: u64,
}

/// A bucket that is not empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Its lower end, nanoseconds; within.
    pub from_nanos: u64,
    /// Its upper end, nanoseconds; the smallest value above it.
    pub to_nanos: u64,
    /// The weight of what lies between them.
    pub weight: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { weights: vec![0; BUCKETS].into(), weight: 0, nanos: 0, min: u64::MAX, max: 0 }
    }
}

impl Histogram {
    /// Adds `time` with a weight.
    #[inline]
    pub fn add(&mut self, time: Duration, weight: u64) {
        let nanos = time.as_nanos();
        self.weights[bucket(nanos)] += weight;
        self.weight += weight;
        self.nanos += u128::from(nanos) * u128::from(weight);
        (self.min, self.max) = (self.min.min(nanos), self.max.max(nanos));
    }

    /// The sum of all weights.
    pub fn weight(&self) -> u64 {
        self.weight
    }

    /// Mean in seconds, exact; `None` if empty.
    pub fn mean_s(&self) -> Option<f64> {
        (self.weight > 0).then(|| self.nanos as f64 / self.weight as f64 / 1e9)
    }

    /// Smallest value in seconds, exact; `None` if empty.
    pub fn min_s(&self) -> Option<f64> {
        (self.weight > 0).then(|| seconds(self.min as f64))
    }

    /// Largest value in seconds, exact; `None` if empty.
    pub fn max_s(&self) -> Option<f64> {
        (self.weight > 0).then(|| seconds(self.max as f64))
    }

    /// The value in seconds up to which a `share` of the weight lies, with a relative error of at most 1/32: values count
    /// as spread evenly over their bucket. `None` if empty.
    pub fn quantile_s(&self, share: f64) -> Option<f64> {
        let wanted = share * self.weight as f64;
        let mut below = 0;
        for Bucket { from_nanos, to_nanos, weight } in self.buckets() {
            if (below + weight) as f64 >= wanted {
                let part = (wanted - below as f64) / weight as f64;
                let nanos = from_nanos as f64 + part * (to_nanos - from_nanos) as f64;
                return Some(seconds(nanos.round().clamp(self.min as f64, self.max as f64)));
            }
            below += weight;
        }
        self.max_s()
    }

    /// All buckets that are not empty, in order.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        let filled = self.weights.iter().enumerate().filter(|(_, weight)| **weight > 0);
        filled.map(|(index, weight)| Bucket { from_nanos: lowest(index), to_nanos: end(index), weight: *weight })
    }
}

fn seconds(nanos: f64) -> f64 {
    nanos / 1e9
}

/// The index of the bucket of `nanos`.
fn bucket(nanos: u64) -> usize {
    if nanos < PER_OCTAVE {
        return nanos as usize;
    }
    let shift = nanos.ilog2() - OCTAVE_BITS;
    // The bits after the leading one tell the place in the octave.
    ((u64::from(shift) << OCTAVE_BITS) + (nanos >> shift)) as usize
}

/// The smallest value in the bucket at `index`.
fn lowest(index: usize) -> u64 {
    let index = index as u64;
    let shift = (index >> OCTAVE_BITS).saturating_sub(1);
    (index - (shift << OCTAVE_BITS)) << shift
}

/// The smallest value above the bucket at `index`.
fn end(index: usize) -> u64 {
    if index + 1 < BUCKETS { lowest(index + 1) } else { u64::MAX }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket_and_buckets_are_narrow() {
        for nanos in
            (0..64).flat_map(|bit| [1_u64 << bit, (1 << bit) + (1 << bit) / 3, (1 << bit) - 1]).chain([u64::MAX])
        {
            let index = bucket(nanos);
            assert!(lowest(index) <= nanos && (nanos < end(index) || nanos == u64::MAX), "{nanos}");
            assert!(end(index) - lowest(index) <= (nanos / PER_OCTAVE).max(1), "{nanos}");
        }
        assert_eq!((bucket(u64::MAX), lowest(0), end(0)), (BUCKETS - 1, 0, 1));
    }

    /// 100 ms for 900 octets, 1 s for 90 and 10 s for 10: the quantiles lie in these buckets, mean and ends are exact.
    #[test]
    fn quantiles_are_those_of_the_weights() {
        let mut histogram = Histogram::default();
        assert_eq!((histogram.mean_s(), histogram.quantile_s(0.5), histogram.max_s()), (None, None, None));
        for (millis, weight) in [(100, 400), (1000, 90), (100, 500), (10_000, 10)] {
            histogram.add(Duration::from_millis(millis), weight);
        }
        assert_eq!((histogram.weight(), histogram.buckets().count()), (1000, 3));
        assert_eq!(histogram.mean_s(), Some(0.28));
        assert_eq!((histogram.min_s(), histogram.max_s()), (Some(0.1), Some(10.0)));
        for (share, wanted) in
            [(0.0, 0.1), (0.5, 0.1), (0.9, 0.1), (0.91, 1.0), (0.99, 1.0), (0.991, 10.0), (1.0, 10.0)]
        {
            let found = histogram.quantile_s(share).unwrap();
            assert!((found / wanted - 1.0).abs() <= 1.0 / 32.0, "{share}: {found} instead of {wanted}");
        }
    }

    #[test]
    fn a_single_value_is_all_quantiles() {
        let mut histogram = Histogram::default();
        histogram.add(Duration::from_nanos(123_456_789), 7);
        assert_eq!([0.0, 0.5, 1.0].map(|share| histogram.quantile_s(share)), [Some(0.123_456_789); 3]);
    }
}
