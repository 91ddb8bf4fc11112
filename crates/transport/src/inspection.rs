//! A look at one subflow and its connection from outside, for checkers: what only the engine knows, and cheap to take.

/// What is on a subflow now, and which timers run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// Largest payload of a segment, octets.
    pub mss_bytes: u32,
    /// Congestion window, octets.
    pub cwnd_bytes: u64,
    /// Octets in flight, as the engine reckons.
    pub in_flight_bytes: u64,
    /// Whether it is repairing a loss.
    pub in_recovery: bool,
    /// Whether anything sent is unacknowledged: SYN, data or FIN.
    pub outstanding: bool,
    /// Octets that wait in the subflow, not sent yet.
    pub unsent_bytes: u64,
    /// The subflow's timers that run.
    pub timers: ArmedTimers,
    /// Of its connection.
    pub connection: ConnectionInspection,
}

/// Which timers of a subflow run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArmedTimers {
    /// Retransmission time-out (RFC 6298).
    pub retransmit: bool,
    /// RACK's reordering window (RFC 8985 section 6.2).
    pub reorder: bool,
    /// Tail loss probe (RFC 8985 section 7).
    pub tail_probe: bool,
    /// Zero-window probe (RFC 9293 section 3.8.6.1).
    pub persist: bool,
    /// The next segment waits for its time.
    pub pace: bool,
}

/// What a connection waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionInspection {
    /// Established and not over.
    pub is_open: bool,
    /// Octets written that no subflow was given yet.
    pub unsent_bytes: u64,
    /// Whether data given to subflows, or a DATA_FIN, wait for their DATA_ACK.
    pub outstanding: bool,
    /// Whether the data-level time-out runs.
    pub data_timer: bool,
    /// Whether anything will happen by itself (a timer of the connection runs, or of any subflow but its keep-alive), or nothing
    /// has to because no data wait, or nothing can because every subflow is being opened or closed.
    pub is_driven: bool,
}
