//! What endpoints of other years did otherwise, as scenario files say it: each switch alone, all of them off by default.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use transport::era;
use units::ByteCount;
use units::text::Text;

use super::schema::Written;

/// What a subflow's own send buffer holds unless the scenario says so: `SndBufSize` of ns-3's `TcpSocket`.
const SUBFLOW_SEND_BUFFER: ByteCount = ByteCount(131_072);

/// When data are bound to a subflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Binding {
    /// When its window opens.
    #[default]
    Late,
    /// As long as its own send buffer has room, and for good (thesis 3.2.1).
    Early,
    /// Likewise, with a send buffer that grows with the window as Linux's does.
    Autotuned,
}

/// What `rto_min` bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RtoFloor {
    /// What the variance adds to the round-trip time, as in Linux.
    #[default]
    Variance,
    /// All of it (RFC 6298 section 2.4).
    Whole,
}

/// Which partial ACKs of a recovery without SACK restart the retransmission timer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PartialAcks {
    /// The first alone (RFC 6582 section 3.2).
    #[default]
    First,
    /// Every one, as in Linux and ns-3.
    Every,
}

/// With SACK, when the retransmission timer starts anew while a loss is repaired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RepairTimer {
    /// When an ACK moves on (RFC 6298 section 5.3).
    OnAck,
    /// When the first segment is sent again, too.
    #[default]
    OnResend,
    /// And while SACKs tell of what was sent before that, as in Linux.
    OnSack,
}

/// What the window is when a recovery ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RecoveryEnd {
    /// What is in flight and a segment, the threshold at most (RFC 6582 section 3.2).
    #[default]
    Flight,
    /// The threshold (RFC 9937), and it grows with the ACK that ends the recovery, as in Linux.
    Threshold,
}

/// How long an ACK may wait for more data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AckDelay {
    /// As long as `delayed_ack` says.
    #[default]
    Fixed,
    /// From that on by what segments were apart, as in Linux.
    Adaptive,
}

/// The switches: `connection.era`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Era {
    /// When data are bound to a subflow: `"late"`, when its window opens, `"early"`, as long as its send buffer has room
    /// (thesis 3.2.1), or `"autotuned"`, likewise with a send buffer that grows with the window as Linux's does.
    #[serde(skip_serializing_if = "is_default")]
    pub binding: Binding,
    /// Octets that a subflow holds at most, unsent and unacknowledged; only with `binding = "early"`, and then by default 128 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<ByteCount>>")]
    pub subflow_send_buffer: Option<Text<ByteCount>>,
    /// Octets in flight on a subflow at most; by default as many as the peer takes. Without window scaling it was 65535.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<ByteCount>>")]
    pub subflow_window: Option<Text<ByteCount>>,
    /// Slow-start threshold of a new subflow; by default there is none. With one HyStart++ has no part in the first slow start.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<ByteCount>>")]
    pub initial_ssthresh: Option<Text<ByteCount>>,
    /// What a subflow timed out on goes out on others as well (RFC 8684 section 3.3.6).
    #[serde(skip_serializing_if = "is_true")]
    pub reinjection: bool,
    /// After how many time-outs in a row of the subflow that is.
    #[serde(skip_serializing_if = "is_one")]
    pub reinjection_timeouts: u32,
    /// What the head of the stream waits for goes out again on a subflow that owes nothing, if no DATA_ACK moved on for a time-out,
    /// as in Linux.
    #[serde(skip_serializing_if = "is_default")]
    pub idle_reinjection: bool,
    /// The first two duplicate ACKs let a segment out each (RFC 3042); with SACK its pipe does that by itself.
    #[serde(skip_serializing_if = "is_true")]
    pub limited_transmit: bool,
    /// With SACK, losses are told by time (RFC 8985), otherwise by what is SACKed above them (RFC 6675).
    #[serde(skip_serializing_if = "is_true")]
    pub rack: bool,
    /// With SACK, the end of a flight is probed before its time-out (RFC 8985 section 7).
    #[serde(skip_serializing_if = "is_true")]
    pub tail_loss_probe: bool,
    /// What `rto_min` bounds: `"variance"`, as in Linux, or `"whole"`, as in RFC 6298.
    #[serde(skip_serializing_if = "is_default")]
    pub rto_floor: RtoFloor,
    /// Without SACK, which partial ACKs restart the retransmission timer: the `"first"`, so that a long repair ends in a time-out
    /// (RFC 6582 section 3.2), or `"every"` one, as in Linux and ns-3.
    #[serde(skip_serializing_if = "is_default")]
    pub partial_acks: PartialAcks,
    /// With SACK, when the retransmission timer starts anew while a loss is repaired: `"on-ack"`, with an ACK that moves on (RFC 6298
    /// section 5.3), `"on-resend"`, when the first segment is sent again too, or `"on-sack"`, also while SACKs tell of what was sent
    /// before that, as in Linux.
    #[serde(skip_serializing_if = "is_default")]
    pub repair_timer: RepairTimer,
    /// What the window is when a recovery ends: `"flight"`, what is in flight and a segment, the threshold at most (RFC 6582 section
    /// 3.2), or `"threshold"` (RFC 9937), and it grows with the ACK that ends the recovery, as in Linux.
    #[serde(skip_serializing_if = "is_default")]
    pub recovery_end: RecoveryEnd,
    /// How long an ACK may wait for more data: `"fixed"`, for `delayed_ack`, or `"adaptive"`, from that on by what segments were apart
    /// of late, to 200 ms at most, as in Linux.
    #[serde(skip_serializing_if = "is_default")]
    pub ack_delay: AckDelay,
}

pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
const fn is_true(value: &bool) -> bool {
    *value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
const fn is_one(value: &u32) -> bool {
    *value == 1
}

impl Default for Era {
    fn default() -> Self {
        Self {
            binding: Binding::Late,
            subflow_send_buffer: None,
            subflow_window: None,
            initial_ssthresh: None,
            reinjection: true,
            reinjection_timeouts: 1,
            idle_reinjection: false,
            limited_transmit: true,
            rack: true,
            tail_loss_probe: true,
            rto_floor: RtoFloor::Variance,
            partial_acks: PartialAcks::First,
            repair_timer: RepairTimer::OnResend,
            recovery_end: RecoveryEnd::Flight,
            ack_delay: AckDelay::Fixed,
        }
    }
}

impl Era {
    /// The engine's.
    pub(super) fn to_config(self) -> era::Era {
        let bytes = |size: Option<Text<ByteCount>>| size.map(|Text(size)| size.0);
        let buffer_bytes = bytes(self.subflow_send_buffer).unwrap_or(SUBFLOW_SEND_BUFFER.0);
        let window = bytes(self.subflow_window).unwrap_or(u64::MAX);
        era::Era {
            binding: match self.binding {
                Binding::Late => era::Binding::Late,
                Binding::Autotuned => era::Binding::Autotuned,
                Binding::Early => era::Binding::Early { buffer_bytes },
            },
            initial_ssthresh_bytes: bytes(self.initial_ssthresh).unwrap_or(u64::MAX),
            subflow_window_bytes: window.try_into().unwrap_or(u32::MAX),
            reinjection: self.reinjection,
            reinjection_timeouts: self.reinjection_timeouts,
            idle_reinjection: self.idle_reinjection,
            limited_transmit: self.limited_transmit,
            rack: self.rack,
            tail_loss_probe: self.tail_loss_probe,
            rto_floor: match self.rto_floor {
                RtoFloor::Variance => era::RtoFloor::Variance,
                RtoFloor::Whole => era::RtoFloor::Whole,
            },
            partial_acks: match self.partial_acks {
                PartialAcks::Every => era::PartialAcks::Every,
                PartialAcks::First => era::PartialAcks::First,
            },
            repair_timer: match self.repair_timer {
                RepairTimer::OnAck => era::RepairTimer::OnAck,
                RepairTimer::OnResend => era::RepairTimer::OnResend,
                RepairTimer::OnSack => era::RepairTimer::OnSack,
            },
            recovery_end: match self.recovery_end {
                RecoveryEnd::Flight => era::RecoveryEnd::Flight,
                RecoveryEnd::Threshold => era::RecoveryEnd::Threshold,
            },
            ack_delay: match self.ack_delay {
                AckDelay::Fixed => era::AckDelay::Fixed,
                AckDelay::Adaptive => era::AckDelay::Adaptive,
            },
        }
    }
}
