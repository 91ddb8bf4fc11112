//! The states of RFC 9293 section 3.3.2, and their transitions as a table to be read beside its figure 5.
//!
//! A subflow goes through them with FINs; the MPTCP level goes through the closing half again with DATA_FINs
//! (RFC 8684 section 3.3.3).

use Step::{FinAcked, ReceiveFin, ReceiveSyn, SendFin, SynAcked, TimeWaitOver};

/// A TCP state, or its data-level counterpart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// SYN sent, nothing heard.
    SynSent,
    /// SYN sent and received, ours not acknowledged.
    SynReceived,
    /// Data flow both ways.
    Established,
    /// FIN sent, not acknowledged; the peer still sends.
    FinWait1,
    /// FIN sent and acknowledged; the peer still sends.
    FinWait2,
    /// The peer has finished; this side still sends.
    CloseWait,
    /// Both FINs sent, ours not acknowledged, the peer's came after ours.
    Closing,
    /// Both FINs sent, ours not acknowledged, the peer's came first.
    LastAck,
    /// Both finished; waits for stray segments to die out.
    TimeWait,
    /// Over.
    Closed,
}

/// What moves a state on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A SYN arrived while ours is outstanding (simultaneous open).
    ReceiveSyn,
    /// Our SYN is acknowledged, and the peer's has arrived.
    SynAcked,
    /// This side sends its FIN.
    SendFin,
    /// Our FIN is acknowledged.
    FinAcked,
    /// The peer's FIN arrived, with everything before it.
    ReceiveFin,
    /// 2 MSL have passed.
    TimeWaitOver,
}

/// RFC 9293 figure 5: every transition that is not a reset. Anything absent leaves the state as it is.
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
    /// The state after `step`.
    pub fn after(self, step: Step) -> Self {
        TRANSITIONS.iter().find(|(from, by, _)| *from == self && *by == step).map_or(self, |(_, _, to)| *to)
    }

    /// RFC 9293 section 3.3.2: both SYNs have been exchanged and acknowledged.
    pub const fn is_synchronized(self) -> bool {
        !matches!(self, Self::SynSent | Self::SynReceived | Self::Closed)
    }

    /// New data may still be sent.
    pub const fn can_send(self) -> bool {
        matches!(self, Self::Established | Self::CloseWait)
    }

    /// The peer may still send data.
    pub const fn can_receive(self) -> bool {
        matches!(self, Self::Established | Self::FinWait1 | Self::FinWait2)
    }

    /// The name RFC 9293 uses.
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
