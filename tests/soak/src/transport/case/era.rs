//! Behaviour of endpoints of earlier years.

use serde::{Deserialize, Serialize};
use transport::era::{AckDelay, Binding, Era, PartialAcks, RecoveryEnd, RepairTimer, RtoFloor};

/// See [`Era`]; by default nothing of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EraCase {
    /// Octets of a subflow's own send buffer; if present, data are bound early.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subflow_send_buffer_bytes: Option<u64>,
    /// Data are bound early, to send buffers that grow with windows; excludes the size above.
    pub autotuned: bool,
    /// Octets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subflow_window_bytes: Option<u32>,
    /// Octets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_ssthresh_bytes: Option<u64>,
    /// Data that timed out are not sent on other subflows.
    pub no_reinjection: bool,
    /// Consecutive time-outs before a subflow's data are sent on others; absent: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reinjection_timeouts: Option<u32>,
    /// Data that block the head of the stream are sent on subflows that owe nothing.
    pub idle_reinjection: bool,
    /// RFC 3042 is off.
    pub no_limited_transmit: bool,
    /// RFC 6675 instead.
    pub no_rack: bool,
    /// RFC 8985 section 7 is off.
    pub no_tail_loss_probe: bool,
    /// RFC 6298 section 2.4 to the letter.
    pub whole_rto_floor: bool,
    /// RFC 6582 section 4, Slow-but-Steady.
    pub every_partial_ack: bool,
    /// Delay of ACKs by the interval between segments.
    pub adaptive_ack_delay: bool,
    /// RFC 6675 section 6: a retransmission restarts the timer.
    pub repair_timer_on_resend: bool,
    /// SACKs of data sent before the retransmission restart it, too.
    pub repair_timer_on_sack: bool,
    /// RFC 9937: a recovery ends at the threshold.
    pub recovery_end_at_threshold: bool,
}

impl EraCase {
    /// Returns whether none of this is set.
    pub fn is_of_today(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the settings as the engine's type.
    pub fn config(&self) -> Era {
        Era {
            binding: match self.subflow_send_buffer_bytes {
                _ if self.autotuned => Binding::Autotuned,
                Some(buffer_bytes) => Binding::Early { buffer_bytes },
                None => Binding::Late,
            },
            initial_ssthresh_bytes: self.initial_ssthresh_bytes.unwrap_or(u64::MAX),
            subflow_window_bytes: self.subflow_window_bytes.unwrap_or(u32::MAX),
            reinjection: !self.no_reinjection,
            reinjection_timeouts: self.reinjection_timeouts.unwrap_or(1),
            idle_reinjection: self.idle_reinjection,
            limited_transmit: !self.no_limited_transmit,
            rack: !self.no_rack,
            tail_loss_probe: !self.no_tail_loss_probe,
            rto_floor: if self.whole_rto_floor { RtoFloor::Whole } else { RtoFloor::Variance },
            partial_acks: if self.every_partial_ack { PartialAcks::Every } else { PartialAcks::First },
            repair_timer: match self.repair_timer_on_resend {
                _ if self.repair_timer_on_sack => RepairTimer::OnSack,
                true => RepairTimer::OnResend,
                false => RepairTimer::OnAck,
            },
            recovery_end: if self.recovery_end_at_threshold { RecoveryEnd::Threshold } else { RecoveryEnd::Flight },
            ack_delay: if self.adaptive_ack_delay { AckDelay::Adaptive } else { AckDelay::Fixed },
        }
    }
}
