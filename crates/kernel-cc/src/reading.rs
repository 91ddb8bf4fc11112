//! Reads the state of a connection as stored by the kernel's programs.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use crate::layout::{self, half, port, word};
use crate::{Connection, Controller, Subflow, Told};

impl Connection {
    /// Parses the values of the maps `connections` and, if there is one, `adapted`.
    pub(crate) fn parse(controller: &Controller, key: u64, value: &[u8], adapted: &[u8]) -> Self {
        let used = word(value, 0);
        let places = (0..layout::PLACES).filter(|place| used >> place & 1 == 1);
        let subflows = places.map(|place| Subflow::parse(controller, value, adapted, place)).collect();
        Self { token: u32::try_from(key).ok(), subflows }
    }
}

impl Subflow {
    fn parse(controller: &Controller, value: &[u8], adapted: &[u8], place: usize) -> Self {
        let path = &value[layout::PATHS_AT + place * layout::PATH_OCTETS..];
        let owner = &value[layout::PLACES_AT + place * layout::PLACE_OCTETS..];
        let mss = half(path, 32);
        let ssthresh = word(path, 8);
        let weighs = controller.name.starts_with("mveno");
        Self {
            local: SocketAddr::new(address(owner, 8), port(owner, 40)),
            remote: SocketAddr::new(address(owner, 24), port(owner, 42)),
            address_id: u8::try_from(half(owner, 48)).unwrap_or(0),
            cwnd_bytes: word(path, 0),
            // The kernel's infinity is 2^31 - 1 segments.
            ssthresh_bytes: (ssthresh < u64::from(mss) * 0x7fff_ffff).then_some(ssthresh),
            mss_bytes: mss,
            srtt: known(word(path, 16)),
            base_rtt: known(word(path, 24)),
            in_recovery: half(path, 36) != 0,
            delta: weighs.then(|| word(path, 40) as f64 / 65536.0),
            q: if weighs { congestion(path) } else { None },
            told: Told::default(),
            cuts: word(adapted, layout::cuts_at(place)),
        }
    }
}

/// Reads an address; an IPv4 address is stored as an IPv4-mapped IPv6 address (RFC 4291 section 2.5.5.2).
fn address(octets: &[u8], at: usize) -> IpAddr {
    let octets: Option<[u8; 16]> = octets.get(at..at + 16).and_then(|octets| octets.try_into().ok());
    octets.map_or(Ipv6Addr::UNSPECIFIED, Ipv6Addr::from).to_canonical()
}

/// Reads a time; all bits set means unknown.
fn known(nanos: u64) -> Option<Duration> {
    (nanos != u64::MAX).then(|| Duration::from_nanos(nanos))
}

/// Equation (4) of mVeno, for its last round.
fn congestion(path: &[u8]) -> Option<f64> {
    let [samples, mean_rtt, base_rtt, cwnd_max, mss] = [96, 104, 112, 128, 136].map(|at| word(path, at));
    let queued = mean_rtt.saturating_sub(base_rtt) as f64 * cwnd_max as f64;
    let calm = 3.0 * mss as f64 * mean_rtt as f64 / queued;
    (samples > 0).then(|| (1.0 - calm.min(1.0)).max(0.01))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subflow_is_read_from_its_place() {
        let mut value = vec![0; layout::CONNECTION_OCTETS];
        let mut put = |at: usize, octets: &[u8]| value[at..at + octets.len()].copy_from_slice(octets);
        put(0, &0b10_u64.to_ne_bytes());
        let path = layout::PATHS_AT + layout::PATH_OCTETS;
        for (at, word) in [(0, 14_280), (8, u64::MAX >> 8), (16, 30_000_000), (24, u64::MAX), (40, 32_768)] {
            put(path + at, &u64::to_ne_bytes(word));
        }
        for (at, word) in [(96, 1), (104, 125), (112, 100), (128, 60_000), (136, 1000)] {
            put(path + at, &u64::to_ne_bytes(word));
        }
        put(path + 32, &1428_u32.to_ne_bytes());
        let place = layout::PLACES_AT + layout::PLACE_OCTETS;
        put(place + 8, &"::ffff:10.0.0.1".parse::<Ipv6Addr>().unwrap().octets());
        put(place + 24, &"2001:db8::2".parse::<Ipv6Addr>().unwrap().octets());
        put(place + 40, &80_u16.to_ne_bytes());
        put(place + 42, &5000_u16.to_ne_bytes());
        put(place + 48, &3_u32.to_ne_bytes());
        let adapted: Vec<u8> = (0..121_u64).flat_map(u64::to_ne_bytes).collect();
        let found = Connection::parse(&Controller::named("mveno").unwrap(), 7, &value, &adapted);
        assert_eq!(found.token, Some(7));
        let [subflow] = &found.subflows[..] else { panic!("{found:?}") };
        assert_eq!(subflow.local, "10.0.0.1:80".parse().unwrap());
        assert_eq!(subflow.remote, "[2001:db8::2]:5000".parse().unwrap());
        assert_eq!((subflow.address_id, subflow.told, subflow.cuts), (3, Told::default(), 20));
        assert_eq!((subflow.cwnd_bytes, subflow.ssthresh_bytes, subflow.mss_bytes), (14_280, None, 1428));
        assert_eq!((subflow.srtt, subflow.base_rtt), (Some(Duration::from_millis(30)), None));
        assert_eq!(subflow.delta, Some(0.5));
        // N = 60 * 25/125 = 12 segments: 1 - 3/12.
        assert_eq!(subflow.q, Some(0.75));
    }
}
