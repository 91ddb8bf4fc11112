//! Assigns addresses to hosts.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Scenario;

/// The addresses of a scenario, defaults filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// Address of the source.
    pub source: IpAddr,
    /// Addresses of the destination, one for each relay in the relays' order.
    pub paths: Vec<IpAddr>,
    /// Each relay's own address.
    pub relays: Vec<IpAddr>,
    /// Addresses of the hosts from which the relays receive their local traffic.
    pub correspondents: Vec<IpAddr>,
}

/// Number of networks that differ in the second octet, with third octet zero; further relays also count in the third
/// octet.
const NETWORKS: usize = 250;

impl Scenario {
    /// All addresses. Addresses that the file omits follow the source's family: 10.0.0.1 for the source, and in the
    /// network 10.n.0.0/24 of relay n the destination at 2, the relay at 1 and its correspondent at 254; or fd00::1,
    /// and fd00:n::2, fd00:n::1 and fd00:n::fe.
    pub fn addresses(&self) -> Addresses {
        let source = self.source.address.unwrap_or(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)));
        let in_network = |index: usize, host: u8| match source {
            IpAddr::V4(_) => {
                let (second, third) = (index % NETWORKS + 1, index / NETWORKS);
                IpAddr::V4(Ipv4Addr::new(10, second as u8, third as u8, host))
            }
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::new(0xfd00, (index + 1) as u16, 0, 0, 0, 0, 0, host.into())),
        };
        let of_all = |host: u8| (0..self.relays.len()).map(|index| in_network(index, host)).collect();
        let paths = self.relays.iter().enumerate();
        let paths = paths.map(|(index, relay)| relay.address.unwrap_or_else(|| in_network(index, 2))).collect();
        Addresses { source, paths, relays: of_all(1), correspondents: of_all(254) }
    }
}
