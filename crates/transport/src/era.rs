//! What endpoints of other years, and the kernel, do otherwise, one switch each.
//!
//! The papers that this project repeats ran on ns-3 of 2012 to 2014, whose TCP had little of what came since. Every difference is a
//! setting of its own, off by default, so that its part in a result can be told. All of it is read rarely: what every segment asks
//! for is worked out when a TCB is made.

/// When data are bound to a subflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Binding {
    /// When its window opens: nothing waits at a subflow that another could carry sooner.
    #[default]
    Late,
    /// As long as its own send buffer has room, and for good: the scheduler is asked then, and an opening window sends what waits
    /// there (MPTCP of ns-3, thesis 3.2.1).
    Early {
        /// Octets that a subflow holds at most, unsent and unacknowledged (ns-3's `SndBufSize`: 128 KiB).
        buffer_bytes: u64,
    },
    /// Likewise, with a send buffer as Linux makes it: it grows with windows that the subflow cannot fill and never shrinks, it is
    /// filled by fragments of 32 KiB, and the connection's is the sum of its subflows'
    /// ([`crate::ConnectionConfig::send_buffer_bytes`] at most). For the scheduler `linux`.
    Autotuned,
}

impl Binding {
    /// Octets that a subflow holds at most; none where data are bound late.
    pub(crate) fn held_max(self, cwnd_bytes: u64, mss: u32) -> Option<u64> {
        match self {
            Self::Late => None,
            Self::Early { buffer_bytes } => Some(buffer_bytes),
            Self::Autotuned => Some(autotuned_bytes(cwnd_bytes, mss)),
        }
    }
}

/// What Linux keeps data in, octets (`SKB_FRAG_PAGE_ORDER`): where send buffers are autotuned, all that waits of one goes to the
/// same subflow.
pub(crate) const FRAGMENT_BYTES: u64 = 32 * 1024;

/// A send buffer as Linux makes it (`tcp_wmem`): room for two windows of ten segments at least, each counted with its headers and
/// what the kernel keeps beside it. With an MSS of Ethernet's it starts at 46080 octets in a build with few drivers, such as this
/// was compared with (`ss -m`, `tb`); usual builds leave 64 octets more for headers, and start at 87040.
pub(crate) fn autotuned_bytes(cwnd_bytes: u64, mss: u32) -> u64 {
    // MAX_TCP_HEADER of such a build, 256, and what describes a packet's fragments, 320.
    const HEADERS: u32 = 256 + 320;
    const KEPT_BESIDE: u32 = 256;
    const WINDOW_MIN_SEGMENTS: u64 = 10;
    let segments = (cwnd_bytes / u64::from(mss.max(1))).max(WINDOW_MIN_SEGMENTS);
    let segment_bytes = (mss + HEADERS).next_power_of_two() + KEPT_BESIDE;
    segments.saturating_mul(2 * u64::from(segment_bytes))
}

/// What the lower bound of the retransmission time-out bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RtoFloor {
    /// Its part that comes from the variance, as in Linux: every path keeps a margin above its round-trip time.
    #[default]
    Variance,
    /// All of it (RFC 6298 section 2.4).
    Whole,
}

/// Which partial ACKs of a fast recovery without SACK restart the retransmission timer (RFC 6582 section 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PartialAcks {
    /// The first alone: a long repair ends in a time-out and slow start (RFC 6582 section 3.2, Impatient).
    #[default]
    First,
    /// Every one, as in Linux and ns-3: a long repair goes on at a segment for each round trip (Slow-but-Steady).
    Every,
}

/// With SACK, when the retransmission timer starts anew while a loss is repaired. Without it see [`PartialAcks`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RepairTimer {
    /// When an ACK moves on (RFC 6298 section 5.3): a repair that takes longer than a time-out since then ends in one.
    OnAck,
    /// When the first segment is sent again, too (RFC 6675 section 6 leaves it open).
    #[default]
    OnResend,
    /// And while SACKs tell of what was sent before that, as in Linux. What tells that the repair is lost as well was sent after it,
    /// perhaps a round trip later, and is SACKed two round trips later.
    OnSack,
}

/// What the window is when a recovery ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecoveryEnd {
    /// What is in flight and a segment, the threshold at most (RFC 6582 section 3.2, the first of its choices): no burst makes up for a
    /// path that has run empty.
    #[default]
    Flight,
    /// The threshold (its second choice, RFC 9937), and the ACK that ends the recovery lets it grow by what it delivers, as in Linux.
    Threshold,
}

/// How long an ACK may wait for more data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AckDelay {
    /// For [`crate::ConnectionConfig::delayed_ack`].
    #[default]
    Fixed,
    /// From that on by what the peer's segments were apart of late, to 200 ms at most, as in Linux: a peer that sends one
    /// segment in each round trip waits so long for its ACK.
    Adaptive,
}

/// How an endpoint differs from one of today. [`Default`] is one of today.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Era {
    /// When data are bound to a subflow.
    pub binding: Binding,
    /// Slow-start threshold of a new subflow in octets, two segments at least; `u64::MAX` as RFC 5681 section 3.1 advises. With one
    /// of its own the first slow start ends there, and HyStart++ has no part in it.
    pub initial_ssthresh_bytes: u64,
    /// Octets in flight on a subflow at most, whatever window the peer announces. Without window scaling (RFC 7323) it was 65535.
    pub subflow_window_bytes: u32,
    /// What a subflow timed out on goes out on others as well. Without it data change the subflow only when theirs ends, or has
    /// acknowledged what never arrived.
    pub reinjection: bool,
    /// With reinjection, after how many time-outs in a row of the subflow. Linux waits until it counts as stale (`stale_loss_cnt`).
    pub reinjection_timeouts: u32,
    /// With reinjection, what the head of the stream waits for goes out again on a subflow that owes nothing, if no DATA_ACK moved on
    /// for as long as the subflows' own timers had left; in Linux that is all that moves data before a subflow counts as stale
    /// (`mptcp_retransmit_timer`).
    pub idle_reinjection: bool,
    /// The first two duplicate ACKs let a segment out each (RFC 3042). With SACK the pipe of RFC 6675 does that by itself, and this
    /// has no part in it.
    pub limited_transmit: bool,
    /// With SACK, losses are told by time (RACK, RFC 8985); otherwise by what was SACKed above them (RFC 6675 section 4).
    pub rack: bool,
    /// With SACK, the end of a flight is probed before its time-out (TLP, RFC 8985 section 7).
    pub tail_loss_probe: bool,
    /// What [`crate::ConnectionConfig::rto_min`] bounds.
    pub rto_floor: RtoFloor,
    /// Without SACK, which partial ACKs restart the retransmission timer.
    pub partial_acks: PartialAcks,
    /// With SACK, when the retransmission timer starts anew while a loss is repaired.
    pub repair_timer: RepairTimer,
    /// What the window is when a recovery ends.
    pub recovery_end: RecoveryEnd,
    /// How long an ACK may wait for more data.
    pub ack_delay: AckDelay,
}

impl Default for Era {
    fn default() -> Self {
        Self {
            binding: Binding::Late,
            initial_ssthresh_bytes: u64::MAX,
            subflow_window_bytes: u32::MAX,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn send_buffers_are_as_large_as_those_of_linux() {
        // As a build of Linux with few drivers has it for a new connection (ss -m, tb), and for a window of 100 segments.
        let held_max = |segments: u64, mss: u32| Binding::Autotuned.held_max(segments * u64::from(mss), mss);
        assert_eq!(held_max(10, 1448), Some(46_080));
        assert_eq!(held_max(2, 1448), Some(46_080));
        assert_eq!(held_max(100, 1448), Some(460_800));
        assert_eq!(held_max(10, 1000), Some(46_080));
        assert_eq!(Binding::Early { buffer_bytes: 5000 }.held_max(9000, 1000), Some(5000));
        assert_eq!(Binding::Late.held_max(9000, 1000), None);
    }
}
