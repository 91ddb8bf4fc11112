//! What every controller owes to its connection, and the liberties that some take.

use core::fmt;

/// A rule of the contract: see [`super::CongestionController`]. The fuzzer of all controllers (`operation_fuzz.rs`)
/// checks them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// An ACK does not shrink the window.
    AckTakesNothing,
    /// An ACK gains at most a segment per window, as with NewReno.
    AckGainsASegment,
    /// An ACK changes nothing while the application is the limit.
    UnusedWindowStays,
    /// A loss leaves a threshold of at most the window.
    LossRaisesNothing,
    /// A retransmission time-out leaves a threshold of at most the window.
    TimeoutRaisesNothing,
    /// A round raises the window by at most two segments.
    RoundGainsTwoSegments,
}

/// A rule that a controller breaks on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liberty {
    /// What one path gains, another gives: an ACK may take up to a segment. Lifts [`Rule::AckTakesNothing`].
    Gives,
    /// An ACK may gain more than NewReno would. Lifts [`Rule::AckGainsASegment`].
    OutgrowsNewReno,
    /// A round may set whatever window the controller's model of the path yields. Lifts
    /// [`Rule::RoundGainsTwoSegments`].
    Leaps,
}

impl Rule {
    /// Returns the liberty that lifts the rule, if any does.
    pub const fn liberty(self) -> Option<Liberty> {
        match self {
            Self::AckTakesNothing => Some(Liberty::Gives),
            Self::AckGainsASegment => Some(Liberty::OutgrowsNewReno),
            Self::RoundGainsTwoSegments => Some(Liberty::Leaps),
            Self::UnusedWindowStays | Self::LossRaisesNothing | Self::TimeoutRaisesNothing => None,
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AckTakesNothing => {
                "an ACK does not shrink the window (or, with the liberty to give, not by more than a segment)"
            }
            Self::AckGainsASegment => "an ACK gains at most a segment per window",
            Self::UnusedWindowStays => "an ACK changes nothing unless `cwnd_limited`",
            Self::LossRaisesNothing => "`on_loss` returns at most the window",
            Self::TimeoutRaisesNothing => "`on_rto` returns at most the window",
            Self::RoundGainsTwoSegments => "`on_round` raises the window by at most two segments",
        })
    }
}
