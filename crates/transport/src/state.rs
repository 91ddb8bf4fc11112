//! The states of RFC 9293 section 3.3.2, and their transitions as a table that mirrors its figure 5.
//!
//! A subflow moves through them with FINs. The MPTCP level moves through the closing half again with DATA_FINs (RFC
//! 8684 section 3.3.3).

use Step::{FinAcked, ReceiveFin, ReceiveSyn, SendFin, SynAcked, TimeWaitOver};

/// A TCP state, or its data-level counterpart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// SYN sent, none received.
    SynSent,
    /// SYN sent and received; ours is not acknowledged.
    SynReceived,
    /// Data flow both ways.
    Established,
    /// FIN sent, not acknowledged; the peer still sends.
    FinWait1,
    /// FIN sent and acknowledged; the peer still sends.
    FinWait2,
    /// The peer has finished; this side still sends.
    CloseWait,
    /// Both FINs sent; ours came first and is not acknowledged.
    Closing,
    /// Both FINs sent; the peer's came first and ours is not acknowledged.
    LastAck,
    /// Both sides have finished; waits until stray segments have expired.
    TimeWait,
    /// Over.
    Closed,
}

/// A cause of a state transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A SYN arrived while ours was outstanding (simultaneous open).
    ReceiveSyn,
    /// Our SYN was acknowledged, and the peer's has arrived.
    SynAcked,
    /// This side sends its FIN.
    SendFin,
    /// Our FIN was acknowledged.
    FinAcked,
    /// The peer's FIN arrived, and everything before it.
    ReceiveFin,
    /// 2 MSL have passed.
    TimeWaitOver,
}

/// RFC 9293 figure 5: every transition that is not a reset. Any other step leaves the state unchanged.
const TRANSITIONS: &[(State, Step, State)] = &[
    (State::SynSent, ReceiveSyn, State::SynReceived),
    (State::SynSent, SynAcked, State::Established),
    (State::SynReceived, SynAcked, State::Established),
    (State::SynReceived, SendFin, State::FinWait1),
    (State::SynReceived, ReceiveFin, State::CloseWait),
    (State::Established, SendFin, State::FinWait1),
    (State::Established, ReceiveFin, State::CloseWait),
    (State::FinWait1, FinAcked, State::FinWait2),
    (State::FinWait1, ReceiveFin, State::Closing),
    (State::FinWait2, ReceiveFin, State::TimeWait),
    (State::CloseWait, SendFin, State::LastAck),
    (State::Closing, FinAcked, State::TimeWait),
    (State::LastAck, FinAcked, State::Closed),
    (State::TimeWait, TimeWaitOver, State::Closed),
];

impl State {
    /// Returns the state after `step`.
    pub fn after(self, step: Step) -> Self {
        TRANSITIONS.iter().find(|(from, by, _)| *from == self && *by == step).map_or(self, |(_, _, to)| *to)
    }

    /// Whether both SYNs have been exchanged and acknowledged (RFC 9293 section 3.3.2).
    pub const fn is_synchronized(self) -> bool {
        !matches!(self, Self::SynSent | Self::SynReceived | Self::Closed)
    }

    /// Whether new data may still be sent.
    pub const fn can_send(self) -> bool {
        matches!(self, Self::Established | Self::CloseWait)
    }

    /// Whether the peer may still send data.
    pub const fn can_receive(self) -> bool {
        matches!(self, Self::Established | Self::FinWait1 | Self::FinWait2)
    }

    /// Returns the name that RFC 9293 uses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SynSent => "SYN-SENT",
            Self::SynReceived => "SYN-RECEIVED",
            Self::Established => "ESTABLISHED",
            Self::FinWait1 => "FIN-WAIT-1",
            Self::FinWait2 => "FIN-WAIT-2",
            Self::CloseWait => "CLOSE-WAIT",
            Self::Closing => "CLOSING",
            Self::LastAck => "LAST-ACK",
            Self::TimeWait => "TIME-WAIT",
            Self::Closed => "CLOSED",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(steps: &[Step]) -> State {
        steps.iter().fold(State::Established, |state, step| state.after(*step))
    }

    #[test]
    fn the_three_ways_to_close() {
        assert_eq!(walk(&[SendFin, FinAcked, ReceiveFin]), State::TimeWait);
        assert_eq!(walk(&[ReceiveFin, SendFin, FinAcked]), State::Closed);
        assert_eq!(walk(&[SendFin, ReceiveFin, FinAcked, TimeWaitOver]), State::Closed);
    }

    #[test]
    fn what_the_figure_does_not_show_changes_nothing() {
        assert_eq!(State::Established.after(FinAcked), State::Established);
        assert_eq!(State::TimeWait.after(ReceiveFin), State::TimeWait);
        assert_eq!(State::SynSent.after(SendFin), State::SynSent);
    }
}
