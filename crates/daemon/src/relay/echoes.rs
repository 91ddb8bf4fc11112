//! How long packets wait on the shared link, seen from what is lent: no probes are sent. Sans-IO.
//!
//! A destination's segment carries a timestamp (RFC 7323), which the server's next one echoes. The time in between is a round trip over the
//! shared link; what it is longer than the shortest one to that server is time in queues. They are the link's, by far: the rest of the way is
//! wider.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use units::{Duration, Instant};

/// Flows that are watched; what others say is left out.
const FLOWS_MAX: usize = 64;
/// Timestamps of one that may be under way.
const STAMPS_MAX: usize = 64;
/// An echo that took longer is none: the server had nothing to say.
const ECHO_MAX: Duration = Duration::from_secs(3);
/// Servers whose shortest round trip is remembered.
const SERVERS_MAX: usize = 256;
/// For how long it is: routes change. The one of the period before counts as well.
const PERIOD: Duration = Duration::from_secs(300);

/// A flow of a destination: who it is with, and both ports.
type Flow = (IpAddr, IpAddr, [u8; 4]);

/// What was seen under way.
#[derive(Debug, Default)]
pub struct Echoes {
    flows: BTreeMap<Flow, VecDeque<(u32, Instant)>>,
    shortest: BTreeMap<IpAddr, Duration>,
    shortest_before: BTreeMap<IpAddr, Duration>,
    period_ends: Option<Instant>,
}

impl Echoes {
    /// A destination's packet leaves through the shared link.
    pub fn heed_up(&mut self, packet: &[u8], now: Instant) {
        let Some((source, destination, segment)) = tcp(packet) else { return };
        let Some((stamp, _)) = timestamps(segment) else { return };
        let ports = [segment[0], segment[1], segment[2], segment[3]];
        let flow = (source, destination, ports);
        if !self.flows.contains_key(&flow) && self.flows.len() >= FLOWS_MAX {
            let is_live = |(_, sent): &(u32, Instant)| now.saturating_since(*sent) < ECHO_MAX;
            self.flows.retain(|_, stamps| stamps.back().is_some_and(is_live));
            if self.flows.len() >= FLOWS_MAX {
                return;
            }
        }
        let stamps = self.flows.entry(flow).or_default();
        // Of several packets with one stamp the server echoes the first that it has, as RFC 7323 section 4.3 says.
        if stamps.back().is_none_or(|(last, _)| *last != stamp) {
            if stamps.len() == STAMPS_MAX {
                stamps.pop_front();
            }
            stamps.push_back((stamp, now));
        }
    }

    /// A packet for a destination has come through the shared link: how long it, or what it answers, waited in queues, if it tells.
    pub fn heed_down(&mut self, packet: &[u8], now: Instant) -> Option<Duration> {
        let (source, destination, segment) = tcp(packet)?;
        let (_, echo) = timestamps(segment)?;
        let ports = [segment[2], segment[3], segment[0], segment[1]];
        let stamps = self.flows.get_mut(&(destination, source, ports))?;
        let position = stamps.iter().position(|(stamp, _)| *stamp == echo)?;
        let (_, sent) = stamps.drain(..=position).next_back()?;
        let span = now.saturating_since(sent);
        (span <= ECHO_MAX).then(|| span.saturating_sub(self.base(source, span, now)))
    }

    /// The shortest round trip to a server, now that there was one of `span`.
    fn base(&mut self, server: IpAddr, span: Duration, now: Instant) -> Duration {
        let ends = *self.period_ends.get_or_insert(now + PERIOD);
        if ends <= now {
            self.shortest_before = core::mem::take(&mut self.shortest);
            self.period_ends = Some(now + PERIOD);
        }
        if self.shortest.len() >= SERVERS_MAX {
            self.shortest.clear();
        }
        let shortest = self.shortest.entry(server).or_insert(span);
        *shortest = span.min(*shortest);
        self.shortest_before.get(&server).map_or(*shortest, |before| (*shortest).min(*before))
    }
}

/// Source, destination and segment of a packet of TCP that is no fragment.
fn tcp(packet: &[u8]) -> Option<(IpAddr, IpAddr, &[u8])> {
    const TCP: u8 = 6;
    let (protocol, at, is_fragment) = match packet.first()? >> 4 {
        4 => {
            let offset = u16::from_be_bytes([*packet.get(6)?, *packet.get(7)?]);
            (*packet.get(9)?, usize::from(packet[0] & 0xf) * 4, offset & 0x3fff != 0)
        }
        6 => (*packet.get(6)?, 40, false),
        _ => return None,
    };
    let segment = packet.get(at..).filter(|segment| segment.len() >= 20 && protocol == TCP && !is_fragment)?;
    Some((wire::source(packet)?, wire::destination(packet)?, segment))
}

/// The timestamp of a segment, and the one that it echoes.
fn timestamps(segment: &[u8]) -> Option<(u32, u32)> {
    const END: u8 = 0;
    const NO_OPERATION: u8 = 1;
    const TIMESTAMPS: (u8, u8) = (8, 10);
    let header_len = usize::from(segment[12] >> 4) * 4;
    let mut options = segment.get(20..header_len)?;
    loop {
        match *options {
            [END, ..] | [] => return None,
            [NO_OPERATION, ref rest @ ..] => options = rest,
            [kind, len, ref rest @ ..] if (kind, len) == TIMESTAMPS => {
                let (value, rest) = rest.split_first_chunk::<4>()?;
                let echo = rest.first_chunk::<4>()?;
                return Some((u32::from_be_bytes(*value), u32::from_be_bytes(*echo)));
            }
            [_, len, ..] => options = options.get(usize::from(len).max(2)..)?,
            [_] => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DESTINATION: [u8; 4] = [10, 99, 98, 8];
    const SERVER: [u8; 4] = [203, 0, 113, 5];

    /// A packet of TCP with timestamps behind other options.
    fn packet(is_up: bool, value: u32, echo: u32) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 52, 0, 0, 0x40, 0, 64, 6, 0, 0];
        let (ends, ports) =
            if is_up { ([DESTINATION, SERVER], [40000_u16, 443]) } else { ([SERVER, DESTINATION], [443, 40000]) };
        packet.extend(ends.concat());
        packet.extend(ports.map(u16::to_be_bytes).concat());
        packet.extend([0; 8]);
        packet.extend([0x80, 0x10, 1, 0, 0, 0, 0, 0, 1, 1, 8, 10]);
        packet.extend(value.to_be_bytes());
        packet.extend(echo.to_be_bytes());
        packet
    }

    #[test]
    fn what_is_longer_than_the_shortest_way_is_a_queue() {
        let (mut echoes, ms) = (Echoes::default(), Instant::from_millis);
        for (value, sent, heard, queue) in [(1, 0, 50, 0), (2, 60, 130, 20), (3, 140, 180, 0), (4, 190, 240, 10)] {
            echoes.heed_up(&packet(true, value, 0), ms(sent));
            echoes.heed_up(&packet(true, value, 0), ms(sent + 5));
            assert_eq!(echoes.heed_down(&packet(false, 9, value), ms(heard)), Some(Duration::from_millis(queue)));
            assert_eq!(echoes.heed_down(&packet(false, 9, value), ms(heard + 1)), None, "told once");
        }
        assert_eq!(echoes.heed_down(&packet(false, 9, 77), ms(300)), None, "nobody said that");
        echoes.heed_up(&packet(true, 5, 0), ms(300));
        assert_eq!(echoes.heed_down(&packet(false, 9, 5), ms(4000)), None, "the server had nothing to say");
    }

    #[test]
    fn what_is_remembered_is_bounded_and_routes_change() {
        let mut echoes = Echoes::default();
        for number in 0..10_000_u32 {
            let mut packet = packet(true, number, 0);
            packet[20..22].copy_from_slice(&(number as u16).to_be_bytes());
            echoes.heed_up(&packet, Instant::from_millis(u64::from(number)));
        }
        assert!(echoes.flows.len() <= FLOWS_MAX);
        let mut echoes = Echoes::default();
        let round_trip = |echoes: &mut Echoes, at: Instant, span: Duration| {
            echoes.heed_up(&packet(true, 1, 0), at);
            echoes.heed_down(&packet(false, 9, 1), at + span).unwrap()
        };
        let (short, long) = (Duration::from_millis(20), Duration::from_millis(80));
        assert_eq!(round_trip(&mut echoes, Instant::ZERO, short), Duration::ZERO);
        for minutes in [1, 6] {
            let at = Instant::from_secs(minutes * 60);
            assert_eq!(round_trip(&mut echoes, at, long), Duration::from_millis(60), "{minutes}");
        }
        assert_eq!(round_trip(&mut echoes, Instant::from_secs(900), long), Duration::ZERO);
    }

    proptest! {
        #[test]
        fn arbitrary_octets_are_looked_at(octets in proptest::collection::vec(any::<u8>(), 0..100)) {
            let mut echoes = Echoes::default();
            for first in [0x45, 0x4f, 0x60] {
                let mut octets = octets.clone();
                octets.splice(0..octets.len().min(1), [first]);
                echoes.heed_up(&octets, Instant::ZERO);
                echoes.heed_down(&octets, Instant::ZERO);
            }
        }
    }
}
