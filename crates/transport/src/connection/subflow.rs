//! A subflow: a TCB and its part in the connection (RFC 8684 section 3.2).

use core::net::SocketAddr;

use units::narrow::u32_from;
use units::{Dsn, Duration, Instant, SeqNr};
use wire::mptcp::{AddressId, MptcpOption};

use super::join_proof::JoinProof;
use super::mapping::MappingTable;
use super::suspension::Suspension;
use crate::SubflowId;
use crate::congestion::Competition;
use crate::era::Binding;
use crate::error::CloseReason;
use crate::event::Ticket;
use crate::scheduler::SubflowView;
use crate::state::State;
use crate::stats::SubflowStats;
use crate::tcp::{Chunk, Tcb};

/// Origin of the subflow and state of its MPTCP handshake.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Handshake {
    /// The first subflow, opened by this side: MP_CAPABLE, or TCP alone.
    Initial,
    /// The first subflow, opened by the peer.
    InitialAccepted,
    /// Opened by this side with MP_JOIN.
    Join {
        /// Our random number.
        nonce: u32,
    },
    /// Opened by the peer with MP_JOIN.
    JoinAccepted {
        /// Our random number.
        nonce: u32,
        /// The peer's random number.
        remote_nonce: u32,
        /// End of the peer's time to prove that it knows the keys.
        expires_at: Instant,
    },
    /// Our third ACK with its HMAC has been sent; no data before the peer answers (RFC 8684 section 3.2).
    JoinUnconfirmed(JoinProof),
    /// Data may flow.
    Complete,
}

/// One subflow of a connection.
#[derive(Debug)]
pub(crate) struct Subflow {
    pub(crate) id: SubflowId,
    pub(crate) tcb: Tcb,
    pub(crate) handshake: Handshake,
    pub(crate) local_id: AddressId,
    pub(crate) remote_id: AddressId,
    /// The peer wants the subflow as backup (B flag or MP_PRIO).
    pub(crate) backup_for_peer: bool,
    /// This side wants the subflow as backup.
    pub(crate) backup_here: bool,
    /// A DSS has arrived: this path passes options on segments other than SYNs (RFC 8684 section 3.7).
    pub(crate) dss_seen: bool,
    /// An MP_PRIO is due.
    pub(crate) prio_due: bool,
    /// The last event about its priority to the owner.
    pub(crate) prio_told: Option<Ticket>,
    /// The controller and the path manager know the subflow.
    pub(crate) admitted: bool,
    /// When the controller and the path manager learnt that the subflow has ended.
    pub(crate) retired_at: Option<Instant>,
    /// The subflow is being closed and takes no new data.
    pub(crate) closing: bool,
    /// Options for a RST that will be sent.
    pub(crate) reset_options: Vec<MptcpOption>,
    /// Why it ended, once known.
    pub(crate) close_reason: Option<CloseReason>,
    pub(crate) mappings: MappingTable,
    /// End of the peer's stream according to a mapping that has not been verified yet.
    pub(crate) unverified_fin: Option<Dsn>,
    /// After a fallback: data sequence number minus subflow sequence number, modulo 2^32, in mappings that the peer
    /// still sends.
    pub(crate) mapped_distance: Option<u32>,
    pub(crate) established_at: Option<Instant>,
    /// Round-trip time that schedulers see, and the time of its last sample.
    pub(crate) recent_rtt: Option<Duration>,
    pub(crate) measured_at: Instant,
    /// All its outstanding data have been handed to other subflows; not repeated until it gets new data.
    pub(crate) reinjected: bool,
    /// Set if it swallowed octets and that still matters.
    pub(crate) suspension: Option<Suspension>,
    /// Number of DATA_FINs without data sent on it.
    pub(crate) data_fins: u32,
    /// Octets that it will have sent with the latest probe of MPTCP-rec; zero without one. Not a sequence number: 2 GiB
    /// later that would seem to lie ahead.
    pub(crate) probe_end_bytes: u64,
    /// Competition at its relay, as far as the owner knows.
    pub(crate) competition: Option<Competition>,
    /// Limit on the octets that it holds if data are bound early, if lower than its buffer.
    pub(crate) held_max_bytes: Option<u64>,
    /// The largest congestion window that it could not fill, octets: the basis of an autotuned send buffer.
    pub(crate) widest_window_bytes: u64,
}

impl Subflow {
    pub(crate) fn new(id: SubflowId, tcb: Tcb, handshake: Handshake) -> Self {
        Self {
            id,
            tcb,
            handshake,
            local_id: AddressId(0),
            remote_id: AddressId(0),
            backup_for_peer: false,
            backup_here: false,
            dss_seen: false,
            prio_due: false,
            prio_told: None,
            admitted: false,
            retired_at: None,
            closing: false,
            reset_options: Vec::new(),
            close_reason: None,
            mappings: MappingTable::default(),
            unverified_fin: None,
            mapped_distance: None,
            established_at: None,
            recent_rtt: None,
            measured_at: Instant::ZERO,
            reinjected: false,
            suspension: None,
            data_fins: 0,
            probe_end_bytes: 0,
            competition: None,
            held_max_bytes: None,
            widest_window_bytes: 0,
        }
    }

    pub(crate) fn local(&self) -> SocketAddr {
        self.tcb.local
    }

    pub(crate) fn remote(&self) -> SocketAddr {
        self.tcb.remote
    }

    pub(crate) fn is_backup(&self) -> bool {
        self.backup_for_peer || self.backup_here
    }

    /// Whether its other end is the connection's peer. Anyone who has seen the token can answer or begin a join; only
    /// who knows the keys can prove it (RFC 8684 section 3.2).
    pub(crate) fn is_proven(&self) -> bool {
        !matches!(self.handshake, Handshake::Join { .. } | Handshake::JoinAccepted { .. })
    }

    /// Whether the peer, or somebody in its place, has begun it and has not completed the handshake.
    pub(crate) fn is_peers_attempt(&self) -> bool {
        matches!(self.handshake, Handshake::InitialAccepted | Handshake::JoinAccepted { .. })
    }

    /// Whether data may be sent on it.
    pub(crate) fn is_usable(&self) -> bool {
        matches!(self.handshake, Handshake::Complete) && !self.closing && self.tcb.state.can_send()
    }

    /// Whether a DATA_FIN without data may leave on it. Even behind its own FIN it may still be the only one left.
    pub(crate) fn can_end_stream(&self) -> bool {
        self.handshake == Handshake::Complete && !self.is_finished()
    }

    /// No sign of life for a retransmission time-out: the peer answers neither data nor window probes.
    pub(crate) fn is_stale(&self) -> bool {
        let stuck = self.tcb.is_probing() && self.tcb.unsent_bytes() > 0;
        stuck || self.tcb.ignores_probes() || (self.tcb.consecutive_timeouts() > 0 && self.tcb.has_outstanding())
    }

    /// Gives it data to send.
    pub(crate) fn take_over(&mut self, chunk: Chunk) {
        self.reinjected = false;
        self.tcb.push(chunk);
    }

    /// Whether it swallowed octets and gets none while others can carry them, given that everything before `una` is
    /// acknowledged as data.
    pub(crate) fn is_suspended(&self, una: Dsn) -> bool {
        self.suspension.is_some_and(|suspension| suspension.is_on(una))
    }

    /// Returns how little it is trusted to deliver: zero if it is not suspended.
    pub(crate) fn suspension_rank(&self, una: Dsn) -> u64 {
        self.suspension.map_or(0, |suspension| suspension.rank(una))
    }

    /// Whether the controller and the path manager know that it has ended.
    pub(crate) fn is_retired(&self) -> bool {
        self.retired_at.is_some()
    }

    /// Whether the controller knows it, and has not been told of its end.
    pub(crate) fn is_controlled(&self) -> bool {
        self.admitted && !self.is_retired()
    }

    /// It has nothing outstanding and gets no data while others can carry them. Its window dates from its last data,
    /// and says nothing about the connection's present use of the network.
    pub(crate) fn is_left_out(&self, una: Dsn) -> bool {
        (self.is_backup() || self.is_suspended(una)) && !self.tcb.has_outstanding()
    }

    /// The window that it last received leaves no room. The window is the connection's, so other subflows may have
    /// newer information.
    pub(crate) fn is_shut(&self) -> bool {
        self.tcb.usable_window() == 0 && !self.tcb.has_outstanding()
    }

    /// Whether it has ended: TIME-WAIT and CLOSED hold nothing that the connection could still use.
    pub(crate) fn is_finished(&self) -> bool {
        matches!(self.tcb.state, State::Closed | State::TimeWait)
    }

    /// Returns the relative subflow sequence number of RFC 8684 section 3.3.1: the first octet after the SYN is 1.
    pub(crate) fn relative_sent(&self, seq: SeqNr) -> u32 {
        seq.since(self.tcb.iss())
    }

    /// Returns the absolute sequence number of a received mapping.
    pub(crate) fn absolute_received(&self, ssn: u32) -> SeqNr {
        self.tcb.irs() + ssn
    }

    /// Returns until when a join of the peer may wait for its third ACK, if it does.
    pub(crate) fn half_open_until(&self) -> Option<Instant> {
        match self.handshake {
            Handshake::JoinAccepted { expires_at, .. } if !self.is_finished() => Some(expires_at),
            _ => None,
        }
    }

    /// Ends a join that the peer has begun and not completed, silently, because there may be no peer.
    pub(crate) fn give_up_join(&mut self) {
        self.close_reason.get_or_insert(CloseReason::TimedOut);
        self.tcb.close();
    }

    /// Repeats the third ACK of a join that the peer has not answered. Returns false if repeating is useless.
    pub(crate) fn resend_join_ack(&mut self, now: Instant) -> bool {
        match &mut self.handshake {
            Handshake::JoinUnconfirmed(proof) => proof.repeat_if_due(&mut self.tcb, now),
            _ => true,
        }
    }

    /// Prefetches the memory that [`Self::next_timeout`] reads.
    pub(crate) fn prefetch_timers(&self) {
        self.tcb.prefetch_timers();
        units::prefetch(&self.handshake);
    }

    pub(crate) fn next_timeout(&self) -> Instant {
        self.tcb.next_timeout().min(self.next_handshake_timeout())
    }

    fn next_handshake_timeout(&self) -> Instant {
        match self.handshake {
            Handshake::Complete => Instant::FAR_FUTURE,
            Handshake::JoinUnconfirmed(proof) => proof.resend_at(),
            _ => self.half_open_until().unwrap_or(Instant::FAR_FUTURE),
        }
    }

    /// Whether [`Self::next_timeout`] is before `at`.
    pub(crate) fn fires_before(&mut self, at: Instant) -> bool {
        self.tcb.fires_before(at) || self.next_handshake_timeout() < at
    }

    /// Whether congestion window and receive window have room for another segment besides those in flight or queued:
    /// data that must wait for this subflow's window may fit another's. If pacing holds back a segment, no other is
    /// queued behind it, for the same reason.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        if self.tcb.is_paced() && self.tcb.unsent_bytes() > 0 {
            return false;
        }
        let used = self.tcb.in_flight() + self.tcb.unsent_bytes();
        let fits = || {
            self.tcb.window().cwnd().saturating_sub(used) >= u64::from(self.tcb.payload_max())
                && self.window_room() >= u64::from(self.tcb.least_worth_sending())
        };
        used == 0 || fits()
    }

    /// Whether it takes more data: by [`Self::has_room`] if data are bound late, otherwise while its own buffer has
    /// room.
    #[inline]
    pub(crate) fn takes_more(&self, binding: Binding) -> bool {
        let Some(buffer_bytes) = self.send_buffer_bytes(binding) else { return self.has_room() };
        let held = self.tcb.held_bytes();
        let buffer_bytes = self.held_max_bytes.map_or(buffer_bytes, |limit| {
            // A full window may be in flight: less would leave the path idle.
            buffer_bytes.min(limit.max(self.tcb.window().cwnd()))
        });
        match binding {
            // A fragment may overfill the buffer.
            Binding::Autotuned => held < buffer_bytes,
            Binding::Early { .. } | Binding::Late => {
                held == 0 || held + u64::from(self.tcb.payload_max()) <= buffer_bytes
            }
        }
    }

    /// Returns the size of its own send buffer, octets, if it has one.
    pub(crate) fn send_buffer_bytes(&self, binding: Binding) -> Option<u64> {
        binding.held_max(self.widest_window_bytes, self.tcb.payload_max())
    }

    /// Enlarges the send buffer after an ACK. Linux never shrinks the buffer, and enlarges it only for a window that is
    /// not filled.
    #[inline]
    pub(crate) fn grow_send_buffer(&mut self) {
        if self.tcb.unsent_bytes() == 0 {
            self.widest_window_bytes = self.widest_window_bytes.max(self.tcb.window().cwnd());
        }
    }

    /// Nothing except a full window speaks against giving it data: it is alive, is no backup, and swallows nothing.
    #[inline]
    pub(crate) fn is_ordinary(&self) -> bool {
        let lives = !self.tcb.is_probing() && self.tcb.consecutive_timeouts() == 0;
        lives && self.suspension.is_none() && !self.is_backup() && !self.is_shut()
    }

    /// Returns the octets of payload in its next segment: one packet or, with super-segments of up to `offload_max`
    /// octets, as many whole packets as the windows have room for and the pace allows at once.
    #[inline]
    pub(crate) fn segment_bytes(&self, offload_max: u32) -> u32 {
        let mss = self.tcb.payload_max();
        let offload_max = self.tcb.super_segment_max(offload_max);
        // Without super-segments there is nothing to divide.
        if offload_max < 2 * mss {
            return mss;
        }
        let used = self.tcb.in_flight() + self.tcb.unsent_bytes();
        let room = u32_from(self.tcb.window().cwnd().saturating_sub(used).min(self.window_room())).min(offload_max);
        if room < 2 * mss { mss } else { room - room % mss }
    }

    /// Returns the octets that the peer accepts on this subflow besides those in flight or queued.
    pub(crate) fn window_room(&self) -> u64 {
        u64::from(self.tcb.usable_window()).saturating_sub(self.tcb.unsent_bytes())
    }

    /// Records a sample for schedulers. They need the present state of the path, so the average restarts after a pause;
    /// TCP's own average, which guards against needless time-outs, has a longer memory.
    pub(crate) fn note_rtt(&mut self, rtt: Duration, now: Instant) {
        self.recent_rtt = match self.recent_rtt.filter(|_| !self.is_measurement_old(now)) {
            None => Some(rtt),
            Some(recent) => Some(Duration::from_nanos((recent.as_nanos() * 7 + rtt.as_nanos()) / 8)),
        };
        self.measured_at = now;
    }

    fn is_measurement_old(&self, now: Instant) -> bool {
        /// Older measurements no longer count.
        const MEASUREMENT_AGE: Duration = Duration::from_secs(1);
        now.saturating_since(self.measured_at) > MEASUREMENT_AGE
    }

    /// Returns the round-trip time for schedulers; for an idle subflow with old samples, the smallest. The last samples
    /// of a subflow that was dead or full say little about its present state, and while they deter a scheduler, no new
    /// ones appear.
    pub(crate) fn srtt(&self, now: Instant) -> Option<Duration> {
        let is_idle = self.is_measurement_old(now) && !self.tcb.has_outstanding();
        if is_idle { self.tcb.rtt().min() } else { self.recent_rtt.or(self.tcb.rtt().srtt()) }
    }

    /// Returns what schedulers may see, given whether it `has_room`.
    #[inline]
    pub(crate) fn scheduler_view(&self, has_room: bool, now: Instant) -> SubflowView {
        let window = self.tcb.window();
        let in_flight = self.tcb.in_flight();
        let queued = self.tcb.unsent_bytes();
        let mss = self.tcb.payload_max();
        SubflowView {
            id: self.id,
            mss,
            srtt: self.srtt(now),
            rttvar: self.tcb.rtt().rttvar(),
            cwnd: window.cwnd(),
            ssthresh: window.ssthresh(),
            in_flight,
            queued,
            held: self.tcb.held_bytes(),
            has_room,
            backup: self.is_backup(),
            stale: self.is_stale(),
        }
    }

    pub(crate) fn stats(&self) -> SubflowStats {
        let counters = &self.tcb.counters;
        let window = self.tcb.window();
        SubflowStats {
            id: self.id,
            local: self.local(),
            remote: self.remote(),
            local_address_id: self.local_id.0,
            remote_address_id: self.remote_id.0,
            state: self.tcb.state.name(),
            backup: self.is_backup(),
            mss_bytes: self.tcb.payload_max(),
            path_mtu_bytes: self.tcb.path_mtu(),
            cwnd_bytes: window.cwnd(),
            ssthresh_bytes: window.ssthresh(),
            in_flight_bytes: self.tcb.in_flight(),
            unsent_bytes: self.tcb.unsent_bytes(),
            held_bytes: self.tcb.held_bytes(),
            srtt: self.tcb.rtt().srtt(),
            min_rtt: self.tcb.rtt().min(),
            least_rtt: self.tcb.rtt().least(),
            rtt_sum: self.tcb.rtt().sum(),
            rtt_samples: self.tcb.rtt().samples(),
            in_recovery: window.is_repairing(),
            answers_mark: window.in_recovery() && !window.is_repairing(),
            sent_segments: counters.sent_segments,
            sent_bytes: counters.sent_bytes,
            retransmitted_bytes: counters.retransmitted_bytes,
            retransmitted_segments: counters.retransmitted_segments,
            timeouts: counters.timeouts,
            congestion_events: counters.congestion_events,
            acked_bytes: counters.acked_bytes,
            received_segments: counters.received_segments,
            received_bytes: counters.received_bytes,
            duplicate_bytes: counters.duplicate_bytes,
            established_at: self.established_at,
            closed_at: self.retired_at,
        }
    }
}

/// Time that a connection without subflows waits for a new one (Linux's `close_timeout`).
pub(crate) const SUBFLOW_WAIT: Duration = Duration::from_secs(60);
/// The same if the last subflow was reset: path managers join again 1, 3, 7 and 15 s after the RST. A longer wait would
/// help few connections and keep the memory of all, since most peers that reset are gone; docs/decisions has the
/// reasons.
pub(crate) const RESET_WAIT: Duration = Duration::from_secs(20);
