//! Cheap inspection of a subflow and its connection, for checkers outside the engine.

use units::Instant;

use crate::SubflowId;
use crate::connection::Connection;
use crate::tcp::Tcb;

/// Answers the questions of checkers. A checker asks after most segments but rarely needs all answers, so each answer
/// is computed on demand.
pub trait Inspect {
    /// Octets in flight on the subflow, and the limits on them.
    fn flight(&self) -> FlightInspection;
    /// Whether anything the subflow sent is unacknowledged: SYN, data or FIN.
    fn is_outstanding(&self) -> bool;
    /// Octets that the subflow holds but has not sent.
    fn unsent_bytes(&self) -> u64;
    /// Whether a timer of the subflow runs.
    fn runs(&self, timer: SubflowTimer) -> bool;
    /// Whether the connection is established and not over.
    fn is_open(&self) -> bool;
    /// Octets written to the connection and not yet given to a subflow.
    fn connection_unsent_bytes(&self) -> u64;
    /// Whether data given to subflows, or a DATA_FIN, lack their DATA_ACK.
    fn is_data_outstanding(&self) -> bool;
    /// Whether the data-level time-out runs.
    fn data_timer_runs(&self) -> bool;
    /// Whether the connection will act by itself (a timer of the connection, or a timer of a subflow other than its
    /// keep-alive, runs), or cannot because every subflow is opening or closing.
    fn is_driven(&self) -> bool;
}

/// Read-only view of a subflow of the engine.
#[derive(Clone, Copy)]
pub struct Sight<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) id: SubflowId,
    pub(crate) tcb: &'a Tcb,
}

/// Octets in flight on a subflow, and the limits on them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlightInspection {
    /// Largest payload of a segment, octets.
    pub mss_bytes: u32,
    /// Congestion window, octets.
    pub cwnd_bytes: u64,
    /// Octets in flight, as the engine counts them.
    pub in_flight_bytes: u64,
    /// Whether the window follows a reduction: a loss is being repaired, or a mark answered (ECN).
    pub in_recovery: bool,
    /// When the window was last halved because the peer's window was full of this subflow's data (NSDI 2012, section
    /// 4.2), if the engine still knows. Data sent at the same instant but before the cut were sent under the larger
    /// window.
    pub penalized_at: Option<Instant>,
}

/// The timers of a subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubflowTimer {
    /// Retransmission time-out (RFC 6298).
    Retransmit,
    /// RACK's reordering window (RFC 8985 section 6.2).
    Reorder,
    /// Tail loss probe (RFC 8985 section 7).
    TailProbe,
    /// Zero-window probe (RFC 9293 section 3.8.6.1).
    Persist,
    /// Pacing: the next segment waits for its departure time.
    Pace,
}
