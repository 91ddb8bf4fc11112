//! Settings of MPTCP-rec.

/// What bounds the data in flight on a path for which the receiver has stated a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WindowRule {
    /// The receiver: the congestion window is twice the rate times the round-trip time, and losses do not lower it (the
    /// paper's section 3 gives congestion control to the receiver).
    #[default]
    Receiver,
    /// The connection's congestion controller, as usual; the rate only paces.
    Controller,
}

/// How to read the paper: by its meaning or by its letter. The readings differ in the sample of equation 2 and in
/// algorithm 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reading {
    /// As meant: a sample is the data that arrived in a time, and the slowest path is left out.
    #[default]
    Build,
    /// As printed: a sample is `P / (n * RTT)`. Algorithm 1 leaves out nothing if the first path is the slowest, and
    /// takes back every path faster than the one it left out.
    Paper,
}

/// Settings of MPTCP-rec. [`Default`] is the intended reading.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReceiverCentric {
    /// How equation 2 and algorithm 1 are read.
    pub reading: Reading,
    /// Weight of the old round-trip time in the new, in eighths (xi of equation 1): 7, as in TCP. The paper prints 1.
    pub rtt_old_eighths: u64,
    /// Share of missing packets from which a round counts as lossy (thresh of equation 2).
    pub lossy_share: f64,
    /// Weight of the new sample after a lossy round (vartheta of equation 2).
    pub lossy_weight: f64,
    /// Report at the start of a round if the rate seen differs from the last wish by more than this share.
    pub report_change: f64,
    /// Rounds without blocking near until all paths are used again; 1 is the paper's step 2.
    pub clear_rounds: u32,
    /// What bounds the data in flight.
    pub window: WindowRule,
}

impl Default for ReceiverCentric {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl ReceiverCentric {
    /// The paper as meant.
    pub const DEFAULT: Self = Self {
        reading: Reading::Build,
        rtt_old_eighths: 7,
        lossy_share: 0.01,
        lossy_weight: 0.5,
        report_change: 0.1,
        clear_rounds: 1,
        window: WindowRule::Receiver,
    };

    /// The paper as printed.
    pub const AS_PRINTED: Self = Self { reading: Reading::Paper, rtt_old_eighths: 1, ..Self::DEFAULT };

    /// Returns the settings with each value clamped to its meaningful range.
    pub(crate) fn bounded(self) -> Self {
        Self {
            rtt_old_eighths: self.rtt_old_eighths.min(8),
            lossy_weight: self.lossy_weight.clamp(0.0, 1.0),
            clear_rounds: self.clear_rounds.max(1),
            ..self
        }
    }
}
