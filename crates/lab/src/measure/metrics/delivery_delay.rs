//! Delay that the application at the destination sees: from the first transmission of an octet at the source to its
//! delivery in order.

use serde::{Deserialize, Serialize};

use super::Histogram;

/// How the delays of the octets of a connection are distributed. Every octet that was delivered counts once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeliveryDelay {
    /// Octets whose delay is known.
    pub bytes: u64,
    /// Mean.
    pub mean_s: f64,
    /// Smallest.
    pub min_s: f64,
    /// Within which 5 % of the octets were delivered; accurate to 1/32 of its value, like all quantiles.
    pub p5_s: f64,
    /// Within which 25 % were.
    pub p25_s: f64,
    /// Within which half were.
    pub median_s: f64,
    /// Within which 75 % were.
    pub p75_s: f64,
    /// Within which 90 % were.
    pub p90_s: f64,
    /// Within which 95 % were.
    pub p95_s: f64,
    /// Within which 99 % were.
    pub p99_s: f64,
    /// Within which 99.9 % were.
    pub p999_s: f64,
    /// Largest.
    pub max_s: f64,
    /// The whole distribution.
    pub histogram: DelayHistogram,
}

/// Octets by delay. Buckets without octets are left out; the lists have one entry for each of the others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DelayHistogram {
    /// Lower ends of the buckets.
    pub from_s: Vec<f64>,
    /// Upper ends; an octet with this delay is in the next bucket.
    pub to_s: Vec<f64>,
    /// Octets in each.
    pub bytes: Vec<u64>,
}

impl DeliveryDelay {
    /// The distribution in `histogram`, whose weights are octets; `None` if it is empty.
    pub fn of(histogram: &Histogram) -> Option<Self> {
        let quantile = |share: f64| histogram.quantile_s(share);
        let buckets = || histogram.buckets();
        let seconds = |nanos: u64| nanos as f64 / 1e9;
        Some(Self {
            bytes: histogram.weight(),
            mean_s: histogram.mean_s()?,
            min_s: histogram.min_s()?,
            p5_s: quantile(0.05)?,
            p25_s: quantile(0.25)?,
            median_s: quantile(0.5)?,
            p75_s: quantile(0.75)?,
            p90_s: quantile(0.9)?,
            p95_s: quantile(0.95)?,
            p99_s: quantile(0.99)?,
            p999_s: quantile(0.999)?,
            max_s: histogram.max_s()?,
            histogram: DelayHistogram {
                from_s: buckets().map(|bucket| seconds(bucket.from_nanos)).collect(),
                to_s: buckets().map(|bucket| seconds(bucket.to_nanos)).collect(),
                bytes: buckets().map(|bucket| bucket.weight).collect(),
            },
        })
    }
}
