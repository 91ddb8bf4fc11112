//! Background traffic: the mix of the MPTCP-rec paper.

use super::Demand;

/// Percentage of the octets that go over TCP; the rest goes over UDP.
const TCP_PERCENT: u32 = 90;

/// A demand shared by flows of two kinds.
#[derive(Clone, Debug)]
pub struct Background {
    /// Nine tenths of the octets, for a [`super::PacedSource`] of [mixed](super::PacedSource::mixed) sizes.
    pub tcp: Demand,
    /// One tenth of the octets, for a [`super::UdpFlow`] of [`super::DatagramSizes::Mix`].
    pub udp: Demand,
}

impl Background {
    /// Shares `demand` between both kinds. The paper does not say how the rate varies: [`Demand::redrawn`] and
    /// [`Demand::on_off`] are two options.
    pub fn new(demand: Demand) -> Self {
        Self { tcp: demand.clone().percent(TCP_PERCENT), udp: demand.percent(100 - TCP_PERCENT) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{Duration, Instant, Prng, Rate};

    #[test]
    fn both_kinds_together_are_the_demand() {
        let half = Demand::constant(Rate::from_mbps(4), Instant::ZERO);
        let Background { mut tcp, mut udp } = Background::new(half.redrawn(Duration::from_secs(1), Prng::new(6)));
        let (mut before, mut least, mut most) = (0, u64::MAX, 0);
        for second in 1..=1000 {
            let (over_tcp, over_udp) =
                (tcp.bytes_until(Instant::from_secs(second)), udp.bytes_until(Instant::from_secs(second)));
            // The fractions are always the same. Rates are whole bit/s, so a second can be 9 bit off, and a count 9
            // octets.
            assert!(over_tcp.abs_diff(9 * over_udp) <= 9 + second * 9 / 8, "{over_tcp} {over_udp}");
            let demanded = over_tcp + over_udp - before;
            before = over_tcp + over_udp;
            (least, most) = (least.min(demanded), most.max(demanded));
        }
        // 4 Mbit/s are 500,000 octets a second. The smallest and largest of 1000 uniform draws are within 1 % of the
        // bounds, except in one case in 20,000; a mean of 250,000 has a standard error of 4600.
        assert!(least < 5000 && most > 495_000 && most <= 500_000, "{least} {most}");
        assert!(before.abs_diff(250_000_000) < 14_000_000, "{before}");
    }
}
