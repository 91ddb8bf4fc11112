//! The reasons why octets are not a segment.

/// A packet that cannot be read as a TCP segment. Offsets and lengths count octets from the start of the IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// The packet ends inside `field`.
    #[error("packet of {have} octets ends inside the {field}, which needs {need}: was it captured or read whole?")]
    Truncated {
        /// The header that is cut off, or whose length field promises more octets than there are.
        field: &'static str,
        /// Octets that it needs.
        need: usize,
        /// Octets that are there.
        have: usize,
    },
    /// Neither IPv4 nor IPv6.
    #[error("IP version {version} at octet 0 is neither 4 nor 6: does the packet start with its IP header?")]
    UnknownVersion {
        /// The high nibble of the first octet.
        version: u8,
    },
    /// A length field contradicts the headers.
    #[error("the {field} says {value} octets, but the header takes at least {min}: drop the packet")]
    BadLength {
        /// The length field.
        field: &'static str,
        /// Its value, in octets.
        value: usize,
        /// Its smallest valid value.
        min: usize,
    },
    /// A fragment. TCP avoids them (path MTU discovery), and reassembly is the work of the IP layer.
    #[error("a fragment of an IP packet: reassemble it first, or lower the MTU of the sender")]
    Fragment,
    /// A protocol other than TCP: the packet is valid, but not for this stack.
    #[error("IP protocol {protocol} is not TCP (6): pass the packet to its own handler")]
    NotTcp {
        /// Protocol number (IPv4) or the next header at which reading stopped (IPv6).
        protocol: u8,
    },
    /// An ICMP message of another kind than expected.
    #[error("ICMP type {icmp_type}, code {code} does not say that a packet was too big: ignore it")]
    NotTooBig {
        /// Type of the message.
        icmp_type: u8,
        /// Its code.
        code: u8,
    },
    /// An ICMP error about a packet that its receiver did not send.
    #[error("the ICMP error quotes a packet that this host did not send: ignore it")]
    NotOurs,
    /// An IPv6 source route that has not reached its end (RFC 8200 section 4.4).
    #[error("IPv6 routing header with {segments_left} segments left: this host forwards nothing, drop the packet")]
    SourceRoute {
        /// Hops that remain.
        segments_left: u8,
    },
    /// A checksum is wrong.
    #[error("wrong {field} checksum: damaged on the way, or left to the device (then parse with TcpChecksum::Trusted)")]
    BadChecksum {
        /// The checksum in question: `IPv4 header`, `TCP`, `ICMP` or `quoted IPv4 header`.
        field: &'static str,
    },
}
