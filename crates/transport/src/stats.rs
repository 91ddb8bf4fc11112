//! Statistics of connections and subflows. They remain available after the close.

use core::net::SocketAddr;

use serde::{Serialize, Serializer};
use units::{Duration, Instant};

use crate::SubflowId;

/// Statistics of one connection.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ConnectionStats {
    /// State, by its name in RFC 8684 or RFC 9293.
    pub state: &'static str,
    /// Whether MPTCP is in use.
    pub mptcp: bool,
    /// Whether the connection fell back to plain TCP.
    pub fell_back: bool,
    /// This side's token, with MPTCP.
    pub local_token: Option<u32>,
    /// The peer's token, with MPTCP.
    pub remote_token: Option<u32>,
    /// Octets that the application wrote.
    pub written_bytes: u64,
    /// Octets written and not yet given to a subflow.
    pub unsent_bytes: u64,
    /// Octets that the peer acknowledged at the data level.
    pub acked_bytes: u64,
    /// Octets received in order.
    pub received_bytes: u64,
    /// Octets that the application read.
    pub read_bytes: u64,
    /// Octets given to another subflow under the same data sequence numbers, whether or not they had already left the
    /// one that failed.
    pub reinjected_bytes: u64,
    /// Octets that arrived in order on their subflow when the connection already had them. They count if they lie
    /// before the connection's first hole, no matter which subflow brought them first (including the same subflow,
    /// under other sequence numbers), or if they lie beyond the hole and the same subflow brought them. Octets that a
    /// subflow drops by its own sequence numbers, or holds behind a hole of its own, do not count; nor do octets that
    /// wait twice, from two subflows. 0 in plain TCP.
    pub duplicate_bytes: u64,
    /// Octets that wait for a hole at the data level to fill. Excludes data that a subflow holds behind a hole of its
    /// own.
    pub out_of_order_bytes: u64,
    /// Largest value of `out_of_order_bytes`.
    pub out_of_order_peak_bytes: u64,
    /// When the connection was established.
    pub established_at: Option<Instant>,
    /// When the connection ended.
    pub closed_at: Option<Instant>,
    /// All subflows, past and present, in order of creation.
    pub subflows: Vec<SubflowStats>,
}

/// A short report on what a subflow delivers, for owners that look often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hearing {
    /// Octets that arrived on it and wait for a hole before them to fill.
    pub held_bytes: u64,
    /// When the peer was last heard on it.
    pub heard_at: Instant,
    /// The peer's last timestamp echo, if both sides use timestamps.
    pub echo: Option<Echo>,
}

/// An echo of one of our timestamps (RFC 7323 section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// The timestamp: a tick of this side's clock.
    pub tick: u32,
    /// Time from sending the timestamp to receiving its echo, in ticks of 1 ms. It is a round trip that includes
    /// queueing and, if the peer had nothing to send, the peer's pause.
    pub took: Duration,
}

/// Statistics of one subflow.
#[derive(Clone, Debug, Serialize)]
pub struct SubflowStats {
    /// Identifier.
    pub id: SubflowId,
    /// Address and port of this side.
    pub local: SocketAddr,
    /// Address and port of the peer.
    pub remote: SocketAddr,
    /// This side's address identifier (RFC 8684 section 3.2), which names the subflow's path whatever NATs do; 0 on the
    /// first subflow.
    pub local_address_id: u8,
    /// The peer's address identifier.
    pub remote_address_id: u8,
    /// TCP state (RFC 9293 section 3.3.2).
    pub state: &'static str,
    /// Whether the subflow has backup priority.
    pub backup: bool,
    /// Largest payload of a segment, octets.
    pub mss_bytes: u32,
    /// Largest IP packet sent, octets: the path MTU as known or estimated.
    pub path_mtu_bytes: u16,
    /// Congestion window, octets.
    pub cwnd_bytes: u64,
    /// Slow start threshold, octets; `u64::MAX`, which is serialised as none, before the first reduction.
    #[serde(serialize_with = "some_if_reduced")]
    pub ssthresh_bytes: u64,
    /// Octets in the network: sent, and neither acknowledged (also by SACK) nor deemed lost (`pipe` of RFC 6675).
    pub in_flight_bytes: u64,
    /// Octets given to the subflow that wait for its window. Many only with early binding
    /// ([`crate::era::Binding::Early`]).
    pub unsent_bytes: u64,
    /// Octets that the subflow holds: those, and all that it has sent and that are not acknowledged, also if deemed lost
    /// or acknowledged by SACK.
    pub held_bytes: u64,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Smallest round-trip time of about the last five minutes. It follows changes of the path.
    pub min_rtt: Option<Duration>,
    /// Smallest round-trip time ever.
    pub least_rtt: Option<Duration>,
    /// Sum of all round-trip time samples. Together with their number it gives the mean over any span.
    pub rtt_sum: Duration,
    /// Number of round-trip time samples.
    pub rtt_samples: u64,
    /// Whether the subflow is repairing a loss.
    pub in_recovery: bool,
    /// Whether the window is reduced for a mark (ECN) alone. As during a repair, [`crate::Endpoint::cut_window`] then
    /// changes nothing.
    pub answers_mark: bool,
    /// Segments sent with data, including retransmissions.
    pub sent_segments: u64,
    /// Payload octets sent for the first time.
    pub sent_bytes: u64,
    /// Payload octets retransmitted.
    pub retransmitted_bytes: u64,
    /// Segments retransmitted.
    pub retransmitted_segments: u64,
    /// Retransmission time-outs.
    pub timeouts: u64,
    /// Congestion events: window reductions after loss or ECN.
    pub congestion_events: u64,
    /// Payload octets acknowledged.
    pub acked_bytes: u64,
    /// Segments received with data.
    pub received_segments: u64,
    /// Payload octets received, including duplicates.
    pub received_bytes: u64,
    /// Payload octets received more than once.
    pub duplicate_bytes: u64,
    /// When the subflow was established.
    pub established_at: Option<Instant>,
    /// When the subflow ended. TIME-WAIT comes after that.
    pub closed_at: Option<Instant>,
}

impl SubflowStats {
    /// Returns the statistics of an established subflow without any counts, for a caller that counts from outside and
    /// knows nothing of the sender. All counts, octets and times are zero.
    pub const fn unheard(id: SubflowId, local: SocketAddr, remote: SocketAddr, established_at: Instant) -> Self {
        Self {
            id,
            local,
            remote,
            local_address_id: 0,
            remote_address_id: 0,
            state: "ESTABLISHED",
            backup: false,
            mss_bytes: 0,
            path_mtu_bytes: 0,
            cwnd_bytes: 0,
            ssthresh_bytes: 0,
            in_flight_bytes: 0,
            unsent_bytes: 0,
            held_bytes: 0,
            srtt: None,
            min_rtt: None,
            least_rtt: None,
            rtt_sum: Duration::ZERO,
            rtt_samples: 0,
            in_recovery: false,
            answers_mark: false,
            sent_segments: 0,
            sent_bytes: 0,
            retransmitted_bytes: 0,
            retransmitted_segments: 0,
            timeouts: 0,
            congestion_events: 0,
            acked_bytes: 0,
            received_segments: 0,
            received_bytes: 0,
            duplicate_bytes: 0,
            established_at: Some(established_at),
            closed_at: None,
        }
    }
}

/// Many readers of JSON take numbers for floating-point ones, to which `u64::MAX` does not belong.
fn some_if_reduced<S: Serializer>(ssthresh_bytes: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    Some(*ssthresh_bytes).filter(|bytes| *bytes != u64::MAX).serialize(serializer)
}
