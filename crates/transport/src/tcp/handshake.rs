//! Opening a connection: the offers of a SYN and their negotiation (RFC 9293 section 3.5, RFC 7323, RFC 2018, RFC
//! 3168).

use core::net::SocketAddr;
use std::sync::Arc;

use units::narrow::u16_from;
use units::{Duration, Instant, SeqNr};
use wire::{Flags, Segment};

use super::ack_policy::AckPolicy;
use super::hystart::HyStart;
use super::path_mtu::PathMtu;
use super::rack::Rack;
use super::receive::ReceiveSpace;
use super::rtt::RttEstimator;
use super::scoreboard::Scoreboard;
use super::timestamp::TimestampState;
use super::window::CongestionWindow;
use super::{Counters, Due, EcnState, Eifel, Idle, Negotiated, Persist, Tcb, Timer, TimerTable};
use crate::ConnectionConfig;
use crate::observation::Watch;
use crate::state::{State, Step};

/// MSS without the option (RFC 9293 section 3.7.1).
const MSS_DEFAULT_V4: u16 = 536;
const MSS_DEFAULT_V6: u16 = 1220;
/// Smallest MSS accepted. A smaller one leaves no room beside the options; Linux draws a similar line.
const MSS_MIN: u16 = 88;
/// Maximum shift (RFC 7323 section 2.3).
const WINDOW_SCALE_MAX: u8 = 14;

/// Values derived from the endpoint's seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Secrets {
    pub(crate) iss: SeqNr,
    pub(crate) timestamp_offset: u32,
}

/// Octets of IP and TCP headers without options.
pub(super) fn header_bytes(remote: &SocketAddr) -> u32 {
    if remote.is_ipv4() { 40 } else { 60 }
}

/// Returns the MSS to announce for our MTU (RFC 9293 section 3.7.1: without options).
fn local_mss(config: &ConnectionConfig, remote: &SocketAddr) -> u16 {
    config.mtu.saturating_sub(u16_from(header_bytes(remote).into())).max(MSS_MIN)
}

/// Returns the initial path MTU: what our interface and a peer with an MSS of `peer_mss` accept.
fn first_path_mtu(config: &ConnectionConfig, remote: &SocketAddr, peer_mss: u16) -> PathMtu {
    let mss = peer_mss.min(local_mss(config, remote));
    PathMtu::new(mss + u16_from(header_bytes(remote).into()), remote.is_ipv6())
}

/// Returns the smallest shift that can announce the whole receive buffer.
fn window_scale(receive_buffer_bytes: u64) -> u8 {
    (0..WINDOW_SCALE_MAX).find(|shift| receive_buffer_bytes >> shift <= 0xffff).unwrap_or(WINDOW_SCALE_MAX)
}

impl Tcb {
    /// Opens actively. Makes a SYN due.
    pub(crate) fn connect(
        local: SocketAddr,
        remote: SocketAddr,
        config: Arc<ConnectionConfig>,
        secrets: Secrets,
        now: Instant,
    ) -> Self {
        let mut tcb = Self::new(local, remote, config, secrets, State::SynSent, now);
        tcb.start_handshake(now);
        tcb
    }

    /// Opens passively with the peer's SYN. Makes a SYN/ACK due.
    pub(crate) fn accept(syn: &Segment, config: Arc<ConnectionConfig>, secrets: Secrets, now: Instant) -> Self {
        let mut tcb = Self::new(syn.dst, syn.src, config, secrets, State::SynReceived, now);
        tcb.negotiate(syn, now);
        tcb.start_handshake(now);
        tcb
    }

    fn new(
        local: SocketAddr,
        remote: SocketAddr,
        config: Arc<ConnectionConfig>,
        secrets: Secrets,
        state: State,
        now: Instant,
    ) -> Self {
        let iss = secrets.iss;
        let (rto_min, rto_floor) = (config.rto_min, config.era.rto_floor);
        let peer_mss = if remote.is_ipv4() { MSS_DEFAULT_V4 } else { MSS_DEFAULT_V6 };
        Self {
            local,
            remote,
            state,
            counters: Counters::default(),
            iss,
            snd_una: iss,
            snd_nxt: iss,
            snd_wnd: 0,
            snd_wl1: SeqNr(0),
            snd_wl2: SeqNr(0),
            max_snd_wnd: 0,
            receive: ReceiveSpace::new(SeqNr(0)),
            // Offers, until the peer's SYN decides.
            negotiated: Negotiated::offered(&config),
            timestamps: config.timestamps.then(|| TimestampState::new(secrets.timestamp_offset)),
            reserved_options: 0,
            payload_max: u32::from(MSS_DEFAULT_V4),
            path_mtu: first_path_mtu(&config, &remote, peer_mss),
            unsent: Default::default(),
            unsent_bytes: 0,
            fin_requested: false,
            fin_sent: false,
            board: Scoreboard::new(iss),
            rack: Rack::new(iss),
            rtt: RttEstimator::new(rto_min, rto_floor),
            window: CongestionWindow::new(u32::from(MSS_DEFAULT_V4), config.initial_window_segments),
            pacer: super::pacer::Pacer::default(),
            hystart: HyStart::default(),
            duplicate_acks: 0,
            reno_sacked: 0,
            had_partial_ack: false,
            recover: iss,
            timeouts: 0,
            persist: Persist::default(),
            tail_probe: None,
            eifel: Eifel::Idle,
            round_end: iss + 1,
            cwnd_limited: false,
            ack_policy: AckPolicy::new(config.delayed_ack, config.era.ack_delay),
            ecn: EcnState::default(),
            due: Due::default(),
            timers: TimerTable::new(),
            last_sent_at: now,
            idle: Idle { since: now, before_data: Duration::ZERO },
            syns_sent: 0,
            syn_hurried: false,
            syn_lost: false,
            abandoned: false,
            last_heard_at: now,
            probing_since: now,
            challenge_allowed_at: Instant::ZERO,
            keep_alive_probes: 0,
            asked: iss,
            has_asked: false,
            watch: Watch::default(),
            config,
        }
    }

    fn start_handshake(&mut self, now: Instant) {
        self.due.add(Due::SYN);
        self.snd_nxt = self.iss + 1;
        self.timers.set(Timer::User, now + self.config.user_timeout);
    }

    /// Assumes that a SYN/ACK was sent that announced `receive_window` octets. Its sending time is unknown, so its ACK
    /// gives no round-trip time sample.
    pub(crate) fn assume_answered(&mut self, receive_window: u32) {
        self.due.take(Due::SYN);
        self.receive.announce(receive_window);
    }

    /// Adopts the contents of the peer's SYN or SYN/ACK.
    pub(super) fn negotiate(&mut self, syn: &Segment, now: Instant) {
        let options = &syn.options;
        self.receive = ReceiveSpace::new(syn.seq);
        if let Some(mss) = options.mss {
            self.path_mtu = first_path_mtu(&self.config, &self.remote, mss.max(MSS_MIN));
        }
        self.negotiated.sack &= options.sack_permitted;
        self.negotiated.rack &= options.sack_permitted;
        self.negotiated.tail_probe &= options.sack_permitted;
        self.negotiated.ecn &= peer_wants_ecn(syn.flags);
        self.negotiated.scaling = options.window_scale.is_some();
        if let Some(shift) = options.window_scale {
            self.negotiated.snd_wscale = shift.min(WINDOW_SCALE_MAX);
            self.negotiated.rcv_wscale = window_scale(self.config.receive_buffer_bytes);
        }
        match (&mut self.timestamps, options.timestamps) {
            (Some(state), Some(stamp)) => state.start(stamp.value, now, syn.seq),
            (state, _) => *state = None,
        }
        // The window of a SYN is never scaled (RFC 7323 section 2.2).
        self.snd_wnd = u32::from(syn.window).min(self.config.era.subflow_window_bytes);
        self.max_snd_wnd = self.snd_wnd;
        self.snd_wl1 = syn.seq;
        self.snd_wl2 = syn.ack;
        self.reserve_options(self.reserved_options);
    }

    /// Repeats the SYN early after an ACK that does not answer it. The peer remembers a former connection, and our RST
    /// (RFC 9293 section 3.10.7.3) makes it forget. A peer that continues like this gets at most one early SYN per
    /// time-out.
    pub(super) fn hurry_syn(&mut self) {
        if core::mem::replace(&mut self.syn_hurried, true) {
            return;
        }
        self.due.add(Due::SYN);
        self.timers.stop(Timer::Retransmit);
        if self.syns_sent == 1 {
            // This SYN has been answered, so the next answer belongs to the next SYN.
            self.syns_sent = 0;
        }
    }

    /// Completes the handshake: both SYNs are acknowledged.
    pub(super) fn establish(&mut self, now: Instant) {
        self.step(Step::SynAcked);
        self.snd_una = self.iss + 1;
        self.idle.since = now;
        self.timers.stop(Timer::Retransmit);
        self.timers.stop(Timer::User);
        self.syn_lost = self.rtt.backoff() > 0;
        // Karn: the answer to one of several SYNs gives no sample.
        if self.syns_sent == 1 {
            self.rtt.sample(now.saturating_since(self.last_sent_at), now);
        }
        self.rtt.end_handshake();
        self.rtt.leave_room_within(self.config.user_timeout);
        self.reserve_options(self.reserved_options);
        self.due.take(Due::SYN);
        if let Some(idle) = self.config.keep_alive {
            self.timers.set(Timer::KeepAlive, now + idle);
        }
    }

    /// Builds a SYN or SYN/ACK.
    pub(crate) fn build_syn(&mut self, segment: &mut Segment, receive_window: u32, now: Instant) {
        self.due.take(Due::SYN);
        self.syns_sent += 1;
        self.last_sent_at = now;
        let is_answer = self.state == State::SynReceived;
        self.begin(segment);
        segment.seq = self.iss;
        segment.flags = if is_answer { Flags::SYN | Flags::ACK } else { Flags::SYN };
        if !is_answer {
            segment.ack = SeqNr(0);
        }
        if self.negotiated.ecn {
            segment.flags |= if is_answer { Flags::ECE } else { Flags::ECE | Flags::CWR };
        }
        let options = &mut segment.options;
        options.mss = Some(local_mss(&self.config, &self.remote));
        options.sack_permitted = self.negotiated.sack;
        options.timestamps = self.timestamps.as_ref().map(|state| state.stamp(now));
        options.window_scale = self.negotiated.scaling.then(|| window_scale(self.config.receive_buffer_bytes));
        segment.window = receive_window.min(0xffff) as u16;
        if is_answer {
            self.receive.announce(u32::from(segment.window));
        }
        if !self.timers.is_set(Timer::Retransmit) {
            self.timers.set(Timer::Retransmit, now + self.rtt.rto());
        }
    }
}

/// Whether the peer wants ECN (RFC 3168 section 6.1.1): ECE and CWR on a SYN, ECE alone on a SYN/ACK.
fn peer_wants_ecn(flags: Flags) -> bool {
    let bits = flags.0 & (Flags::ECE | Flags::CWR).0;
    if flags.contains(Flags::ACK) { bits == Flags::ECE.0 } else { bits == (Flags::ECE | Flags::CWR).0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_cover_the_buffer() {
        assert_eq!(window_scale(65_535), 0);
        assert_eq!(window_scale(65_536), 1);
        assert_eq!(window_scale(4 << 20), 7);
        assert_eq!(window_scale(u64::MAX), 14);
    }

    #[test]
    fn ecn_needs_the_right_bits() {
        assert!(peer_wants_ecn(Flags::SYN | Flags::ECE | Flags::CWR));
        assert!(!peer_wants_ecn(Flags::SYN | Flags::ECE));
        assert!(peer_wants_ecn(Flags::SYN | Flags::ACK | Flags::ECE));
        assert!(!peer_wants_ecn(Flags::SYN | Flags::ACK | Flags::ECE | Flags::CWR));
    }
}
