//! Octets in a scenario's packets besides their payload.

use super::{LocalKind, LocalTraffic, Scenario};

/// Headers of a packet with timestamps and a mapping, octets: the part of the MTU that is not payload.
const HEADERS_BYTES: u64 = 72;
/// Headers of IPv4 and UDP.
const UDP_HEADERS_BYTES: f64 = 28.0;
/// Headers of IPv4 and TCP, with timestamps.
const TCP_HEADERS_BYTES: f64 = 52.0;
/// Headers over payload of MPTCP-rec's mix: packets of 541 octets on average; 90 % of the octets go over TCP with 40
/// octets of headers, and 10 % over UDP with 28.
const VBR_HEADER_RATIO: f64 = 0.9 * 40.0 / (541.0 - 40.0) + 0.1 * 28.0 / (541.0 - 28.0);

impl Scenario {
    /// Payload of a full packet of the connection, octets.
    pub(crate) fn payload_bytes(&self) -> u64 {
        self.connection.mtu.0.saturating_sub(HEADERS_BYTES).max(1)
    }

    /// Headers over payload in the packets of a relay's own flow.
    pub(crate) fn header_ratio(&self, local: &LocalTraffic) -> f64 {
        match local.kind {
            LocalKind::Udp | LocalKind::Poisson => UDP_HEADERS_BYTES / local.datagram.0.max(1) as f64,
            LocalKind::Vbr => VBR_HEADER_RATIO,
            LocalKind::Tcp | LocalKind::ShortFlows | LocalKind::Video => {
                TCP_HEADERS_BYTES / (self.connection.mtu.0 as f64 - TCP_HEADERS_BYTES).max(1.0)
            }
        }
    }
}
