//! Background traffic: the mix of the MPTCP-rec paper.

use super::Demand;

/// Of the octets, so many go over TCP; the others over UDP.
const TCP_PERCENT: u32 = 90;

/// What flows of two kinds demand together.
#[derive(Clone, Debug)]
pub struct Background {
    /// Nine tenths of the octets; for a [`super::PacedSource`] of [mixed](super::PacedSource::mixed) sizes.
    pub tcp: Demand,
    /// The tenth; for a [`super::UdpFlow`] of [`super::DatagramSizes::Mix`].
    pub udp: Demand,
}

impl Background {
    /// `demand` shared by both kinds. The paper does not say how the rate varies: [`Demand::redrawn`] and
    /// [`Demand::on_off`] are two ways.
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
            // The same shares all the time. Rates are whole bit/s, so a second can be 9 bit off, and a count 9 octets.
            assert!(over_tcp.abs_diff(9 * over_udp) <= 9 + second * 9 / 8, "{over_tcp} {over_udp}");
            let demanded = over_tcp + over_udp - before;
            before = over_tcp + over_udp;
            (least, most) = (least.min(demanded), most.max(demanded));
        }
        // 4 Mbit/s are 500,000 octets a second. Of 1000 uniform draws the least and the most are within 1 %, but for one
        // case in 20,000; a mean of 250,000 has a standard error of 4600.
        assert!(least < 5000 && most > 495_000 && most <= 500_000, "{least} {most}");
        assert!(before.abs_diff(250_000_000) < 14_000_000, "{before}");
    }
}
