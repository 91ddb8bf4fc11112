//! A look at one subflow and its connection from outside, for checkers: what only the engine knows, and cheap to take.

use units::Instant;

use crate::SubflowId;
use crate::connection::Connection;
use crate::tcp::Tcb;

/// Answers what checkers ask. They ask after most segments and need little of it then, so each answer is worked out when it is asked for.
pub trait Inspect {
    /// What is in flight on the subflow, and what may be.
    fn flight(&self) -> FlightInspection;
    /// Whether anything sent is unacknowledged: SYN, data or FIN.
    fn is_outstanding(&self) -> bool;
    /// Octets that wait in the subflow, not sent yet.
    fn unsent_bytes(&self) -> u64;
    /// Whether a timer of the subflow runs.
    fn runs(&self, timer: SubflowTimer) -> bool;
    /// Whether the connection is established and not over.
    fn is_open(&self) -> bool;
    /// Octets written to the connection that no subflow was given yet.
    fn connection_unsent_bytes(&self) -> u64;
    /// Whether data given to subflows, or a DATA_FIN, wait for their DATA_ACK.
    fn is_data_outstanding(&self) -> bool;
    /// Whether the data-level time-out runs.
    fn data_timer_runs(&self) -> bool;
    /// Whether anything will happen by itself (a timer of the connection runs, or of any subflow but its keep-alive), or nothing
    /// can because every subflow is being opened or closed.
    fn is_driven(&self) -> bool;
}

/// A look at a subflow of the engine.
#[derive(Clone, Copy)]
pub struct Sight<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) id: SubflowId,
    pub(crate) tcb: &'a Tcb,
}

/// What is in flight on a subflow, and what may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlightInspection {
    /// Largest payload of a segment, octets.
    pub mss_bytes: u32,
    /// Congestion window, octets.
    pub cwnd_bytes: u64,
    /// Octets in flight, as the engine reckons.
    pub in_flight_bytes: u64,
    /// Whether it is repairing a loss.
    pub in_recovery: bool,
    /// When its window was last halved because the peer's window was full of what it carries (NSDI 2012, section 4.2), if that is
    /// still known: what was sent at the same time before that had the window of before.
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
    /// The next segment waits for its time.
    Pace,
}
