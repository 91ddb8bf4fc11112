//! What can be set.

/// Which of the two bounds what may be in flight on a path for which the receiver has said a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WindowRule {
    /// The receiver: the congestion window is twice the rate over a round-trip time, and losses do not lower it (the
    /// paper's section 3: congestion control is the receiver's).
    #[default]
    Receiver,
    /// The connection's congestion controller as ever; the rate only paces.
    Controller,
}

/// Settings of MPTCP-rec; [`Default`] is how it is meant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReceiverCentric {
    /// Eighths that the old round-trip time weighs in the new (xi of equation 1): 7, as in TCP. The paper prints 1.
    pub rtt_old_eighths: u64,
    /// Share of packets missing in a round from which on it counts as lossy (thresh of equation 2).
    pub lossy_share: f64,
    /// Weight of the new sample after a lossy round (vartheta of equation 2).
    pub lossy_weight: f64,
    /// Report at a round's start if the rate seen differs from the last wish by more than this share.
    pub report_change: f64,
    /// Rounds without a blocking in sight after which all paths are used again; 1 is the paper's step 2.
    pub clear_rounds: u32,
    /// Who bounds what is in flight.
    pub window: WindowRule,
}

impl Default for ReceiverCentric {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl ReceiverCentric {
    /// How it is meant.
    pub const DEFAULT: Self = Self {
        rtt_old_eighths: 7,
        lossy_share: 0.01,
        lossy_weight: 0.5,
        report_change: 0.1,
        clear_rounds: 1,
        window: WindowRule::Receiver,
    };

    /// The same settings, each within what has a meaning.
    pub(crate) fn bounded(self) -> Self {
        Self {
            rtt_old_eighths: self.rtt_old_eighths.min(8),
            lossy_weight: self.lossy_weight.clamp(0.0, 1.0),
            clear_rounds: self.clear_rounds.max(1),
            ..self
        }
    }
}
