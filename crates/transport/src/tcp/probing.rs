//! Path MTU discovery of a TCB: sends what [`PathMtu`](super::path_mtu::PathMtu) asks for, and reports the results to
//! it.

use units::Instant;
use wire::{Segment, TooBig};

use super::path_mtu::Probe;
use super::scoreboard::Sent;
use super::send::{OutgoingKind, SendLimits};
use super::window::Phase;
use super::{Tcb, Timer};
use crate::observation::Occurrence;

/// Minimum window for probing, in segments: the segments behind a lost probe reveal its loss.
const PROBING_WINDOW_SEGMENTS: u64 = 4;

/// Sizes of the segments that an ACK delivers.
#[derive(Debug)]
pub(super) struct DeliveredSizes {
    probe: Option<Probe>,
    /// Packets with more payload than this are larger than the next step down.
    small_payload: u32,
    /// Whether the probe was delivered: as sent (true), or in pieces that prove nothing (false).
    probe_arrived: Option<bool>,
    /// Octets of payload in the largest packet, if larger than `small_payload`.
    large_payload: Option<u32>,
}

impl DeliveredSizes {
    /// Whether a probe is in flight, so that every segment must be examined.
    #[inline]
    pub(super) fn seeks_probe(&self) -> bool {
        self.probe.is_some()
    }

    /// Takes the largest packet of several segments, none of them a probe.
    #[inline]
    pub(super) fn note_largest(&mut self, packet_payload: u32) {
        if packet_payload > self.small_payload {
            self.large_payload = self.large_payload.max(Some(packet_payload));
        }
    }

    #[inline]
    pub(super) fn note(&mut self, sent: &Sent) {
        let packet_payload = sent.packet_payload();
        self.note_largest(packet_payload);
        if let Some(probe) = self.probe.filter(|probe| probe.seq == sent.seq) {
            self.probe_arrived = Some(packet_payload == probe.payload_bytes && !sent.retransmitted);
        }
    }
}

impl Tcb {
    /// Handles a router's report that one of our packets was too big. A forger has to know the addresses, the ports,
    /// and a sequence number in flight (RFC 5927 section 4.1).
    pub(crate) fn on_too_big(&mut self, too_big: &TooBig, now: Instant) {
        let in_flight = too_big.seq.at_or_after(self.snd_una) && too_big.seq.before(self.snd_nxt);
        if self.state.is_synchronized() && in_flight && self.path_mtu.on_too_big(too_big, now) {
            self.adopt_path_mtu();
            self.board.lose_too_big(self.payload_max());
            self.timers.stop(Timer::TailProbe);
            if !self.board.is_empty() {
                self.timers.set(Timer::Retransmit, now + self.rtt.rto());
            }
        }
    }

    fn adopt_path_mtu(&mut self) {
        self.update_payload_max();
        self.window.set_mss(self.payload_max());
        let bytes = self.path_mtu.current();
        self.watch.tell(|| Occurrence::PathMtuChanged { bytes });
    }

    /// Returns the octets of payload in the largest packet of `segment`, which this TCB has just built.
    pub(crate) fn packet_payload(&self, segment: &Segment) -> u32 {
        let probe = self.path_mtu.probe().filter(|probe| probe.seq == segment.seq);
        match probe.map(|probe| probe.payload_bytes).filter(|bytes| *bytes as usize == segment.payload.len()) {
            Some(probe_bytes) => probe_bytes,
            None => self.payload_max(),
        }
    }

    /// Returns the octets of payload that a probe should have now, if one is wanted and no other event can obscure its
    /// result.
    fn wanted_probe(&mut self, now: Instant) -> Option<(u32, u16)> {
        let size = self.path_mtu.next_probe(now)?;
        let bytes = self.payload_within(size);
        let quiet = self.negotiated.sack
            && self.window.phase() == Phase::Open
            && self.board.sacked() == 0
            && !self.board.has_lost()
            && self.window.cwnd() >= PROBING_WINDOW_SEGMENTS * u64::from(self.payload_max());
        (quiet && bytes > self.payload_max()).then_some((bytes, size))
    }

    /// Whether a probe is due, as far as a cheap check can tell.
    #[inline]
    pub(super) fn wants_probe(&mut self, now: Instant) -> bool {
        self.path_mtu.is_searching() && self.wanted_probe(now).is_some()
    }

    /// Returns the octets that the next chunk needs to serve as a probe.
    pub(crate) fn probe_bytes(&mut self, now: Instant) -> Option<u32> {
        let (bytes, _) = self.wanted_probe(now)?;
        let used = self.in_flight() + self.unsent_bytes;
        (u64::from(bytes) <= self.window.cwnd().saturating_sub(used)).then_some(bytes)
    }

    /// Sends the front of the queue as a probe, if one is wanted and its chunk of `waiting` octets suffices.
    pub(super) fn send_probe(
        &mut self,
        waiting: u32,
        segment: &mut Segment,
        limits: &SendLimits,
        now: Instant,
    ) -> Option<OutgoingKind> {
        let (bytes, size) = self.wanted_probe(now)?;
        let room = self.window.cwnd().saturating_sub(self.in_flight()).min(self.usable_window().into());
        if waiting < bytes || room < u64::from(bytes) || self.waits_for_pace(now) {
            return None;
        }
        self.path_mtu.begin_probe(self.snd_nxt, bytes, size);
        Some(self.send_chunk(bytes, bytes, segment, limits, now))
    }

    /// Prepares to judge the data that an ACK is about to deliver by their sizes.
    pub(super) fn delivered_sizes(&self) -> DeliveredSizes {
        let small_payload = self.path_mtu.step_down().map_or(u32::MAX, |step| self.payload_within(step));
        DeliveredSizes { probe: self.path_mtu.probe(), small_payload, probe_arrived: None, large_payload: None }
    }

    pub(super) fn note_delivered_sizes(&mut self, sizes: &DeliveredSizes) {
        if let Some(payload_bytes) = sizes.large_payload {
            self.path_mtu.on_large_passed(payload_bytes);
        }
        match sizes.probe_arrived {
            Some(true) if self.path_mtu.on_probe_delivered() => self.adopt_path_mtu(),
            Some(_) => self.path_mtu.on_probe_lost(false),
            None => {}
        }
    }

    /// Handles a lost probe. It says nothing about congestion (RFC 4821 section 7.5), nor about sizes if other segments
    /// are lost too.
    pub(super) fn note_lost_probe(&mut self) {
        let Some(probe) = self.path_mtu.probe() else { return };
        if self.board.excuse_lost(probe.seq) {
            let alone = !self.window.is_repairing() && !self.board.has_congestive_loss();
            self.path_mtu.on_probe_lost(alone);
            // The loss is known, and its repair is due.
            self.timers.stop(Timer::TailProbe);
        }
    }

    /// After a time-out, with losses marked: packets of this size may not pass (RFC 4821 section 7.7).
    pub(super) fn look_for_black_hole(&mut self) {
        self.path_mtu.on_probe_lost(true);
        let Some((seq, bytes)) = self.board.iter().next().map(|front| (front.seq, front.packet_payload())) else {
            return;
        };
        let is_large = |step: &u16| bytes > self.payload_within(*step);
        if let Some(step) = self.path_mtu.black_hole().filter(is_large) {
            self.path_mtu.fall_back(step);
            self.adopt_path_mtu();
            self.board.lose_too_big(self.payload_max());
            self.window.restore_ssthresh();
        } else if let Some(step) = self.path_mtu.trial_step(self.timeouts).filter(is_large) {
            // Send halves if they are small enough, so that no tiny rest remains.
            let trial = bytes.div_ceil(2).min(self.payload_within(step));
            self.board.trim_to(0, trial);
            self.path_mtu.begin_trial(seq + trial, step, bytes);
        }
    }
}
