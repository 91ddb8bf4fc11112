//! The TCP header (RFC 9293 section 3.1).

use core::fmt;
use core::ops::{BitOr, BitOrAssign};

use units::SeqNr;

/// Control bits, as in octet 13 of the TCP header.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// No bit set.
    pub const NONE: Self = Self(0);
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement field is significant.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer is significant.
    pub const URG: Self = Self(0x20);
    /// ECN echo (RFC 3168 section 6.1).
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced (RFC 3168 section 6.1).
    pub const CWR: Self = Self(0x80);

    /// Returns whether every bit of `other` is set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns whether any bit of `other` is set.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns these bits without those of `other`.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl BitOr for Flags {
    type Output = Flags;
    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Flags) {
        self.0 |= other.0;
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 8] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];
        let mut set = NAMES.iter().enumerate().filter(|(bit, _)| self.0 >> bit & 1 == 1).map(|(_, name)| *name);
        f.write_str(set.next().unwrap_or("-"))?;
        set.try_for_each(|name| write!(f, "|{name}"))
    }
}

/// Octets of a TCP header without options.
pub(crate) const HEADER_BYTES: usize = 20;
/// Offset of the checksum in the TCP header.
pub(crate) const CHECKSUM_OFFSET: usize = 16;

/// The fixed part of a TCP header. Reserved bits are ignored and sent as zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TcpHeader {
    pub src_port: u16,
    pub dst_port: u16,
    pub seq: SeqNr,
    pub ack: SeqNr,
    /// Octets of the header with options: the data offset.
    pub len: usize,
    pub flags: Flags,
    pub window: u16,
    pub urgent: u16,
}

impl TcpHeader {
    pub(crate) fn parse(header: &[u8; HEADER_BYTES]) -> Self {
        let u16_at = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let u32_at = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        Self {
            src_port: u16_at(0),
            dst_port: u16_at(2),
            seq: SeqNr(u32_at(4)),
            ack: SeqNr(u32_at(8)),
            len: usize::from(header[12] >> 4) * 4,
            flags: Flags(header[13]),
            window: u16_at(14),
            urgent: u16_at(18),
        }
    }

    /// Appends the header with checksum zero.
    pub(crate) fn emit(&self, out: &mut Vec<u8>) {
        let mut header = [0; HEADER_BYTES];
        header[0..2].copy_from_slice(&self.src_port.to_be_bytes());
        header[2..4].copy_from_slice(&self.dst_port.to_be_bytes());
        header[4..8].copy_from_slice(&self.seq.0.to_be_bytes());
        header[8..12].copy_from_slice(&self.ack.0.to_be_bytes());
        header[12] = u8::try_from(self.len / 4).unwrap_or(0x0f) << 4;
        header[13] = self.flags.0;
        header[14..16].copy_from_slice(&self.window.to_be_bytes());
        header[18..20].copy_from_slice(&self.urgent.to_be_bytes());
        out.extend_from_slice(&header);
    }
}
