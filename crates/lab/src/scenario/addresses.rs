//! Who has which address.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Scenario;

/// The addresses of a scenario, defaults filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// The source's.
    pub source: IpAddr,
    /// The destination's, one for each relay in the relays' order.
    pub paths: Vec<IpAddr>,
}

impl Scenario {
    /// All addresses. Where the file names none they follow the source's family: 10.0.0.1 for the source and
    /// 10.n.0.2 behind relay n, or fd00::1 and fd00:n::2.
    pub fn addresses(&self) -> Addresses {
        let source = self.source.address.unwrap_or(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)));
        let default = |index: usize| match source {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::new(10, (index + 1) as u8, 0, 2)),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::new(0xfd00, (index + 1) as u16, 0, 0, 0, 0, 0, 2)),
        };
        let paths =
            self.relays.iter().enumerate().map(|(index, relay)| relay.address.unwrap_or_else(|| default(index)));
        Addresses { source, paths: paths.collect() }
    }
}
