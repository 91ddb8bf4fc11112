//! Choice of a local address for connections whose owner names none.

use core::net::{IpAddr, SocketAddr};

use super::Endpoint;
use crate::error::ConnectError;

impl Endpoint {
    /// Makes connections from an unspecified address of its family start at `ip` from now on, until that address is
    /// removed.
    pub fn prefer_address(&mut self, ip: IpAddr) {
        self.preferred_address = Some(ip);
    }

    /// Returns `local` or, if it is unspecified, an address of its family from which segments can leave.
    pub(super) fn specified(&self, local: SocketAddr) -> Result<SocketAddr, ConnectError> {
        if !local.ip().is_unspecified() {
            return Ok(local);
        }
        let is_like = |ip: &IpAddr| ip.is_ipv4() == local.is_ipv4();
        let known = || self.host.local_addresses().iter().filter(|known| is_like(&known.ip));
        let first = || known().find(|known| !known.backup).or_else(|| known().next()).map(|known| known.ip);
        let ip = self.preferred_address.filter(is_like).or_else(first).ok_or(ConnectError::NoLocalAddress)?;
        Ok(SocketAddr::new(ip, local.port()))
    }
}

#[cfg(test)]
mod tests {
    use units::Instant;

    use super::*;
    use crate::path_manager::LocalAddress;
    use crate::{ConnectionConfig, EndpointConfig};

    /// Returns the address from which the SYN of a connection to a peer of the family leaves.
    fn begins_at(endpoint: &mut Endpoint, v4: bool) -> Result<IpAddr, ConnectError> {
        let (local, remote) = if v4 { ("0.0.0.0:0", "10.0.9.1:80") } else { ("[::]:0", "[2001:db8::9]:80") };
        let [local, remote] = [local, remote].map(|text| text.parse().unwrap());
        endpoint.connect(local, remote, ConnectionConfig::default(), Instant::ZERO)?;
        Ok(endpoint.poll_transmit(Instant::ZERO).expect("a SYN").src.ip())
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_unspecified_address_stands_for_one_of_its_family() {
        let known = [("2001:db8::1", true), ("2001:db8::2", false), ("10.0.0.1", true)];
        let local_addresses = known.map(|(text, backup)| LocalAddress { ip: ip(text), backup }).into();
        let mut endpoint = Endpoint::with_seed(EndpointConfig { local_addresses, ..EndpointConfig::default() }, 1);
        assert_eq!(begins_at(&mut endpoint, true), Ok(ip("10.0.0.1")), "a backup before none");
        assert_eq!(begins_at(&mut endpoint, false), Ok(ip("2001:db8::2")), "the first that is no backup");
        endpoint.prefer_address(ip("10.0.1.1"));
        assert_eq!(begins_at(&mut endpoint, true), Ok(ip("10.0.1.1")));
        assert_eq!(begins_at(&mut endpoint, false), Ok(ip("2001:db8::2")), "what is preferred is of the other family");
    }

    #[test]
    fn an_address_that_is_gone_is_preferred_no_longer() {
        let local_addresses = ["10.0.0.1", "10.0.1.1"].map(|text| LocalAddress { ip: ip(text), backup: false }).into();
        let mut endpoint = Endpoint::with_seed(EndpointConfig { local_addresses, ..EndpointConfig::default() }, 1);
        endpoint.prefer_address(ip("10.0.0.1"));
        endpoint.remove_local_address(ip("10.0.0.1"), Instant::ZERO);
        assert_eq!(begins_at(&mut endpoint, true), Ok(ip("10.0.1.1")));
    }

    #[test]
    fn nothing_leaves_from_an_unspecified_address() {
        let mut endpoint = Endpoint::with_seed(EndpointConfig::default(), 1);
        endpoint.prefer_address(ip("10.0.1.1"));
        assert_eq!(begins_at(&mut endpoint, false), Err(ConnectError::NoLocalAddress));
        assert_eq!(begins_at(&mut endpoint, true), Ok(ip("10.0.1.1")));
    }
}
