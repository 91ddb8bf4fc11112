//! Address prefixes, for routes.

use core::fmt;
use core::net::IpAddr;

/// All addresses of one family that share their first `len` bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
    len: u8,
    bits: u128,
    mask: u128,
}

impl Prefix {
    /// Creates the prefix of `len` bits of `address`. A `len` longer than the family's addresses means the host itself.
    pub fn new(address: IpAddr, len: u8) -> Self {
        let (width, bits) = left_aligned(address);
        let len = len.min(width);
        let mask = if len == 0 { 0 } else { u128::MAX << (128 - len) };
        Self { address, len, bits: bits & mask, mask }
    }

    /// Creates the prefix that contains only `address`.
    pub fn host(address: IpAddr) -> Self {
        Self::new(address, 128)
    }

    /// Returns whether the prefix contains `address`.
    #[inline]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            // Called for every routed packet: for IPv4 one word is enough.
            (IpAddr::V4(_), IpAddr::V4(v4)) => v4.to_bits() & upper_word(self.mask) == upper_word(self.bits),
            (IpAddr::V6(_), IpAddr::V6(v6)) => v6.to_bits() & self.mask == self.bits,
            _ => false,
        }
    }

    /// Mask and bits of the prefix if it is IPv4.
    pub(crate) fn v4(&self) -> Option<(u32, u32)> {
        self.address.is_ipv4().then(|| (upper_word(self.mask), upper_word(self.bits)))
    }

    /// Mask and bits of the prefix if it is IPv6.
    pub(crate) fn v6(&self) -> Option<(u128, u128)> {
        self.address.is_ipv6().then_some((self.mask, self.bits))
    }

    /// Returns the length in bits.
    pub const fn len(&self) -> u8 {
        self.len
    }

    /// Returns whether the prefix contains every address of its family.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// Number of bits of the family, and the address in the upper ones of 128.
fn left_aligned(address: IpAddr) -> (u8, u128) {
    match address {
        IpAddr::V4(v4) => (32, u128::from(v4.to_bits()) << 96),
        IpAddr::V6(v6) => (128, v6.to_bits()),
    }
}

/// The upper 32 bits of 128.
const fn upper_word(bits: u128) -> u32 {
    (bits >> 96) as u32
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str, len: u8) -> Prefix {
        Prefix::new(text.parse().unwrap(), len)
    }

    #[test]
    fn compares_the_leading_bits_of_one_family() {
        let ten = prefix("10.1.0.0", 16);
        assert!(ten.contains("10.1.255.1".parse().unwrap()));
        assert!(!ten.contains("10.2.0.1".parse().unwrap()));
        assert!(!ten.contains("::1".parse().unwrap()));
        assert!(prefix("fd00:1::", 32).contains("fd00:1:2::3".parse().unwrap()));
        assert!(!prefix("fd00:1::", 32).contains("fd00:2::3".parse().unwrap()));
        assert!(prefix("0.0.0.0", 0).contains("255.255.255.255".parse().unwrap()));
        assert!(!Prefix::host("10.0.0.1".parse().unwrap()).contains("10.0.0.0".parse().unwrap()));
    }
}
