//! ADD_ADDR (RFC 8684 section 3.4.1).

use core::net::IpAddr;

use super::AddressId;

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

impl AddAddr {
    /// E: whether this echoes the peer's announcement.
    pub const fn is_echo(&self) -> bool {
        self.hmac.is_none()
    }
}
