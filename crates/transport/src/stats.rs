//! Statistics of connections and subflows; they survive the close.

use core::net::SocketAddr;

use serde::Serialize;
use units::{Duration, Instant};

use crate::SubflowId;

/// Statistics of one connection.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ConnectionStats {
    /// State, in RFC 8684's or RFC 9293's words.
    pub state: &'static str,
    /// Whether MPTCP is in use.
    pub mptcp: bool,
    /// Whether MPTCP was given up.
    pub fell_back: bool,
    /// This side's token, if MPTCP.
    pub local_token: Option<u32>,
    /// The peer's token, if MPTCP.
    pub remote_token: Option<u32>,
    /// Octets the application handed over.
    pub written_bytes: u64,
    /// Octets of these that no subflow was given yet.
    pub unsent_bytes: u64,
    /// Octets the peer acknowledged at the data level.
    pub acked_bytes: u64,
    /// Octets received in order.
    pub received_bytes: u64,
    /// Octets the application took.
    pub read_bytes: u64,
    /// Octets sent again on another subflow.
    pub reinjected_bytes: u64,
    /// Octets that came in order on their subflow when the connection had them already: up to its first hole, whichever subflow had brought
    /// them, the same one under other sequence numbers included; or waiting beyond that hole, brought by the same subflow. Not in it is what a
    /// subflow drops by its own sequence numbers or still holds behind a hole of its own, nor what waits twice, of two subflows. 0 in plain TCP.
    pub duplicate_bytes: u64,
    /// Octets now waiting for a hole before them to fill, at the data level: what a subflow holds behind a hole of its own is not in it.
    pub out_of_order_bytes: u64,
    /// Largest value of `out_of_order_bytes`.
    pub out_of_order_peak_bytes: u64,
    /// When it was established.
    pub established_at: Option<Instant>,
    /// When it ended.
    pub closed_at: Option<Instant>,
    /// Every subflow that ever was, in order of creation.
    pub subflows: Vec<SubflowStats>,
}

/// What a subflow has given and not given: for owners who look often, and want no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hearing {
    /// Octets that came on it and wait for a hole before them to fill.
    pub held_bytes: u64,
    /// When the peer was last heard on it.
    pub heard_at: Instant,
    /// What the peer echoed last, if both sides use timestamps.
    pub echo: Option<Echo>,
}

/// An echo of one of our timestamps (RFC 7323 section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// The timestamp, a tick of a clock of this side.
    pub tick: u32,
    /// How long ago it was sent when the echo came, in ticks of 1 ms: a round trip, with what packets wait for in queues and, where the peer had
    /// nothing to send meanwhile, its pause.
    pub took: Duration,
}

/// Statistics of one subflow.
#[derive(Clone, Debug, Serialize)]
pub struct SubflowStats {
    /// Which.
    pub id: SubflowId,
    /// This side.
    pub local: SocketAddr,
    /// The peer's side.
    pub remote: SocketAddr,
    /// What this side calls its address (RFC 8684 section 3.2), which names the subflow's path whatever NATs do; 0 for the first
    /// subflow's.
    pub local_address_id: u8,
    /// What the peer calls its address.
    pub remote_address_id: u8,
    /// TCP state (RFC 9293 section 3.3.2).
    pub state: &'static str,
    /// Backup priority.
    pub backup: bool,
    /// Largest payload of a segment, octets.
    pub mss_bytes: u32,
    /// Largest IP packet that is sent, octets: what the path is known or believed to carry.
    pub path_mtu_bytes: u16,
    /// Congestion window, octets.
    pub cwnd_bytes: u64,
    /// Slow start threshold, octets.
    pub ssthresh_bytes: u64,
    /// Octets in flight.
    pub in_flight_bytes: u64,
    /// Octets that were given to it and wait for its window; many only where data are bound early ([`crate::era::Binding::Early`]).
    pub unsent_bytes: u64,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Smallest round-trip time of the last five minutes or so: what the path has now, if it changed.
    pub min_rtt: Option<Duration>,
    /// Smallest round-trip time that there ever was.
    pub least_rtt: Option<Duration>,
    /// Sum of all round-trip time samples: with their number, the mean over any span.
    pub rtt_sum: Duration,
    /// Number of round-trip time samples.
    pub rtt_samples: u64,
    /// Whether it is repairing a loss.
    pub in_recovery: bool,
    /// Segments with data sent, retransmissions included.
    pub sent_segments: u64,
    /// Payload octets sent for the first time.
    pub sent_bytes: u64,
    /// Payload octets sent again.
    pub retransmitted_bytes: u64,
    /// Segments sent again.
    pub retransmitted_segments: u64,
    /// Retransmission time-outs.
    pub timeouts: u64,
    /// Congestion events: windows reduced after loss or ECN.
    pub congestion_events: u64,
    /// Payload octets acknowledged.
    pub acked_bytes: u64,
    /// Segments with data received.
    pub received_segments: u64,
    /// Payload octets received, duplicates included.
    pub received_bytes: u64,
    /// Payload octets received again.
    pub duplicate_bytes: u64,
    /// When it was established.
    pub established_at: Option<Instant>,
    /// When it ended.
    pub closed_at: Option<Instant>,
}

impl SubflowStats {
    /// An established subflow of which nothing was counted yet, and nothing is known of its sender: all counts, octets and times are zero. For
    /// whoever counts it from outside.
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
            srtt: None,
            min_rtt: None,
            least_rtt: None,
            rtt_sum: Duration::ZERO,
            rtt_samples: 0,
            in_recovery: false,
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
