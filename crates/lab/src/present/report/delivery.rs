//! How long delivery took, as a cumulative distribution.

use super::chart::{Chart, Curve};
use super::scale::Unit;
use super::{HALF, figure, monitor};
use crate::measure::metrics::DeliveryDelay;
use crate::measure::results::{PaperMetrics, Results};
use crate::present::metric::time;

/// Share of the octets that the picture shows: a single stall would shrink the rest to a line.
const DRAWN: f64 = 0.999;
const SHARES: &[Unit] = &[Unit { name: "% of the octets", size: 0.01 }];

/// The figure; empty if nothing was delivered.
pub(super) fn section(results: &Results) -> String {
    let metrics = results.metrics.as_ref().filter(|_| results.has_connection());
    let delays = metrics.and_then(|metrics| Some((metrics, metrics.delivery_delay.as_ref()?)));
    delays.map_or(String::new(), |(metrics, delay)| drawn(metrics, delay))
}

fn drawn(metrics: &PaperMetrics, delay: &DeliveryDelay) -> String {
    let (times_s, shares) = points(delay);
    let chart = Chart {
        label: "Share of the octets that were delivered within a time",
        size: HALF,
        units: SHARES,
        time_s: &times_s,
        band: None,
        marked_s: Vec::new(),
        counted_s: None,
        stacked: Vec::new(),
        ribbons: Vec::new(),
        lines: vec![Curve { name: "delivered".into(), class: "ink".into(), values: shares }],
    };
    let quantiles = [("half", delay.median_s), ("95 %", delay.p95_s), ("99 %", delay.p99_s)];
    let within = quantiles.map(|(share, time_s)| format!("{share} within {}", time(time_s, time_s)));
    let caption = format!(
        "From the first transmission of an octet at the source to its delivery in order to the application{}: {}; the \
         longest took {}. Drawn up to {} %.",
        monitor::first_of(metrics),
        within.join(", "),
        time(delay.max_s, delay.max_s),
        DRAWN * 100.0
    );
    figure("Delay until delivery", &caption, "", &chart.svg())
}

/// Delays, and the share of octets that took no longer.
fn points(delay: &DeliveryDelay) -> (Vec<f64>, Vec<Option<f64>>) {
    let histogram = &delay.histogram;
    let (mut times_s, mut shares) = (vec![0.0], vec![Some(0.0)]);
    let mut below = 0;
    let buckets = histogram.from_s.iter().zip(&histogram.to_s).zip(&histogram.bytes);
    for ((from_s, to_s), bytes) in buckets {
        let share = |octets: u64| octets as f64 / delay.bytes as f64;
        if share(below) >= DRAWN {
            break;
        }
        let (from_s, to_s) = (from_s.max(delay.min_s), to_s.min(delay.max_s));
        if times_s.last().is_none_or(|last| *last < from_s) {
            times_s.push(from_s);
            shares.push(Some(share(below)));
        }
        below += bytes;
        times_s.push(to_s);
        shares.push(Some(share(below)));
    }
    (times_s, shares)
}

#[cfg(test)]
mod tests {
    use units::Duration;

    use super::*;
    use crate::measure::metrics::Histogram;

    /// Half at 100 ms, half between 1 s and 2 s: the curve rises at both, and is level between them.
    #[test]
    fn the_curve_rises_where_octets_were_delivered() {
        let mut histogram = Histogram::default();
        histogram.add(Duration::from_millis(100), 100);
        (0..100).for_each(|step| histogram.add(Duration::from_millis(1000 + 10 * step), 1));
        let (times_s, shares) = points(&DeliveryDelay::of(&histogram).unwrap());
        assert!(times_s.windows(2).all(|pair| pair[0] <= pair[1]), "{times_s:?}");
        let share_at = |time_s: f64| {
            let place = times_s.iter().rposition(|at_s| *at_s <= time_s).unwrap();
            shares[place].unwrap()
        };
        assert_eq!([share_at(0.05), share_at(0.5), share_at(0.99)], [0.0, 0.5, 0.5]);
        assert!((share_at(1.5) - 0.75).abs() < 0.02 && share_at(3.0) == 1.0);
    }
}
