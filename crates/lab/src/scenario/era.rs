//! Behaviour of endpoints of earlier years in scenario files: independent switches, all off by default.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use transport::era;
use units::ByteCount;
use units::text::Text;

use super::schema::Written;

/// Default size of a subflow's own send buffer: `SndBufSize` of ns-3's `TcpSocket`.
const SUBFLOW_SEND_BUFFER: ByteCount = ByteCount(131_072);

/// When data are bound to a subflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Binding {
    /// When the subflow's window opens.
    #[default]
    Late,
    /// When the subflow's own send buffer has room, permanently (thesis 3.2.1).
    Early,
    /// Like `early`, with a send buffer that grows with the window as in Linux.
    Autotuned,
}

/// Which part of the time-out `rto_min` bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RtoFloor {
    /// The variance added to the round-trip time, as in Linux.
    #[default]
    Variance,
    /// The whole time-out (RFC 6298 section 2.4).
    Whole,
}

/// Which partial ACKs of a recovery without SACK restart the retransmission timer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PartialAcks {
    /// Only the first (RFC 6582 section 3.2).
    #[default]
    First,
    /// Every one, as in Linux and ns-3.
    Every,
}

/// With SACK, when the retransmission timer restarts during the repair of a loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RepairTimer {
    /// When an ACK advances (RFC 6298 section 5.3).
    OnAck,
    /// Also when the first segment is retransmitted.
    #[default]
    OnResend,
    /// Also when SACKs report segments sent before that retransmission, as in Linux.
    OnSack,
}

/// The congestion window at the end of a recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RecoveryEnd {
    /// The flight plus one segment, at most the threshold (RFC 6582 section 3.2).
    #[default]
    Flight,
    /// The threshold (RFC 9937); the window also grows with the ACK that ends the recovery, as in Linux.
    Threshold,
}

/// How long an ACK may wait for more data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AckDelay {
    /// For `delayed_ack`.
    #[default]
    Fixed,
    /// At first for `delayed_ack`, then depending on the time between segments, as in Linux.
    Adaptive,
}

/// The switches of `connection.era`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Era {
    /// When data are bound to a subflow: `"late"`, when its window opens; `"early"`, when its own send buffer has room
    /// (thesis 3.2.1); `"autotuned"`, like `"early"` with a send buffer that grows with the window as in Linux.
    #[serde(skip_serializing_if = "is_default")]
    pub binding: Binding,
    /// Maximum octets in a subflow's send buffer, unsent or unacknowledged; only with `binding = "early"`, and then by
    /// default 128 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<ByteCount>>")]
    pub subflow_send_buffer: Option<Text<ByteCount>>,
    /// Maximum octets in flight on a subflow; by default as many as the peer accepts. Without window scaling it was
    /// 65535.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<ByteCount>>")]
    pub subflow_window: Option<Text<ByteCount>>,
    /// Slow-start threshold of a new subflow; by default there is none. With a threshold, HyStart++ does not take part
    /// in the first slow start.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written<ByteCount>>")]
    pub initial_ssthresh: Option<Text<ByteCount>>,
    /// Data on which a subflow timed out are also sent on others (RFC 8684 section 3.3.6).
    #[serde(skip_serializing_if = "is_true")]
    pub reinjection: bool,
    /// The number of consecutive time-outs of the subflow after which this happens.
    #[serde(skip_serializing_if = "is_one")]
    #[schemars(range(min = 1))]
    pub reinjection_timeouts: u32,
    /// Data at the head of the stream that block it are sent again on a subflow without outstanding data if no DATA_ACK
    /// advanced for a time-out, as in Linux.
    #[serde(skip_serializing_if = "is_default")]
    pub idle_reinjection: bool,
    /// Each of the first two duplicate ACKs lets one segment out (RFC 3042); with SACK, the pipe does this by itself.
    #[serde(skip_serializing_if = "is_true")]
    pub limited_transmit: bool,
    /// With SACK, losses are detected by time (RFC 8985), otherwise by the amount SACKed above them (RFC 6675).
    #[serde(skip_serializing_if = "is_true")]
    pub rack: bool,
    /// With SACK, the end of a flight is probed before its time-out (RFC 8985 section 7).
    #[serde(skip_serializing_if = "is_true")]
    pub tail_loss_probe: bool,
    /// Which part of the time-out `rto_min` bounds: `"variance"`, as in Linux, or `"whole"`, as in RFC 6298.
    #[serde(skip_serializing_if = "is_default")]
    pub rto_floor: RtoFloor,
    /// Without SACK, which partial ACKs restart the retransmission timer: only the `"first"`, with which a long repair
    /// ends in a time-out (RFC 6582 section 3.2), or `"every"` one, as in Linux and ns-3.
    #[serde(skip_serializing_if = "is_default")]
    pub partial_acks: PartialAcks,
    /// With SACK, when the retransmission timer restarts during the repair of a loss: `"on-ack"`, when an ACK advances
    /// (RFC 6298 section 5.3); `"on-resend"`, also when the first segment is retransmitted; `"on-sack"`, also when
    /// SACKs report segments sent before that retransmission, as in Linux.
    #[serde(skip_serializing_if = "is_default")]
    pub repair_timer: RepairTimer,
    /// The congestion window at the end of a recovery: `"flight"`, the flight plus one segment, at most the threshold
    /// (RFC 6582 section 3.2); or `"threshold"` (RFC 9937), from which it also grows with the ACK that ends the
    /// recovery, as in Linux.
    #[serde(skip_serializing_if = "is_default")]
    pub recovery_end: RecoveryEnd,
    /// How long an ACK may wait for more data: `"fixed"`, for `delayed_ack`; or `"adaptive"`, at first for
    /// `delayed_ack`, then depending on the recent time between segments, at most 200 ms, as in Linux.
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
    /// The engine's settings.
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
