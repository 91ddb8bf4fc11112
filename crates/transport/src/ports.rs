//! Source ports (RFC 6056, algorithm 4 of section 3.3: "double-hash").
//!
//! Ports for one destination are consecutive, from a start that depends on a secret. A port is therefore reused as late
//! as possible, and an off-path attacker cannot guess it. Another process starts elsewhere, so it does not collide with
//! connections of this process that the peer keeps in TIME-WAIT.

use core::net::{IpAddr, SocketAddr};

use sha2::{Digest, Sha256};
use units::narrow::u16_from;

/// Number of counters. Destinations share them by hash, so one counter says little about another destination (RFC 6056
/// section 3.3.4 suggests ten or more).
const COUNTERS: usize = 64;

/// Chooses source ports.
#[derive(Debug)]
pub(crate) struct SourcePorts {
    first: u16,
    secret: [u8; 32],
    counters: [u32; COUNTERS],
}

impl SourcePorts {
    /// Chooses from the ports starting at `first`. Zero is not a port.
    pub(crate) fn new(first: u16, secret: [u8; 32]) -> Self {
        Self { first: first.max(1), secret, counters: [0; COUNTERS] }
    }

    /// Picks a port from `local` to `remote` for which `is_free` holds. Returns `None` if there is none.
    pub(crate) fn pick(&mut self, local: IpAddr, remote: SocketAddr, is_free: impl Fn(u16) -> bool) -> Option<u16> {
        let (offset, counter) = self.hash(local, remote);
        let count = u32::from(u16::MAX - self.first) + 1;
        for _ in 0..count {
            let place = (offset + self.counters[counter]) % count;
            self.counters[counter] = (self.counters[counter] + 1) % count;
            let port = self.first + u16_from(place.into());
            if is_free(port) {
                return Some(port);
            }
        }
        None
    }

    /// Computes F and G of the RFC: where the ports towards `remote` start, and which counter advances from there.
    fn hash(&self, local: IpAddr, remote: SocketAddr) -> (u32, usize) {
        let mut hash = Sha256::new().chain_update(self.secret);
        for ip in [local, remote.ip()] {
            match ip {
                IpAddr::V4(ip) => hash.update(ip.octets()),
                IpAddr::V6(ip) => hash.update(ip.octets()),
            }
        }
        let digest = hash.chain_update(remote.port().to_be_bytes()).finalize();
        let offset = u32::from(u16::from_be_bytes([digest[0], digest[1]]));
        (offset, usize::from(digest[2]) % COUNTERS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pick(ports: &mut SourcePorts, is_free: impl Fn(u16) -> bool) -> Option<u16> {
        ports.pick("10.0.0.1".parse().unwrap(), "10.0.0.2:80".parse().unwrap(), is_free)
    }

    #[test]
    fn zero_is_no_port() {
        let mut ports = SourcePorts::new(0, [1; 32]);
        let seen: std::collections::BTreeSet<_> = (0..=u16::MAX).filter_map(|_| pick(&mut ports, |_| true)).collect();
        assert_eq!((seen.first(), seen.last()), (Some(&1), Some(&u16::MAX)));
    }

    #[test]
    fn the_only_free_port_is_found() {
        let mut ports = SourcePorts::new(60_000, [1; 32]);
        for sought in (60_000..=u16::MAX).step_by(100) {
            assert_eq!(pick(&mut ports, |port| port == sought), Some(sought));
        }
        assert_eq!(pick(&mut ports, |_| false), None);
    }
}
