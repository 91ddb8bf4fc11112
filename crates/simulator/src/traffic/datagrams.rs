//! UDP flows.

use core::net::SocketAddr;

use network::Datagram;
use network::cell::DatagramSource;
use transport::{Endpoint, Event};
use units::{Instant, Prng};

use super::poisson::Poisson;
use super::{Demand, Octets};
use host::{App, Report};

/// Octets of IP and UDP headers over IPv4, which the sizes of a mix include.
const HEADERS_BYTES: u16 = 28;
/// What the header of IPv6 has more than that of IPv4, octets.
const IPV6_MORE_BYTES: u16 = 20;

/// Draws the payload of a packet of MPTCP-rec's background traffic, octets; over IPv4 its headers have `headers_bytes`.
/// The IP packets have 44 octets (50 %), 576 (25 %) or 1500 (25 %), independently. Over IPv6 the smallest have 64,
/// because 44 would not hold the headers; the others are no larger, so they have less payload.
pub(super) fn mixed_payload_bytes(prng: &mut Prng, is_ipv6: bool, headers_bytes: u16) -> u16 {
    let more_bytes = if is_ipv6 { IPV6_MORE_BYTES } else { 0 };
    let packet_bytes = match prng.below(4) {
        0 | 1 => 44 + more_bytes,
        2 => 576,
        _ => 1500,
    };
    packet_bytes - headers_bytes - more_bytes
}

/// A UDP flow.
#[derive(Clone, Debug)]
pub struct UdpFlow {
    /// Source address and port.
    pub local: SocketAddr,
    /// Destination address and port.
    pub remote: SocketAddr,
    /// Payload octets over time.
    pub demand: Demand,
    /// Payload of the datagrams.
    pub sizes: DatagramSizes,
    /// End of the flow; never by default.
    pub stop: Instant,
}

/// Payload sizes of a flow's datagrams.
#[derive(Clone, Debug)]
pub enum DatagramSizes {
    /// Always the same size, octets.
    Constant(u16),
    /// IP packets of 44 octets (50 %; over IPv6 64), 576 (25 %) and 1500 (25 %), independently: MPTCP-rec's background
    /// traffic.
    Mix(Prng),
}

impl DatagramSizes {
    /// Draws the payload of the next datagram to `remote`, octets.
    fn draw(&mut self, remote: SocketAddr) -> u16 {
        match self {
            Self::Constant(len) => *len,
            Self::Mix(prng) => mixed_payload_bytes(prng, remote.is_ipv6(), HEADERS_BYTES),
        }
    }
}

/// Sends datagrams as the demand requires, without feedback.
pub struct UdpSource {
    flow: UdpFlow,
    next_len: u16,
    /// When datagrams are due, unless each is due as soon as its octets are demanded.
    poisson: Option<Poisson>,
    now: Instant,
    /// Payload octets demanded until now.
    due_bytes: u64,
    sent_bytes: u64,
    sent_datagrams: u64,
    demanded: Octets,
}

impl UdpSource {
    /// Creates a source of `flow`.
    pub fn new(mut flow: UdpFlow) -> Self {
        let next_len = flow.sizes.draw(flow.remote);
        Self {
            flow,
            next_len,
            poisson: None,
            now: Instant::ZERO,
            due_bytes: 0,
            sent_bytes: 0,
            sent_datagrams: 0,
            demanded: Octets::default(),
        }
    }

    /// Sends the datagrams, which have a constant size, as a Poisson process whose mean rate is the demand's: the
    /// octets demanded are then those of its datagrams.
    #[must_use]
    pub fn poisson(self, prng: Prng) -> Self {
        Self { poisson: Some(Poisson::new(self.next_len.into(), prng)), ..self }
    }

    /// Returns the payload octets demanded so far, shared with the source.
    pub fn demanded(&self) -> Octets {
        self.demanded.clone()
    }

    fn stopped(&self) -> bool {
        self.now >= self.flow.stop
    }

    fn advance(&mut self, now: Instant) {
        if self.stopped() || now <= self.now && self.due_bytes > 0 {
            return;
        }
        self.now = now.min(self.flow.stop);
        let demanded_bytes = self.flow.demand.bytes_until(self.now);
        self.due_bytes = self.poisson.as_mut().map_or(demanded_bytes, |poisson| poisson.due_bytes(demanded_bytes));
        self.demanded.set(self.due_bytes);
    }

    /// Takes the payload length of the next datagram, if it is due.
    fn next_payload(&mut self) -> Option<u16> {
        let len = u64::from(self.next_len);
        if self.due_bytes < self.sent_bytes + len {
            return None;
        }
        self.sent_bytes += len;
        Some(core::mem::replace(&mut self.next_len, self.flow.sizes.draw(self.flow.remote)))
    }

    fn next_call(&self) -> Option<Instant> {
        let wanted = match &self.poisson {
            Some(poisson) if self.due_bytes <= self.sent_bytes => poisson.next_bytes(),
            _ => self.sent_bytes + u64::from(self.next_len),
        };
        let next = self.flow.demand.next_event(wanted).filter(|_| !self.stopped())?;
        Some(next.min(self.flow.stop))
    }
}

impl DatagramSource for UdpSource {
    fn addresses(&self) -> (SocketAddr, SocketAddr) {
        (self.flow.local, self.flow.remote)
    }

    fn send(&mut self, now: Instant, payloads: &mut Vec<u16>) -> Option<Instant> {
        self.advance(now);
        payloads.extend(core::iter::from_fn(|| self.next_payload()));
        self.next_call()
    }
}

impl App for UdpSource {
    fn start(&mut self, _: &mut Endpoint, now: Instant) {
        self.advance(now);
    }

    fn handle_event(&mut self, _: &Event, _: &mut Endpoint, _: Instant) {}

    fn handle_timeout(&mut self, _: &mut Endpoint, now: Instant) {
        self.advance(now);
    }

    fn sends_datagrams(&self) -> bool {
        true
    }

    fn poll_datagram(&mut self, _: Instant) -> Option<Datagram> {
        let payload_len = self.next_payload()?;
        self.sent_datagrams += 1;
        let number = self.sent_datagrams;
        Some(Datagram { src: self.flow.local, dst: self.flow.remote, payload_len, number })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next_call()
    }

    fn report(&self) -> Report {
        Report { sent_bytes: self.sent_bytes, ..Report::default() }
    }
}

/// Counts the datagrams that arrive at a port, duplicates only once.
pub struct UdpSink {
    local: SocketAddr,
    received: Octets,
    seen: Seen,
}

/// Number of a flow's latest datagrams that are remembered: a copy is rarely later than that.
const REMEMBERED: u64 = 4096;

/// The latest datagrams of a flow that have arrived.
#[derive(Default)]
struct Seen {
    /// One more than the highest number that has arrived.
    next: u64,
    /// A bit for each of the latest numbers, at its place modulo [`REMEMBERED`]. Empty until a number arrives:
    /// datagrams from a cell's wire have none.
    arrived: Vec<u64>,
}

impl Seen {
    /// Records a number and returns whether it is new. A number older than all remembered ones counts as new: it is
    /// more likely late than a copy.
    fn is_new(&mut self, number: u64) -> bool {
        if number == 0 || number.saturating_add(REMEMBERED) < self.next {
            return true;
        }
        self.arrived.resize((REMEMBERED / 64) as usize, 0);
        let place = |number: u64| ((number % REMEMBERED / 64) as usize, 1_u64 << (number % 64));
        for skipped in self.next.max(number.saturating_sub(REMEMBERED - 1))..=number {
            let (word, bit) = place(skipped);
            self.arrived[word] &= !bit;
        }
        self.next = self.next.max(number.saturating_add(1));
        let (word, bit) = place(number);
        let is_new = self.arrived[word] & bit == 0;
        self.arrived[word] |= bit;
        is_new
    }
}

impl UdpSink {
    /// Creates a sink at `local`.
    pub fn new(local: SocketAddr) -> Self {
        Self { local, received: Octets::default(), seen: Seen::default() }
    }

    /// Returns the octets that have arrived so far, shared with the sink.
    pub fn received(&self) -> Octets {
        self.received.clone()
    }

    /// Counts a datagram if it is for this port and not a copy.
    #[inline]
    pub fn count(&mut self, datagram: &Datagram) {
        if datagram.dst == self.local && self.seen.is_new(datagram.number) {
            self.received.add(datagram.payload_len.into());
        }
    }
}

impl App for UdpSink {
    fn start(&mut self, _: &mut Endpoint, _: Instant) {}

    fn handle_event(&mut self, _: &Event, _: &mut Endpoint, _: Instant) {}

    fn handle_datagram(&mut self, datagram: &Datagram, _: Instant) {
        self.count(datagram);
    }

    fn report(&self) -> Report {
        Report { received_bytes: self.received.get(), ..Report::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use transport::EndpointConfig;
    use units::Rate;

    fn flow(sizes: DatagramSizes, stop_s: u64) -> UdpFlow {
        UdpFlow {
            local: "10.0.0.1:9".parse().unwrap(),
            remote: "10.0.0.2:9".parse().unwrap(),
            demand: Demand::constant(Rate::from_mbps(1), Instant::ZERO),
            sizes,
            stop: Instant::from_secs(stop_s),
        }
    }

    /// Times and sizes of the datagrams.
    fn run(source: &mut UdpSource) -> Vec<(u64, u16)> {
        let mut endpoint = Endpoint::with_seed(EndpointConfig::default(), 1);
        source.start(&mut endpoint, Instant::ZERO);
        let mut sent = Vec::new();
        while let Some(at) = source.poll_timeout() {
            source.handle_timeout(&mut endpoint, at);
            while let Some(datagram) = source.poll_datagram(at) {
                sent.push((at.as_micros(), datagram.payload_len));
            }
        }
        sent
    }

    #[test]
    fn constant_datagrams_are_evenly_spaced() {
        // 1250 octets at 1 Mbit/s take 10 ms.
        let mut source = UdpSource::new(flow(DatagramSizes::Constant(1250), 1));
        let sent = run(&mut source);
        assert_eq!(sent[..3], [(10_000, 1250), (20_000, 1250), (30_000, 1250)]);
        assert_eq!((sent.len(), source.demanded().get()), (100, 125_000));
    }

    #[test]
    fn poisson_datagrams_come_at_random_and_keep_the_rate() {
        let mut source = UdpSource::new(flow(DatagramSizes::Constant(1250), 100)).poisson(Prng::new(9));
        let sent = run(&mut source);
        // 10,000 are expected, with a standard deviation of 100.
        assert!((9_500..=10_500).contains(&sent.len()), "{}", sent.len());
        assert_eq!(source.demanded().get(), 1250 * sent.len() as u64);
        // Gaps below 1 ms, a tenth of the mean, are 9.5 % of all: 1 - e^-0.1.
        let short = sent.windows(2).filter(|pair| pair[1].0 - pair[0].0 < 1_000).count() as f64 / sent.len() as f64;
        assert!((short - 0.095).abs() < 0.01, "{short}");
    }

    #[test]
    fn the_mix_has_the_papers_sizes_and_keeps_the_rate() {
        let mut source = UdpSource::new(flow(DatagramSizes::Mix(Prng::new(5)), 100));
        let sent = run(&mut source);
        let share = |len: u16| sent.iter().filter(|(_, sent)| *sent == len).count() as f64 / sent.len() as f64;
        // About 23,500 datagrams: a standard error of 0.3 %.
        assert!((share(16) - 0.5).abs() < 0.015 && (share(548) - 0.25).abs() < 0.015, "{} {}", share(16), share(548));
        let bytes: u64 = sent.iter().map(|(_, len)| u64::from(*len)).sum();
        assert!(bytes <= 12_500_000 && bytes > 12_500_000 - 1500, "{bytes}");
    }

    #[test]
    fn packets_of_a_mix_are_no_larger_over_ipv6() {
        let drawn = |is_ipv6: bool, headers: u16| -> Vec<u16> {
            let mut prng = Prng::new(5);
            let mut all: Vec<u16> = (0..100).map(|_| mixed_payload_bytes(&mut prng, is_ipv6, headers)).collect();
            all.sort_unstable();
            all.dedup();
            all
        };
        assert_eq!((drawn(false, 28), drawn(false, 40)), (vec![16, 548, 1472], vec![4, 536, 1460]));
        assert_eq!((drawn(true, 28), drawn(true, 40)), (vec![16, 528, 1452], vec![4, 516, 1440]));
    }

    #[test]
    fn a_sink_counts_its_own_port_only() {
        let mut sink = UdpSink::new("10.0.0.2:9".parse().unwrap());
        sink.handle_datagram(&datagram("10.0.0.2:9", 0), Instant::ZERO);
        sink.handle_datagram(&datagram("10.0.0.2:8", 0), Instant::ZERO);
        assert_eq!(sink.received().get(), 100);
    }

    fn datagram(dst: &str, number: u64) -> Datagram {
        Datagram { src: "10.0.0.1:9".parse().unwrap(), dst: dst.parse().unwrap(), payload_len: 100, number }
    }

    #[test]
    fn a_copy_counts_once_and_a_late_one_as_well() {
        let mut sink = UdpSink::new("10.0.0.2:9".parse().unwrap());
        for (number, arrived) in [
            (1, 1),
            (1, 1),
            (3, 2),
            (2, 3),
            (3, 3),
            (2, 3),
            (5000, 4),
            (1, 5),
            (4999, 6),
            (4999, 6),
            (9095, 7),
            (5000, 7),
            (0, 8),
            (0, 9),
        ] {
            sink.handle_datagram(&datagram("10.0.0.2:9", number), Instant::ZERO);
            assert_eq!(sink.received().get(), arrived * 100, "{number}");
        }
    }
}
