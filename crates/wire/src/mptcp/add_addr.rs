//! ADD_ADDR (RFC 8684 section 3.4.1).

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{AddressId, begin, subtype};
use crate::octets::Reader;

/// Announces an address of the sender, or echoes an announcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddAddr {
    /// Identifier by which the address can be withdrawn.
    pub address_id: AddressId,
    /// The address.
    pub address: IpAddr,
    /// The port, if not that of the first subflow.
    pub port: Option<u16>,
    /// The rightmost 64 bits of the HMAC; `None` in an echo.
    pub hmac: Option<u64>,
}

const ECHO: u8 = 0x1;
const PORT_BYTES: usize = 2;
const HMAC_BYTES: usize = 8;

impl AddAddr {
    /// E: whether this echoes the peer's announcement.
    pub const fn is_echo(&self) -> bool {
        self.hmac.is_none()
    }

    /// Octets of figure 12: a head of four, the address, and the optional port and HMAC.
    pub(super) const fn len(&self) -> usize {
        let address = if self.address.is_ipv4() { 4 } else { 16 };
        let port = if self.port.is_some() { PORT_BYTES } else { 0 };
        let hmac = if self.hmac.is_some() { HMAC_BYTES } else { 0 };
        4 + address + port + hmac
    }

    /// Reads figure 12 from its subtype octet on. Flag E tells whether there is an HMAC; the length alone tells address
    /// family and port.
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        let mut body = Reader::new(body);
        let echo = body.u8()? & ECHO != 0;
        let address_id = AddressId(body.u8()?);
        let address_and_port = body.remaining().checked_sub(if echo { 0 } else { HMAC_BYTES })?;
        let (address, has_port): (IpAddr, bool) = match address_and_port {
            4 | 6 => (Ipv4Addr::from(body.array::<4>()?).into(), address_and_port == 6),
            16 | 18 => (Ipv6Addr::from(body.array::<16>()?).into(), address_and_port == 18),
            _ => return None,
        };
        let port = if has_port { Some(body.u16()?) } else { None };
        let hmac = if echo { None } else { Some(body.u64()?) };
        body.finish(Self { address_id, address, port, hmac })
    }

    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        begin(subtype::ADD_ADDR, if self.is_echo() { ECHO } else { 0 }, self.len(), out);
        out.push(self.address_id.0);
        match self.address {
            IpAddr::V4(address) => out.extend_from_slice(&address.octets()),
            IpAddr::V6(address) => out.extend_from_slice(&address.octets()),
        }
        if let Some(port) = self.port {
            out.extend_from_slice(&port.to_be_bytes());
        }
        if let Some(hmac) = self.hmac {
            out.extend_from_slice(&hmac.to_be_bytes());
        }
    }
}
