//! Background traffic of an access link: the mix of the MPTCP-rec paper.

use units::{Duration, Instant, Prng, Rate};

use super::Demand;

/// Of the access bandwidth, at most so much is background traffic.
const MOST_PERCENT: u32 = 50;
/// Of the octets, so many go over TCP; the others over UDP.
const TCP_PERCENT: u32 = 90;

/// What flows of two kinds demand together.
#[derive(Clone, Debug)]
pub struct Background {
    /// Nine tenths of the octets; for a [`super::TcpFlow`].
    pub tcp: Demand,
    /// The tenth; for a [`super::UdpFlow`] of [`super::DatagramSizes::Mix`].
    pub udp: Demand,
}

impl Background {
    /// Traffic of variable rate from `start` on, between nothing and half of `access`. The paper does not say how the rate
    /// varies: here it is drawn anew, uniformly, each time that `every` has passed.
    pub fn new(access: Rate, start: Instant, every: Duration, prng: Prng) -> Self {
        let demand = Demand::constant(access, start).percent(MOST_PERCENT).redrawn(every, prng);
        Self { tcp: demand.clone().percent(TCP_PERCENT), udp: demand.percent(100 - TCP_PERCENT) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_together_stay_below_half_the_link() {
        let every = Duration::from_secs(1);
        let Background { mut tcp, mut udp } = Background::new(Rate::from_mbps(8), Instant::ZERO, every, Prng::new(6));
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
        // Half of 8 Mbit/s are 500,000 octets a second. Of 1000 uniform draws the least and the most are within 1 %, but
        // for one case in 20,000; a mean of 250,000 has a standard error of 4600.
        assert!(least < 5000 && most > 495_000 && most <= 500_000, "{least} {most}");
        assert!(before.abs_diff(250_000_000) < 14_000_000, "{before}");
    }
}
