//! Attributes of netlink messages: length, type and value, padded to four octets (`netlink(7)`).

use std::net::IpAddr;

/// Flag in the type of an attribute that holds others.
const NESTED: u16 = 0x8000;
/// Mask of the type without the flags for nesting and byte order.
const TYPE_MASK: u16 = 0x3fff;
const HEADER_BYTES: usize = 4;

/// A list of attributes to send.
#[derive(Clone, Debug, Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// Adds an attribute.
    pub fn with(mut self, kind: u16, value: &[u8]) -> Self {
        let len = u16::try_from(HEADER_BYTES + value.len()).expect("attributes that we write are short");
        self.0.extend_from_slice(&len.to_ne_bytes());
        self.0.extend_from_slice(&kind.to_ne_bytes());
        self.0.extend_from_slice(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// Adds an attribute that holds others.
    pub fn with_nested(self, kind: u16, inner: &Self) -> Self {
        self.with(kind | NESTED, &inner.0)
    }

    /// Returns the octets of all attributes.
    pub fn into_octets(self) -> Vec<u8> {
        self.0
    }
}

/// Received attributes, up to the first truncated one.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a>(pub &'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let word = |at: usize| Some(u16::from_ne_bytes(self.0.get(at..at + 2)?.try_into().ok()?));
        let (len, kind) = (usize::from(word(0)?), word(2)?);
        let value = self.0.get(HEADER_BYTES..len)?;
        self.0 = self.0.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((kind & TYPE_MASK, value))
    }
}

impl<'a> Attributes<'a> {
    /// Returns the value of the first attribute of a type.
    pub fn get(self, kind: u16) -> Option<&'a [u8]> {
        self.clone().find_map(|(found, value)| (found == kind).then_some(value))
    }

    /// Returns a number of one octet.
    pub fn u8(self, kind: u16) -> Option<u8> {
        self.get(kind)?.first().copied()
    }

    /// Returns a number in the machine's byte order.
    pub fn u16(self, kind: u16) -> Option<u16> {
        Some(u16::from_ne_bytes(self.get(kind)?.get(..2)?.try_into().ok()?))
    }

    /// Returns a number in network byte order.
    pub fn be16(self, kind: u16) -> Option<u16> {
        Some(u16::from_be_bytes(self.get(kind)?.get(..2)?.try_into().ok()?))
    }

    /// Returns a number in the machine's byte order.
    pub fn u32(self, kind: u16) -> Option<u32> {
        Some(u32::from_ne_bytes(self.get(kind)?.get(..4)?.try_into().ok()?))
    }

    /// Returns the address in the attribute of type `v4`, or in that of type `v6`.
    pub fn ip(self, v4: u16, v6: u16) -> Option<IpAddr> {
        let octets = |kind, len: usize| self.get(kind)?.get(..len);
        match octets(v4, 4) {
            Some(octets) => Some(IpAddr::from(<[u8; 4]>::try_from(octets).ok()?)),
            // An IPv6 socket may carry IPv4.
            None => Some(IpAddr::from(<[u8; 16]>::try_from(octets(v6, 16)?).ok()?).to_canonical()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let inner = Writer::default().with(3, &[192, 0, 2, 1]);
        let octets = Writer::default().with(1, b"abc").with_nested(2, &inner).into_octets();
        assert_eq!(octets.len(), 8 + 12);
        let all = Attributes(&octets);
        assert_eq!(all.get(1), Some(&b"abc"[..]));
        assert_eq!(Attributes(all.get(2).unwrap()).ip(3, 4), "192.0.2.1".parse().ok());
        assert_eq!(all.u32(1), None, "too short");
    }

    #[test]
    fn ipv4_within_ipv6_is_ipv4() {
        let mapped: std::net::Ipv6Addr = "::ffff:192.0.2.1".parse().unwrap();
        let octets = Writer::default().with(6, &mapped.octets()).into_octets();
        assert_eq!(Attributes(&octets).ip(5, 6), "192.0.2.1".parse().ok());
    }

    #[test]
    fn whatever_arrives_is_read_to_an_end() {
        let octets = Writer::default().with(1, b"abc").with(2, &[1; 9]).into_octets();
        for cut in 0..octets.len() {
            assert!(Attributes(&octets[..cut]).count() <= 2);
        }
        for len in [0_u8, 1, 3, 255] {
            let mut spoiled = octets.clone();
            spoiled[0] = len;
            assert!(Attributes(&spoiled).count() <= octets.len());
        }
    }
}
