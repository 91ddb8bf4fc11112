//! What a link could carry, whether or not anything was sent.

use core::ops::Range;

use network::Trace;
use network::trace::OPPORTUNITY_BYTES;
use units::{Instant, Rate};

use crate::scenario::{LinkRate, Outage, TextOr};

/// The capacity of one direction of a link: its rate, except at times when nothing passes.
#[derive(Clone, Debug)]
pub(super) struct Capacity {
    service: Service,
    /// In order, without overlaps.
    outages: Vec<Range<Instant>>,
}

#[derive(Clone, Debug)]
enum Service {
    Fixed(Rate),
    Traced(Trace),
}

impl Service {
    /// Bits that can be sent up to `at`.
    fn bits_until(&self, at: Instant) -> f64 {
        match self {
            Self::Fixed(rate) => rate.as_bps() as f64 * at.as_secs_f64(),
            Self::Traced(trace) => (trace.opportunities_until(at) * u64::from(OPPORTUNITY_BYTES) * 8) as f64,
        }
    }
}

impl Capacity {
    /// The capacity of a link of this rate; `trace` is its trace, if it varies.
    pub fn new(rate: &LinkRate, trace: Option<Trace>, outages: &[Outage]) -> Self {
        let service = match (rate, trace) {
            (_, Some(trace)) => Service::Traced(trace),
            (TextOr::Text(rate), None) => Service::Fixed(*rate),
            (TextOr::Table(_), None) => Service::Fixed(Rate::ZERO),
        };
        let span = |outage: &Outage| Instant::ZERO + outage.from..Instant::ZERO + outage.until;
        Self { service, outages: apart(outages.iter().map(span).collect()) }
    }

    /// The same link, over which nothing passes from `end` on.
    pub fn until(mut self, end: Instant) -> Self {
        self.outages.push(end..Instant::FAR_FUTURE);
        Self { outages: apart(self.outages), ..self }
    }

    /// Octets of packets, in bits, that could have passed from the start of the run up to `at`.
    pub fn bits_until(&self, at: Instant) -> f64 {
        let lost = self.outages.iter().take_while(|outage| outage.start < at);
        let lost =
            lost.map(|outage| self.service.bits_until(outage.end.min(at)) - self.service.bits_until(outage.start));
        self.service.bits_until(at) - lost.sum::<f64>()
    }
}

/// The same times, in order and without overlaps.
fn apart(mut spans: Vec<Range<Instant>>) -> Vec<Range<Instant>> {
    spans.sort_by_key(|span| span.start);
    let mut apart: Vec<Range<Instant>> = Vec::new();
    for span in spans {
        match apart.last_mut().filter(|last| span.start <= last.end) {
            Some(last) => last.end = last.end.max(span.end),
            None => apart.push(span),
        }
    }
    apart
}

#[cfg(test)]
mod tests {
    use units::Duration;

    use super::*;

    fn outage(from_s: u64, until_s: u64) -> Outage {
        Outage { from: Duration::from_secs(from_s), until: Duration::from_secs(until_s) }
    }

    #[test]
    fn outages_that_overlap_count_once() {
        let link = Capacity::new(&TextOr::Text(Rate::from_mbps(2)), None, &[outage(4, 6), outage(1, 2), outage(5, 7)]);
        let bits = [1, 2, 5, 8].map(|second| link.bits_until(Instant::from_secs(second)));
        assert_eq!(bits, [2e6, 2e6, 6e6, 8e6]);
        let bits =
            [2, 3, 100].map(|second| link.clone().until(Instant::from_secs(3)).bits_until(Instant::from_secs(second)));
        assert_eq!(bits, [2e6, 4e6, 4e6]);
    }

    #[test]
    fn a_trace_counts_its_opportunities() {
        let trace = Trace::parse("500\n1000\n").unwrap();
        let model = TextOr::Table(crate::scenario::RateModel::default());
        let link = Capacity::new(&model, Some(trace), &[outage(1, 2)]);
        let bits = [499, 500, 1000, 1500, 2500].map(|ms| link.bits_until(Instant::from_millis(ms)));
        assert_eq!(bits, [0.0, 12e3, 24e3, 24e3, 36e3]);
    }
}
