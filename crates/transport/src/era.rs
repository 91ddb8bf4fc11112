//! How endpoints of other years, and the kernel, behave differently: one switch for each difference.
//!
//! The papers that this project repeats used ns-3 of 2012 to 2014, whose TCP lacked many later developments. Every
//! difference is a separate setting, off by default, so its effect on a result can be measured. The settings are read
//! rarely: values that every segment needs are computed when a TCB is created.

/// When data are bound to a subflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Binding {
    /// When its window opens: nothing waits at a subflow that another could carry sooner.
    #[default]
    Late,
    /// While its own send buffer has room, and permanently. The scheduler is asked then, and an opening window sends
    /// the data that wait there (MPTCP of ns-3, thesis 3.2.1).
    Early {
        /// Maximum octets that a subflow holds, unsent and unacknowledged (ns-3's `SndBufSize`: 128 KiB).
        buffer_bytes: u64,
    },
    /// Likewise, with a send buffer like Linux's. It grows with windows that the subflow cannot fill and never shrinks,
    /// and is filled with fragments of 32 KiB. The connection's buffer is the sum of its subflows', at most
    /// [`crate::ConnectionConfig::send_buffer_bytes`]. For the scheduler `linux`.
    Autotuned,
}

impl Binding {
    /// Returns the maximum octets that a subflow holds; `None` if data are bound late.
    pub(crate) fn held_max(self, cwnd_bytes: u64, mss: u32) -> Option<u64> {
        match self {
            Self::Late => None,
            Self::Early { buffer_bytes } => Some(buffer_bytes),
            Self::Autotuned => Some(autotuned_bytes(cwnd_bytes, mss)),
        }
    }
}

/// Unit in which Linux stores data, octets (`SKB_FRAG_PAGE_ORDER`): if send buffers are autotuned, all waiting data of
/// one fragment go to the same subflow.
pub(crate) const FRAGMENT_BYTES: u64 = 32 * 1024;

/// Returns the size of a send buffer like Linux's (`tcp_wmem`): room for two windows of at least ten segments, each
/// counted with its headers and the kernel's metadata. With Ethernet's MSS it starts at 46080 octets in a build with
/// few drivers, like the one used for comparison (`ss -m`, `tb`); usual builds leave 64 octets more for headers, and
/// start at 87040.
pub(crate) fn autotuned_bytes(cwnd_bytes: u64, mss: u32) -> u64 {
    // MAX_TCP_HEADER of such a build, 256, and the description of a packet's fragments, 320.
    const HEADERS: u32 = 256 + 320;
    const KEPT_BESIDE: u32 = 256;
    const WINDOW_MIN_SEGMENTS: u64 = 10;
    let segments = (cwnd_bytes / u64::from(mss.max(1))).max(WINDOW_MIN_SEGMENTS);
    let segment_bytes = (mss + HEADERS).next_power_of_two() + KEPT_BESIDE;
    segments.saturating_mul(2 * u64::from(segment_bytes))
}

/// What the lower bound of the retransmission time-out applies to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RtoFloor {
    /// The part that comes from the variance, as in Linux: every path keeps a margin above its round-trip time.
    #[default]
    Variance,
    /// The whole time-out (RFC 6298 section 2.4).
    Whole,
}

/// Which partial ACKs of a fast recovery without SACK restart the retransmission timer (RFC 6582 section 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PartialAcks {
    /// Only the first: a long repair ends in a time-out and slow start (RFC 6582 section 3.2, Impatient).
    #[default]
    First,
    /// Every one, as in Linux and ns-3: a long repair continues at one segment per round trip (Slow-but-Steady).
    Every,
}

/// With SACK, when the retransmission timer restarts during the repair of a loss. Without SACK see [`PartialAcks`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RepairTimer {
    /// When an ACK advances (RFC 6298 section 5.3): if the repair then takes longer than a time-out, it ends in one.
    OnAck,
    /// Also when the first segment is sent again (RFC 6675 section 6 leaves it open).
    #[default]
    OnResend,
    /// Also while SACKs cover data sent before that, as in Linux. Only data sent later can show that the retransmission
    /// is lost too; they are sent perhaps a round trip later, and SACKed two round trips later.
    OnSack,
}

/// The window at the end of a recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecoveryEnd {
    /// The data in flight plus a segment, at most the threshold (RFC 6582 section 3.2, the first of its choices): a
    /// path that has run empty gets no burst.
    #[default]
    Flight,
    /// The threshold (its second choice, RFC 9937), as in Linux; the ACK that ends the recovery then grows it by what
    /// it delivers.
    Threshold,
}

/// How long an ACK may wait for more data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AckDelay {
    /// For [`crate::ConnectionConfig::delayed_ack`].
    #[default]
    Fixed,
    /// At least that long, and longer with the recent spacing of the peer's segments, up to 200 ms, as in Linux: a peer
    /// that sends one segment per round trip waits a round trip for its ACK.
    Adaptive,
}

/// Differences from a present-day endpoint. [`Default`] is a present-day one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Era {
    /// When data are bound to a subflow.
    pub binding: Binding,
    /// Slow-start threshold of a new subflow in octets, at least two segments; `u64::MAX` as RFC 5681 section 3.1
    /// advises. With any other value the first slow start ends there, and HyStart++ plays no part in it.
    pub initial_ssthresh_bytes: u64,
    /// Maximum octets in flight on a subflow, whatever window the peer announces. Without window scaling (RFC 7323) it
    /// was 65535.
    pub subflow_window_bytes: u32,
    /// Send data on which a subflow timed out on others as well. Without reinjection, data change their subflow only if
    /// it ends, or has acknowledged octets that never arrived.
    pub reinjection: bool,
    /// With reinjection: number of consecutive time-outs of the subflow before it happens. Linux waits until the
    /// subflow counts as stale (`stale_loss_cnt`).
    pub reinjection_timeouts: u32,
    /// With reinjection: send data missing at the head of the stream again on an idle subflow, if no DATA_ACK has
    /// advanced for as long as the subflows' own timers had left. In Linux nothing else moves data before a subflow
    /// counts as stale (`mptcp_retransmit_timer`).
    pub idle_reinjection: bool,
    /// Send one segment for each of the first two duplicate ACKs (RFC 3042). With SACK the pipe of RFC 6675 does this
    /// by itself, and this setting has no effect.
    pub limited_transmit: bool,
    /// With SACK: detect losses by time (RACK, RFC 8985); otherwise by the data SACKed above them (RFC 6675 section 4).
    pub rack: bool,
    /// With SACK: probe the end of a flight before its time-out (TLP, RFC 8985 section 7).
    pub tail_loss_probe: bool,
    /// What [`crate::ConnectionConfig::rto_min`] applies to.
    pub rto_floor: RtoFloor,
    /// Without SACK: which partial ACKs restart the retransmission timer.
    pub partial_acks: PartialAcks,
    /// With SACK: when the retransmission timer restarts during the repair of a loss.
    pub repair_timer: RepairTimer,
    /// The window at the end of a recovery.
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
        // Values of a Linux build with few drivers for a new connection (ss -m, tb), and for a window of 100 segments.
        let held_max = |segments: u64, mss: u32| Binding::Autotuned.held_max(segments * u64::from(mss), mss);
        assert_eq!(held_max(10, 1448), Some(46_080));
        assert_eq!(held_max(2, 1448), Some(46_080));
        assert_eq!(held_max(100, 1448), Some(460_800));
        assert_eq!(held_max(10, 1000), Some(46_080));
        assert_eq!(Binding::Early { buffer_bytes: 5000 }.held_max(9000, 1000), Some(5000));
        assert_eq!(Binding::Late.held_max(9000, 1000), None);
    }
}
