//! Octets in a scenario's packets besides their payload.

use super::{LocalKind, LocalTraffic, Scenario};

/// Headers of a packet of IPv4 with timestamps and a mapping, octets: the part of the MTU that is not payload.
const HEADERS_BYTES: u64 = 72;
/// What the header of IPv6 has more than that of IPv4.
const IPV6_MORE_BYTES: u64 = 20;
/// Headers of IPv4 and UDP.
const UDP_HEADERS_BYTES: f64 = 28.0;
/// Headers of IPv4 and TCP, with timestamps.
const TCP_HEADERS_BYTES: f64 = 52.0;
/// Headers over payload of MPTCP-rec's mix over IPv4: packets of 541 octets on average; 90 % of the octets go over TCP
/// with 40 octets of headers, and 10 % over UDP with 28.
const VBR_HEADER_RATIO: f64 = 0.9 * 40.0 / (541.0 - 40.0) + 0.1 * 28.0 / (541.0 - 28.0);
/// The same over IPv6, where the smallest packets have 64 octets instead of 44, and so packets 551 on average.
const VBR_HEADER_RATIO_IPV6: f64 = 0.9 * 60.0 / (551.0 - 60.0) + 0.1 * 48.0 / (551.0 - 48.0);

impl Scenario {
    /// Payload of a full packet of the connection, octets.
    pub(crate) fn payload_bytes(&self) -> u64 {
        self.connection.mtu.0.saturating_sub(HEADERS_BYTES + self.ipv6_more_bytes()).max(1)
    }

    /// Headers over payload in the packets of a relay's own flow.
    pub(crate) fn header_ratio(&self, local: &LocalTraffic) -> f64 {
        let more_bytes = self.ipv6_more_bytes() as f64;
        match local.kind {
            LocalKind::Udp | LocalKind::Poisson => (UDP_HEADERS_BYTES + more_bytes) / local.datagram.0.max(1) as f64,
            LocalKind::Vbr if more_bytes > 0.0 => VBR_HEADER_RATIO_IPV6,
            LocalKind::Vbr => VBR_HEADER_RATIO,
            LocalKind::Tcp | LocalKind::ShortFlows | LocalKind::Video => {
                let headers_bytes = TCP_HEADERS_BYTES + more_bytes;
                headers_bytes / (self.connection.mtu.0 as f64 - headers_bytes).max(1.0)
            }
        }
    }

    fn ipv6_more_bytes(&self) -> u64 {
        if self.addresses().source.is_ipv6() { IPV6_MORE_BYTES } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::load;

    #[test]
    fn packets_of_ipv6_have_larger_headers() {
        let scenario = |source: &str| {
            let text = format!(
                "name = \"x\"\nduration = \"1 s\"\n{source}workload = {{ kind = \"none\" }}\n[[relays]]\n\
                 cellular = {{ rate = \"1 Mbit/s\", delay = \"5 ms\" }}\n\
                 local = [{{ kind = \"udp\", rate = \"1 kbit/s\", datagram = \"100 B\" }}, {{ kind = \"tcp\" }}, \
                 {{ kind = \"vbr\", rate = \"1 kbit/s\" }}]\n"
            );
            load("x.toml", &text, &[]).unwrap()
        };
        let (four, six) = (scenario(""), scenario("source = { address = \"fd00::1\" }\n"));
        assert_eq!((four.payload_bytes(), six.payload_bytes()), (1428, 1408));
        let ratios = |scenario: &Scenario| -> Vec<f64> {
            scenario.relays[0].local.iter().map(|local| scenario.header_ratio(local)).collect()
        };
        assert_eq!(ratios(&four)[..2], [0.28, 52.0 / 1448.0]);
        assert_eq!(ratios(&six)[..2], [0.48, 72.0 / 1428.0]);
        assert!(ratios(&six)[2] > ratios(&four)[2]);
    }
}
