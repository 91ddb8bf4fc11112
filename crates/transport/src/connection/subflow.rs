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

/// How the subflow came to be, and how far its MPTCP handshake is.
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
        /// The peer's.
        remote_nonce: u32,
        /// When the peer has had its time to prove that it knows the keys.
        expires_at: Instant,
    },
    /// Our third ACK with its HMAC is on its way; no data before the peer answers (RFC 8684 section 3.2).
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
    /// The peer wants it as backup (B flag or MP_PRIO).
    pub(crate) backup_for_peer: bool,
    /// This side wants it as backup.
    pub(crate) backup_here: bool,
    /// A DSS has come through: this path lets options pass on more than SYNs (RFC 8684 section 3.7).
    pub(crate) dss_seen: bool,
    /// An MP_PRIO is due.
    pub(crate) prio_due: bool,
    /// What the owner was told last of its priority.
    pub(crate) prio_told: Option<Ticket>,
    /// The controller and the path manager know it.
    pub(crate) admitted: bool,
    /// They have been told that it is gone.
    pub(crate) retired: bool,
    /// On its way out: no new data.
    pub(crate) closing: bool,
    /// What a RST to be sent carries.
    pub(crate) reset_options: Vec<MptcpOption>,
    /// Why it ended, once known.
    pub(crate) close_reason: Option<CloseReason>,
    pub(crate) mappings: MappingTable,
    /// Where the peer's stream ends, said by a mapping that has not been verified yet.
    pub(crate) unverified_fin: Option<Dsn>,
    /// After a fallback, data sequence number less subflow sequence number, modulo 2^32, in what the peer still maps.
    pub(crate) mapped_distance: Option<u32>,
    pub(crate) established_at: Option<Instant>,
    /// The round-trip time that schedulers see, and when it was measured last.
    pub(crate) recent_rtt: Option<Duration>,
    pub(crate) measured_at: Instant,
    /// All that it owes was handed to other subflows; once is enough, until it is given something new.
    pub(crate) reinjected: bool,
    /// It swallowed octets, and that is not forgotten.
    pub(crate) suspension: Option<Suspension>,
    /// DATA_FINs without data that it was given.
    pub(crate) data_fins: u32,
    /// Where the latest probe of MPTCP-rec ends.
    pub(crate) probe_end: Option<SeqNr>,
    /// What it competes with at its relay, as far as the owner knows.
    pub(crate) competition: Option<Competition>,
    /// Octets that it holds at most where data are bound early, if that is less than its buffer.
    pub(crate) held_max_bytes: Option<u64>,
    /// The largest congestion window that it could not fill, octets: what an autotuned send buffer is made for.
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
            retired: false,
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
            probe_end: None,
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

    /// Data may be sent on it.
    pub(crate) fn is_usable(&self) -> bool {
        matches!(self.handshake, Handshake::Complete) && !self.closing && self.tcb.state.can_send()
    }

    /// No sign of life for a retransmission time-out: neither data nor window probes are answered.
    pub(crate) fn is_stale(&self) -> bool {
        let stuck = self.tcb.is_probing() && self.tcb.unsent_bytes() > 0;
        stuck || (self.tcb.consecutive_timeouts() > 0 && self.tcb.has_outstanding())
    }

    /// Gives it data to send.
    pub(crate) fn take_over(&mut self, chunk: Chunk) {
        self.reinjected = false;
        self.tcb.push(chunk);
    }

    /// It swallowed octets: it gets none while others can carry them, with everything before `una` acknowledged as data.
    pub(crate) fn is_suspended(&self, una: Dsn) -> bool {
        self.suspension.is_some_and(|suspension| suspension.is_on(una))
    }

    /// How little it is trusted to deliver: zero if it is not suspended.
    pub(crate) fn suspension_rank(&self, una: Dsn) -> u64 {
        self.suspension.map_or(0, |suspension| suspension.rank(una))
    }

    /// The controller knows it, and has not been told that it is gone.
    pub(crate) fn is_controlled(&self) -> bool {
        self.admitted && !self.retired
    }

    /// It has nothing outstanding and is not to carry while others can: its window is what it was when it last did, and says
    /// nothing of what the connection takes of the network.
    pub(crate) fn is_left_out(&self, una: Dsn) -> bool {
        (self.is_backup() || self.is_suspended(una)) && !self.tcb.has_outstanding()
    }

    /// What it last heard of the peer's window leaves no room. The window is the connection's, so others may know better.
    pub(crate) fn is_shut(&self) -> bool {
        self.tcb.usable_window() == 0 && !self.tcb.has_outstanding()
    }

    /// TIME-WAIT and CLOSED hold nothing that the connection could still use.
    pub(crate) fn is_finished(&self) -> bool {
        matches!(self.tcb.state, State::Closed | State::TimeWait)
    }

    /// Relative subflow sequence number of RFC 8684 section 3.3.1: the first octet after the SYN is 1.
    pub(crate) fn relative_sent(&self, seq: SeqNr) -> u32 {
        seq.since(self.tcb.iss())
    }

    /// Absolute sequence number of a received mapping.
    pub(crate) fn absolute_received(&self, ssn: u32) -> SeqNr {
        self.tcb.irs() + ssn
    }

    /// Until when a join of the peer may wait for its third ACK, if it does.
    pub(crate) fn half_open_until(&self) -> Option<Instant> {
        match self.handshake {
            Handshake::JoinAccepted { expires_at, .. } if !self.is_finished() => Some(expires_at),
            _ => None,
        }
    }

    /// Ends a join that the peer has begun and not completed: without a word, since nobody may be there.
    pub(crate) fn give_up_join(&mut self) {
        self.close_reason.get_or_insert(CloseReason::TimedOut);
        self.tcb.close();
    }

    /// Repeats the third ACK of a join that the peer has not answered. False if that is in vain.
    pub(crate) fn resend_join_ack(&mut self, now: Instant) -> bool {
        match &mut self.handshake {
            Handshake::JoinUnconfirmed(proof) => proof.repeat_if_due(&mut self.tcb, now),
            _ => true,
        }
    }

    /// Has fetched what [`Self::next_timeout`] depends on.
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

    /// Another segment may join those in flight or queued, as far as congestion window and receive window go: what must
    /// wait for the window of this subflow may fit that of another. Where pacing holds one back, none joins it for the
    /// same reason.
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

    /// It takes more data: as [`Self::has_room`] says where they are bound late, else as long as its own buffer has room.
    #[inline]
    pub(crate) fn takes_more(&self, binding: Binding) -> bool {
        let Some(buffer_bytes) = self.send_buffer_bytes(binding) else { return self.has_room() };
        let held = self.tcb.held_bytes();
        let buffer_bytes = self.held_max_bytes.map_or(buffer_bytes, |limit| {
            // A full window may be in flight: less would keep the path idle.
            buffer_bytes.min(limit.max(self.tcb.window().cwnd()))
        });
        match binding {
            // A fragment may run it over.
            Binding::Autotuned => held < buffer_bytes,
            Binding::Early { .. } | Binding::Late => {
                held == 0 || held + u64::from(self.tcb.payload_max()) <= buffer_bytes
            }
        }
    }

    /// Octets that its own send buffer holds, where it has one.
    pub(crate) fn send_buffer_bytes(&self, binding: Binding) -> Option<u64> {
        binding.held_max(self.widest_window_bytes, self.tcb.payload_max())
    }

    /// An ACK came. Linux makes the send buffer larger, never smaller, and not for a window that is filled anyway.
    #[inline]
    pub(crate) fn grow_send_buffer(&mut self) {
        if self.tcb.unsent_bytes() == 0 {
            self.widest_window_bytes = self.widest_window_bytes.max(self.tcb.window().cwnd());
        }
    }

    /// Nothing speaks against giving it data, but perhaps that it is full: it lives, is no backup, and swallows nothing.
    #[inline]
    pub(crate) fn is_ordinary(&self) -> bool {
        let lives = !self.tcb.is_probing() && self.tcb.consecutive_timeouts() == 0;
        lives && self.suspension.is_none() && !self.is_backup() && !self.is_shut()
    }

    /// Octets of payload in its next segment: one packet or, with super-segments of up to `offload_max` octets, as many whole
    /// ones as the windows have room for.
    #[inline]
    pub(crate) fn segment_bytes(&self, offload_max: u32) -> u32 {
        let mss = self.tcb.payload_max();
        // Without super-segments there is nothing to divide.
        if offload_max < 2 * mss {
            return mss;
        }
        let used = self.tcb.in_flight() + self.tcb.unsent_bytes();
        let room = u32_from(self.tcb.window().cwnd().saturating_sub(used).min(self.window_room())).min(offload_max);
        if room < 2 * mss { mss } else { room - room % mss }
    }

    /// Octets that the peer takes on this subflow besides those in flight or queued.
    pub(crate) fn window_room(&self) -> u64 {
        u64::from(self.tcb.usable_window()).saturating_sub(self.tcb.unsent_bytes())
    }

    /// Takes a sample for schedulers. They need to know what the path is like now, so the average starts afresh after a
    /// pause; TCP's own, which guards against needless time-outs, has a longer memory.
    pub(crate) fn note_rtt(&mut self, rtt: Duration, now: Instant) {
        self.recent_rtt = match self.recent_rtt.filter(|_| !self.is_measurement_old(now)) {
            None => Some(rtt),
            Some(recent) => Some(Duration::from_nanos((recent.as_nanos() * 7 + rtt.as_nanos()) / 8)),
        };
        self.measured_at = now;
    }

    fn is_measurement_old(&self, now: Instant) -> bool {
        /// Measurements older than this have had their day.
        const MEASUREMENT_AGE: Duration = Duration::from_secs(1);
        now.saturating_since(self.measured_at) > MEASUREMENT_AGE
    }

    /// The round-trip time for schedulers; of a subflow that has long been idle the smallest. The last samples of one that
    /// was dead, or full, say little about it now, and as long as they deter a scheduler there are no others.
    pub(crate) fn srtt(&self, now: Instant) -> Option<Duration> {
        let is_idle = self.is_measurement_old(now) && !self.tcb.has_outstanding();
        if is_idle { self.tcb.rtt().min() } else { self.recent_rtt.or(self.tcb.rtt().srtt()) }
    }

    /// What schedulers may see, if it `has_room`.
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
            srtt: self.tcb.rtt().srtt(),
            min_rtt: self.tcb.rtt().min(),
            least_rtt: self.tcb.rtt().least(),
            rtt_sum: self.tcb.rtt().sum(),
            rtt_samples: self.tcb.rtt().samples(),
            in_recovery: window.in_recovery(),
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
            closed_at: None,
        }
    }
}

/// How long a connection without subflows waits for a new one (Linux's `close_timeout`).
pub(crate) const SUBFLOW_WAIT: Duration = Duration::from_secs(60);
/// How long one waits whose last subflow was reset: a full mesh joins again 1, 3, 7 and 15 s after the RST. Longer would
/// serve few, since most peers that reset are gone, and keep their memory; docs/decisions has the reasons.
pub(crate) const RESET_WAIT: Duration = Duration::from_secs(20);
